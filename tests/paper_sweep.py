"""A small run of the paper's own sweep, for tests of what is drawn and said of it."""

from pathlib import Path

from bqlib import trial
from bqlib.experiment import load, piece_name
from bqlib.store import encode_piece, gather, open_results

CONFIG = Path(__file__).parent.parent / "config"
SWEEP = """
name: paper
targets: [chen2010_mixture]
kernels:
  eq_density: {family: exponentiated_quadratic, scale: density}
lengthscales: [0.5]
algorithms: [iid, herding, herding_bq, sbq]
candidates: {size: 1500}
n: 120
seeds: 5
rate_windows: [[10, 120], [20, 120]]
"""


def run(folder, text=SWEEP):
    """The curves of a sweep, run in this process, opened from `folder`."""
    (folder / "sweep.yaml").write_text(text)
    experiment = load(folder / "sweep.yaml", CONFIG / "targets")
    for cell in experiment.cells():
        spec = experiment.spec(cell)
        for first, last in experiment.blocks():
            seeds = range(first, last + 1)
            piece = folder / "pieces" / piece_name(cell, (first, last))
            piece.parent.mkdir(parents=True, exist_ok=True)
            piece.write_bytes(encode_piece(spec, seeds, [trial.run(spec, s)[0] for s in seeds]))
    gather(experiment, folder / "pieces", folder / "curves.zarr")
    return open_results(folder)
