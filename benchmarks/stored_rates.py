"""Seconds of fitting the rates of finished results, and of taking them from their store.

    python benchmarks/stored_rates.py [results/matching]

Without a folder it computes a small sweep of forty cells. The results given are copied and not
changed; their rates are fitted and stored in the copy. Exits with 1 if what is taken from the store
is not, byte for byte, what is fitted.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import xarray as xr

import bqlib
from bqlib.analysis.fits import fit_rates
from bqlib.results.layout import Layout
from bqlib.results.store import gather, write_dataset
from bqlib.sweep.file import load

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from project import SHELF
from written_results import write_pieces

SWEEP = """
name: forty
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic}, rational: {family: rational_quadratic, alpha: 1}}
lengthscales: [0.25, 0.5, 1, 2, 4]
algorithms: [iid, sobol, herding, herding_bq]
candidates: {size: 200}
n: 200
seeds: 10
rate_windows: [[10, 200], [20, 100]]
"""


def compute(folder):
    """Compute the sweep of forty cells in a folder."""
    (folder / "sweep.yaml").write_text(SWEEP)
    experiment = load(folder / "sweep.yaml", SHELF)
    write_pieces(experiment, Layout(folder).pieces)
    gather(experiment, folder)


def seconds(function):
    start = time.perf_counter()
    found = function()
    return time.perf_counter() - start, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", nargs="?", type=Path)
    given = parser.parse_args().results
    with tempfile.TemporaryDirectory() as temporary:
        at = Layout(Path(temporary, "results"))
        at.folder.mkdir()
        if given is None:
            compute(at.folder)
        else:
            shutil.copytree(Layout(given).curves, at.curves)
        fitting, fitted = seconds(lambda: fit_rates(bqlib.open_results(at.folder)))
        write_dataset(fitted, at.rates)
        taking, taken = seconds(lambda: bqlib.open_results(at.folder).bq.rates())
        drawing, _ = seconds(lambda: bqlib.open_results(at.folder).bq.plot.heatmap("rate"))
    cells = int(np.prod(fitted["verdict"].shape[:-1]))
    print(f"{cells} cells, {fitted.sizes['window']} windows")
    print(
        f"fitted: {fitting:.2f} s; from the store: {taking:.2f} s; with a heat map: {drawing:.2f} s"
    )
    xr.testing.assert_identical(taken, fitted)
    return any(
        values.dtype != object and taken[name].values.tobytes() != values.values.tobytes()
        for name, values in fitted.variables.items()
    )


if __name__ == "__main__":
    raise SystemExit(main())
