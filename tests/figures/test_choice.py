import inspect
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from project import CONFIG

import bqlib.figures
from bqlib.analysis.papers import papers_of
from bqlib.figures.choice import FIGURES, choose
from bqlib.sweep import registry
from bqlib.sweep.file import load
from bqlib.sweep.spec import Algorithm

ON_DEMAND = {"curves", "heatmap"}  # no sweep gets them by itself
OF_PROBLEMS = ("profile", "versus")
HERDING = Algorithm("herding", "herding", "uniform")
HERDING_BQ = Algorithm("herding_bq", "herding", "bq")
SBQ = Algorithm("sbq", "sbq", "bq")
WITHIN = {"a": {"family": "rkhs_ball"}}
OUTSIDE = {"b": {"family": "rough_bumps"}}
PAPER = ["bq_illustration", "samples", "weight_histogram"]


@pytest.fixture(scope="module")
def quick():
    return load(CONFIG / "quick.yaml", CONFIG / "targets")


@pytest.fixture(scope="module")
def plain(quick):
    """One cell of the paper's settings, herding alone, and nothing that asks for more figures."""
    return replace(
        quick, lengthscales=(0.5,), algorithms=(HERDING,), integrands={}, studies=(), seeds=1
    )


def names(experiment):
    return [figure.name for figure in choose(experiment)]


@pytest.mark.parametrize(
    "changes, more",
    [
        ({}, []),
        ({"lengthscales": (0.5, 1.0)}, ["rate_map"]),
        ({"lengthscales": (0.5, 1.0), "rate_windows": ()}, []),
        ({"targets": {"chen2010_mixture": {}, "another": {}}}, ["rate_map"]),
        ({"algorithms": (HERDING, HERDING_BQ)}, ["weight_sum"]),
        ({"integrands": WITHIN}, ["within_model", "error_bound"]),
        ({"integrands": OUTSIDE}, ["out_of_model"]),
        ({"integrands": WITHIN | OUTSIDE}, ["within_model", "error_bound", "out_of_model"]),
        ({"algorithms": (SBQ, HERDING)}, ["weight_sum", *PAPER]),
        ({"studies": ("submodularity", "refinement")}, ["refinement", "submodularity"]),
        ({"studies": ("kernel_choice",)}, ["kernel_choice"]),
        ({"studies": ("alternatives", "cost")}, []),
        (
            {"studies": ("alternatives", "cost", "refinement")},
            ["refinement", "accuracy_for_time"],
        ),
    ],
)
def test_a_sweep_gets_the_figures_that_it_has_data_for(plain, changes, more):
    assert names(replace(plain, **changes)) == ["mmd", "slopes", *more]


def test_a_sweep_with_everything_gets_every_figure_in_their_order(quick):
    assert choose(quick) == tuple(f for name, f in FIGURES.items() if name not in OF_PROBLEMS)


def test_sweeps_of_problems_get_profiles_and_pairs(plain):
    sweep = replace(plain, algorithms=(HERDING, HERDING_BQ), problems={"a": {}})
    assert names(sweep) == ["profile", "versus", "mmd"]
    assert names(replace(plain, problems={"a": {}})) == ["profile", "mmd"]


@pytest.mark.parametrize(
    "changes, of_the_paper",
    [
        ({}, True),
        ({"lengthscales": (1.0, 0.5)}, True),
        ({"lengthscales": (1.0,)}, False),
        ({"algorithms": (SBQ, HERDING_BQ)}, False),
        ({"algorithms": (HERDING, HERDING_BQ)}, False),
        ({"targets": {"another": {}}}, False),
        ({"kernels": {"k": {"family": "exponentiated_quadratic", "scale": "unit"}}}, False),
    ],
)
def test_a_sweep_is_of_the_paper_with_sbq_and_herding_at_its_settings(plain, changes, of_the_paper):
    sweep = replace(plain, **{"algorithms": (SBQ, HERDING)} | changes)
    assert ("huszar2012" in papers_of(sweep)) is of_the_paper
    assert (PAPER[0] in names(sweep)) is of_the_paper


def test_a_sweep_of_many_panels_gets_twelve_pages_of_a_figure(plain):
    wide = replace(plain, lengthscales=tuple(np.geomspace(0.1, 1, 300)))
    names = [figure.name for figure in choose(wide)]
    assert names[:13] == ["mmd", *(f"mmd-{page}" for page in range(2, 13)), "slopes"]
    assert len(names) < 30


@pytest.mark.parametrize("name", FIGURES)
def test_the_function_of_a_figure_takes_its_datasets(name):
    draw = getattr(import_module(f"bqlib.figures.{name}"), name)
    takes = [one for one in inspect.signature(draw).parameters if one != "page"]
    assert len(takes) == len(FIGURES[name].datasets)


def test_every_module_that_draws_a_figure_of_a_sweep_is_in_the_list():
    modules = {file.stem for file in Path(bqlib.figures.__file__).parent.glob("[!_]*.py")}
    draws = {name for name in modules if hasattr(import_module(f"bqlib.figures.{name}"), name)}
    assert draws == set(FIGURES) | ON_DEMAND


def test_figures_are_drawn_from_what_a_run_leaves():
    stores = {store for figure in FIGURES.values() for store in figure.datasets}
    studies = {f"studies/{name}" for name in registry.PLACES["study"]}
    assert stores <= {"curves", "rates", "function_errors"} | studies


def test_every_figure_of_the_paper_is_drawn_once():
    numbers = [figure.number for figure in FIGURES.values() if figure.number]
    assert sorted(numbers) == list(range(1, 9))


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_a_caption_is_one_short_sentence(figure):
    assert figure.caption[0].isupper() and figure.caption.endswith(".")
    assert ". " not in figure.caption and len(figure.caption) < 180


def test_captions_are_read_without_loading_what_draws():
    script = "import sys, bqlib.figures.choice; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert not {"matplotlib", "xarray"} & set(loaded.stdout.split())


def test_figures_offers_save_and_no_other_name():
    assert bqlib.figures.save is import_module("bqlib.figures.style").save
    assert "save" in dir(bqlib.figures)
    with pytest.raises(AttributeError, match="has no attribute 'load'"):
        bqlib.figures.load  # noqa: B018
