"""Rates of convergence over length-scales, and over targets or algorithms."""

from bqlib.analysis.maps import map_of_rates
from bqlib.figures import heatmap


def rate_map(rates):
    """Rates a of MMD ~ n^-a in the sweep's first window, over its length-scales and targets.

    A cell is hatched if a power law does not fit best: its number is then a mean slope. A cell
    without a fit is white and says why.

    Parameters
    ----------
    rates : xarray.Dataset
        As :func:`bqlib.analysis.fits.fit_rates` gives it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return heatmap.draw(map_of_rates(rates))
