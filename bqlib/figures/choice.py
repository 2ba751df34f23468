"""Which figures a sweep gets, what each is drawn from and what it shows, without drawing any."""

from dataclasses import dataclass

from bqlib.analysis.papers import is_of_huszar2012
from bqlib.integrands import of_model


@dataclass(frozen=True)
class Figure:
    """A figure that a sweep may get, drawn by the function of its name in the module of its name.

    Attributes
    ----------
    name : str
        Its module in :mod:`bqlib.figures`, and its function there.
    datasets : tuple of str
        Stores below a folder of results, without their suffix: the arguments of the function.
    caption : str
        What it shows, in one sentence: for reports, and for those who cannot see it.
    number : int or None
        Number of the figure in Huszar and Duvenaud (2012) that it repeats.
    """

    name: str
    datasets: tuple[str, ...]
    caption: str
    number: int | None = None


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
    """
    names = ["mmd", "slopes"]
    several = len(experiment.lengthscales) > 1 or len(experiment.targets) > 1
    if experiment.rate_windows and several:
        names.append("rate_map")
    if any(algorithm.weights == "bq" for algorithm in experiment.algorithms):
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
    return tuple(FIGURES[name] for name in names)
