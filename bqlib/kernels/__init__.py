"""Kernels: covariance functions k(x, y), their diagonals and their gradients.

Every kernel is called on two point sets, ``kernel(x, y)``, and has ``diagonal(x)``,
``gradient(x, y)`` and ``dim`` (None for points of any dimension). You can add kernels
(``k1 + k2``), scale them (``2.0 * k``) and multiply them (``k1 * k2``).

If a kernel has a kink at x = y, its gradient there is the mean of the two one-sided gradients. So
the gradient of k(x, x) is always twice ``gradient(x, x)``.
"""

from bqlib.kernels.algebra import OnCoordinates, ProductKernel, ScaledKernel, SumKernel
from bqlib.kernels.exponentiated_quadratic import ExponentiatedQuadratic
from bqlib.kernels.kernel import Kernel
from bqlib.kernels.matern import Matern
from bqlib.kernels.rational_quadratic import RationalQuadratic
from bqlib.kernels.standard import OnStandard
from bqlib.kernels.stein import Stein
from bqlib.kernels.unit_cube import (
    Brownian,
    BrownianBridge,
    IntegratedBrownian,
    Korobov,
    L2Star,
    UnitCubeKernel,
)

__all__ = [
    "Brownian",
    "BrownianBridge",
    "ExponentiatedQuadratic",
    "IntegratedBrownian",
    "Kernel",
    "Korobov",
    "L2Star",
    "Matern",
    "OnCoordinates",
    "OnStandard",
    "ProductKernel",
    "RationalQuadratic",
    "ScaledKernel",
    "Stein",
    "SumKernel",
    "UnitCubeKernel",
]
