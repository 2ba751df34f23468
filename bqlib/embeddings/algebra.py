"""Embeddings of sums, scalings and products of kernels, from those of their parts."""

from collections import Counter

from bqlib.arrays import total
from bqlib.embeddings.embedding import Embedding, blocks_of, embed, product_of_parts, register
from bqlib.kernels import Kernel, OnCoordinates, ProductKernel, ScaledKernel, SumKernel
from bqlib.targets import Product, Target, Uniform


@register(SumKernel, object)
def sum_any_target(kernel: SumKernel, target: Target) -> Embedding:
    """Sums of the parts' kernel means and prior variances."""
    parts = [embed(part, target) for part in kernel.parts]
    return Embedding(
        kernel,
        target,
        lambda x: total(part.kernel_mean(x) for part in parts),
        lambda x: total(part.kernel_mean_gradient(x) for part in parts),
        sum(part.prior_variance for part in parts),
    )


@register(ScaledKernel, object)
def scaled_any_target(kernel: ScaledKernel, target: Target) -> Embedding:
    """The factor times the kernel's own mean and prior variance."""
    part = embed(kernel.kernel, target)
    return Embedding(
        kernel,
        target,
        lambda x: kernel.factor * part.kernel_mean(x),
        lambda x: kernel.factor * part.kernel_mean_gradient(x),
        kernel.factor * part.prior_variance,
    )


@register(OnCoordinates, Product)
@register(OnCoordinates, Uniform)
def on_coordinates_of_blocks(kernel: OnCoordinates, target: Product | Uniform) -> Embedding:
    """The embedding of the inner kernel for the blocks of the target that it uses."""
    seen, blocks = list(kernel.coordinates), []
    of_first = {own[0]: (own, block) for own, block in blocks_of(target)}
    while seen:
        own, block = of_first.get(seen[0], ([], target))
        if not own or seen[: len(own)] != own:
            raise ValueError(
                f"OnCoordinates uses the coordinates {kernel.coordinates}; it must use whole "
                f"blocks of the target, which are {[tuple(own) for own, _ in blocks_of(target)]}"
            )
        blocks.append(block)
        seen = seen[len(own) :]
    marginal = blocks[0] if len(blocks) == 1 else Product(blocks)
    parts = [(list(kernel.coordinates), embed(kernel.kernel, marginal))]
    return product_of_parts(kernel, target, parts)


@register(ProductKernel, Product)
@register(ProductKernel, Uniform)
def product_of_blocks(kernel: ProductKernel, target: Product | Uniform) -> Embedding:
    """Products over the factors, which must act on different coordinates."""
    seen = Counter(c for part in kernel.parts for c in _coordinates(part, target.dim))
    shared = sorted(c for c, factors in seen.items() if factors > 1)
    if shared:
        raise ValueError(
            "a product of kernels has a closed form only if its factors use different coordinates, "
            f"but here they share {shared}; put each factor in OnCoordinates"
        )
    everywhere = list(range(target.dim))
    parts = [(everywhere, embed(part, target)) for part in kernel.parts]
    return product_of_parts(kernel, target, parts)


def _coordinates(kernel: Kernel, dim: int) -> set[int]:
    """The coordinates that a kernel uses."""
    match kernel:
        case OnCoordinates():
            return set(kernel.coordinates)
        case ScaledKernel():
            return _coordinates(kernel.kernel, dim)
        case SumKernel() | ProductKernel():
            return set.union(*(_coordinates(part, dim) for part in kernel.parts))
        case _:
            return set(range(dim))
