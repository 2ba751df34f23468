"""Settings that all tests share."""

from hypothesis import settings

# The same examples on every run, and no limit on the time of one: other programs may run beside.
settings.register_profile("bqlib", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("bqlib")
