"""Write the results of papers into these pages. Run: python docs/paper.py [results/paper ...]

`make paper` and `make hayakawa` make the results; without folders, those of both are written. This
writes the tables of docs/claims.md and docs/claims_hayakawa.md, and the figures of docs/paper.md
with few colours, which makes them small.
"""

import re
import sys
from pathlib import Path

from PIL import Image

from bqlib.claims import read
from bqlib.claims.evidence import CORRECTED, FAILS, HOLDS, UNKNOWN
from bqlib.results.layout import Layout

HERE = Path(__file__).parent
# Name of the folder of results: its tables and its figures.
PAGES = {
    "paper": (
        "claims.md",
        ("mmd", "weight_sum", "within_model", "error_bound", "out_of_model"),
    ),
    "hayakawa": ("claims_hayakawa.md", ("mmd",)),
}
COLOURS = 128
ORDER = (FAILS, CORRECTED, HOLDS, UNKNOWN)  # the exceptions first: readers look for them


def in_markdown(text):
    """A text without markup, so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_|<>\[\]$])", r"\\\1", text)


def first_cell(claim, where):
    """What stands in the first column for a claim and its place in the paper."""
    return in_markdown(f"{claim} ({where})")


def tables(claims):
    """A table for each verdict."""
    parts = []
    for verdict in ORDER:
        rows = [
            f"| {first_cell(c.claim, c.where)} | {in_markdown(c.measured)} | {in_markdown(c.why)} |"
            for c in claims
            if c.verdict == verdict
        ]
        if rows:
            title = f"### {verdict.capitalize()}: {len(rows)} of {len(claims)}"
            parts.append(
                "\n".join([title, "", "| claim | measured | why |", "|---|---|---|", *rows])
            )
    return "\n\n".join(parts) + "\n"


def main(*folders):
    for folder in map(Path, folders or (f"results/{name}" for name in PAGES)):
        at = Layout(folder)
        page, figures = PAGES[folder.name]
        claims, _, _ = read(at.claims.read_text(encoding="utf-8"))
        (HERE / page).write_text(tables(claims), encoding="utf-8")
        for name in figures:
            with Image.open(at.figure(name, "png")) as image:
                small = image.convert("RGB").quantize(COLOURS)
            small.save(HERE / "images" / f"{folder.name}_{name}.png", optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
