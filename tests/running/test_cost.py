import json
from dataclasses import replace

import pytest
from project import QUICK

from bqlib.cli.main import main
from bqlib.results.layout import piece_name
from bqlib.running import cost
from bqlib.sweep.file import load


@pytest.fixture
def cheap(monkeypatch):
    """A machine on which a trial of n points of M candidates takes 1e-9 M n^2 s and 8 M n bytes."""
    asked = []

    def seconds(spec, n, pool):
        asked.append((n, pool))
        return 1e-9 * pool * n**2

    monkeypatch.setattr(cost, "_seconds", seconds)
    monkeypatch.setattr(cost, "_bytes", lambda spec, n, pool: 8 * pool * n)
    return asked


def finish(results, cell, block, seconds, failed, **record):
    name = piece_name(cell, block)
    content = {"seconds": seconds, "failed": failed, **record}
    for path, text in [
        (results / "pieces" / name, "piece"),
        (results / "timings" / name.replace(".zarr.zip", ".json"), json.dumps(content)),
    ]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_trials_are_counted_and_finished_ones_give_the_time(tmp_path, cheap):
    experiment = load(QUICK)
    first, other = (cell for cell in experiment.cells() if cell.algorithm == "sbq")
    finish(tmp_path, first, (0, 0), {"0": 3.0}, {})
    finish(tmp_path, other, (1, 1), {"1": None}, {"1": "out of memory"})
    rows = {row.algorithm: row for row in cost.plan(experiment, tmp_path)}
    assert list(rows) == ["iid", "herding", "herding_bq", "sbq"]
    sbq, iid = rows["sbq"], rows["iid"]
    assert (sbq.done, sbq.failed, sbq.missing) == (2, 1, 2)
    assert (sbq.cost.seconds, sbq.cost.measured) == (3.0, True)
    assert (iid.done, iid.failed, iid.missing) == (0, 0, 4)
    assert not iid.cost.measured


def test_what_another_sweep_made_is_missing(tmp_path, cheap):
    experiment = load(QUICK)
    cell = experiment.cells()[0]
    finish(tmp_path, cell, (0, 0), {"0": 3.0}, {})
    finish(tmp_path, cell, (0, 0), {"0": 3.0}, {}, digest="of another")
    finish(tmp_path, cell, (0, 1), {"0": 3.0, "1": 3.0}, {}, digest="of another")
    assert all(row.done == 0 for row in cost.plan(experiment, tmp_path))


def test_trials_in_pieces_of_other_blocks_are_done(tmp_path, cheap):
    experiment = load(QUICK)
    cell = experiment.cells()[0]
    digest = experiment.spec(cell).digest
    content = {"0": 3.0, "1": None, "7": 5.0}
    finish(tmp_path, cell, (0, 7), content, {"1": "no room"}, digest=digest)
    row = cost.plan(experiment, tmp_path)[0]
    # One that failed is run again.
    assert (row.done, row.failed, row.missing) == (1, 0, 3)
    assert (row.cost.seconds, row.cost.measured) == (3.0, True)


def test_a_finished_sweep_costs_nothing(tmp_path, cheap):
    experiment = load(QUICK)
    for cell in experiment.cells():
        for first, last in experiment.blocks():
            finish(tmp_path, cell, (first, last), {str(first): 1.0}, {})
    rows = cost.plan(experiment, tmp_path)
    assert not cheap and all(row.missing == 0 and row.cost is None for row in rows)
    assert (
        cost.as_text(rows, workers=4).splitlines()[-1]
        == "16 trials done (0 of them failed), 0 missing"
    )


@pytest.mark.parametrize("n, size", [(400, 10_000), (50, 1000), (3, 5), (400, 400)])
def test_powers_of_both_numbers_are_found(cheap, n, size):
    experiment = load(QUICK)
    spec = experiment.spec(experiment.cells()[0])
    spec = replace(spec, n=n, candidates=replace(spec.candidates, size=size))
    found = cost.estimate(spec)
    assert found.seconds == pytest.approx(1e-9 * size * n**2)
    assert found.bytes == pytest.approx(cost.PYTHON_BYTES + 8 * size * n)
    assert all(1 <= small_n <= n and small_n <= pool <= size for small_n, pool in cheap)


def test_a_long_trial_is_not_run_at_full_size(cheap):
    experiment = load(QUICK)
    spec = experiment.spec(experiment.cells()[0])
    cost.estimate(replace(spec, n=4000, candidates=replace(spec.candidates, size=10**6)))
    assert max(cheap) == (250, 31250)  # 1/32 of each, and twice that


def test_the_command_says_what_is_left(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["plan", str(QUICK), "--workers", "2"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].split()[:3] == ["target", "kernel", "algorithm"] and len(said) == 8
    assert said[5] == "0 trials done (0 of them failed), 16 missing"
    assert "on one core" in said[6] and "on 2 workers" in said[6]
    assert said[7].startswith("studies, not included: cost, ")


def test_times_are_those_of_the_workers(cheap, tmp_path):
    rows = cost.plan(load(QUICK), tmp_path)
    rows = [replace(row, cost=replace(row.cost, seconds=5400.0)) for row in rows]
    said = cost.as_text(rows, workers=4).splitlines()
    assert said[1].split()[-4:-1] == ["~5.4e+03", "6", "h"]
    total = "missing trials: about 24 h on one core like those of this machine"
    assert said[-1].startswith(f"{total}, 6 h on 4 workers; ")
    assert said[-1].endswith(" GB for each worker")
    assert cost.as_text(rows, workers=1).splitlines()[-1].startswith(f"{total}; ")


@pytest.mark.parametrize("workers", ["0", "-3", "two", "1.5"])
def test_a_plan_is_for_one_worker_or_more(workers, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["plan", str(QUICK), "--workers", workers])
    assert ended.value.code == 2
    told = f"number of workers must be an integer of at least 1, not {workers}"
    assert told in capsys.readouterr().err


def test_the_command_says_what_is_wrong_with_a_sweep(tmp_path, capsys):
    assert main(["plan", str(tmp_path / "none.yaml")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_a_row_that_fails_says_why_and_the_others_are_told(tmp_path, monkeypatch, capsys):
    def fails(spec):
        if spec.cell.algorithm == "iid":
            raise ValueError("not with\nthis")
        return cost.Cost(1.0, 1e9, measured=False)

    monkeypatch.setattr(cost, "estimate", fails)
    monkeypatch.chdir(tmp_path)
    assert main(["plan", str(QUICK)]) == 1
    said = capsys.readouterr().out
    assert "iid: a small trial failed: ValueError: not with this\nother missing trials: ab" in said
    assert main(["plan", "--json", str(QUICK)]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert [bool(row["cost"]) for row in rows] == [row["algorithm"] != "iid" for row in rows]
    assert {row["problem"] for row in rows} == {"", "ValueError: not with this"}
