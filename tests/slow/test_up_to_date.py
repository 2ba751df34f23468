"""Nothing is computed twice, through Snakemake: other seeds, other blocks, other dates of files."""

import os
import random
import re
import shutil
from hashlib import sha256

import pytest
from checkout import Checkout, jobs
from damage import files, flip
from written_results import fresh_pieces

import bqlib
from bqlib.cli.main import main
from bqlib.results.integrity import check
from bqlib.results.layout import MANIFEST, PROVENANCE

MORE = """integrands: {rkhs_ball: {family: rkhs_ball, functions: 5, centre_variance: 3}}
studies: [submodularity]
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A checkout whose sweep has run."""
    checkout = Checkout(tmp_path_factory.mktemp("finished") / "a checkout")
    checkout.sweep.write_text(checkout.sweep.read_text() + MORE)
    ran = checkout.run()
    assert ran.returncode == 0, ran.output
    return checkout


@pytest.fixture
def clone(finished, tmp_path):
    """A fresh checkout with a copy of the finished results, all dates set at random."""
    clone = Checkout(tmp_path / "a clone")
    shutil.copy(finished.sweep, clone.sweep)
    shutil.copytree(finished.results, clone.results)
    shuffle_dates(clone)
    return clone


def shuffle_dates(checkout):
    """Set the dates of all files, results and code, to days from 2001 to 2033."""
    rng = random.Random(20)
    for path in sorted(checkout.folder.rglob("*")):
        date = rng.uniform(1e9, 2e9)
        os.utime(path, (date, date))


def sums(results):
    """sha256 of each file of results."""
    return {
        str(path.relative_to(results)): sha256(path.read_bytes()).hexdigest()
        for path in results.rglob("*")
        if path.is_file()
    }


def set_key(checkout, key, value):
    text, count = re.subn(
        rf"^{key}: .*$", f"{key}: {value}", checkout.sweep.read_text(), flags=re.M
    )
    assert count == 1
    checkout.sweep.write_text(text)


def test_other_seeds_and_blocks_take_over_all_trials_that_are_there(tmp_path):
    checkout = Checkout(tmp_path / "a checkout")
    checkout.set_faults({})
    alone = {}  # of a run that took nothing over, by the names of pieces

    def pieces_after(seeds, per_job, said, trials):
        """Names of blocks after a run that must compute so many trials."""
        set_key(checkout, "seeds", seeds)
        set_key(checkout, "seeds_per_job", per_job)
        log = checkout.sweep.parent / "attempts"
        log.write_text("")
        ran = checkout.run("--until", "gather")
        assert ran.returncode == 0 and said in ran.output, ran.output
        assert len(checkout.attempts("start")) == trials
        assert ("Dask" in ran.output) == (trials > 0)
        fresh = fresh_pieces(checkout.sweep, tmp_path / f"fresh {seeds} {per_job}")
        alone.update(fresh)
        pieces = checkout.pieces()
        assert pieces == {name: alone[name] for name in pieces}
        assert fresh.keys() <= pieces.keys()
        assert bqlib.open_results(checkout.results).sizes["seed"] == seeds
        return {name.rpartition("/seeds-")[2].removesuffix(".zarr.zip") for name in pieces}

    taken = "finished trials are taken over into new pieces"
    assert pieces_after(5, 10, "", 10) == {"0-4"}
    # Two jobs made the two pieces. Snakemake measures none of them.
    assert len(list((checkout.results / "logs").glob("pieces_*.log"))) == 2
    assert not (checkout.results / "benchmarks" / "pieces").exists()
    set_key(checkout, "seeds", 10)
    assert f"10 {taken}, 10 are to compute" in checkout.run("-n").output
    assert pieces_after(10, 10, f"10 {taken}, 10 are to compute", 10) == {"0-9"}
    assert not list((checkout.results / "timings").rglob("seeds-0-4*"))
    assert pieces_after(15, 10, "", 10) == {"0-9", "10-14"}
    # What the sweep does not ask for any more is kept.
    assert pieces_after(12, 10, f"4 {taken}, 0 are to compute", 0) == {"0-9", "10-11", "10-14"}
    assert pieces_after(12, 4, f"24 {taken}, 0 are to compute", 0) == {
        "0-3",
        "4-7",
        "8-11",
        "10-14",
    }
    damaged = next(checkout.results.glob("pieces/**/faulty_iid/seeds-4-7.zarr.zip"))
    flip(damaged)
    assert pieces_after(12, 6, f"24 {taken}, 0 are to compute", 4) == {"0-5", "6-11", "10-14"}
    assert check(checkout.results).faults == ()


def test_a_clone_with_results_has_nothing_to_do_whatever_the_dates(clone, finished):
    before = sums(clone.results)
    for arguments in (["-n"], []):
        ran = clone.run(*arguments)
        assert ran.returncode == 0 and "Nothing to be done" in ran.output, ran.output
        assert "taken over" not in ran.output and "replaced" not in ran.output
    assert sums(clone.results) == before == sums(finished.results)
    clone.edit("bqlib/figures/mmd.py", "MMD to the target", "MMD to a target")
    planned = {"figures": 1, "report": 1, "manifest": 1, "default": 1, "total": 4}
    assert jobs(clone.run("-n").output) == planned
    clone.edit("bqlib/figures/mmd.py", "MMD to a target", "MMD to the target")
    assert "Nothing to be done" in clone.run("-n").output
    clone.edit("bqlib/figures/mmd.py", "MMD to the target", "MMD to a target")
    ran = clone.run()
    assert ran.returncode == 0 and jobs(ran.output) == planned, ran.output
    after = sums(clone.results)
    changed = {path for path in before if after[path] != before[path]}
    assert {"figures/mmd.svg", "report.html", "records/figures.txt"} <= changed
    assert not {path for path in changed if path.startswith(("pieces", "curves", "rates"))}
    assert check(clone.results).faults == ()


def test_damage_is_not_recorded_as_whole_by_a_run_that_keeps_the_file(clone, capsys):
    flip(clone.results / "figures" / "mmd.svg")
    ran = clone.run("--forcerun", "report")
    assert ran.returncode == 1
    assert "figures/mmd.svg is damaged: its sha256 differs" in ran.output, ran.output
    assert main(["retry", "--damaged", str(clone.results)]) == 0
    ran = clone.run()
    assert ran.returncode == 0 and "figures" in jobs(ran.output), ran.output
    assert check(clone.results).faults == ()


def test_damage_before_the_end_is_not_recorded_and_one_command_mends_it(clone):
    pieces = clone.pieces()
    for name in (MANIFEST, PROVENANCE):
        (clone.results / name).unlink()
    damaged = [
        files(clone.results, pattern)[0]
        for pattern in ("pieces/**/*.zip", "rates.zarr/rate/c.*", "figures/*.png")
    ]
    for path in damaged:
        times = path.stat()
        flip(path, path.stat().st_size // 2)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # so that Snakemake sees nothing
    ran = clone.run()
    relative = [str(path.relative_to(clone.folder)) for path in damaged]
    assert ran.returncode == 1 and jobs(ran.output).keys() == {"default", "manifest", "total"}
    command = "bqlib retry --damaged results/small"
    assert all(path in ran.output for path in relative) and command in ran.output
    assert not (clone.results / MANIFEST).exists()
    assert main(["retry", "--damaged", str(clone.results)]) == 0
    ran = clone.run()
    assert ran.returncode == 0 and jobs(ran.output)["piece"] == 1, ran.output
    assert check(clone.results).faults == () and clone.pieces() == pieces


def test_a_touched_script_runs_nothing_and_a_changed_one_its_job(finished):
    scripts = sorted((finished.folder / "workflow" / "scripts").glob("*.py"))
    for script in scripts:
        script.touch()
    assert "Nothing to be done" in finished.run().output
    finished.edit("workflow/scripts/rates.py", "curves = ", "curves: object = ")
    assert {"rates", "report"} <= jobs(finished.run("-n").output).keys()
    finished.edit("workflow/scripts/rates.py", "curves: object = ", "curves = ")
    finished.sweep = finished.sweep.rename(finished.folder / "small.yaml")
    assert "Nothing to be done" in finished.run().output
    finished.sweep = finished.sweep.rename(finished.folder / "config" / "small.yaml")


def test_what_a_killed_run_has_not_made_again_is_made_by_the_next(tmp_path):
    checkout = Checkout(tmp_path / "a checkout")
    set_key(checkout, "seeds_per_job", 2)
    checkout.set_faults({"* 1 0": ["raise", "unlucky"]})
    assert checkout.run().returncode == 3
    before = sums(checkout.results)
    assert main(["retry", str(checkout.results)]) == 0
    ran = checkout.run("--until", "gather")  # as if it was killed then
    assert ran.returncode == 0 and jobs(ran.output)["piece"] == 2, ran.output
    # A retry runs the trials that failed, and no others.
    seeds = [seed for _, seed, *_ in checkout.attempts("start")]
    assert sorted(seeds) == ["0", "0", "1", "1", "1", "1"]
    assert not list(checkout.results.rglob("*retried*"))
    head = "curves.zarr/zarr.json"
    assert sums(checkout.results)[head] == before[head]  # Snakemake sees no change in the curves
    left = {"rates", "figures", "report"}
    assert left <= jobs(checkout.run("-n").output).keys()
    shutil.rmtree(checkout.folder / ".snakemake")
    shuffle_dates(checkout)
    ran = checkout.run()
    assert ran.returncode == 0, ran.output
    assert left <= jobs(ran.output).keys() and not {"piece", "gather"} & jobs(ran.output).keys()
    assert bqlib.open_results(checkout.results).status.values.all()
    assert sums(checkout.results)["figures/mmd.svg"] != before["figures/mmd.svg"]
