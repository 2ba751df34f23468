"""Rules of a sweep as submissions."""

import numpy as np
import pytest
import submitted

import bqlib
from bqlib.schema import FAILED
from bqlib.suite.of_results import USED, information_of, point_sets_of
from bqlib.suite.scores import score
from bqlib.sweep.problems import problems
from bqlib.sweep.registry import PLACES, find

PROBLEMS = ["box_1d_korobov1", "mixture_1d_matern32", "logistic_5d_stein"]
RULES = ["sobol_bq", "iid", "stein_thinning", "sbq_nonnegative"]


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    experiment = submitted.sweep_of(PROBLEMS, RULES)
    folder = tmp_path_factory.mktemp("results")
    submitted.run(experiment, folder)
    return bqlib.open_results(folder).load()


def test_what_each_design_of_bqlib_uses_is_known():
    assert not {*PLACES["design"]} - {*USED}
    for name in {*USED} - {*PLACES["design"]}:
        assert callable(find("design", name))


def test_a_rule_says_what_it_uses(curves):
    used = {rule: point_sets_of(curves, rule)[0]["information"] for rule in RULES}
    assert used == {
        "sobol_bq": [],
        "iid": ["draws"],
        "stein_thinning": ["score", "pool"],
        "sbq_nonnegative": ["z", "pool"],
    }
    assert information_of({"design": "rpcholesky", "weights": "bq"}) == ("pool",)
    assert information_of({"design": "rpcholesky", "weights": "simplex"}) == ("z", "pool")
    assert information_of({"design": "mine.py:design", "weights": "bq"}) is None


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_the_mmds_that_it_has_in_the_sweep(rule, curves, tmp_path):
    facts, sets, left_out = point_sets_of(curves, rule)
    whole = facts["weights"] != "own"
    assert whole == (rule in ("sobol_bq", "iid"))
    assert (facts["kind"] == "set") == (rule == "stein_thinning")
    scores = score(submitted.write(tmp_path, sets, **facts))
    assert len(sets) + len(left_out) == 2 * len(PROBLEMS) and sets
    for name, seed, *_ in sets:
        place = {"target": name, "seed": seed}
        ours = scores["mmd"].sel(place).squeeze()
        theirs = curves["mmd"].sel(place | {"algorithm": rule}).squeeze()
        n = int(curves["rank_reached"].sel(place | {"algorithm": rule}).item())
        if not whole:
            assert ours.dropna("n")["n"].values.tolist() == [n]
            ours, theirs = ours.sel(n=[n]), theirs.sel(n=[n])
        n = theirs.sizes["n"]
        assert submitted.close(ours[:n], theirs, problems()[name].prior_variance)


def test_trials_without_points_are_left_out_and_told(curves):
    status = curves["status"].copy()
    status.loc[{"target": PROBLEMS[0], "seed": 0}] = FAILED
    _, sets, left_out = point_sets_of(curves.assign(status=status), "stein_thinning")
    assert {(PROBLEMS[0], 0), (PROBLEMS[0], 1)} <= {*left_out}
    assert PROBLEMS[0] not in [name for name, *_ in sets]
    with pytest.raises(ValueError, match="iid has points on no problem"):
        point_sets_of(curves.assign(status=status * 0 + FAILED), "iid")


def test_what_cannot_be_a_submission_is_told(curves):
    with pytest.raises(ValueError, match="no algorithm joint; there are sobol_bq, iid"):
        point_sets_of(curves, "joint")
    changed = problems()[PROBLEMS[0]].sha256
    other = curves.assign_attrs(config=curves.attrs["config"].replace(changed, "0" * 64))
    with pytest.raises(ValueError, match="box_1d_korobov1 is another one in this version"):
        point_sets_of(other, "iid")
    grid = bqlib.curves(
        bqlib.Uniform([0.0], [1.0]), bqlib.Brownian(), "iid", 2, 1,
        candidates=bqlib.Candidates(10), progress=False,
    )  # fmt: skip
    with pytest.raises(ValueError, match="not of a sweep with problems of the suite"):
        point_sets_of(grid, "iid")


def test_points_of_a_problem_have_its_dimension(curves):
    _, sets, _ = point_sets_of(curves, "stein_thinning")
    dims = {name: points.shape[1] for name, _, points, _ in sets}
    assert dims["logistic_5d_stein"] == 5
    assert all(np.isfinite(points).all() for _, _, points, _ in sets)
