import re
from html.parser import HTMLParser

from test_claims import RECORDS

from bqlib.claims.evidence import VERDICTS
from bqlib.report import MARKS, report

FIGURE = ("mmd", "MMD <against> n", b'<svg xmlns="http://www.w3.org/2000/svg"></svg>')


class Tags(HTMLParser):
    """Counts tags, and refuses those that are not closed."""

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


def full():
    rows = [{"algorithm": "sbq", "rate": "1 & 2"}]
    return report("A <title>", {"version": "1"}, [FIGURE], rows, *RECORDS, rows)


def test_a_report_is_one_file_that_needs_no_network():
    text = full()
    tags = Tags(text)
    addresses = [
        a
        for _, attributes in tags.seen
        for a in (attributes.get("src"), attributes.get("href"))
        if a
    ]
    assert addresses and all(address.startswith("data:") for address in addresses)
    assert not re.findall(r"<script|@import|url\(", text)


def test_verdicts_are_said_in_words():
    text = full()
    assert all(mark in MARKS.values() for mark in MARKS.values()) and set(MARKS) == set(VERDICTS)
    for said in ("✓ holds", "? cannot be checked", "2 claims: 1 holds", "? not tested"):
        assert said in text


def test_figures_of_the_paper_come_first_in_its_order():
    figures = [(name, f"{name}.", b"") for name in ("slopes", "mmd", "samples")]
    text = report("Paper", {"version": "1"}, figures, [], *RECORDS)
    assert re.findall(r'<figure id="(\w+)"', text) == ["samples", "mmd", "slopes"]
    assert "samples. Figure 1 of the paper." in text


def test_what_is_written_is_escaped():
    text = full()
    assert "A &lt;title&gt;" in text and "1 &amp; 2" in text
    assert 'alt="MMD &lt;against&gt; n Figure 5 of the paper."' in text


def test_a_sweep_of_its_own_has_a_report_without_claims():
    text = report("Mine", {"version": "1"}, [FIGURE], [])
    Tags(text)
    assert "claims" not in text and "Rates" not in text and "Figures" in text
