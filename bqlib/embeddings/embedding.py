"""What an embedding is, and how the one of a pair is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from bqlib.answers import checked_answer
from bqlib.arrays import Array, ArrayFunction
from bqlib.checks import checked_number
from bqlib.kernels import Kernel
from bqlib.marginals import Marginals, points_for
from bqlib.targets import Product, Target, Uniform

MeanAndGradient = Callable[[Any], tuple[Array, Array]]


@dataclass(frozen=True, eq=False, init=False)
class Embedding:
    """What quadrature needs to know about a target and a kernel; :func:`embed` makes one.

    Make one yourself for a pair of your own, in a function that you register.

    Attributes
    ----------
    kernel : Kernel
    target : Target
        The pair that this belongs to. Every MMD computed from it refers to this target.
    kernel_mean : callable
        z(x) = E k(x, X) for X from the target: (n, d) to (n,).
    kernel_mean_gradient : callable
        Gradient of z: (n, d) to (n, d).
    prior_variance : float
        V0 = E k(X, X'), the variance of the integral before any evaluation. In place of the number
        you can pass a function without arguments, which is called when V0 is first asked for.
    kernel_mean_with_gradient : callable
        Both: (n, d) to a pair of (n,) and (n, d). By default it calls one after the other; pairs
        whose two have much work in common have their own.

    Raises
    ------
    TypeError
        If the prior variance is not a number.
    ValueError
        If the prior variance is NaN or infinite, when it is computed. The functions raise it for
        points of another shape, and if what they return is not finite or not of the right shape.

    Notes
    -----
    The kernel mean at n points costs O(n J d^2) for a mixture of J Gaussians, O(n d) for a box and
    O(n M d) for a data set of M points, see :func:`embed`.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> embedding.kernel_mean([[0.5], [1.0]])  # x - x^2 / 2
    array([0.375, 0.5  ])
    >>> round(embedding.prior_variance, 6)
    0.333333
    """

    kernel: Kernel
    target: Target
    kernel_mean: Callable[[ArrayLike], Array]
    kernel_mean_gradient: Callable[[ArrayLike], Array]
    kernel_mean_with_gradient: MeanAndGradient
    _variance: float | Callable[[], float] = field(repr=False)
    _by_embed = False

    def __init__(
        self,
        kernel: Kernel,
        target: Target,
        kernel_mean: ArrayFunction,
        kernel_mean_gradient: ArrayFunction,
        prior_variance: Any,
        kernel_mean_with_gradient: MeanAndGradient | None = None,
    ):
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "target", target)
        of_pair = f"the kernel mean of {type(kernel).__name__} under {type(target).__name__}"
        object.__setattr__(self, "kernel_mean", _on_points(kernel_mean, target, of_pair))
        gradient = _on_points(kernel_mean_gradient, target, f"the gradient of {of_pair}", True)
        object.__setattr__(self, "kernel_mean_gradient", gradient)
        both = kernel_mean_with_gradient or (lambda x: (kernel_mean(x), kernel_mean_gradient(x)))

        def on_points(x: ArrayLike) -> tuple[Array, Array]:
            x = points_for(target, x)
            mean, slopes = both(x) if len(x) else (np.zeros(0), np.zeros(x.shape))
            return (
                checked_answer(mean, (len(x),), x, of_pair),
                checked_answer(slopes, x.shape, x, f"the gradient of {of_pair}"),
            )

        object.__setattr__(self, "kernel_mean_with_gradient", on_points)
        object.__setattr__(self, "_variance", prior_variance)
        if not callable(prior_variance):
            _ = self.prior_variance  # which checks it

    @cached_property
    def prior_variance(self) -> float:
        """V0 = E k(X, X'), the variance of the integral before any evaluation."""
        found = self._variance() if callable(self._variance) else self._variance
        variance = checked_number(found, "prior_variance")
        if not np.isfinite(variance):
            raise ValueError(
                f"the prior variance of {type(self.kernel).__name__} under "
                f"{type(self.target).__name__} is {variance}; it must be finite: change the unit "
                "of length, or check the kernel and the target for infinite numbers"
            )
        return variance

    def __reduce__(self) -> str | tuple[Any, ...]:
        # Functions that close over the pair do not pickle, but the pair that gave them does.
        return (embed, (self.kernel, self.target)) if self._by_embed else super().__reduce__()


def _on_points(
    function: ArrayFunction, target: Target, who: str, gradient: bool = False
) -> Callable[[ArrayLike], Array]:
    """`function` behind checks: of the points (n, d), and of what it returns for them.

    It is not called without points.
    """

    def on_points(x: ArrayLike) -> Array:
        x = points_for(target, x)
        shape = x.shape if gradient else (len(x),)
        return checked_answer(function(x), shape, x, who) if len(x) else np.zeros(shape)

    return on_points


Embed = Callable[[Any, Any], Embedding]  # of a kernel and a target of the types it serves
F = TypeVar("F", bound=Embed)
Part = tuple[Sequence[int], Embedding]  # of a factor: the coordinates it takes, and its embedding
_pairs: dict[tuple[type, type], Embed] = {}


def register(kernel_type: type, target_type: type) -> Callable[[F], F]:
    """Decorator: register a function(kernel, target) -> Embedding for this pair of types.

    It is used for subclasses too. ``object`` as one of the types means any type.
    """

    def keep(function: F) -> F:
        _pairs[kernel_type, target_type] = function
        return function

    return keep


def find(kernel_type: type, target_type: type) -> Embed:
    """The function registered for a pair of types, or a TypeError that lists pairs that work."""
    for kernel_base in kernel_type.__mro__:
        for target_base in target_type.__mro__:
            if (kernel_base, target_base) in _pairs:
                return _pairs[kernel_base, target_base]
    with_kernel = sorted({t.__name__ for k, t in _pairs if issubclass(kernel_type, k)})
    with_target = sorted({k.__name__ for k, t in _pairs if issubclass(target_type, t)})
    raise TypeError(
        f"no closed-form embedding for {kernel_type.__name__} with {target_type.__name__}; "
        f"{kernel_type.__name__} has one with: {', '.join(with_kernel) or 'no target'}; "
        f"{target_type.__name__} has one with: {', '.join(with_target) or 'no kernel'}"
    )


def pairs() -> dict[tuple[type, type], Embed]:
    """The functions registered so far, by their (kernel type, target type)."""
    return dict(_pairs)


def embed(kernel: Kernel, target: Target) -> Embedding:
    """Embedding of `target` under `kernel`, in closed form.

    Parameters
    ----------
    kernel : Kernel
        One of :mod:`bqlib.kernels`, or sums and products of them.
    target : Target
        One of :mod:`bqlib.targets`, or any object with `dim` whose pair is registered.

    Returns
    -------
    Embedding

    Raises
    ------
    TypeError
        If `kernel` is not a kernel or `target` is not a target, or if bqlib has no closed form for
        the pair; the message then lists pairs that have one.
    ValueError
        If kernel and target differ in dimension, or their parameters leave no closed form.

    Notes
    -----
    The prior variance costs O(J^2 d^3) for a mixture of J Gaussians, O(d) for a box, and O(M^2 d)
    for a data set of M points, when it is first asked for. The kernel mean at n points costs
    O(n J d^2), O(n d) and O(n M d). The function of each pair, in the module of its kernel,
    documents its formulas and their costs.

    References
    ----------
    Briol, Gessner, Karvonen and Mahsereci, "A dictionary of closed-form kernel mean embeddings",
    2025.

    Examples
    --------
    >>> from bqlib import ExponentiatedQuadratic, GaussianMixture, embed
    >>> normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> embedding = embed(ExponentiatedQuadratic(1.0), normal)
    >>> round(embedding.prior_variance, 6)
    0.57735
    """
    if isinstance(target, Kernel):
        raise TypeError(
            f"the target is a kernel ({type(target).__name__}) and the kernel is of type "
            f"{type(kernel).__name__}: check their order, which is target, kernel for a design, "
            "and kernel, target for embed"
        )
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"the kernel is of type {type(kernel).__name__}; it must be a bqlib.kernels.Kernel"
        )
    refuse_no_target(target)
    function = find(type(kernel), type(target))
    if kernel.dim is not None and kernel.dim != target.dim:
        raise ValueError(
            f"the kernel is for points of dimension {kernel.dim}, the target has dimension "
            f"{target.dim}; they must be equal"
        )
    embedding = function(kernel, target)
    if isinstance(embedding, Embedding):  # a plug-in's may be anything
        object.__setattr__(embedding, "_by_embed", True)
    return embedding


def refuse_no_target(target: Any) -> None:
    """Raise a TypeError if an object is no target."""
    if not hasattr(target, "dim"):
        raise TypeError(
            f"the target is of type {type(target).__name__}; it must be one of bqlib.targets, or "
            "an object with `dim` and a registered embedding. For a density use bqlib.Unnormalised"
        )


def points_of(embedding: Embedding, points: ArrayLike) -> Array:
    """Points for an embedding as a float array (n, d); checks both."""
    if not isinstance(embedding, Embedding):
        raise TypeError(
            f"the embedding is of type {type(embedding).__name__}; it must be a bqlib.Embedding: "
            "use embed(kernel, target), or the attribute `embedding` of a design"
        )
    return points_for(embedding.target, points)


def embed_by_blocks(kernel: Any, target: Product | Uniform) -> Embedding:
    """Embedding of a kernel that factorises over the independent blocks of its target."""
    parts = [(own, embed(kernel.block(own), block)) for own, block in blocks_of(target)]
    return product_of_parts(kernel, target, parts)


def blocks_of(target: Product | Uniform) -> list[tuple[list[int], Target]]:
    """Coordinates and target of each independent block of a Product or Uniform target."""
    ends = np.cumsum([block.dim for block in target.blocks])
    return [
        (list(range(end - block.dim, end)), block)
        for end, block in zip(ends, target.blocks, strict=True)
    ]


def product_of_parts(kernel: Kernel, target: Target, parts: Sequence[Part]) -> Embedding:
    """Embedding of a kernel whose factors act on independent blocks of coordinates.

    Kernel mean and prior variance are the products of those of the parts.

    Parameters
    ----------
    kernel, target
    parts : list of (list of int, Embedding)
        For each factor, the coordinates that its embedding takes, and that embedding.
    """
    if any(isinstance(part.target, Marginals) for _, part in parts):
        raise TypeError(
            "no closed-form embedding for a Product with Marginals among its blocks, as a kernel "
            "acts on their standard coordinates: put all inputs into one Marginals"
        )

    def means(x: Array) -> Array:
        return np.array([part.kernel_mean(x[:, own]) for own, part in parts])

    def kernel_mean(x: Array) -> Array:
        return np.prod(means(x), axis=0)

    def kernel_mean_gradient(x: Array) -> Array:
        values = means(x)
        gradient = np.zeros_like(x)
        for i, (own, part) in enumerate(parts):
            others = np.prod(np.delete(values, i, axis=0), axis=0)
            gradient[:, own] += others[:, None] * part.kernel_mean_gradient(x[:, own])
        return gradient

    prior_variance = float(np.prod([part.prior_variance for _, part in parts]))
    return Embedding(kernel, target, kernel_mean, kernel_mean_gradient, prior_variance)
