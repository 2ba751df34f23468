"""Text for terminals."""

from bqlib.results.text import aligned, failure_of


def test_reasons_do_not_steer_a_terminal():
    """They come from plug-ins, and from results of others."""
    steering = "boom \x1b[2J\x07 \u202e"
    assert failure_of(ValueError(steering)) == r"ValueError: boom \x1b[2J\x07 \u202e"
    assert aligned([{"reason": steering}]).isprintable() is False  # two lines
    assert all(line.isprintable() for line in aligned([{"reason": steering}]).splitlines())
