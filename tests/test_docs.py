"""Every Python block of the README and of docs/ runs, in order, in a folder of its own.

A block that runs only on a cluster or by hand has the comment `<!-- not run: reason -->` above it.
"""

import re
from pathlib import Path

import pytest
from synthetic_sweep import power_curves, sweep

from bqlib import store

ROOT = Path(__file__).parent.parent
PAPER_RATES = {"iid": 0.5, "herding": 0.92, "sbq": 1.5}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(<!-- not run: .+? -->\s*)?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def results(path):
    """What a finished run leaves, in place of what is not there."""
    curves = {name: power_curves(rate) for name, rate in PAPER_RATES.items()}
    return sweep(curves, lengthscales=(0.25, 0.5, 1.0))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys):
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store, "open_results", results)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {}
    for skipped, code in BLOCK.findall(text):
        if not skipped:
            line = text[: text.index(code)].count("\n")
            exec(compile("\n" * line + code, page, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
