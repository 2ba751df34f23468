"""How the panels of a figure spread over pages, so that each page can be seen at once.

Nothing here draws: a workflow asks how many pages there will be before a sweep runs. The functions
below give pages for any labels, so they are asked with the labels of a sweep and with those of its
datasets.
"""

from math import ceil

ROWS = 2  # of panels on a page
MOST_ROWS = 3  # of low panels


def spread(groups, columns, rows=ROWS):
    """Pages of groups of panels, each of which starts a row of its own.

    A group stands on one page if its rows fit there.

    Parameters
    ----------
    groups : list of list
        The panels of each group; all have as many.
    columns, rows : int
        Panels side by side, and rows on a page.

    Returns
    -------
    list of list of list
        The groups on each page. All groups of a page have as many panels.

    Examples
    --------
    >>> from bqlib.figures.pages import spread
    >>> spread([["a", "b"], ["c", "d"], ["e", "f"]], columns=2)
    [[['a', 'b'], ['c', 'd']], [['e', 'f']]]
    >>> spread([["a", "b", "c"], ["d", "e", "f"]], columns=1)
    [[['a', 'b']], [['c']], [['d', 'e']], [['f']]]
    """
    each = ceil(len(groups[0]) / columns)
    if each <= rows:
        many = rows // each
        return [groups[i : i + many] for i in range(0, len(groups), many)]
    many = rows * columns
    return [[group[i : i + many]] for group in groups for i in range(0, len(group), many)]


def page_of(pages, page):
    """One of several pages, the first of which is 1, and a sentence on which one it is.

    Raises
    ------
    ValueError
        If there is no such page.
    """
    if page not in range(1, len(pages) + 1):
        raise ValueError(f"page is {page}; this figure has the pages 1 to {len(pages)}")
    said = [f"Page {page} of {len(pages)}."] if len(pages) > 1 else []
    return pages[page - 1], said


def of_lengthscales(titles, lengthscales, three=3):
    """Pages with a panel (title, length-scale) for each, and how many panels share a row.

    `three` length-scales stand side by side where there are three. With one length-scale alone,
    the titles do.
    """
    if len(lengthscales) == 1 and len(titles) > 1:
        columns = 2 if len(titles) <= 2 * ROWS else 3
        return spread([[(title, lengthscales[0]) for title in titles]], columns), columns
    columns = {1: 1, 2: 2, 3: three, 4: 2}.get(len(lengthscales), 3)
    groups = [[(title, lengthscale) for lengthscale in lengthscales] for title in titles]
    return spread(groups, columns), columns


def of_slopes(titles, lengthscales):
    """Pages of :func:`bqlib.figures.slopes.slopes`; each of its rows has two panels for each."""
    columns = len(lengthscales) if len(lengthscales) <= 4 else 3
    groups = [[(title, lengthscale) for lengthscale in lengthscales] for title in titles]
    return spread(groups, columns), columns


def of_rows(rows, most):
    """Pages of figures that have a row for each of some things, and at most so many on a page."""
    return [rows[i : i + most] for i in range(0, len(rows), most)]


def of_error_bound(algorithms):
    """Pages of :func:`bqlib.figures.error_bound.error_bound`, and how many panels share a row."""
    columns = 3 if len(algorithms) > 4 else min(2, len(algorithms))
    return of_rows(algorithms, columns * (MOST_ROWS if columns == 3 else ROWS)), columns
