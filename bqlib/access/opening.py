"""Opening results: one experiment, or several as one dataset."""

import os
from collections.abc import Iterable
from pathlib import Path

import bqlib.access.accessor  # noqa: F401, as it registers .bq
from bqlib.results.merge import merge
from bqlib.results.store import find_curves, open_curves


def open_results(paths):
    """Open the curves of one experiment, or of several as one dataset.

    Parameters
    ----------
    paths : path-like, or sequence of path-like
        An experiment's folder of results, or the ``curves.zarr`` in it. Several are joined on the
        grid of all their labels, see :func:`bqlib.results.merge.merge`. Trials missing from all of
        them are NaN, with status 0.

    Returns
    -------
    xarray.Dataset
        Loaded lazily. Dimensions are target, kernel, lengthscale, algorithm, seed and n, and dim
        for points; with integrands also integrand and quantile; of several experiments with
        different pools also candidates. The ``long_name`` of each variable
        describes it. ``dataset.bq`` has rates, comparisons and figures, see
        :class:`bqlib.access.accessor.Results`.

    Raises
    ------
    FileNotFoundError
        If there are no curves at a path.
    TypeError
        If `paths` are not paths.
    DamagedError
        If a file of the curves is missing or damaged; also when values are read later.
    SchemaError
        If results were written by another schema version, or depart from the schema.
    bqlib.results.merge.MergeError
        If experiments contradict each other; the message lists every conflict.

    Notes
    -----
    Reads labels and attributes: O(N) time for N labels. It reads curves only if two experiments
    have the same trials.

    Examples
    --------
    After ``make run CONFIG=config/quick.yaml``, in the same folder:

    >>> import bqlib
    >>> curves = bqlib.open_results("results/quick")  # doctest: +SKIP
    >>> last = curves["mmd"].isel(n=-1).mean("seed").squeeze()  # doctest: +SKIP
    >>> bool((last.sel(algorithm="sbq") < last.sel(algorithm="herding")).all())  # doctest: +SKIP
    True
    """
    paths = [paths] if isinstance(paths, str | os.PathLike) else paths
    paths = list(paths) if isinstance(paths, Iterable) else [paths]
    if wrong := [path for path in paths if not isinstance(path, str | os.PathLike)]:
        raise TypeError(
            f"{wrong[0]!r:.80} is not a path: give a folder of results, such as "
            '"results/quick", or a list of them'
        )
    stores, problems = [], []
    for path in map(Path, paths):
        try:
            stores.append(find_curves(path))
        except FileNotFoundError as error:
            problems.append(str(error))
    if problems or not paths:
        raise FileNotFoundError("\n".join(problems) or "give at least one path")
    datasets = [open_curves(store) for store in stores]
    if len(datasets) == 1:
        return datasets[0]
    return merge(datasets, [str(path) for path in paths])
