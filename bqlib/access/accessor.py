"""What one does with a dataset of curves, as ``dataset.bq``.

:func:`bqlib.open_results` loads this module. For datasets that were opened by other means,
``import bqlib.access.accessor`` does. Each method is a function of bqlib that takes the dataset
first, and its docstring names that function.
"""

import xarray as xr

from bqlib.analysis import comparison, fits, seconds


@xr.register_dataset_accessor("bq")
class Results:
    """Rates, comparisons and figures of a dataset of curves."""

    def __init__(self, dataset):
        self._dataset = dataset

    def rates(self, windows=None):
        """See :func:`bqlib.analysis.fits.fit_rates`."""
        return fits.fit_rates(self._dataset, windows)

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
        from bqlib.figures.curves import curves  # loads matplotlib, 0.4 s

        return curves(self._dataset, quantity, rows, columns)

    def heatmap(self, kind="rate", **options):
        """See :func:`bqlib.figures.heatmap.heatmap`."""
        from bqlib.figures.heatmap import heatmap  # as above, 0.4 s

        return heatmap(self._dataset, kind, **options)
