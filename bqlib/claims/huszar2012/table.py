"""Table 1 of the paper, measured and extended."""

from dataclasses import asdict, dataclass

import numpy as np
import xarray as xr

from bqlib.claims.evidence import MissingError, interval
from bqlib.rates import FEWEST_SIZES, power_law
from bqlib.studies.refinement import steps_in_words


@dataclass(frozen=True)
class Known:
    """What is known about an algorithm before anything is measured."""

    weights: str
    cost: str
    guarantee: str
    reference: str


# Costs are those of N points from one pool of M candidates; guarantees are on the MMD.
KNOWN = {
    "iid": Known("equal", "N", "N^-1/2, with its constant", "law of large numbers"),
    "iid_bq": Known("BQ", "N^3", "no worse than equal weights", "Bach 2017"),
    "sobol": Known(
        "equal", "N log N", "N^-1 (log N)^d for smooth maps", "Dick, Pillichshammer 2010"
    ),
    "sobol_bq": Known("BQ", "N^3", "no worse than equal weights", "corollary"),
    "herding": Known("equal", "M N", "N^-1/2; N^-1 in finite dimension", "Chen 2010, Bach 2012"),
    "herding_bq": Known("BQ", "M N + N^3", "no worse than herding", "corollary"),
    "frank_wolfe": Known("not negative, sum one", "M N", "N^-1/2", "Bach 2012"),
    "frank_wolfe_bq": Known("BQ", "M N + N^3", "no worse than Frank-Wolfe", "Briol 2015"),
    "p_greedy": Known("BQ", "M N^2", "best order for the largest power", "Santin, Haasdonk 2017"),
    "rpcholesky": Known("BQ", "M N^2", "in expectation, by eigenvalues", "Epperly, Moreno 2023"),
    "fp_greedy": Known("BQ", "M N^2", "by beta-greedy theory", "Wenzel 2023"),
    "omp": Known("BQ", "M N^2", "N^-1/2, better by entropy", "Siegel, Xu 2022"),
    "sbq": Known("BQ", "M N^2", "N^-1/2; by submodularity ratio", "DeVore, Temlyakov 1996"),
    "sbq_nonnegative": Known("not negative", "M N^2 + N^4", "none of its own", "-"),
    "block_sbq_5": Known("BQ", "M N^2 / 5 + M N", "N^-1/2", "Mallat, Zhang 1993"),
    "joint": Known("BQ", "N^3 per step", "no worse than its start", "a local optimum at best"),
}


def table_1(evidence):
    """Measured costs and rates of all algorithms, as rows of text.

    Parameters
    ----------
    evidence : Evidence

    Returns
    -------
    list of dict
        One for each algorithm, with the same keys: what is known about the algorithm; `time_n` and
        `time_m`, powers of N and M in its CPU time; `seconds` for the largest n, and `megabytes`
        for half the largest n; `rate`, the exponent of a power law for n of at least 20; and the
        MMD at two n. The list is empty if one of the studies did not run.
    """
    try:
        studies = [evidence.study(name) for name in ("alternatives", "refinement", "cost")]
    except MissingError:
        return []
    mmd, moved, cost = studies[0]["mmd"], studies[1]["mmd"].sel(plan="joint"), studies[2]
    growth = exponents(cost)
    rows = []
    for name, known in KNOWN.items():
        curves = mmd.sel(plan=name) if name in mmd["plan"].values else moved
        row = {"algorithm": name, **asdict(known)}
        if name == "joint":
            row["cost"] += f" ({steps_in_words(studies[1])})"
        row["time_n"], row["time_m"] = (
            interval(growth[dim].sel(plan=name).values, 2) for dim in ("n", "pool")
        )
        row["seconds"] = f"{float(cost['seconds'].sel(plan=name).isel(n=-1).median()):.2g}"
        row["megabytes"] = f"{float(cost['peak_bytes'].sel(plan=name).median()) / 1e6:.1f}"
        row["rate"] = _rate(curves)
        largest = int(mmd["n"][-1])
        for n in (largest // 4, largest):
            mean = np.exp(np.log(curves.sel(n=n, method="nearest")).mean())
            row[f"mmd_{n}"] = f"{float(mean):.2e}"
        rows.append(row)
    return rows


def exponents(cost):
    """Growth of CPU time: slopes of log seconds over the upper half of log n, and of log M.

    Parameters
    ----------
    cost : xarray.Dataset
        Of the study `cost`.

    Returns
    -------
    xarray.Dataset
        ``n`` and ``pool``, (plan, seed).
    """
    found = {}
    for name, dim in (("seconds", "n"), ("seconds_by_pool", "pool")):
        upper = cost[name].isel({dim: slice(-3, None)}).transpose("plan", "seed", dim)
        x = np.log(upper[dim].values.astype(float))
        x -= x.mean()
        slope = (
            (np.log(upper.values) @ x) / (x @ x) if len(x) > 1 else np.nan * upper.values[..., 0]
        )
        found[dim] = (("plan", "seed"), slope)
    return xr.Dataset(found, {"plan": cost["plan"].values})


def _rate(curves):
    """Exponent of a power law on [20, 400], or "-" if a curve has too few sizes there."""
    inside = curves.where(curves["n"] >= 20, drop=True).transpose("seed", "n")
    if inside.sizes["n"] < FEWEST_SIZES or bool(inside.isnull().any()):
        return "-"
    return interval(power_law(inside["n"].values, inside.values)["rate"], 2)
