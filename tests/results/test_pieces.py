"""Pieces: the same trials are the same bytes."""

from bqlib.results.pieces import encode_piece


def test_equal_trials_are_equal_bytes(experiment):
    spec = experiment.spec(experiment.cells()[0])
    first, again = (encode_piece(spec, [0, 1], [spec.run(s)[0] for s in (0, 1)]) for _ in "ab")
    assert first == again
    assert first != encode_piece(spec, [0, 2], [spec.run(s)[0] for s in (0, 2)])
