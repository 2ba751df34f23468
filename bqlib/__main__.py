"""The command line: ``python -m bqlib validate SWEEP``."""

import argparse
import sys


def main(arguments=None):
    """Run one command; return its exit code."""
    parser = argparse.ArgumentParser(prog="bqlib", description="Helpers around sweeps.")
    commands = parser.add_subparsers(dest="command", required=True)
    validate = commands.add_parser("validate", help="check a sweep file and say what it asks for")
    validate.add_argument("sweep", help="the YAML file")
    validate.add_argument("--shelf", help="folder of named targets (default: targets/ beside it)")
    chosen = parser.parse_args(arguments)
    return _validate(chosen.sweep, chosen.shelf)


def _validate(path, shelf):
    from bqlib.experiment import SweepError, load

    try:
        experiment = load(path, shelf)
    except SweepError as error:
        print(error, file=sys.stderr)
        return 1
    cells = len(experiment.cells())
    print(f"{path}: {cells} cells, {cells * experiment.seeds} trials; results/{experiment.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
