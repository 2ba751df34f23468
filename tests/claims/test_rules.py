"""Every verdict changes where the evidence does: negative controls of claims and expectations."""

from dataclasses import replace

import full_size
import numpy as np
import pytest

from bqlib import propositions, published, sbq
from bqlib.claims import huszar2012
from bqlib.claims.evidence import CORRECTED, FAILS, HOLDS, UNKNOWN
from bqlib.claims.huszar2012 import expectations, theory
from bqlib.embeddings import Embedding
from bqlib.weights import uniform

CLAIMS = {check.name: check for check in huszar2012.PAPER.claims}
EXPECTATIONS = {check.name: check for check in huszar2012.PAPER.expectations}
# No Markov chain runs, so this claim is never judged.
NEVER_JUDGED = {"mcmc"}


@pytest.fixture(scope="module")
def full():
    return full_size.evidence()


@pytest.fixture(autouse=True)
def small_designs(monkeypatch):
    """Small pools and few draws: their number is no part of a rule."""
    monkeypatch.setattr(theory, "PAPERS_POOL", 1500)
    monkeypatch.setattr(theory, "POOLS", 1)
    monkeypatch.setattr(theory, "DRAWS", 20_000)


def curves(variable, factor=None, *, to=None, **labels):
    """The curves with a variable multiplied, or set, at some labels."""

    def altered(evidence, monkeypatch):
        changed = evidence.curves.copy(deep=True)
        there = changed[variable].sel(labels)
        changed[variable].loc[labels] = to(changed) if to else (there * factor).values
        return replace(evidence, curves=changed)

    return altered


def as_herding(dataset):
    return dataset["mmd"].sel(algorithm="herding").values


def study(name, variable, factor, **labels):
    """The evidence with a variable of a study multiplied at some labels."""

    def altered(evidence, monkeypatch):
        changed = evidence.studies[name].copy(deep=True)
        changed[variable].loc[labels] = changed[variable].sel(labels) * factor
        return replace(evidence, studies=evidence.studies | {name: changed})

    return altered


def embedding(**given):
    """The evidence with another embedding: its attributes as functions of the right one."""

    def altered(evidence, monkeypatch):
        own = evidence.embedding
        names = ("kernel", "target", "kernel_mean", "kernel_mean_gradient", "prior_variance")
        wrong = Embedding(*(given.get(n, lambda own, n=n: getattr(own, n))(own) for n in names))
        changed = replace(evidence)
        changed.__dict__["embedding"] = wrong
        return changed

    return altered


def instead(module, name, value):
    """The evidence as it is, and something else in the place of what a claim asks."""

    def altered(evidence, monkeypatch):
        monkeypatch.setattr(module, name, value)
        return evidence

    return altered


def crooked(own):
    return lambda x: own.kernel_mean(x) * (1.5 + np.sin(3 * x[:, 0]))


def halved(own):
    return lambda x: own.kernel_mean(x) / 2


def eigenvalues_that_grow(kernel, distances):
    return np.array([[0.2, 1, 1.2], [0.3, 1, 1.3]])


def unrelated(embedding, points, size, rng):
    """Values of functions, and integrals of others."""
    return np.zeros((size, len(points))), rng.standard_normal(size)


def orthonormal(coherence, n):
    return np.eye(n + 1), np.full(n + 1, 0.1)


def not_characteristic(x, y):
    """Its spectral density has no mass at frequencies 0 and above 3."""
    apart = x[:, None, 0] - y[None, :, 0]
    return np.cos(apart) * np.exp(-(apart**2) / 50)


def swapped_points(dataset):
    return dataset["points"].sel(algorithm="herding").values


def rates(variable, value, **labels):
    """The evidence with other rates."""

    def altered(evidence, monkeypatch):
        changed = evidence.rates.copy(deep=True)
        changed[variable].loc[labels] = value
        return replace(evidence, rates=changed)

    return altered


def rate_of(algorithm, low, high):
    """The evidence with another interval of the exponent of an algorithm's power law."""

    def altered(evidence, monkeypatch):
        for name, value in (("rate_low", low), ("rate", (low + high) / 2), ("rate_high", high)):
            alter = rates(name, value, algorithm=algorithm, model="power_law")
            evidence = alter(evidence, monkeypatch)
        return evidence

    return altered


def grown(name, power):
    """The cost study with CPU time that grows as another power of n."""

    def altered(evidence, monkeypatch):
        changed = evidence.studies["cost"].copy(deep=True)
        for plan in (name, f"{name}_fresh"):
            n = changed["n"].values.astype(float)
            changed["seconds"].loc[{"plan": plan}] = np.tile(n**power, (5, 1))
        return replace(evidence, studies=evidence.studies | {"cost": changed})

    return altered


# Claim to its verdict by the evidence, and alterations with the verdict by each of them.
CONTROLS = {
    "variance_is_mmd2": (
        HOLDS,
        (embedding(prior_variance=lambda own: 1.001 * own.prior_variance), FAILS),
        (
            instead(propositions, "joint_draws", unrelated),
            FAILS,
        ),
    ),
    "herding_minimises_variance": (HOLDS, (embedding(kernel_mean=crooked), FAILS)),
    "herding_rule_as_printed": (FAILS, (embedding(kernel_mean=halved), HOLDS)),
    "herding_variance_as_printed": (
        CORRECTED,
        (embedding(kernel_mean=lambda own: lambda x: np.zeros(len(x))), HOLDS),
        (instead(propositions, "printed_herding_variance", lambda *a: 1.0), FAILS),
    ),
    "bq_is_minimax": (
        HOLDS,
        (instead(theory, "bq", uniform), FAILS),
        (instead(propositions, "adversary", lambda *a: (0.1, 1.0)), FAILS),
    ),
    "bq_weights_are_no_worse": (HOLDS, (curves("mmd", 9, algorithm="herding_bq"), FAILS)),
    "sbq_minimises_the_reduction": (
        CORRECTED,
        (embedding(kernel_mean=crooked), FAILS),
        (instead(theory, "decrement", lambda z, d: -(z**2)), HOLDS),
    ),
    "variance_is_blind_to_values": (HOLDS, (instead(theory, "bq", uniform), FAILS)),
    "approximate_submodularity": (
        FAILS,
        (instead(propositions, "counterexample", orthonormal), HOLDS),
    ),
    "greedy_is_near_optimal": (CORRECTED, (study("submodularity", "greedy", 0.8), FAILS)),
    "eigenvalues_increase": (
        FAILS,
        (instead(propositions, "eigenvalues_of_a_pair", eigenvalues_that_grow), HOLDS),
    ),
    "converges_for_measurable": (CORRECTED, (curves("weight_sum", 0.1), HOLDS)),
    "kernels_are_characteristic": (
        HOLDS,
        (instead(theory, "KERNELS", {"made up": not_characteristic}), FAILS),
    ),
    "jitter_is_harmless": (
        CORRECTED,
        (instead(propositions, "with_jitter", lambda *a: (1.2, 1.0, 0.0)), FAILS),
        (instead(propositions, "with_jitter", lambda *a: (1.002, 1.0, 0.0)), HOLDS),
    ),
    "pool_is_drawn_from_the_target": (HOLDS, (curves("mmd", 10, algorithm="sbq"), FAILS)),
    "eight_are_worth_twenty": (HOLDS, (curves("mmd", algorithm="sbq", to=as_herding), FAILS)),
    "weights_sum_to": (
        CORRECTED,
        (curves("points", algorithm="sbq", to=swapped_points), HOLDS),
        (curves("points", 1.5), FAILS),
    ),
    "weights_are_spread": (HOLDS, (curves("points", 3), FAILS)),
    "weights_shrink": (
        HOLDS,
        (curves("weight_sum", 1.1), FAILS),
        (curves("weight_sum", to=lambda d: np.full(d["weight_sum"].shape, 0.9)), FAILS),
    ),
    "sbq_dominates": (
        HOLDS,
        (curves("mmd", 1.1, algorithm="sbq"), FAILS),
        (curves("mmd", 1.01, algorithm="sbq", n=1), CORRECTED),
        (curves("mmd", 0.01, algorithm="herding", n=400), FAILS),
    ),
    "points_matter": (HOLDS, (curves("mmd", 0.2, algorithm="herding_bq"), FAILS)),
    "sbq_is_superior": (
        CORRECTED,
        (study("alternatives", "mmd", 0.8, plan="omp"), FAILS),
        (study("alternatives", "mmd", 1.2, plan="omp"), HOLDS),
    ),
    "herding_is_one_over_n": (
        CORRECTED,
        (rate_of("herding", 0.99, 1.01), HOLDS),
        (rate_of("herding", 1.1, 1.2), FAILS),
    ),
    "sbq_is_faster": (HOLDS, (rates("faster_p", 0.06, octave="first"), FAILS)),
    "form_of_the_rate": (
        CORRECTED,
        (rates("verdict", "none fits"), HOLDS),
        (rates("verdict", "undecided"), UNKNOWN),
    ),
    "iid_rate": (
        HOLDS,
        (curves("mmd", 1.1, algorithm="iid"), FAILS),
        (curves("mmd", algorithm="iid", to=as_herding), FAILS),
    ),
    "herding_rate_bounds": (
        CORRECTED,
        (rate_of("herding", 1.1, 1.2), FAILS),
    ),
    "herding_cost": (CORRECTED, (grown("herding", 2), HOLDS), (grown("herding", 3), FAILS)),
    "sbq_cost": (CORRECTED, (grown("sbq", 3), HOLDS), (grown("sbq", 4), FAILS)),
    "within_model": (
        CORRECTED,
        (curves("error", 100, algorithm="sbq"), FAILS),
        (curves("error", 2), FAILS),
        (instead(published, "SHIFT", 0), HOLDS),
    ),
    "error_is_bounded": (HOLDS, (curves("bound_ratio", 2.1, algorithm="iid", n=7), FAILS)),
    "drawn_bound": (FAILS, (curves("bound_ratio", 1e-4), HOLDS)),
    "out_of_model": (
        CORRECTED,
        (curves("error", 1e-3, algorithm="iid"), FAILS),
        (curves("error", integrand="bumps_narrow", to=lambda d: d["mmd"].values), HOLDS),
    ),
    "local_optimiser": (
        CORRECTED,
        (study("refinement", "mmd", 0.5, plan="refined"), FAILS),
        (study("refinement", "mmd", [[2.3, 28]], plan="joint"), HOLDS),
    ),
    "switching": (
        CORRECTED,
        (study("alternatives", "mmd", 2, plan="sbq_200_herding"), FAILS),
        (study("alternatives", "mmd", 2, plan="herding_bq"), HOLDS),
    ),
    "width_matters": (HOLDS, (study("kernel_choice", "mmd", 0.2, weigh=2.0), FAILS)),
    "marginal_likelihood": (
        CORRECTED,
        (study("kernel_choice", "error", 9, recipe="fitted"), FAILS),
        (study("kernel_choice", "coverage", 1.2, recipe="fitted"), HOLDS),
    ),
}  # fmt: skip


def test_no_claim_lacks_a_control():
    assert set(CONTROLS) == set(CLAIMS) - NEVER_JUDGED
    assert set(FAILURES) == set(EXPECTATIONS)


@pytest.mark.parametrize("name", CONTROLS)
def test_a_verdict_changes_with_the_evidence(full, monkeypatch, name):
    verdict, *alterations = CONTROLS[name]
    assert CLAIMS[name].judge(full)[0] == verdict
    for alter, other in alterations:
        with monkeypatch.context() as patch:
            found = CLAIMS[name].judge(alter(full, patch))
        assert found[0] == other, found


def test_a_claim_on_a_formula_is_judged_whatever_the_pool_of_the_sweep(full):
    config = full.curves.attrs["config"].replace('"size": 10000', '"size": 30')
    small = replace(full, curves=full.curves.assign_attrs(config=config))
    assert small.size == 30
    assert CLAIMS["herding_rule_as_printed"].judge(small)[0] == FAILS


def short_by_a_tenth(*arguments):
    return 0.9, 1.0, 0.0


# Expectation to an alteration of the evidence by which it is not met.
FAILURES = {
    "figure_5": curves("mmd", 1.3, algorithm="sbq"),
    "figure_4": curves("weight_sum", 1.05),
    "figure_6": curves("error", 1.5),
    "figure_3_bars": instead(published, "sum_of_bars", lambda: 0.95),
    "figure_3_sums": curves("points", 1.2),
    "figure_1": curves("mmd", 1.2, algorithm="sbq"),
    "mmd_at_400": curves("mmd", 1.2, algorithm="herding"),
    "sbq_exponent": rates("exponent", 0.53),
    "herding_exponent": rate_of("herding", 0.94, 0.96),
    "iid_exponent": curves("mmd", algorithm="iid", to=as_herding),
    "iid_constant": curves("mmd", 1.1, algorithm="iid"),
    "faster_than_one_over_n": rates("faster", "yes"),
    "bound_holds": curves("bound_ratio", 2.1, algorithm="iid", n=7),
    "two_ways_to_mmd": instead(expectations, "spectral_mmd2", lambda *a: 1.0),
    "jitter_identity": instead(propositions, "with_jitter", short_by_a_tenth),
    "joint_refinement": study("refinement", "mmd", 2, plan="joint"),
    "greedy_guarantee": study("submodularity", "greedy", 0.1),
}


@pytest.mark.parametrize("name", FAILURES)
def test_an_expectation_is_not_met_where_the_numbers_are_others(full, monkeypatch, name):
    assert EXPECTATIONS[name].judge(full)[0]
    assert not EXPECTATIONS[name].judge(FAILURES[name](full, monkeypatch))[0]


def test_points_of_sbq_are_those_of_the_curves_or_picked_where_these_lack_some(full):
    pool = theory.a_pool(full, 0)
    own = full.curves["points"].sel(full.cell | {"algorithm": "sbq", "seed": 0}).values
    np.testing.assert_array_equal(theory.points_of_sbq(full, 0, pool, 120), own[:120])
    picked = sbq(full.embedding.target, full.embedding.kernel, 5, rng=0, candidates=pool).points
    assert not np.array_equal(picked, own[:5])
    without = replace(full, curves=full.curves.sel(algorithm=["herding"]))
    ended = curves("points", np.nan, algorithm="sbq")(full, None)
    for lacking in (without, ended):
        np.testing.assert_array_equal(theory.points_of_sbq(lacking, 0, pool, 5), picked)
