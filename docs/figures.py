"""Draw the figures of these pages in docs/images. Run: python docs/figures.py [NAME...]"""

import json
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import bqlib
from bqlib import (
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Korobov,
    Matern,
    Product,
    RationalQuadratic,
    Stein,
    Uniform,
    Unnormalised,
    embed,
    mmd,
)
from bqlib.discrepancy import mmd2_of_prefixes
from bqlib.figures.style import algorithm_name, ours, save
from bqlib.weights import bq, nonnegative, simplex, sum_to_one, uniform

HERE = Path(__file__).parent
CHEN2010 = HERE.parent / "config" / "targets" / "chen2010_mixture.json"
INK, BLUE, ORANGE, GREEN, PINK = "#222222", "#0072B2", "#D55E00", "#009E73", "#CC79A7"


def paper_mixture():
    numbers = json.loads(CHEN2010.read_text())
    return GaussianMixture(*(numbers[key] for key in ("weights", "means", "covariances")))


def grid(lower, upper, size=160):
    axes = [np.linspace(a, b, size) for a, b in zip(lower, upper, strict=True)]
    return axes, np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def contours(axes, density, lower, upper):
    (u, v), points = grid(lower, upper)
    values = density(points).reshape(len(v), len(u))
    levels = values.max() * np.array([0.02, 0.1, 0.3, 0.6, 0.9])
    axes.contour(u, v, values, levels=levels, colors="#b8c4cc", linewidths=0.8)
    axes.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), xticks=[], yticks=[])
    bare(axes)


def bare(axes):
    axes.set_aspect("equal")
    axes.grid(False)
    axes.spines[:].set_visible(False)


def kernels():
    """The kernels as functions of distance, and random functions that vary as each says."""
    drawn = [
        ("exponentiated quadratic", ExponentiatedQuadratic(1.0), INK),
        ("Matérn 5/2", Matern(1.0, nu=2.5), BLUE),
        ("Matérn 1/2", Matern(1.0, nu=0.5), ORANGE),
        ("rational quadratic, alpha = 1/2", RationalQuadratic(1.0, alpha=0.5), GREEN),
    ]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.6])
    distance, x = np.linspace(0, 5, 400)[:, None], np.linspace(0, 10, 500)[:, None]
    normal = np.random.default_rng(3).standard_normal(len(x))
    for i, (name, kernel, color) in enumerate(drawn):
        left.plot(distance[:, 0], kernel(distance, [[0.0]])[:, 0], color=color, label=name)
        # The same random numbers for all, along the eigenvectors of each.
        values, vectors = np.linalg.eigh(kernel(x, x))
        vectors *= np.sign(vectors.sum(axis=0))
        path = vectors[:, ::-1] @ (np.sqrt(np.maximum(values[::-1], 0)) * normal)
        right.plot(x[:, 0], path - 5.5 * i, color=color, linewidth=1)
    left.set(title="Kernels of length-scale 1", xlabel="distance", ylabel="k", ylim=(0, 1.02))
    left.legend(fontsize=8.5)
    right.set(title="A function drawn from each", xlabel="x", yticks=[])
    return figure


def targets():
    """A mixture, a box, a product, a data set, and a density without its constant."""
    rng = np.random.default_rng(0)
    mixture = GaussianMixture(
        [0.4, 0.6], [[-1.1, -0.7], [0.9, 0.7]], [[[0.6, 0.4], [0.4, 0.5]], np.diag([0.4, 0.7])]
    )
    box = Uniform([-2.0, -1.5], [2.0, 1.5])
    product = Product([GaussianMixture([1.0], [[0.0]], [[[1.0]]]), Uniform([-1.5], [1.5])])
    turn = rng.uniform(0, 2 * np.pi, 300)
    data = np.column_stack([2 * np.cos(turn), 1.6 * np.sin(turn)])
    data += 0.25 * rng.standard_normal((300, 2))

    def bend(x):
        return x[:, 1] - 0.6 * x[:, 0] ** 2 + 1

    banana = Unnormalised(
        2,
        log_density=lambda x: -0.5 * x[:, 0] ** 2 - 2 * bend(x) ** 2,
        score=lambda x: np.column_stack([-x[:, 0] + 4.8 * x[:, 0] * bend(x), -4 * bend(x)]),
    )
    figure = Figure(figsize=(9, 2.1), layout="constrained")
    panels = figure.subplots(1, 5)
    lower, upper = (-3.2, -3.2), (3.2, 3.2)
    for axes, target in zip(panels, (mixture, box, product, None, banana), strict=True):
        if target is not None:
            known = getattr(target, "density", None) or (lambda x: np.exp(banana.log_density(x)))
            contours(axes, known, lower, upper)
    pools = [target.sample(60, rng) for target in (mixture, box, product)]
    stein = Stein(banana, 0.7, constant=1.0)
    pools += [
        data,
        bqlib.sbq(banana, stein, 30, rng=0, candidates=rng.uniform(-3, 3, (3000, 2))).points,
    ]
    names = ["GaussianMixture", "Uniform", "Product", "Empirical", "Unnormalised"]
    for axes, name, points in zip(panels, names, pools, strict=True):
        axes.plot(*points.T, "o", color=INK, markersize=2 if len(points) > 100 else 3)
        axes.set(title=name, xlim=(-3.2, 3.2), ylim=(-3.2, 3.2), xticks=[], yticks=[])
        bare(axes)
    panels[3].lines[0].set_color("#8a97a0")
    chosen = bqlib.sbq(
        Empirical(data), ExponentiatedQuadratic(0.6), 20, rng=0, candidates=data
    ).points
    panels[3].plot(*chosen.T, "o", color=ORANGE, markersize=4)
    panels[4].lines[0].set_color(ORANGE)
    return figure


def embeddings():
    """Kernel means of one target at three length-scales, and outside a box."""
    mixture = GaussianMixture([0.35, 0.65], [[-2.0], [1.2]], [[[0.09]], [[0.8]]])
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    x = np.linspace(-5, 5, 600)[:, None]
    left.fill_between(x[:, 0], mixture.density(x), color="#dde3e7", label="density p")
    right.axvspan(-1, 1, color="#dde3e7", label="box")
    for lengthscale, color in ((0.2, ORANGE), (0.7, GREEN), (2.0, BLUE)):
        kernel = ExponentiatedQuadratic(lengthscale, scale="density")
        label = f"z, length-scale {lengthscale:g}"
        left.plot(x[:, 0], embed(kernel, mixture).kernel_mean(x), color=color, label=label)
        rough = Matern(lengthscale, nu=0.5)
        mean = embed(rough, Uniform([-1.0], [1.0])).kernel_mean(x)
        right.plot(x[:, 0], mean, color=color, label=label)
    left.set(title="Mixture, exponentiated quadratic kernel", xlabel="x")
    right.set(title="Box, Matérn 1/2 kernel", xlabel="x")
    left.set_ylabel("z(x)")
    for axes in (left, right):
        axes.legend(fontsize=8.5)
        axes.set_ylim(0)
    return figure


def designs():
    """Forty points by each rule, and the MMD of each with its weights."""
    mixture, kernel = paper_mixture(), ExponentiatedQuadratic(0.5, scale="density")
    rules = ["iid", "sobol", "herding", "frank_wolfe", "p_greedy", "rpcholesky", "sbq", "joint"]
    pool = mixture.sample(4000, np.random.default_rng(0))
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    for axes, name in zip(figure.subplots(2, 4).ravel(), rules, strict=True):
        design = getattr(bqlib, name)(mixture, kernel, 40, rng=0, candidates=pool)
        contours(axes, mixture.density, (-6.2, -6), (6.2, 4.6))
        size = 500 * np.abs(design.weights)
        color = np.where(design.weights < 0, ORANGE, INK)
        axes.scatter(*design.points.T, s=size, color=color, alpha=0.75, linewidths=0)
        error = mmd(design.embedding, design.points, design.weights)
        axes.set_title(f"{algorithm_name(name)}  {error:.3f}")
    return figure


def unit_cube():
    """Even points of the unit square, and their MMD for the Korobov kernel of order 1."""
    square = Uniform([0.0, 0.0], [1.0, 1.0])
    figure = Figure(figsize=(9, 2.5), layout="constrained")
    rules = ["latin_hypercube", "halton", "sobol", "lattice"]
    for axes, name in zip(figure.subplots(1, 4), rules, strict=True):
        design = getattr(bqlib, name)(square, Korobov(), 55, rng=0)
        axes.plot(*design.points.T, "o", color=INK, markersize=3.5, clip_on=False)
        error = mmd(design.embedding, design.points, design.weights)
        axes.set_title(f"{algorithm_name(name)}  {error:.3f}")
        axes.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[], aspect="equal")
        axes.grid(False)
        axes.spines[:].set_visible(True)
        axes.spines[:].set_color("#b8c4cc")
    return figure


def weights():
    """Weight rules on independent draws: the weights of 100 of them, and the MMD of the first n."""
    mixture, kernel = paper_mixture(), ExponentiatedQuadratic(0.5, scale="density")
    made = bqlib.iid(mixture, kernel, 300, rng=0)
    rules = {uniform: "#56B4E9", simplex: PINK, nonnegative: BLUE, sum_to_one: ORANGE, bq: INK}
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for rule, color in rules.items():
        prefixes = rule(made.embedding, made.points)
        left.plot(np.arange(1, 101), np.sort(prefixes.matrix[99, :100]), color=color)
        n = np.arange(1, len(prefixes.matrix) + 1)
        errors = np.sqrt(mmd2_of_prefixes(made.embedding, made.points[: len(n)], prefixes.matrix))
        right.loglog(n, errors, label=rule.__name__, color=color)
    left.axhline(0, color="#999999", linewidth=0.8)
    left.set(title="Weights of 100 independent draws, sorted", xlabel="rank", ylabel="weight")
    right.set(title="MMD of the first n", xlabel="n", ylabel="MMD")
    right.legend(fontsize=8.5)
    return figure


def recombination():
    """Thirty points with their weights, and the features that these weights integrate."""
    mixture, kernel = paper_mixture(), ExponentiatedQuadratic(0.5, scale="density")
    pool = mixture.sample(10_000, np.random.default_rng(0))
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.5])
    design = bqlib.recombination(mixture, kernel, 30, rng=0, candidates=pool)
    draws = bqlib.iid(mixture, kernel, 30, rng=0)
    contours(left, mixture.density, (-6.2, -6), (6.2, 4.6))
    left.scatter(*design.points.T, s=500 * design.weights, color=INK, alpha=0.75, linewidths=0)
    left.set_title("Recombination")
    # The landmarks of the design: the first draws of its generator.
    own = mixture.sample(300, rng=0)
    values, vectors = np.linalg.eigh(kernel(own, own))
    basis = vectors[:, :-61:-1] / np.sqrt(values[:-61:-1])
    means = basis.T @ design.embedding.kernel_mean(own)
    for made, color, label in ((draws, BLUE, "30 draws"), (design, INK, "recombination")):
        errors = np.abs(made.weights @ (kernel(made.points, own) @ basis) - means)
        right.semilogy(np.arange(1, 61), np.maximum(errors, 1e-17), "o", color=color, label=label)
        right.lines[-1].set_markersize(3)
    right.axvline(29.5, color="#999999", linewidth=0.8)
    right.set(title="Error of the mean of each feature", xlabel="feature", ylabel="error")
    right.legend(fontsize=8.5)
    return figure


def moved():
    """Twenty points by each rule that moves all of them, beside the best points known."""
    best = bqlib.best_known("paper", 20)
    mixture, kernel = best.embedding.target, best.embedding.kernel
    pool = mixture.sample(4000, np.random.default_rng(0))

    def made(rule, **options):
        return rule(mixture, kernel, 20, rng=0, candidates=pool, **options)

    shown = {
        "SBQ, the start": made(bqlib.sbq),
        "msip": made(bqlib.msip),
        "joint, BQ weights": made(bqlib.joint),
        "joint, equal weights": made(bqlib.joint, weights="uniform"),
        "best known": best,
    }
    figure = Figure(figsize=(9, 2.4), layout="constrained")
    for axes, (name, design) in zip(figure.subplots(1, 5), shown.items(), strict=True):
        contours(axes, mixture.density, (-6.2, -6), (6.2, 4.6))
        size = 500 * design.weights
        axes.scatter(*design.points.T, s=size, color=INK, alpha=0.75, linewidths=0)
        error = mmd(design.embedding, design.points, design.weights)
        axes.set_title(f"{name}\n{error:.4f}")
    return figure


FIGURES = {
    make.__name__: make
    for make in (kernels, targets, embeddings, designs, unit_cube, moved, weights, recombination)
}

if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        with ours():
            figure = FIGURES[name]()
        save(figure, [HERE / "images" / f"{name}.png"])
