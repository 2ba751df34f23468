"""Claims and expectations that nobody judged, for tests of how they are written."""

from bqlib.claims import Claim, Expectation
from bqlib.claims.evidence import HOLDS, UNKNOWN

# fmt: off
RECORDS = (
    [
        Claim(
            "a", "A claim that holds", "Figure 1", "holds if above 0", "1.0 [0.9, 1.1]", HOLDS,
            "because", "huszar2012",
        ),
        Claim(
            "b", "One of which nothing is known", "Table 1", "none", "-", UNKNOWN, "needs more",
            "huszar2012",
        ),
    ],
    [
        Expectation("c", "a number", "2", True, "huszar2012"),
        Expectation("d", "another", "needs seeds", None, "huszar2012"),
    ],
)
# fmt: on
