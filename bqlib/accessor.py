"""What one does with a dataset of curves, as ``dataset.bq``.

:func:`bqlib.open_results` loads this module; for datasets that were opened by other means,
``import bqlib.accessor`` does. Each method is a function of bqlib with the dataset for its first
argument, and says no more than which.
"""

import xarray as xr

from bqlib import analysis, comparison


@xr.register_dataset_accessor("bq")
class Results:
    """Rates, comparisons and figures of a dataset of curves."""

    def __init__(self, dataset):
        self._dataset = dataset

    def rates(self, windows=None):
        """See :func:`bqlib.analysis.rates`."""
        return analysis.rates(self._dataset, windows)

    def crossover(self, one, other, quantity="mmd"):
        """See :func:`bqlib.comparison.crossover`."""
        return comparison.crossover(self._dataset, one, other, quantity)

    def points_needed(self, error, quantity="mmd"):
        """See :func:`bqlib.comparison.points_needed`."""
        return comparison.points_needed(self._dataset, error, quantity)

    def seconds(self, results):
        """See :func:`bqlib.comparison.trial_seconds`."""
        return comparison.trial_seconds(self._dataset, results)

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
        from bqlib.figures.curves import curves

        return curves(self._dataset, quantity, rows, columns)

    def heatmap(self, kind="rate", **options):
        """See :func:`bqlib.figures.heatmap.heatmap`."""
        from bqlib.figures.heatmap import heatmap

        return heatmap(self._dataset, kind, **options)
