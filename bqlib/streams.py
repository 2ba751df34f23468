"""Named random streams: every draw depends on its purpose and its seed, and on nothing else."""

import hashlib

import numpy as np

_ENTROPY = 20120815  # one constant for every stream, so that a seed means the same everywhere


def stream(purpose: str, seed: int) -> np.random.Generator:
    """Generator for one purpose at one seed.

    Parameters
    ----------
    purpose : str
        What the numbers are for, such as ``"pool"`` or ``"design/iid"``.
    seed : int
        The replication, 0 or more.

    Returns
    -------
    numpy.random.Generator
        Statistically independent of the generator of any other (purpose, seed), and the same on
        every call, whatever else was drawn before and wherever it runs.
    """
    digest = hashlib.sha256(purpose.encode()).digest()[:16]
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence(_ENTROPY, spawn_key=(*words, seed)))
