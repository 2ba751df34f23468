"""Settings that all tests share."""

from hypothesis import settings

# The same examples on every run, and no limit on the time of one: other programs may run beside.
settings.register_profile("bqlib", deadline=None, derandomize=True, max_examples=50)
# Many, and new ones on every run: --hypothesis-profile=fuzz
settings.register_profile("fuzz", deadline=None, max_examples=700, print_blob=True)
settings.load_profile("bqlib")
