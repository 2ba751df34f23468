"""Designs over a pool that is too large for one machine, divided among Dask workers.

Each worker draws its own part of the pool and keeps it, with everything that is carried from step
to step. A step sends the last pick to all workers and returns the best candidate of each; in a
large pool, SBQ sends the picks that it foresees with it. The pool consists of blocks, each with its
own random stream. So the points do not depend on the number of workers, and a part that is lost
with its worker is recomputed from the seed and the picks so far.
"""

from bqlib.sharded.designs import herding, sbq
from bqlib.sharded.drawing import draw_pool
from bqlib.sharded.parts import WorkersLostError

__all__ = ["WorkersLostError", "draw_pool", "herding", "sbq"]
