"""Text for terminals and files."""


def one_line(text):
    """The text in one line, with escapes for what UTF-8 cannot hold or could steer a terminal.

    Examples
    --------
    >>> from bqlib.results.text import one_line
    >>> print(one_line("no\\nfile \\udce9"))
    no file \\udce9
    """
    return printable(" ".join(text.split()))


def printable(text):
    """The text with escapes for what could steer a terminal.

    Examples
    --------
    >>> from bqlib.results.text import printable
    >>> print(printable("a \\x1b[2J"))
    a \\x1b[2J
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def failure_of(error):
    """The reason of a trial that failed by an error, in one line.

    Examples
    --------
    >>> from bqlib.results.text import failure_of
    >>> failure_of(ValueError("n is 0"))
    'ValueError: n is 0'
    """
    try:
        said = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as another:  # of a text that somebody's class makes
        said = f"its text cannot be had ({type(another).__name__})"
    return one_line(f"{type(error).__name__}: {said}")


def aligned(rows, numbers=()):
    """Rows as columns, separated by two blanks, below a line of headings.

    Parameters
    ----------
    rows : sequence of dict
        The same keys in each; they are the headings.
    numbers : collection of str
        Columns to align at the right.

    Returns
    -------
    str
        The line of headings and a line per row; empty if there are no rows.

    Examples
    --------
    >>> from bqlib.results.text import aligned
    >>> print(aligned([{"name": "iid", "rate": 0.5}, {"name": "sbq", "rate": 12}], ["rate"]))
    name  rate
    iid    0.5
    sbq     12
    """
    if not rows:
        return ""
    columns = [[name, *(printable(str(row[name])) for row in rows)] for name in rows[0]]
    set_columns = [
        [text.rjust(width) if column[0] in numbers else text.ljust(width) for text in column]
        for column in columns
        for width in [max(map(len, column))]
    ]
    return "\n".join("  ".join(line).rstrip() for line in zip(*set_columns, strict=True))


def ranges(numbers):
    """Whole numbers in order, with consecutive ones joined.

    Examples
    --------
    >>> from bqlib.results.text import ranges
    >>> ranges([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][-1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


def duration(seconds):
    """Seconds as people say them.

    Examples
    --------
    >>> from bqlib.results.text import duration
    >>> duration(0.0312), duration(74), duration(5000), duration(3e6)
    ('0.031 s', '1.2 min', '1.4 h', '833 h')
    """
    unit, size = next(
        ((unit, size) for unit, size in (("h", 3600), ("min", 60)) if seconds >= size), ("s", 1)
    )
    number = seconds / size
    return f"{number:.0f} {unit}" if number >= 10 else f"{number:.2g} {unit}"
