"""Which figures a sweep gets, what each is drawn from and what it shows, without drawing any."""

from dataclasses import dataclass, replace
from itertools import product

from bqlib.analysis.papers import is_of_huszar2012
from bqlib.figures import pages
from bqlib.integrands import of_model

MOST_PAGES = 12  # of a figure: nobody looks at more, and hours would go into them


@dataclass(frozen=True)
class Figure:
    """A figure that a sweep may get, or a page of it.

    Attributes
    ----------
    name : str
        Its module in :mod:`bqlib.figures`, and its function there; its further pages are called
        ``mmd-2``, ``mmd-3`` and so on.
    datasets : tuple of str
        Stores below a folder of results, without their suffix: the arguments of the function.
    caption : str
        What it shows, in one sentence: for reports, and for those who cannot see it.
    number : int or None
        Number of the figure in Huszar and Duvenaud (2012) that it repeats.
    page : int
        Which page it is of a figure of several.
    """

    name: str
    datasets: tuple[str, ...]
    caption: str
    number: int | None = None
    page: int = 1

    @property
    def drawn_by(self):
        """The name of its module and function: all pages of a figure have the same."""
        return self.name.removesuffix(f"-{self.page}")


FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "mmd",
            ("curves",),
            "Each curve shows the MMD, the distance of the weighted points from their target, "
            "against the number of points n.",
            number=5,
        ),
        Figure(
            "slopes",
            ("curves",),
            "The upper panels show how steeply the MMD falls at each n, and the lower panels show "
            "n times the MMD.",
        ),
        Figure(
            "rate_map",
            ("rates",),
            "The map shows how fast the MMD falls, as the rate a of n^-a, for each length-scale "
            "and each target or algorithm.",
        ),
        Figure(
            "profile",
            ("curves",),
            "The left panel shows the share of problems, levels and seeds that each rule solves "
            "within a budget, and the right panel how near it is to the best rule.",
        ),
        Figure(
            "versus",
            ("curves",),
            "The matrix shows on which share of problems, levels and seeds the rule of the row "
            "needs fewer points than that of the column.",
        ),
        Figure(
            "weight_sum",
            ("curves",),
            "Each curve shows the sum of the BQ weights against the number of points n.",
            number=4,
        ),
        Figure(
            "within_model",
            ("curves",),
            "Each curve shows the mean absolute error of integrals against the number of points n, "
            "for functions in the kernel's space.",
            number=6,
        ),
        Figure(
            "error_bound",
            ("curves", "function_errors"),
            "Thin lines show the errors of single functions of norm one, and lines with markers "
            "show their bound, the MMD.",
            number=7,
        ),
        Figure(
            "out_of_model",
            ("curves",),
            "The curves show the mean absolute error of integrals of functions outside the "
            "kernel's space; the last panel of each row shows the sum of the absolute weights.",
            number=8,
        ),
        Figure(
            "bq_illustration",
            (),
            "Bayesian quadrature gives a posterior of a function (left) and of its integral "
            "(right) from five values.",
            number=2,
        ),
        Figure(
            "samples",
            ("curves",),
            "The first points of SBQ, sized by their weights, and the first points of herding lie "
            "on the density of their target.",
            number=1,
        ),
        Figure(
            "weight_histogram",
            ("curves",),
            "The histograms show the BQ weights of points of SBQ (left) and of herding (right).",
            number=3,
        ),
        Figure(
            "refinement",
            ("studies/refinement",),
            "The left panel shows the MMD of SBQ with and without local optimisation, and the "
            "right panel shows the gain.",
        ),
        Figure(
            "kernel_choice",
            ("studies/kernel_choice",),
            "The upper panels show what a wrong length-scale costs, and the lower panels show what "
            "fitting it brings.",
        ),
        Figure(
            "submodularity",
            ("studies/submodularity",),
            "The curves compare greedy picks with the best of all sets on small pools, and show "
            "two lower bounds from theory.",
        ),
        Figure(
            "accuracy_for_time",
            ("studies/alternatives", "studies/cost", "studies/refinement"),
            "Each line shows the MMD of one algorithm against the CPU time that it takes.",
        ),
    )
}


def choose(experiment):
    """The figures that a sweep gets.

    Parameters
    ----------
    experiment : bqlib.sweep.experiment.Experiment

    Returns
    -------
    tuple of Figure
        Each with its pages in their order, but no more than :data:`MOST_PAGES`: the figures say of
        how many pages they are, and their functions draw any.
    """
    # The levels of a grid would be those of its own algorithms, and change with each new one.
    pairs = ["versus"] if len(experiment.algorithms) > 1 else []
    names = ["profile", *pairs, "mmd"] if experiment.problems else ["mmd", "slopes"]
    several = len(experiment.lengthscales) > 1 or len(experiment.targets) > 1
    if experiment.rate_windows and several:
        names.append("rate_map")
    if not experiment.problems and any(a.weights == "bq" for a in experiment.algorithms):
        names.append("weight_sum")
    if of_model(experiment.integrands, within=True):
        names.append("within_model")
        if any(algorithm.tells_prefixes for algorithm in experiment.algorithms):
            names.append("error_bound")
    if of_model(experiment.integrands, within=False):
        names.append("out_of_model")
    if is_of_huszar2012(experiment):
        names += ["bq_illustration", "samples", "weight_histogram"]
    for study in ("refinement", "kernel_choice", "submodularity"):
        if study in experiment.studies:
            names.append(study)
    if {"alternatives", "cost", "refinement"} <= set(experiment.studies):
        names.append("accuracy_for_time")
    return tuple(
        figure_named(name if page == 0 else f"{name}-{page + 1}")
        for name in names
        for page in range(min(_pages(name, experiment), MOST_PAGES))
    )


def figure_named(name):
    """A figure of :data:`FIGURES`, or a further page of it: ``"mmd-2"`` is the second page of mmd.

    Examples
    --------
    >>> from bqlib.figures.choice import figure_named
    >>> figure_named("mmd-2").page
    2
    """
    of, _, page = name.rpartition("-")
    if of not in FIGURES:
        return FIGURES[name]
    figure = FIGURES[of]
    return replace(figure, name=name, caption=f"{figure.caption} Page {page}.", page=int(page))


def _pages(name, experiment):
    """How many pages a figure of a sweep has."""
    lengthscales = experiment.lengthscales
    pairs = list(product(experiment.targets, experiment.kernels))
    match name:
        case "mmd":
            found, _ = pages.of_lengthscales(pairs, lengthscales)
        case "within_model":
            functions = of_model(experiment.integrands, within=True)
            groups = list(product(pairs, functions))
            found, _ = pages.of_lengthscales(groups, lengthscales, three=2)
        case "slopes":
            found, _ = pages.of_slopes(pairs, lengthscales)
        case "weight_sum":
            found = pages.of_rows(pairs, pages.ROWS)
        case "out_of_model":
            found = pages.of_rows(list(product(pairs, lengthscales)), pages.MOST_ROWS)
        case "error_bound":
            names = [one.name for one in experiment.algorithms if one.tells_prefixes]
            found, _ = pages.of_error_bound(names)
        case _:
            return 1
    return len(found)
