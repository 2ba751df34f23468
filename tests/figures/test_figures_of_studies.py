import numpy as np
import pytest

from bqlib.figures.accuracy_for_time import PLANS as DRAWN
from bqlib.figures.accuracy_for_time import accuracy_for_time
from bqlib.figures.kernel_choice import kernel_choice
from bqlib.figures.refinement import refinement
from bqlib.figures.submodularity import submodularity
from bqlib.studies import alternatives, cost, plans
from bqlib.studies import kernel_choice as choice
from bqlib.studies import refinement as refined
from bqlib.studies import submodularity as greedy

ABOUT = {"target": "t", "kernel": "k", "lengthscale": 0.5}
SIZES = np.array([5, 25, 50, 100])


def synthetic(study, coordinates, seeds=5):
    """A dataset of a study with positive numbers in the place of results."""
    rng = np.random.default_rng(0)
    sizes = {name: len(values) for name, values in coordinates.items()}
    results = []
    for _ in range(seeds):
        shapes = {n: [sizes[dim] for dim in v.dims] for n, v in study.variables.items()}
        drawn = {name: 0.1 + rng.random(shape) for name, shape in shapes.items()}
        results.append(coordinates | drawn)
    return study.dataset(results, ABOUT)


@pytest.fixture
def studies():
    every = np.array([*plans.PLANS, *cost.FRESH, *cost.SLOW])
    factors = np.array(choice.FACTORS)
    return {
        "alternatives": synthetic(
            alternatives.STUDY, {"plan": np.array(list(plans.PLANS)), "n": np.arange(1, 101)}
        ),
        "cost": synthetic(cost.STUDY, {"plan": every, "n": SIZES, "pool": np.array([100, 200])}),
        "refinement": synthetic(refined.STUDY, {"plan": np.array(refined.PLANS), "n": SIZES[1:]}),
        "kernel_choice": synthetic(
            choice.STUDY,
            {"select": factors, "weigh": factors, "evaluate": factors}
            | {"truth": np.array(choice.TRUTHS), "recipe": np.array(choice.RECIPES)},
        ),
        "submodularity": synthetic(greedy.STUDY, {"picks": np.arange(1, 6)}),
    }


def lines(axes):
    return {line.get_label(): line for line in axes.lines}


def test_accuracy_is_drawn_at_the_time_it_takes(studies):
    figure = accuracy_for_time(*(studies[n] for n in ("alternatives", "cost", "refinement")))
    drawn = {line.get_gid(): line for line in figure.axes[0].lines}
    assert list(drawn) == list(DRAWN)
    seconds = studies["cost"]["seconds"].median("seed")
    mmd = np.exp(np.log(studies["alternatives"]["mmd"]).mean("seed"))
    np.testing.assert_allclose(drawn["sbq"].get_xdata(), seconds.sel(plan="sbq"))
    np.testing.assert_allclose(drawn["sbq"].get_ydata(), mmd.sel(plan="sbq", n=SIZES))
    moved = np.exp(np.log(studies["refinement"]["mmd"]).mean("seed")).sel(plan="joint")
    np.testing.assert_allclose(drawn["joint"].get_ydata(), moved)
    assert len(drawn["joint"].get_xdata()) == 3  # not at the size that was not run
    figure.draw_without_rendering()


def test_refinement_is_drawn_as_a_gain_too(studies):
    left, right = refinement(studies["refinement"]).axes
    mmd = np.log(studies["refinement"]["mmd"])
    own = lines(left)["all points moved at once by L-BFGS"]
    np.testing.assert_allclose(own.get_ydata(), np.exp(mmd.sel(plan="joint").mean("seed")))
    gain = np.exp((mmd.sel(plan="sbq") - mmd.sel(plan="joint")).mean("seed"))
    np.testing.assert_allclose(right.lines[2].get_ydata(), gain)


def test_kernel_choice_shows_each_length_scale_beside_the_right_one(studies):
    figure = kernel_choice(studies["kernel_choice"])
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    mmd = np.exp(np.log(studies["kernel_choice"]["mmd"]).mean("seed"))
    for factor, lengthscale in ((0.5, "0.25"), (1.0, "0.5"), (2.0, "1")):
        axes = panels[f"judged at length-scale {lengthscale}"]
        shown = axes.images[0].get_array()
        own = mmd.sel(evaluate=factor).transpose("select", "weigh")
        best = own.sel(select=factor, weigh=factor)
        np.testing.assert_allclose(shown, own / best)
        texts = [text.get_text() for text in axes.texts]
        assert texts[choice.FACTORS.index(factor) * 6] == "1"
    coverage = lines(panels["inside their 95 % intervals"])["true length-scale"]
    expected = 100 * studies["kernel_choice"]["coverage"].mean("seed").sel(recipe="true")
    np.testing.assert_allclose(coverage.get_ydata(), expected)
    figure.draw_without_rendering()


def test_submodularity_shows_what_is_reached_and_promised(studies):
    study = studies["submodularity"]
    axes = submodularity(study).axes[0]
    reached = (study["greedy"] / study["best"]).median("seed")
    np.testing.assert_allclose(lines(axes)["reached"].get_ydata(), reached)
    promised = 1 - np.exp(-study["ratio"].median("seed"))
    np.testing.assert_allclose(
        lines(axes)["promised by the submodularity ratio"].get_ydata(), promised
    )


def test_one_seed_draws_without_an_interval(studies):
    one = {name: study.isel(seed=[0]) for name, study in studies.items()}
    for figure in (
        accuracy_for_time(one["alternatives"], one["cost"], one["refinement"]),
        refinement(one["refinement"]),
        kernel_choice(one["kernel_choice"]),
        submodularity(one["submodularity"]),
    ):
        figure.draw_without_rendering()
