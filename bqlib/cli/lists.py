"""Commands that list the names that a sweep can use."""

from pathlib import Path

from bqlib.cli.command import AS_JSON, Command, NoAnswerError, ProblemError, print_json
from bqlib.results.text import aligned
from bqlib.running.settings import default_sweep
from bqlib.sweep import registry
from bqlib.sweep.plugins import without_folder


def targets(shelf, as_json):
    """Print the named targets, and the files among them that are not valid."""
    from bqlib.sweep.file import shelf_of  # 1.0 s
    from bqlib.sweep.targets import read_target

    if shelf is None:
        shelf = shelf_of(default_sweep())
    files = sorted(Path(shelf).glob("*.json"))
    if not files:
        raise NoAnswerError(f"{shelf}: no targets are there; give their folder with --shelf")
    rows, bad = [], []
    for file in files:
        try:
            content, target = read_target(file)
        except ValueError as error:
            bad.append(str(error))
            continue
        row = {"name": file.stem, "family": without_folder(content["family"]), "dim": target.dim}
        rows.append(row | {key: content.get(key, "") for key in ("about", "source")})
    if as_json:
        print_json(rows)
    elif rows:
        columns = ("name", "family", "dim")
        print(aligned([{key: row[key] for key in columns} for row in rows], ["dim"]))
        for row in rows:
            print(f"\n{row['name']}: {row['about']}\n  source: {row['source'] or 'not given'}")
    if bad:
        raise ProblemError("\n".join(bad))


def algorithms(as_json):
    """Print the algorithms, with what :mod:`bqlib.sweep.registry` says about each."""
    rows = [
        {
            "name": name,
            "design": design,
            "weights": weights,
            "cost": f"{registry.COSTS['design'][design]} + {registry.COSTS['weights'][weights]}",
            "makes": "a set" if design in registry.SETS else "a sequence",
            "points": registry.POINTS[design],
        }
        for name, (design, weights, *_) in registry.ALGORITHMS.items()
    ]
    if as_json:
        print_json(rows)
    else:
        print(aligned(rows))


def problems(as_json):
    """Print the problems of the benchmark suite."""
    from bqlib.sweep.problems import problems as problems_of_suite  # 0.4 s

    rows = []
    for name, problem in problems_of_suite().items():
        target, _ = problem.build()
        settings = {k: v for k, v in problem.kernel.items() if k not in ("family", "shape")}
        kernel = " ".join([problem.kernel["family"], *(f"{k}={v}" for k, v in settings.items())])
        row = {
            "problem": f"{name}@{problem.version}",
            "target": problem.target["family"],
            "dim": target.dim,
            "kernel": kernel,
            "length-scale": problem.kernel.get("shape", ""),
            "candidates": problem.candidates.size,
            "n": problem.n,
            "best known": problem.best_known[-1][1],
        }
        rows.append(row)
    if as_json:
        print_json(rows)
    else:
        right = ("dim", "length-scale", "candidates", "n", "best known")
        print(aligned([row | {"best known": f"{row['best known']:.3g}"} for row in rows], right))


COMMANDS = (
    Command(
        name="targets",
        run=targets,
        summary="list the named targets that a sweep can use",
        about=(
            "Lists the named targets with their family, dimension, description and source. Exits "
            "with 1 if a file is not a valid target."
        ),
        examples=("bqlib targets", "bqlib targets --json"),
        arguments=(
            (
                "--shelf",
                {
                    "help": "folder of named targets (default: config/targets, or bqlib's)",
                },
            ),
            AS_JSON,
        ),
    ),
    Command(
        name="problems",
        run=problems,
        summary="list the problems of the benchmark suite",
        about=(
            "Lists the problems of the benchmark suite that a sweep can name: their target, "
            "dimension, kernel, pool, largest number of points, and the smallest MMD known at it."
        ),
        examples=("bqlib problems", "bqlib problems --json | jq -r .[].problem"),
        arguments=(AS_JSON,),
    ),
    Command(
        name="algorithms",
        run=algorithms,
        summary="list the algorithms that a sweep can use",
        about=(
            "Lists the algorithms with their design, weights, cost, and one line on how they pick "
            "points. The cost covers a design and the weights for every number of points up to n, "
            "for M candidates in d dimensions. A sweep can also combine a design with other "
            "weights under a new name."
        ),
        examples=("bqlib algorithms", "bqlib algorithms --json | jq -r .[].name"),
        arguments=(AS_JSON,),
    ),
)
