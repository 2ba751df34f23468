"""The file submission.json: what is wrong with it, by its lines."""

import json

import pytest
from submitted import change, said

ABOUTS = [
    ({"method": "K-means"}, 'method: "K-means" is not a valid label'),
    ({"method": "../kmeans"}, 'method: "../kmeans" is not a valid label'),
    ({"method": "nan"}, 'method: "nan" cannot be a label'),
    ({"method": "a" * 65}, "method: a label has at most 64"),
    ({"method": "sbq"}, 'method: "sbq" is an algorithm of bqlib'),
    ({"method": "block_sbq_20"}, 'method: "block_sbq_20" is an algorithm of bqlib'),
    ({"method": 3}, "method: must be a text, not 3"),
    ({"method": None}, "method: must be a text, not empty"),
    ({"version": "1/2"}, 'version: "1/2" is not a valid version'),
    ({"version": ".."}, 'version: ".." is not a valid version'),
    ({"version": 1.0}, "version: must be a text"),
    ({"authors": []}, "authors: must not be empty"),
    ({"authors": "me"}, "authors: must be a list"),
    ({"authors": [""]}, "authors.0: must not be empty"),
    ({"authors": ["me", "me"]}, "authors: names something twice"),
    ({"authors": [["me"]]}, "authors.0: must be a text, not a list"),
    ({"citation": "\x1b[2J"}, "citation: must not have the character '\\x1b'"),
    ({"citation": "\ud800"}, "citation: must not have the character '\\ud800'"),
    ({"citation": "a\u202eb"}, "citation: must not have the character '\\u202e'"),
    ({"licence": " "}, "licence: must not be empty"),
    ({"seconds": -1}, "seconds: must be a finite positive number"),
    ({"seconds": True}, "seconds: must be a number, not true"),
    ({"seconds": "5"}, "seconds: must be a number"),
    ({"information": ["Z"]}, 'unknown information "Z"; did you mean "z"?'),
    ({"information": ["z", "z"]}, "information: names something twice"),
    ({"information": "z"}, "information: must be a list"),
    ({"suite": "bqbench-2"}, 'suite: unknown suite "bqbench-2"; did you mean "bqbench-1"?'),
    ({"kind": "sets"}, 'kind: unknown kind "sets"; did you mean "set"?'),
    ({"weights": "BQ"}, 'weights: unknown weights "BQ"; did you mean "bq"?'),
    ({"method": "mine_bq", "weights": "uniform"}, 'weights: must be "bq", as the label'),
    ({"run": "rm -rf"}, 'run: unknown key "run"'),
    ({"licens": "MIT"}, 'unknown key "licens"; did you mean "licence"?'),
]


@pytest.mark.parametrize(("changed", "expected"), ABOUTS)
def test_what_is_wrong_in_submission_json_is_told(changed, expected, own):
    change(own, **changed)
    problems = said(own)
    assert problems[0].startswith("submission.json:1: ") and expected in problems[0]


TEXTS = [
    (b"", "submission.json:1: column 1: is not JSON"),
    (b"{", "is not JSON"),
    (b"[]", "submission.json:1: must be a mapping"),
    (b"null", "must be a mapping"),
    (b'{"a": 1, "a": 2}', '"a" is there twice'),
    (b'{"seconds": NaN}', "NaN is no number of JSON"),
    (b'{"seconds": -Infinity}', "-Infinity is no number of JSON"),
    (b'{"seconds": %s}' % (b"1" * 5000), "digits"),
    (b"[" * 60_000, "nested too deeply"),
    (b'{"a":' * 10_000, "nested too deeply"),
    (b"{\n'a': 1}", "submission.json:2: column 1: is not JSON"),
    (b'{\n"method": "\xff"}', "submission.json:2: is not text in UTF-8"),
    ('{"method": 1}'.encode("utf-16"), "is not text in UTF-8"),
    (b"\x80\x04K\x01.", "is not text in UTF-8"),  # a pickle
    (b"{}", "submission.json:1: method: missing: give a label"),
    (b"!!python/object/apply:os.system ['id']", "is not JSON"),
]


@pytest.mark.parametrize(("data", "expected"), TEXTS)
def test_a_submission_json_that_is_none_is_told(data, expected, own):
    (own / "submission.json").write_bytes(data)
    assert expected in said(own)[0]


def test_a_key_has_its_line(own):
    change(own, version="a b", kind="both")
    file = own / "submission.json"
    file.write_text(json.dumps(json.loads(file.read_text()), indent=1))
    lines = file.read_text().split("\n")
    for problem, key in zip(said(own), ("version", "kind"), strict=True):
        line = int(problem.split(":")[1])
        assert lines[line - 1].startswith(f' "{key}"')
