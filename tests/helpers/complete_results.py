"""A finished folder with every kind of file that a run makes, of a small sweep."""

import numpy as np
import xarray as xr
from project import SHELF
from written_results import write_timed_pieces

from bqlib import claims
from bqlib.access.opening import open_results
from bqlib.analysis.fits import fit_rates
from bqlib.analysis.function_errors import function_errors
from bqlib.figures.mmd import mmd
from bqlib.figures.style import save
from bqlib.report.html import write_report
from bqlib.results.integrity import write_manifest
from bqlib.results.layout import Layout
from bqlib.results.store import gather, write_dataset
from bqlib.sweep.file import load

SWEEP = """
name: small
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic}}
lengthscales: [0.5, 2]
algorithms: [herding, iid]
candidates: {size: 50}
integrands: {within: {family: rkhs_ball, functions: 5}}
n: 12
seeds: 2
seeds_per_job: 1
rate_windows: [[2, 12]]
"""


def write_results(folder):
    """Write the sweep and its results below `folder`; the experiment and the folder of results."""
    (folder / "sweep.yaml").write_text(SWEEP)
    experiment = load(folder / "sweep.yaml", SHELF)
    at = Layout(folder / "results" / "small")
    write_timed_pieces(experiment, at.folder)
    write_what_follows(experiment, at)
    return experiment, at.folder


def write_what_follows(experiment, at):
    """Write all that comes after the pieces."""
    gather(experiment, at.folder)
    curves = open_results(at.folder)
    write_dataset(fit_rates(curves), at.rates)
    write_dataset(function_errors(curves), at.function_errors)
    for name in ("cost", "refinement"):
        values = np.random.default_rng(len(name)).random((2, 3))
        study = {"seconds": (("plan", "n"), values), "faster": ("n", values[0] > 0.5)}
        labels = {"plan": np.array(["sbq", name], dtype=object), "n": [10, 20, 40]}
        write_dataset(xr.Dataset(study, labels, {"digest": name}), at.study(name))
    save(mmd(curves), at.figures / "mmd")
    at.claims.write_text(claims.as_json([], [], []))
    write_report(at.folder, ["mmd"])
    write_manifest(at.folder)
