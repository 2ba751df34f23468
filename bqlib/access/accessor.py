"""Methods of a dataset of curves, as ``dataset.bq``.

:func:`bqlib.open_results` loads this module. If a dataset was opened by other means, load it with
``import bqlib.access.accessor``. Each method calls a function of bqlib with the dataset as its
first argument, and its docstring names that function.
"""

import xarray as xr

from bqlib.analysis import comparison, fits, seconds, stored


@xr.register_dataset_accessor("bq")
class Results:
    """Rates, comparisons and figures of a dataset of curves."""

    def __init__(self, dataset):
        self._dataset = dataset

    def rates(self, windows=None):
        """See :func:`bqlib.analysis.stored.rates`."""
        return stored.rates(self._dataset, windows)

    def rate_table(self, window=None):
        """See :func:`bqlib.analysis.fits.rate_table`; a window that was not fitted is."""
        found = self.rates(None if window is None else [window])
        return fits.rate_table(found, window)

    def crossover(self, one, other, quantity="mmd"):
        """See :func:`bqlib.analysis.comparison.crossover`."""
        return comparison.crossover(self._dataset, one, other, quantity)

    def points_needed(self, error, quantity="mmd"):
        """See :func:`bqlib.analysis.comparison.points_needed`."""
        return comparison.points_needed(self._dataset, error, quantity)

    def seconds(self, results):
        """See :func:`bqlib.analysis.seconds.trial_seconds`."""
        return seconds.trial_seconds(self._dataset, results)

    @property
    def plot(self):
        """Figures: :class:`Plot`."""
        return Plot(self._dataset)


class Plot:
    """Figures of a dataset of curves."""

    def __init__(self, dataset):
        self._dataset = dataset

    def curves(self, quantity="mmd", rows=None, columns=None):
        """See :func:`bqlib.figures.curves.curves`."""
        from bqlib.figures.curves import curves  # loads matplotlib, 0.6 s

        return curves(self._dataset, quantity, rows, columns)

    def heatmap(self, kind="rate", **options):
        """See :func:`bqlib.figures.heatmap.heatmap`."""
        from bqlib.figures.heatmap import heatmap  # loads matplotlib, 0.6 s

        return heatmap(self._dataset, kind, **options)
