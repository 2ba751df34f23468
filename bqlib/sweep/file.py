"""The sweep file: :func:`bqlib.sweep.file.load` reads it and names each problem with its line."""

import math
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from bqlib.candidates import Candidates
from bqlib.designs.design import is_point_set
from bqlib.schema import OF_PROBLEM
from bqlib.sweep import plugins, registry, shipped, yamlfile
from bqlib.sweep.blas import one_blas_thread
from bqlib.sweep.experiment import Experiment
from bqlib.sweep.keys import Reading, Sweep, SweepOfProblems
from bqlib.sweep.pairs import inapplicable, unworkable
from bqlib.sweep.problems import problems as problems_of_suite
from bqlib.sweep.values import Untitled
from bqlib.sweep.words import SweepError, problems_in
from bqlib.sweep.yamlfile import dotted

# Snakemake plans all jobs at once, and a job holds all curves of its seeds.
MOST_JOBS, MOST_SEEDS_PER_JOB = 1_000_000, 10_000


def load(path, shelf=None, folder=None):
    """Read and check a sweep file.

    Parameters
    ----------
    path : str or Path
        The YAML file.
    shelf : str or Path, optional
        Folder of named targets. Default: ``targets/`` beside the file if it is there, or the
        targets that come with bqlib.
    folder : str or Path, optional
        Where relative paths in the sweep start. Default: the folder of the file.

    Returns
    -------
    Experiment

    Raises
    ------
    SweepError
        With all problems.
    """
    path = Path(path)
    try:
        tree, lines, problems = yamlfile.read(path)
    except yamlfile.UnreadableError as error:
        raise SweepError(f"{path}:{error.line}: {error}") from None
    return checked(
        tree,
        path.parent if folder is None else Path(folder),
        shelf_of(path) if shelf is None else Path(shelf),
        lambda line: f"{path}:{line}",
        lines,
        problems,
    )


def checked(tree, folder, shelf, place, lines, problems=()):
    """Check a sweep that was read.

    Parameters
    ----------
    tree : dict
    folder, shelf : Path
        As in :func:`load`.
    place : callable
        The start of a message, from the number of a line.
    lines : dict
        Location, such as ``("kernels", "eq", 0)``, to the number of its line, for ``()`` at least.
    problems : sequence of (int, str), optional
        Line and message of what is wrong with it already.

    Returns
    -------
    Experiment

    Raises
    ------
    SweepError
        With all problems.
    """
    problems = list(problems)
    reading = Reading(folder, shelf)
    try:
        model = SweepOfProblems if "problems" in tree else Sweep
        # What is built to try it is tiny. On a busy machine, a second thread takes 0.3 s to come.
        with one_blas_thread():
            sweep = model.model_validate(tree, context=reading)
    except ValidationError as error:
        problems += [
            (_line(lines, loc), f"{dotted(loc)}: {text}") for loc, text in problems_in(error)
        ]
    except SystemExit as error:
        problems.append((1, f"a plug-in tried to end the program: {plugins.reason_of(error)}"))
    if problems:
        raise SweepError(
            *[f"{place(line)}: {' '.join(text.split())}" for line, text in sorted(set(problems))]
        )
    values = {key: tuple(v) if isinstance(v, list) else v for key, v in sweep}
    values["title"] = sweep.title or sweep.name
    if "problems" in tree:
        experiment = _of_problems(values)
        problems = _unfit(experiment)
    else:
        values["targets"] = {label: content for label, content, _ in sweep.targets}
        values["algorithms"] = _with_sizes(
            sweep.algorithms, values.pop("sizes") or usual_sizes(sweep.n)
        )
        experiment = Experiment(**values)
        problems = unworkable(experiment, reading.targets)
    if problems:
        raise SweepError(
            *[f"{place(_line(lines, loc))}: {dotted(loc)}: {text}" for loc, text in problems]
        )
    too_large = _too_large(experiment)
    if too_large:
        raise SweepError(f"{place(_line(lines, ('seeds',)))}: seeds: {too_large}")
    return experiment


def json_schema():
    """JSON Schema of a sweep file, for editors.

    It comes from the types by which :func:`load` checks. It allows all that :func:`load` takes, and
    refuses unknown keys, wrong types, and unknown names of families, rules and studies. Problems
    between keys, or in the numbers of a family, are found by :func:`load` alone.
    """
    grid = Sweep.model_json_schema(schema_generator=Untitled)
    for key in ("kernels", "integrands"):  # whose labels have the pattern of a label
        grid["properties"][key]["additionalProperties"] = False
    return {
        "$schema": Untitled.schema_dialect,
        "title": "A sweep of bqlib",
        "if": {"type": "object", "required": ["problems"]},
        "then": SweepOfProblems.model_json_schema(schema_generator=Untitled),
        "else": grid,
    }


def keys():
    """The names of all keys of a sweep file."""
    return list(Sweep.model_fields | SweepOfProblems.model_fields)


def shelf_of(path):
    """The folder of named targets of a sweep file: ``targets/`` beside it, or that of bqlib."""
    own = Path(path).parent / "targets"
    return own if own.is_dir() else shipped.TARGETS


def usual_sizes(n):
    """The sizes of sets in a sweep that names none: 5, 10, 20, 50, 100, ... below n, and n.

    Examples
    --------
    >>> from bqlib.sweep.file import usual_sizes
    >>> usual_sizes(400), usual_sizes(3)
    ((5, 10, 20, 50, 100, 200, 400), (3,))
    """
    powers = range(len(str(n)))
    return (*(s for p in powers for s in (10**p, 2 * 10**p, 5 * 10**p) if 5 <= s < n), n)


def _with_sizes(algorithms, sizes):
    """The algorithms; those whose points are a set with the sizes at which they are made."""
    return tuple(
        replace(one, sizes=sizes) if is_point_set(registry.find("design", one.design)) else one
        for one in algorithms
    )


def _of_problems(values):
    """The experiment of a sweep that lists problems: a target for each, with its own kernel."""
    known = problems_of_suite()
    listed = [known[name] for name in values["problems"]]
    settings = {problem.name: problem.settings() for problem in listed}
    sizes = sorted({size for own in settings.values() for size in own["sizes"]})
    experiment = Experiment(
        **values
        | {
            "algorithms": _with_sizes(values["algorithms"], tuple(sizes)),
            "problems": settings,
            "targets": {problem.name: problem.target for problem in listed},
        },
        kernels={OF_PROBLEM: {}},
        lengthscales=(1.0,),
        candidates=Candidates(),
        integrands={},
        n=max(problem.n for problem in listed),
    )
    return replace(experiment, inapplicable=inapplicable(experiment))


def _unfit(experiment):
    """What fits none of the problems, an algorithm or a window: location and message of each."""
    count, n = len(experiment.problems), experiment.n
    windows = [
        (("rate_windows", i), f"must end at n = {n} or before, not at {last}")
        for i, (_, last) in enumerate(experiment.rate_windows)
        if last > n
    ]
    return windows + [
        (
            ("algorithms", i),
            f"{one.name} works on none of the problems: "
            f"{next(iter(experiment.inapplicable[one.name].values()))}",
        )
        for i, one in enumerate(experiment.algorithms)
        if len(experiment.inapplicable.get(one.name, ())) == count
    ]


def _too_large(experiment):
    """Why a sweep is too large to be planned, or an empty text."""
    cells = math.prod(
        len(getattr(experiment, name)) for name in ("targets", "kernels", "lengthscales")
    ) * len(experiment.algorithms)
    jobs = cells * -(-experiment.seeds // experiment.seeds_per_job)
    if jobs > MOST_JOBS:
        return (
            f"{cells} cells with {experiment.seeds} seeds are {jobs} jobs, but a sweep can have at "
            f"most {MOST_JOBS}: use fewer seeds, or a larger seeds_per_job"
        )
    if min(experiment.seeds, experiment.seeds_per_job) > MOST_SEEDS_PER_JOB:
        return f"a job can have at most {MOST_SEEDS_PER_JOB} seeds: use a smaller seeds_per_job"
    return ""


def _line(lines, loc):
    """Line of a location, or of the smallest part around it that has a line."""
    while loc not in lines:
        loc = loc[:-1]
    return lines[loc]
