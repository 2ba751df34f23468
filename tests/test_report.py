import json
import re
from html.parser import HTMLParser
from pathlib import Path

from written_claims import RECORDS

from bqlib.claims import as_json
from bqlib.claims.evidence import VERDICTS
from bqlib.report import MARKS, caption, report

FIGURES = Path(__file__).parent.parent / "bqlib" / "figures"
FIGURE = ("mmd", "MMD <against> n", "svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg"/>', 648)
ROWS = [{"algorithm": "sbq", "rate": "1 & 2"}]
JUDGED = json.loads(as_json(*RECORDS, ROWS))
ABOUT = {
    "title": "A <title>",
    "results": "results/mine",
    "labels": {"target": ["mixture"], "lengthscale": [0.5, 1.0], "algorithm": ["iid", "sbq"]},
    "n": 50,
    "seeds": 2,
    "candidates": 1000,
    "trials": {"all": 8, "ok": 8, "failed": 0, "missing": 0, "ended": 0},
    "failed": [],
    "ended": [],
    "mmd": [{"algorithm": "sbq", "n = 50": "0.01"}],
    "rates": ROWS,
    "verdicts": {},
    "seconds": [{"algorithm": "sbq", "trials": 2, "median, s": "0.1"}],
    "jobs": [],
    "versions": {"bqlib_version": "1"},
    "config": {"n": 50},
}


class Page(HTMLParser):
    """The tags of a page; those that are not closed are refused."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag):
        return [attributes for name, attributes in self.seen if name == tag]


def full():
    return report(ABOUT, [FIGURE], JUDGED)


def test_a_report_is_one_file_that_needs_no_network():
    text = full()
    page = Page(text)
    addresses = [a.get("src", a.get("href", "#")) for _, a in page.seen]
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert not re.findall(r"<script|<link|@import|url\(", text)


def test_links_lead_to_what_is_there_and_names_are_given_once():
    page = Page(full())
    names = [attributes["id"] for _, attributes in page.seen if "id" in attributes]
    assert len(names) == len(set(names))
    linked = {link["href"].removeprefix("#") for link in page.all("a")}
    assert linked <= set(names)
    assert set(names) - linked == set()  # the contents leave nothing out


def test_screen_readers_and_keyboards_find_their_way():
    page = Page(full())
    assert page.all("html")[0]["lang"] == "en" and page.all("a")[0]["class"] == "skip"
    for landmark in ("header", "nav", "main", "footer"):
        assert len(page.all(landmark)) == 1
    assert len(page.all("h1")) == 1
    assert all(heading["scope"] in ("col", "row") for heading in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table")) > 4
    assert all(image["alt"] for image in page.all("img"))
    scrolling = [a for a in page.all("div") if a.get("class") == "scroll"]
    assert all(
        a["tabindex"] == "0" and a["role"] == "region" and a["aria-label"] for a in scrolling
    )


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_colours_have_the_contrast_of_wcag_aa():
    style = (FIGURES.parent / "report.css").read_text(encoding="utf-8")
    schemes = [dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in style.split("@media")[:2]]
    for scheme in schemes:
        paper = luminance(scheme["paper"])
        for name in ("ink", "quiet", "link", "holds", "corrected", "fails"):
            light, dark = sorted((paper, luminance(scheme[name])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, name


def test_verdicts_are_said_in_words():
    text = re.sub(r"<[^>]*>", "", full())
    assert set(MARKS) == set(VERDICTS)
    for said in (
        "✓ holds",
        "? cannot be checked",
        "2 claims; holds: 1, holds with correction: 0",
        "? not tested",
    ):
        assert said in text


def test_figures_of_the_paper_come_first_in_its_order():
    figures = [(name, f"{name}.", "png", b"", 1) for name in ("slopes", "mmd", "samples")]
    text = report(ABOUT, figures, JUDGED)
    assert re.findall(r'<h3 id="(\w+)"', text) == ["samples", "mmd", "slopes"]
    assert "samples. Figure 1 of the paper." in text
    assert re.findall(r'<h3 id="(\w+)"', report(ABOUT, figures)) == ["slopes", "mmd", "samples"]


def test_every_figure_has_a_caption():
    for file in FIGURES.glob("*.py"):
        if f"\ndef {file.stem}(" in file.read_text(encoding="utf-8"):
            assert caption(file.stem).endswith(".")


def test_what_is_written_is_escaped():
    text = full()
    assert "A &lt;title&gt;" in text and "1 &amp; 2" in text
    assert 'alt="MMD &lt;against&gt; n"' in text


def test_failed_trials_are_told_with_their_reasons():
    failed = [{"algorithm": "sbq", "trials": 2, "seeds": "0-1", "reason": "ValueError: <no>"}]
    trials = {"all": 8, "ok": 5, "failed": 2, "missing": 1, "ended": 0}
    text = report(ABOUT | {"failed": failed, "trials": trials}, [FIGURE])
    for said in ("2 of 8 trials failed", "ValueError: &lt;no&gt;", "bqlib retry results/mine"):
        assert said in text
    assert '5 of 8 trials ran, <a href="#failed">2 failed</a>, 1 are missing' in text
    assert "None of 8 trials failed" in full()


def test_a_sweep_of_its_own_has_a_report_without_claims():
    text = report(ABOUT | {"rates": []}, [FIGURE])
    Page(text)
    assert "laims" not in text and "Rates" not in text and "Figures" in text


def test_headings_of_numbers_keep_the_case_of_their_symbol():
    heads = re.findall(r'role="columnheader">([^<]*)<', full())
    assert "n = 50" in heads and "Algorithm" in heads and "N = 50" not in heads
