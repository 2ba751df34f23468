"""Results as the jobs of a run leave them, made in this process."""

import json
from hashlib import sha256
from pathlib import Path

from project import SHELF

from bqlib.results.layout import piece_name, timing_name
from bqlib.results.pieces import encode_piece
from bqlib.sweep.file import load

# A sweep of eight pieces of one seed each.
TIMED = """
name: small
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic}}
lengthscales: [0.5, 2]
algorithms: [herding, iid]
candidates: {size: 50}
n: 6
seeds: 2
seeds_per_job: 1
rate_windows: [[2, 6]]
"""
# Names of two pieces; a trial of the second failed.
GOOD, BAD = "mixture/eq/0.5/sbq/seeds-0-1.zarr.zip", "mixture/eq/0.5/sbq/seeds-2-3.zarr.zip"


def write_pieces(experiment, folder):
    """Run all trials of a sweep and write the pieces below `folder`.

    Returns
    -------
    list of (str, bqlib.sweep.spec.Spec, bytes)
        Name, spec and content of each.
    """
    written = []
    for cell in experiment.cells():
        spec = experiment.spec(cell)
        for first, last in experiment.blocks():
            seeds = range(first, last + 1)
            data = encode_piece(spec, seeds, [spec.run(seed)[0] for seed in seeds])
            name = piece_name(cell, (first, last))
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            written.append((name, spec, data))
    return written


def fresh_pieces(sweep, folder):
    """sha256 of each piece of a sweep file by its name, computed here and written below `folder`.

    Its targets are those of the project.
    """
    made = write_pieces(load(sweep, SHELF), folder)
    return {name: sha256(data).hexdigest() for name, _, data in made}


def write_timed_pieces(experiment, results):
    """Pieces, and their timings as if numpy was updated between the seeds."""
    for name, spec, data in write_pieces(experiment, results / "pieces"):
        seed = 0 if "seeds-0-0" in name else 1
        seconds = {str(seed): 0.5 + seed}
        write_timing(results, name, data, spec.digest, seconds, {"numpy": f"2.{seed}"})


def write_timing(results, name, data, digest, seconds, versions=None):
    """The file of timings of a piece, as its job writes it."""
    path = results / "timings" / timing_name(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "digest": digest, "sha256": sha256(data).hexdigest(), "seconds": seconds,
        "failed": {}, "versions": versions or {},
    }  # fmt: skip
    path.write_text(json.dumps(content, indent=1) + "\n")


def write_failure(results):
    """Files in place of the pieces GOOD and BAD and of the curves, and the timings of both."""
    timings = {
        GOOD: {"seconds": {"0": 1.5, "1": 2.0}, "failed": {}},
        BAD: {"seconds": {"2": 1.0, "3": None}, "failed": {"3": "out of memory"}},
    }
    for piece, content in timings.items():
        for path, text in {
            results / "pieces" / piece: "piece",
            results / "timings" / piece.replace(".zarr.zip", ".json"): json.dumps(content),
        }.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    (results / "curves.zarr").mkdir()
    (results / "curves.zarr" / "zarr.json").write_text("{}")
    return results
