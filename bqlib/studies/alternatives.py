"""SBQ against its alternatives on one problem."""

import numpy as np

from bqlib.discrepancy import mmd2_of_prefixes
from bqlib.rates import log_spaced
from bqlib.schema import Variable
from bqlib.streams import stream
from bqlib.studies.plans import PLANS, SHARES, one_pool, requires_of_plans
from bqlib.studies.study import Study

SIZES = 60  # of each curve


def alternatives(target, kernel, candidates, n, seed, plans):
    """MMD against n of every plan on one pool, each with its own weights.

    Returns
    -------
    dict of ndarray
        ``mmd`` (plan, n), NaN where float64 cannot separate so many points; ``plan`` and ``n``.
    """
    pool = one_pool(candidates, target, stream("candidates", seed))
    sizes = log_spaced(1, n, SIZES) if n > 1 else np.array([1])
    sizes = np.union1d(sizes, [max(1, round(share * n)) for share in SHARES])
    curves = np.full((len(plans), len(sizes)), np.nan)
    for curve, (name, (design, rule)) in zip(curves, plans.items(), strict=True):
        made = design(target, kernel, n, rng=stream(f"study/{name}", seed), candidates=pool)
        matrix = rule(made.embedding, made.points).matrix
        mmd2 = mmd2_of_prefixes(made.embedding, made.points[: len(matrix)], matrix)
        there = sizes <= len(matrix)
        curve[there] = np.sqrt(mmd2[sizes[there] - 1])
    return {"plan": np.array(list(plans)), "n": sizes, "mmd": curves}


STUDY = Study(
    function=alternatives,
    seeds=5,
    variables={"mmd": Variable(("plan", "n"), "MMD to the target")},
    coordinates={
        "plan": ("how points are picked and weighted", ""),
        "n": ("number of points", "1"),
    },
    precondition=requires_of_plans,
    plans=PLANS,
)
