"""Claims on formulas and propositions, checked numerically. Derivations: docs/errata.md."""

import numpy as np

from bqlib import propositions, published
from bqlib.candidates import Candidates
from bqlib.claims.evidence import CORRECTED, FAILS, HOLDS, checks_of, claim
from bqlib.designs.herding import herding
from bqlib.designs.sbq import decrement, sbq
from bqlib.discrepancy import mmd, mmd2
from bqlib.posterior import integral
from bqlib.streams import stream
from bqlib.weights import bq

POOL = 10_000  # candidates of the designs that are computed here


def some_points(evidence, n, purpose):
    """n draws from the target, and the random stream after them."""
    rng = stream(f"claims/{purpose}", 0)
    return evidence.embedding.target.sample(n, rng), rng


@claim(
    "Proposition 1", "The expected squared error of BQ is the squared MMD of its weighted points"
)
def variance_is_mmd2(evidence):
    points, rng = some_points(evidence, 30, "proposition 1")
    weights = rng.dirichlet(np.ones(30)) + 0.02 * rng.standard_normal(30)
    formula, spectral, simulated, error = propositions.variance_and_mmd2(
        evidence.embedding, points, weights, rng
    )
    ratio, half = simulated / formula, 1.96 * error / formula
    same = abs(formula / spectral - 1) < 1e-10 and abs(ratio - 1) < 2 * half
    return (
        HOLDS if same else FAILS,
        f"relative difference of the two formulas {abs(formula / spectral - 1):.0e}; a simulation "
        f"gives {ratio:.4f} [{ratio - half:.4f}, {ratio + half:.4f}] times their value",
        "it holds for any weights, not only for those of BQ",
    )


@claim("Abstract", "Herding minimises the variance that BQ has with equal weights")
def herding_minimises_variance(evidence):
    pool, _ = some_points(evidence, 300, "herding")
    embedding, n = evidence.embedding, 12
    points = herding(embedding.target, embedding.kernel, n, rng=0, candidates=pool).points
    right = 0
    for m in range(n):
        equal = np.full(m + 1, 1 / (m + 1))
        scores = [mmd2(embedding, np.vstack([points[:m], x[None]]), equal) for x in pool]
        right += np.array_equal(pool[np.argmin(scores)], points[m])
    return (
        HOLDS if right == n else FAILS,
        f"{right} of {n} picks are the best of {len(pool)} candidates, all of which were tried",
        "it holds for the rule as derived, which differs from the printed one",
    )


@claim("Section on herding", "Herding picks argmax 2 E k(x, x') - sum_m k(x, x_m) / (n + 1)")
def herding_rule_as_printed(evidence):
    embedding, n = evidence.embedding, 400
    pool = embedding.target.sample(POOL, stream("candidates", 0))
    equal = np.full(n, 1 / n)
    printed = mmd(embedding, propositions.printed_herding(embedding, pool, n), equal)
    right = herding(embedding.target, embedding.kernel, n, rng=0, candidates=pool).points
    own = mmd(embedding, right, equal)
    return (
        FAILS if printed > 2 * own else HOLDS,
        f"MMD at n = {n}: {printed:.4f} with the printed rule, {own:.4f} with the derived rule",
        "the factor 2 belongs to both terms or to neither; the figures use the derived rule",
    )


@claim("Expected variance of herding", "eps^2 = E k(x, x') - (1/N) sum z + (1/N^2) sum k(x_n, x_m)")
def herding_variance_as_printed(evidence):
    points, _ = some_points(evidence, 100, "herding variance")
    equal = np.full(100, 0.01)
    printed = propositions.printed_herding_variance(evidence.embedding, points)
    own = mmd2(evidence.embedding, points, equal)
    cross = evidence.embedding.kernel_mean(points).mean()
    same = abs(printed - cross - own) < 1e-12
    return (
        CORRECTED if same else FAILS,
        f"for 100 points: {printed:.5f} as printed, {own:.5f} with -(2/N) sum z",
        "the cross term lacks a factor 2",
    )


@claim("Section on BQ and MMD", "No other estimate from the same points has a smaller worst error")
def bq_is_minimax(evidence):
    points, rng = some_points(evidence, 60, "minimax")
    largest, ratio = propositions.adversary(evidence.embedding, points)
    weights = bq(evidence.embedding, points).final(60)
    best = mmd(evidence.embedding, points, weights)
    others = [
        mmd(evidence.embedding, points, weights + scale * rng.standard_normal(60))
        for scale in np.geomspace(1e-4, 1e-1, 100)
    ]
    holds = largest < 1e-9 and abs(ratio - 1) < 1e-9 and min(others) >= best
    return (
        HOLDS if holds else FAILS,
        f"a function of norm one is below {largest:.0e} at all 60 points, but its integral is the "
        f"MMD (relative difference {abs(ratio - 1):.0e}); none of 100 other weightings has a "
        "smaller MMD",
        "no estimate from these points can distinguish that function from its negative",
    )


@claim("Corollary", "On the same points, BQ weights have no larger MMD than equal weights")
def bq_weights_are_no_worse(evidence):
    equal, own = (evidence.curve("mmd", name) for name in ("herding", "herding_bq"))
    seeds = min(len(equal), len(own))
    ratio = own[:seeds] / equal[:seeds]
    return (
        HOLDS if np.nanmax(ratio) <= 1 + 1e-9 else FAILS,
        f"on herding's points, BQ weights have at most {np.nanmax(ratio):.3f} times the MMD of "
        f"equal weights, at any n and in {seeds} seeds",
        "it is about weights on the same points; it does not compare SBQ's and herding's points",
    )


@claim("Section on SBQ", "SBQ picks the point that minimises the instantaneous reduction in MMD")
def sbq_minimises_the_reduction(evidence):
    pool, _ = some_points(evidence, 500, "reduction")
    embedding = evidence.embedding
    falls = decrement(embedding.kernel_mean(pool), embedding.kernel.diagonal(pool))
    first = sbq(embedding.target, embedding.kernel, 1, rng=0, candidates=pool).points[0]
    rank = int((falls > falls[(pool == first).all(axis=1)]).sum()) + 1
    return (
        CORRECTED if rank == 1 else FAILS,
        f"by the reduction of MMD^2, its first pick is number {rank} of {len(pool)} candidates, "
        "the largest first",
        "SBQ maximises the reduction",
    )


@claim("Section on BQ", "The posterior variance does not depend on the values of f")
def variance_is_blind_to_values(evidence):
    points, rng = some_points(evidence, 40, "variance")
    weights = bq(evidence.embedding, points).final(40)
    fixed, fitted = [], []
    for _ in range(2):
        values = rng.standard_normal(40)
        fixed.append(integral(evidence.embedding, points, weights, values, output_scale=1.0).std)
        fitted.append(integral(evidence.embedding, points, weights, values).std)
    return (
        HOLDS if fixed[0] == fixed[1] else FAILS,
        f"standard deviations for two functions: {fixed[0]:.5f} and {fixed[1]:.5f}; with a fitted "
        f"output scale: {fitted[0]:.5f} and {fitted[1]:.5f}",
        "it holds for a fixed kernel, but not if kernel parameters are fitted to f",
    )


@claim("Proposition 2", "The variance is approximately submodular, with a constant below 4 r")
def approximate_submodularity(evidence):
    coherence, n = 0.1, 90
    gram, mean = propositions.counterexample(coherence, n)
    alone, after = propositions.gain_alone_and_after(gram, mean)
    violated = after - alone > 4 * coherence
    measured = (
        f"a counterexample violates submodularity by {after - alone:.2f}, but 4 r is "
        f"{4 * coherence:.2f}"
    )
    if "submodularity" in evidence.studies:
        study = evidence.study("submodularity")
        measured += (
            f"; pools of the mixture violate it by at most {float(study['violation'].max()):.3f} "
            f"V0, with r = {float(study['pool_coherence'].min()):.5f} k(x, x)"
        )
    return (
        FAILS if violated else HOLDS,
        measured,
        "it also changes with the scale of the kernel, and says nothing about dense pools",
    )


@claim("After Proposition 2", "So greedy picks are close to the best")
def greedy_is_near_optimal(evidence):
    study = evidence.study("submodularity")
    reached = (study["greedy"] / study["best"]).values
    promised = 1 - np.exp(-study["ratio"].values)
    return (
        CORRECTED if (reached >= promised).all() else FAILS,
        f"in {reached.shape[0]} pools, V0 - MMD^2 is at least {reached.min():.4f} times that of "
        f"the best set; the submodularity ratio guarantees at least {promised.min():.2f}",
        "it follows from the submodularity ratio of Das and Kempe (2011), not from Proposition 2",
    )


@claim("Section on BQ", "As points come close, the eigenvalues of K increase")
def eigenvalues_increase(evidence):
    kernel = evidence.embedding.kernel
    far, near = propositions.eigenvalues_of_a_pair(kernel, np.array([1.0, 0.1]))
    return (
        FAILS if near[0] < far[0] and near[2] == far[2] else HOLDS,
        f"two points at distances 1 and 0.1: smallest eigenvalue {far[0]:.3f} and {near[0]:.3f}, "
        f"trace {far[2]:.3f} and {near[2]:.3f}",
        "their sum is constant: the smallest decreases, and the largest of the inverse increases",
    )


@claim("Section on MMD", "If MMD vanishes, integrals of all bounded measurable f converge")
def converges_for_measurable(evidence):
    sums = evidence.curve("weight_sum", "sbq")[:, -1]
    norms = evidence.curve("weight_l1", "sbq")[:, -1]
    return (
        CORRECTED if sums.min() > 0.5 else HOLDS,
        f"f = 1 at the points and 0 elsewhere has integral 0, but {evidence.n} points of SBQ "
        f"estimate {sums.mean():.4f}; sum of absolute weights {norms.mean():.2f}",
        "it holds for bounded continuous f if the sum of absolute weights stays bounded",
    )


@claim("Section on MMD", "The Gaussian and Laplacian kernels are characteristic")
def kernels_are_characteristic(evidence):
    return HOLDS, "their spectral densities are positive everywhere", "a theorem, not measured"


@claim("Published code", "A jitter of 1e-6 does not change the curve of SBQ")
def jitter_is_harmless(evidence):
    embedding, n = evidence.embedding, 400
    pool = embedding.target.sample(POOL, stream("candidates", 0))
    design = sbq(embedding.target, embedding.kernel, n, rng=0, candidates=pool)
    exact = mmd(embedding, design.points, design.weights)
    jitter = 1e-6 * embedding.kernel.diagonal(pool).max()
    points = propositions.sbq_with_jitter(embedding, pool, n, jitter)
    reported, true, norm2 = propositions.with_jitter(embedding, points, jitter)
    more = [100 * (np.sqrt(value) / exact - 1) for value in (reported, true)]
    same = abs(reported - true - jitter * norm2) < 1e-6 * reported
    return (
        CORRECTED if same and more[0] > 0.1 else HOLDS,
        f"with jitter in picks, weights and variance, the reported MMD at n = {n} changes by "
        f"{more[0]:+.1f} %, the true MMD by {more[1]:+.1f} %",
        "the reported value is MMD^2 + jitter |w|^2, an upper bound",
    )


@claim("Experiments", "Points are picked from 10000 draws from p")
def pool_is_drawn_from_the_target(evidence):
    evidence.need_full_size()
    embedding = evidence.embedding
    box = Candidates(POOL, "box", box=((-6.0, 6.0), (-5.0, 3.0)))
    design = sbq(embedding.target, embedding.kernel, 400, rng=0, candidates=box)
    boxed = mmd(embedding, design.points, design.weights)
    own = np.exp(np.log(evidence.curve("mmd", "sbq")[:, 399]).mean())
    n, value = published.curves("mmd")["sbq"]
    theirs = value[n == 400][0]
    return (
        HOLDS if abs(np.log(own / theirs)) < abs(np.log(boxed / theirs)) else FAILS,
        f"MMD of SBQ at n = 400: published {theirs:.6f}; with candidates from p {own:.6f}, from "
        f"the box of the published code {boxed:.6f}",
        "the figures agree with the text, not with the published code",
    )


CHECKS = checks_of(globals())
