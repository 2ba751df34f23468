"""Claims on the figures, the rates, Table 1 and the discussion, judged by the results."""

import numpy as np

from bqlib import published
from bqlib.analysis.fits import worded
from bqlib.analysis.paper import (
    HERDING_POINTS,
    SBQ_POINTS,
    against_published,
    bq_weights,
    matching_sizes,
)
from bqlib.claims.evidence import (
    CORRECTED,
    FAILS,
    HOLDS,
    UNKNOWN,
    checks_of,
    claim,
    interval,
)
from bqlib.claims.table import exponents
from bqlib.rates import log_spaced, p_greater, power_law
from bqlib.studies.refinement import steps_in_words

CHANCE = 0.001  # p-value below which a claim fails; among so many claims, 1 in 20 is likely
PAPERS = ("iid", "herding", "herding_bq", "sbq")  # the paper's, from the worst to the best


@claim("Figure 1", "8 weighted points of SBQ have the MMD of 20 points of herding")
def eight_are_worth_twenty(evidence):
    evidence.need_full_size()
    sizes = matching_sizes(evidence.curves, evidence.cell)
    right = int((sizes == SBQ_POINTS).sum())
    return (
        HOLDS if right == len(sizes) else FAILS,
        f"SBQ first reaches the MMD of {HERDING_POINTS} points of herding at n = {SBQ_POINTS} in "
        f"{right} of {len(sizes)} seeds",
        "it holds in every pool that we tried",
    )


@claim("Figure 3", "The 100 BQ weights sum to 0.93")
def weights_sum_to(evidence):
    evidence.need_full_size()
    sums = {
        name: bq_weights(evidence.curves, evidence.cell, name, 100).sum(axis=1)
        for name in ("sbq", "herding")
    }
    near = np.abs(sums["herding"] - 0.93).max() < 0.02 < np.abs(sums["sbq"] - 0.93).min()
    return (
        CORRECTED if near else FAILS,
        f"the sum is {interval(sums['herding'])} on herding's points and {interval(sums['sbq'])} "
        "on SBQ's points; the published bars sum to 0.940",
        "it is true for herding's points with BQ weights, not for SBQ's points",
    )


@claim("Figure 3", "BQ weights are spread about 1/N, and some are negative")
def weights_are_spread(evidence):
    evidence.need(100)
    weights = bq_weights(evidence.curves, evidence.cell, "herding", 100)
    middle, negative = np.median(weights, axis=1) * 100, (weights < 0).sum(axis=1)
    spread = np.abs(middle - 1).max() < 0.3 and negative.max() > 0
    return (
        HOLDS if spread else FAILS,
        f"on herding's points, the median is {interval(middle, 2)} times 1/N, and {negative.min()} "
        f"to {negative.max()} of 100 weights are negative",
        "SBQ's own points have fewer negative weights, 0 to 2",
    )


@claim("Figure 4", "BQ weights shrink: their sum is below one and rises with n")
def weights_shrink(evidence):
    sums = evidence.curve("weight_sum", "herding_bq")
    evidence.need(100)
    at = np.array([1, 10, 100])
    rising = (np.diff(np.log(sums[:, at - 1])) > 0).all() and sums[:, :100].max() < 1
    said = "sums " + ", ".join(f"{interval(sums[:, n - 1])} (n = {n})" for n in at)
    return HOLDS if rising else FAILS, said, "the prior mean of zero pulls estimates towards zero"


@claim("Figure 5", "SBQ dominates all other methods at every n")
def sbq_dominates(evidence):
    own = evidence.curve("mmd", "sbq")
    ratios = {}
    for name in PAPERS[:-1]:
        other = evidence.curve("mmd", name)
        seeds = min(len(own), len(other))
        ratios[name] = own[:seeds] / other[:seeds]
    worst = max(np.nanmax(ratio) for ratio in ratios.values())
    name = max(ratios, key=lambda name: np.nanmax(ratios[name]))
    seed, n = np.unravel_index(np.nanargmax(ratios[name]), ratios[name].shape)
    return (
        HOLDS if worst <= 1 + 1e-9 else CORRECTED if worst < 1.05 else FAILS,
        f"its MMD is at most {worst:.4f} times that of {name} (n = {n + 1}, seed {seed})",
        "it ties with herding under BQ weights at the first points"
        if worst <= 1 + 1e-9
        else "except ties within a few per cent at small n: greedy is not best at every n",
    )


@claim("Figure 5", "The points matter, not the weights alone")
def points_matter(evidence):
    evidence.need(400)
    ratio = evidence.curve("mmd", "herding_bq") / evidence.curve("mmd", "sbq")
    said = ", ".join(f"{interval(ratio[:, n - 1], 2)} (n = {n})" for n in (10, 100, 400))
    return (
        HOLDS if ratio[:, 399].min() > 1.5 else FAILS,
        f"MMD of herding's points divided by that of SBQ's points, both with BQ weights: {said}",
        "the two are equal at first, and their ratio grows with n",
    )


@claim("Abstract", "SBQ is superior to any other weighted herding method")
def sbq_is_superior(evidence):
    plans = evidence.study("alternatives")["mmd"].isel(n=-1)
    logs = np.log(plans).mean("seed")
    best = str(logs["plan"].values[int(logs.argmin("plan"))])
    ratio = (plans.sel(plan="sbq") / plans.sel(plan=best)).values
    refinement = evidence.study("refinement").isel(n=-1)
    moved = refinement["mmd"]
    gain = (moved.sel(plan="sbq") / moved.sel(plan="joint")).values
    beaten = "" if best == "sbq" else f", with {interval(ratio, 2)} times the MMD of {best}"
    return (
        CORRECTED if np.median(gain) > 1.05 else HOLDS,
        f"at n = {int(plans['n'])} it has rank {1 + int((logs < logs.sel(plan='sbq')).sum())} of "
        f"{logs.sizes['plan']} rules{beaten}; moving all its points jointly ("
        f"{steps_in_words(refinement)}) divides the MMD by {interval(gain, 1)}",
        "it picks the best next point with the best weights, not the best set of points",
    )


@claim("Experiments", "Herding decreases at about 1/N")
def herding_is_one_over_n(evidence):
    fit = evidence.rate("herding")
    rate, low, high = _rate(fit)
    return (
        HOLDS if low <= 1 <= high else CORRECTED if 0.85 < rate < 1 else FAILS,
        f"n^-a with a = {_power(fit)} for n in [20, 400]; faster than 1/n: {fit['faster'].item()}",
        "the rate is near 1/N, but significantly slower",
    )


@claim("Abstract", "SBQ converges faster than O(1/N)")
def sbq_is_faster(evidence):
    fit = evidence.rate("sbq")
    slopes = _slopes(fit)
    return (
        HOLDS if fit["faster"].item() == "yes" else FAILS,
        f"log2(e_n / e_2n) is {slopes}; one-sided tests over {int(fit['n_seeds'])} seeds, with "
        f"p = {float(fit['faster_p'].max()):.0e} after Holm's adjustment",
        "this is about n in [20, 400]; no finite window proves a rate",
    )


@claim("Table 1", "The form of SBQ's rate is unknown")
def form_of_the_rate(evidence):
    fit = evidence.rate("sbq")
    exponential, power = (
        f"{100 * float(fit['misfit'].sel(model=model)):.1f} %"
        for model in ("stretched_exponential", "power_law")
    )
    return (
        CORRECTED if fit["verdict"].item() == "stretched_exponential" else UNKNOWN,
        f"log MMD = A - c n^b with b = {worded(fit, 'exponent')} misses the mean curve by at most "
        f"{exponential}, a power law by {power}; 1/d = 1/2",
        "in this window it is the form that the best designs for smooth kernels have, b = 1/d",
    )


@claim("Table 1", "Independent samples have the rate 1/sqrt(N)")
def iid_rate(evidence):
    fit = evidence.rate("iid")
    sizes = log_spaced(20, 400)
    above = p_greater(power_law(sizes, evidence.curve("mmd", "iid")[:, sizes - 1])["rate"], 0.5)
    p = 2 * min(above, 1 - above)
    return (
        HOLDS if p > CHANCE else FAILS,
        f"n^-a with a = {_power(fit)} for n in [20, 400]; p = {p:.2f} for a = 1/2",
        "it is exact in the mean square: E MMD^2 = (k(x, x) - V0) / N",
    )


@claim("Table 1", "Herding's rate lies between 1/sqrt(N) and 1/N")
def herding_rate_bounds(evidence):
    fit = evidence.rate("herding")
    _, low, high = _rate(fit)
    return (
        CORRECTED if low > 0.5 and high < 1 else FAILS,
        f"n^-a with a = {_power(fit)}",
        "true as measured; only 1/sqrt(N) is guaranteed, and 1/N only in finite dimension",
    )


@claim("Table 1", "MCMC costs O(N) and has a rate that varies")
def mcmc(evidence):
    return UNKNOWN, "-", "neither the paper nor this sweep runs a Markov chain"


@claim("Table 1", "N herding points cost O(N^2)")
def herding_cost(evidence):
    return _cost(evidence, "herding", "herding_fresh", 2)


@claim("Table 1", "N points of SBQ cost O(N^3)")
def sbq_cost(evidence):
    return _cost(evidence, "sbq", "sbq_fresh", 3)


@claim("Figure 6", "Within the model, errors fall as MMD does")
def within_model(evidence):
    evidence.need_full_size()
    label, *_ = evidence.integrands(within=True)
    last = {name: evidence.curve("error", name, integrand=label)[:, 369] for name in PAPERS}
    means = [np.log(last[name]).mean() for name in PAPERS]
    compared = against_published(evidence.curves)["rms_log_difference"].sel(quantity="within_model")
    return (
        CORRECTED if (np.diff(means) < 0).all() else FAILS,
        "mean error at n = 370: "
        + ", ".join(f"{name} {np.exp(m):.1e}" for name, m in zip(PAPERS, means, strict=True))
        + f"; once shifted, the published curves are within {float(compared.max()):.2f} (RMS log)",
        f"the published values of n are {published.SHIFT} too small",
    )


@claim("Figure 7", "The error of any function in the model is below its norm times MMD")
def error_is_bounded(evidence):
    label, *_ = evidence.integrands(within=True)
    names = evidence.curves["algorithm"].values
    worst = {
        name: np.nanmax(evidence.curve("bound_ratio", name, integrand=label)) for name in names
    }
    name = max(worst, key=worst.get)
    functions = evidence.config["integrands"][label]["functions"]
    return (
        HOLDS if worst[name] <= 1 else FAILS,
        f"errors are at most {worst[name]:.2f} times the bound ({name}), over {functions} "
        f"functions, {evidence.curves.sizes['seed']} seeds, {len(names)} algorithms and every n",
        "it follows from the inequality of Cauchy and Schwarz",
    )


@claim("Figure 7", "The dashed curve is the bound on the error, norm times MMD")
def drawn_bound(evidence):
    label, *_ = evidence.integrands(within=True)
    n, drawn = published.curves("bound")["sbq"]
    at, mmd = published.curves("mmd")["sbq"]
    ratio = np.exp(np.log(drawn / np.interp(n, at, mmd) ** 2).mean())
    own = evidence.curve("mmd", "sbq")[:, :100]
    error = own * evidence.curve("bound_ratio", "sbq", integrand=label)[:, :100]
    broken = (error > own**2).mean()
    return (
        FAILS if broken > 0 else HOLDS,
        f"it is {ratio:.2f} times the square of the published MMD of SBQ; at "
        f"{100 * broken:.0f} % of n up to 100, the error of a function exceeds our MMD^2",
        "the curve is MMD^2, which is not a bound; the bound is MMD",
    )


@claim("Figure 8", "Out of the model, the relative performance is similar")
def out_of_model(evidence):
    evidence.need(100)
    said, same = [], True
    for label in evidence.integrands(within=False):
        errors = {
            name: np.exp(np.log(evidence.curve("error", name, integrand=label)[:, -1]).mean())
            for name in PAPERS
        }
        order = sorted(errors, key=errors.get)
        same &= order == list(PAPERS[::-1])
        said.append(f"{label}: {' < '.join(f'{name} {errors[name]:.1e}' for name in order)}")
    norm = np.mean(evidence.curve("weight_l1", "herding_bq")[:, -1])
    return (
        HOLDS if same else CORRECTED,
        f"at n = {evidence.n}, {'; '.join(said)}; sum of absolute weights of herding_bq {norm:.0f}",
        "the order depends on the roughness of f and on the size of the weights; the paper does "
        "not say how it draws its functions",
    )


@claim("Experiments", "A local optimiser at each pick makes no difference")
def local_optimiser(evidence):
    study = evidence.study("refinement")
    mmd = study["mmd"].transpose("plan", "seed", "n")
    sizes = mmd["n"].values
    refined, joint = (
        (mmd.sel(plan="sbq") / mmd.sel(plan=plan)).values for plan in ("refined", "joint")
    )
    change = refined.mean(axis=0) - 1
    most = int(np.abs(change).argmax())
    gains = ", ".join(
        f"{interval(column, 2)} (n = {n})" for n, column in zip(sizes, joint.T, strict=True)
    )
    return (
        FAILS if np.abs(change).max() > 0.25 else CORRECTED if joint.max() > 1.25 else HOLDS,
        f"it divides the MMD by at most {interval(refined[:, most], 2)}, at n = {sizes[most]}; "
        f"moving all points jointly ({steps_in_words(study)}) divides it by {gains}",
        "nearly true for single picks, but moving all points jointly makes a large difference",
    )


@claim("Discussion", "One may switch to a cheaper algorithm as N grows")
def switching(evidence):
    mmd = evidence.study("alternatives")["mmd"].isel(n=-1)
    sbq = mmd.sel(plan="sbq")
    plans = ("sbq_50_herding", "sbq_100_herding", "sbq_200_herding", "herding_bq", "block_sbq_5")
    ratio = {name: (mmd.sel(plan=name) / sbq).values for name in plans}
    said = ", ".join(f"{name} {interval(value, 1)}" for name, value in ratio.items())
    pays = ratio["sbq_100_herding"].mean() < 0.7 * ratio["herding_bq"].mean()
    if "cost" in evidence.studies:
        seconds = evidence.study("cost")["seconds"].isel(n=-1).median("seed")
        took = {name: float(seconds.sel(plan=name)) for name in ("sbq", *plans)}
        said += f"; CPU seconds: {', '.join(f'{name} {t:.2f}' for name, t in took.items())}"
    return (
        HOLDS if pays else CORRECTED,
        f"MMD at n = {int(mmd['n'])} divided by that of SBQ: {said}",
        "switching to SBQ in blocks pays; herding after a start by SBQ is no better than herding "
        "with BQ weights from the start",
    )


@claim("Discussion", "Convergence is sensitive to the width of the kernel")
def width_matters(evidence):
    mmd = np.exp(np.log(evidence.study("kernel_choice")["mmd"]).mean("seed"))
    own = mmd.sel(evaluate=1.0)
    right = float(own.sel(select=1.0, weigh=1.0))
    ratio = {f: float(own.sel(select=f, weigh=f)) / right for f in (0.5, 2.0)}
    weights_only = {f: float(own.sel(select=1.0, weigh=f)) / right for f in (0.5, 2.0)}
    return (
        HOLDS if min(*ratio.values(), *weights_only.values()) > 1.2 else FAILS,
        f"MMD divided by the best: {ratio[0.5]:.1f} with half the width, {ratio[2.0]:.1f} with "
        f"twice; if only the weights have that width, {weights_only[0.5]:.1f} and "
        f"{weights_only[2.0]:.1f}",
        "the width matters for the choice of points and for the weights",
    )


@claim("Discussion", "Kernel parameters may be fitted by marginal likelihood")
def marginal_likelihood(evidence):
    study = evidence.study("kernel_choice")
    mean = study[["error", "coverage"]].mean("seed")
    smooth, rough = (mean.sel(truth=truth) for truth in (2.0, 0.5))
    gain = float(smooth["error"].sel(recipe="assumed") / smooth["error"].sel(recipe="fitted"))
    covered = [float(part["coverage"].sel(recipe="fitted")) for part in (smooth, rough)]
    right = float(mean["coverage"].sel(truth=1.0, recipe="fitted"))
    return (
        CORRECTED if gain > 1 > covered[1] + 0.1 else HOLDS,
        f"with 50 values, the fit divides the error by {gain:.1f} if f is smoother than assumed; "
        f"95 % intervals then cover {100 * covered[0]:.0f} %, at the right width "
        f"{100 * right:.0f} %, and if f is rougher {100 * covered[1]:.0f} %",
        "true for smooth f; the intervals ignore the uncertainty of the fit, and points chosen "
        "with the fitted kernel depend on f",
    )


def _rate(fit):
    return [float(fit[f"rate{end}"].sel(model="power_law")) for end in ("", "_low", "_high")]


def _power(fit):
    return worded(fit.sel(model="power_law"), "rate")


def _slopes(fit):
    octaves = [fit.sel(octave=octave) for octave in fit["octave"].values]
    return " and ".join(
        f"{worded(octave, 'local_slope', 2)} (n = {int(octave['octave_start'])})"
        for octave in octaves
    )


def _cost(evidence, pooled, fresh, power):
    found = exponents(evidence.study("cost"))
    n = {plan: found["n"].sel(plan=plan).values for plan in (pooled, fresh)}
    pool = found["pool"].sel(plan=pooled).values
    return (
        CORRECTED if n[fresh].mean() < power + 0.3 else FAILS,
        f"CPU time grows as N^{interval(n[fresh], 2)} with fresh candidates; with one pool of M it "
        f"grows as N^{interval(n[pooled], 2)} and as M^{interval(pool, 2)}",
        f"one pool saves one power of N, O(M N{'' if power == 2 else '^2'}); fixed costs lower the "
        "exponents",
    )


CHECKS = checks_of(globals())
