"""Seconds of trials."""

import json

import pytest
from synthetic_sweep import power_curves, sweep

from bqlib.analysis import seconds
from bqlib.schema import TRIAL_DIMS

CELL = {"target": "chen2010_mixture", "kernel": "eq", "lengthscale": 0.5}


def test_seconds_come_from_the_files_beside_the_pieces(tmp_path):
    curves = sweep(
        {"iid": power_curves(0.5, n=20), "sbq": power_curves(1, n=20)}, lengthscales=(0.5, 1.0)
    )
    for folder, cell, block, own in (
        ("a", "chen2010_mixture/eq/0.5/sbq", "0-1", {"0": 1.5, "1": None}),
        ("a", "chen2010_mixture/eq/1/iid", "2-2", {"2": 0.25}),
        ("a", "chen2010_mixture/eq/3/iid", "0-0", {"0": 9}),
        ("b", "chen2010_mixture/eq/0.5/sbq", "0-12", {"0": 7.0, "9": 2.0, "12": 3.0}),
    ):
        path = tmp_path / folder / "timings" / cell / f"seeds-{block}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"seconds": own}))
    found = seconds.trial_seconds(curves, [tmp_path / "a", tmp_path / "b"])
    assert found.dims == TRIAL_DIMS and found.attrs["units"] == "s"
    sbq = found.sel(CELL | {"algorithm": "sbq"})
    assert sbq.sel(seed=[0, 9]).values.tolist() == [1.5, 2.0]  # the first folder goes first
    assert found.sel(lengthscale=1, algorithm="iid", seed=2).item() == 0.25
    assert found.notnull().sum() == 3
    with pytest.raises(FileNotFoundError, match=r"no timings in .*nowhere"):
        seconds.trial_seconds(curves, tmp_path / "nowhere")
