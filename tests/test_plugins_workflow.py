"""The files of docs/plugins.md through Snakemake: run, edited, and gone."""

import numpy as np
import pytest
from checkout import Checkout, jobs
from documented import documented_files

import bqlib
from bqlib.analysis.cells import embedding_of
from bqlib.sweep.plugins import PluginError

FILES = documented_files("plugins.md")
WITH_PICKS = """algorithms:
  - {name: farthest, design: picks.py:farthest, weights: uniform}
  - {name: farthest_bq, design: {family: picks.py:farthest, start: 3}, weights: bq}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    checkout = Checkout(tmp_path_factory.mktemp("plugins") / "a checkout")
    for name, text in FILES.items():
        (checkout.folder / "config" / name).write_text(text)
    checkout.sweep = checkout.folder / "config" / "ring.yaml"
    checkout.results = checkout.folder / "results" / "ring"
    checkout.edit("config/ring.yaml", "algorithms: [iid, sbq]\n", WITH_PICKS)
    ran = checkout.run()
    assert ran.returncode == 0 and jobs(ran.output)["piece"] == 2, ran.output
    return checkout


def test_a_sweep_runs_on_workers_with_its_plugins(checkout):
    curves = bqlib.open_results(checkout.results)
    assert (curves.status == 1).all() and np.isfinite(curves.mmd).all()
    points = curves["points"].squeeze().values
    assert np.allclose(np.linalg.norm(points, axis=-1), 2)
    last = curves.mmd.squeeze().isel(n=-1).mean("seed")
    assert float(last.sel(algorithm="farthest_bq")) < 0.01 < float(last.sel(algorithm="farthest"))


def test_an_edit_reruns_what_depends_on_it_alone(checkout):
    checkout.edit("config/picks.py", "with equal weights.", "and equal weights.")
    checkout.edit("config/ring.py", "Uniform on a circle around", "A circle around")
    assert "Nothing to be done" in checkout.run("-n").output
    checkout.edit("config/picks.py", "np.argmax(distance)", "np.argmax(1.0 * distance)")
    assert jobs(checkout.run("-n").output)["piece"] == 2


def test_results_outlive_their_plugins(checkout):
    file = checkout.folder / "config" / "ring.py"
    file.rename(file.with_suffix(".moved.py"))
    curves = bqlib.open_results(checkout.results).load()
    cell = {"target": "ring", "kernel": "eq", "lengthscale": 0.5}
    with pytest.raises(PluginError, match=r'there is no file .*ring\.py; did you mean "ring\.mov'):
        embedding_of(curves, cell)
    curves.attrs["config"] = curves.attrs["config"].replace("/ring.py", "/ring.moved.py")
    embedding = embedding_of(curves, cell)
    points = curves["points"].sel(algorithm="farthest").isel(seed=0).squeeze().values
    assert bqlib.mmd(embedding, points, np.full(30, 1 / 30)) == pytest.approx(
        float(curves.mmd.sel(algorithm="farthest").isel(seed=0, n=-1).squeeze()), rel=1e-10
    )
