"""Small tables of HTML, as notebooks show the value of a cell."""

from collections.abc import Iterable
from html import escape


def html_table(heading: object, rows: Iterable[tuple[object, object]], below: str = "") -> str:
    """A heading, a table of two columns, and a sentence below it. All are plain text.

    Parameters
    ----------
    heading
    rows : iterable of pairs
        What a value is, and the value.
    below : str

    Returns
    -------
    str
        HTML without scripts or styles. Characters that HTML gives a meaning are escaped.
    """
    cells = "".join(
        f"<tr><th>{escape(str(name))}</th><td>{escape(str(value))}</td></tr>"
        for name, value in rows
    )
    note = f"<p>{escape(below)}</p>" if below else ""
    return f"<div><strong>{escape(str(heading))}</strong><table>{cells}</table>{note}</div>"
