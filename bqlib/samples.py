"""Draws as people have them: arrays, chains, tables of pandas, posteriors of ArviZ.

None of these libraries is imported: what has the same attributes is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bqlib.answers import of_shape
from bqlib.arrays import Array, Indices
from bqlib.checks import checked_array, checked_points
from bqlib.pivots import first_occurrence
from bqlib.tables import labels_of, order_of

BESIDE_PARAMETERS = ("chain", "draw", "iteration", "sample")
# Of a value and of its column: values at equal draws may be rounded in other ways.
SAME, ROUNDING = 1e-6, 1e-12


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of one or several chains, one after the other.

    Attributes
    ----------
    points : ndarray, shape (M, d)
    shape : tuple of int
        Of the draws as they were given: (M, d), or (chains, draws, d).
    labels : ndarray or None
        Of each draw: the index of a table (M,), or chain and draw (M, 2). None for an array (M, d).
    names : list of str, or None
        Of the columns of a table.
    """

    points: Array
    shape: tuple[int, ...]
    labels: Any = None
    names: list[Any] | None = None

    def where(self, row: int) -> str:
        """A row in words, with its chain and draw if there are chains."""
        if len(self.shape) == 2:
            return f"row {row}"
        chain, draw = np.unravel_index(row, self.shape[:2])
        return f"row {row} (chain {chain}, draw {draw})"

    def distinct(self) -> tuple[Indices, Indices]:
        """Rows of the distinct draws, in their order, and for each draw which of these it is."""
        first = first_occurrence(self.points)
        rows, which = np.unique(first, return_inverse=True)
        return rows, which


def draws_of(samples: Any) -> Draws:
    """Draws as finite numbers; a TypeError or ValueError says what is wrong with them."""
    if _has_columns(samples):
        draws = _of_table(samples, "samples")
        _refuse_no_parameters(draws.names or [])
    elif (posterior := _dataset_of(samples)) is not None:
        draws = _of_dataset(posterior)
    else:
        draws = _of_array(samples)
    refuse_not_finite(draws.points, draws, "samples")
    checked_points(draws.points, name="samples")
    return draws


def refuse_not_finite(
    values: Array, draws: Draws, name: str, allow_minus_infinity: bool = False
) -> None:
    """Raise a ValueError that names the first draw with a value that is NaN or infinite."""
    finite = np.isfinite(values) | (np.isneginf(values) & allow_minus_infinity)
    good = finite.reshape(len(values), -1).all(axis=1)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"{name} are NaN or infinite in {np.count_nonzero(~good)} of {len(values)} draws, "
            f"first in {draws.where(row)}: {np.array2string(values[row], threshold=8)}. Remove "
            "these draws"
        )


def _has_columns(data: Any) -> bool:
    """Whether data are a table of pandas, or what has the same attributes."""
    return hasattr(data, "columns") and hasattr(data, "iloc")


def _dataset_of(data: Any) -> Any:
    """The dataset of a posterior of ArviZ, or of one variable of it; None of other data."""
    if len(getattr(data, "data_vars", ())):
        return data
    if hasattr(data, "posterior"):
        data = data.posterior
    if hasattr(data, "data_vars"):
        return data
    if isinstance(dims := getattr(data, "dims", None), tuple) and {"chain", "draw"} <= {*dims}:
        return data.to_dataset(name=data.name or "x")
    return None


def beside_parameters(names: Iterable[Any]) -> list[Any]:
    """Those of some names that samplers give to what they write beside the parameters."""
    return [
        name
        for name in names
        if str(name).endswith("__") or str(name).lstrip(".").lower() in BESIDE_PARAMETERS
    ]


def _refuse_no_parameters(names: list[Any]) -> None:
    if beside := beside_parameters(names):
        raise ValueError(
            f"samples have the columns {beside}, which are no parameters as samplers name them: "
            f"leave them out, samples.drop(columns={beside}), or rename them if they are"
        )


def _of_dataset(posterior: Any) -> Draws:
    """Draws of all variables of a dataset of xarray with the dims chain and draw."""
    parts, names, pairs = [], [], None
    for name, variable in posterior.data_vars.items():
        missing = {"chain", "draw"} - set(variable.dims)
        if missing:
            raise ValueError(
                f"the variable {name!r} has the dims {tuple(variable.dims)}; all variables must "
                'have "chain" and "draw": select those that do, such as '
                'data.posterior.dataset[["mu", "tau"]]'
            )
        variable = variable.transpose("chain", "draw", ...)
        chains, draws, *rest = variable.shape
        values = checked_array(variable.to_numpy(), f"the variable {name!r} of samples")
        parts.append(values.reshape(chains * draws, -1))
        names += [f"{name}{list(i) if i else ''}" for i in np.ndindex(*rest)]
        pairs = [np.asarray(variable[dim]).tolist() for dim in ("chain", "draw")]
    if not parts or pairs is None:
        raise ValueError("the dataset has no variables; it must hold those of a posterior")
    points = np.concatenate(parts, axis=1)
    labels = np.array([(chain, draw) for chain in pairs[0] for draw in pairs[1]])
    return Draws(points, (len(pairs[0]), len(pairs[1]), points.shape[1]), labels, names)


def _of_table(table: Any, name: str) -> Draws:
    columns = [
        checked_array(table.iloc[:, c], f"the column {column!r} of {name}")
        for c, column in enumerate(table.columns)
    ]
    if not columns:
        raise ValueError(f"{name} are a table without columns; give one for each parameter")
    points = np.column_stack(columns)
    return Draws(points, points.shape, labels_of(table), list(table.columns))


def _of_array(samples: Any) -> Draws:
    if isinstance(samples, list | tuple):
        lengths = sorted({len(chain) for chain in samples if np.ndim(chain) == 2})
        if len(lengths) > 1:
            raise ValueError(
                f"the chains have from {lengths[0]} to {lengths[-1]} draws; they must be of one "
                "length. Cut them to the shortest, or pass np.concatenate(chains)"
            )
    points = checked_array(samples, "samples")
    if points.ndim not in (2, 3) or not points.size:
        advice = "; for one parameter, pass samples[:, None]" if points.ndim == 1 else ""
        raise ValueError(
            f"samples have shape {points.shape}; they must have shape (draws, d), or (chains, "
            f"draws, d){advice}"
        )
    if points.ndim == 2:
        return Draws(points, points.shape)
    chains, draws, dim = points.shape
    labels = np.array([(chain, draw) for chain in range(chains) for draw in range(draws)])
    return Draws(points.reshape(-1, dim), points.shape, labels)


@dataclass(frozen=True, eq=False, repr=False)
class AtDraws:
    """A function whose values (u, ...) at distinct draws (u, d) are known.

    At other points it is `function`, or there is none.
    """

    draws: Array
    values: Array
    name: str
    function: Callable[[Array], Any] | None = None

    def __call__(self, x: Array) -> Array:
        """Values at points x (n, d), shape (n, ...)."""
        if x.shape == self.draws.shape and (x == self.draws).all():
            return self.values
        rows = np.array([self._rows.get(_key(point), -1) for point in x])
        if not (rows < 0).any():
            return self.values[rows]
        if self.function is None:
            raise ValueError(
                f"{self.name} were given at the draws, but are needed at another point, "
                f"{x[np.argmax(rows < 0)]}: pass a function in place of an array"
            )
        return self.function(x)

    @cached_property
    def _rows(self) -> dict[bytes, int]:
        return _rows_by_key(self.draws)

    def __repr__(self) -> str:
        return f"<{self.name} of {len(self.draws)} draws>"


def row_of(points: Array, draws: Array) -> Indices:
    """For each point (n, d), the row of the draw (u, d) that it equals, or -1."""
    known = _rows_by_key(draws)
    return np.array([known.get(_key(point), -1) for point in points], dtype=np.intp)


def _rows_by_key(draws: Array) -> dict[bytes, int]:
    return {_key(draw): row for row, draw in enumerate(draws)}


def _key(point: Array) -> bytes:
    return (point + 0.0).tobytes()  # one zero, not two


def known_at_draws(given: Any, samples: Any, draws: Draws, name: str, axes: Any) -> AtDraws:
    """What was given for each draw, or as a function of points, as a function of points.

    Parameters
    ----------
    given : array_like or callable
        For each draw an array of shape `axes`, or a function of points (n, d). Where draws came as
        (chains, draws, d), the array may have the same first axes. A table is matched with
        that of `samples` by index and columns.
    samples : array_like
    draws : Draws
        What :func:`draws_of` made of `samples`.
    name : str
        Of the values, in messages.
    axes : tuple of int
    """
    rows, which = draws.distinct()
    points = draws.points[rows]
    if callable(given):
        values = of_shape(given(points.copy()), (len(points), *axes), points, f"{name}(x)")
        refuse_not_finite(values[which], draws, name, not axes)
        return AtDraws(points, values, name, given)
    values = _values_of(given, samples, draws, name, axes)
    refuse_not_finite(values, draws, name, not axes)
    first = values[rows][which]
    sizes = np.maximum(np.abs(values), np.abs(first))
    with np.errstate(invalid="ignore"):  # minus infinity, twice
        differ = np.abs(values - first) > SAME * sizes + ROUNDING * sizes.max(axis=0)
    wrong = differ.reshape(len(values), -1).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        other = int(rows[which[row]])
        raise ValueError(
            f"samples are equal in {draws.where(other)} and {draws.where(row)}, but their {name} "
            f"differ: {values[other]} and {values[row]}. Check that both are in one order"
        )
    return AtDraws(points, values[rows], name)


def _values_of(given: Any, samples: Any, draws: Draws, name: str, axes: Any) -> Array:
    """Values (M, *axes) that were given for each of M draws."""
    size = len(draws.points)
    table = None
    if _has_columns(given):
        table = _of_table(given, name)
    elif (dataset := _dataset_of(given)) is not None:
        table = _of_dataset(dataset)
    if table is not None:
        own, wanted = ([str(n) for n in t.names or []] for t in (table, draws))
        if draws.names is None or own == wanted:
            array = table.points
        elif {*own} == {*wanted} and len({*own}) == len(own) == len(wanted):
            array = table.points[:, [own.index(column) for column in wanted]]
        else:
            raise ValueError(
                f"{name} have the columns {own}, and samples {wanted}; they must have the same, "
                "each once"
            )
    else:
        array = checked_array(given, name)
    shapes = [(size, *axes)]
    if len(draws.shape) == 3:
        shapes.append((*draws.shape[:2], *axes))
    if array.shape not in shapes:
        raise ValueError(
            f"{name} have shape {array.shape}, but samples have shape {draws.shape}; give "
            f"{name} of shape {' or '.join(map(str, shapes))}, or a function of points (n, d)"
        )
    return array.reshape(shapes[0])[order_of(given, samples, size)]
