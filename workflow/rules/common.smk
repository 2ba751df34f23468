# What all rules share: the run, its sweep, and where results go.

from functools import cache

from bqlib.analysis.papers import papers_of
from bqlib.figures.choice import choose
from bqlib.report import template_files
from bqlib.results.layout import PIECE, Layout, block_name, head, piece_name
from bqlib.results.records import Step, digest
from bqlib.running.hooks import prepare
from bqlib.sweep.fingerprint import fingerprint

RUN = prepare(workflow, config, shell)
EXPERIMENT = RUN.experiment
AT = Layout(RUN.paths.results)


def all_pieces(wildcards):
    cells, blocks = EXPERIMENT.cells(), EXPERIMENT.blocks()
    return [AT.piece(piece_name(cell, block)) for cell in cells for block in blocks]


def made_by(script, *places, files=(), settings=None):
    """A param that changes with what a job is, apart from its inputs: it then runs again.

    That is its script, the code of some functions, files that they read, and settings.
    """
    files = [RUN.scripts / script, *files]
    found = cache(lambda: digest([fingerprint(*places, files=files), settings]))
    return lambda wildcards: found()


FIGURES = choose(EXPERIMENT)
PAPERS = papers_of(EXPERIMENT)  # whose claims are judged
