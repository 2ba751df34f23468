"""What studies compare: every algorithm of sweeps, and two rules that only studies have."""

from dataclasses import replace

from bqlib.candidates import Candidates
from bqlib.designs.design import requires_mean
from bqlib.designs.herding import herding
from bqlib.designs.joint import joint
from bqlib.designs.sbq import sbq
from bqlib.sweep import registry
from bqlib.sweep.spec import Algorithm

SWITCHES = (50, 100, 200)  # points of SBQ before herding takes over
BLOCKS = (5, 20, 50)  # points between two fits of SBQ in blocks
SHARES = (0.125, 0.25, 0.5, 1.0)  # of n and of the pool, at which costs are measured
# Algorithms of sweeps that are not compared: BLOCKS replace the first, and the others differ from
# sbq_nonnegative in one constraint. Stein thinning needs a kernel of its own. Halton points
# are much like Sobol points. The points of the rest are sets; joint has a design for each size, in
# other studies.
LEFT_OUT = (
    *("block_sbq", "sbq_simplex", "sbq_sum_to_one", "stein_thinning"),
    *("halton", "halton_bq"),
    *("joint", "joint_uniform", "msip", "compress", "kernel_thinning"),
    *("recombination", "recombination_nonnegative"),
    *("latin_hypercube", "latin_hypercube_bq", "lattice", "lattice_bq", "grid", "grid_bq"),
)


def sbq_then_herding(target, kernel, n, *, rng, candidates, switch):
    """The first `switch` points by SBQ, and the rest by herding that starts from them."""
    first = sbq(target, kernel, min(switch, n), rng=rng, candidates=candidates)
    if len(first.points) == n or len(first.points) < switch:
        return first
    return herding(target, kernel, n, rng=rng, candidates=candidates, initial=first.points)


PLANS = (
    *(
        Algorithm(name, *algorithm)
        for name, algorithm in registry.ALGORITHMS.items()
        if name not in LEFT_OUT
    ),
    *(Algorithm(f"block_sbq_{block}", "block_sbq", "bq", {"block": block}) for block in BLOCKS),
    *(
        Algorithm(f"sbq_{n}_herding", "bqlib.studies.plans:sbq_then_herding", "bq", {"switch": n})
        for n in SWITCHES
    ),
)


def requires_of_plans(target, kernel):
    """Raise the TypeError or ValueError of the first plan whose design cannot work on the pair."""
    for plan in PLANS:
        design, _ = plan.build()
        if hasattr(design, "requires"):
            design.requires(
                target, kernel, 1, candidates=Candidates(size=1), **plan.design_parameters
            )


def requires_sbq(target, kernel):
    """Raise a ValueError if SBQ, with which a study works, cannot work on the pair."""
    requires_mean(target, kernel, 1, candidates=Candidates(size=1))


def requires_joint(target, kernel):
    """Raise the TypeError or ValueError of joint optimisation if it cannot work on the pair."""
    joint.requires(target, kernel, 1, candidates=Candidates(size=1))


def one_pool(candidates, target, rng, share=1.0):
    """One pool for a whole design, with this share of the size of `candidates`."""
    size = max(1, round(share * candidates.size))
    return replace(candidates, size=size, fresh=False).draw(target, rng)
