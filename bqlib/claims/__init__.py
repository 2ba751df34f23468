"""Claims of papers, each with a verdict, and our own expectations of their experiments.

Each paper has a package here, whose `PAPER` is one of :data:`PAPERS`.
"""

import json
import textwrap
from dataclasses import asdict

from bqlib.claims import hayakawa2022, huszar2012
from bqlib.claims.evidence import (
    UNKNOWN,
    VERDICTS,
    Claim,
    Evidence,
    Expectation,
    MissingError,
)
from bqlib.claims.paper import Paper

__all__ = [
    "PAPERS",
    "VERDICTS",
    "Claim",
    "Evidence",
    "Expectation",
    "MissingError",
    "Paper",
    "as_json",
    "as_text",
    "evaluate",
    "read",
    "table_1",
]

PAPERS = {paper.key: paper for paper in (huszar2012.PAPER, hayakawa2022.PAPER)}
FIRST = huszar2012.PAPER.key  # of which claims are that name no paper: older versions wrote them


def evaluate(evidence, papers):
    """Judge all claims of some papers, and all our expectations of their experiments.

    Parameters
    ----------
    evidence : Evidence
    papers : sequence of str
        Keys of :data:`PAPERS`: those that the sweep is of.

    Returns
    -------
    claims : list of Claim
        The verdict is "cannot be checked" if the results lack what is needed.
    expectations : list of Expectation
    """
    claims, expected = [], []
    for paper in papers:
        for check in PAPERS[paper].claims:
            try:
                verdict, measured, why = check.judge(evidence)
            except MissingError as lack:
                verdict, measured, why = UNKNOWN, "-", f"{lack}"
            about = (check.name, check.text, check.where, check.rule)
            claims.append(Claim(*about, measured, verdict, why, paper))
        for check in PAPERS[paper].expectations:
            try:
                met, measured = check.judge(evidence)
            except MissingError as lack:
                met, measured = None, f"{lack}"
            met = None if met is None else bool(met)
            expected.append(Expectation(check.name, check.text, measured, met, paper))
    return claims, expected


def table_1(evidence, papers):
    """Rows of Table 1 of the first of some papers that has one and whose studies ran."""
    tables = (PAPERS[paper].table_1(evidence) for paper in papers)
    return next((rows for rows in tables if rows), [])


def as_json(claims, expected, table):
    """All records as one JSON text, which :func:`read` reads."""
    everything = {
        "papers": {key: PAPERS[key].citation for key in _keys(claims, expected)},
        "verdicts": _counted(claims),
        "claims": [asdict(claim) for claim in claims],
        "expectations": [asdict(expectation) for expectation in expected],
        "table_1": table,
    }
    return json.dumps(everything, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _keys(*records):
    """Keys of the papers of some records, in their order."""
    return list(dict.fromkeys(record.paper for kind in records for record in kind))


def _counted(claims):
    """How many claims have each verdict."""
    return {verdict: sum(c.verdict == verdict for c in claims) for verdict in VERDICTS}


def read(text):
    """(claims, expectations, rows of Table 1) from the text of :func:`as_json`.

    Records that older versions wrote have no rule and no paper: there was one.
    """
    everything = json.loads(text)
    return (
        [Claim(**({"rule": "", "paper": FIRST} | claim)) for claim in everything["claims"]],
        [Expectation(**({"paper": FIRST} | found)) for found in everything["expectations"]],
        everything["table_1"],
    )


def as_text(claims, expected, width=100):
    """Claims and expectations as text for a terminal, at most `width` characters wide."""
    lines, paper = [], None
    for claim in claims:
        if claim.paper != paper:
            paper = claim.paper
            lines += [f"Claims of {PAPERS[paper].citation}:", ""]
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
