"""The page of an archive: whole without a network, and safe whatever a submission says."""

from html.parser import HTMLParser

import numpy as np
import pytest

from bqlib.report import SCRIPT
from bqlib.report.standings import page
from bqlib.suite.about import About
from bqlib.suite.standings import Method, standings
from bqlib.sweep.problems import problems

HOSTILE = "\"><script>alert(1)</script><img src=x onerror=y>'{{ 7 * 7 }}{% x %}</style></title>"
ABOUT = About(
    method="halves", version="1.0", authors=[HOSTILE], citation=HOSTILE, licence=HOSTILE,
    code=f"javascript:alert(1){HOSTILE}", machine=HOSTILE, seconds=1.0, information=[],
    suite="bqbench-1", kind="set", weights="bq",
)  # fmt: skip


def scores(rng):
    return {
        name: {
            "seeds": 5,
            "n": problem.n if rng.random() > 0.1 else 64,
            "mmd": float(rng.random()),
            "levels": 10,
            "of_levels": 51,
        }
        for name, problem in problems().items()
    }


class Parsed(HTMLParser):
    """All tags with their attributes, and the text of the page without style and script."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.inside = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if self.inside[-1:] not in (["style"], ["script"]):
            self.text.append(data)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    ours = [Method(f"rule_{i}", "0.1.0", "sequence", "bq", scores(rng)) for i in range(29)]
    return standings([*ours, Method("halves", "1.0", "set", "bq", scores(rng), ABOUT)])


@pytest.fixture(scope="module")
def written(table):
    return page(table)


def test_all_that_a_submission_says_is_text(written):
    parsed = Parsed(written)
    tags = [tag for tag, _ in parsed.tags]
    assert tags.count("script") == tags.count("title") == 1 and tags.count("style") == 2
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attrs in parsed.tags for name in attrs)
    assert written.count(SCRIPT.read_text()) == 1
    assert sum(HOSTILE in text for text in map(str.strip, parsed.text)) == 5


def test_the_page_needs_no_network(written):
    for tag, attrs in Parsed(written).tags:
        assert not {"src", "srcset", "data", "action"} & attrs.keys(), tag
        if "href" in attrs:
            assert attrs["href"].startswith("#")


def test_every_method_and_problem_has_its_place(table, written):
    parsed = Parsed(written)
    rows = [tag for tag, _ in parsed.tags if tag == "tr"]
    assert len(rows) == 1 + 30 + 1 + 42
    text = " ".join(" ".join(parsed.text).split())
    assert all(name in text for name in problems())
    assert "30 methods on the 42 problems" in text
    assert sum(tag == "b" for tag, _ in parsed.tags) >= 42
    shades = {attrs.get("class") for tag, attrs in parsed.tags if tag == "td"}
    assert {"s1", "s2", "s3"} <= shades
    assert len(written) < 400_000


def test_an_empty_table_is_a_page():
    assert "0 methods" in page(standings([]))
