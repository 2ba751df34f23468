"""Pages of figures of many panels, and that a workflow knows them before a sweep has run."""

import json
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import xarray as xr
from drawn import legend, titles
from project import CONFIG
from synthetic_sweep import PAPER, power_curves, sweep

from bqlib.figures import pages
from bqlib.figures.choice import FIGURES, choose, figure_named
from bqlib.sweep.file import load
from bqlib.sweep.spec import Algorithm

TARGET, KERNEL = PAPER["targets"]["chen2010_mixture"], PAPER["kernels"]["eq"]
INTEGRANDS = {
    "inside": {"family": "rkhs_ball"},
    "outside": {"family": "rough_bumps", "narrowest": 0.1, "widest": 1},
}
ALGORITHMS = [Algorithm(f"rule_{i}", "herding", "bq") for i in range(11)]
TALLEST = 2000  # pixels
# Labels of targets, kernels and length-scales, and how many pages each figure has.
SWEEPS = {
    "small": ((1, 1, 3), {}),
    "six spaces": ((3, 2, 1), {"weight_sum": 3, "out_of_model": 2, "slopes": 3}),
    "two pairs of two": ((2, 1, 2), {"out_of_model": 2}),
    "seven pairs": ((7, 1, 1), dict(
        mmd=2, within_model=2, slopes=4, weight_sum=4, out_of_model=3
    )),
    "many lengthscales": ((1, 1, 8), {"mmd": 2, "within_model": 2, "slopes": 2, "out_of_model": 3}),
    "grid": ((2, 2, 5), dict(
        mmd=4, within_model=4, slopes=4, weight_sum=2, out_of_model=7
    )),
}  # fmt: skip


def sizes_of(name):
    targets, kernels, lengthscales = SWEEPS[name][0]
    return {
        "targets": {f"t{i}": TARGET for i in range(targets)},
        "kernels": {f"k{i}": KERNEL for i in range(kernels)},
        "lengthscales": tuple(2.0**i for i in range(lengthscales)),
    }


@pytest.fixture(scope="module")
def quick():
    return load(CONFIG / "quick.yaml", CONFIG / "targets")


def counted(quick, name, algorithms=2):
    """Pages of each figure that a sweep is given."""
    chosen = choose(
        replace(
            quick,
            **sizes_of(name),
            integrands=INTEGRANDS,
            algorithms=tuple(ALGORITHMS[:algorithms]),
        )
    )
    names = [figure.drawn_by for figure in chosen]
    return {name: names.count(name) for name in dict.fromkeys(names)}


def results(name):
    curves = {one.name: power_curves(1.0, n=8, seeds=2, rng=1) for one in ALGORITHMS[:2]}
    config = [{"name": one.name, "design": "herding", "weights": "bq"} for one in ALGORITHMS[:2]]
    dataset = sweep(curves, **sizes_of(name), integrands=INTEGRANDS, algorithms=config)
    error = dataset["mmd"].expand_dims(integrand=list(INTEGRANDS))
    return dataset.assign(error=error, weight_sum=dataset["mmd"], weight_l1=dataset["mmd"])


def function_errors(algorithms):
    names = [one.name for one in ALGORITHMS[:algorithms]]
    labels = {"target": "t0", "kernel": "k0", "lengthscale": 1.0, "integrand": "inside", "seed": 0}
    coords = {"algorithm": names, "n": np.arange(1, 9), **labels}
    data = {
        "error": (("algorithm", "function", "n"), np.ones((algorithms, 2, 8))),
        "mmd": (("algorithm", "n"), np.ones((algorithms, 8))),
    }
    errors = xr.Dataset(data, coords)
    ratio = xr.zeros_like(errors["mmd"].drop_vars(labels)).expand_dims(
        {dim: [label] for dim, label in labels.items()}
    )
    status = xr.zeros_like(ratio.isel(n=0, integrand=0, drop=True))
    config = {"targets": {"t0": TARGET}, "kernels": {"k0": KERNEL}, "algorithms": []}
    about = {"config": json.dumps(config)}
    return xr.Dataset({"bound_ratio": ratio, "status": status}, attrs=about), errors


@pytest.mark.parametrize("name", SWEEPS)
def test_a_workflow_knows_the_pages_of_a_sweep(quick, name):
    assert {f: n for f, n in counted(quick, name).items() if n > 1} == SWEEPS[name][1]


@pytest.mark.parametrize("name", ["six spaces", "many lengthscales", "grid"])
@pytest.mark.parametrize("figure", ["mmd", "within_model", "slopes", "weight_sum", "out_of_model"])
def test_every_panel_is_on_one_page_and_no_page_is_too_tall(quick, name, figure):
    dataset, count = results(name), counted(quick, name)[figure]
    draw = getattr(import_module(f"bqlib.figures.{figure}"), figure)
    drawn = [draw(dataset, page=page + 1) for page in range(count)]
    for page, found in enumerate(drawn):
        assert found.get_figheight() * 200 <= TALLEST
        said = f"Page {page + 1} of {count}."
        assert (said in legend(found)) == (count > 1)
        lines = [text.get_text() for text in found.legends[0].get_texts()]
        assert lines == ["rule 0", "rule 1"]
    every = [title for found in drawn for title in titles(found) if "length-scale" in title]
    assert len(set(every)) == len(every)
    targets, kernels, lengthscales = SWEEPS[name][0]
    if figure != "weight_sum":
        assert len(every) == targets * kernels * lengthscales * (1 + (figure == "out_of_model"))
    with pytest.raises(ValueError, match=f"page is {count + 1}; this figure has the pages 1 to"):
        draw(dataset, page=count + 1)


@pytest.mark.parametrize("algorithms, count", [(1, 1), (4, 1), (5, 1), (9, 1), (11, 2)])
def test_bounds_of_many_algorithms_are_folded_and_then_paged(quick, algorithms, count):
    from bqlib.figures.error_bound import error_bound

    assert counted(quick, "small", algorithms)["error_bound"] == count
    given = function_errors(algorithms)
    drawn = [error_bound(*given, page=page + 1) for page in range(count)]
    assert all(found.get_figheight() * 200 <= TALLEST for found in drawn)
    assert len([title for found in drawn for title in titles(found)]) == algorithms


@pytest.mark.parametrize("page", [0, 3, -1, 1.5])
def test_a_page_that_is_not_there_is_refused(page):
    with pytest.raises(ValueError, match=r"this figure has the pages 1 to 2"):
        pages.page_of(["a", "b"], page)


def test_a_page_has_a_name_and_a_caption_of_its_own():
    page = figure_named("within_model-3")
    assert (page.drawn_by, page.page, page.datasets) == ("within_model", 3, ("curves",))
    assert page.caption == f"{FIGURES['within_model'].caption} Page 3."
    assert figure_named("mmd") is FIGURES["mmd"] and FIGURES["mmd"].drawn_by == "mmd"
    with pytest.raises(KeyError):
        figure_named("none-2")
