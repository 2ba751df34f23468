"""Embeddings under the Stein kernel: constant by construction."""

import numpy as np

from bqlib.embeddings.embedding import Embedding, register
from bqlib.embeddings.empirical import any_kernel_empirical
from bqlib.kernels import Stein
from bqlib.targets import Empirical, Target


@register(Stein, object)
def stein_any_target(kernel: Stein, target: Target) -> Embedding:
    """Kernel mean C everywhere, and V0 = C: the rest of the kernel has mean zero under p."""
    if kernel.target is not target:
        raise ValueError(
            "this Stein kernel belongs to another target; make it with Stein(target) from the same "
            "target object that you use it with"
        )
    constant = float(kernel.constant)
    return Embedding(
        kernel,
        target,
        lambda x: np.full(len(x), constant),
        lambda x: np.zeros(np.shape(x)),
        constant,
    )


register(Stein, Empirical)(any_kernel_empirical)
