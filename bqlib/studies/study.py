"""What a study is, how its results travel, and how they become a dataset."""

import io
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Study:
    """One study.

    Attributes
    ----------
    function : callable
        (target, kernel, candidates, n, seed), and with `plans` also (name to (design, weight
        rule)), to a dict of arrays: each of `variables`, and each of `coordinates`, which must not
        depend on the seed.
    seeds : int
        The largest number of seeds; a sweep with fewer seeds runs fewer.
    variables : dict
        Name to :class:`bqlib.schema.Variable`, its dims without the seed.
    coordinates : dict
        Name to (long name, units).
    precondition : callable, optional
        (target, kernel); raises a TypeError or ValueError if the study cannot run on them.
    plans : tuple of bqlib.sweep.spec.Algorithm
        The algorithms that `function` runs and does not name itself.
    """

    function: Callable
    seeds: int
    variables: dict
    coordinates: dict
    precondition: Callable = lambda target, kernel: None
    plans: tuple = ()

    def measure(self, target, kernel, candidates, n, seed):
        """The arrays of one seed."""
        given = target, kernel, candidates, n, seed
        if self.plans:
            given = *given, {plan.name: plan.build() for plan in self.plans}
        return self.function(*given)

    def dataset(self, results, attributes):
        """The dataset (xarray) of the results of seeds 0, 1, 2, ..., each as `measure` gave it."""
        import xarray as xr  # takes 0.8 s, and workers do not need it

        coords = {
            name: (name, _stored(results[0][name]), {"long_name": long_name, "units": units})
            for name, (long_name, units) in self.coordinates.items()
        }
        seed = {"long_name": "seed of the replication", "units": "1"}
        coords["seed"] = ("seed", np.arange(len(results)), seed)
        data = {
            name: (
                ("seed", *variable.dims),
                np.stack([result[name] for result in results]),
                {"long_name": variable.long_name, "units": variable.units},
            )
            for name, variable in self.variables.items()
        }
        return xr.Dataset(data, coords, attributes)


def pack(results):
    """Bytes of the results of all seeds, for :func:`unpack`."""
    packed = io.BytesIO()
    arrays = {
        f"{seed}/{name}": array
        for seed, result in enumerate(results)
        for name, array in result.items()
    }
    np.savez(packed, **arrays)
    return packed.getvalue()


def unpack(data):
    """The results of all seeds, a dict of arrays for each."""
    results = defaultdict(dict)
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        for key in arrays:
            seed, _, name = key.partition("/")
            results[int(seed)][name] = arrays[key]
    return [results[seed] for seed in sorted(results)]


def _stored(values):
    """Texts as objects, because some programs cannot read Zarr's fixed-length texts."""
    values = np.asarray(values)
    return values.astype(object) if values.dtype.kind == "U" else values
