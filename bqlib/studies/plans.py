"""What studies compare: every algorithm, with its settings, and mixtures of two of them."""

from dataclasses import replace
from functools import partial

from bqlib.designs.block_sbq import block_sbq
from bqlib.designs.fp_greedy import fp_greedy
from bqlib.designs.frank_wolfe import frank_wolfe, line_search
from bqlib.designs.herding import herding
from bqlib.designs.iid import iid
from bqlib.designs.omp import omp
from bqlib.designs.p_greedy import p_greedy
from bqlib.designs.rpcholesky import rpcholesky
from bqlib.designs.sbq import sbq
from bqlib.designs.sobol import cube_dim, sobol
from bqlib.weights import bq, nonnegative, uniform

SWITCHES = (50, 100, 200)  # points of SBQ before herding takes over
BLOCKS = (5, 20, 50)  # points between two fits of SBQ in blocks
SHARES = (0.125, 0.25, 0.5, 1.0)  # of n and of the pool, at which costs are measured


def sbq_then_herding(target, kernel, n, *, rng, candidates, switch):
    """The first `switch` points by SBQ, the rest by herding, which counts them among its own."""
    first = sbq(target, kernel, min(switch, n), rng=rng, candidates=candidates)
    if len(first.points) == n or len(first.points) < switch:
        return first
    return herding(target, kernel, n, rng=rng, candidates=candidates, initial=first.points)


# Design and weight rule of each.
PLANS = {
    "iid": (iid, uniform),
    "iid_bq": (iid, bq),
    "sobol": (sobol, uniform),
    "sobol_bq": (sobol, bq),
    "herding": (herding, uniform),
    "herding_bq": (herding, bq),
    "frank_wolfe": (frank_wolfe, line_search),
    "frank_wolfe_bq": (frank_wolfe, bq),
    "p_greedy": (p_greedy, bq),
    "rpcholesky": (rpcholesky, bq),
    "fp_greedy": (fp_greedy, bq),
    "omp": (omp, bq),
    "sbq": (sbq, bq),
    "sbq_nonnegative": (sbq, nonnegative),
    **{f"block_sbq_{block}": (partial(block_sbq, block=block), bq) for block in BLOCKS},
    **{f"sbq_{n}_herding": (partial(sbq_then_herding, switch=n), bq) for n in SWITCHES},
}


def check(target, kernel):
    """Raise a TypeError where the target has no map for Sobol points, which are among the plans."""
    cube_dim(target)


def one_pool(candidates, target, rng, share=1.0):
    """One pool for a whole design, of a share of the size asked for."""
    size = max(1, round(share * candidates.size))
    return replace(candidates, size=size, fresh=False).draw(target, rng)
