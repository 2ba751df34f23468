"""JSON that others wrote."""

import pytest

from bqlib.suite.jsonfile import read_json
from bqlib.suite.mistakes import Mistakes


def test_json_is_read():
    mistakes = Mistakes()
    data = '\ufeff{"a": [1, "é"]}'.encode()
    assert read_json(data, "x.json", mistakes) == ({"a": [1, "é"]}, '{"a": [1, "é"]}')
    assert mistakes.told() == []


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"a":\n 1,}', "x.json:2: column 4: is not JSON"),
        (b'\n{"a": "\xff"}', "x.json:2: is not text in UTF-8"),
        (b'{"a": {"b": 1, "b": 2}}', 'x.json:1: "b" is there twice'),
        (b'{"a": Infinity}', "x.json:1: Infinity is no number of JSON"),
        (b"[" * 10**5, "x.json:1: is nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "x.json:1: "),
        (b'{"a": {"\\ud800": 1}}', "x.json:1: a key has half of a character"),
        (b"[1]", "x.json:1: must be a mapping, such as {key: value}, not a list"),
        (b"null", "x.json:1: must be a mapping, such as {key: value}, not empty"),
    ],
)
def test_what_is_no_json_object_is_told(data, told):
    mistakes = Mistakes()
    assert read_json(data, "x.json", mistakes)[0] is None
    (found,) = mistakes.told()
    assert found.startswith(told)
