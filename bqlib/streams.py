"""Random streams: named ones, and generators whose children follow from their state.

Every draw from a named stream depends on its purpose and its seed, and on nothing else.
"""

import hashlib
from typing import Any

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


class Spawning(np.random.Generator):
    """A generator whose children follow from its state.

    The children of numpy's own generators follow from their seed alone: from a generator that was
    used already they are those of a fresh one, and a generator that was put into its state, such
    as one that jumped, has a seed that has nothing to do with it. Here a generator that has drawn
    nothing when it is wrapped has numpy's children. The children of any other one are seeded by
    numbers that it draws for them.
    """

    def __init__(self, bit_generator: np.random.BitGenerator, fresh: bool | None = None):
        super().__init__(bit_generator)
        # Asked once: within one call, draws and children of a fresh generator may alternate.
        self._fresh = _holds_its_seed(bit_generator) if fresh is None else fresh

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Independent generators, others at each call."""
        children = self.seeded().bit_generator.spawn(n_children)
        return [Spawning(child, fresh=True) for child in children]

    def seeded(self) -> np.random.Generator:
        """A generator for code that uses numpy's children: this one, or one from its draws."""
        if self._fresh:
            return self
        words = self.integers(2**32, size=8, dtype=np.uint64).tolist()
        return Spawning(np.random.PCG64(np.random.SeedSequence(words)), fresh=True)


def _holds_its_seed(bit_generator: Any) -> bool:
    """Whether the state is the one that the seed gives, so that nothing was drawn since."""
    seed = getattr(bit_generator, "seed_seq", None)
    ours = type(bit_generator).__module__.startswith("numpy.")  # made from a seed alone
    if not (ours and isinstance(seed, np.random.SeedSequence)):
        return False
    anew = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    return _same(type(bit_generator)(anew).state, bit_generator.state)


def _same(state: Any, other: Any) -> bool:
    if isinstance(state, dict):
        return all(_same(state[key], other[key]) for key in state)
    return np.array_equal(state, other)
