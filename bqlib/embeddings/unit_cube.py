"""Embeddings under the kernels on the unit cube, for the uniform distribution on it."""

import numpy as np

from bqlib.arrays import ArrayFunction
from bqlib.embeddings.embedding import Embedding, embed_by_blocks, register
from bqlib.kernels import (
    Brownian,
    BrownianBridge,
    IntegratedBrownian,
    Korobov,
    L2Star,
    UnitCubeKernel,
)
from bqlib.targets import Product, Uniform

# In one dimension: kernel mean, its derivative, prior variance.
FORMULAS: dict[type[UnitCubeKernel], tuple[ArrayFunction, ArrayFunction, float]] = {
    Brownian: (lambda x: x - x**2 / 2, lambda x: 1 - x, 1 / 3),
    BrownianBridge: (lambda x: x * (1 - x) / 2, lambda x: 0.5 - x, 1 / 12),
    IntegratedBrownian: (
        lambda x: x**2 / 4 - x**3 / 6 + x**4 / 24,
        lambda x: x / 2 - x**2 / 2 + x**3 / 6,
        1 / 20,
    ),
    L2Star: (lambda x: (1 - x**2) / 2, lambda x: -x, 1 / 3),
    Korobov: (np.ones_like, np.zeros_like, 1.0),
}


def unit_cube_uniform(kernel: UnitCubeKernel, target: Uniform) -> Embedding:
    """Kernel mean as a product of polynomials. O(n d) for n points."""
    if (target.lower != 0).any() or (target.upper != 1).any():
        raise ValueError(
            f"{type(kernel).__name__} is defined only on [0, 1]^d, but the target is another box: "
            "rescale the points, or use ExponentiatedQuadratic or Matern, which have an embedding "
            "on any box"
        )
    if target.dim > 1:
        return embed_by_blocks(kernel, target)
    mean, slope, prior_variance = next(f for t, f in FORMULAS.items() if isinstance(kernel, t))
    return Embedding(kernel, target, lambda x: mean(x[:, 0]), slope, prior_variance)


for kernel_type in FORMULAS:
    register(kernel_type, Uniform)(unit_cube_uniform)
register(UnitCubeKernel, Product)(embed_by_blocks)
