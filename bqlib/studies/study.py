"""What a study is, and how its arrays become a dataset."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Study:
    """One study.

    Attributes
    ----------
    run : callable
        (target, kernel, candidates, n, seed) to a dict of arrays: each of `variables`, and each of
        `coordinates`, which must not depend on the seed.
    seeds : int
        The most seeds that it runs; a sweep with fewer runs fewer.
    variables : dict
        Name to :class:`bqlib.schema.Variable`, its dims without the seed.
    coordinates : dict
        Name to (long name, units).
    """

    run: Callable
    seeds: int
    variables: dict
    coordinates: dict

    def dataset(self, results, attributes):
        """The dataset (xarray) of the results of seeds 0, 1, 2, ..., each as `run` gave it."""
        import xarray as xr

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


def _stored(values):
    """Texts as objects: Zarr's fixed-length texts cannot be read everywhere."""
    values = np.asarray(values)
    return values.astype(object) if values.dtype.kind == "U" else values
