"""The gain of a local optimiser: at each pick, and over all points at once."""

import numpy as np

from bqlib.designs.joint import joint, limit_of_steps
from bqlib.designs.sbq import sbq
from bqlib.discrepancy import mmd2_of_prefixes
from bqlib.schema import Variable
from bqlib.streams import stream
from bqlib.studies.plans import SHARES, one_pool, requires_joint
from bqlib.studies.study import Study
from bqlib.weights import bq

CLIMBS = 5  # candidates of each step that a local optimiser starts from
LARGER = 4  # times the pool


def refinement(target, kernel, candidates, n, seed):
    """SBQ from a pool, from a larger one, with each pick refined, and with all points refined.

    Returns
    -------
    dict of ndarray
        ``mmd``, ``weight_l1`` and ``min_weight`` with BQ weights, (plan, n); of the joint descents
        ``limit``, the largest number of steps, and ``stationary``, 1.0 for those that ended at a
        stationary point, (n,).
    """
    sizes = np.unique([max(1, round(share * n)) for share in (0.05, *SHARES)])
    pool = one_pool(candidates, target, stream("candidates", seed))
    larger = one_pool(candidates, target, stream("candidates", seed), LARGER)
    rng = stream("study/refinement", seed)
    designs = {
        "sbq": sbq(target, kernel, sizes[-1], rng=rng, candidates=pool),
        "larger_pool": sbq(target, kernel, sizes[-1], rng=rng, candidates=larger),
        "refined": sbq(target, kernel, sizes[-1], rng=rng, candidates=pool, refine=CLIMBS),
        "joint": None,  # a design of its own for each size
    }
    found = {
        name: np.full((len(designs), len(sizes)), np.nan)
        for name in ("mmd", "weight_l1", "min_weight")
    }
    stationary = np.empty(len(sizes))
    for j, size in enumerate(sizes):
        designs["joint"] = joint(target, kernel, int(size), rng=rng, candidates=pool)
        stationary[j] = not designs["joint"].stop
        for i, design in enumerate(designs.values()):
            points = design.points[:size]
            matrix = bq(design.embedding, points).matrix
            if len(matrix) == size:
                found["mmd"][i, j] = np.sqrt(mmd2_of_prefixes(design.embedding, points, matrix)[-1])
                found["weight_l1"][i, j] = np.abs(matrix[-1]).sum()
                found["min_weight"][i, j] = matrix[-1].min()
    limit = np.array([float(limit_of_steps(int(size))) for size in sizes])
    coordinates = {"plan": np.array(list(designs)), "n": sizes}
    return coordinates | found | {"limit": limit, "stationary": stationary}


def steps_in_words(study):
    """The steps of the joint descents of a dataset of this study, and if they were enough.

    Examples
    --------
    >>> from bqlib.studies.refinement import steps_in_words
    >>> import xarray as xr
    >>> limit, stationary = ("n", [400.0, 3200.0]), (("seed", "n"), [[1.0, 0.0]])
    >>> steps_in_words(xr.Dataset({"limit": limit, "stationary": stationary}))
    'L-BFGS, at most 400 to 3200 steps; 1 of 2 ended before a minimum'
    """
    least, most = int(study["limit"].min()), int(study["limit"].max())
    limits = f"{least} to {most}" if least < most else f"{most}"
    ended = study["stationary"].values
    still = (
        f"; {int((ended == 0).sum())} of {ended.size} ended before a minimum"
        if not ended.all()
        else ""
    )
    return f"L-BFGS, at most {limits} steps{still}"


STUDY = Study(
    function=refinement,
    seeds=5,
    precondition=requires_joint,
    variables={
        "mmd": Variable(("plan", "n"), "MMD to the target, BQ weights"),
        "weight_l1": Variable(("plan", "n"), "sum of the absolute weights"),
        "min_weight": Variable(("plan", "n"), "smallest weight"),
        "limit": Variable(("n",), "largest number of steps of the joint descent"),
        "stationary": Variable(("n",), "1 if the joint descent ended at a stationary point"),
    },
    coordinates={"plan": ("how the points are picked", ""), "n": ("number of points", "1")},
)
