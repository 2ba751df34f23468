"""How many problems each rule solves, and how two rules compare, as rows for tables."""

import math

import numpy as np

from bqlib.analysis.profiles import by_wins, profile, remarks, versus

NONE = "-"


def profile_rows(curves):
    """A row for each rule, the one with the most wins first, and remarks on what was left out.

    Parameters
    ----------
    curves : xarray.Dataset
        As :func:`bqlib.open_results` gives it.

    Returns
    -------
    rows : list of dict
        As JSON may hold them: algorithm; problems, the number of those that it was tried on and
        applies to; does not apply, a number of problems; failed, a number of trials; solved
        within n/d = 1, 10, 100 and so on, shares; solved, the share at the largest n; wins and
        losses, means over the rivals of the shares. What is unknown is None.
    remarks : list of str
    """
    budgets = _powers_of_ten(curves)
    found = profile(curves, budgets=budgets)
    pairs = versus(curves)
    rows = []
    for name in by_wins(pairs):
        own, lead = found.sel(algorithm=name), pairs.sel(algorithm=name)
        tried = (own["tried"] > 0) & (own["inapplicable"] == 0)
        rows.append(
            {
                "algorithm": name,
                "problems": int(tried.sum()),
                "does not apply": int((own["inapplicable"] > 0).sum()),
                "failed": int(own["failed"].sum()),
                **{
                    f"n/d = {budget:g}": _number(share)
                    for budget, share in zip(budgets, own["data_profile"].values, strict=True)
                },
                "solved": _number(own["solved"]),
                "wins": _number(lead["wins"].mean()),
                "losses": _number(lead["losses"].mean()),
            }
        )
    return rows, remarks(found)


def versus_rows(curves, rule):
    """A row for each rival of a rule, and remarks on what was left out.

    Parameters
    ----------
    curves : xarray.Dataset
        As :func:`bqlib.open_results` gives it.
    rule : str
        An algorithm.

    Returns
    -------
    rows : list of dict
        As JSON may hold them: rival; problems, which both share; wins, ties, losses and neither,
        shares of problems, levels and seeds; ratio, low and high, the points of the rule over
        those of its rival with a 95 % interval. What is unknown is None, and what is infinite
        "inf".
    remarks : list of str

    Raises
    ------
    ValueError
        If the results lack the rule.
    """
    names = np.atleast_1d(curves["algorithm"].values).tolist()
    if rule not in names:
        raise ValueError(f"the results have no algorithm {rule}; they have {', '.join(names)}")
    pairs = versus(curves)
    own = pairs.sel(algorithm=rule)
    rows = [
        {
            "rival": rival,
            "problems": int(own["problems"].sel(rival=rival)),
            **{
                name: _number(own[name].sel(rival=rival))
                for name in ("wins", "ties", "losses", "neither", "ratio")
            },
            "low": _number(own["ratio_low"].sel(rival=rival)),
            "high": _number(own["ratio_high"].sel(rival=rival)),
        }
        for rival in by_wins(pairs)
        if rival != rule
    ]
    return rows, remarks(pairs)


def in_words(rows):
    """The rows as text: shares in %, and ratios with their intervals in one column."""
    return [
        {name: _worded(name, row) for name in row if name not in ("low", "high")} for row in rows
    ]


def _worded(name, row):
    if name == "ratio":
        ratio, low, high = (_short(row[end]) for end in ("ratio", "low", "high"))
        return ratio if NONE in (low, high) else f"{ratio} [{low}, {high}]"
    if row[name] is None:
        return NONE
    return f"{100 * row[name]:.0f} %" if isinstance(row[name], float) else row[name]


def _short(ratio):
    if ratio is None:
        return NONE
    if ratio == "inf":
        return ratio
    if ratio == 0:
        return "0"
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.3g}"


def _number(value):
    value = float(value)
    if math.isnan(value):
        return None
    return "inf" if math.isinf(value) else value


def _powers_of_ten(curves):
    """Budgets of n/d: 1, 10, 100 and so on, up to the largest n."""
    return [10**power for power in range(9) if 10**power <= curves.sizes["n"]]
