"""Compare the numbers in these pages with results. Run: python docs/measured.py [results/paper]

`make paper` makes the results. Each sentence is written again with the numbers found, in the digits
of the page, and looked up there. The exit code is 1 if a page says something else.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bqlib import open_results, published, sbq
from bqlib.claims.evidence import Evidence, MissingError
from bqlib.over_seeds import mean_interval
from bqlib.results.layout import Layout
from bqlib.results.store import open_dataset

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Sentence:
    """A sentence with a field for each number, and the numbers from the evidence.

    " ... " in a row of a table stands for any other columns.
    """

    page: str
    text: str
    numbers: Callable


def reached(evidence):
    """Points that SBQ needs for the MMD of 20 points of herding: all values over the seeds."""
    aim = evidence.curve("mmd", "herding")[:, 19:20]
    return sorted(set(1 + (evidence.curve("mmd", "sbq") <= aim).argmax(axis=1)))


def ends(evidence, lengthscale):
    """Where the curves of SBQ end, in order."""
    cell = evidence.cell | {"lengthscale": lengthscale, "algorithm": "sbq"}
    return np.sort(evidence.curves["rank_reached"].sel(cell).values)


def early(evidence, lengthscale):
    """Those ends that come before the largest n: of most seeds."""
    found = ends(evidence, lengthscale)
    before = found[found < evidence.n]
    if 2 * len(before) <= len(found):
        raise ValueError(f"only {len(before)} of {len(found)} curves end early")
    return before


def alone(evidence, lengthscale, n):
    """Where one design of n points by SBQ ends, at a length-scale that the sweep lacks."""
    kernel = type(evidence.embedding.kernel)(lengthscale, scale="density")
    return len(sbq(evidence.embedding.target, kernel, n, rng=0).points)


def of_rule(name, study="alternatives"):
    """MMD of a rule at 100 and at 400 points: geometric means over the pools of a study."""
    return lambda evidence: np.exp(
        np.log(evidence.study(study)["mmd"].sel(plan=name, n=[100, 400])).mean("seed").values
    )


def weight_sum(evidence, name):
    return evidence.curve("weight_sum", name)[:, 99]


def first_errors(evidence):
    """Errors within the model at n = 1 over those that are published for it, geometric means."""
    label, *_ = evidence.integrands(within=True)
    return [
        np.exp(np.log(evidence.curve("error", name, integrand=label)[:, 0]).mean())
        / published.curves("within_model")[name][1][0]
        for name in ("iid", "herding")
    ]


def digits(values, count):
    """Numbers with this many significant digits, never in the form 1e-5."""
    return [np.format_float_positional(v, count, fractional=False, trim="k") for v in values]


def row(start, name, study="alternatives"):
    """A row of the table of rules."""

    def cells(evidence):
        at_100, at_400 = of_rule(name, study)(evidence)
        return [*digits([at_100], 3), *digits([at_400], 2)]

    return Sentence("docs/designs.md", f"| {start} | ... | {{}} | {{}} |", cells)


SENTENCES = (
    Sentence(
        "README.md",
        "{} points of SBQ are as good as {} points of herding, in every seed",
        lambda e: (*reached(e), 20),
    ),
    Sentence(
        "README.md",
        "herding falls as n<sup>-{:.2f}</sup>",
        lambda e: [e.rate("herding")["rate"].sel(model="power_law").item()],
    ),
    Sentence(
        "README.md",
        "At length-scale 1, SBQ runs out of float64 precision in most seeds, between about {:.0f} "
        "and {:.0f} points",
        lambda e: np.round(early(e, 1.0)[[0, -1]], -2),
    ),
    *[
        row(f"`{name}`", name)
        for name in (
            "iid",
            "sobol",
            "herding",
            "frank_wolfe",
            "p_greedy",
            "rpcholesky",
            "fp_greedy",
            "omp",
            "sbq",
        )
    ],
    row("`block_sbq`", "block_sbq_5"),
    row("`sbq(..., refine=5)`", "refined", "refinement"),
    row("`joint`", "joint", "refinement"),
    Sentence(
        "docs/designs.md",
        "in the paper's problem it falls as n^-{:.2f}",
        lambda e: [e.rate("herding")["rate"].sel(model="power_law").item()],
    ),
    Sentence("docs/designs.md", "[exp(-c n^{:.2f})]", lambda e: [e.rate("sbq")["exponent"].item()]),
    Sentence(
        "docs/weights.md",
        "400 points of SBQ have MMD {:.4f} with `bq` weights and {:.4f} with `nonnegative` weights",
        lambda e: [of_rule(name)(e)[1] for name in ("sbq", "sbq_nonnegative")],
    ),
    Sentence(
        "docs/weights.md",
        "For 100 independent draws, `bq` weights reduce the MMD from {:.3f} to {:.3f}",
        lambda e: [of_rule(name)(e)[0] for name in ("iid", "iid_bq")],
    ),
    Sentence(
        "docs/weights.md",
        "It is {:.2f} for 100 points of SBQ in the paper's problem",
        lambda e: [weight_sum(e, "sbq").mean()],
    ),
    Sentence(
        "docs/targets.md",
        "with M = 10,000 this floor is {:.3f}, while 400 points of SBQ for the mixture itself "
        "reach {:.4f}",
        lambda e: [
            np.sqrt((e.embedding.kernel.height(2) - e.embedding.prior_variance) / e.size),
            np.exp(np.log(e.curve("mmd", "sbq")[:, 399]).mean()),
        ],
    ),
    Sentence(
        "docs/kernels.md",
        "length-scale 0.5 allows more than 900 points, length-scale 1 about {:.0f} and "
        "length-scale 2 about {:.0f}",
        lambda e: [np.round(np.median(ends(e, 1.0)), -1), round(alone(e, 2.0, 250), -1)],
    ),
    Sentence(
        "docs/errata.md",
        "the sum is {:.3f} on the points of herding and {:.3f} on the points of SBQ",
        lambda e: [weight_sum(e, name).mean() for name in ("herding_bq", "sbq")],
    ),
    Sentence(
        "docs/errata.md",
        "with SBQ it is {:.3f} at N = 1, {:.3f} at 10 and {:.3f} at 400",
        lambda e: e.curve("weight_sum", "sbq")[:, [0, 9, 399]].mean(axis=0),
    ),
    Sentence(
        "docs/errata.md",
        "At its first N it is {:.1f} times lower than ours, that of herding {:.1f} times",
        first_errors,
    ),
    Sentence(
        "docs/errata.md",
        "the sum of 100 BQ weights on herding's points is {:.3f} [{:.3f}, {:.3f}]",
        lambda e: mean_interval(weight_sum(e, "herding_bq")),
    ),
    Sentence(
        "docs/errata.md",
        "the exponent of SBQ's rate is {:.3f} [{:.3f}, {:.3f}]",
        lambda e: [e.rate("sbq")[f"exponent{end}"].item() for end in ("", "_low", "_high")],
    ),
)


def stands(said, page):
    """Whether a page has a sentence, or a row of a table, whatever its line breaks."""
    lines = page.replace("\n|", "\0|")  # a row ends where the next one starts
    pattern = re.escape(said).replace(re.escape(" ... "), r" [^\0]* ")
    return re.search(pattern, " ".join(lines.split())) is not None


def gathered(folder):
    """The evidence of a folder of results."""
    at = Layout(Path(folder))
    names = ("alternatives", "refinement")
    studies = {name: open_dataset(at.study(name)) for name in names if at.study(name).exists()}
    return Evidence(open_results(folder), open_dataset(at.rates), studies)


def main(folder="results/paper"):
    """Print each sentence as the results have it, and whether its page says the same."""
    evidence, wrong = gathered(folder), 0
    for sentence in SENTENCES:
        try:
            said = sentence.text.format(*sentence.numbers(evidence))
        except MissingError as lack:
            print(f"cannot be checked: {sentence.page}: {sentence.text} ({lack})")
            continue
        there = stands(said, (ROOT / sentence.page).read_text(encoding="utf-8"))
        wrong += not there
        print(f"{'as in' if there else 'NOT in'} {sentence.page}: {said}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
