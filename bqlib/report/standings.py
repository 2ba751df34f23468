"""The table of an archive as one HTML file, in the style of the report."""

import bqlib
from bqlib.report import SCRIPT, STYLE
from bqlib.report.html import template
from bqlib.suite import standings
from bqlib.sweep.problems import SUITE

# The largest ratio to the best MMD of each shade, from the darkest.
SHADES = (1.05, 2, 5, 20)


def page(table):
    """The page.

    Parameters
    ----------
    table : bqlib.suite.standings.Standings

    Returns
    -------
    str
        HTML. All that a submission says is escaped, and is no address of a link.
    """
    headings, rows, best = standings.summary_table(table)
    return template("standings.html").render(
        style=STYLE.read_text(encoding="utf-8"),
        script=SCRIPT.read_text(encoding="utf-8"),
        suite=SUITE,
        explanation=standings.explanation(table),
        about_matrix=standings.about_matrix(),
        headings=headings,
        rows=[
            [(text, i in best.get(column, ())) for column, text in enumerate(row)]
            for i, row in enumerate(rows)
        ],
        numbers=standings.NUMBERS,
        names=standings.names_of(table),
        matrix=[
            (name, n, "-" if least is None else standings.short(least), _cells(cells, n))
            for name, n, least, cells in standings.matrix(table)
        ],
        shades=[f"{SHADES[0]:g}", *(f"{shade:g}" for shade in SHADES[1:])],
        entries=standings.list_of_entries(table),
        version=bqlib.__version__,
    )


def _cells(cells, n):
    """For each cell the text, the n beside it, whether it is the best, and its shade."""
    best, found = standings.best_of(cells), []
    for i, cell in enumerate(cells):
        if cell is None:
            found.append(("-", "", False, ""))
            continue
        mmd, own, ratio = cell
        shade = next((k + 1 for k, most in enumerate(SHADES) if ratio and ratio <= most), "")
        found.append((standings.short(mmd), f"n {own}" if own != n else "", i in best, shade))
    return found
