"""Kernels that act in the standard coordinates of inputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Array, ArrayFunction, read_only
from bqlib.checks import LONGEST
from bqlib.kernels.kernel import Kernel, recalled
from bqlib.marginals import Marginals


@dataclass(frozen=True, eq=False, init=False)
class OnStandard(Kernel):
    """A kernel of points in the units of the user, which acts in standard coordinates.

    The embedding of a kernel with :class:`bqlib.Marginals` has it as its `kernel`: it is
    k(T x, T y), where T maps inputs to their standard coordinates.

    Parameters
    ----------
    kernel : Kernel
        Of points in standard coordinates.
    inputs : Marginals
        Whose standard coordinates these are.

    Raises
    ------
    TypeError
        If `inputs` are no Marginals.
    ValueError
        A call raises it for points of another dimension, NaN or infinity, and for points outside
        the support of a marginal that is neither uniform nor normal.

    Notes
    -----
    A call costs as much as that of `kernel`, O(n m d) time for most, and one map of each point,
    unless one of the last calls used the same points.

    Examples
    --------
    >>> from scipy import stats
    >>> from bqlib import Marginals, Matern, embed
    >>> inputs = Marginals([stats.norm(5.0, 2.0)])
    >>> kernel = embed(Matern(1.0), inputs).kernel
    >>> bool(kernel([[5.0]], [[7.0]]) == Matern(1.0)([[0.0]], [[1.0]]))
    True
    """

    kernel: Kernel
    inputs: Marginals
    _known: list[tuple[Array, Array]] = field(init=False, repr=False)  # points, and their maps

    def __init__(self, kernel: Kernel, inputs: Marginals):
        if not isinstance(inputs, Marginals):
            raise TypeError(f"inputs is of type {type(inputs).__name__}; it must be Marginals")
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "_known", [])

    @property
    def dim(self) -> int:
        """Dimension of the points, that of the inputs."""
        return self.inputs.dim

    def to_standard(self, x: ArrayLike) -> Array:
        """Standard coordinates of points x (n, d), shape (n, d)."""
        x = self.inputs.points_of(x)
        # What is remembered must not be written.
        found, known = recalled(self._known, x, lambda x: read_only(self.inputs.to_standard(x)))
        object.__setattr__(self, "_known", known)
        return found

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        return self.kernel(self.to_standard(x), self.to_standard(y))

    def diagonal(self, x: ArrayLike) -> Array:
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        return self.kernel.diagonal(self.to_standard(x))

    def gradient(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gradient of k(x_i, y_j) in x_i for x (n, d) and y (m, d), shape (n, m, d)."""
        slopes = self.inputs.slopes(x)
        return self.kernel.gradient(self.to_standard(x), self.to_standard(y)) * slopes[:, None, :]

    def with_gradient_dot(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, ArrayFunction]:
        """As ``Kernel.with_gradient_dot(x, y)``, from that of the kernel."""
        slopes = self.inputs.slopes(x)
        gram, dot = self.kernel.with_gradient_dot(self.to_standard(x), self.to_standard(y))
        return gram, lambda weights: slopes * dot(weights)

    def domain(self, dim: int) -> tuple[Array, Array]:
        """Lower and upper ends, each (dim,), of the box where the kernel is defined.

        A score does not change beyond the largest of float64: there this box ends.
        """
        lower, upper = self.inputs.from_standard(np.array(self.kernel.domain(dim)))
        return np.maximum(lower, -LONGEST), np.minimum(upper, LONGEST)
