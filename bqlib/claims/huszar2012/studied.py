"""Claims that studies judge: on costs, other algorithms, refinement and the kernel's width."""

import numpy as np

from bqlib.claims.evidence import (
    CORRECTED,
    FAILS,
    HOLDS,
    checks_of,
    claim,
    factor,
    factor_over_seeds,
    interval,
    over_seeds,
    said,
)
from bqlib.claims.huszar2012.table import exponents
from bqlib.studies.refinement import steps_in_words


@claim(
    "Abstract",
    "SBQ is superior to any other weighted herding method",
    "holds if every other rule that picks points one after another has an MMD larger by 10 %, by "
    "95 % intervals of ratios; with correction (it ties) if none has one smaller by 10 %; else not",
)
def sbq_is_superior(evidence):
    evidence.need_full_size()
    plans = evidence.study("alternatives")["mmd"].isel(n=-1)
    own = plans.sel(plan="sbq").values
    others = [name for name in plans["plan"].values.tolist() if name != "sbq"]
    ratios = {name: plans.sel(plan=name).values / own for name in others}
    ends = {name: factor_over_seeds(ratio)[1:] for name, ratio in ratios.items()}
    close = [name for name, (low, _) in ends.items() if low <= 1.1]
    better = any(high < 0.9 for _, high in ends.values())
    nearest = sorted(others, key=lambda name: ends[name][0])[: max(2, len(close))]
    return (
        FAILS if better else CORRECTED if close else HOLDS,
        f"MMD at n = {int(plans['n'])} divided by that of SBQ, the least of {len(others)} others: "
        + ", ".join(f"{name} {factor(ratios[name])}" for name in nearest),
        "it picks the best next point with the best weights, not the best set of points"
        + (f"; near it: {', '.join(close)}" if close else ""),
    )


_COST = (
    "holds with correction (it is O({}) over one pool of M) if, over one pool, CPU time grows at "
    "most as these powers of N and M; holds if, with new candidates at each step, at most as N^{}; "
    "else not; within 0.2 and by the upper ends of 95 % intervals of the powers"
)


@claim("Table 1", "N herding points cost O(N^2)", _COST.format("M N", 2))
def herding_cost(evidence):
    return _cost(evidence, "herding", "herding_fresh", 2)


@claim("Table 1", "N points of SBQ cost O(N^3)", _COST.format("M N^2", 3))
def sbq_cost(evidence):
    return _cost(evidence, "sbq", "sbq_fresh", 3)


@claim(
    "Experiments",
    "A local optimiser at each pick makes no difference",
    "holds if the mean factor on the MMD is below 1.25 at every n, at each pick and for all points "
    "jointly; with correction (only for single picks) if at each pick; else not",
)
def local_optimiser(evidence):
    evidence.need_full_size()
    study = evidence.study("refinement")
    mmd = study["mmd"].transpose("plan", "seed", "n")
    sizes = mmd["n"].values
    refined, joint = (
        (mmd.sel(plan="sbq") / mmd.sel(plan=plan)).values for plan in ("refined", "joint")
    )
    largest = [np.abs(np.log(ratio).mean(axis=0)).max() for ratio in (refined, joint)]
    limit = np.log(1.25)
    return (
        FAILS if largest[0] > limit else CORRECTED if largest[1] > limit else HOLDS,
        "; ".join(
            f"{what} divides the MMD by "
            + ", ".join(
                f"{factor(column)} (n = {n})" for n, column in zip(sizes, ratio.T, strict=True)
            )
            for what, ratio in (
                ("at each pick it", refined),
                (f"jointly ({steps_in_words(study)}) it", joint),
            )
        ),
        "nearly true for single picks, but moving all points jointly makes a large difference",
    )


@claim(
    "Discussion",
    "One may switch to a cheaper algorithm as N grows",
    "holds if herding after 50, 100 and 200 points of SBQ has a smaller MMD than herding from the "
    "start, by 95 % intervals of ratios; with correction (to a late switch) if after 200; else not",
)
def switching(evidence):
    evidence.need_full_size()
    mmd = evidence.study("alternatives")["mmd"].isel(n=-1)
    ratios = {
        n: (mmd.sel(plan=f"sbq_{n}_herding") / mmd.sel(plan="herding_bq")).values
        for n in (50, 100, 200)
    }
    smaller = [factor_over_seeds(ratio)[2] < 1 for ratio in ratios.values()]
    blocks = (mmd.sel(plan="block_sbq_5") / mmd.sel(plan="sbq")).values
    why = f"SBQ in blocks of 5 is another way: it has {factor(blocks)} times the MMD of SBQ"
    if "cost" in evidence.studies:
        seconds = evidence.study("cost")["seconds"].isel(n=-1).median("seed")
        plans = ("sbq", "block_sbq_5", "sbq_200_herding", "herding_bq")
        took = ", ".join(f"{name} {float(seconds.sel(plan=name)):.2f}" for name in plans)
        why += f"; CPU seconds: {took}"
    return (
        HOLDS if all(smaller) else CORRECTED if smaller[-1] else FAILS,
        f"MMD at n = {int(mmd['n'])}, all with BQ weights, divided by that of herding: "
        + ", ".join(f"{factor(ratio)} after {n}" for n, ratio in ratios.items()),
        why,
    )


@claim(
    "Discussion",
    "Convergence is sensitive to the width of the kernel",
    "holds if half and twice the width, for points and weights and for weights alone, all multiply "
    "the MMD by more than 1.2, by the lower ends of 95 % intervals",
)
def width_matters(evidence):
    evidence.need_full_size()
    own = evidence.study("kernel_choice")["mmd"].sel(evaluate=1.0)
    best = own.sel(select=1.0, weigh=1.0)
    both = {f: (own.sel(select=f, weigh=f) / best).values for f in (0.5, 2.0)}
    weights = {f: (own.sel(select=1.0, weigh=f) / best).values for f in (0.5, 2.0)}
    least = min(factor_over_seeds(of[f])[1] for of in (both, weights) for f in of)
    return (
        HOLDS if least > 1.2 else FAILS,
        f"by {factor(both[0.5])} with half the width, {factor(both[2.0])} with twice; if only the "
        f"weights have that width, {factor(weights[0.5])} and {factor(weights[2.0])}",
        "the width matters for the choice of points and for the weights",
    )


@claim(
    "Discussion",
    "Kernel parameters may be fitted by marginal likelihood",
    "holds if the fit lowers the error where f is smoother than assumed, by a 95 % interval, and "
    "95 % intervals for Z cover at least 90 % whatever the width of f; with correction (they cover "
    "less) if only the first; else not",
)
def marginal_likelihood(evidence):
    evidence.need_full_size()
    study = evidence.study("kernel_choice")
    error = study["error"].sel(truth=2.0)
    gain = (error.sel(recipe="assumed") / error.sel(recipe="fitted")).values
    covered = {
        width: 100 * study["coverage"].sel(truth=truth, recipe="fitted").values
        for truth, width in ((2.0, "smoother"), (1.0, "as assumed"), (0.5, "rougher"))
    }
    pays = factor_over_seeds(gain)[1] > 1
    covers = min(over_seeds(values)[0] for values in covered.values()) >= 90
    return (
        HOLDS if pays and covers else CORRECTED if pays else FAILS,
        f"with 50 values, it divides the error by {factor(gain)} if f is smoother; its intervals "
        "cover "
        + ", ".join(f"{interval(v, 0)} % if it is {width}" for width, v in covered.items()),
        "the intervals ignore the uncertainty of the fit, and points chosen with the fitted kernel "
        "depend on f",
    )


def _cost(evidence, pooled, fresh, power):
    evidence.need_full_size()
    found = exponents(evidence.study("cost"))
    n, anew = (over_seeds(found["n"].sel(plan=plan).values) for plan in (pooled, fresh))
    pool = over_seeds(found["pool"].sel(plan=pooled).values)
    one_pool = n[2] <= power - 1 + 0.2 and pool[2] <= 1.2
    return (
        CORRECTED if one_pool else HOLDS if anew[2] <= power + 0.2 else FAILS,
        f"over one pool it grows as N^{said(n, 2)} and as M^{said(pool, 2)}, with new candidates "
        f"as N^{said(anew, 2)}",
        "the table does not count the search; O is an upper bound, and at these sizes fixed costs "
        "keep the exponents below it",
    )


CHECKS = checks_of(globals())
