"""What is there of each block of seeds, and which older pieces go."""

import json

import pytest

from bqlib.results.blocks import blocks_of, remove_superseded
from bqlib.results.layout import Layout, job_name, piece_name, retried_name


@pytest.fixture
def cell(experiment):
    return experiment.cells()[0]  # of three seeds, in the blocks (0, 1) and (2, 2)


def finish(results, experiment, name, seconds, failed=(), digest=None):
    """A piece by its timings, with its log and benchmark."""
    at, spec = Layout(results), experiment.spec(experiment.cells()[0])
    record = {
        "digest": digest or spec.digest,
        "seconds": dict.fromkeys(seconds, 2.0) | dict.fromkeys(failed),
        "failed": dict.fromkeys(failed, "no room"),
    }
    files = at.piece(name), at.timing(name), at.log(job_name(name)), at.benchmark(job_name(name))
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record))
    return files


def first_blocks(experiment, results):
    return list(blocks_of(experiment, results))[:2]


def test_blocks_take_over_the_trials_of_others(experiment, cell, tmp_path):
    assert [block.missing for block in first_blocks(experiment, tmp_path)] == [[0, 1], [2]]
    finish(tmp_path, experiment, piece_name(cell, (0, 2)), [0, 2], failed=[1])
    first, second = first_blocks(experiment, tmp_path)
    assert not first.there and not first.outdated
    assert (first.seconds, first.failed, first.missing) == ({0: 2.0}, {}, [1])
    assert (second.seconds, second.missing) == ({2: 2.0}, [])
    finish(tmp_path, experiment, first.piece, [0], failed=[1])
    first, _ = first_blocks(experiment, tmp_path)
    assert first.there and (first.failed, first.missing) == ({1: "no room"}, [])


def test_pieces_of_other_science_are_replaced_or_left_alone(experiment, cell, tmp_path):
    finish(tmp_path, experiment, piece_name(cell, (0, 2)), [0, 1, 2], digest="other")
    finish(tmp_path, experiment, piece_name(cell, (0, 1)), [0, 1], digest="other")
    first, second = first_blocks(experiment, tmp_path)
    assert first.outdated and first.missing == [0, 1]
    assert not second.outdated and second.missing == [2]


def test_a_piece_that_is_gone_has_no_trials(experiment, cell, tmp_path):
    piece, *_ = finish(tmp_path, experiment, piece_name(cell, (0, 2)), [0, 1, 2])
    piece.unlink()
    assert [block.missing for block in first_blocks(experiment, tmp_path)] == [[0, 1], [2]]


@pytest.mark.parametrize(
    "block, seconds, failed, digest, goes",
    [
        ((0, 2), [0, 2], [1], None, True),
        ((1, 2), [1, 2], [], None, False),  # seed 1 has failed since
        ((2, 3), [2, 3], [], None, False),  # the sweep does not ask for seed 3
        ((2, 3), [2], [3], None, False),
        ((0, 2), [0, 2], [1], "other", False),
    ],
)
def test_a_piece_goes_once_all_that_it_holds_is_in_others(
    experiment, cell, tmp_path, block, seconds, failed, digest, goes
):
    older = finish(tmp_path, experiment, piece_name(cell, block), seconds, failed, digest)
    own = finish(tmp_path, experiment, piece_name(cell, (0, 1)), [0], failed=[1])
    remove_superseded(experiment, tmp_path)
    assert all(path.exists() for path in older)
    own += finish(tmp_path, experiment, piece_name(cell, (2, 2)), [2])
    remove_superseded(experiment, tmp_path)
    assert [path.exists() for path in older] == [not goes] * 4
    assert all(path.exists() for path in own)


def test_what_a_killed_run_and_a_retry_have_left_goes_too(experiment, cell, tmp_path):
    for block in experiment.blocks():
        finish(tmp_path, experiment, piece_name(cell, block), range(block[0], block[1] + 1))
    half = finish(tmp_path, experiment, piece_name(cell, (0, 2)), [0, 1, 2])
    half[0].unlink()
    retried = finish(tmp_path, experiment, retried_name(piece_name(cell, (0, 1))), [0], [1])
    remove_superseded(experiment, tmp_path)
    assert not any(path.exists() for path in half + retried)
