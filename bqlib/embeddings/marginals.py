"""Embeddings for inputs in the units of the user: those of their standard coordinates."""

from bqlib.arrays import Array, ArrayFunction
from bqlib.embeddings.embedding import Embedding, embed, register
from bqlib.kernels import Kernel, OnStandard, ScaledKernel, Stein, SumKernel
from bqlib.marginals import Marginals


# The last three have embeddings with any target, which would be found first.
@register(object, Marginals)
@register(SumKernel, Marginals)
@register(ScaledKernel, Marginals)
@register(Stein, Marginals)
def any_kernel_marginals(kernel: Kernel, target: Marginals) -> Embedding:
    """The kernel acts in standard coordinates: see :func:`on_standard_marginals`."""
    return on_standard_marginals(OnStandard(kernel, target), target)


@register(OnStandard, Marginals)
def on_standard_marginals(kernel: OnStandard, target: Marginals) -> Embedding:
    """Kernel mean z(T x) for the map T to standard coordinates, and gradients by the chain rule.

    Costs as much as the embedding with ``target.standard``, and a map of each point.
    """
    if kernel.inputs is not target:
        raise ValueError(
            "this kernel acts in the standard coordinates of other Marginals; use it with those, "
            "or take the kernel that you made it from, which is its attribute `kernel`"
        )
    try:
        inner = embed(kernel.kernel, target.standard)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{error}. This is in the standard coordinates of Marginals, where the kernel acts: "
            "Uniform on [0, 1] for uniform inputs, a standard normal GaussianMixture for others"
        ) from None

    def with_gradient(x: Array) -> tuple[Array, Array]:
        mean, slopes = inner.kernel_mean_with_gradient(kernel.to_standard(x))
        return mean, slopes * target.slopes(x)

    return Embedding(
        kernel,
        target,
        lambda x: inner.kernel_mean(kernel.to_standard(x)),
        lambda x: inner.kernel_mean_gradient(kernel.to_standard(x)) * target.slopes(x),
        inner.prior_variance,
        with_gradient,
    )


def in_standard(embedding: Embedding) -> tuple[Embedding, ArrayFunction, ArrayFunction]:
    """The embedding in which descents move points, and the maps of points to it and back.

    For Marginals, points move in standard coordinates, where lengths are comparable. For all
    others, the embedding is the same, and so are the points.
    """
    kernel, target = embedding.kernel, embedding.target
    if isinstance(kernel, OnStandard) and isinstance(target, Marginals):
        return embed(kernel.kernel, target.standard), kernel.to_standard, target.from_standard
    return embedding, _same, _same


def _same(x: Array) -> Array:
    return x
