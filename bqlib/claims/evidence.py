"""The evidence that claims are judged by, and the records of the judgements."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bqlib.analysis.cells import embedding_of, integrands_of
from bqlib.analysis.fits import worded
from bqlib.analysis.paper import papers_cell
from bqlib.rates import mean_interval
from bqlib.schema import OK

HOLDS = "holds"
CORRECTED = "holds with correction"
FAILS = "does not hold"
UNKNOWN = "cannot be checked"
VERDICTS = (HOLDS, CORRECTED, FAILS, UNKNOWN)


class MissingError(LookupError):
    """The results lack what a claim is judged by; the message says what is needed."""


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, and our verdict.

    Attributes
    ----------
    name, claim, where : str
        A label, what the paper says, and where.
    measured : str
        What we measured, with its interval if it has one.
    verdict : str
        One of `VERDICTS`.
    why : str
        One line.
    """

    name: str
    claim: str
    where: str
    measured: str
    verdict: str
    why: str


@dataclass(frozen=True)
class Expectation:
    """A number that a faithful reproduction must reach.

    Attributes
    ----------
    name, expected, measured : str
    met : bool or None
        None if the results lack what it is judged by; `measured` then says what is needed.
    """

    name: str
    expected: str
    measured: str
    met: bool | None


@dataclass(frozen=True)
class Check:
    """A claim or an expectation in words, and the function of the evidence that judges it."""

    name: str
    text: str
    where: str
    judge: Callable


def claim(where, text):
    """Decorator: a function(evidence) -> (verdict, measured, why) becomes the check of a claim."""
    return lambda judge: Check(judge.__name__, text, where, judge)


def expectation(text):
    """Decorator: a function(evidence) -> (met, measured) becomes the check of an expectation."""
    return lambda judge: Check(judge.__name__, text, "", judge)


def checks_of(names):
    """The checks among the names of a module, in their order."""
    return tuple(value for value in names.values() if isinstance(value, Check))


@dataclass(frozen=True, eq=False)
class Evidence:
    """The results of a sweep, with questions that raise a MissingError if they lack the answer.

    Attributes
    ----------
    curves, rates : xarray.Dataset
        As :func:`bqlib.open_results` and :func:`bqlib.analysis.fits.fit_rates` give them.
    studies : dict
        Name to dataset.
    """

    curves: object
    rates: object
    studies: dict

    @cached_property
    def cell(self):
        """Target, kernel and length-scale of the paper."""
        cell = papers_cell(self.curves)
        if cell is None:
            raise MissingError("needs the paper's target, kernel and length-scale")
        return cell

    @cached_property
    def embedding(self):
        return embedding_of(self.curves, self.cell)

    @cached_property
    def config(self):
        return json.loads(self.curves.attrs["config"])

    @property
    def size(self):
        """Number of candidates."""
        return self.config["candidates"]["size"]

    @property
    def n(self):
        return self.curves.sizes["n"]

    def need_full_size(self, seeds=5):
        """Raise a MissingError unless the pool, n and seeds allow a comparison with the paper."""
        pool = self.config["candidates"]
        papers = pool["size"] == 10_000 and pool["source"] == "target" and not pool["fresh"]
        if not papers or self.n < 400 or self.curves.sizes["seed"] < seeds:
            raise MissingError(f"needs the paper's pool of 10000, n = 400 and {seeds} seeds")

    def need(self, n):
        """Raise a MissingError if the curves end before n."""
        if self.n < n:
            raise MissingError(f"needs curves up to n = {n}; the sweep ends at {self.n}")

    def curve(self, variable, algorithm, **labels):
        """A variable at the paper's settings, for the seeds that ran, shape (S, n)."""
        if algorithm not in self.curves["algorithm"].values:
            raise MissingError(f"needs the algorithm {algorithm}")
        selected = self.cell | {"algorithm": algorithm}
        ran = self.curves["status"].sel(selected).values == OK
        if not ran.any():
            raise MissingError(f"needs a seed of {algorithm} that ran")
        found = self.curves[variable].sel(selected | labels).transpose("seed", "n")
        return found.values[ran]

    def integrands(self, within):
        """Labels of the test functions within the model, or of those out of model."""
        labels = integrands_of(self.curves, within=within)
        if not labels:
            raise MissingError(
                "needs test functions " + ("within" if within else "out of") + " model"
            )
        return labels

    def rate(self, algorithm, window="20-400"):
        """The fitted rates of an algorithm in a window."""
        if window not in self.rates["window"].values:
            raise MissingError(f"needs the window {window} of n")
        if algorithm not in self.rates["algorithm"].values:
            raise MissingError(f"needs the algorithm {algorithm}")
        found = self.rates.sel(self.cell | {"algorithm": algorithm, "window": window})
        if int(found["n_seeds"]) < 5:
            raise MissingError(f"needs 5 seeds of {algorithm} in the window {window}")
        return found

    def study(self, name):
        """The dataset of a study that ran at the paper's settings."""
        if name not in self.studies:
            raise MissingError(f"needs the study {name}, as in config/paper.yaml")
        found = self.studies[name]
        if any(found.attrs[key] != value for key, value in self.cell.items()):
            raise MissingError(f"needs the study {name} at the paper's length-scale")
        return found


def interval(values, digits=3):
    """Mean over seeds with its 95 % interval, in words.

    Examples
    --------
    >>> interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 1)
    '3.0 [1.2, 4.8]'
    >>> interval(np.array([1.0]), 1)
    '1.0'
    """
    values = np.asarray(values, dtype=float)
    if np.isnan(values).any():
        return "-"
    ends = zip(("", "_low", "_high"), mean_interval(values), strict=True)
    return worded({f"mean{end}": value for end, value in ends}, "mean", digits)
