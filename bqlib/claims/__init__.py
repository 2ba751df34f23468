"""The paper's claims, each with a verdict, and our own expectations."""

import json
import textwrap
from dataclasses import asdict

from bqlib.claims import expectations, experiments, studied, theory
from bqlib.claims.evidence import (
    UNKNOWN,
    VERDICTS,
    Claim,
    Evidence,
    Expectation,
    MissingError,
)
from bqlib.claims.table import table_1

__all__ = [
    "VERDICTS",
    "Claim",
    "Evidence",
    "Expectation",
    "MissingError",
    "as_json",
    "as_text",
    "evaluate",
    "read",
    "table_1",
]

CHECKS = (*theory.CHECKS, *experiments.CHECKS, *studied.CHECKS)  # of the paper's claims


def evaluate(evidence):
    """Judge all claims of the paper, and all our expectations.

    Parameters
    ----------
    evidence : Evidence

    Returns
    -------
    claims : list of Claim
        The verdict is "cannot be checked" if the results lack what is needed.
    expectations : list of Expectation
    """
    claims = []
    for check in CHECKS:
        try:
            verdict, measured, why = check.judge(evidence)
        except MissingError as lack:
            verdict, measured, why = UNKNOWN, "-", f"{lack}"
        claims.append(
            Claim(check.name, check.text, check.where, check.rule, measured, verdict, why)
        )
    expected = []
    for check in expectations.CHECKS:
        try:
            met, measured = check.judge(evidence)
        except MissingError as lack:
            met, measured = None, f"{lack}"
        expected.append(
            Expectation(check.name, check.text, measured, None if met is None else bool(met))
        )
    return claims, expected


def as_json(claims, expected, table):
    """All records as one JSON text, which :func:`read` reads."""
    everything = {
        "verdicts": _counted(claims),
        "claims": [asdict(claim) for claim in claims],
        "expectations": [asdict(expectation) for expectation in expected],
        "table_1": table,
    }
    return json.dumps(everything, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _counted(claims):
    """How many claims have each verdict."""
    return {verdict: sum(c.verdict == verdict for c in claims) for verdict in VERDICTS}


def read(text):
    """(claims, expectations, rows of Table 1) from the text of :func:`as_json`.

    Claims that older versions wrote have no rule.
    """
    everything = json.loads(text)
    return (
        [Claim(**({"rule": ""} | claim)) for claim in everything["claims"]],
        [Expectation(**expectation) for expectation in everything["expectations"]],
        everything["table_1"],
    )


def as_text(claims, expected, width=100):
    """Claims and expectations as text for a terminal, at most `width` characters wide."""
    lines = []
    for claim in claims:
        lines.append(_row(claim.verdict.upper(), f"{claim.claim} ({claim.where})", 24, width))
        parts = {"rule": claim.rule, "measured": claim.measured.strip("-"), "why": claim.why}
        lines += [_row("", f"{name}: {part}", 24, width) for name, part in parts.items() if part]
        lines.append("")
    counts = [f"{verdict}: {count}" for verdict, count in _counted(claims).items()]
    lines.append(_row("", f"{len(claims)} claims; {', '.join(counts)}", 0, width))
    lines += ["", "Reproduction checks:", ""]
    words = {True: "met", False: "NOT MET", None: "not tested"}
    lines += [_row(words[e.met], f"{e.expected}: {e.measured}", 12, width) for e in expected]
    return "\n".join(lines) + "\n"


def _row(first, text, indent, width):
    """`first`, and `text` in a column of its own that starts at `indent`."""
    return textwrap.fill(
        text, width, initial_indent=f"{first:{indent}}", subsequent_indent=" " * indent
    )
