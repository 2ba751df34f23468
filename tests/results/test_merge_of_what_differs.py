"""Experiments whose largest n or whose pools differ, opened as one."""

import json

import numpy as np
import pandas as pd
import pytest
import submitted
import xarray as xr
from merged_sweeps import run

import bqlib
from bqlib import schema
from bqlib.analysis import maps
from bqlib.analysis.fits import fit_rates, rate_rows
from bqlib.figures.mmd import mmd
from bqlib.figures.slopes import slopes
from bqlib.figures.weight_sum import weight_sum
from bqlib.report.findings import best_rules
from bqlib.results import store
from bqlib.results.merge import MergeError, merge
from bqlib.results.pools import pool_labels
from bqlib.schema import MISSING, OK
from bqlib.sweep.problems import problems

CELL = {"target": "chen2010_mixture", "kernel": "eq"}
JOINT = "[{name: joint, design: joint, weights: bq}, sbq]"


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    return run(tmp_path_factory.mktemp("differing") / "short")


@pytest.fixture(scope="module")
def long(short):
    own = {"lengthscales": [0.5, 2], "algorithms": "[omp, sbq]", "n": 20, "windows": [[5, 20]]}
    return run(short.parent / "long", **own)


@pytest.fixture(scope="module")
def pooled(short):
    """The short sweep with a larger pool and more points."""
    own = {"size": 300, "n": 20, "lengthscales": [0.5], "windows": [[2, 12]]}
    return run(short.parent / "pooled", **own)


def both_orders(*folders):
    return [bqlib.open_results(order) for order in (folders, folders[::-1])]


def test_curves_of_a_shorter_sweep_are_nan_beyond_its_n(short, long):
    own = bqlib.open_results(short)
    for merged in both_orders(short, long):
        assert merged["n"].values.tolist() == list(range(1, 21))
        found = merged.sel(CELL | {"algorithm": "herding", "lengthscale": 0.5})
        expected = own.sel(CELL | {"algorithm": "herding", "lengthscale": 0.5})
        assert (found["status"] == OK).all()
        for name in own.data_vars:
            values = found[name]
            if "n" in values.dims:
                assert values.isel(n=slice(12, None)).isnull().all()
                values = values.isel(n=slice(12))
            np.testing.assert_array_equal(values, expected[name])
        assert (merged["status"].sel(lengthscale=2, algorithm="herding") == MISSING).all()


def test_of_common_trials_the_longest_is_taken(short, long):
    expected = bqlib.open_results(long).sel(CELL | {"algorithm": "sbq", "lengthscale": 0.5})
    for merged in both_orders(short, long):
        found = merged.sel(CELL | {"algorithm": "sbq", "lengthscale": 0.5})
        for name in expected.data_vars:
            np.testing.assert_array_equal(found[name], expected[name])


def test_how_lengths_were_joined_is_said(short, long):
    merged = bqlib.open_results([short, long])
    assert merged.attrs["merged_by"] == (
        f"n is 12 in {short}, 20 in {long}: the shorter curves are NaN beyond their own n"
    )
    assert json.loads(merged.attrs["config"])["n"] == 20
    assert "merged_by" not in bqlib.open_results([short, short]).attrs


def notes_of(figure):
    return "\n".join(
        text.get_text().replace("\N{NO-BREAK SPACE}", " ")
        for axes in figure.axes
        for text in axes.texts
        if text.get_gid() == "notes"
    )


def test_a_figure_does_not_blame_float64_for_the_end_of_a_sweep(short, long):
    merged = bqlib.open_results([short, long])
    notes = notes_of(merged.sel(lengthscale=0.5).bq.plot.curves())
    assert "herding: run to n = 12" in notes.replace("\n  ", " ") and "float64" not in notes
    assert "ends" not in notes
    figure = merged.sel(lengthscale=0.5).bq.plot.curves()
    assert not [line for line in figure.axes[0].lines if line.get_gid() == "end herding"]
    cut = merged["mmd"].where((merged["n"] <= 7) | (merged["seed"] == 0)).sel(lengthscale=0.5)
    of_both = merged.sel(lengthscale=0.5).assign(mmd=cut).bq.plot.curves()
    notes = notes_of(of_both).replace("\n  ", " ")
    assert "herding: run to n = 12 in 1 of 2 seeds" in notes
    assert "herding ends at n = 7 in 1 of 2 seeds (float64)" in notes
    assert [line for line in of_both.axes[0].lines if line.get_gid() == "end herding"]


def test_a_map_does_not_blame_a_curve_for_the_end_of_a_sweep(short, long):
    merged = bqlib.open_results([short, long]).sel(lengthscale=[0.5])

    def words(found, name):
        return found["word"].sel(algorithm=name).values.ravel().tolist()

    assert words(maps.map_of_error(merged, 12), "herding") == [""]
    found = maps.map_of_error(merged, 15)
    assert words(found, "herding") == ["run to 12"] and words(found, "sbq") == [""]
    assert words(maps.map_of_rates(merged.bq.rates([(5, 20)])), "herding") == ["run to 12"]
    cut = merged.assign(mmd=merged["mmd"].where((merged["n"] <= 7) | (merged["seed"] == 0)))
    assert words(maps.map_of_error(cut, 15), "herding") == ["ends early"]
    assert words(maps.map_of_rates(cut.bq.rates([(5, 20)])), "herding") == ["ends early"]


def test_an_export_has_no_rows_beyond_the_n_of_a_shorter_sweep(short, long, tmp_path):
    merged = bqlib.open_results([short, long])
    rows, missing = bqlib.export(merged, tmp_path / "both.csv")
    table = pd.read_csv(tmp_path / "both.csv")
    assert len(table) == rows and missing == int((merged["status"] == MISSING).sum()) > 0
    assert table["mmd"].notnull().all()
    last = table.groupby(["lengthscale", "algorithm"])["n"].max().to_dict()
    assert last == {
        (0.5, "herding"): 12, (0.5, "omp"): 20, (0.5, "sbq"): 20, (1.0, "herding"): 12,
        (1.0, "sbq"): 12, (2.0, "omp"): 20, (2.0, "sbq"): 20,
    }  # fmt: skip
    bqlib.export(merged.drop_vars("rank_reached"), tmp_path / "all.csv")
    assert len(pd.read_csv(tmp_path / "all.csv")) == 20 * 2 * len(last)


def test_rates_in_a_window_that_only_one_sweep_reaches(short, long):
    rates = bqlib.open_results([short, long]).bq.rates().sel(CELL | {"lengthscale": 0.5})
    assert rates["reason"].sel(window="5-20", algorithm="herding") == "the sweep ends at n = 12"
    assert rates["n_seeds"].sel(window="5-20", algorithm="sbq") == 2


def test_sets_of_different_sizes_are_refused_and_of_the_same_joined(tmp_path):
    own = {"lengthscales": [0.5], "algorithms": JOINT, "seeds": 1}
    one = run(tmp_path / "one", "sizes: [5, 10]", **own)
    other = run(tmp_path / "other", "sizes: [5, 10, 20]", **own | {"n": 20})
    with pytest.raises(MergeError) as caught:
        bqlib.open_results([one, other])
    (said,) = str(caught.value).splitlines()[1:]
    assert said == (
        f'algorithm "joint" has sizes [5, 10] in {one}, but sizes [5, 10, 20] in {other}: a set is '
        "made anew for each n, so a smaller one is no prefix of a larger one; give both sweeps "
        "sizes: [5, 10], or open them separately"
    )
    same = run(tmp_path / "same", "sizes: [5, 10]", **own | {"n": 20})
    merged = bqlib.open_results([one, same])
    assert merged.bq.sets == {"joint": (5, 10)}
    found = merged["mmd"].sel(algorithm="joint").squeeze()
    assert np.flatnonzero(found.notnull()).tolist() == [4, 9]
    assert "ends" not in notes_of(merged.bq.plot.curves())


def test_a_sequence_whose_start_depends_on_n_is_refused(tmp_path):
    code = (
        "from bqlib.designs.design import Design\nfrom bqlib.designs.iid import iid\n\n\n"
        "def backwards(target, kernel, n, *, rng, candidates=None, initial=None):\n"
        "    drawn = iid(target, kernel, n, rng=rng)\n"
        "    return Design(drawn.embedding, drawn.points[::-1], drawn.rule)\n"
    )
    mine = "[{name: mine, design: mine.py:backwards, weights: uniform}]"
    own = {"lengthscales": [0.5], "algorithms": mine}
    folders = []
    for name, n in (("one", 12), ("other", 20)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(code)
        folders.append(run(tmp_path / name, n=n, **own))
    with pytest.raises(MergeError) as caught:
        bqlib.open_results(folders)
    said = str(caught.value).splitlines()[1]
    assert said.startswith("chen2010_mixture/eq/0.5/mine, seeds 0, 1: different mmd, points in ")
    assert "whose n is 12 and 20: the first points of the longer design are not those" in said
    assert said.endswith("say so by the decorator bqlib.designs.design.point_set")


@pytest.mark.parametrize(
    "changed, expected",
    [
        (("mmd",), "different mmd in a and b, whose n is 12 and 20: the points are the same, so"),
        (("mmd", "points"), "different mmd, points in a and b, whose n is 12 and 20: this design"),
    ],
)
def test_other_numbers_of_a_design_of_ours_are_not_called_a_set(short, long, changed, expected):
    one, other = (bqlib.open_results(folder).load() for folder in (short, long))
    where = {"lengthscale": 0.5, "algorithm": "sbq"}
    for name in changed:
        other[name].loc[where] = other[name].loc[where] * 1.01
    with pytest.raises(MergeError) as caught:
        merge([one, other], ["a", "b"])
    (said,) = str(caught.value).splitlines()[1:]
    assert expected in said and "point_set" not in said
    assert "other code or other numbers made" in said


def test_pools_that_differ_are_one_more_dimension(short, pooled):
    sources = {60: bqlib.open_results(short), 300: bqlib.open_results(pooled)}
    for merged in both_orders(short, pooled):
        assert merged["mmd"].dims[:2] == ("candidates", "target")
        assert merged["candidates"].values.tolist() == [60, 300]
        for label, own in sources.items():
            part = merged.sel(candidates=label, lengthscale=own["lengthscale"], n=own["n"])
            for name in own.data_vars:
                np.testing.assert_array_equal(part[name], own[name])
        assert (merged["status"].sel(candidates=300, lengthscale=1) == MISSING).all()
        config = json.loads(merged.attrs["config"])
        assert [config["candidates"][size]["size"] for size in ("60", "300")] == [60, 300]
    said = bqlib.open_results([short, pooled]).attrs["merged_by"].splitlines()
    assert said[1] == (
        f"candidates are 60 in {short}, 300 in {pooled}: they are labels of a dimension candidates"
    )
    assert len(said) == 2


def test_any_selection_over_pools_is_that_of_the_loaded_curves(short, pooled, long):
    loaded = bqlib.open_results([short, pooled, long]).load()
    lazy = bqlib.open_results([short, pooled, long])
    for select in (
        {"candidates": [1, 0], "n": slice(10, 15)},
        {"candidates": 1, "algorithm": 0, "seed": 0},
        {"candidates": [1, 1], "lengthscale": [0, 0]},
        {"candidates": []},
    ):
        xr.testing.assert_identical(lazy.isel(select).compute(), loaded.isel(select))


def test_errors_of_integrands_are_joined_over_pools(short, pooled, tmp_path):
    integrands = "integrands: {within: {family: rkhs_ball, functions: 5}}"
    own = {"lengthscales": [0.5], "size": 90}
    with_errors = run(tmp_path / "errors", integrands, **own)
    merged = bqlib.open_results([short, with_errors, pooled])
    expected = bqlib.open_results(with_errors)["error"]
    found = merged["error"].sel(candidates=90, lengthscale=[0.5], n=expected["n"])
    np.testing.assert_array_equal(found, expected)
    assert merged["error"].sel(candidates=[60, 300]).isnull().all()


def test_what_is_computed_of_merged_pools_is_what_is_of_each(short, pooled):
    merged = bqlib.open_results([short, pooled])
    rates, table = merged.bq.rates([(2, 12)]), merged.bq.rate_table((2, 12))
    crossed, needed = merged.bq.crossover("sbq", "herding"), merged.bq.points_needed(0.1)
    for label, folder in ((60, short), (300, pooled)):
        own = bqlib.open_results(folder)
        chosen = {"candidates": label, "lengthscale": own["lengthscale"]}
        alone = fit_rates(own, [(2, 12)])
        for name in ("rate", "reason", "verdict"):
            np.testing.assert_array_equal(rates[name].sel(chosen), alone[name])
        rows = table[
            (table["candidates"] == label) & table["lengthscale"].isin(own["lengthscale"].values)
        ]
        pd.testing.assert_frame_equal(
            rows.drop(columns="candidates").reset_index(drop=True), own.bq.rate_table((2, 12))
        )
        expected = own.bq.crossover("sbq", "herding")["points_needed"]
        found = crossed["points_needed"].sel(chosen | {"n": own["n"]})
        np.testing.assert_array_equal(found, expected.transpose(*found.dims))
        ours = needed.sel(chosen)
        np.testing.assert_array_equal(ours, own.bq.points_needed(0.1).transpose(*ours.dims))


@pytest.fixture(scope="module")
def pools(tmp_path_factory):
    """Three sweeps that differ in their pools."""
    folder = tmp_path_factory.mktemp("pools")
    own = {"lengthscales": [0.5], "windows": [[2, 12]]}
    return {size: run(folder / f"pool{size}", size=size, **own) for size in (60, 90, 120)}


@pytest.mark.parametrize(
    "sizes, windows", [((60, 90), [(2, 12), (3, 11)]), ((60, 90, 120), [(2, 12)])]
)
def test_rates_over_pools_are_the_same_from_the_second_call_on(pools, sizes, windows):
    """Those that are known are found under their own pool and window."""
    alone = {size: fit_rates(bqlib.open_results(pools[size]), windows) for size in sizes}
    merged = bqlib.open_results([pools[size] for size in sizes])
    for _ in range(3):
        rates = merged.bq.rates(windows)
        for size, expected in alone.items():
            found = rates.sel(candidates=size, drop=True)
            xr.testing.assert_identical(found.drop_attrs(), expected.drop_attrs())
    for first, last in windows:
        label = f"{first}-{last}"
        power = rates["rate"].sel(window=label, model="power_law").squeeze()
        assert len(np.unique(power)) == power.size  # or a wrong place would not be seen
        table = merged.bq.rate_table((first, last)).set_index(["candidates", "algorithm"])["rate"]
        np.testing.assert_array_equal(table.to_xarray().sel(candidates=rates.candidates), power)
        places = {"window": (first, last), "x": "candidates", "y": "algorithm"}
        (image,) = merged.bq.plot.heatmap("rate", **places).axes[0].images
        np.testing.assert_array_equal(image.get_array(), power.transpose("algorithm", ...))
    rows = rate_rows(rates)
    assert len(rows) == 2 * len(sizes) * len(windows) and {*rows[0]} > {"candidates", "algorithm"}


def test_what_takes_one_pool_says_so(pools):
    merged = bqlib.open_results([pools[60], pools[90]])
    seconds = xr.zeros_like(merged["status"].sel(candidates=60), dtype=float)
    for use in (
        lambda: merged.bq.plot.heatmap("seconds", error=0.1, seconds=seconds),
        lambda: best_rules(merged),
    ):
        with pytest.raises(
            ValueError, match=r"select one label of candidates, .*\(candidates=60\)"
        ):
            use()


def test_figures_have_panels_and_columns_for_pools(short, pooled):
    merged = bqlib.open_results([short, pooled]).sel(lengthscale=0.5)
    drawn = merged.bq.plot.curves(columns="candidates")
    assert [axes.get_title(loc="left") for axes in drawn.axes] == [
        "60 candidates",
        "300 candidates",
    ]
    for n in (5, 12):
        (axes, _) = merged.bq.plot.heatmap("error", n=n, x="candidates", y="algorithm").axes
        values = axes.images[0].get_array()
        expected = merged["mmd"].sel(n=n).median("seed").squeeze().transpose("algorithm", ...)
        np.testing.assert_array_equal(values, expected)
        assert [t.get_text() for t in axes.get_xticklabels()] == ["60", "300"]


def test_an_export_has_a_column_of_pools(short, pooled, tmp_path):
    merged = bqlib.open_results([short, pooled])
    bqlib.export(merged, tmp_path / "both.csv")
    table = pd.read_csv(tmp_path / "both.csv")
    assert table.columns[0] == "candidates"
    index = ["candidates", "lengthscale", "algorithm", "seed", "n"]
    found = table.set_index(index)["mmd"].to_xarray()
    expected = merged["mmd"].squeeze(["target", "kernel"], drop=True).transpose(*index)
    np.testing.assert_array_equal(found.sel({d: expected[d] for d in index}), expected)


def test_seconds_need_one_pool(short, pooled):
    (short / "timings").mkdir(exist_ok=True)
    merged = bqlib.open_results([short, pooled])
    with pytest.raises(ValueError, match="select one label of candidates"):
        merged.bq.seconds(short)


def test_merged_pools_cannot_be_merged_again(short, pooled, long):
    merged = bqlib.open_results([short, pooled])
    with pytest.raises(MergeError, match=r"^both has the dimension candidates, so it is merged"):
        merge([merged, bqlib.open_results(long)], ["both", "long"])


@pytest.mark.parametrize(
    "pools, labels",
    [
        ([{"size": 9}, {"size": 9}], []),
        ([{"size": 9}, {"size": 10}, {"size": 9}], [9, 10, 9]),
        ([{"size": 9, "fresh": False}, {"size": 10, "fresh": True}], ["9 kept", "10 fresh"]),
        ([{"inflation": 2.0}, {"inflation": 3.0}], ["inflation 2.0", "inflation 3.0"]),
        (
            [{"source": "target", "box": None}, {"source": "box", "box": [[0, 1]]}],
            ["target", "box [[0, 1]]"],
        ),
    ],
)
def test_labels_of_pools_say_what_differs(pools, labels):
    assert pool_labels(pools) == labels


def test_rounding_of_an_ill_conditioned_system_is_no_conflict_of_lengths():
    """BQ weights of 12 points differ where the system of 12 is solved as a part of one of 60."""
    made = [
        bqlib.curves(
            bqlib.Uniform([0.0], [1.0]), "exponentiated_quadratic", ["herding_bq"], n, 1,
            lengthscales=0.5, candidates=bqlib.Candidates(300), progress=False,
        )
        for n in (20, 60)
    ]  # fmt: skip
    merged = merge(made, ["short", "long"])
    np.testing.assert_array_equal(merged["mmd"], made[1]["mmd"])


def test_figures_of_one_sweep_ask_for_one_pool(short, pooled):
    merged = bqlib.open_results([short, pooled])
    for draw in (mmd, slopes, weight_sum):
        with pytest.raises(ValueError, match=r"one label of candidates, .*\(candidates=60\)"):
            draw(merged)
    assert mmd(merged.sel(candidates=60)).axes


def of_problems(folder, problems, algorithms):
    """What a sweep of problems leaves that has run no trial yet."""
    experiment = submitted.sweep_of(problems, algorithms, seeds=1, name=folder.name)
    store.gather(experiment, folder)
    return bqlib.open_results(folder)


def test_sweeps_of_problems_merge_with_all_of_their_problems(tmp_path):
    one = of_problems(tmp_path / "one", ["box_1d_brownian", "normal_1d_matern12"], ["sobol_bq"])
    two = of_problems(tmp_path / "two", ["mixture_1d_matern32", "box_1d_brownian"], ["iid"])
    names = ["box_1d_brownian", "mixture_1d_matern32", "normal_1d_matern12"]
    for order in ((one, two), (two, one)):
        merged = merge(order, ["one", "two"])
        config = json.loads(merged.attrs["config"])
        assert sorted(merged["target"].values) == sorted(config["problems"]) == names
        assert {*config["inapplicable"]} == {*json.loads(one.attrs["config"])["inapplicable"]}
        kernels = {name: config["problems"][name]["kernel"]["family"] for name in names}
        assert kernels["box_1d_brownian"] == "brownian"
        assert kernels["normal_1d_matern12"] == "matern"
        assert schema.ends_of_sweeps(merged.attrs) == {128}


def test_other_versions_of_a_problem_do_not_merge(tmp_path):
    one = of_problems(tmp_path / "one", ["box_1d_brownian"], ["sobol_bq"])
    config = json.loads(one.attrs["config"])
    config["problems"]["box_1d_brownian"]["version"] = 2
    other = one.assign_attrs(config=json.dumps(config))
    with pytest.raises(MergeError, match='problem "box_1d_brownian" has version 1 in a, but ver'):
        merge([one, other], ["a", "b"])


def test_problems_and_grids_do_not_merge(short, tmp_path):
    one = of_problems(tmp_path / "one", ["box_1d_brownian"], ["sobol_bq"])
    with pytest.raises(MergeError, match="a: has problems, with kernels of their own"):
        merge([one, bqlib.open_results(short)], ["a", "b"])


def test_parts_of_the_suite_merge_though_their_sets_differ_in_size(tmp_path):
    """A problem of 400 points has other sizes than one of 128."""
    one = of_problems(tmp_path / "one", ["chen2010_eq"], ["kernel_thinning"])
    two = of_problems(tmp_path / "two", ["mixture_2d_matern32"], ["kernel_thinning"])
    names = ["chen2010_eq", "mixture_2d_matern32"]
    every = sorted({size for name in names for size in problems()[name].sizes})
    for order in ((one, two), (two, one)):
        merged = merge(order, ["one", "two"])
        assert merged.bq.sets == {"kernel_thinning": tuple(every)}
