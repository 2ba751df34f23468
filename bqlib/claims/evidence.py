"""The evidence that claims are judged by, and the records of the judgements."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from bqlib.analysis.cells import embedding_of, integrands_of
from bqlib.analysis.paper import papers_cell
from bqlib.over_seeds import p_different
from bqlib.rates import log_spaced, power_law
from bqlib.schema import OK

HOLDS = "holds"
CORRECTED = "holds with correction"
FAILS = "does not hold"
UNKNOWN = "cannot be checked"
VERDICTS = (HOLDS, CORRECTED, FAILS, UNKNOWN)
CHANCE = 0.001  # p-value below which chance is no excuse; among so many claims, 1 in 20 is likely


class MissingError(LookupError):
    """The results lack what a claim is judged by; the message says what is needed."""


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, and our verdict.

    Attributes
    ----------
    name, claim, where : str
        A label, what the paper says, and where.
    rule : str
        The verdict as a function of what is measured, in words.
    measured : str
        The numbers that the rule is about, with intervals over seeds if they have one.
    verdict : str
        One of `VERDICTS`.
    why : str
        What is right, and numbers beside which the verdict is to be read.
    paper : str
        Its key, as in :data:`bqlib.claims.PAPERS`.
    """

    name: str
    claim: str
    where: str
    rule: str
    measured: str
    verdict: str
    why: str
    paper: str


@dataclass(frozen=True)
class Expectation:
    """A number that a faithful reproduction must reach.

    Attributes
    ----------
    name, expected, measured : str
    met : bool or None
        None if the results lack what it is judged by; `measured` then says what is needed.
    paper : str
        Key of the paper whose experiments it is about, as in :data:`bqlib.claims.PAPERS`.
    """

    name: str
    expected: str
    measured: str
    met: bool | None
    paper: str


@dataclass(frozen=True)
class Check:
    """A claim or an expectation in words, and the function of the evidence that judges it."""

    name: str
    text: str
    where: str
    rule: str
    judge: Callable


def claim(where, text, rule):
    """Decorator: a function(evidence) -> (verdict, measured, why) becomes the check of a claim."""
    return lambda judge: Check(judge.__name__, text, where, rule, judge)


def expectation(text):
    """Decorator: a function(evidence) -> (met, measured) becomes the check of an expectation."""
    return lambda judge: Check(judge.__name__, text, "", text, judge)


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

    @property
    def seed(self):
        """The first seed: what is drawn for a claim belongs to it, as the curves to theirs."""
        return int(self.curves["seed"][0])

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
        (found,) = self.paired(variable, [algorithm], **labels)
        return found

    def paired(self, variable, algorithms, **labels):
        """A variable of some algorithms, for the seeds in which all of them ran, (A, S, n)."""
        absent = [name for name in algorithms if name not in self.curves["algorithm"].values]
        if absent:
            raise MissingError(f"needs the algorithm {', '.join(absent)}")
        selected = self.cell | {"algorithm": list(algorithms)}
        ran = (self.curves["status"].sel(selected) == OK).all("algorithm").values
        if not ran.any():
            raise MissingError(f"needs a seed of {', '.join(algorithms)} that ran")
        found = self.curves[variable].sel(selected | labels).transpose("algorithm", "seed", "n")
        return found.values[:, ran]

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


def iid_squares(evidence):
    """N MMD^2 / (k(x, x) - V0) of independent samples, mean over n in [20, 400], for each seed.

    Its expectation is one, exactly.
    """
    evidence.need(400)
    sizes = log_spaced(20, 400)
    squares = np.square(evidence.curve("mmd", "iid")[:, sizes - 1])
    embedding = evidence.embedding
    (height,) = embedding.kernel.diagonal(np.zeros((1, embedding.target.dim)))
    return (sizes * squares).mean(axis=1) / (height - embedding.prior_variance)


def iid_exponents(evidence):
    """Exponent of a power law on [20, 400] of independent samples, for each seed."""
    evidence.need(400)
    sizes = log_spaced(20, 400)
    return power_law(sizes, evidence.curve("mmd", "iid")[:, sizes - 1])["rate"]


def p_equal(values, bound):
    """p-value of the two-sided t test over seeds that the mean of `values` is `bound`."""
    if len(values) < 2:
        raise MissingError("needs 2 seeds")
    return float(p_different(np.asarray(values), bound))


def over_seeds(values):
    """Mean over seeds and the ends of its 95 % interval, by Student's t.

    A bootstrap of 5 seeds is too short: for normal values, its 95 % interval covers 92 %.

    Parameters
    ----------
    values : array_like, shape (S,)

    Returns
    -------
    mean, low, high : float

    Raises
    ------
    MissingError
        If there is one seed, or a seed has no value: no rule could be judged by that.

    Examples
    --------
    >>> from bqlib.claims.evidence import over_seeds
    >>> [round(float(end), 2) for end in over_seeds([1.0, 2.0, 3.0, 4.0, 5.0])]
    [3.0, 1.04, 4.96]
    """
    values = np.asarray(values, dtype=float)
    mean, seeds = values.mean(), len(values)
    if seeds < 2:
        raise MissingError("needs 2 seeds")
    if np.isnan(mean):
        raise MissingError("needs a value in every seed; a curve ends before the last n")
    half = -stdtrit(seeds - 1, 0.025) * values.std(ddof=1) / np.sqrt(seeds)
    return mean, mean - half, mean + half


def factor_over_seeds(values):
    """The same for positive values such as ratios of MMDs: their geometric mean, by their logs."""
    return tuple(np.exp(over_seeds(np.log(values))))


def said(numbers, digits=3):
    """A mean and the ends of its interval in words.

    Examples
    --------
    >>> from bqlib.claims.evidence import said
    >>> said((3.0, 1.04, 4.96), 1)
    '3.0 [1.0, 5.0]'
    """
    return "{0:.{3}f} [{1:.{3}f}, {2:.{3}f}]".format(*numbers, digits)


def interval(values, digits=3):
    """Mean over seeds with its 95 % interval, in words; without interval for one seed.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.claims.evidence import interval
    >>> interval([1.0, 2.0, 3.0, 4.0, 5.0], 1), interval([1.0], 1), interval([1.0, np.nan])
    ('3.0 [1.0, 5.0]', '1.0', '-')
    """
    return _said_over(over_seeds, values, digits)


def factor(values, digits=2):
    """Geometric mean over seeds with its 95 % interval, in words; without interval for one seed.

    Examples
    --------
    >>> from bqlib.claims.evidence import factor
    >>> factor([1.0, 10.0, 100.0], 0)
    '10 [0, 3049]'
    """
    return _said_over(factor_over_seeds, values, digits)


def _said_over(numbers, values, digits):
    if np.isnan(values).any():
        return "-"
    if len(values) < 2:
        return f"{values[0]:.{digits}f}"
    return said(numbers(values), digits)
