"""Search for better points for the paper's problem, and keep the best in bqlib/data.

Joint designs from many starts: from SBQ on one pool a seed, and from plain draws, in turn. The file
keeps, for each n, the points with the least MMD that any run has found, so that a rerun only
improves it. All sizes with their default number of starts take about 20 minutes of CPU.
Run: python benchmarks/best_known.py [n ...] [--starts COUNT] [--first SEED]
"""

import argparse
import json
import re
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import bqlib
from bqlib.discrepancy import spectral_mmd2
from bqlib.streams import stream

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "config" / "targets" / "chen2010_mixture.json"
FILE = ROOT / "bqlib" / "data" / "best_known.json"
STARTS = {5: 20, 10: 40, 20: 200, 50: 600, 100: 200, 200: 20, 400: 4}
STEPS = {100: 3000, 200: 4000, 400: 15_500}  # others have the default
ABOUT = {
    "source": "Computed by benchmarks/best_known.py of bqlib: bqlib.joint from many starts. Each "
    "is the best that was found, which is no proof that no better one exists.",
    "licence": "As bqlib itself.",
}


def search(target, kernel, n, seed):
    """The joint design of one start: from SBQ for even seeds, from plain draws for odd ones."""
    size = n if seed % 2 else 10_000
    pool = bqlib.Candidates(size).draw(target, stream("candidates", seed))
    steps = STEPS.get(n)
    return bqlib.joint(target, kernel, n, rng=seed, candidates=pool, iterations=steps)


def keep(n, mmd, points):
    """Write the points of one size, if the file has no better ones."""
    known = json.loads(FILE.read_text()) if FILE.exists() else {"designs": {}}
    if known["designs"].get(str(n), {"mmd": np.inf})["mmd"] <= mmd:
        return False
    known["designs"][str(n)] = {"mmd": mmd, "points": points.tolist()}
    sizes = sorted(map(int, known["designs"]))
    designs = {str(size): known["designs"][str(size)] for size in sizes}
    text = json.dumps(ABOUT | {"target": numbers_of_target(), "designs": designs}, indent=1)
    on_one_line = re.sub(r"\[[^][{}]+\]", lambda found: " ".join(found[0].split()), text)
    FILE.write_text(on_one_line.replace("[ ", "[").replace(" ]", "]") + "\n", newline="\n")
    return True


def numbers_of_target():
    numbers = json.loads(TARGET.read_text())
    return {key: numbers[key] for key in ("weights", "means", "covariances")}


def main(sizes, starts, first):
    target = bqlib.GaussianMixture(**numbers_of_target())
    kernel = bqlib.ExponentiatedQuadratic(0.5, scale="density")
    for n in sizes or STARTS:
        for seed in range(first, first + (starts or STARTS.get(n, 1))):
            begun = time.process_time()
            design = search(target, kernel, n, seed)
            if len(design.points) < n:
                continue
            mmd = float(np.sqrt(spectral_mmd2(design.embedding, design.points, design.weights)))
            better = keep(n, mmd, design.points)
            seconds = time.process_time() - begun
            print(
                f"n {n:4} seed {seed:4} MMD {mmd:.10g} in {seconds:6.1f} s"
                + ("  best" if better else ""),
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int)
    parser.add_argument("--starts", type=int)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    with threadpool_limits(1):
        main(given.sizes, given.starts, given.first)
