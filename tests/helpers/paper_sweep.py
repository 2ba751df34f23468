"""A small run of the paper's own sweep, for tests of what is drawn and said of it."""

from project import SHELF

from bqlib.access.opening import open_results
from bqlib.results.layout import piece_name
from bqlib.results.pieces import encode_piece
from bqlib.results.store import gather
from bqlib.sweep.file import load

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
    experiment = load(folder / "sweep.yaml", SHELF)
    for cell in experiment.cells():
        spec = experiment.spec(cell)
        for first, last in experiment.blocks():
            seeds = range(first, last + 1)
            piece = folder / "pieces" / piece_name(cell, (first, last))
            piece.parent.mkdir(parents=True, exist_ok=True)
            piece.write_bytes(encode_piece(spec, seeds, [spec.run(s)[0] for s in seeds]))
    gather(experiment, folder)
    return open_results(folder)
