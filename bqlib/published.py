"""Published numbers, to compare with: those of two papers.

Curves of Huszar and Duvenaud (2012), and errors of Hayakawa, Oberhauser and Lyons (2022).
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from bqlib.arrays import Array

SHIFT = 29  # the figures of errors print n - 29 where n points were used


@cache
def _data(paper: str) -> dict[str, Any]:
    return json.loads(files("bqlib").joinpath(f"data/{paper}.json").read_text("utf-8"))


def curves(quantity: str) -> dict[str, tuple[Array, Array]]:
    """The published curves of one quantity.

    Parameters
    ----------
    quantity : {"mmd", "weight_sum", "within_model", "out_of_model", "bound"}

    Returns
    -------
    dict
        Algorithm to (n, value), two arrays of one length.

    Examples
    --------
    >>> from bqlib.published import curves
    >>> n, mmd = curves("mmd")["sbq"]
    >>> int(n[-1]), float(mmd[-1])
    (400, 0.0006732)
    """
    algorithms = _data("huszar2012")["curves"][quantity]["algorithms"]
    return {
        name: (np.array(curve["n"]), np.array(curve["value"])) for name, curve in algorithms.items()
    }


def histogram() -> list[tuple[float, float, int]]:
    """The published histogram of the 100 BQ weights of 100 points: (left, right, count) a bar.

    Examples
    --------
    >>> from bqlib.published import histogram
    >>> sum(count for _, _, count in histogram())
    100
    """
    return [tuple(bar) for bar in _data("huszar2012")["histogram"]["bars"]]


def sum_of_bars() -> float:
    """The sum of the 100 weights in the published histogram, each at the middle of its bar.

    Reading the bars leaves an error of up to 0.008.

    Examples
    --------
    >>> from bqlib.published import sum_of_bars
    >>> round(sum_of_bars(), 4)
    0.9405
    """
    return sum((left + right) / 2 * count for left, right, count in histogram())


def has_papers_settings(target: str, kernel: dict[str, Any], lengthscale: float) -> bool:
    """Whether a cell of a sweep has the settings of the published curves.

    Parameters
    ----------
    target : str
        Label of the target.
    kernel : dict
        Settings of the kernel, as in the sweep: its family, its scale and maybe a shape.
    lengthscale : float
    """
    paper = _data("huszar2012")
    return (
        target == paper["target"]
        and all(kernel.get(key) == value for key, value in paper["kernel"].items())
        and kernel.get("shape") in (None, 1)
        and lengthscale == paper["lengthscale"]
    )


def hayakawa2022(dim: int, order: int) -> dict[str, tuple[Array, Array, Array]]:
    """Published squared errors of recombination and others in a Korobov space.

    Parameters
    ----------
    dim, order : int
        Dimension of the unit cube, and order of the kernel: 1 and 1, 1 and 3, 2 and 1, or 3 and 3.

    Returns
    -------
    dict
        Method, under the name of our algorithm, to (n, mean, standard deviation), three arrays of
        one length. Mean and deviation are those of 50 squared errors. ``mercer`` and
        ``mercer_nonnegative`` are no rules of ours.

    Raises
    ------
    ValueError
        If nothing is published for this dimension and order.

    Examples
    --------
    >>> from bqlib.published import hayakawa2022
    >>> n, mean, deviation = hayakawa2022(2, 1)["recombination_10n"]
    >>> int(n[3]), float(mean[3]), float(deviation[3])
    (20, 0.48, 0.0654)
    """
    data = _data("hayakawa2022")
    for setting in data["settings"]:
        if (setting["d"], setting["s"]) == (dim, order):
            sizes = np.array(data["n"])
            return {
                name: (sizes, np.array(found["mean"]), np.array(found["sd"]))
                for name, found in setting["methods"].items()
            }
    published = ", ".join(f"{setting['d']} and {setting['s']}" for setting in data["settings"])
    raise ValueError(
        f"no numbers are published for dimension {dim} and order {order}; they are for {published}"
    )


def setting_of_hayakawa2022(
    target: dict[str, Any], kernel: dict[str, Any]
) -> tuple[int, int] | None:
    """Dimension and order of a cell of a sweep for which there are published errors, or None.

    Parameters
    ----------
    target, kernel : dict
        Settings as in the sweep: the family and its parameters.
    """
    lower, upper = (target.get(end) for end in ("lower", "upper"))
    if target.get("family") != "uniform" or kernel.get("family") != "korobov":
        return None
    dim, order = len(lower or ()), kernel.get("order", 1)
    known = [(setting["d"], setting["s"]) for setting in _data("hayakawa2022")["settings"]]
    unit = lower == [0] * dim and upper == [1] * dim
    return (dim, order) if unit and (dim, order) in known else None
