"""Embeddings: closed-form kernel means of (kernel, target) pairs.

One function for each pair, registered with :func:`register`; :func:`embed` finds it. A new pair
is one such function in the module of its kernel.
"""

from bqlib.embeddings import (  # noqa: F401  (each registers its pairs)
    algebra,
    empirical,
    exponentiated_quadratic,
    marginals,
    matern,
    rational_quadratic,
    stein,
    unit_cube,
)
from bqlib.embeddings.embedding import Embedding, embed, find, pairs, register
from bqlib.embeddings.empirical import DataMeans, data_means, with_data_means
from bqlib.embeddings.marginals import in_standard

__all__ = [
    "DataMeans",
    "Embedding",
    "data_means",
    "embed",
    "find",
    "in_standard",
    "pairs",
    "register",
    "with_data_means",
]
