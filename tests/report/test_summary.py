import json

import numpy as np
import pytest
from synthetic_sweep import power_curves, sweep

from bqlib.report import summary as module
from bqlib.report.summary import as_text, summary
from bqlib.schema import FAILED, MISSING, SWEEP_DIMS


@pytest.fixture
def curves(monkeypatch, tmp_path):
    """Curves of 4 seeds, of which some trials are made to fail, to miss and to end early."""
    data = sweep(
        {name: power_curves(0.5, seeds=4, n=100) for name in ("iid", "sbq")},
        lengthscales=(0.5, 1.0),
        candidates={"size": 60},
    )
    dims = (*SWEEP_DIMS, "seed")
    data["rank_reached"] = (dims, np.full(data["status"].shape, 100.0))
    data.attrs |= {"title": "A title", "bqlib_version": "1"}
    iid = {"lengthscale": 0.5, "algorithm": "iid"}
    for seed, status, reason in (
        (0, FAILED, "ValueError: seed 10"),
        (1, FAILED, "ValueError: seed 11"),
        (3, MISSING, ""),
    ):
        data["status"].loc[iid | {"seed": seed}] = status
        data["reason"].loc[iid | {"seed": seed}] = reason
        data["mmd"].loc[iid | {"seed": seed}] = np.nan
    sbq = {"lengthscale": 1.0, "algorithm": "sbq"}
    for seed, rank in ((1, 40), (2, 60)):
        data["rank_reached"].loc[sbq | {"seed": seed}] = rank
        data["reason"].loc[sbq | {"seed": seed}] = f"ends at n = {rank}"
        data["mmd"].loc[sbq | {"seed": seed}].values[0, 0, rank:] = np.nan
    monkeypatch.setattr(module, "find_curves", lambda path: path)
    monkeypatch.setattr(module, "open_curves", lambda store: data)
    return data


def test_trials_are_counted_and_reasons_grouped(curves, tmp_path):
    about = summary(tmp_path)
    assert about["trials"] == {
        "all": 16,
        "ok": 13,
        "failed": 2,
        "missing": 1,
        "inapplicable": 0,
        "ended": 2,
    }
    assert about["failed"] == [
        {
            "lengthscale": 0.5,
            "algorithm": "iid",
            "trials": 2,
            "seeds": "0-1",
            "reason": "ValueError: seed 10 to 11",
        }
    ]
    (ended,) = about["ended"]
    assert ended["seeds"] == "1-2" and ended["reason"] == "ends at n = 40 to 60"
    json.dumps(about, allow_nan=False)


def test_medians_are_of_the_seeds_that_ran_and_of_no_part_of_them(curves, tmp_path):
    rows = {(row["lengthscale"], row["algorithm"]): row for row in summary(tmp_path)["mmd"]}
    only = float(curves["mmd"].sel(lengthscale=0.5, algorithm="iid", seed=2, n=100).squeeze())
    assert rows[0.5, "iid"]["n = 100"] == f"{only:.3g}"
    assert rows[1.0, "sbq"]["n = 100"] == "-" and rows[1.0, "sbq"]["n = 10"] != "-"


def test_seconds_and_jobs_are_those_of_the_files(curves, tmp_path):
    for cell, seconds in {"0.5/iid": {"0": None, "1": 2.0}, "1/iid": {"0": 3.0, "1": 5.0}}.items():
        file = tmp_path / "timings" / "mixture" / "eq" / cell / "seeds-0-1.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"seconds": seconds, "failed": {}}))
    for job, second in {"gather": "2.5", "pieces/mixture/a": "1", "pieces/mixture/b": "NA"}.items():
        file = tmp_path / "benchmarks" / f"{job}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"s\tmax_rss\n{second}\t100.0\n")
    about = summary(tmp_path)
    assert about["seconds"] == [
        {"lengthscale": "0.5", "trials": 1, "median, s": "2", "longest, s": "2", "sum, s": "2"},
        {"lengthscale": "1", "trials": 2, "median, s": "4", "longest, s": "5", "sum, s": "8"},
    ]
    assert about["hours"] == 10 / 3600
    jobs = {row["job"]: row for row in about["jobs"]}
    assert jobs["pieces"]["jobs"] == 2 and jobs["pieces"]["sum, s"] == "1.0"
    assert jobs["gather"]["longest, s"] == "2.5"


def test_the_text_has_it_all(curves, tmp_path):
    text = as_text(summary(tmp_path))
    assert "13 of 16 trials ran, 2 failed, 1 missing, 2 ended early" in text
    assert "Smallest MMD at n = 100" in text or "has the smallest MMD" in text
    assert "The rule with the smallest MMD at the largest n" in text
    assert "seed 10 to 11" in text and "n = 40 to 60" in text


def test_results_from_elsewhere_cannot_steer_a_terminal(curves, tmp_path):
    curves.attrs["title"] = "\x1b[31m title"
    assert as_text(summary(tmp_path)).startswith("\\x1b[31m title\n")


def test_the_best_rule_of_each_cell_is_named(curves, tmp_path):
    about = summary(tmp_path)
    assert [row["lengthscale"] for row in about["best"]] in (["0.5", "1"], ["0.5 to 1"])
    assert {"best rule", "MMD at n = 100", "lead over next"} <= about["best"][0].keys()
    assert about["headline"].endswith(".")


def test_a_sweep_of_problems_says_what_each_rule_solves(curves, tmp_path, monkeypatch):
    assert summary(tmp_path)["profile"] == []
    data = curves.isel(lengthscale=[1])
    config = json.loads(curves.attrs["config"])
    (target,), (kernel,) = config["targets"], config["kernels"].values()
    problem = {"n": 100, "levels": [0.5, 0.05], "kernel": kernel, "candidates": {"size": 60}}
    config["problems"] = {target: problem}
    data.attrs["config"] = json.dumps(config)
    monkeypatch.setattr(module, "open_curves", lambda store: data)
    about = summary(tmp_path)
    data.attrs["config"] = json.dumps(config | {"problems": {target: problem | {"n": 40}}})
    assert about["trials"]["ended"] > summary(tmp_path)["trials"]["ended"] == 0
    first, second = about["profile"]
    assert first["problems"] == 1 and {first["n/d = 1"], second["n/d = 1"]} == {"0 %"}
    assert "n/d = 10" in first and "with n/d points" in as_text(about)
