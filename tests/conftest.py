"""Settings that all tests share."""

import os

# Tests run on all cores at once: threads of BLAS beside them only wait for each other.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

from hypothesis import settings  # after BLAS was told

# The same examples on every run, and no limit on the time of one: other programs may run beside.
settings.register_profile("bqlib", deadline=None, derandomize=True, max_examples=50)
# Many, and new ones on every run: --hypothesis-profile=fuzz
settings.register_profile("fuzz", deadline=None, max_examples=700, print_blob=True)
settings.load_profile("bqlib")
