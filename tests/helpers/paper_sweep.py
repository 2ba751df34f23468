"""A small run of the paper's own sweep, for tests of what is drawn and said of it."""

from project import SHELF
from written_results import write_pieces

from bqlib.access.opening import open_results
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
    write_pieces(experiment, folder / "pieces")
    gather(experiment, folder)
    return open_results(folder)
