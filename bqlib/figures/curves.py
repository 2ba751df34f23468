"""Any curves of a dataset against n, with a panel for each label of one or two dimensions."""

from itertools import product

from bqlib.figures import panels, style
from bqlib.schema import POOLS, long_name, on_all_dims

FALLING = ("mmd", "error", "error_quantile", "bound_ratio")  # drawn on a logarithmic scale
MOST_COLUMNS = 4
TALLEST, LOWEST = 8.6, 1.2  # inches, of all rows of panels and of one
BESIDE = 0.4  # inches beside a panel


def curves(dataset, quantity="mmd", rows=None, columns=None):
    """A quantity against n: for each algorithm the median over seeds, and their range.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    quantity : str
        A variable over n.
    rows, columns : str, optional
        Dimensions with a row or a column of panels for each label. By default the length-scale
        has the columns, and another dimension that has several labels the rows.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If there is no such dimension, or a dimension with several labels has neither rows nor
        columns.
    """
    part = on_all_dims(dataset, (quantity, "status"))
    rows, columns = _places(part, quantity, rows, columns)
    part = part.compute()
    looks = panels.styles_of(part)
    across = [None] if columns is None else part[columns].values.tolist()
    wrapped = rows is None and len(across) > MOST_COLUMNS
    width = MOST_COLUMNS if wrapped else len(across)
    cells = list(product([None] if rows is None else part[rows].values.tolist(), across))
    with style.ours():
        figure, (row,) = panels.grid(
            len(cells), width, width=max(6.0, 3.0 * width), margin=1.2,
            height=max(LOWEST, min(3.2, TALLEST / -(-len(cells) // width))),
            ylabel=long_name(part, quantity),
        )  # fmt: skip
        places = [
            {d: x for d, x in zip((rows, columns), labels, strict=True) if d is not None}
            for labels in cells
        ]
        names = [[named(dim, label) for dim, label in chosen.items()] for chosen in places]
        room = figure.get_figwidth() / width - BESIDE
        for axes, chosen, title in zip(row, places, panels.titles(names, room), strict=True):
            _draw(axes, part, quantity, chosen, looks)
            axes.set_title(title)
        panels.legend(
            figure,
            panels.about_seeds(part.sizes["seed"]),
            *panels.about_sets(part),
            handles=panels.handles(looks),
        )
    return figure


def named(dim, label):
    """A label, with the name of its dimension unless the label is enough."""
    if dim == "algorithm":
        return style.algorithm_name(label)
    if dim == "lengthscale":
        return f"length-scale {label:g}"
    if dim == POOLS:
        return f"candidates: {label}" if isinstance(label, str) else f"{label} candidates"
    return str(label) if isinstance(label, str) else f"{dim} {label:g}"


def _places(part, quantity, rows, columns):
    """The dimensions of the rows and of the columns, either of which may be None."""
    dims = part[quantity].dims
    free = [d for d in dims if d not in ("algorithm", "seed", "n") and part.sizes[d] > 1]
    allowed = [dim for dim in dims if dim != "n"]
    wrong = [dim for dim in (rows, columns) if dim is not None and dim not in allowed]
    if "n" not in dims:
        raise ValueError(f"{quantity} has one value for all n: take a variable over n")
    if wrong or (rows is not None and rows == columns):
        raise ValueError(
            f"rows is {rows} and columns is {columns}; they must be two different ones of "
            f"{', '.join(allowed)}"
        )
    others = [dim for dim in free if dim not in (rows, columns)]
    if columns is None and others:
        columns = "lengthscale" if "lengthscale" in others else others[0]
        others.remove(columns)
    if rows is None and others:
        rows = others.pop(0)
    if others:
        raise ValueError(
            f"{', '.join(others)} has several labels but neither rows nor columns: select one "
            "label with .sel, or name it as rows or columns"
        )
    return rows, columns


def _draw(axes, part, quantity, chosen, looks):
    kept = ("algorithm", "seed", "n")
    panel = part.sel({dim: [label] for dim, label in chosen.items()})
    panel = panel.squeeze([dim for dim in panel[quantity].dims if dim not in kept])
    shown = {name: looks[name] for name in panel["algorithm"].values.tolist()}
    _, notes = panels.draw_curves(axes, panel, quantity, {}, shown)
    if quantity in FALLING:
        axes.set_yscale("log")
    panels.write(axes, notes, panels.LETTERS[3])
