# What all rules share: the run, its sweep, and where results go.

from bqlib.integrands import of_model
from bqlib.published import is_the_papers
from bqlib.results.layout import Layout, block_name, head, piece_name
from bqlib.running.hooks import prepare
from bqlib.sweep.fingerprint import fingerprint
from bqlib.sweep.spec import Cell

RUN = prepare(workflow, config, shell)
EXPERIMENT = RUN.experiment
AT = Layout(RUN.paths.results)


def all_pieces(wildcards):
    cells, blocks = EXPERIMENT.cells(), EXPERIMENT.blocks()
    return [AT.piece(piece_name(cell, block)) for cell in cells for block in blocks]


def digest_of(wildcards):
    lengthscale = float(wildcards.lengthscale)
    cell = Cell(wildcards.target, wildcards.kernel, lengthscale, wildcards.algorithm)
    return EXPERIMENT.spec(cell).digest


def code_of(*places):
    """A param that changes with the code of some functions: their job then runs again."""
    return lambda wildcards: fingerprint(*places)


# The datasets that each figure is drawn from.
FIGURES = {"mmd": ["curves"], "slopes": ["curves"]}
if EXPERIMENT.rate_windows and (len(EXPERIMENT.lengthscales) > 1 or len(EXPERIMENT.targets) > 1):
    FIGURES["rate_map"] = ["rates"]
if any(algorithm.weights == "bq" for algorithm in EXPERIMENT.algorithms):
    FIGURES["weight_sum"] = ["curves"]
if of_model(EXPERIMENT.integrands, within=True):
    FIGURES |= {"within_model": ["curves"], "error_bound": ["curves", "function_errors"]}
if of_model(EXPERIMENT.integrands, within=False):
    FIGURES["out_of_model"] = ["curves"]


# Whether the sweep has the paper's settings, without which its claims cannot be judged. Some need
# studies too, and say so.
OF_THE_PAPER = {"sbq", "herding"} <= {
    algorithm.name for algorithm in EXPERIMENT.algorithms
} and any(
    is_the_papers(cell.target, EXPERIMENT.kernels[cell.kernel], cell.lengthscale)
    for cell in EXPERIMENT.cells()
)
if OF_THE_PAPER:
    FIGURES |= {"bq_illustration": [], "samples": ["curves"], "weight_histogram": ["curves"]}
for study in ("refinement", "kernel_choice", "submodularity"):
    if study in EXPERIMENT.studies:
        FIGURES[study] = [f"studies/{study}"]
if {"alternatives", "cost", "refinement"} <= set(EXPERIMENT.studies):
    FIGURES["accuracy_for_time"] = ["studies/alternatives", "studies/cost", "studies/refinement"]
