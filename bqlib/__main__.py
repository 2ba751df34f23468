"""The command line: ``python -m bqlib COMMAND``."""

import argparse
import sys


def main(arguments=None):
    """Run one command; return its exit code."""
    parser = argparse.ArgumentParser(prog="bqlib", description="Helpers around sweeps.")
    commands = parser.add_subparsers(dest="command", required=True)
    validate = commands.add_parser("validate", help="check a sweep file and say what it asks for")
    validate.add_argument("sweep", help="the YAML file")
    validate.add_argument("--shelf", help="folder of named targets (default: targets/ beside it)")
    plan = commands.add_parser(
        "plan", help="count what a sweep has done, and estimate the cost of the rest"
    )
    plan.add_argument("sweep", help="the YAML file")
    plan.add_argument("--shelf", help="folder of named targets (default: targets/ beside it)")
    plan.add_argument("--workers", type=int, default=1, help="how many there will be (default: 1)")
    jobscript = commands.add_parser(
        "jobscript", help="print the script of the jobs that a run on a batch system would submit"
    )
    jobscript.add_argument("site", nargs="?", default="profiles/cluster/site.yaml")
    retry = commands.add_parser(
        "retry", help="delete the pieces with failed trials, so that the next run tries them again"
    )
    retry.add_argument("results", help="the experiment's folder, such as results/quick")
    claims = commands.add_parser(
        "claims", help="say what became of the paper's claims; 1 if an expectation is not met"
    )
    claims.add_argument("results", help="the experiment's folder, such as results/paper")
    chosen = vars(parser.parse_args(arguments))
    return globals()[f"_{chosen.pop('command')}"](**chosen)


def _validate(sweep, shelf):
    from bqlib.experiment import SweepError, load

    try:
        experiment = load(sweep, shelf)
    except SweepError as error:
        print(error, file=sys.stderr)
        return 1
    cells = len(experiment.cells())
    print(f"{sweep}: {cells} cells, {cells * experiment.seeds} trials; results/{experiment.name}")
    return 0


def _plan(sweep, shelf, workers):
    from pathlib import Path

    from bqlib.experiment import SweepError, load
    from bqlib.plan import plan, table

    try:
        experiment = load(sweep, shelf)
    except SweepError as error:
        print(error, file=sys.stderr)
        return 1
    table(plan(experiment, Path("results", experiment.name)), workers)
    return 0


def _jobscript(site):
    from bqlib.cluster import ClusterError, job_script, read_site

    try:
        print(job_script(read_site(site), "results/NAME").strip())
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _retry(results):
    from pathlib import Path

    from bqlib.timings import retry

    if not Path(results, "pieces").is_dir():
        print(f"there are no pieces in {results}: name a folder results/...", file=sys.stderr)
        return 1
    failed = retry(results)
    for piece, seed, reason in failed:
        print(f"{piece}: seed {seed} had failed: {reason}")
    print(
        f"{len(failed)} failed trials"
        + (": their pieces are deleted, and the next run computes them" if failed else "")
    )
    return 0


def _claims(results):
    from pathlib import Path

    from bqlib.claims import as_text, read

    try:
        claims, expectations, _ = read(Path(results, "claims.json").read_text(encoding="utf-8"))
    except OSError:
        print(
            f"there are no claims in {results}: name the folder of a sweep with the paper's "
            "settings, such as results/paper, after it has run",
            file=sys.stderr,
        )
        return 1
    print(as_text(claims, expectations), end="")
    return int(any(expectation.met is False for expectation in expectations))


if __name__ == "__main__":
    sys.exit(main())
