"""The report: one HTML file with everything in it, readable without a network."""

import base64
from html import escape

from bqlib.claims.evidence import CORRECTED, FAILS, HOLDS, UNKNOWN, VERDICTS

# Said in words beside each, so that the colour is not all there is.
MARKS = {HOLDS: "✓", CORRECTED: "±", FAILS: "✗", UNKNOWN: "?"}
COLOURS = {HOLDS: "#00734c", CORRECTED: "#8a5a00", FAILS: "#a33a00", UNKNOWN: "#555555"}
# The paper's own number of a figure, and headings of Table 1.
NUMBERS = {
    "samples": 1,
    "bq_illustration": 2,
    "weight_histogram": 3,
    "weight_sum": 4,
    "mmd": 5,
    "within_model": 6,
    "error_bound": 7,
    "out_of_model": 8,
}
HEADINGS = {
    "cost": "cost, one pool of M",
    "time_n": "CPU time as N to the power",
    "time_m": "and as M to the power",
    "rate": "MMD as n to the power -a, n from 20",
}
MET = {True: "✓ met", False: "✗ not met", None: "? not tested"}

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; max-width: 1100px;
       margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.6em; } h2 { font-size: 1.25em; margin-top: 2em; }
table { border-collapse: collapse; width: 100%; font-size: 0.9em; }
th, td { text-align: left; vertical-align: top; padding: 0.35em 0.6em;
         border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #888; }
td.verdict { white-space: nowrap; font-weight: 600; }
div.wide { overflow-x: auto; }
figure { margin: 1.5em 0; } figure img { max-width: 100%; height: auto; }
figcaption { color: #444; font-size: 0.9em; }
"""


def report(title, about, figures, rates, claims=(), expectations=(), table=()):
    """The report of an experiment.

    Parameters
    ----------
    title : str
    about : dict
        What to say of the run, such as versions: name to value.
    figures : list of (str, str, bytes)
        Name, caption and SVG of each. With claims, those of the paper come first, in its order.
    rates, table : sequence of dict
        Rows of the table of rates and of Table 1, the same keys in each.
    claims : sequence of Claim
    expectations : sequence of Expectation

    Returns
    -------
    str
        HTML.
    """
    parts = [f"<h1>{escape(title)}</h1>"]
    if claims:
        parts += ["<h2>The claims of the paper</h2>", _counts(claims), _claims(claims)]
        parts += ["<h2>What a faithful reproduction must show</h2>", _expectations(expectations)]
    if table:
        parts += ["<h2>Table 1, measured and extended</h2>", _rows(table)]
    if rates:
        parts += ["<h2>Rates</h2>", _rows(rates)]
    numbers = NUMBERS if claims else {}
    figures = sorted(figures, key=lambda figure: numbers.get(figure[0], len(NUMBERS) + 1))
    parts += ["<h2>Figures</h2>", *(_figure(*figure, numbers) for figure in figures)]
    parts += ["<h2>This run</h2>", _rows([{"": name, " ": value} for name, value in about.items()])]
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n"
        "</body>\n</html>\n"
    )


def _counts(claims):
    counts = [f"{sum(claim.verdict == v for claim in claims)} {v}" for v in VERDICTS]
    return f"<p>{len(claims)} claims: {', '.join(counts)}.</p>"


def _claims(claims):
    head = "<tr><th>verdict</th><th>claim</th><th>measured</th><th>why</th></tr>"
    rows = [
        f'<tr><td class="verdict" style="color: {COLOURS[claim.verdict]}">'
        f"{MARKS[claim.verdict]} {claim.verdict}</td>"
        f"<td>{escape(claim.claim)} <i>({escape(claim.where)})</i></td>"
        f"<td>{escape(claim.measured)}</td><td>{escape(claim.why)}</td></tr>"
        for claim in claims
    ]
    return "\n".join(["<table>", head, *rows, "</table>"])


def _expectations(expectations):
    return _rows(
        [
            {
                "": MET[expectation.met],
                "expected": expectation.expected,
                "found": expectation.measured,
            }
            for expectation in expectations
        ]
    )


def _rows(rows):
    head = "".join(
        f"<th>{escape(HEADINGS.get(name, name.replace('_', ' ')))}</th>" for name in rows[0]
    )
    lines = [
        "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row.values()) + "</tr>"
        for row in rows
    ]
    return "\n".join(['<div class="wide"><table>', f"<tr>{head}</tr>", *lines, "</table></div>"])


def _figure(name, caption, svg, numbers):
    if name in numbers:
        caption = f"{caption} Figure {numbers[name]} of the paper."
    data = base64.b64encode(svg).decode()
    return (
        f'<figure id="{escape(name)}"><img alt="{escape(caption)}" '
        f'src="data:image/svg+xml;base64,{data}">\n'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
