"""Inputs as people have them: independent marginals, by name and in the units of the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from bqlib.arrays import Array, Seed, total
from bqlib.checks import CHANGE_UNITS, LONGEST, SHORTEST, checked_array, checked_points, noted
from bqlib.targets import GaussianMixture, Product, Target, Uniform

METHODS = ("ppf", "isf", "cdf", "sf", "pdf", "logpdf", "support")  # what a marginal must have
# The largest normal score: beyond, float64 has no probabilities with all their digits.
REACH = 37.5
LOG_ROOT = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Marginals:
    r"""Independent inputs, each with a distribution of scipy.stats, in the units of the user.

    Kernels act in standard coordinates, so that length-scales have no units. A uniform input is
    mapped to [0, 1], a normal one to (x - mean) / sd, and every other one to its normal score
    z = Phi^{-1}(F(x)), which is standard normal. So a length-scale is a share of the width of a
    uniform input, and a number of standard deviations of another. Points, designs and integrals
    stay in the units of the user.

    Parameters
    ----------
    marginals : mapping of str to distribution, or sequence of distribution
        Frozen continuous distributions of scipy.stats, such as ``norm(0.1, 0.02)``, by name. In a
        sequence they get the names x0, x1 and so on. Other objects are taken if they have the
        methods ``ppf``, ``isf``, ``cdf``, ``sf``, ``pdf``, ``logpdf`` and ``support``.

    Attributes
    ----------
    names : tuple of str
        Names of the inputs, in the order of the coordinates.
    standard : Target
        The inputs in standard coordinates: a Uniform on [0, 1]^d if all are uniform, otherwise a
        Product of Uniform and standard normal targets, one for each input.

    Raises
    ------
    TypeError
        If a marginal is no frozen continuous distribution. The message lists every problem.
    ValueError
        If there are no marginals, a name is empty or no text, or the parameters of a marginal are
        arrays, not allowed, or out of range: places up to 1e50, scales from 1e-50 to 1e50. Methods
        raise it for points of another dimension, NaN or infinity, and for tables with other columns
        than the inputs; :meth:`to_standard` also for points outside the support of a marginal.

    Notes
    -----
    n draws, densities or maps cost O(n d) evaluations of marginals, which take about 0.2 ms for
    1000 numbers, and ten times as much for distributions without a closed form.

    Float64 has normal scores up to about 37.5. A point beyond, such as the end of a bounded
    marginal that is not uniform, has the score 37.5 or -37.5.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from bqlib import Marginals, Matern, sbq
    >>> inputs = Marginals({"radius": stats.norm(0.1, 0.02), "flow": stats.uniform(100, 50)})
    >>> inputs.to_standard([[0.12, 125.0]]).round(12)
    array([[1. , 0.5]])
    >>> design = sbq(inputs, Matern([2.0, 1.0]), n=20, rng=0)
    >>> result = design.integrate(lambda x: x[0] * x[1])
    >>> bool(np.isclose(result.mean, 0.1 * 125, rtol=0.02))
    True
    """

    marginals: tuple[Any, ...]
    names: tuple[str, ...]
    standard: Target = field(init=False)
    _coordinates: tuple[_Coordinate, ...] = field(init=False)

    def __init__(self, marginals: Mapping[str, Any] | Iterable[Any]):
        names, own = _named(marginals)
        problems = _problems_of(names)
        strangers, found = [], []
        for name, marginal in zip(names, own, strict=True):
            if wrong := _wrong(marginal):
                strangers.append(f"{name} {wrong}")
            else:
                found.append(noted(problems, partial(_coordinate, name), marginal))
        if strangers or problems:
            raise (TypeError if strangers else ValueError)("; ".join([*problems, *strangers]))
        uniform = [coordinate.kind == "uniform" for coordinate in found]
        # One block for each input, so that a kernel can use any of them.
        normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
        unit = Uniform([0.0], [1.0])
        standard = (
            Uniform(np.zeros(len(own)), np.ones(len(own)))
            if all(uniform)
            else Product([unit if one else normal for one in uniform])
        )
        object.__setattr__(self, "marginals", own)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "standard", standard)
        object.__setattr__(self, "_coordinates", tuple(found))

    def __repr__(self) -> str:
        shown = [f"{name}: {_shown(m)}" for name, m in zip(self.names, self.marginals, strict=True)]
        return f"Marginals({', '.join(shown)})"

    @property
    def dim(self) -> int:
        """Dimension d of the points: the number of inputs."""
        return len(self.marginals)

    def support(self) -> tuple[Array, Array]:
        """Lower and upper ends of the marginals, each (d,); infinite where there is none."""
        ends = np.array([(own.lower, own.upper) for own in self._coordinates])
        return ends[:, 0], ends[:, 1]

    def sample(self, n: int, rng: Seed) -> Array:
        """Draw n independent points, shape (n, d); `rng` is a Generator or a seed."""
        return self.from_standard(self.standard.sample(n, rng))

    def density(self, x: ArrayLike) -> Array:
        """Density at x (n, d), shape (n,), in the units of the user."""
        columns = self.points_of(x).T
        return np.prod([m.pdf(c) for m, c in zip(self.marginals, columns, strict=True)], axis=0)

    def log_density(self, x: ArrayLike) -> Array:
        """Log density at x (n, d), shape (n,); minus infinity outside the support."""
        columns = self.points_of(x).T
        return total(m.logpdf(c) for m, c in zip(self.marginals, columns, strict=True))

    def to_standard(self, x: ArrayLike) -> Array:
        """Standard coordinates of points x (n, d), shape (n, d).

        A ValueError names the points outside the support of a marginal. But a uniform input takes
        them, as Uniform does, and so does a normal one.
        """
        x = self.points_of(x)
        self._refuse_outside(x)
        pairs = zip(self._coordinates, x.T, strict=True)
        return np.column_stack([own.to_standard(column) for own, column in pairs])

    def from_standard(self, s: ArrayLike) -> Array:
        """Points (n, d), in the units of the user, with the standard coordinates s (n, d)."""
        s = checked_points(s, self.dim, "standard coordinates")
        pairs = zip(self._coordinates, s.T, strict=True)
        return np.column_stack([own.from_standard(column) for own, column in pairs])

    def slopes(self, x: ArrayLike) -> Array:
        """Derivative of each standard coordinate by its input at x (n, d), shape (n, d).

        Zero where the score is 37.5 or -37.5, as beyond it does not change.
        """
        x = self.points_of(x)
        self._refuse_outside(x)
        pairs = zip(self._coordinates, x.T, strict=True)
        return np.column_stack([own.slope(column) for own, column in pairs])

    def points_of(self, x: ArrayLike) -> Array:
        """Points x as an array (n, d): the columns of a table by name, an array as it is.

        A table is a DataFrame, of pandas or another library. Its columns may have any order, but
        must be exactly the inputs: otherwise a ValueError names both.
        """
        return points_for(self, x)

    def table(self, x: ArrayLike) -> Any:
        """Points x (n, d) as a DataFrame of pandas whose columns are the inputs."""
        try:
            import pandas as pd  # type: ignore[import-untyped]  # 0.3 s, and of an extra
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"Marginals.table needs {error.name}, which is not installed: "
                "pip install 'bqlib[workflow]'",
                name=error.name,
            ) from error
        return pd.DataFrame(self.points_of(x), columns=list(self.names))

    def _refuse_outside(self, x: Array) -> None:
        """Raise a ValueError that names inputs with points where they have no score."""
        wrong = []
        for name, own, column in zip(self.names, self._coordinates, x.T, strict=True):
            outside = (column < own.lower) | (column > own.upper)
            if own.kind == "score" and outside.any():
                row = int(np.argmax(outside))
                wrong.append(
                    f"{name} is {column[row]:.9g} in row {row}, which must lie between "
                    f"{own.lower:.9g} and {own.upper:.9g} ({outside.sum()} of {len(x)} rows)"
                )
        if wrong:
            raise ValueError(
                f"points lie outside the support of their marginal: {'; '.join(wrong)}. Leave "
                "these points out, or give the input a marginal that reaches them"
            )


@dataclass(frozen=True)
class _Coordinate:
    """The map of one input to its standard coordinate."""

    marginal: Any
    kind: str  # "uniform", "normal" or "score"
    lower: float
    upper: float
    shift: float  # of the linear map of a uniform or normal input; the median of another
    scale: float

    def to_standard(self, x: Array) -> Array:
        if self.kind != "score":
            return (x - self.shift) / self.scale
        # Each half by its own tail, so that both keep their digits.
        above, z = x > self.shift, np.empty(len(x))
        z[~above] = ndtri(self.marginal.cdf(x[~above]))
        z[above] = -ndtri(self.marginal.sf(x[above]))
        return np.clip(z, -REACH, REACH)

    def from_standard(self, z: Array) -> Array:
        if self.kind != "score":
            x = self.shift + self.scale * z
            inside = (z >= 0) & (z <= 1) & (self.kind == "uniform")
        else:
            above, x = z > 0, np.empty(len(z))
            x[~above] = self.marginal.ppf(ndtr(np.maximum(z[~above], -REACH)))
            x[above] = self.marginal.isf(ndtr(np.maximum(-z[above], -REACH)))
            inside = np.full(len(z), True)
        # Rounding must not lead out of the support.
        x[inside] = np.clip(x[inside], self.lower, self.upper)
        return x

    def slope(self, x: Array) -> Array:
        if self.kind != "score":
            return np.full(len(x), 1 / self.scale)
        z = self.to_standard(x)
        within, slope = np.abs(z) < REACH, np.zeros(len(x))
        log_density = self.marginal.logpdf(x[within])
        slope[within] = np.exp(log_density + np.square(z[within]) / 2 + LOG_ROOT)
        return slope


def points_for(target: Target, points: ArrayLike, name: str = "points") -> Array:
    """Points for a target as a float array (n, d); a table for Marginals by the names of inputs."""
    columns = getattr(points, "columns", None)
    if not isinstance(target, Marginals) or columns is None or not hasattr(points, "to_numpy"):
        return checked_points(points, target.dim, name)
    columns = list(columns)
    if Counter(columns) != Counter(target.names):
        raise ValueError(
            f"{name} are a table with the columns {columns}; it must have exactly the columns "
            f"{list(target.names)}, in any order: select them, such as table[list(inputs.names)]"
        )
    order = [columns.index(own) for own in target.names]
    return checked_points(checked_array(points, name)[:, order], target.dim, name)


def _named(marginals: Mapping[str, Any] | Iterable[Any]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Names of the marginals, and the marginals."""
    if isinstance(marginals, Mapping):
        return tuple(marginals.keys()), tuple(marginals.values())
    try:
        own = tuple(marginals)
    except TypeError:
        raise TypeError(
            f"marginals is of type {type(marginals).__name__}; it must be a dict of names and "
            "distributions, or a list of distributions"
        ) from None
    return tuple(f"x{c}" for c in range(len(own))), own


def _problems_of(names: tuple[Any, ...]) -> list[str]:
    """What is wrong with the names of the inputs."""
    problems = [] if names else ["there are no marginals; give at least one"]
    problems += [
        f"{name!r} is of type {type(name).__name__}; the name of an input must be a text"
        for name in names
        if not isinstance(name, str)
    ]
    if "" in names:
        problems.append("a name is empty; the name of an input must have at least one character")
    return problems


def _wrong(marginal: Any) -> str:
    """Empty, or why an object is no frozen continuous distribution."""
    kind, instead = type(marginal).__name__, "write, for example, scipy.stats.norm(0.1, 0.02)"
    if isinstance(marginal, Number):
        return f"is {marginal!r}, a number: leave it out, and let f use it as a constant"
    if hasattr(marginal, "icdf"):
        return (
            f"is of scipy's class {kind}, which has no ppf: write a function of scipy.stats in "
            "small letters, such as norm(mu, sigma) in place of Normal(mu=mu, sigma=sigma)"
        )
    if hasattr(marginal, "freeze"):
        return f"is {marginal.name}, not frozen: call it, such as norm() or norm(0.1, 0.02)"
    if hasattr(marginal, "pmf"):
        return f"is discrete ({_shown(marginal)}): give a continuous distribution"
    missing = [method for method in METHODS if not hasattr(marginal, method)]
    if missing:
        return (
            f"is of type {kind}, which has no {', '.join(missing)}: give a frozen continuous "
            f"distribution of one input; {instead}"
        )
    return ""


def _coordinate(name: str, marginal: Any) -> _Coordinate:
    """The map of a marginal; a ValueError for parameters that it cannot have."""
    with np.errstate(all="ignore"):  # what is NaN or infinite is refused
        median = np.asarray(marginal.ppf(0.5), dtype=float)
    if median.shape != ():
        raise ValueError(
            f"{name} has parameters of shape {median.shape}; they must be numbers: give one "
            "distribution for each input"
        )
    if not np.isfinite(median):
        raise ValueError(
            f"{name} has the median {median}, by ppf(0.5); it must be finite: check the parameters "
            f"of {_shown(marginal)}, whose scale must be positive"
        )
    lower, upper = (float(end) for end in marginal.support())
    maker = type(getattr(marginal, "dist", None))
    kind, shift, scale = "score", float(median), 1.0
    if maker.__module__.startswith("scipy.stats"):
        if maker.__name__ == "uniform_gen":
            kind, shift, scale = "uniform", lower, upper - lower
        elif maker.__name__ == "norm_gen":
            kind, scale = "normal", float(marginal.std())
    if abs(shift) > LONGEST or not SHORTEST <= scale <= LONGEST:
        raise ValueError(
            f"{name} is {_shown(marginal)}; its place must lie between -1e50 and 1e50, and its "
            f"scale between 1e-50 and 1e50: {CHANGE_UNITS}"
        )
    return _Coordinate(marginal, kind, lower, upper, shift, scale)


def _shown(marginal: Any) -> str:
    """A frozen distribution as it is written, such as norm(0.1, 0.02)."""
    maker = getattr(getattr(marginal, "dist", None), "name", None)
    if maker is None:
        return type(marginal).__name__
    numbers = [*((None, value) for value in marginal.args), *marginal.kwds.items()]
    shown = (f"{key}=" * (key is not None) + _number(value) for key, value in numbers)
    return f"{maker}({', '.join(shown)})"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, Number) else str(value)
