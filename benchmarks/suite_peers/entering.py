"""What the adapters share: the problems for a peer, and its points as submissions.

An adapter runs twice. First in the environment of bqlib, where it collects the problems; then in
the environment of the peer, where its rules get them one by one; the points come back as a file.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np

HERE = Path(__file__).parent
POINTS_OF_PEER = "--points-of-peer"  # the second run


@dataclass(frozen=True)
class Rule:
    """A method of a peer.

    Attributes
    ----------
    method : str
        The label of the submission.
    points : callable
        Of a problem and an n: points (n, d), or (points, weights), or None where the rule cannot
        work. A problem has name, dim, n, sizes, seed, target, kernel, pool and scores.
    kind, weights : str
        As in ``submission.json``. Of a set, and with weights of its own, `points` is asked for each
        n in the problem's sizes; else for the largest.
    information : list of str
    seeds : int
        1 for a rule that is not random, and needs no pool.
    """

    method: str
    points: object
    kind: str
    weights: str
    information: list
    seeds: int = 5


def gaussian(problem):
    """Mean and standard deviations of a target that is one normal distribution, else None."""
    target = problem.target
    if target["family"] != "gaussian_mixture" or len(target["means"]) != 1:
        return None
    covariance = np.array(target["covariances"][0])
    if np.count_nonzero(covariance - np.diag(np.diagonal(covariance))):
        return None
    return np.array(target["means"][0]), np.sqrt(np.diagonal(covariance))


def from_unit_cube(problem, cube):
    """Points of the unit cube as points of a box or of a normal distribution, else None."""
    if problem.target["family"] == "uniform":
        lower, upper = problem.box
        return lower + (upper - lower) * cube
    normal = gaussian(problem)
    if normal is None:
        return None
    from scipy.special import ndtri

    mean, deviations = normal
    tiny = 2.0**-54
    return mean + deviations * ndtri(np.clip(cube, tiny, 1 - 2.0**-53))


def kernel_function(problem):
    """The kernel as a function of a point and many points, or None where only bqlib has it."""
    kernel = problem.kernel
    scale, family = kernel.get("shape"), kernel["family"]
    if family == "exponentiated_quadratic":
        return lambda y, x: np.exp(-np.square(x - y).sum(axis=1) / (2 * scale**2))
    if family == "rational_quadratic":
        alpha = kernel["alpha"]
        return lambda y, x: (1 + np.square(x - y).sum(axis=1) / (2 * alpha * scale**2)) ** -alpha
    if family == "matern":
        nu = kernel["nu"]

        def matern(y, x):
            rho = np.sqrt(2 * nu) * np.abs(x - y) / scale
            factor = {0.5: 1.0, 1.5: 1 + rho, 2.5: 1 + rho + rho**2 / 3}[nu]
            return np.prod(factor * np.exp(-rho), axis=1)

        return matern
    return None


def enter(peer, package, rules, citation, licence, code):
    """Run an adapter: write a submission of each rule into the folder that the command names."""
    if POINTS_OF_PEER in sys.argv:
        return _points(Path(sys.argv[-1]), package, rules)
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("folder", type=Path, help="where to write; a folder for each rule")
    parser.add_argument("--seeds", type=int, help="fewer seeds than the rules have")
    parser.add_argument("--rules", nargs="+", help="only these")
    parser.add_argument("--problems", nargs="+", help="only these")
    given = parser.parse_args()
    # The modules of the peers, and bqlib, which the second run has not.
    sys.path.insert(0, str(HERE.parent / "peers"))
    from environments import THREADS, python_of

    from bqlib.suite.submission import write_submission

    python = python_of(peer)
    if python is None:
        sys.exit(f"{package} could not be installed")
    for rule in [rule for rule in rules if not given.rules or rule.method in given.rules]:
        with tempfile.TemporaryDirectory() as place:
            seeds = min(rule.seeds, given.seeds or rule.seeds)
            _write_problems(Path(place), rule, seeds, given.problems)
            command = [python, sys.argv[0], rule.method, POINTS_OF_PEER, place]
            subprocess.run(command, env=os.environ | THREADS, check=True)
            made = json.loads((Path(place) / "made.json").read_text())
            with np.load(Path(place) / "points.npz") as arrays:
                sets = [
                    (name, seed, *(arrays[key] for key in keys))
                    for name, seed, keys in made["sets"]
                ]
        about = {
            "method": rule.method,
            "version": made["version"],
            "authors": [f"the authors of {package}, by an adapter of bqlib"],
            "citation": citation,
            "licence": licence,
            "code": code,
            "machine": f"{platform.system()} {platform.machine()}, one thread",
            "seconds": made["seconds"],
            "information": rule.information,
            "suite": "bqbench-1",
            "kind": rule.kind,
            "weights": rule.weights,
        }
        write_submission(given.folder / rule.method, about, sets)
        names = {name for name, *_ in sets}
        print(f"{given.folder / rule.method}: {len(names)} problems, {made['seconds']:.1f} s")


def _write_problems(place, rule, seeds, wanted):
    """Write what a rule may know of the problems, for the second run."""
    from bqlib.streams import stream
    from bqlib.sweep.problems import problems

    tasks, arrays = [], {}
    for name, problem in problems().items():
        if wanted and name not in wanted:
            continue
        target, _ = problem.build()
        for seed in range(seeds):
            task = {
                "name": name,
                "seed": seed,
                "dim": target.dim,
                "n": problem.n,
                "sizes": problem.sizes,
                "target": {} if problem.target["family"] == "empirical" else problem.target,
                "kernel": problem.kernel,
                "drawn": problem.candidates.source == "target",
            }
            task["target"] = task["target"] | {"family": problem.target["family"]}
            if "pool" in rule.information:
                pool = problem.candidates.draw(target, stream("candidates", seed))
                arrays[f"pool {name} {seed}"] = pool
                if "score" in rule.information and hasattr(target, "score"):
                    arrays[f"scores {name} {seed}"] = target.score(pool)
            if problem.target["family"] == "uniform":
                arrays[f"box {name} {seed}"] = np.array([target.lower, target.upper])
            tasks.append(task)
    (place / "tasks.json").write_text(json.dumps(tasks))
    np.savez(place / "given.npz", **arrays)


def _points(place, package, rules):
    """The second run: the points of the rule that the command names first."""
    (rule,) = (rule for rule in rules if rule.method == sys.argv[1])
    arrays, made, seconds = {}, [], 0.0
    with np.load(place / "given.npz") as given:
        for task in json.loads((place / "tasks.json").read_text()):
            at = f"{task['name']} {task['seed']}"
            own = {kind: given.get(f"{kind} {at}") for kind in ("pool", "scores", "box")}
            problem = SimpleNamespace(**task, **own)
            each = rule.kind == "set" or rule.weights == "own"
            for n in problem.sizes if each else [problem.n]:
                start = time.process_time()
                found = rule.points(problem, n)
                seconds += time.process_time() - start
                if found is None:
                    continue
                found = found if isinstance(found, tuple) else (found,)
                keys = [f"{at} {n} {i}" for i in range(len(found))]
                arrays |= dict(zip(keys, map(np.asarray, found), strict=True))
                made.append((problem.name, problem.seed, keys))
    np.savez(place / "points.npz", **arrays)
    content = {"version": version(package), "seconds": max(seconds, 1e-3), "sets": made}
    (place / "made.json").write_text(json.dumps(content))
