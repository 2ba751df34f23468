"""YAML files written by people: values with their lines, and errors in plain words."""

import re

import yaml

from bqlib.sweep.textfile import read_text

_TAG = "tag:yaml.org,2002:"
_TOO_DEEP = "has too many levels of lists or mappings"
_SURROGATE = re.compile("[\ud800-\udfff]")
MOST_BYTES = 2**20  # takes three seconds to read
MOST_VALUES = 1_000_000  # a few aliases of aliases can stand for any number of values
MOST_DEPTH = 100  # and for any depth


class UnreadableError(ValueError):
    """A file cannot be read as a YAML mapping; `line` is the line of the problem."""

    def __init__(self, line, message):
        super().__init__(message)
        self.line = line


class _Loader(yaml.SafeLoader):
    """YAML with the plain values of its version 1.2: 1e-3 is a number, 010 is ten, no is a text."""

    yaml_implicit_resolvers: dict = {}  # noqa: RUF012


# Tag to the texts that have this type without it, their first letters, and their value.
_PLAIN = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""], lambda text: None),
    "bool": (
        r"true|True|TRUE|false|False|FALSE",
        list("tTfF"),
        lambda text: text.lower() == "true",
    ),
    "int": (r"[-+]?[0-9]+", list("-+0123456789"), int),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
        lambda text: float(re.sub(r"\.(?=[iInN])", "", text)),
    ),
}
for _name, (_pattern, _letters, _) in _PLAIN.items():
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"^(?:{_pattern})$"), _letters)
_COLLECTIONS = {yaml.SequenceNode: "seq", yaml.MappingNode: "map"}


def read(path):
    """Read a file that holds one mapping.

    Plain values are those of YAML 1.2: 1e-3 is a number, 010 is ten, no is a text. All keys are
    texts. Aliases work. Merge keys and tags other than those of plain values are refused.

    Parameters
    ----------
    path : Path

    Returns
    -------
    values : dict
    lines : dict
        Location, such as ``("kernels", "eq", 0)``, to the number of its line.
    problems : list of (int, str)
        Line and message of each key that a mapping has twice.

    Raises
    ------
    UnreadableError
        At the first problem that makes the rest of the file unreadable.
    """
    try:
        text = read_text(path, MOST_BYTES)
    except FileNotFoundError:
        raise UnreadableError(1, "there is no such file") from None
    except UnicodeDecodeError:
        raise UnreadableError(1, "is not text in UTF-8") from None
    except OSError as error:
        raise UnreadableError(1, f"cannot be read: {error.strerror}") from None
    root = _composed(text)
    if not isinstance(root, yaml.MappingNode):
        raise UnreadableError(1, "must be a mapping: write each key as key: value")
    lines, problems = {}, []
    return _value(root, (), root.start_mark.line + 1, lines, problems, ()), lines, problems


def value(text):
    """The value of a text, as in a YAML file; raises an UnreadableError like :func:`read`.

    Examples
    --------
    >>> from bqlib.sweep.yamlfile import value
    >>> value("1e-3"), value("[1, 2]"), value("no"), value("")
    (0.001, [1, 2], 'no', None)
    """
    root = _composed(text)
    return None if root is None else _value(root, (), 1, {}, [], ())


def text_of(values):
    """A text from which :func:`read` gets equal values.

    Every plain value has its tag, as YAML has other opinions of what is a number.

    Examples
    --------
    >>> from bqlib.sweep.yamlfile import text_of, value
    >>> value(text_of({"a": [1e-3, "1e-3", "no", True]}))
    {'a': [0.001, '1e-3', 'no', True]}
    """
    return yaml.safe_dump(values, default_style='"', allow_unicode=True, sort_keys=False)


def _composed(text):
    """The root node of a text; None if the text is empty."""
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        character = chr(error.character)
        raise UnreadableError(line, f"contains the control character {character!r}") from None
    except yaml.MarkedYAMLError as error:
        line, column, words = _plain_words(error)
        raise UnreadableError(line, f"column {column}: {words}") from None
    except RecursionError:
        raise UnreadableError(1, _TOO_DEEP) from None
    except (ValueError, OverflowError):  # of chr, for "\\U00110000"
        raise UnreadableError(1, "contains an escape, \\U or the like, of no character") from None


def _value(node, loc, line, lines, problems, around):
    def refuse(problem):
        where = f"{dotted(loc)}: " if loc else ""
        raise UnreadableError(node.start_mark.line + 1, where + problem)

    lines[loc] = line
    if len(lines) > MOST_VALUES:
        refuse(f"more than {MOST_VALUES} values up to here: put large data into a .json file")
    if node in around:
        refuse("is an alias of something that contains it")
    tag = node.tag.removeprefix(_TAG)
    allowed = (_COLLECTIONS[type(node)],) if type(node) in _COLLECTIONS else ("str", *_PLAIN)
    if tag not in allowed:
        refuse(_tag_problem(node))
    if len(around) > MOST_DEPTH:
        raise UnreadableError(node.start_mark.line + 1, _TOO_DEEP)
    if isinstance(node, yaml.ScalarNode):
        _refuse_surrogates(node)
        if tag == "str":
            return node.value
        pattern, _, convert = _PLAIN[tag]
        if not re.fullmatch(pattern, node.value):
            refuse(f"{node.value:.40} does not match the tag !!{tag}")
        try:
            return convert(node.value)
        except ValueError:  # of int, for more digits than Python reads
            refuse(f"{node.value:.40}... has too many digits")
    around = (*around, node)
    if isinstance(node, yaml.SequenceNode):
        return [
            _value(item, (*loc, i), item.start_mark.line + 1, lines, problems, around)
            for i, item in enumerate(node.value)
        ]
    values = {}
    for key_node, item in node.value:
        key, line = key_node.value, key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            refuse("has a list or a mapping as a key: a key must be a word")
        if key_node.tag.removeprefix(_TAG) not in ("str", *_PLAIN):
            raise UnreadableError(line, f"{dotted((*loc, key))}: {_tag_problem(key_node)}")
        if key == "<<":
            where = f"{dotted(loc)}: " if loc else ""
            raise UnreadableError(
                line,
                f"{where}<< is a merge key of YAML, which is not supported: write out the keys "
                "that it would bring in",
            )
        _refuse_surrogates(key_node)
        if key in values:
            first = lines[*loc, key]
            problems.append((line, f"{dotted((*loc, key))}: is already set in line {first}"))
        else:
            values[key] = _value(item, (*loc, key), line, lines, problems, around)
    return values


def _tag_problem(node):
    return f"the tag {node.tag.replace(_TAG, '!!')} is not supported here: remove it"


def _refuse_surrogates(scalar):
    found = _SURROGATE.search(scalar.value)
    if found:  # no file or terminal takes it
        problem = f"contains {ascii(found[0])[1:-1]}, half of a character: write it whole"
        raise UnreadableError(scalar.start_mark.line + 1, problem)


def dotted(loc):
    """A location as one text.

    Examples
    --------
    >>> from bqlib.sweep.yamlfile import dotted
    >>> dotted(("kernels", "eq", "shape", 0))
    'kernels.eq.shape[0]'
    """
    words = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc]
    return "".join(words).removeprefix(".")


def _plain_words(error):
    """Line and column at which the YAML parser stopped, and why, in plain words."""
    problem, mark = error.problem, error.problem_mark
    start = error.context_mark or mark
    character = mark.buffer[mark.pointer : mark.pointer + 1]
    if "could not find expected ':'" in problem:
        mark, words = start, 'expected "key: value" here'
    elif "mapping values are not allowed" in problem:
        words = (
            '": " is not allowed here: check that the line above has one, that this line is '
            "indented like its neighbours, and that texts with a colon are in quotes"
        )
    elif "expected ',' or" in problem:
        words = f"a comma is missing, or the bracket of line {start.line + 1} is never closed"
    elif "expected the node content" in problem:
        words = f"a value is missing before {character.strip(chr(0)) or 'the end'}"
    elif "expected <block end>" in problem:
        words = f"not indented like the block that starts in line {start.line + 1}"
    elif "cannot start any token" in problem and character == "\t":
        words = "a tab: indent with spaces"
    elif "cannot start any token" in problem or "undefined alias" in problem:
        words = f"put text that starts with {character} in quotes"
    elif "unexpected end of stream" in problem:
        words = f"the quotation mark in line {start.line + 1} is never closed"
    elif "another document" in problem:
        words = "a second document starts here: the file must have only one"
    else:
        words = ": ".join(filter(None, ("cannot be read as YAML", error.context, problem)))
    return mark.line + 1, mark.column + 1, words
