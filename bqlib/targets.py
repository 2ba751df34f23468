"""Targets: the distributions to summarise.

Every target has ``dim``. If possible it also has ``sample(n, rng)``, ``density(x)``,
``log_density(x)``, the gradient ``score(x)`` and the second derivatives ``hessian(x)`` of the log
density, and ``inflated(factor)``, the same target with every covariance multiplied. With equal
generators, the first m of n draws are the m draws of a shorter sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from bqlib.answers import checked_hessian, checked_log_density, checked_sample, checked_score
from bqlib.arrays import (
    Array,
    ArrayFunction,
    Seed,
    read_only,
    solve_lower,
    total,
    with_read_only_arrays,
)
from bqlib.checks import (
    checked_array,
    checked_box,
    checked_count,
    checked_covariance,
    checked_points,
    checked_probabilities,
    checked_rng,
    noted,
)


class Target(Protocol):
    """What every target has. A function that needs more checks for it."""

    @property
    def dim(self) -> int:
        """Dimension d of the points."""

    def sample(self, n: int, rng: Seed) -> Array:
        """Draw n independent points, shape (n, d); `rng` is a Generator or a seed."""


@dataclass(frozen=True, eq=False, init=False)
class GaussianMixture:
    """Mixture of Gaussians with full covariances; one component makes a Gaussian.

    Parameters
    ----------
    weights : array_like, shape (J,)
        Probabilities of the components: not negative, with sum one.
    means : array_like, shape (J, d)
        In the units of x.
    covariances : array_like, shape (J, d, d)
        Symmetric positive definite matrices, in squared units of x.

    Raises
    ------
    ValueError
        If the shapes do not fit together, weights are negative or do not sum to one, means are not
        finite, or a covariance is not symmetric positive definite. The message lists every problem.
        Methods raise it for points of another dimension, NaN or infinity.

    Notes
    -----
    A draw costs O(d^2); a density, a score or second derivatives O(J d^2) a point.

    Examples
    --------
    >>> from bqlib import GaussianMixture
    >>> normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> normal.density([[0.0]]).round(6)
    array([0.398942])
    """

    weights: Array
    means: Array
    covariances: Array
    _factors: Array = field(init=False, repr=False)  # Cholesky factors of the covariances
    _log_heights: Array = field(init=False, repr=False)  # log densities at the components' means

    def __init__(self, weights: ArrayLike, means: ArrayLike, covariances: ArrayLike):
        weights = checked_array(weights, "weights", keep_precision=True)
        means = checked_array(means, "means").copy()
        covariances = checked_array(covariances, "covariances", keep_precision=True)
        if weights.ndim != 1 or weights.size == 0:
            raise ValueError(
                f"weights have shape {weights.shape}; they must be a list with one number for each "
                "component"
            )
        if means.ndim != 2 or len(means) != len(weights):
            raise ValueError(
                f"means have shape {means.shape}; {len(weights)} weights need shape "
                f"({len(weights)}, d)"
            )
        expected = (*means.shape, means.shape[1])
        if covariances.shape != expected:
            raise ValueError(
                f"covariances have shape {covariances.shape}; they must have shape {expected}"
            )
        problems: list[str] = []
        probabilities = noted(problems, checked_probabilities, weights)
        noted(problems, partial(checked_points, name="means"), means)
        pairs = [
            noted(problems, partial(checked_covariance, name=f"covariance of component {j}"), own)
            for j, own in enumerate(covariances)
        ]
        if problems:
            raise ValueError("; ".join(problems))
        matrices, factors = (read_only(np.array(column)) for column in zip(*pairs, strict=True))
        object.__setattr__(self, "weights", read_only(probabilities))
        object.__setattr__(self, "means", read_only(means))
        object.__setattr__(self, "covariances", matrices)
        object.__setattr__(self, "_factors", factors)
        with np.errstate(divide="ignore"):  # minus infinity for a weight of zero
            log_heights = np.log(self.weights) - 0.5 * self.dim * np.log(2 * np.pi)
        log_heights -= np.log(np.diagonal(self._factors, axis1=1, axis2=2)).sum(axis=1)
        object.__setattr__(self, "_log_heights", read_only(log_heights))

    __setstate__ = with_read_only_arrays

    @property
    def dim(self) -> int:
        """Dimension d of the points."""
        return self.means.shape[1]

    def sample(self, n: int, rng: Seed) -> Array:
        """Draw n independent points, shape (n, d); `rng` is a Generator or a seed."""
        n, rng = checked_count(n, "n"), checked_rng(rng)
        component_rng, normal_rng = rng.spawn(2)
        probabilities = self.weights / self.weights.sum()
        component = component_rng.choice(len(self.weights), size=n, p=probabilities)
        normal = normal_rng.standard_normal((n, self.dim))
        return self.means[component] + np.einsum("nij,nj->ni", self._factors[component], normal)

    def inflated(self, factor: float) -> GaussianMixture:
        """The mixture with every covariance multiplied by `factor`."""
        return GaussianMixture(self.weights, self.means, factor * self.covariances)

    def log_density(self, x: ArrayLike) -> Array:
        """Log density at x (n, d), shape (n,). Costs O(n J d^2)."""
        log_terms = self._log_terms(x)
        top = log_terms.max(axis=0)
        return top + np.log(np.exp(log_terms - top).sum(axis=0))

    def density(self, x: ArrayLike) -> Array:
        """Density at x (n, d), shape (n,). Costs O(n J d^2)."""
        return np.exp(self._log_terms(x)).sum(axis=0)

    def score(self, x: ArrayLike) -> Array:
        """Gradient of the log density at x (n, d), shape (n, d). Costs O(n J d^2)."""
        x = checked_points(x, self.dim)
        return total(
            share[:, None] * self._component_score(j, x) for j, share in enumerate(self._shares(x))
        )

    def hessian(self, x: ArrayLike) -> Array:
        """Second derivatives of the log density at x (n, d), shape (n, d, d)."""
        x = checked_points(x, self.dim)
        score = self.score(x)
        hessian = np.zeros((*x.shape, self.dim))
        for j, share in enumerate(self._shares(x)):
            deviation = self._component_score(j, x) - score
            curvature = np.linalg.inv(self.covariances[j])
            hessian += share[:, None, None] * (
                deviation[:, :, None] * deviation[:, None, :] - curvature
            )
        return hessian

    def _shares(self, x: Array) -> Array:
        """Posterior probability of each component at each point, shape (J, n)."""
        log_terms = self._log_terms(x)
        terms = np.exp(log_terms - log_terms.max(axis=0))
        return terms / terms.sum(axis=0)

    def _component_score(self, j: int, x: Array) -> Array:
        half = solve_lower(self._factors[j], (self.means[j] - x).T)
        return solve_lower(self._factors[j], half, transposed=True).T

    def _log_terms(self, x: ArrayLike) -> Array:
        """Log of weight times density of each component at each point, shape (J, n)."""
        x = checked_points(x, self.dim)
        terms = np.empty((len(self.weights), len(x)))
        for j, factor in enumerate(self._factors):
            white = solve_lower(factor, (x - self.means[j]).T)
            terms[j] = self._log_heights[j] - 0.5 * np.square(white).sum(axis=0)
        return terms


@dataclass(frozen=True, eq=False, init=False)
class Uniform:
    """Uniform distribution on a box.

    Parameters
    ----------
    lower, upper : array_like, shape (d,)
        Ends of the box, lower < upper in each coordinate, in the units of x.

    Raises
    ------
    ValueError
        If an end is not finite, or a lower end is not below its upper end. Methods raise it for
        points of another dimension, NaN or infinity.

    Notes
    -----
    A draw and a density cost O(d) a point.

    Examples
    --------
    >>> from bqlib import Uniform
    >>> Uniform([0.0, 0.0], [2.0, 1.0]).density([[1.0, 0.5], [1.0, 3.0]])
    array([0.5, 0. ])
    """

    lower: Array
    upper: Array

    def __init__(self, lower: ArrayLike, upper: ArrayLike):
        lower, upper = checked_box(lower, upper)
        object.__setattr__(self, "lower", read_only(lower))
        object.__setattr__(self, "upper", read_only(upper))

    __setstate__ = with_read_only_arrays

    @property
    def dim(self) -> int:
        """Dimension d of the points."""
        return len(self.lower)

    @property
    def blocks(self) -> tuple[Uniform, ...]:
        """The coordinates as independent targets of dimension one."""
        ends = zip(self.lower, self.upper, strict=True)
        return tuple(Uniform([lower], [upper]) for lower, upper in ends)

    def sample(self, n: int, rng: Seed) -> Array:
        """Draw n independent points, shape (n, d); `rng` is a Generator or a seed."""
        n, rng = checked_count(n, "n"), checked_rng(rng)
        return self.lower + (self.upper - self.lower) * rng.random((n, self.dim))

    def density(self, x: ArrayLike) -> Array:
        """Density at x (n, d), shape (n,)."""
        return np.exp(self.log_density(x))

    def log_density(self, x: ArrayLike) -> Array:
        """Log density at x (n, d), shape (n,); minus infinity outside the box."""
        x = checked_points(x, self.dim)
        inside = ((x >= self.lower) & (x <= self.upper)).all(axis=1)
        return np.where(inside, -np.log(self.upper - self.lower).sum(), -np.inf)


@dataclass(frozen=True, eq=False, init=False)
class Product:
    """Independent coordinates, or blocks of coordinates, each with its own target.

    Parameters
    ----------
    blocks : sequence of Target
        The coordinates of the first block come first.

    Raises
    ------
    ValueError
        If there is no block. Methods raise it for points of another dimension, NaN or infinity.
    TypeError
        If a block is not a target.

    Notes
    -----
    A draw, a density or a score costs as much as those of all blocks together: for boxes O(d), for
    mixtures of J Gaussians O(J d^2) a point.

    Examples
    --------
    >>> from bqlib import GaussianMixture, Product, Uniform
    >>> normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> Product([normal, Uniform([0.0], [1.0])]).dim
    2
    """

    blocks: tuple[Target, ...]

    def __init__(self, blocks: Iterable[Target]):
        blocks = tuple(blocks)
        if not blocks:
            raise ValueError("blocks is empty; a Product needs at least one block")
        strangers = [type(block).__name__ for block in blocks if not hasattr(block, "dim")]
        if strangers:
            raise TypeError(f"blocks must be targets; these are not: {', '.join(strangers)}")
        object.__setattr__(self, "blocks", blocks)

    @property
    def dim(self) -> int:
        """Dimension d of the points."""
        return sum(block.dim for block in self.blocks)

    def sample(self, n: int, rng: Seed) -> Array:
        """Draw n independent points, shape (n, d); `rng` is a Generator or a seed."""
        n, rng = checked_count(n, "n"), checked_rng(rng)
        rngs = rng.spawn(len(self.blocks))
        pairs = zip(self.blocks, rngs, strict=True)
        draws = [checked_sample(block, n, child) for block, child in pairs]
        return np.concatenate(draws, axis=1)

    def density(self, x: ArrayLike) -> Array:
        """Density at x (n, d), shape (n,)."""
        return np.exp(self.log_density(x))

    def log_density(self, x: ArrayLike) -> Array:
        """Log density at x (n, d), shape (n,)."""
        return total(checked_log_density(block, part) for block, part in self._split(x))

    @property
    def score(self) -> ArrayFunction | None:
        """Gradient of the log density: (n, d) to (n, d). None if a block has none."""
        return self._score if self._each_has("score") else None

    @property
    def hessian(self) -> ArrayFunction | None:
        """Its second derivatives: (n, d) to (n, d, d). None if a block has none."""
        return self._hessian if self._each_has("hessian") else None

    @property
    def inflated(self) -> Callable[[float], Product] | None:
        """Function of a factor on every covariance. None if a block has none."""
        return self._inflated if self._each_has("inflated") else None

    def _each_has(self, name: str) -> bool:
        return all(getattr(block, name, None) is not None for block in self.blocks)

    def _score(self, x: ArrayLike) -> Array:
        return np.concatenate([checked_score(*part) for part in self._split(x)], axis=1)

    def _hessian(self, x: ArrayLike) -> Array:
        parts = self._split(x)
        hessian = np.zeros((len(parts[0][1]), self.dim, self.dim))
        start = 0
        for block, part in parts:
            own = slice(start, start + block.dim)
            hessian[:, own, own] = checked_hessian(block, part)
            start += block.dim
        return hessian

    def _inflated(self, factor: float) -> Product:
        blocks: Iterable[Any] = self.blocks  # each has it, as `inflated` is asked for first
        return Product([block.inflated(factor) for block in blocks])

    def _split(self, x: ArrayLike) -> list[tuple[Any, Array]]:
        """Each block with its coordinates of x."""
        ends = np.cumsum([block.dim for block in self.blocks])
        parts = np.split(checked_points(x, self.dim), ends[:-1], axis=1)
        return list(zip(self.blocks, parts, strict=True))


@dataclass(frozen=True, eq=False, init=False)
class Empirical:
    """A data set as a target: its points, with equal or given weights.

    Parameters
    ----------
    points : array_like, shape (M, d)
    weights : array_like, shape (M,), optional
        Not negative, with sum one (default: equal).

    Raises
    ------
    ValueError
        If the shapes do not fit together, points are not finite, or weights are negative or do not
        sum to one. The message lists every problem.

    Notes
    -----
    n draws cost O(M + n d + n log M). An embedding costs O(M d) a point, and O(M^2 d) once.

    Under a kernel, the MMD between the data and the distribution P that they were drawn from is
    about sqrt((E k(X, X) - V0) / M). No design for this target comes closer to P than that.

    Examples
    --------
    >>> from bqlib import Empirical
    >>> Empirical([[0.0], [1.0], [5.0]]).weights.round(3)
    array([0.333, 0.333, 0.333])
    """

    points: Array
    weights: Array
    _known = None  # see bqlib.embeddings.empirical.with_data_means

    def __init__(self, points: ArrayLike, weights: ArrayLike | None = None):
        points = checked_array(points, "points").copy()
        if points.ndim != 2 or points.size == 0:
            raise ValueError(
                f"points have shape {points.shape}; they must have shape (M, d), with M at least 1"
            )
        size = len(points)
        equal = np.full(size, 1 / size)
        given = checked_array(equal if weights is None else weights, "weights", keep_precision=True)
        if given.shape != (size,):
            raise ValueError(
                f"weights have shape {given.shape}; {size} points need shape ({size},)"
            )
        problems: list[str] = []
        probabilities = noted(problems, checked_probabilities, given)
        noted(problems, checked_points, points)
        if problems:
            raise ValueError("; ".join(problems))
        object.__setattr__(self, "points", read_only(points))
        object.__setattr__(self, "weights", read_only(probabilities))

    __setstate__ = with_read_only_arrays

    @property
    def dim(self) -> int:
        """Dimension d of the points."""
        return self.points.shape[1]

    def sample(self, n: int, rng: Seed) -> Array:
        """Draw n of the points, with replacement; `rng` is a Generator or a seed."""
        n, rng = checked_count(n, "n"), checked_rng(rng)
        probabilities = self.weights / self.weights.sum()
        return self.points[rng.choice(len(self.points), size=n, p=probabilities)]


@dataclass(frozen=True, eq=False)
class Unnormalised:
    """A density known up to a constant, given by its logarithm, its score or both.

    It cannot be sampled, so you must pass the candidates of a design. It has an embedding only
    under a Stein kernel, which needs the score.

    Parameters
    ----------
    dim : int
        Dimension d of the points.
    log_density : callable, optional
        Log density up to a constant: (n, d) to (n,).
    score : callable, optional
        Gradient of the log density: (n, d) to (n, d).
    hessian : callable, optional
        Second derivatives of the log density: (n, d) to (n, d, d). Only gradients of a Stein
        kernel need it.

    Raises
    ------
    ValueError
        If `dim` is below 1, or neither log density nor score is given.
    TypeError
        If `dim` is not a whole number, or an argument is not a function; also when it is sampled.

    Notes
    -----
    A pool of M candidates costs M scores, which is O(M d) if a score takes O(d).

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import Unnormalised
    >>> quartic = Unnormalised(1, score=lambda x: -x**3)  # its density is exp(-x^4 / 4) / constant
    >>> quartic.score(np.array([[2.0]]))
    array([[-8.]])
    """

    dim: int
    log_density: ArrayFunction | None = None
    score: ArrayFunction | None = None
    hessian: ArrayFunction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", checked_count(self.dim, "dim", 1))
        if self.log_density is None and self.score is None:
            raise ValueError("an Unnormalised target needs log_density=, score= or both")
        for name in ("log_density", "score", "hessian"):
            value = getattr(self, name)
            if not (value is None or callable(value)):
                raise TypeError(
                    f"{name} is of type {type(value).__name__}; it must be a function of points "
                    "(n, d)"
                )

    def sample(self, n: int, rng: Seed) -> Array:
        """Raise a TypeError, whatever n and `rng`: the density is known only up to a constant."""
        raise TypeError(
            "an Unnormalised target cannot be sampled: pass the candidates as an array of points, "
            'or draw them from a box with Candidates(source="box", box=...)'
        )
