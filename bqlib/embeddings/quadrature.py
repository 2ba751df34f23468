"""Fixed quadrature rules for the places where a closed form would cancel."""

from scipy.special import roots_laguerre, roots_legendre

from bqlib.arrays import Array, ArrayFunction

_nodes: Array
_weights: Array
# Gauss-Legendre on [0, 1]: exact to float64 for what is smooth there.
_nodes, _weights = roots_legendre(24)
LEGENDRE_NODES, LEGENDRE_WEIGHTS = (_nodes + 1) / 2, _weights / 2

# Gauss-Laguerre: weight exp(-t) on [0, inf).
LAGUERRE_NODES: Array
LAGUERRE_WEIGHTS: Array
LAGUERRE_NODES, LAGUERRE_WEIGHTS = roots_laguerre(20)


def double_mean_on_interval(profile: ArrayFunction, length: float) -> float:
    """E k(X, X') for X, X' uniform on an interval, as 2 int_0^1 (1 - v) profile(v length) dv.

    For a stationary kernel k(x, y) = profile(|x - y|) that is smooth on [0, length].
    """
    values = (1 - LEGENDRE_NODES) * profile(length * LEGENDRE_NODES)
    return 2 * float(LEGENDRE_WEIGHTS @ values)
