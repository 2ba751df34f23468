"""YAML files: plain values, aliases, and in plain words what cannot be read."""

import pytest

from bqlib.sweep import yamlfile
from bqlib.sweep.yamlfile import UnreadableError


@pytest.fixture
def read(tmp_path):
    """What a text reads as."""

    def read(text):
        path = tmp_path / "file.yaml"
        path.write_text(text, encoding="utf-8")
        return yamlfile.read(path)

    return read


def test_plain_values_are_those_of_version_1_2(read):
    values, lines, problems = read("n: 040\nx: [1e-1, 10, .inf, -1.5E3]\ny: no\nz: ~\nw: True\n")
    assert values == {
        "n": 40,
        "x": [0.1, 10, float("inf"), -1500.0],
        "y": "no",
        "z": None,
        "w": True,
    }
    assert (lines["x", 1], lines["w",], problems) == (2, 5, [])


@pytest.mark.parametrize(
    "text",
    ["2024-01-31", "yes", "off", "0o17", "0x1F", "1_000", "12:30:00", "y", "=", "nan", "1e", "+"],
)
def test_what_other_readers_of_yaml_turn_into_something_else_stays_text(read, text):
    values, *_ = read(f"a: {text}\n{text}: 1\n")
    assert values == {"a": text, text: 1}


def test_aliases_are_followed(read):
    values, *_ = read("a: &one {b: [1, 2]}\nc: *one\n")
    assert values["c"] == values["a"] == {"b": [1, 2]}


def test_a_key_that_stands_twice_is_told_and_the_first_one_counts(read):
    values, _, problems = read("a: {b: 1,\n    b: 2}\n")
    assert values == {"a": {"b": 1}} and problems == [(2, "a.b: is already set in line 1")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "n: [1, 2\nseeds: 3\n",
            "2: column 6: a comma is missing, or the bracket of line 1",
        ),
        (
            "n: {a: 1\nseeds: 3\n",
            "2: column 6: a comma is missing, or the bracket of line 1",
        ),
        ("n: 1\n\tseeds: 2\n", "2: column 1: a tab: indent with spaces"),
        ("a:\n  b: 1\n c: 2\n", "3: column 2: not indented like the block that starts in line 1"),
        ("a: b: c\n", '1: column 5: ": " is not allowed here: check'),
        ("n 40\nseeds: 3\n", '2: column 6: ": " is not allowed here: check'),
        ("a: 'x\nb: 1\n", "3: column 1: the quotation mark in line 1 is never closed"),
        ("a: |\n x\ny\n", '3: column 1: expected "key: value" here'),
        ("a: 1\n---\nb: 2\n", "2: column 1: a second document starts here"),
        ("a: @x\n", "1: column 4: put text that starts with @ in quotes"),
        ("a: *x\n", "1: column 4: put text that starts with * in quotes"),
        ("a: [1,,2]\n", "1: column 7: a value is missing before ,"),
        (
            'a: "\\q"\n',
            "1: column 6: cannot be read as YAML: while scanning a double-quoted scalar",
        ),
        ("a: 1\nb: \x07\n", "2: contains the control character '\\x07'"),
        ("? [a]\n: b\n", "1: has a list or a mapping as a key: a key must be a word"),
        ("a:\n  ? [a]\n  : b\n", "2: a: has a list or a mapping as a key: a key must be a word"),
        ("a: !foo 1\n", "1: a: the tag !foo is not supported here: remove it"),
        ("a: !!python/object:os.system x\n", "1: a: the tag !!python/object:os.system is not supp"),
        ("a: !!int x\n", "1: a: x does not match the tag !!int"),
        ("a: !!int 1_0\n", "1: a: 1_0 does not match the tag !!int"),
        ("a: !!bool yes\n", "1: a: yes does not match the tag !!bool"),
        ("a: !!null 5\n", "1: a: 5 does not match the tag !!null"),
        ("a: !!seq abc\n", "1: a: the tag !!seq is not supported here: remove it"),
        ("a: !!str [1]\n", "1: a: the tag !!str is not supported here: remove it"),
        ("a: !!set {b}\n", "1: a: the tag !!set is not supported here: remove it"),
        ("!foo a: 1\n", "1: a: the tag !foo is not supported here: remove it"),
        ("a: 1\n!!python/name:os.system b: 1\n", "2: b: the tag !!python/name:os.system is not"),
        (
            "x: &x {b: 1}\nk:\n  eq:\n    <<: *x\n",
            "4: k.eq: << is a merge key of YAML, which is not supported: write out the keys",
        ),
        ("x: &x {b: 1}\n<<: [*x]\n", "2: << is a merge key of YAML"),
        ("a: &x [*x]\n", "1: a[0]: is an alias of something that contains it"),
        ('a: 1\nb: ["\\ud800"]\n', "2: contains \\ud800, half of a character: write it whole"),
        ('a: 1\n"\\udfff": 2\n', "2: contains \\udfff, half of a character: write it whole"),
        ('a: "\\U00110000"\n', "1: contains an escape, \\U or the like, of no character"),
        ('a: "\\Uffffffff"\n', "1: contains an escape, \\U or the like, of no character"),
        (
            "k0: &k0 [1]\n" + "".join(f"k{i}: &k{i} [*k{i - 1}]\n" for i in range(1, 1000)),
            "1: has too many levels of lists or mappings",
        ),
        ("[" * 500, "1: has too many levels of lists or mappings"),
        ("", "1: must be a mapping: write each key as key: value"),
        ("# nothing\n", "1: must be a mapping: write each key as key: value"),
        ("- a\n- b\n", "1: must be a mapping: write each key as key: value"),
        ("just words\n", "1: must be a mapping: write each key as key: value"),
    ],
)
def test_what_is_no_yaml_is_told_in_plain_words(read, text, told):
    with pytest.raises(UnreadableError) as caught:
        read(text)
    assert f"{caught.value.line}: {caught.value}".startswith(told)


def test_aliases_that_stand_for_too_much(read, monkeypatch):
    monkeypatch.setattr(yamlfile, "MOST_VALUES", 1000)
    tens = [f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(UnreadableError, match="more than 1000 values up to here"):
        read("\n".join(["k0: &k0 x", *tens]))


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.yaml").write_bytes("title: caf\u00e9".encode("latin-1"))
    for name, told in {
        "gone.yaml": "there is no such file",
        ".": "cannot be read: Is a directory",
        "latin.yaml": "is not text in UTF-8",
    }.items():
        with pytest.raises(UnreadableError, match=told):
            yamlfile.read(tmp_path / name)
