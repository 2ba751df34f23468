"""Methods of a dataset of curves, as ``dataset.bq``.

:func:`bqlib.open_results` loads this module. If a dataset was opened by other means, load it with
``import bqlib.access.accessor``. Each method calls a function of bqlib with the dataset as its
first argument, and its docstring names that function.
"""

import xarray as xr

from bqlib.analysis import comparison, fits, profiles, seconds, stored
from bqlib.schema import sizes_of_sets


@xr.register_dataset_accessor("bq")
class Results:
    """Rates, comparisons and figures of a dataset of curves."""

    def __init__(self, dataset):
        self._dataset = dataset
        self._fitted = {}  # rates by their windows: each is fitted once, for tables and maps too

    def rates(self, windows=None):
        """Rates of convergence in each window, with intervals and verdicts, as a dataset.

        `windows` is a list of (first, last); by default those of the sweep. Fits take some 5 ms for
        each cell and window, and are made once for each dataset. See
        :func:`bqlib.analysis.stored.rates`.
        """
        return self._kept(stored.rates(self._dataset, windows, self._fitted.values()))

    def _rates_in_one(self, window):
        return self._kept(stored.rates_in_one(self._dataset, window, self._fitted.values()))

    def _kept(self, rates):
        self._fitted[tuple(rates["window"].values.tolist())] = rates
        return rates.copy(deep=True)

    def rate_table(self, window=None):
        """Rates in one window (first, last), by default the first of the sweep, as a table.

        If the verdict is not ``power_law``, the rate is only the mean slope of the curve. Takes as
        long as :meth:`rates`. See :func:`bqlib.analysis.fits.rate_table`.
        """
        return fits.rate_table(self._rates_in_one(window), window)

    def crossover(self, one, other, quantity="mmd"):
        """How many points of `one` are as good as n points of `other`, in each seed.

        See :func:`bqlib.analysis.comparison.crossover`.
        """
        return comparison.crossover(self._dataset, one, other, quantity)

    def points_needed(self, error, quantity="mmd"):
        """The n at which each trial reaches `error` in a quantity.

        See :func:`bqlib.analysis.comparison.points_needed`.
        """
        return comparison.points_needed(self._dataset, error, quantity)

    def points_to_levels(self, levels=None):
        """The n at which each trial reaches each of the `levels` of its problem.

        See :func:`bqlib.analysis.profiles.points_to_levels`.
        """
        return profiles.points_to_levels(self._dataset, levels)

    def profile(self, levels=None, *, budgets=None, factors=None, seconds=None):
        """Data profile, performance profile and average runtime of each algorithm.

        `levels` are MMDs, `budgets` are n/d, `factors` are those of the best algorithm, and
        `seconds` take the place of points. See :func:`bqlib.analysis.profiles.profile`.
        """
        chosen = {"budgets": budgets, "factors": factors, "seconds": seconds}
        return profiles.profile(self._dataset, levels, **chosen)

    def versus(self, levels=None, *, seconds=None):
        """Wins, ties and losses of each pair of algorithms, and the ratios of their points.

        `levels` and `seconds` are as in :meth:`profile`. See
        :func:`bqlib.analysis.profiles.versus`.
        """
        return profiles.versus(self._dataset, levels, seconds=seconds)

    def seconds(self, results):
        """Seconds of each trial, from the folder of results of a run.

        See :func:`bqlib.analysis.seconds.trial_seconds`.
        """
        return seconds.trial_seconds(self._dataset, results)

    @property
    def sets(self):
        """The algorithms whose points are sets, with the n at which they were made.

        See :func:`bqlib.schema.sizes_of_sets`.
        """
        known = sizes_of_sets(self._dataset)
        here = set(self._dataset["algorithm"].values.ravel().tolist())
        n = set(self._dataset["n"].values.ravel().tolist())
        return {
            name: tuple(size for size in sizes if size in n)
            for name, sizes in known.items()
            if name in here
        }

    @property
    def plot(self):
        """Figures: :class:`Plot`."""
        return Plot(self._dataset, self._rates_in_one)


class Plot:
    """Figures of a dataset of curves."""

    def __init__(self, dataset, rates_in_one):
        self._dataset = dataset
        self._rates_in_one = rates_in_one

    def curves(self, quantity="mmd", rows=None, columns=None):
        """A quantity against n, with a panel for each label of `rows` and `columns`.

        See :func:`bqlib.figures.curves.curves`.
        """
        from bqlib.figures.curves import curves  # loads matplotlib, 0.6 s

        return curves(self._dataset, quantity, rows, columns)

    def heatmap(
        self, kind="rate", *, n=None, error=None, seconds=None, window=None, quantity="mmd",
        x=None, y=None, rows=None, columns=None,
    ):  # fmt: skip
        """A number for each cell: in panels over two dimensions `x` and `y` of the sweep.

        The two others, `rows` and `columns`, have a row and a column of panels for each label.

        The kinds are "rate" (in a `window`), "error" (at `n`), "points" (for an `error`) and
        "seconds" (for an `error`, from `seconds`). See :func:`bqlib.figures.heatmap.heatmap`.
        """
        from bqlib.figures.heatmap import heatmap  # loads matplotlib, 0.6 s

        chosen = {"n": n, "error": error, "seconds": seconds, "window": window}
        if kind == "rate":
            chosen["rates"] = self._rates_in_one(window)
        places = {"x": x, "y": y, "rows": rows, "columns": columns}
        return heatmap(self._dataset, kind, quantity=quantity, **places, **chosen)

    def profile(self, levels=None, *, seconds=None, highlight=None):
        """Shares of problems solved, against budgets and against factors of the best algorithm.

        `levels` and `seconds` are as in :meth:`Results.profile`, and `highlight` names the
        algorithms in strong lines. See :func:`bqlib.figures.profile.draw`.
        """
        from bqlib.figures.profile import draw  # loads matplotlib, 0.6 s

        return draw(profiles.profile(self._dataset, levels, seconds=seconds), highlight)

    def versus(self, levels=None, *, kind="wins", seconds=None):
        """A matrix of all pairs of algorithms, of the kind "wins" or "ratio".

        `levels` and `seconds` are as in :meth:`Results.versus`. See
        :func:`bqlib.figures.versus.draw`.
        """
        from bqlib.figures.versus import draw  # loads matplotlib, 0.6 s

        return draw(profiles.versus(self._dataset, levels, seconds=seconds), kind)
