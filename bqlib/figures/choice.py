"""The figures of a report: what each is drawn from, and what stands below it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A figure of a report.

    Attributes
    ----------
    name : str
        Also that of its module and function.
    datasets : tuple of str
        What it is drawn from.
    caption : str
    number : int or None
        The paper's own number of the figure, if it has one.
    """

    name: str
    datasets: tuple[str, ...]
    caption: str
    number: int | None


FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "samples",
            ("curves",),
            "The first 8 points of SBQ, sized by their weights, and the first 20 of herding.",
            1,
        ),
        Figure(
            "bq_illustration",
            (),
            "A function, its Gaussian process posterior from five values, and that of its "
            "integral.",
            2,
        ),
        Figure(
            "weight_histogram",
            ("curves",),
            "The BQ weights of 100 points of SBQ and of herding, with the published bars behind.",
            3,
        ),
        Figure(
            "weight_sum",
            ("curves",),
            "Sum of the BQ weights against n, a row for each target and kernel.",
            4,
        ),
        Figure(
            "mmd",
            ("curves",),
            "MMD against n, a panel for each target, kernel and length-scale.",
            5,
        ),
        Figure(
            "within_model",
            ("curves",),
            "Mean absolute error over functions within the model, a panel for each length-scale.",
            6,
        ),
        Figure(
            "error_bound",
            ("curves", "function_errors"),
            "Errors of single functions of norm one and their bound, a panel for each algorithm.",
            7,
        ),
        Figure(
            "out_of_model",
            ("curves",),
            "Mean absolute error over functions outside the model, a row for each cell.",
            8,
        ),
        Figure(
            "slopes",
            ("curves",),
            "Local slopes of the MMD and n MMD against n, a column for each length-scale.",
            None,
        ),
        Figure(
            "rate_map",
            ("rates",),
            "Rates a of MMD ~ n^-a in the sweep's first window, over its length-scales and "
            "targets.",
            None,
        ),
        Figure(
            "refinement",
            ("studies/refinement",),
            "MMD of SBQ with and without local optimisation, and what it gains.",
            None,
        ),
        Figure(
            "kernel_choice",
            ("studies/kernel_choice",),
            "Points selected at one length-scale, weighed at another and judged at a third; and "
            "the fit.",
            None,
        ),
        Figure(
            "submodularity",
            ("studies/submodularity",),
            "What greedy picks reach of the best of all sets on small pools, and two lower bounds "
            "on it.",
            None,
        ),
        Figure(
            "accuracy_for_time",
            ("studies/alternatives", "studies/cost", "studies/refinement"),
            "MMD against the CPU time that it takes, at the four largest numbers of points "
            "measured.",
            None,
        ),
    )
}
