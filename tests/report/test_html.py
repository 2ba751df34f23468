import json
import re
from html.parser import HTMLParser

import pytest
from jinja2 import UndefinedError
from written_claims import RECORDS

from bqlib.claims import as_json
from bqlib.claims.evidence import VERDICTS
from bqlib.figures.choice import FIGURES, Figure
from bqlib.report import STYLE, TEMPLATES
from bqlib.report import html as module
from bqlib.report.html import MARKS, Picture, report, write_report

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
FIGURE = Picture(Figure("mmd", ("curves",), "MMD <against> n.", 5), "svg+xml", SVG, 648)
ROWS = [{"algorithm": "sbq", "rate": "1 & 2"}]
JUDGED = json.loads(as_json(*RECORDS, ROWS))
ABOUT = {
    "advice": [],
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
    """The tags and the text of a page; tags that are not closed are refused."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.text = [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

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
    style = STYLE.read_text(encoding="utf-8")
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
    figures = [
        Picture(Figure(name, (), f"{name}.", number), "png", b"", 1)
        for name, number in (("slopes", None), ("mmd", 5), ("refinement", None), ("samples", 1))
    ]
    text = report(ABOUT, figures, JUDGED)
    order = ["samples", "mmd", "slopes", "refinement"]
    assert re.findall(r'<h3 id="(\w+)"', text) == order
    assert re.findall(r'<li><a href="#(\w+)">', text.partition("#figures")[2])[:4] == order
    assert "Figure 1 of the paper. samples. File: figures/samples.svg" in text
    assert "Figure None" not in text
    text = report(ABOUT, figures)
    assert re.findall(r'<h3 id="(\w+)"', text) == ["slopes", "mmd", "refinement", "samples"]
    assert "of the paper" not in text


@pytest.fixture
def results(monkeypatch, tmp_path):
    """A folder of results with two figures, the smaller file of which differs in type."""
    monkeypatch.setattr(module, "summary", lambda path: ABOUT)
    (tmp_path / "figures").mkdir()
    for name, vector, pixels in (
        ("mmd", b'<svg width="300pt">', b"pixels" * 9),
        ("slopes", SVG, b"p"),
    ):
        (tmp_path / f"figures/{name}.svg").write_bytes(vector)
        (tmp_path / f"figures/{name}.png").write_bytes(pixels)
    return tmp_path


def test_the_file_has_the_smaller_image_of_each_figure_with_its_caption(results):
    write_report(results, ["slopes", "mmd"])
    text = (results / "report.html").read_text(encoding="utf-8")
    slopes, mmd = Page(text).all("img")
    assert slopes["src"].startswith("data:image/png;") and slopes["width"] == "864"
    assert mmd["src"].startswith("data:image/svg+xml;") and mmd["width"] == "400"
    assert slopes["alt"] == FIGURES["slopes"].caption
    assert "Claims" not in text


def test_the_file_has_the_claims_if_they_are_judged(results):
    (results / "claims.json").write_text(json.dumps(JUDGED), encoding="utf-8")
    write_report(results, ["mmd"])
    assert "Claims of the paper" in (results / "report.html").read_text(encoding="utf-8")


# What would break out of text, of an attribute, and of a template.
HOSTILE = """<script>alert("x")</script> " onclick='x' & &amp; {{ 7 * 7 }} {% endif %} {# x #}"""


def test_hostile_words_are_shown_as_they_are_written():
    places = (
        *("title", "results", "label", "column", "cell", "reason", "verdict", "option", "version"),
        *("claim", "where", "rule", "measured", "why", "expected", "found", "caption"),
    )
    said = {place: f"{place} {HOSTILE}" for place in places}
    rows = [{"algorithm": said["label"], said["column"]: said["cell"]}]
    about = ABOUT | {
        "title": said["title"],
        "results": said["results"],
        "labels": {said["column"]: [said["label"]]},
        "trials": {"all": 8, "ok": 5, "failed": 2, "missing": 1, "ended": 1},
        "failed": [{"algorithm": said["label"], "reason": said["reason"]}],
        "verdicts": {said["verdict"]: 1},
        "config": {said["option"]: said["option"]},
        "versions": {"bqlib_version": said["version"]},
    }
    about |= dict.fromkeys(("ended", "mmd", "rates", "seconds", "jobs"), rows)
    judged = JUDGED | {
        "table_1": rows,
        "verdicts": {said["verdict"]: 1},
        "claims": [
            {"verdict": "holds"}
            | {key: said[key] for key in ("claim", "where", "rule", "measured", "why")}
        ],
        "expectations": [{"expected": said["expected"], "measured": said["found"], "met": None}],
    }
    figure = Picture(Figure("mmd", (), said["caption"], 5), "png", b"", 1)

    page = Page(report(about, [figure], judged))
    tame = Page(report(ABOUT | {"trials": about["trials"]}, [FIGURE], JUDGED))
    assert {tag for tag, _ in page.seen} <= {tag for tag, _ in tame.seen}
    known = {name for _, attributes in tame.seen for name in attributes}
    assert {name for _, attributes in page.seen for name in attributes} <= known
    text = page.text.replace('\\"', '"')  # in the JSON of the configuration
    values = [value for _, attributes in page.seen for value in attributes.values()]
    assert [place for place, words in said.items() if words.lower() not in text.lower()] == []
    assert said["caption"] in values
    assert not [x for x in (text, *values) if "&lt;" in x or "&#" in x]  # escaped twice


def test_nothing_but_the_style_is_left_unescaped():
    files = sorted(TEMPLATES.iterdir())
    safe = [line for f in files for line in f.read_text("utf-8").splitlines() if "safe" in line]
    assert safe == ["{{ style | safe }}</style>"]
    assert not any("autoescape" in file.read_text("utf-8") for file in files)


def test_markup_is_in_the_templates_alone():
    for file in STYLE.parent.glob("*.py"):
        assert not re.search(r"</|<[a-z]+[ >]|&[a-z]+;", file.read_text(encoding="utf-8")), file


def test_only_the_page_loads_jinja():
    files = STYLE.parent.parent.rglob("*.py")
    found = [file for file in files if "jinja2" in file.read_text(encoding="utf-8")]
    assert found == [STYLE.parent / "html.py"]


def test_what_a_template_lacks_is_an_error():
    with pytest.raises(UndefinedError, match="seeds"):
        report({name: value for name, value in ABOUT.items() if name != "seeds"}, [FIGURE])


def test_failed_trials_are_shown_with_their_reasons():
    failed = [{"algorithm": "sbq", "trials": 2, "seeds": "0-1", "reason": "ValueError: <no>"}]
    trials = {"all": 8, "ok": 5, "failed": 2, "missing": 1, "ended": 0}
    advice = ["first do <this>", "then that"]
    about = ABOUT | {"failed": failed, "trials": trials, "advice": advice}
    text = report(about, [FIGURE])
    for said in (
        "2 of 8 trials failed",
        "ValueError: &lt;no&gt;",
        "first do &lt;this&gt;.",
        "then that.",
    ):
        assert said in text
    assert '5 of 8 trials ran, <a href="#failed">2 failed</a>, 1 missing' in text
    assert "None of 8 trials failed" in full()


def test_a_sweep_of_its_own_has_a_report_without_claims():
    text = report(ABOUT | {"rates": []}, [FIGURE])
    Page(text)
    assert "laims" not in text and "rates" not in text.lower().partition("<body>")[2]
    assert "Figures" in text


def test_headings_of_numbers_keep_the_case_of_their_symbol():
    heads = re.findall(r'role="columnheader">([^<]*)<', full())
    assert "n = 50" in heads and "Algorithm" in heads and "N = 50" not in heads


def test_columns_with_terse_names_have_headings_in_words():
    rows = [{"algorithm": "sbq", "time_n": "2", "megabytes": "1", "mmd_400": "0.1"}]
    text = report(ABOUT, [FIGURE], JUDGED | {"table_1": rows})
    table = text.partition('<h2 id="table-1">')[2].partition("</thead>")[0]
    heads = re.findall(r'role="columnheader">([^<]*)<', table)
    assert heads == ["Algorithm", "CPU time: power of N", "Memory (MB)", "MMD at n = 400"]
