"""Datasets in the form that the functions of xarray and pandas take: lazy ones, and in memory."""

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from bqlib.schema import SWEEP_DIMS, tables

# As h5py marks strings. Without the mark, xarray loads what it writes, and warns, to find out what
# the objects are.
TEXT = np.dtype(object, metadata={"vlen": str})


class _Opened(BackendEntrypoint):
    """Passes a dataset through ``xarray.open_dataset``, so that it behaves as one from a file.

    Values are kept once they are read, and can be assigned.
    """

    open_dataset_parameters = ("filename_or_obj", "drop_variables")

    def open_dataset(self, filename_or_obj, *, drop_variables=None):
        return filename_or_obj


def opened(dataset, stores):
    """A dataset of lazy arrays as one that ``xarray.open_dataset`` gives, from some stores."""
    found = xr.open_dataset(dataset, engine=_Opened)
    found.encoding["stores"] = tuple(stores)
    return found


def opened_from(dataset):
    """Paths of the stores that a dataset was opened from, if xarray has kept them.

    It keeps them in selections and drops them in many computations.
    """
    return dataset.encoding.get("stores", ())


def open_zarr(store):
    """Open a Zarr store as a dataset that all of xarray's functions take.

    Zarr gives texts as NumPy's StringDType, which many functions of xarray and pandas refuse. Here
    they are Python's strings: labels at once, and values when they are read. How the store packs
    its arrays is left behind, as other stores and other chunks need another packing.

    Parameters
    ----------
    store : zarr.storage.LocalStore

    Returns
    -------
    xarray.Dataset
        Loaded lazily.
    """
    # Values are kept once, as strings, and not as Zarr gives them too.
    dataset = xr.open_dataset(store, engine="zarr", consolidated=True, cache=False)
    plain = {}
    for name, variable in dataset.variables.items():
        if variable.dtype.kind == "T":
            lazy = indexing.LazilyIndexedArray(_Texts(variable))
            values = variable.values.astype(object) if name in dataset.indexes else lazy
            plain[name] = (variable.dims, values, variable.attrs)
    return opened(dataset.assign(plain).drop_encoding(), [str(store.root.absolute())])


def in_memory(arrays, labels, attributes):
    """A dataset of curves in the form in which stores are opened.

    Parameters
    ----------
    arrays : dict of ndarray
        As :func:`bqlib.results.codec.empty_arrays` makes them.
    labels : dict
        As :func:`bqlib.results.store.labels_of` gives them.
    attributes : dict
    """
    coordinates, variables = tables(errors="integrand" in labels)
    coords = {}
    for name, values in labels.items():
        texts = isinstance(values[0], str)
        array = np.array(values, dtype=object) if texts else np.asarray(values)
        coords[name] = (name, array, _about(*coordinates[name]))
    data = {}
    for name, variable in variables.items():
        texts = variable.dtype is object
        array = arrays[name].astype(TEXT) if texts else arrays[name]
        dims = (*SWEEP_DIMS, *variable.dims)
        data[name] = (dims, array, _about(variable.long_name, variable.units))
    return xr.Dataset(data, coords, attributes)


def _about(long_name, units):
    return {"long_name": long_name, "units": units}


class _Texts(BackendArray):
    """A variable of NumPy's texts as one of Python's strings, read when it is indexed."""

    dtype = TEXT

    def __init__(self, variable):
        self.variable, self.shape = variable, variable.shape

    def __getitem__(self, key):
        outer = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, outer, self._read)

    def _read(self, key):
        return np.asarray(self.variable[key].values).astype(TEXT)
