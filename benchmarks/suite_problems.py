"""Write the problems of the benchmark suite: config/suites/bqbench-1.yaml and its targets.

A version of a problem is never changed: run this only to add problems, to make a new version of
one, or to take over records of the best MMD. Levels and best known values are those of a finished
run of the suite. Targets are drawn from seeded generators and rounded, so that the numbers do not
depend on the version of numpy once they are written.

Run: python benchmarks/suite_problems.py [results/suite]
"""

import json
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from pathlib import Path

import numpy as np
import xarray as xr
import yaml

from bqlib import embed, open_results
from bqlib.known_best import best_known_curve
from bqlib.suite.scores import scored_mmd
from bqlib.sweep.build import build_kernel, build_target
from bqlib.sweep.problems import SUITE

FOLDER = Path(__file__).parent.parent / "config" / "suites"
CHEN = FOLDER.parent / "targets" / "chen2010_mixture.json"
LEVELS = 51
LEAST = 1e-5  # of sqrt(V0): below it, the MMD has few digits in float64


def six_digits(value, rounding=ROUND_FLOOR):
    """A number to six digits: no first level is above sqrt(V0), no last one below the best MMD."""
    return float(Context(prec=6, rounding=rounding).create_decimal(float(value)))


def rounded(values, digits=2):
    return np.asarray(values).round(digits).tolist()


def mixture(components, dim, spread, seed):
    """Components with diagonal covariances, at means in a normal cloud of width `spread`."""
    rng = np.random.default_rng(seed)
    scales = rng.uniform(0.5, 1.0, size=(components, dim)).round(2)
    share = rng.uniform(1, 3, components)
    weights = (share / share.sum()).round(4)
    weights[-1] = round(1 - weights[:-1].sum(), 4)
    return {
        "family": "gaussian_mixture",
        "weights": weights.tolist(),
        "means": rounded(spread * rng.standard_normal((components, dim))),
        "covariances": [rounded(np.diag(row**2), 4) for row in scales],
    }


def normal(dim):
    return {
        "family": "gaussian_mixture",
        "weights": [1.0],
        "means": [[0.0] * dim],
        "covariances": [np.eye(dim).tolist()],
    }


def box(dim):
    return {"family": "uniform", "lower": [0.0] * dim, "upper": [1.0] * dim}


def rings(seed=1, size=1000):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, size)
    radius = np.where(rng.random(size) < 0.5, 1.0, 2.5) + 0.1 * rng.standard_normal(size)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def helix(seed=2, size=1000):
    rng = np.random.default_rng(seed)
    turn = 4 * np.pi * rng.random(size)
    spiral = np.stack([np.cos(turn), np.sin(turn), turn / (2 * np.pi) - 1], axis=1)
    return spiral + 0.05 * rng.standard_normal((size, 3))


def clusters(dim, seed, size=1000, centres=8):
    rng = np.random.default_rng(seed)
    middles = 2 * rng.standard_normal((centres, dim))
    return middles[rng.integers(centres, size=size)] + 0.5 * rng.standard_normal((size, dim))


def regression(dim=5, size=60, seed=5):
    """Features and labels of a logistic regression, the last feature being the constant one."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((size, dim)).round(2)
    features[:, -1] = 1
    truth = rng.standard_normal(dim)
    labels = rng.random(size) < 1 / (1 + np.exp(-features @ truth))
    return features.tolist(), labels.astype(int).tolist()


def files():
    """The targets that have files of their own, by name."""
    generator = "benchmarks/suite_problems.py of bqlib"
    data = {
        "rings": ("Points on two rings in the plane.", rings()),
        "helix": ("Points near a helix in three dimensions.", helix()),
        "clusters_10d": ("Eight clusters in ten dimensions.", clusters(10, 3)),
        "clusters_20d": ("Eight clusters in twenty dimensions.", clusters(20, 4)),
    }
    found = {
        name: {"family": "empirical", "about": about, "source": generator, "points": rounded(x, 3)}
        for name, (about, x) in data.items()
    }
    features, labels = regression()
    found["logistic_5d"] = {
        "family": "logistic_posterior",
        "about": "A logistic regression with five coefficients and sixty observations.",
        "source": generator,
        "features": features,
        "labels": labels,
        "deviation": 2.0,
    }
    found["chen2010"] = json.loads(CHEN.read_text("utf-8"))
    return found


def eq(lengthscale, scale="unit"):
    return {"family": "exponentiated_quadratic", "scale": scale, "shape": lengthscale}


def matern(nu, lengthscale):
    return {"family": "matern", "nu": nu, "shape": lengthscale}


def rq(lengthscale, alpha=1.0):
    return {"family": "rational_quadratic", "alpha": alpha, "shape": lengthscale}


def stein(lengthscale, constant=1.0):
    return {"family": "stein", "constant": constant, "shape": lengthscale}


def korobov(order):
    return {"family": "korobov", "order": order}


def sides(*ends):
    return {"source": "box", "box": [list(map(float, end)) for end in ends]}


def listed():
    """Name, target, kernel and what is special of the candidates, for each problem."""
    line, plane = mixture(3, 1, 2.0, 11), mixture(6, 2, 2.0, 15)
    space = mixture(5, 3, 1.5, 12)
    five, ten = mixture(5, 5, 1.5, 13), mixture(5, 10, 1.0, 14)
    coefficients = sides((-2.1, 0.6), (-0.5, 2.4), (-1.5, 1.5), (-1.8, 1.0), (-1.5, 1.0))
    return [
        ("chen2010_eq", "chen2010", eq(0.5, "density"), {"size": 10_000}),
        ("mixture_2d_matern12", plane, matern(0.5, 1.0), {}),
        ("mixture_2d_matern32", plane, matern(1.5, 1.0), {}),
        ("mixture_2d_matern52", plane, matern(2.5, 1.0), {}),
        ("mixture_2d_rq", plane, rq(1.0), {}),
        ("mixture_1d_eq", line, eq(0.3), {}),
        ("mixture_1d_matern32", line, matern(1.5, 1.0), {}),
        ("normal_1d_matern12", normal(1), matern(0.5, 1.0), {}),
        ("normal_2d_eq", normal(2), eq(1.0), {}),
        ("mixture_3d_eq", space, eq(1.0), {}),
        ("mixture_3d_matern52", space, matern(2.5, 2.0), {}),
        ("normal_5d_eq", normal(5), eq(2.0), {}),
        ("mixture_5d_matern32", five, matern(1.5, 3.0), {}),
        ("mixture_5d_rq", five, rq(2.0), {}),
        ("normal_10d_eq", normal(10), eq(3.0), {}),
        ("mixture_10d_matern52", ten, matern(2.5, 4.0), {}),
        ("normal_20d_eq", normal(20), eq(5.0), {}),
        ("normal_20d_matern32", normal(20), matern(1.5, 6.0), {}),
        ("box_1d_brownian", box(1), {"family": "brownian"}, {}),
        ("box_1d_bridge", box(1), {"family": "brownian_bridge"}, {}),
        ("box_1d_integrated", box(1), {"family": "integrated_brownian"}, {}),
        ("box_1d_korobov1", box(1), korobov(1), {}),
        ("box_1d_korobov3", box(1), korobov(3), {}),
        ("box_2d_korobov1", box(2), korobov(1), {}),
        ("box_2d_korobov2", box(2), korobov(2), {}),
        ("box_3d_korobov3", box(3), korobov(3), {}),
        ("box_2d_l2_star", box(2), {"family": "l2_star"}, {}),
        ("box_5d_l2_star", box(5), {"family": "l2_star"}, {}),
        ("box_2d_eq", box(2), eq(0.3), {}),
        ("box_2d_matern12", box(2), matern(0.5, 0.5), {}),
        ("box_3d_matern32", box(3), matern(1.5, 0.5), {}),
        ("box_5d_matern52", box(5), matern(2.5, 1.0), {}),
        ("box_3d_korobov2", box(3), korobov(2), {}),
        ("box_10d_matern52", box(10), matern(2.5, 1.0), {}),
        ("box_20d_eq", box(20), eq(1.5), {}),
        ("rings_eq", "rings", eq(0.5), {"size": 1000}),
        ("rings_matern32", "rings", matern(1.5, 1.0), {"size": 1000}),
        ("helix_matern52", "helix", matern(2.5, 1.0), {"size": 1000}),
        ("clusters_10d_eq", "clusters_10d", eq(3.0), {"size": 1000}),
        ("clusters_20d_rq", "clusters_20d", rq(5.0), {"size": 1000}),
        ("banana_stein", {"family": "banana", "bend": 0.5}, stein(1.0), sides((-4, 4), (-4, 8))),
        ("logistic_5d_stein", "logistic_5d", stein(1.0), coefficients),
    ]


def best_found(results):
    """Problem to rows (n, mmd, source) of the best of a run at each size, or of a formula."""
    if results is None:
        return {}
    curves = open_results(results)
    rules = [scored_mmd(curves.sel(algorithm=[rule])) for rule in curves.algorithm.values]
    mmd = xr.concat(rules, "algorithm").squeeze(["kernel", "lengthscale"], drop=True).min("seed")
    found = {}
    for name, own in json.loads(curves.attrs["config"])["problems"].items():
        here = mmd.sel(target=name)
        rows = []
        for n in own["sizes"]:
            at = here.sel(n=n)
            rule = at.idxmin("algorithm").item()
            rows.append({"n": n, "mmd": float(f"{at.min().item():.10g}"), "source": rule})
        found[name] = rows
    return found


def with_optima(name, target, kernel, rows):
    """The rows, with the MMDs of proven optima and of the best points that bqlib has."""
    known = best_known_curve(target, kernel)
    if known is None:
        return rows
    best = dict(zip(known[0].tolist(), known[1].tolist(), strict=True))
    for row in rows:
        if best.get(row["n"], np.inf) < row["mmd"] * (1 - 1e-9):
            row.update(mmd=float(f"{best[row['n']]:.10g}"), source="bqlib.best_known")
    return rows


def as_json(content):
    """A mapping as JSON, with a line for each key and for each row of a list."""
    lines = []
    for key, value in content.items():
        text = json.dumps(value)
        if isinstance(value, list) and isinstance(value[0], list):
            rows = ",\n  ".join(json.dumps(row) for row in value)
            text = f"[\n  {rows}\n ]"
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(results):
    contents = files()
    (FOLDER / "targets").mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = FOLDER / "targets" / f"{name}.json"
        path.write_text(as_json(content), "utf-8")
    found, problems, known = best_found(results), [], {}
    for name, target, kernel, special in listed():
        content = contents[target] if isinstance(target, str) else target
        objects = build_target(content)
        objects = objects, build_kernel(kernel, 1.0, objects)
        n = 400 if name == "chen2010_eq" else 128
        variance = float(embed(*reversed(objects)).prior_variance)
        rows = found.get(name) or [{"n": n, "mmd": 1e-3 * variance**0.5, "source": "none"}]
        known[name] = with_optima(name, *objects, rows)
        first, last = np.sqrt(variance), max(known[name][-1]["mmd"], LEAST * np.sqrt(variance))
        levels = np.geomspace(first, last, LEVELS)
        problems.append(
            {
                "name": name,
                "version": 1,
                "target": target,
                "kernel": kernel,
                "candidates": {"size": 5000} | special,
                "n": n,
                "prior_variance": variance,
                "levels": [*map(six_digits, levels[:-1]), six_digits(last, ROUND_CEILING)],
            }
        )
    head = f"# The problems of {SUITE}. benchmarks/suite_problems.py writes this file.\n"
    tree = {"suite": SUITE, "problems": problems, "best_known": known}
    text = yaml.safe_dump(tree, sort_keys=False, default_flow_style=None, width=110)
    (FOLDER / f"{SUITE}.yaml").write_text(head + text, "utf-8")


if __name__ == "__main__":
    write(sys.argv[1] if len(sys.argv) > 1 else None)
