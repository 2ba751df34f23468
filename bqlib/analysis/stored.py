"""Rates of a dataset of curves, of which the stores of its experiments may hold some."""

from bqlib.analysis.fits import fit_rates, windows_of
from bqlib.results.layout import Layout, head, results_of
from bqlib.results.lazy import opened_from
from bqlib.results.store import open_dataset


def rates_in_one(dataset, window=None, known=()):
    """As :func:`rates`, in one window: by default the first of the sweep."""
    if window is None:
        window = next(iter(windows_of(dataset)), None)
    return rates(dataset, None if window is None else [window], known)


def rates(dataset, windows=None, known=()):
    """As :func:`bqlib.analysis.fits.fit_rates`, but fits nothing that a run has fitted.

    What it returns is the same, byte for byte, on the machine that ran the sweep; another machine
    may round in another way. A fit is taken from the ``rates.zarr`` of an experiment that the
    dataset was opened from. Its curves are known by their digest, and its code by a fingerprint:
    other values, seeds, windows or code are fitted.

    Raises
    ------
    DamagedError
        If a file of such a ``rates.zarr`` is damaged. One that is lost is fitted.
    ValueError
        As :func:`bqlib.analysis.fits.fit_rates` does.

    Notes
    -----
    The digests do not tell who wrote the rates. Someone who can write into the folder of results
    can change its rates as well as its curves.
    """
    beside = [Layout(results_of(store)).rates for store in opened_from(dataset)]
    stored = [open_dataset(store) for store in beside if head(store).exists()]
    return fit_rates(dataset, windows, [*known, *stored])
