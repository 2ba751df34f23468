"""Targets: the distributions to summarise.

Every target has ``dim`` and, where it can, ``sample(n, rng)``, ``density(x)``,
``log_density(x)`` and ``score(x)``.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from bqlib.kernels import checked_cholesky


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """Mixture of Gaussians with full covariances; one component makes a Gaussian.

    Parameters
    ----------
    weights : array_like, shape (J,)
        Probabilities of the components: not negative, with sum one.
    means : array_like, shape (J, d)
    covariances : array_like, shape (J, d, d)
        Symmetric positive definite matrices.

    Raises
    ------
    ValueError
        Naming every argument that is wrong.

    Examples
    --------
    >>> normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> normal.density([[0.0]]).round(6)
    array([0.398942])
    """

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def __post_init__(self):
        weights = np.array(self.weights, dtype=float)
        means = np.array(self.means, dtype=float)
        covariances = np.array(self.covariances, dtype=float)
        problems = []
        if weights.ndim != 1 or weights.size == 0:
            raise ValueError(f"weights have shape {weights.shape}; they must be a list of numbers")
        if means.ndim != 2 or len(means) != len(weights):
            raise ValueError(
                f"means have shape {means.shape}; {len(weights)} weights need ({len(weights)}, d)"
            )
        expected = (*means.shape, means.shape[1])
        if covariances.shape != expected:
            raise ValueError(f"covariances have shape {covariances.shape}; expected {expected}")
        if not np.isfinite(weights).all() or (weights < 0).any():
            problems.append("weights must be finite and not negative")
        elif abs(weights.sum() - 1) > 1e-9:
            problems.append(f"weights sum to {weights.sum():.12g}; they must sum to 1")
        if not np.isfinite(means).all():
            problems.append("means hold NaN or infinity")
        factors = []
        for j, covariance in enumerate(covariances):
            try:
                factors.append(checked_cholesky(covariance, f"covariance of component {j}"))
            except ValueError as error:
                problems.append(str(error))
        if problems:
            raise ValueError("; ".join(problems))
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "covariances", covariances)
        object.__setattr__(self, "_factors", np.array(factors))

    @property
    def dim(self):
        """Dimension d of the points."""
        return self.means.shape[1]

    def sample(self, n, rng):
        """Draw n independent points, shape (n, d), from the Generator `rng`.

        The first m of n points are the m points of a shorter draw by an equal generator.
        """
        component_rng, normal_rng = rng.spawn(2)
        probabilities = self.weights / self.weights.sum()
        component = component_rng.choice(len(self.weights), size=n, p=probabilities)
        normal = normal_rng.standard_normal((n, self.dim))
        return self.means[component] + np.einsum("nij,nj->ni", self._factors[component], normal)

    def log_density(self, x):
        """Log density at x (n, d), shape (n,). Costs O(n J d^2)."""
        return logsumexp(self._log_terms(x), axis=0)

    def density(self, x):
        """Density at x (n, d), shape (n,). Costs O(n J d^2)."""
        return np.exp(self._log_terms(x)).sum(axis=0)

    def score(self, x):
        """Gradient of the log density at x (n, d), shape (n, d)."""
        x = np.asarray(x, dtype=float)
        log_terms = self._log_terms(x)
        share = np.exp(log_terms - logsumexp(log_terms, axis=0))
        score = np.zeros_like(x)
        for j, factor in enumerate(self._factors):
            half = solve_triangular(factor, (self.means[j] - x).T, lower=True)
            score += share[j][:, None] * solve_triangular(factor, half, lower=True, trans="T").T
        return score

    def _log_terms(self, x):
        x = np.asarray(x, dtype=float)
        terms = np.empty((len(self.weights), len(x)))
        with np.errstate(divide="ignore"):  # a component of weight zero contributes exp(-inf)
            log_weights = np.log(self.weights)
        for j, factor in enumerate(self._factors):
            white = solve_triangular(factor, (x - self.means[j]).T, lower=True)
            log_norm = np.log(np.diag(factor)).sum() + 0.5 * self.dim * np.log(2 * np.pi)
            terms[j] = log_weights[j] - log_norm - 0.5 * np.square(white).sum(axis=0)
        return terms
