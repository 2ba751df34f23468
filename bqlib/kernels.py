"""Kernels: covariance functions k(x, y), their diagonals and their gradients.

Every kernel is called on two point sets, ``kernel(x, y)``, and has ``diagonal(x)``,
``gradient(x, y)`` and ``dim`` (None where it fits points of any dimension). Kernels add up
(``k1 + k2``), scale (``2.0 * k``) and multiply (``k1 * k2``).

Where a kernel has a kink at x = y, its gradient there is the mean of the two one-sided ones, so
that the gradient of k(x, x) is always twice ``gradient(x, x)``.
"""

from dataclasses import dataclass
from math import gamma
from numbers import Real

import numpy as np
from scipy.linalg import lapack
from scipy.spatial.distance import cdist
from scipy.special import gammaln

from bqlib.checks import (
    LONGEST,
    SHORTEST,
    checked_array,
    checked_cholesky,
    checked_count,
    checked_height,
    checked_lengthscale,
    checked_number,
    checked_points,
)

# A Matern kernel is P(rho) exp(-rho) in each coordinate, with rho = sqrt(2 nu) |x - y| / l. These
# are the coefficients of P, and those of D in its derivative, -D(rho) exp(-rho).
MATERN_VALUE = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1.0, 1.0, 1 / 3)}
MATERN_SLOPE = {0.5: (1.0,), 1.5: (0.0, 1.0), 2.5: (0.0, 1 / 3, 1 / 3)}


class Kernel:
    """What all kernels share: arithmetic, and the check of the points they are called on."""

    __array_ufunc__ = None  # so that numpy numbers, too, leave `number * kernel` to the kernel

    def __add__(self, other):
        return SumKernel(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other):
        if isinstance(other, Kernel):
            return ProductKernel(self, other)
        if isinstance(other, Real) or (isinstance(other, np.ndarray) and other.ndim == 0):
            return ScaledKernel(self, other)
        return NotImplemented

    __rmul__ = __mul__

    def _points(self, *sets):
        """The point sets as float arrays, all of one dimension that fits the kernel."""
        first = checked_points(sets[0], self.dim)
        return [first, *(checked_points(points, first.shape[1]) for points in sets[1:])]


@dataclass(frozen=True, eq=False)
class ExponentiatedQuadratic(Kernel):
    r"""Exponentiated quadratic kernel, also called Gaussian, RBF or squared exponential.

    ``k(x, y) = h exp(-(x - y)' L^{-1} (x - y) / 2)`` with height ``h``.

    Parameters
    ----------
    lengthscale : float or array_like, shape (d,), optional
        One length-scale for all coordinates (L = lengthscale**2 I), or one for each
        (L = diag(lengthscale**2)), in the units of x.
    covariance : array_like, shape (d, d), optional
        L itself, symmetric positive definite. Give this or `lengthscale`, not both.
    scale : {"unit", "density"}
        ``"unit"``: h = 1. ``"density"``: h makes k(., y) integrate to one (the convention of
        Huszar and Duvenaud, 2012).

    Raises
    ------
    ValueError
        If a length-scale is not finite and positive, or `covariance` is not symmetric positive
        definite.

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory, with a full covariance O(d^2 (n + m)) more.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 4.2.1.

    Examples
    --------
    >>> kernel = ExponentiatedQuadratic(0.5)
    >>> kernel([[0.0, 0.0]], [[0.0, 0.0], [0.5, 0.0]]).round(4)
    array([[1.    , 0.6065]])
    """

    lengthscale: object = None
    covariance: object = None
    scale: str = "unit"

    def __post_init__(self):
        _check_scale(self.scale)
        if (self.lengthscale is None) == (self.covariance is None):
            raise ValueError("give either lengthscale or covariance, and not both")
        if self.covariance is None:
            lengthscale = checked_lengthscale(self.lengthscale)
            object.__setattr__(self, "lengthscale", lengthscale)
        else:
            covariance = checked_array(self.covariance, "covariance").copy()
            object.__setattr__(self, "covariance", covariance)
            object.__setattr__(self, "_factor", checked_cholesky(covariance, "covariance"))

    @property
    def dim(self):
        """Dimension of the points, or None where any will do."""
        return _dim(self.lengthscale) if self.covariance is None else len(self.covariance)

    def __call__(self, x, y):
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        if self.covariance is None:
            gram = _scaled_squares(x, y, self.lengthscale)
        else:
            x, y = (solve_lower(self._factor, points.T).T for points in (x, y))
            gram = cdist(x, y, "sqeuclidean")
        gram *= -0.5
        np.exp(gram, out=gram)
        if self.scale == "density":
            gram *= self.height(x.shape[1])
        return gram

    def diagonal(self, x):
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        return np.full(len(x), self.height(x.shape[1]))

    def gradient(self, x, y):
        """Gradient of k(x_i, y_j) in x_i, shape (n, m, d)."""
        x, y = self._points(x, y)
        difference = y[None, :, :] - x[:, None, :]
        if self.covariance is None:
            scaled = difference / np.square(self.lengthscale)
        else:
            half = solve_lower(self._factor, difference.reshape(-1, x.shape[1]).T)
            scaled = solve_lower(self._factor, half, transposed=True).T.reshape(difference.shape)
        return scaled * self(x, y)[:, :, None]

    def height(self, dim):
        """k(x, x) for points of dimension `dim`."""
        if self.scale == "unit":
            return 1.0
        if self.covariance is not None:
            scales = np.diag(self._factor)
        else:
            scales = np.broadcast_to(self.lengthscale, dim)
        return _density_height((2 * np.pi) ** (-dim / 2), scales)

    def metric(self, dim):
        """The matrix L, shape (dim, dim)."""
        if self.covariance is not None:
            return self.covariance
        return np.diag(np.square(np.broadcast_to(self.lengthscale, dim)))

    def block(self, coordinates):
        """The factor of this kernel that acts on some coordinates."""
        if self.covariance is not None:
            raise ValueError(
                "an ExponentiatedQuadratic with a full covariance is no product over coordinates; "
                "give it one lengthscale for each coordinate"
            )
        return ExponentiatedQuadratic(_take(self.lengthscale, coordinates), scale=self.scale)


@dataclass(frozen=True, eq=False)
class Matern(Kernel):
    r"""Matern kernel, as a product over coordinates.

    With rho_c = sqrt(2 nu) |x_c - y_c| / l_c, the factor of coordinate c is exp(-rho_c) for
    nu = 1/2, (1 + rho_c) exp(-rho_c) for 3/2 and (1 + rho_c + rho_c^2 / 3) exp(-rho_c) for 5/2.
    In more than one dimension this is not the kernel of the Euclidean distance |x - y|, which
    has no closed-form kernel means.

    Parameters
    ----------
    lengthscale : float or array_like, shape (d,)
        One for all coordinates, or one for each, in the units of x.
    nu : {0.5, 1.5, 2.5}
        Smoothness: sample paths are nu - 1/2 times differentiable.
    scale : {"unit", "density"}
        ``"unit"``: k(x, x) = 1. ``"density"``: k(., y) integrates to one.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 4.2.1.

    Examples
    --------
    >>> Matern(1.0, nu=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(6)
    array([[0.135335]])
    """

    lengthscale: object
    nu: float = 2.5
    scale: str = "unit"

    def __post_init__(self):
        _check_scale(self.scale)
        object.__setattr__(self, "nu", checked_number(self.nu, "nu"))
        if self.nu not in MATERN_VALUE:
            raise ValueError(f"nu is {self.nu}; closed forms exist here for 0.5, 1.5 and 2.5")
        object.__setattr__(self, "lengthscale", checked_lengthscale(self.lengthscale))

    @property
    def dim(self):
        """Dimension of the points, or None where any will do."""
        return _dim(self.lengthscale)

    def rates(self, dim):
        """sqrt(2 nu) / l_c for each coordinate, shape (dim,)."""
        return np.sqrt(2 * self.nu) / np.broadcast_to(self.lengthscale, dim)

    def __call__(self, x, y):
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        total = 0.0
        polynomial = self.height(x.shape[1])
        for c, rate in enumerate(self.rates(x.shape[1])):
            rho = rate * np.abs(x[:, c, None] - y[None, :, c])
            # exp(-rho) is zero long before, and the product of polynomials must not overflow.
            np.minimum(rho, 1e4, out=rho)
            total = total + rho
            if self.nu > 0.5:
                polynomial = polynomial * polyval(rho, MATERN_VALUE[self.nu])
        return polynomial * np.exp(-total)

    def diagonal(self, x):
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        return np.full(len(x), self.height(x.shape[1]))

    def gradient(self, x, y):
        """Gradient of k(x_i, y_j) in x_i, shape (n, m, d); zero at x_i = y_j."""
        x, y = self._points(x, y)
        rates = self.rates(x.shape[1])
        difference = y[None, :, :] - x[:, None, :]
        rho = rates * np.abs(difference)
        relative = polyval(rho, MATERN_SLOPE[self.nu]) / polyval(rho, MATERN_VALUE[self.nu])
        return self(x, y)[:, :, None] * (rates * np.sign(difference) * relative)

    def height(self, dim):
        """k(x, x) for points of dimension `dim`."""
        if self.scale == "unit":
            return 1.0
        # P(rho) exp(-rho) integrates to 2 sum_k k! p_k over the line.
        integral = 2 * sum(gamma(k + 1) * p for k, p in enumerate(MATERN_VALUE[self.nu]))
        return _density_height(1.0, integral / self.rates(dim))

    def block(self, coordinates):
        """The factor of this kernel that acts on some coordinates."""
        return Matern(_take(self.lengthscale, coordinates), self.nu, self.scale)


@dataclass(frozen=True, eq=False)
class RationalQuadratic(Kernel):
    r"""Rational quadratic kernel, k(x, y) = h (1 + |x - y|^2 / (2 alpha l^2))^(-alpha).

    A Gamma mixture of exponentiated quadratic kernels; alpha = 1 is the Cauchy kernel.

    Parameters
    ----------
    lengthscale : float or array_like, shape (d,)
        One for all coordinates, or one for each, in the units of x.
    alpha : float
        Weight of large length-scales: the tail is r^(-2 alpha), and alpha to infinity gives the
        exponentiated quadratic kernel.
    scale : {"unit", "density"}
        ``"unit"``: h = 1. ``"density"``: k(., y) integrates to one, for alpha > d / 2 only.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 4.2.1.

    Examples
    --------
    >>> RationalQuadratic(1.0, alpha=1.0)([[0.0]], [[1.0], [2.0]]).round(6)
    array([[0.666667, 0.333333]])
    """

    lengthscale: object
    alpha: float = 1.0
    scale: str = "unit"

    def __post_init__(self):
        _check_scale(self.scale)
        object.__setattr__(self, "alpha", checked_number(self.alpha, "alpha"))
        if not (np.isfinite(self.alpha) and self.alpha > 0):
            raise ValueError(f"alpha is {self.alpha}; it must be finite and positive")
        object.__setattr__(self, "lengthscale", checked_lengthscale(self.lengthscale))

    @property
    def dim(self):
        """Dimension of the points, or None where any will do."""
        return _dim(self.lengthscale)

    def __call__(self, x, y):
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        return self.height(x.shape[1]) * self._base(x, y) ** -self.alpha

    def diagonal(self, x):
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        return np.full(len(x), self.height(x.shape[1]))

    def gradient(self, x, y):
        """Gradient of k(x_i, y_j) in x_i, shape (n, m, d)."""
        x, y = self._points(x, y)
        difference = y[None, :, :] - x[:, None, :]
        slope = self.height(x.shape[1]) * self._base(x, y) ** (-self.alpha - 1)
        return slope[:, :, None] * difference / np.square(self.lengthscale)

    def _base(self, x, y):
        return 1 + _scaled_squares(x, y, self.lengthscale) / (2 * self.alpha)

    def height(self, dim):
        """k(x, x) for points of dimension `dim`."""
        if self.scale == "unit":
            return 1.0
        if self.alpha <= dim / 2:
            raise ValueError(
                f"alpha is {self.alpha}: in dimension {dim} the kernel has an integral only for "
                f'alpha above {dim / 2:g}; use scale="unit"'
            )
        integral = (2 * np.pi * self.alpha) ** (dim / 2) * np.exp(
            gammaln(self.alpha - dim / 2) - gammaln(self.alpha)
        )
        return _density_height(1 / integral, np.broadcast_to(self.lengthscale, dim))


class UnitCubeKernel(Kernel):
    """A product over coordinates of one kernel on [0, 1]; fits points of any dimension.

    Each subclass has the kernel on [0, 1], ``_value(x, y)``, and its derivative in x,
    ``_slope(x, y)``, for arrays that broadcast. A call costs O(n m d) time.
    """

    dim = None

    def __call__(self, x, y):
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        gram = np.ones((len(x), len(y)))
        for c in range(x.shape[1]):
            gram *= self._value(x[:, c, None], y[None, :, c])
        return gram

    def diagonal(self, x):
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        return np.prod(self._value(x, x), axis=1)

    def gradient(self, x, y):
        """Gradient of k(x_i, y_j) in x_i, shape (n, m, d)."""
        columns = self._columns(*self._points(x, y))
        return product_gradient(self._value(*columns), self._slope(*columns))

    def block(self, coordinates):
        """The factor of this kernel that acts on some coordinates."""
        return self

    @staticmethod
    def _columns(x, y):
        return x.T[:, :, None], y.T[:, None, :]

    def _points(self, *sets):
        sets = super()._points(*sets)
        for points in sets:
            if points.size and not (points.min() >= 0 and points.max() <= 1):
                raise ValueError(
                    f"{type(self).__name__} is a kernel on [0, 1]^d, and a point lies outside; "
                    "rescale the points"
                )
        return sets


@dataclass(frozen=True, eq=False)
class Brownian(UnitCubeKernel):
    """Brownian motion on [0, 1]: min(x, y) in each coordinate (d > 1: the Brownian sheet).

    Under the uniform distribution in one dimension the best n points are 2 i / (2 n + 1), and the
    least MMD^2 is 1 / (3 (2 n + 1)^2).

    References
    ----------
    Ritter, "Average-Case Analysis of Numerical Problems", 2000.

    Examples
    --------
    >>> Brownian()([[0.5, 0.5]], [[0.2, 0.8]])
    array([[0.1]])
    """

    def _value(self, x, y):
        return np.minimum(x, y)

    def _slope(self, x, y):
        return np.heaviside(y - x, 0.5)


@dataclass(frozen=True, eq=False)
class BrownianBridge(UnitCubeKernel):
    """Brownian bridge, tied to zero at 0 and 1: min(x, y) - x y in each coordinate.

    Examples
    --------
    >>> BrownianBridge()([[0.5]], [[0.25]])
    array([[0.125]])
    """

    def _value(self, x, y):
        return np.minimum(x, y) - x * y

    def _slope(self, x, y):
        return np.heaviside(y - x, 0.5) - y


@dataclass(frozen=True, eq=False)
class IntegratedBrownian(UnitCubeKernel):
    """Integral of Brownian motion from 0: m^2 (3 M - m) / 6, m = min(x, y), M = max(x, y).

    Examples
    --------
    >>> IntegratedBrownian()([[1.0]], [[0.5]]).round(6)
    array([[0.104167]])
    """

    def _value(self, x, y):
        low, high = np.minimum(x, y), np.maximum(x, y)
        return low**2 * (3 * high - low) / 6

    def _slope(self, x, y):
        low = np.minimum(x, y)
        return low * y - low**2 / 2


@dataclass(frozen=True, eq=False)
class L2Star(UnitCubeKernel):
    """The kernel 1 - max(x, y) in each coordinate, whose MMD is the L2-star discrepancy.

    Equal weights on n points have, under the uniform distribution on the unit cube, exactly the
    MMD that ``scipy.stats.qmc.discrepancy(points, method="L2-star")`` gives.

    References
    ----------
    Warnock, "Computational investigations of low-discrepancy point sets", 1972.

    Examples
    --------
    >>> L2Star()([[0.5]], [[0.25]])
    array([[0.5]])
    """

    def _value(self, x, y):
        return 1 - np.maximum(x, y)

    def _slope(self, x, y):
        return -np.heaviside(x - y, 0.5)


@dataclass(frozen=True, eq=False)
class Korobov(UnitCubeKernel):
    """Korobov kernel of order 1: 1 + 2 pi^2 B2({x - y}) in each coordinate, periodic.

    B2(t) = t^2 - t + 1/6, and {t} is the fractional part.

    References
    ----------
    Sloan and Joe, "Lattice Methods for Multiple Integration", 1994.

    Examples
    --------
    >>> Korobov()([[0.25]], [[0.25]]).round(6)
    array([[4.289868]])
    """

    def _value(self, x, y):
        t = np.abs(x - y)
        return 1 + 2 * np.pi**2 * (t * (t - 1) + 1 / 6)

    def _slope(self, x, y):
        return 2 * np.pi**2 * (2 * (x - y) - np.sign(x - y))


@dataclass(frozen=True, eq=False)
class Stein(Kernel):
    r"""Langevin-Stein kernel of a target with a score, on an inverse multiquadric base.

    With the base b(x, y) = (1 + |x - y|^2 / l^2)^beta and the target's score s,
    ``k(x, y) = C + div_x grad_y b + s(x)' grad_y b + s(y)' grad_x b + b s(x)'s(y)``. Its mean
    under the target is C whatever the normalising constant, so the MMD is the kernel Stein
    discrepancy.

    Parameters
    ----------
    target
        Must have a score on the whole of R^d: a GaussianMixture, an Unnormalised with a score, or
        a Product of these.
    lengthscale : float or array_like, shape (d,)
        One for all coordinates, or one for each, in the units of x.
    beta : float
        Exponent of the base, negative. The discrepancy detects non-convergence for
        -1 < beta < 0.
    constant : float
        C, the prior variance of the integral. Zero suits rules that keep the sum of the weights
        at one; Bayesian quadrature needs C > 0, and C to infinity makes its weights sum to one.

    Raises
    ------
    TypeError
        If the target has no score.
    ValueError
        If an argument is out of its range.

    Notes
    -----
    A call costs O(n m d) time, and a score for each point of a set that is not the one of the
    call before. The gradient needs the target's ``hessian``.

    References
    ----------
    Oates, Girolami and Chopin, "Control functionals for Monte Carlo integration", 2017. Gorham
    and Mackey, "Measuring sample quality with kernels", 2017.
    """

    target: object
    lengthscale: object = 1.0
    beta: float = -0.5
    constant: float = 0.0

    def __post_init__(self):
        if getattr(self.target, "score", None) is None:
            raise TypeError(
                f"a Stein kernel needs the score of its target, and this "
                f"{type(self.target).__name__} has none; use a GaussianMixture, an Unnormalised "
                "with score=, or a Product of these"
            )
        object.__setattr__(self, "lengthscale", checked_lengthscale(self.lengthscale))
        if _dim(self.lengthscale) not in (None, self.target.dim):
            raise ValueError(
                f"there are {_dim(self.lengthscale)} length-scales for a target of dimension "
                f"{self.target.dim}"
            )
        object.__setattr__(self, "beta", checked_number(self.beta, "beta"))
        object.__setattr__(self, "constant", checked_number(self.constant, "constant"))
        if not (np.isfinite(self.beta) and self.beta < 0):
            raise ValueError(f"beta is {self.beta}; it must be finite and negative")
        if self.constant != 0:
            checked_height(self.constant, "constant")
        object.__setattr__(self, "_known", ())

    @property
    def dim(self):
        """Dimension of the points, that of the target."""
        return self.target.dim

    def __call__(self, x, y):
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        score_x, score_y = self._score(x), self._score(y)
        beta, precision = self.beta, self._precision()
        base = 1 + _scaled_squares(x, y, self.lengthscale)
        # |g|^2 and g's, with g = (x - y) / l^2
        g2 = _scaled_squares(x, y, np.square(self.lengthscale))
        pull = 0.0
        for c, p in enumerate(precision):
            pull = pull + (p * (x[:, c, None] - y[:, c])) * (score_y[:, c] - score_x[:, c, None])
        inner = score_x @ score_y.T
        terms = 2 * beta * (pull - precision.sum()) - 4 * beta * (beta - 1) * g2 / base
        return self.constant + base**beta * (terms / base + inner)

    def diagonal(self, x):
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        squares = np.square(self._score(x)).sum(axis=1)
        return self.constant - 2 * self.beta * self._precision().sum() + squares

    def gradient(self, x, y):
        """Gradient of k(x_i, y_j) in x_i, shape (n, m, d). Uses the target's ``hessian``."""
        x, y = self._points(x, y)
        if getattr(self.target, "hessian", None) is None:
            raise TypeError(
                "the gradient of a Stein kernel needs the Hessian of the log density, and this "
                f"{type(self.target).__name__} has none; give it hessian="
            )
        score_x, score_y = self._score(x)[:, None, :], self._score(y)[None, :, :]
        hessian = np.asarray(self.target.hessian(x), dtype=float)
        beta, precision = self.beta, self._precision()
        g = precision * (x[:, None, :] - y[None, :, :])
        base = 1 + _scaled_squares(x, y, self.lengthscale)[:, :, None]
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
        return base**beta * ((along_g * g + rest) / base + curvature)

    def _precision(self):
        return np.broadcast_to(1 / np.square(self.lengthscale), self.dim)

    def _score(self, x):
        # Designs call row after row against one pool: keep the scores of the last large set.
        if len(x) == 1:
            return self._new_score(x)
        known = self._known
        if not (known and np.array_equal(known[0], x)):
            known = (x.copy(), self._new_score(x))
            object.__setattr__(self, "_known", known)
        return known[1]

    def _new_score(self, x):
        score = np.asarray(self.target.score(x), dtype=float)
        if score.shape != x.shape:
            raise ValueError(
                f"the target's score returned shape {score.shape} for points of shape {x.shape}; "
                "the two must be equal"
            )
        return score


@dataclass(frozen=True, eq=False, init=False)
class SumKernel(Kernel):
    """Sum of kernels, written ``k1 + k2``."""

    parts: tuple

    def __init__(self, *parts):
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "dim", _common_dim(parts))

    def __call__(self, x, y):
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        return sum(part(x, y) for part in self.parts)

    def diagonal(self, x):
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        return sum(part.diagonal(x) for part in self.parts)

    def gradient(self, x, y):
        """Gradient of k(x_i, y_j) in x_i, shape (n, m, d)."""
        return sum(part.gradient(x, y) for part in self.parts)


@dataclass(frozen=True, eq=False)
class ScaledKernel(Kernel):
    """A kernel times a positive number, written ``2.0 * k``."""

    kernel: Kernel
    factor: float

    def __post_init__(self):
        object.__setattr__(self, "factor", checked_height(self.factor, "the factor"))

    @property
    def dim(self):
        """Dimension of the points, or None where any will do."""
        return self.kernel.dim

    def __call__(self, x, y):
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        return self.factor * self.kernel(x, y)

    def diagonal(self, x):
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        return self.factor * self.kernel.diagonal(x)

    def gradient(self, x, y):
        """Gradient of k(x_i, y_j) in x_i, shape (n, m, d)."""
        return self.factor * self.kernel.gradient(x, y)


@dataclass(frozen=True, eq=False, init=False)
class ProductKernel(Kernel):
    """Product of kernels, written ``k1 * k2``.

    It has an embedding where its factors act on different coordinates (:class:`OnCoordinates`)
    that are independent under the target.
    """

    parts: tuple

    def __init__(self, *parts):
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "dim", _common_dim(parts))

    def __call__(self, x, y):
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        return np.prod([part(x, y) for part in self.parts], axis=0)

    def diagonal(self, x):
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        return np.prod([part.diagonal(x) for part in self.parts], axis=0)

    def gradient(self, x, y):
        """Gradient of k(x_i, y_j) in x_i, shape (n, m, d)."""
        values = np.array([part(x, y) for part in self.parts])
        return sum(
            np.prod(np.delete(values, i, axis=0), axis=0)[:, :, None] * part.gradient(x, y)
            for i, part in enumerate(self.parts)
        )


@dataclass(frozen=True, eq=False)
class OnCoordinates(Kernel):
    """A kernel that sees only some coordinates of the points.

    Parameters
    ----------
    kernel : Kernel
    coordinates : sequence of int
        The coordinates it sees, in the order in which it sees them, counted from 0.

    Raises
    ------
    ValueError
        If a coordinate is negative or repeated, or their number is not the kernel's dimension.

    Examples
    --------
    >>> kernel = OnCoordinates(Matern(0.5), [0]) * OnCoordinates(Brownian(), [1])
    >>> kernel([[0.0, 0.5]], [[0.0, 0.2]])
    array([[0.2]])
    """

    kernel: Kernel
    coordinates: tuple

    dim = None

    def __post_init__(self):
        coordinates = tuple(checked_count(c, "a coordinate", -np.inf) for c in self.coordinates)
        if not coordinates or min(coordinates) < 0 or len(set(coordinates)) < len(coordinates):
            raise ValueError(f"coordinates are {coordinates}; give different ones, from 0 on")
        if self.kernel.dim not in (None, len(coordinates)):
            raise ValueError(
                f"there are {len(coordinates)} coordinates for a kernel of dimension "
                f"{self.kernel.dim}"
            )
        object.__setattr__(self, "coordinates", coordinates)

    def __call__(self, x, y):
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        return self.kernel(x[:, self.coordinates], y[:, self.coordinates])

    def diagonal(self, x):
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        return self.kernel.diagonal(x[:, self.coordinates])

    def gradient(self, x, y):
        """Gradient of k(x_i, y_j) in x_i, shape (n, m, d)."""
        x, y = self._points(x, y)
        gradient = np.zeros((len(x), len(y), x.shape[1]))
        part = self.kernel.gradient(x[:, self.coordinates], y[:, self.coordinates])
        gradient[:, :, self.coordinates] = part
        return gradient

    def _points(self, *sets):
        sets = super()._points(*sets)
        if max(self.coordinates) >= sets[0].shape[1]:
            raise ValueError(
                f"points of dimension {sets[0].shape[1]} have no coordinate {max(self.coordinates)}"
            )
        return sets


def polyval(x, coefficients):
    """sum_k coefficients[k] x^k."""
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


def product_gradient(values, slopes):
    """Gradient of a product of d functions of one coordinate each.

    `values` and `slopes`, shape (d, ...), hold the functions and their derivatives; the result
    has shape (..., d).
    """
    parts = [np.prod(np.delete(values, c, axis=0), axis=0) * s for c, s in enumerate(slopes)]
    return np.stack(parts, axis=-1)


def solve_lower(factor, right, transposed=False):
    """L^{-1} B, or L^{-T} B, for a lower triangular factor L (d, d) and B (d, n).

    LAPACK at first hand: for few points, the checks of scipy's solve_triangular cost several
    times the solution.
    """
    if not right.size:
        return right
    return lapack.dtrtrs(factor, right, lower=1, trans=int(transposed))[0]


def _density_height(height, scales):
    """Height of a density of this height at unit scales, at other scales in its coordinates."""
    with np.errstate(over="ignore", divide="ignore"):
        height = height / np.prod(scales)
    if not SHORTEST**2 <= height <= LONGEST**2:
        raise ValueError(
            f"as a density in dimension {len(scales)} this kernel has height {height:g}, out of "
            'the range of float64; change the unit of length or use scale="unit"'
        )
    return float(height)


def _check_scale(scale):
    if scale not in ("unit", "density"):
        raise ValueError(f'scale is {scale!r}; it must be "unit" or "density"')


def _dim(lengthscale):
    return len(lengthscale) if np.ndim(lengthscale) else None


def _take(lengthscale, coordinates):
    return lengthscale[list(coordinates)] if np.ndim(lengthscale) else lengthscale


def _scaled_squares(x, y, lengthscale):
    """|(x_i - y_j) / lengthscale|^2, shape (n, m), from differences (never |x|^2 - 2xy + |y|^2)."""
    if np.ndim(lengthscale):
        return cdist(x, y, "sqeuclidean", w=1 / np.square(lengthscale))
    squares = cdist(x, y, "sqeuclidean")
    squares /= lengthscale**2
    return squares


def _common_dim(kernels):
    dims = {kernel.dim for kernel in kernels} - {None}
    if len(dims) > 1:
        raise ValueError(f"the kernels are for points of different dimensions: {sorted(dims)}")
    return dims.pop() if dims else None
