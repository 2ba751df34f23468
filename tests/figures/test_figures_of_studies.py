import numpy as np
import pytest
from drawn import legend

from bqlib.figures.accuracy_for_time import PLANS as DRAWN
from bqlib.figures.accuracy_for_time import accuracy_for_time
from bqlib.figures.kernel_choice import kernel_choice
from bqlib.figures.refinement import PLANS as REFINED
from bqlib.figures.refinement import refinement
from bqlib.figures.submodularity import submodularity
from bqlib.over_seeds import FEWEST_SEEDS, mean_interval
from bqlib.studies import alternatives, cost
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
    every, compared = (
        np.array([plan.name for plan in study.plans]) for study in (cost.STUDY, alternatives.STUDY)
    )
    factors = np.array(choice.FACTORS)
    moved = synthetic(refined.STUDY, {"plan": np.array(list(REFINED)), "n": SIZES[1:]})
    moved["limit"][:], moved["stationary"][:] = [400, 400, 800], [1, 1, 0]
    return {
        "alternatives": synthetic(alternatives.STUDY, {"plan": compared, "n": np.arange(1, 101)}),
        "cost": synthetic(cost.STUDY, {"plan": every, "n": SIZES, "pool": np.array([100, 200])}),
        "refinement": moved,
        "kernel_choice": synthetic(
            choice.STUDY,
            {"select": factors, "weigh": factors, "evaluate": factors}
            | {"truth": np.array(choice.TRUTHS), "recipe": np.array(choice.RECIPES)},
        ),
        "submodularity": synthetic(greedy.STUDY, {"picks": np.arange(1, 6)}),
    }


def labelled(axes):
    return {line.get_label(): line for line in axes.lines}


def bands(axes):
    """The lower and the upper end at each n, of each band that is drawn."""
    edges = [path.vertices for band in axes.collections for path in band.get_paths()]
    return [
        [(y[x == n].min(), y[x == n].max()) for n in np.unique(x)]
        for x, y in (vertices.T for vertices in edges)
        if len(x)
    ]


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
    own = labelled(left)["all points moved at once by L-BFGS"]
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
    coverage = labelled(panels["inside their 95 % intervals"])["true length-scale"]
    expected = 100 * studies["kernel_choice"]["coverage"].mean("seed").sel(recipe="true")
    np.testing.assert_allclose(coverage.get_ydata(), expected)
    figure.draw_without_rendering()


def test_submodularity_shows_what_is_reached_and_promised(studies):
    study = studies["submodularity"]
    axes = submodularity(study).axes[0]
    reached = (study["greedy"] / study["best"]).median("seed")
    np.testing.assert_allclose(labelled(axes)["reached by greedy picks"].get_ydata(), reached)
    promised = 1 - np.exp(-study["ratio"].median("seed"))
    np.testing.assert_allclose(
        labelled(axes)["guaranteed by the submodularity ratio"].get_ydata(), promised
    )


def test_bands_of_refinement_are_intervals_of_the_mean_over_seeds(studies):
    figure = refinement(studies["refinement"])
    left, right = figure.axes
    logs = np.log(studies["refinement"]["mmd"]).transpose("plan", "n", "seed")
    for plan, band in zip(REFINED, bands(left), strict=True):
        intervals = np.exp([mean_interval(values)[1:] for values in logs.sel(plan=plan).values])
        np.testing.assert_allclose(band, intervals)
    assert len(bands(right)) == len(REFINED) - 1
    said = "Lines: geometric mean of 5 seeds. Bands: 95 % interval of the geometric mean."
    steps = "All at once: L-BFGS, at most 400 to 800 steps; 5 of 15 ended before a minimum."
    assert legend(figure) == f"{said}\n{steps}"


def test_too_few_seeds_for_an_interval_are_drawn_without_one(studies):
    few = studies["refinement"].isel(seed=slice(FEWEST_SEEDS - 1))
    figure = refinement(few)
    figure.draw_without_rendering()
    assert [bands(axes) for axes in figure.axes] == [[], []]
    assert legend(figure).startswith("Lines: geometric mean of 4 seeds.\n")
    assert legend(refinement(few.isel(seed=[0]))).startswith("One seed.\n")


def test_one_seed_is_drawn_as_its_own_mean(studies):
    one = {name: study.isel(seed=[0]) for name, study in studies.items()}
    figure = accuracy_for_time(one["alternatives"], one["cost"], one["refinement"])
    figure.draw_without_rendering()
    assert "1 seed," in legend(figure)
    assert "Joint refinement: L-BFGS, at most 400 to 800 steps; 1 of 3 ended" in legend(figure)
    (line,) = [line for line in figure.axes[0].lines if line.get_gid() == "sbq"]
    own = one["alternatives"]["mmd"].sel(plan="sbq", n=SIZES).squeeze()
    np.testing.assert_allclose(line.get_ydata(), own)

    figure = submodularity(one["submodularity"])
    figure.draw_without_rendering()
    assert "1 pool." in legend(figure)
    reached = (one["submodularity"]["greedy"] / one["submodularity"]["best"]).squeeze()
    np.testing.assert_allclose(bands(figure.axes[0])[0], np.transpose([reached, reached]))

    kernel_choice(one["kernel_choice"]).draw_without_rendering()
