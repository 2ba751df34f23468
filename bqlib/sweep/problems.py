"""The problems of the benchmark suite: a target with its kernel, pool and levels, never changed.

A problem is known by its name and version. Its hash covers all that its numbers depend on: another
number makes another version. The best MMDs known stand beside it, outside the hash.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache

from bqlib.candidates import Candidates
from bqlib.sweep import shipped, yamlfile
from bqlib.sweep.build import build_kernel, build_target

SUITE = "bqbench-1"
SET_SIZES = 4  # at how many n a set of points is made: each half of the next, the last is n


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes
    ----------
    name : str
        A label: in sweeps and results that of the target.
    version : int
    sha256 : str
        Of its definition: 64 hexadecimal digits.
    target : dict
        Content of a target file.
    kernel : dict
        Family and parameters. Its length-scale, if it has one, is its ``shape``.
    candidates : Candidates
        How each seed draws its pool.
    n : int
        Largest number of points.
    prior_variance : float
        V0, the MMD^2 of no points.
    levels : tuple of float
        MMDs to be reached, from sqrt(V0) down to the best one known when the version was made.
    best_known : tuple of (int, float, str)
        Number of points, MMD, and where it is from; in rising order of points.
    """

    name: str
    version: int
    sha256: str
    target: dict
    kernel: dict
    candidates: Candidates
    n: int
    prior_variance: float
    levels: tuple
    best_known: tuple = ()

    @property
    def sizes(self):
        """The n at which designs are made whose points are a set."""
        return tuple(self.n // 2**k for k in reversed(range(SET_SIZES)))

    def build(self):
        """The objects (target, kernel)."""
        target = build_target(self.target)
        return target, build_kernel(self.kernel, 1.0, target)

    def settings(self):
        """What a sweep and its results hold of the problem, besides its target."""
        return {
            "version": self.version,
            "sha256": self.sha256,
            "kernel": self.kernel,
            "candidates": asdict(self.candidates),
            "n": self.n,
            "sizes": list(self.sizes),
            "prior_variance": self.prior_variance,
            "levels": list(self.levels),
        }


@cache
def problems():
    """The problems of the suite by their names, in its order.

    Returns
    -------
    dict of str to Problem
    """
    return read_problems(shipped.SUITES / f"{SUITE}.yaml")


def read_problems(path):
    """The problems in a file of a suite, which is trusted.

    Parameters
    ----------
    path : Path
        Targets that the file names are in ``targets/`` beside it.
    """
    tree, _, _ = yamlfile.read(path)
    shelf, known = path.parent / "targets", tree["best_known"]
    found = {}
    for content in tree["problems"]:
        content = dict(content)
        if isinstance(content["target"], str):
            text = (shelf / f"{content['target']}.json").read_text("utf-8")
            content["target"] = json.loads(text)
        best = known.get(content["name"], ())
        found[content["name"]] = Problem(
            name=content["name"],
            version=content["version"],
            sha256=hash_of(content),
            target=content["target"],
            kernel=content["kernel"],
            candidates=Candidates(**content["candidates"]),
            n=content["n"],
            prior_variance=content["prior_variance"],
            levels=tuple(content["levels"]),
            best_known=tuple((row["n"], row["mmd"], row["source"]) for row in best),
        )
    return found


def hash_of(content):
    """sha256 of a problem's definition as canonical JSON: keys in order, no spaces."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
