"""What is wrong with a submission: the first messages, and the number of all."""

import pytest

from bqlib.suite.mistakes import MOST_SHOWN, Mistakes, SubmissionError


def test_nothing_wrong_is_no_error():
    Mistakes().refuse()


def test_the_first_messages_are_told_and_the_rest_is_counted():
    mistakes = Mistakes()
    mistakes.add("a", 0, "is  missing")
    for line in range(1, 70):
        assert mistakes.full == (mistakes.count >= MOST_SHOWN)
        mistakes.add("b", line, "is\nwrong\x1b[2J")
    with pytest.raises(SubmissionError) as refused:
        mistakes.refuse()
    first, second, *_, last = refused.value.problems
    assert (first, second, last) == ("a: is missing", "b:1: is wrong\\x1b[2J", "and 20 more")
    assert len(refused.value.problems) == MOST_SHOWN + 1
    assert str(refused.value).split("\n") == [*refused.value.problems]
