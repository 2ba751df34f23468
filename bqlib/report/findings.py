"""What a sweep found: the best rule of each cell, by how much it leads, and at which rate."""

import json
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from bqlib.analysis.cells import cells
from bqlib.analysis.fits import worded
from bqlib.over_seeds import FEWEST_SEEDS, mean_interval
from bqlib.schema import OK, problems_of

NEEDS_SEEDS = f"needs {FEWEST_SEEDS} seeds"  # an interval does


@dataclass(frozen=True)
class Lead:
    """How many times larger the MMD of another rule is, with the ends of its interval or NaN.

    It is a geometric mean over the seeds that both rules have. `n` is the largest that all its
    seeds reach, at which its MMD is taken.
    """

    rule: str
    n: int
    ratio: float
    low: float
    high: float

    @property
    def certain(self):
        """Whether the interval lies above one; without an interval, nothing is certain."""
        return bool(self.low > 1)

    @property
    def untested(self):
        """Whether the seeds are too few for an interval."""
        return bool(np.isnan(self.low) and not np.isnan(self.ratio))


@dataclass(frozen=True)
class Best:
    """The rule with the smallest MMD in one cell.

    Attributes
    ----------
    cell : dict
        Target, kernel and length-scale.
    rule : str
    mmd : float
        Geometric mean over the seeds that succeeded, at `n`, as leads are.
    n : int
        The largest n that all these seeds reach.
    asked : int
        The largest n that was asked for.
    rate : tuple of (float, str, bool) or None
        The exponent a of n^-a in words with its interval, and whether the curve is a power law.
    over_next, over_iid : Lead or None
        None if there is no other rule, or no independent draws.
    """

    cell: dict
    rule: str
    mmd: float
    n: int
    asked: int
    rate: tuple | None
    over_next: Lead | None
    over_iid: Lead | None


def best_rules(curves, rates=None):
    """The best rule of each cell, at the largest n of its curves.

    A curve that ends before, as one does when float64 cannot separate further points, counts with
    the MMD at its end. A rule without a seed that succeeded does not count. Rules are compared by
    the geometric mean over the seeds, so that no lead is below 1 where all seeds succeeded.

    Parameters
    ----------
    curves : xarray.Dataset
        As :func:`bqlib.open_results` gives it.
    rates : xarray.Dataset, optional
        As :func:`bqlib.analysis.fits.fit_rates` gives it. Rates are those of its first window.

    Returns
    -------
    list of Best
        One for each target, kernel and length-scale in which a trial succeeded.
    """
    draws = _draws(curves)
    problems = problems_of(curves.attrs)
    names = curves["algorithm"].values.tolist()
    part = curves[["mmd", "status"]].transpose(..., "algorithm", "seed", "n")
    found = []
    for cell in cells(curves):
        own = part.sel(cell).compute()
        status = own["status"].values
        ends = {
            name: end
            for name, mmd, ran in zip(names, own["mmd"].values, status, strict=True)
            if (end := _end(mmd, ran == OK)) is not None
        }
        if not ends:
            continue
        order = sorted(ends, key=lambda name: (ends[name].mean, names.index(name)))
        rule, *others = order
        found.append(
            Best(
                cell=cell,
                rule=rule,
                mmd=ends[rule].mean,
                n=ends[rule].n,
                asked=problems.get(cell["target"], {}).get("n", curves.sizes["n"]),
                rate=_rate(rates, cell, rule),
                over_next=_lead(ends, rule, others[0]) if others else None,
                over_iid=_lead(ends, rule, draws) if draws in others else None,
            )
        )
    return found


@dataclass(frozen=True)
class _End:
    """The MMD of each seed at the end of the curves of one rule, NaN if the seed did not run."""

    n: int
    mmd: np.ndarray

    @property
    def mean(self):
        """The geometric mean, which is 0 if a seed is."""
        with np.errstate(divide="ignore"):
            return float(np.exp(np.nanmean(np.log(self.mmd))))


def _end(mmd, ran):
    """Of the curves (S, N) of a rule: the last n that all seeds that ran have, or None."""
    reached = np.flatnonzero(np.isfinite(mmd[ran]).all(axis=0)) if ran.any() else ()
    if len(reached) == 0:
        return None
    return _End(int(reached[-1]) + 1, np.where(ran, mmd[:, reached[-1]], np.nan))


def _draws(curves):
    """The algorithm of independent draws with equal weights, or None."""
    algorithms = json.loads(curves.attrs["config"]).get("algorithms", [])
    plain = [a["name"] for a in algorithms if (a["design"], a["weights"]) == ("iid", "uniform")]
    return plain[0] if plain else None


def _lead(ends, rule, other):
    """The geometric mean over the seeds that both have, and its interval."""
    ours, theirs = ends[rule].mmd, ends[other].mmd
    both = ~np.isnan(ours) & ~np.isnan(theirs)
    if not both.any() or (ours[both] <= 0).any() or (theirs[both] <= 0).any():
        return Lead(other, ends[other].n, *np.full(3, np.nan))
    return Lead(
        other, ends[other].n, *np.exp(mean_interval(np.log(theirs[both] / ours[both]))).tolist()
    )


def _rate(rates, cell, rule):
    if rates is None or not rates.sizes["window"]:
        return None
    fit = rates.sel(cell | {"algorithm": rule}).isel(window=0)
    if not int(fit["n_seeds"]):
        return None
    power = fit.sel(model="power_law")
    is_power = fit["verdict"].item() in ("power_law", "")
    return float(power["rate"]), worded(power, "rate", 2), is_power


def best_rows(found):
    """The best rules as rows of text: length-scales with the same best rule make one row.

    Parameters
    ----------
    found : list of Best

    Returns
    -------
    list of dict
    """
    several = [
        name
        for name in ("target", "kernel", "lengthscale")
        if len({best.cell[name] for best in found}) > 1
    ]
    ordered = sorted(found, key=lambda b: (_place(found, b), b.cell["lengthscale"]))
    rows = []
    for _, group in groupby(ordered, key=lambda b: (_place(found, b), b.rule)):
        group = list(group)
        scales = [best.cell["lengthscale"] for best in group]
        labels = group[0].cell | {"lengthscale": _span([(x, f"{x:g}") for x in scales])}
        rows.append(
            {name: str(labels[name]) for name in several}
            | {
                "best rule": group[0].rule,
                f"MMD at {_largest(found)}": _span([(b.mmd, _with_end(b)) for b in group]),
                "rate a": _rates(group),
                "next best": _next(group),
                "lead over next": _leads([b.over_next for b in group]),
                "not certain": _uncertain(group, several),
                "lead over i.i.d.": _leads([b.over_iid for b in group]),
            }
        )
    return rows


def _place(found, best):
    """Where the target and kernel of a cell stand in the order of the sweep."""
    pairs = list(dict.fromkeys((b.cell["target"], b.cell["kernel"]) for b in found))
    return pairs.index((best.cell["target"], best.cell["kernel"]))


def _next(group):
    """The next best rules, and where their curves end if this is before the largest n."""
    named = [_named(best.over_next, best.asked) for best in group if best.over_next]
    return ", ".join(dict.fromkeys(named)) or "-"


def _named(lead, asked):
    return lead.rule if lead.n == asked else f"{lead.rule} (ends at {lead.n})"


def _largest(found):
    """The largest n of the cells in words; problems may differ in it."""
    asked = {best.asked for best in found}
    return f"n = {asked.pop()}" if len(asked) == 1 else "the largest n"


def _uncertain(group, several):
    """The length-scales at which the next rule may be as good, and those without an interval."""
    leads = [(b.cell["lengthscale"], b.over_next) for b in group if b.over_next]
    untested = [scale for scale, lead in leads if lead.untested]
    close = [scale for scale, lead in leads if not lead.certain and not lead.untested]
    one = "lengthscale" not in several
    said = [("yes" if one else f"at {_scales(close)}")] if close else []
    if untested:
        whole = one or len(untested) == len(group)
        said.append(NEEDS_SEEDS if whole else f"{NEEDS_SEEDS} at {_scales(untested)}")
    return "; ".join(said) or "-"


def _scales(lengthscales):
    return ", ".join(f"{x:g}" for x in lengthscales)


def _with_end(best):
    return f"{best.mmd:.3g}" + ("" if best.n == best.asked else f" (ends at {best.n})")


def _rates(group):
    rates = [best.rate for best in group if best.rate]
    if any(is_power for *_, is_power in rates):
        rates = [(a, words if power else f"{words} (slope)", power) for a, words, power in rates]
        return _span([(a, words) for a, words, _ in rates])
    return f"{_span([(a, words) for a, words, _ in rates])} (slope)" if rates else "-"


def _span(pairs):
    """The smallest and the largest of numbers, in their words; nothing if there are none."""
    if not pairs:
        return ""
    low, high = min(pairs)[1], max(pairs)[1]
    return low if low == high else f"{low} to {high}"


def _leads(leads):
    known = [lead for lead in leads if lead and not np.isnan(lead.ratio)]
    if len(known) == 1:
        return _times(known[0])
    return _span([(lead.ratio, _number(lead.ratio)) for lead in known]) or "-"


def _times(lead):
    """A ratio with its interval, for example "4.34 [4.22, 4.47]"."""
    if np.isnan(lead.low):
        return _number(lead.ratio)
    return f"{_number(lead.ratio)} [{_number(lead.low)}, {_number(lead.high)}]"


def _number(ratio):
    """A ratio to two decimals, or to three digits if it is large."""
    return f"{ratio:.2f}" if ratio < 10 else f"{float(f'{ratio:.3g}'):,g}"


def headline(found, cell=None):
    """The finding in one sentence: of one cell, or how many cells each rule wins.

    Of several cells it says in how many the lead is certain.

    Parameters
    ----------
    found : list of Best
    cell : dict, optional
        The cell to speak of, if there are several.
    """
    chosen = [best for best in found if cell is None or best.cell == cell] or found
    if not chosen:
        return "No trial succeeded."
    if len(chosen) > 1:
        wins = {}
        for best in chosen:
            wins[best.rule] = wins.get(best.rule, 0) + 1
        counts = sorted(wins.items(), key=lambda pair: -pair[1])
        leads = [best.over_next for best in chosen if best.over_next]
        tested = any(not lead.untested for lead in leads)
        said = ", ".join(
            f"{rule} in {count}{_sure(chosen, rule, tested)}" for rule, count in counts
        )
        few = f" Whether a lead is certain {NEEDS_SEEDS}." if leads and not tested else ""
        return f"Smallest MMD at {_largest(chosen)}, of {len(chosen)} settings: {said}.{few}"
    (best,) = chosen
    where = f" at length-scale {best.cell['lengthscale']:g}" if len(found) > 1 else ""
    said = f"{best.rule} has the smallest MMD{where}: {best.mmd:.3g} at n = {best.n}"
    leads = [lead for lead in (best.over_next, best.over_iid) if lead and lead.ratio > 0]
    if len(leads) == 2 and leads[0].rule == leads[1].rule:
        leads = leads[:1]
    words = [
        f"that of {_named(lead, best.asked)} is {_times(lead)} times as large{_doubt(lead)}"
        for lead in leads
    ]
    return "; ".join([said, *words]) + "."


def _sure(chosen, rule, tested):
    """In how many cells the lead of a rule is certain, if any lead of the sweep has an interval."""
    leads = [best.over_next for best in chosen if best.rule == rule and best.over_next]
    return f" ({sum(lead.certain for lead in leads)} certain)" if tested and leads else ""


def _doubt(lead):
    """What a sentence says of a lead that is not certain."""
    if lead.certain:
        return ""
    return f" (not certain: {NEEDS_SEEDS})" if lead.untested else " (not certain)"
