"""Squared errors of a sweep at the settings of the published ones."""

from dataclasses import dataclass

import numpy as np

from bqlib.analysis.cells import cells
from bqlib.analysis.papers import hayakawa2022_setting
from bqlib.claims.evidence import MissingError
from bqlib.designs.grid import grid
from bqlib.discrepancy import mmd2
from bqlib.embeddings import embed
from bqlib.kernels import Korobov
from bqlib.published import hayakawa2022
from bqlib.schema import OK
from bqlib.targets import Uniform

FEWEST_SEEDS = 20  # for a mean beside one of 50 trials
RANDOM = (
    *("recombination_10n", "recombination_10n_nonnegative", "recombination_n2_nonnegative"),
    *("iid_bq", "halton", "halton_bq"),
)


@dataclass(frozen=True, eq=False)
class Setting:
    """A setting of which errors are published, in a sweep.

    Attributes
    ----------
    dim, order : int
        Dimension of the cube and order of the kernel.
    cell : dict
        Labels of its target, kernel and length-scale.
    published : dict
        As :func:`bqlib.published.hayakawa2022` gives it.
    """

    dim: int
    order: int
    cell: dict
    published: dict

    @property
    def name(self):
        return f"d = {self.dim}, s = {self.order}"


def settings_of(evidence):
    """The settings of a sweep of which errors are published; a MissingError if there are none."""
    found = []
    for cell in cells(evidence.curves):
        setting = hayakawa2022_setting(evidence.curves, cell)
        if setting is not None:
            found.append(Setting(*setting, cell, hayakawa2022(*setting)))
    if not found:
        raise MissingError("needs a Korobov kernel on a unit cube, as in config/hayakawa.yaml")
    return found


def values(evidence, setting, variable, algorithm, n):
    """A variable at these n, for the seeds that ran, shape (S, len(n))."""
    curves = evidence.curves
    if algorithm not in curves["algorithm"].values:
        raise MissingError(f"needs the algorithm {algorithm}")
    selected = setting.cell | {"algorithm": algorithm}
    ran = (curves["status"].sel(selected) == OK).values
    if not ran.any():
        raise MissingError(f"needs a seed of {algorithm} that ran")
    return curves[variable].sel(selected | {"n": list(n)}).transpose("seed", "n").values[ran]


def squares(evidence, setting, algorithm, n):
    """Squared errors at these n, shape (S, len(n))."""
    return np.square(values(evidence, setting, "mmd", algorithm, n))


def squares_of_grid(order, n):
    """Squared errors of equal weights on the grid of n points of the line, for each n.

    They are computed here: nothing about a grid is random.
    """
    embedding = embed(Korobov(order), Uniform([0.0], [1.0]))
    made = [grid(embedding.target, embedding.kernel, int(size), rng=0) for size in n]
    return np.array([mmd2(embedding, one.points, one.weights) for one in made])


def sizes_of(evidence, setting):
    """The published n that a sweep has."""
    n = next(iter(setting.published.values()))[0]
    return n[n <= evidence.n]


def need_seeds(evidence):
    """Raise a MissingError unless there are enough seeds for a mean."""
    if evidence.curves.sizes["seed"] < FEWEST_SEEDS:
        raise MissingError(f"needs {FEWEST_SEEDS} seeds")


def means(evidence, settings, algorithms):
    """Mean squared errors at all sizes that each setting has of all algorithms: (A, cells).

    Settings without one of the algorithms are left out; NaN where a seed has no value.
    """
    found = []
    for setting in settings:
        n = sizes_of(evidence, setting)
        try:
            rows = [squares(evidence, setting, name, n).mean(axis=0) for name in algorithms]
        except MissingError:
            continue
        found.append(np.array(rows))
    if not found:
        raise MissingError(f"needs the algorithms {', '.join(algorithms)} in a setting")
    return np.concatenate(found, axis=1)
