"""The map from the unit cube to a target, and what rules that make points of the cube share."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from bqlib.arrays import Array
from bqlib.candidates import Candidates
from bqlib.designs.design import Request
from bqlib.kernels import Kernel
from bqlib.marginals import Marginals
from bqlib.targets import GaussianMixture, Product, Target, Uniform


def cube_dim(target: Target, rule: str) -> int:
    """How many coordinates of the unit cube make one point; a TypeError if there is no map.

    `rule` is the name of the design, for the message.
    """
    match target:
        case Uniform() | Marginals():
            return target.dim
        case GaussianMixture():
            return target.dim + (len(target.weights) > 1)
        case Product():
            return sum(cube_dim(block, rule) for block in target.blocks)
    raise TypeError(
        f"{rule} cannot map the unit cube to {type(target).__name__}; it works for "
        "GaussianMixture, Uniform, Marginals and Product of these. For other targets use sbq or "
        "herding, which need a kernel"
    )


def from_cube(target: Target, cube: Array) -> Array:
    """Points of the open unit cube to points of the target, (n, cube dim) to (n, d)."""
    match target:
        case Uniform():
            return target.lower + (target.upper - target.lower) * cube
        case GaussianMixture():
            component = np.zeros(len(cube), dtype=int)
            if len(target.weights) > 1:
                cumulated = np.cumsum(target.weights)
                component = np.searchsorted(cumulated, cube[:, 0] * cumulated[-1], side="right")
            factors = np.linalg.cholesky(target.covariances)[component]
            normal = ndtri(cube[:, -target.dim :])
            return target.means[component] + np.einsum("nij,nj->ni", factors, normal)
        case Marginals():
            pairs = zip(target.marginals, cube.T, strict=True)
            return np.column_stack([marginal.ppf(column) for marginal, column in pairs])
        case Product():
            ends = np.cumsum([cube_dim(block, "") for block in target.blocks])
            parts = zip(target.blocks, np.split(cube, ends[:-1], axis=1), strict=True)
            return np.concatenate([from_cube(block, part) for block, part in parts], axis=1)
    raise AssertionError  # cube_dim has refused all others


def opened(cube: Array) -> Array:
    """Random points of the closed unit cube, of which those that rounding put on 0 or 1 are moved.

    There many targets have no quantile. None moves by more than 2^-53, the rounding of such sums.
    """
    return np.clip(cube, 2.0**-54, 1 - 2.0**-53)


def requires_map_of(
    rule: str, target: Target, kernel: Kernel, n: int, *, candidates: Candidates
) -> None:
    """Raise a TypeError if the target has no map from the unit cube."""
    cube_dim(target, rule)


def all_are_initial(request: Request, rule: str) -> bool:
    """Whether all points of a set are given. A ValueError if some are: a set is made as one."""
    given = len(request.initial)
    if 0 < given < request.n:
        raise ValueError(
            f"there are {given} initial points of n = {request.n}; {rule} makes a set of points "
            "and cannot start from given ones: leave out initial, or give all n"
        )
    return given == request.n
