import json
from dataclasses import replace

import full_size
import numpy as np
import paper_sweep
import pytest
from project import SHELF
from written_claims import RECORDS

from bqlib import Candidates
from bqlib.analysis import fits
from bqlib.claims import (
    PAPERS,
    VERDICTS,
    Evidence,
    Expectation,
    as_json,
    as_text,
    evaluate,
    read,
    table_1,
)
from bqlib.claims.evidence import CORRECTED, FAILS, HOLDS, UNKNOWN, MissingError
from bqlib.claims.huszar2012.table import KNOWN, exponents
from bqlib.cli.main import main
from bqlib.studies import cost, kernel_choice
from bqlib.studies.plans import PLANS
from bqlib.sweep import registry

KEY = "huszar2012"
SWEEP = (
    paper_sweep.SWEEP
    + """
integrands:
  within: {family: rkhs_ball, functions: 20, centre_variance: 3}
  rough: {family: rough_bumps, functions: 20, narrowest: 0.02, widest: 2}
studies: [cost, refinement, alternatives, kernel_choice, submodularity]
"""
)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    """A small run of the paper's sweep with all studies, two seeds each."""
    folder = tmp_path_factory.mktemp("paper")
    curves = paper_sweep.run(folder, SWEEP).compute()
    experiment = paper_sweep.load(folder / "sweep.yaml", SHELF)
    studies = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_choice, "FUNCTIONS", 10)
        patch.setattr(cost, "RUNS", 1)
        for name in experiment.studies:
            spec = replace(experiment.study(name), n=40, candidates=Candidates(300))
            results = [spec.run(seed)[0] for seed in range(2)]
            studies[name] = registry.find("study", name).dataset(results, spec.about())
    return Evidence(curves, fits.fit_rates(curves), studies)


@pytest.fixture(scope="module")
def judged(evidence):
    claims, expected = evaluate(evidence, [KEY])
    return {c.name: c for c in claims}, {e.name: e for e in expected}


def test_every_claim_has_a_verdict_a_place_a_rule_and_a_reason(judged):
    claims, _ = judged
    assert len(claims) == len(PAPERS[KEY].claims) > 30
    for claim in claims.values():
        assert claim.verdict in VERDICTS and claim.claim and claim.where and claim.why
        assert any(verdict in claim.rule for verdict in VERDICTS)
        assert (claim.measured == "-") <= (claim.verdict == UNKNOWN)


@pytest.mark.parametrize(
    "name, verdict",
    [
        ("variance_is_mmd2", HOLDS),
        ("herding_minimises_variance", HOLDS),
        ("herding_rule_as_printed", FAILS),
        ("herding_variance_as_printed", CORRECTED),
        ("bq_is_minimax", HOLDS),
        ("bq_weights_are_no_worse", HOLDS),
        ("sbq_minimises_the_reduction", CORRECTED),
        ("variance_is_blind_to_values", HOLDS),
        ("approximate_submodularity", FAILS),
        ("greedy_is_near_optimal", CORRECTED),
        ("eigenvalues_increase", FAILS),
        ("converges_for_measurable", CORRECTED),
        ("weights_shrink", HOLDS),
        ("error_is_bounded", HOLDS),
        ("drawn_bound", FAILS),
        ("mcmc", UNKNOWN),
    ],
)
def test_verdicts_that_do_not_need_full_size(judged, name, verdict):
    assert judged[0][name].verdict == verdict, judged[0][name]


def test_what_needs_full_size_says_so_and_fails_nothing(judged):
    claims, expected = judged
    assert "needs the paper's pool of 10000" in claims["eight_are_worth_twenty"].why
    assert "needs the window 20-400" in claims["sbq_is_faster"].why
    assert expected["figure_5"].met is None and "needs" in expected["figure_5"].measured
    assert not [e for e in expected.values() if e.met is False]
    assert expected["bound_holds"].met and expected["two_ways_to_mmd"].met


def test_a_sweep_that_lacks_the_paper_is_judged_as_far_as_it_goes(evidence):
    other = evidence.curves.assign_coords(lengthscale=[0.7])
    claims, expected = evaluate(Evidence(other, evidence.rates, {}), [KEY])
    known = [claim.name for claim in claims if claim.verdict != UNKNOWN]
    assert known == ["approximate_submodularity", "kernels_are_characteristic"]
    assert not any(expectation.met is False for expectation in expected)


def test_expectations_need_the_seeds():
    full = full_size.evidence()
    few = Evidence(full.curves.isel(seed=slice(2)), full.rates, {})
    (figure_5,) = [check for check in PAPERS[KEY].expectations if check.name == "figure_5"]
    with pytest.raises(MissingError, match="5 seeds"):
        figure_5.judge(few)


def test_all_of_it_survives_as_json(judged, evidence):
    claims, expected = (list(records.values()) for records in judged)
    rows = table_1(evidence, [KEY])
    assert read(as_json(claims, expected, rows)) == (claims, expected, rows)


def test_claims_of_older_versions_have_no_rule_and_no_paper():
    written = json.loads(as_json(*RECORDS, []))
    for claim in written["claims"]:
        del claim["rule"], claim["paper"]
    for check in written["expectations"]:
        del check["paper"]
    claims, expected, _ = read(json.dumps(written))
    assert expected == RECORDS[1]
    assert claims[0] == replace(RECORDS[0][0], rule="")
    assert "rule:" not in as_text(claims, expected)


def test_the_table_has_a_row_for_each_algorithm(evidence):
    rows = table_1(evidence, [KEY])
    assert [row["algorithm"] for row in rows] == list(KNOWN)
    assert set(KNOWN) - {"joint"} <= {plan.name for plan in PLANS}
    by_name = {row["algorithm"]: row for row in rows}
    assert by_name["joint"]["time_m"] == "-" and by_name["joint"]["rate"] == "-"
    assert float(by_name["sbq"]["mmd_40"]) < float(by_name["herding"]["mmd_40"])
    assert float(by_name["joint"]["mmd_40"]) < float(by_name["sbq"]["mmd_40"])
    assert table_1(Evidence(evidence.curves, evidence.rates, {}), [KEY]) == []


def test_exponents_are_slopes_of_the_upper_half(evidence):
    found = evidence.studies["cost"].copy(deep=True)
    n, pool = (found[name].values.astype(float) for name in ("n", "pool"))
    found["seconds"][:] = 3 * n**2
    found["seconds"][..., 0] = 1e9  # the smallest size does not count
    found["seconds_by_pool"][:] = 2 * pool
    slopes = exponents(found)
    np.testing.assert_allclose(slopes["n"], 2)
    np.testing.assert_allclose(slopes["pool"], 1)


def test_the_text_says_everything_within_its_width():
    text = as_text(*RECORDS, width=60)
    assert max(map(len, text.splitlines())) <= 60
    for said in (
        "HOLDS ", "A claim that holds (Figure 1)", "rule: holds if above 0",
        "measured: 1.0 [0.9, 1.1]", "why: because",
        "2 claims; holds: 1, holds with correction: 0", "met         a number: 2",
        "not tested  another",
    ):  # fmt: skip
        assert said in " ".join(text.split()) or said in text
    assert text.count("measured:") == 1


@pytest.mark.parametrize("met, code", [(True, 0), (None, 0), (False, 1)])
def test_only_our_own_expectations_end_with_an_error(tmp_path, capsys, met, code):
    claims = [replace(RECORDS[0][0], verdict=FAILS)]
    text = as_json(claims, [Expectation("c", "a number", "2", met, KEY)], [])
    (tmp_path / "claims.json").write_text(text, encoding="utf-8")
    assert main(["claims", str(tmp_path)]) == code
    assert "DOES NOT HOLD" in capsys.readouterr().out


def test_a_folder_without_claims_is_told(tmp_path, capsys):
    assert main(["claims", str(tmp_path)]) == 2
    assert "there are no claims in" in capsys.readouterr().err
