"""The Langevin-Stein kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from bqlib.answers import checked_hessian, checked_score
from bqlib.arrays import Array, read_only, with_read_only_arrays
from bqlib.checks import checked_height, checked_lengthscale, checked_number
from bqlib.kernels.kernel import Kernel, dim_of, recalled, scaled_squares
from bqlib.targets import Target


@dataclass(frozen=True, eq=False, init=False)
class Stein(Kernel):
    r"""Langevin-Stein kernel of a target with a score, on an inverse multiquadric base.

    With the base b(x, y) = (1 + |x - y|^2 / l^2)^beta and the target's score s,
    ``k(x, y) = C + div_x grad_y b + s(x)' grad_y b + s(y)' grad_x b + b s(x)'s(y)``. Its mean
    under the target is C whatever the normalising constant, so the MMD is the kernel Stein
    discrepancy.

    Parameters
    ----------
    target : Target
        Must have a score on the whole of R^d: a GaussianMixture, an Unnormalised with a score, or
        a Product of these.
    lengthscale : float or array_like, shape (d,)
        One for all coordinates (default: 1), or one for each, in the units of x / units.
    beta : float
        Exponent of the base, negative (default: -1/2). The discrepancy detects non-convergence for
        -1 < beta < 0.
    constant : float
        C, the prior variance of the integral (default: 0). Zero suits designs whose weights have
        sum one: :func:`iid`, :func:`herding`, :func:`stein_thinning` and :func:`frank_wolfe`. With
        zero, :func:`sbq`, :func:`block_sbq`, :func:`omp`, :func:`fp_greedy` and :func:`joint` raise
        a ValueError, as the kernel mean is zero everywhere, and all BQ weights are zero: they need
        C > 0. As C goes to infinity, the sum of BQ weights goes to one. In float64 C can be about a
        million times the rest of k(x, x). At 1e8 times the rest or more, double precision cannot
        separate points, and they count as repeats. :func:`bqlib.weights.sum_to_one` gives the
        weights for C to infinity with any C.
    units : float or array_like, shape (d,), optional
        The kernel is that of x / units, whose score is units s(x) (default: 1). With the standard
        deviations as `units`, it does not depend on the units that x was measured in.

    Raises
    ------
    TypeError
        If the target has no score.
    ValueError
        If a length-scale or unit is not finite and positive, their number is not the dimension of
        the target, `beta` is not negative, or `constant` is negative. A call raises it for points
        of another dimension, NaN or infinity.

    Notes
    -----
    A call costs O(n m d) time, and one score for each point, unless the last calls used the same
    points. The gradient needs the target's ``hessian``.

    References
    ----------
    Oates, Girolami and Chopin, "Control functionals for Monte Carlo integration", 2017. Gorham
    and Mackey, "Measuring sample quality with kernels", 2017.

    Examples
    --------
    >>> from bqlib import Candidates, Stein, Unnormalised, sbq
    >>> target = Unnormalised(1, score=lambda x: -x)  # a normal distribution, times any constant
    >>> pool = Candidates(500, source="box", box=[(-4, 4)])
    >>> design = sbq(target, Stein(target, constant=1.0), n=20, rng=0, candidates=pool)
    >>> result = design.integrate(lambda x: x[0] ** 2)  # the variance, 1
    >>> round(result.mean, 2)
    1.0
    """

    target: Target
    lengthscale: float | Array
    beta: float
    constant: float
    units: Array | None
    _known: list[tuple[Array, Array]] = field(init=False, repr=False)  # points and their scores

    def __init__(
        self,
        target: Target,
        lengthscale: ArrayLike = 1.0,
        beta: float = -0.5,
        constant: float = 0.0,
        units: ArrayLike | None = None,
    ):
        if getattr(target, "score", None) is None:
            raise TypeError(
                f"a Stein kernel needs the score of its target, but this "
                f"{type(target).__name__} has none; use a GaussianMixture, an Unnormalised "
                "with score=, or a Product of these"
            )
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "lengthscale", checked_lengthscale(lengthscale))
        own = None if units is None else checked_lengthscale(units, "units")
        for what, lengths in (("length-scales", self.lengthscale), ("units", own)):
            if lengths is not None and dim_of(lengths) not in (None, target.dim):
                raise ValueError(
                    f"there are {dim_of(lengths)} {what} for a target of dimension {target.dim}; "
                    "give one number, or one for each coordinate"
                )
        each = None if own is None else read_only(np.full(target.dim, own))
        object.__setattr__(self, "units", each)
        object.__setattr__(self, "beta", checked_number(beta, "beta"))
        object.__setattr__(self, "constant", checked_number(constant, "constant"))
        if not (np.isfinite(self.beta) and self.beta < 0):
            raise ValueError(f"beta is {self.beta}; it must be finite and negative")
        if self.constant != 0:
            checked_height(self.constant, "constant")
        object.__setattr__(self, "_known", [])

    __setstate__ = with_read_only_arrays

    @property
    def dim(self) -> int:
        """Dimension of the points, that of the target."""
        return self.target.dim

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        score_x, score_y = self._score(x), self._score(y)
        x, y = self._in_units(x), self._in_units(y)
        beta, precision = self.beta, self._precision()
        base = 1 + scaled_squares(x, y, lengthscale=self.lengthscale)
        # |g|^2 and g's, with g = (x - y) / l^2
        g2 = scaled_squares(x, y, lengthscale=np.square(self.lengthscale))
        pull = np.zeros(())
        for c, p in enumerate(precision):
            pull = pull + (p * (x[:, c, None] - y[:, c])) * (score_y[:, c] - score_x[:, c, None])
        inner = score_x @ score_y.T
        terms = 2 * beta * (pull - precision.sum()) - 4 * beta * (beta - 1) * g2 / base
        return self.constant + base**beta * (terms / base + inner)

    def diagonal(self, x: ArrayLike) -> Array:
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        squares = np.square(self._score(x)).sum(axis=1)
        return self.constant - 2 * self.beta * self._precision().sum() + squares

    def gradient(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gradient of k(x_i, y_j) in x_i for x (n, d) and y (m, d), shape (n, m, d).

        Uses the target's ``hessian``.
        """
        x, y = self._points(x, y)
        if getattr(self.target, "hessian", None) is None:
            raise TypeError(
                "the gradient of a Stein kernel needs the Hessian of the log density, but this "
                f"{type(self.target).__name__} has none; give it one with hessian="
            )
        score_x, score_y = self._score(x)[:, None, :], self._score(y)[None, :, :]
        units = np.ones(self.dim) if self.units is None else self.units
        hessian = checked_hessian(self.target, x) * units[:, None] * units
        x, y = self._in_units(x), self._in_units(y)
        beta, precision = self.beta, self._precision()
        g = precision * (x[:, None, :] - y[None, :, :])
        base = 1 + scaled_squares(x, y, lengthscale=self.lengthscale)[:, :, None]
        g2 = np.square(g).sum(axis=2, keepdims=True)
        pull = (g * (score_y - score_x)).sum(axis=2, keepdims=True)
        inner = (score_x * score_y).sum(axis=2, keepdims=True)
        along_g = (
            2 * beta * inner
            + 4 * beta * (beta - 1) * (pull - precision.sum()) / base
            - 8 * beta * (beta - 1) * (beta - 2) * g2 / base**2
        )
        rest = 2 * beta * (precision * (score_y - score_x) - np.einsum("icd,ijd->ijc", hessian, g))
        rest -= 8 * beta * (beta - 1) * precision * g / base
        curvature = np.einsum("icd,ijd->ijc", hessian, np.broadcast_to(score_y, g.shape))
        return base**beta * ((along_g * g + rest) / base + curvature) / units

    def _precision(self) -> Array:
        return np.broadcast_to(1 / np.square(self.lengthscale), self.dim)

    def _score(self, x: Array) -> Array:
        """Score of x / units (n, d), from x in the units of the target."""
        scores, known = recalled(self._known, x, partial(checked_score, self.target))
        object.__setattr__(self, "_known", known)
        return scores if self.units is None else scores * self.units

    def _in_units(self, x: Array) -> Array:
        return x if self.units is None else x / self.units
