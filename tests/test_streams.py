import numpy as np
import pytest

from bqlib.streams import stream


def test_a_stream_is_the_same_wherever_it_is_made():
    # Digits fixed once: results of finished sweeps depend on them.
    drawn = stream("candidates", 3).integers(0, 1000, size=5)
    np.testing.assert_array_equal(drawn, stream("candidates", 3).integers(0, 1000, size=5))
    assert drawn.tolist() == [619, 731, 716, 940, 102]


@pytest.mark.parametrize("other", [("candidates", 4), ("design/iid", 3), ("candidate", 3)])
def test_streams_of_other_purposes_or_seeds_differ(other):
    ours, theirs = stream("candidates", 3).random(1000), stream(*other).random(1000)
    assert abs(np.corrcoef(ours, theirs)[0, 1]) < 0.15
    assert not np.intersect1d(ours, theirs).size
