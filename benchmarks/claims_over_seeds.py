"""Verdicts on the paper's claims for six sets of seeds, each with pools of its own.

Runs the paper's sweep at length-scale 0.5 for seeds 0 to 119, and its studies for the first seeds
of each set of 20, into FOLDER; what is there already is not run again. Prints the verdict of every
claim and the result of every reproduction check. Where it differs between sets, all of them and
what was measured, as for those that are NAMEd; if a verdict differs, it exits with 1. Takes hours,
most of them for joint refinement and costs.
Run: python benchmarks/claims_over_seeds.py FOLDER [NAME ...]
"""

import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from bqlib.access.opening import open_results
from bqlib.analysis.fits import fit_rates
from bqlib.claims import Evidence, evaluate
from bqlib.results.layout import piece_name
from bqlib.results.pieces import encode_piece
from bqlib.results.store import gather
from bqlib.studies.study import pack, unpack
from bqlib.sweep import registry
from bqlib.sweep.file import load

PAPER = Path(__file__).parent.parent / "config" / "paper.yaml"
SETS, SEEDS = 6, 20
MET = {True: "met", False: "not met", None: "not tested"}


def curves(experiment, folder):
    """The curves of all seeds."""
    for cell in experiment.cells():
        spec = experiment.spec(cell)
        for first, last in experiment.blocks():
            path = folder / "pieces" / piece_name(cell, (first, last))
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                seeds = range(first, last + 1)
                data = encode_piece(spec, seeds, [spec.run(seed)[0] for seed in seeds])
                path.write_bytes(data)
    gather(experiment, folder)
    return open_results(folder).compute()


def study(experiment, name, first, folder):
    """A study at the first seeds of a set, as many as it has."""
    spec = experiment.study(name)
    results = []
    for seed in range(first, first + spec.seeds):
        path = folder / "studies" / f"{name}-{seed}.npz"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pack([spec.run(seed)[0]]))
        results += unpack(path.read_bytes())
    return registry.find("study", name).dataset(results, spec.about())


def main(folder, shown):
    """Print the table, and say whether a verdict differs between sets."""
    paper = load(PAPER)
    experiment = replace(paper, seeds=SETS * SEEDS, lengthscales=paper.lengthscales[:1])
    everything = curves(experiment, folder)
    found = defaultdict(list)
    for first in range(0, SETS * SEEDS, SEEDS):
        own = everything.isel(seed=slice(first, first + SEEDS))
        studies = {name: study(experiment, name, first, folder) for name in experiment.studies}
        claims, checks = evaluate(Evidence(own, fit_rates(own), studies), ["huszar2012"])
        for claim in claims:
            found[claim.name].append((claim.verdict, claim.measured))
        for check in checks:
            found[check.name].append((MET[check.met], check.measured))
    differs = False
    for name, judged in found.items():
        words = {word for word, _ in judged}
        differs |= len(words) > 1
        print(f"{name:36}{' / '.join(sorted(words))}")
        if len(words) > 1 or name in shown:
            print("".join(f"    {word}: {measured}\n" for word, measured in judged), end="")
    return differs


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
