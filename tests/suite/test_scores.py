"""Scores of submissions: those of our own rules are the MMDs of a sweep."""

import json

import numpy as np
import pytest
import submitted
import xarray as xr

import bqlib
from bqlib.results.layout import Layout
from bqlib.schema import DOES_NOT_APPLY, FAILED, MISSING, OK, check_schema
from bqlib.suite.mistakes import SubmissionError
from bqlib.suite.scores import score, table_of_scores, write_scores
from bqlib.suite.submission import read_submission
from bqlib.sweep.problems import problems

PROBLEMS = ["mixture_2d_matern32", "box_2d_korobov1", "rings_matern32", "banana_stein"]
SEQUENCES = ["sbq", "herding", "sbq_sum_to_one"]
SETS = ["latin_hypercube", "lattice_bq", "recombination", "stein_thinning"]
CURVES = ("mmd", "weight_sum", "weight_l1", "min_weight", "duplicates", "weights", "points")


@pytest.fixture(scope="module")
def experiment():
    return submitted.sweep_of(PROBLEMS, [*SEQUENCES, *SETS])


@pytest.fixture(scope="module")
def specs(experiment):
    return {(c.algorithm, c.target): experiment.spec(c) for c in experiment.cells()}


@pytest.fixture(scope="module")
def trials(specs):
    return {
        (*key, seed): submitted.attempt(spec, seed)
        for key, spec in specs.items()
        for seed in range(2)
    }


def of_rule(trials, rule):
    """Trials of a rule that did not fail, by problem and seed."""
    return {key[1:]: t for key, t in trials.items() if key[0] == rule and not isinstance(t, str)}


def scored(tmp_path, sets, **about):
    """The scores of a submission that went through its files."""
    submitted.write(tmp_path / "entry", sets, **about)
    return score(read_submission(tmp_path / "entry"))


def refuse_other(scores, found, names=("mmd",)):
    """Each trial of a sweep must be that of the scores."""
    assert found
    for (name, seed), trial in found.items():
        own = scores.sel(target=name, seed=seed).squeeze(drop=True)
        assert own["status"] == OK
        assert own["rank_reached"] == trial["rank_reached"]
        n = problems()[name].n
        assert own["mmd"][n:].isnull().all()
        v0 = problems()[name].prior_variance
        assert submitted.close(own["mmd"][:n], trial["mmd"], v0), (name, seed)
        for other in names:
            values, expected = own[other].values[:n], trial[other]
            if other == "points":
                values = values[:, : expected.shape[1]]
            np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("rule", "weights"), [("sbq", "bq"), ("herding", "uniform")])
def test_sequences_have_the_mmds_of_a_sweep(rule, weights, trials, tmp_path):
    found = of_rule(trials, rule)
    sets = [(*key, trial["points"]) for key, trial in found.items()]
    refuse_other(scored(tmp_path, sets, kind="sequence", weights=weights), found, CURVES)


def test_sequences_with_their_own_weights_have_the_mmds_of_a_sweep(specs, trials, tmp_path):
    found = of_rule(trials, "sbq_sum_to_one")
    sets = []
    for (name, seed), trial in found.items():
        spec = specs["sbq_sum_to_one", name]
        design = submitted.design_of(spec, seed, spec.n)
        matrix = spec.algorithm.build()[1](design.embedding, design.points).matrix
        sets += [(name, seed, *own) for own in submitted.prefixes(trial["points"], matrix)]
    scores = scored(tmp_path, sets, kind="sequence", weights="own")
    refuse_other(scores, found, CURVES)
    (algorithm,) = json.loads(scores.attrs["config"])["algorithms"]
    assert algorithm["sizes"] == []


def test_sequences_with_weights_at_some_n_are_scored_there(specs, trials, tmp_path):
    spec, listed = specs["sbq_sum_to_one", PROBLEMS[0]], [3, 64, 128]
    design = submitted.design_of(spec, 0, spec.n)
    matrix = spec.algorithm.build()[1](design.embedding, design.points).matrix
    every = submitted.prefixes(design.points, matrix)
    sets = [(PROBLEMS[0], 0, *every[n - 1]) for n in listed]
    scores = scored(tmp_path, sets, kind="sequence", weights="own")
    own = scores["mmd"].sel(target=PROBLEMS[0]).squeeze().dropna("n")
    assert own["n"].values.tolist() == listed
    expected = trials["sbq_sum_to_one", PROBLEMS[0], 0]["mmd"][np.array(listed) - 1]
    assert submitted.close(own, expected, problems()[PROBLEMS[0]].prior_variance)
    (algorithm,) = json.loads(scores.attrs["config"])["algorithms"]
    assert algorithm["sizes"] == listed


@pytest.mark.parametrize(
    ("rule", "weights"),
    [
        ("latin_hypercube", "uniform"),
        ("lattice_bq", "bq"),
        ("recombination", "own"),
        ("stein_thinning", "own"),
    ],
)
def test_sets_have_the_mmds_of_a_sweep(rule, weights, specs, trials, tmp_path):
    found = of_rule(trials, rule)
    sets = []
    for name, seed in found:
        for n in problems()[name].sizes:
            design = submitted.design_of(specs[rule, name], seed, n)
            own = [design.weights] if weights == "own" else []
            sets.append((name, seed, design.points, *own))
    refuse_other(scored(tmp_path, sets, kind="set", weights=weights), found, CURVES)


def test_the_rounding_of_a_number_would_be_noticed(trials, tmp_path):
    found = of_rule(trials, "sbq")
    sets = [(*key, np.round(trial["points"], 9)) for key, trial in found.items()]
    with pytest.raises(AssertionError):
        refuse_other(scored(tmp_path, sets, kind="sequence", weights="bq"), found)


def test_what_was_not_entered_is_missing(trials, tmp_path):
    sets = [
        (PROBLEMS[0], 0, trials["sbq", PROBLEMS[0], 0]["points"][:20]),
        (PROBLEMS[0], 1, trials["sbq", PROBLEMS[0], 1]["points"][:20]),
        (PROBLEMS[1], 0, trials["sbq", PROBLEMS[1], 0]["points"][:7]),
    ]
    scores = scored(tmp_path, sets, kind="sequence", weights="bq")
    assert scores["target"].values.tolist() == list(problems())
    status = scores["status"].squeeze(drop=True)
    assert (status.sel(target=PROBLEMS[:2]).values == [[OK, OK], [OK, MISSING]]).all()
    assert int((status == OK).sum()) == 3
    assert (status.sel(target=list(problems())[-1]) == DOES_NOT_APPLY).all()
    assert (status == MISSING).sum() == 1
    ended = scores["reason"].sel(target=PROBLEMS[1], seed=0).item()
    assert ended == "points were submitted up to n = 7"
    first, second = table_of_scores(scores)
    assert (first["problem"], first["seeds"], first["n"]) == (PROBLEMS[0], 2, 20)
    assert (second["problem"], second["seeds"], second["n"]) == (PROBLEMS[1], 1, 7)


def test_a_table_counts_levels_that_more_than_half_of_the_seeds_reach(tmp_path):
    name, levels = "box_1d_brownian", problems()["box_1d_brownian"].levels
    midpoints = [(np.arange(n)[:, None] + 0.5) / n for n in (8, 64)]
    sets = [(name, 0, midpoints[1]), (name, 1, midpoints[1]), (name, 2, midpoints[0])]
    (row,) = table_of_scores(scored(tmp_path, sets))
    mmd = 1 / (np.sqrt(12) * 64)  # of the midpoints, in closed form
    assert row["mmd"] is None  # the seeds have no n in common
    (first,) = table_of_scores(scored(tmp_path / "two", sets[:2]))
    assert abs(first["mmd"] - mmd) < 1e-12 and first["n"] == 64
    (half,) = table_of_scores(scored(tmp_path / "half", [sets[0], (name, 1, midpoints[0])]))
    assert half["levels"] == sum(level >= 1 / (np.sqrt(12) * 8) for level in levels)
    assert row["n"] == 64 and row["of_levels"] == len(levels) == 51
    assert row["levels"] == sum(level >= mmd for level in levels)
    assert row["best_known"] == min(mmd for _, mmd, _ in problems()[name].best_known)


def test_rounding_is_that_of_the_points_of_each_n(tmp_path):
    """Points at another n, where the kernel is small, hide nothing."""
    name = "box_1d_brownian"
    cheat = [(name, 0, [[0.9], [0.9]], [1e9, -1e9]), (name, 0, np.zeros((64, 1)), np.zeros(64))]
    (row,) = table_of_scores(scored(tmp_path, cheat, kind="set", weights="own"))
    assert row["levels"] == 0 and row["n"] == 64


def test_seeds_that_failed_reach_no_level(trials, tmp_path):
    sets = [(PROBLEMS[0], seed, trials["sbq", PROBLEMS[0], 0]["points"]) for seed in range(3)]
    scores = scored(tmp_path, sets, kind="sequence", weights="bq")
    (whole,) = table_of_scores(scores)
    for seeds, levels, mmd in (([0], whole["levels"], whole["mmd"]), ([0, 1], 0, None)):
        failed, place = scores.copy(deep=True), {"target": PROBLEMS[0], "seed": seeds}
        failed["status"].loc[place] = FAILED
        failed["mmd"].loc[place] = np.nan
        failed["weight_sum"].loc[place] = np.nan
        (row,) = table_of_scores(failed)
        assert (row["seeds"], row["levels"], row["mmd"]) == (3, levels, mmd)


def test_scores_are_written_and_opened_as_they_are(trials, tmp_path):
    sets = [(PROBLEMS[0], 0, trials["sbq", PROBLEMS[0], 0]["points"])]
    scores = scored(tmp_path, sets, kind="sequence", weights="bq")
    check_schema(scores, "scores")
    facts = json.loads(scores.attrs["submission"])
    submission = read_submission(tmp_path / "entry")
    assert facts.pop("sha256") == submission.sha256
    assert facts == submission.about.model_dump()
    path = write_scores(scores, tmp_path / "scores")
    assert path == Layout(tmp_path / "scores").curves
    opened = bqlib.open_results(tmp_path / "scores")
    xr.testing.assert_identical(opened.load(), scores.drop_vars("mmd2_rounding"))
    write_scores(scores, tmp_path / "scores")  # scores may be replaced
    assert [p.name for p in (tmp_path / "scores").iterdir()] == ["curves.zarr"]


def test_scores_merge_with_a_run_of_the_suite(experiment, trials, tmp_path):
    submitted.run(experiment, tmp_path / "run", trials)
    found = of_rule(trials, "sbq")
    sets = [(*key, trial["points"]) for key, trial in found.items()]
    scores = scored(tmp_path, sets, kind="sequence", weights="bq", method="mine")
    write_scores(scores, tmp_path / "scores")
    for order in (("run", "scores"), ("scores", "run")):
        merged = bqlib.open_results([tmp_path / name for name in order])
        assert {*merged["algorithm"].values} == {*SEQUENCES, *SETS, "mine"}
        assert "candidates" not in merged.dims
        of_problems = merged["mmd"].sel(target=PROBLEMS)
        ours, mine = (of_problems.sel(algorithm=name) for name in ("sbq", "mine"))
        np.testing.assert_array_equal(ours, mine)
        assert json.loads(merged.attrs["config"])["problems"].keys() == problems().keys()
    with pytest.raises(FileExistsError, match="no scores of a submission"):
        write_scores(scores, tmp_path / "run")


@pytest.mark.parametrize("text", ["", "{}", '{"attributes": {"submission": ""}}', "{" * 1000])
def test_damaged_curves_are_not_replaced(text, tmp_path):
    scores = scored(tmp_path, [("box_1d_brownian", 0, [[0.5]])])
    at = Layout(tmp_path / "scores").curves
    at.mkdir(parents=True)
    (at / "zarr.json").write_text(text)
    with pytest.raises(FileExistsError, match="no scores of a submission"):
        write_scores(scores, tmp_path / "scores")
    assert (at / "zarr.json").read_text() == text


def test_two_versions_of_a_method_do_not_merge(tmp_path):
    for i, points in enumerate(([[0.25], [0.75]], [[0.2], [0.75]])):
        folder = tmp_path / str(i)
        write_scores(scored(folder, [("box_1d_brownian", 0, points)]), folder)
    with pytest.raises(ValueError, match='algorithm "halves" has design_parameters'):
        bqlib.open_results([tmp_path / "0", tmp_path / "1"])


def test_nothing_to_score_is_an_error(tmp_path):
    with pytest.raises(SubmissionError, match=r"points\.csv: has no rows"):
        scored(tmp_path, [])


def test_points_far_away_are_scored(tmp_path):
    names = ["mixture_2d_matern32", "normal_2d_eq", "box_2d_eq", "rings_eq"]
    sets = [(name, 0, [[1e50, -1e50], [0.0, 1e-300]]) for name in names]
    for weights in ("uniform", "bq"):
        scores = scored(tmp_path / weights, sets, weights=weights)
        found = scores["mmd"].sel(target=names, n=2).squeeze()
        assert np.isfinite(found).all()


def test_one_set_of_several_that_cannot_be_scored_is_told(tmp_path):
    points = [[0.0, 0.0], [1.0, 1.0], [1e50, 0.0]]
    sets = [("mixture_2d_rq", 0, points[:n]) for n in (2, 3)]
    with pytest.raises(SubmissionError, match=r"^points\.csv:2: problem mixture_2d_rq, seed 0: "):
        scored(tmp_path, sets)


def test_an_mmd_that_cannot_be_computed_is_told_with_its_row(tmp_path):
    sets = [("normal_2d_eq", 0, [[0.0, 0.0]]), ("mixture_2d_rq", 0, [[1e50, 0.0], [0.0, 0.0]])]
    with pytest.raises(SubmissionError, match=r"points\.csv:3: problem mixture_2d_rq, seed 0: "):
        scored(tmp_path, sets)
