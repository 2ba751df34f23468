import base64
import html
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
import yaml
from jinja2 import UndefinedError
from PIL import Image
from project import PROJECT
from written_claims import RECORDS

from bqlib.claims import PAPERS, as_json
from bqlib.claims.evidence import VERDICTS
from bqlib.figures.choice import FIGURES, Figure
from bqlib.report import SCRIPT, STYLE, TEMPLATES
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
    "candidates": [1000],
    "trials": {"all": 8, "ok": 8, "failed": 0, "missing": 0, "inapplicable": 0, "ended": 0},
    "headline": "sbq has the smallest MMD",
    "profile": [],
    "best": [{"lengthscale": "0.5 to 1", "best rule": "sbq", "lead over next": "1.2 [1.1, 1.3]"}],
    "hours": 0.5,
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
    assert all(address.startswith(("data:", "#", "figures/")) for address in addresses)
    assert not re.findall(r"<link|@import|url\(|fetch|import\(|XMLHttp", text)
    assert page.all("script") == [{}]


def test_links_lead_to_what_is_there_and_names_are_given_once():
    page = Page(full())
    names = [attributes["id"] for _, attributes in page.seen if "id" in attributes]
    assert len(names) == len(set(names))
    linked = {link["href"][1:] for link in page.all("a") if link["href"].startswith("#")}
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
        "Of 2 claims of the paper, 1 holds and 1 cannot be checked.",
        "? not tested",
    ):
        assert said in text


def test_figures_of_the_paper_come_first_in_its_order():
    figures = [
        Picture(Figure(name, (), f"{name}.", number), "png", b"", 1)
        for name, number in (("slopes", None), ("mmd", 5), ("refinement", None), ("samples", 1))
    ]
    text = report(ABOUT, figures, JUDGED)
    order = ["samples", "slopes", "refinement"]
    assert re.findall(r'<figure id="(\w+)"', text) == ["mmd", *order]  # its main figure first
    contents = re.findall(r'<li><a href="#(\w+)-heading">', text.partition("#figures")[2])
    assert contents == order
    assert "Figure 1 of the paper. samples." in text
    assert '<a href="figures/samples.svg">figures/samples.svg</a>' in text
    assert "Figure None" not in text
    text = report(ABOUT, figures)
    order = ["slopes", "mmd", "refinement", "samples"]
    assert re.findall(r'<figure id="(\w+)"', text) == order
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
        *("headline", "claim", "where", "rule", "measured", "why", "expected", "found", "caption"),
    )
    said = {place: f"{place} {HOSTILE}" for place in places}
    rows = [{"algorithm": said["label"], said["column"]: said["cell"]}]
    about = ABOUT | {
        "title": said["title"],
        "headline": said["headline"],
        "results": said["results"],
        "labels": {said["column"]: [said["label"]]},
        "trials": {"all": 8, "ok": 5, "failed": 2, "missing": 1, "inapplicable": 0, "ended": 1},
        "failed": [{"algorithm": said["label"], "reason": said["reason"]}],
        "verdicts": {said["verdict"]: 1},
        "config": {said["option"]: said["option"]},
        "versions": {"bqlib_version": said["version"]},
    }
    about |= dict.fromkeys(("best", "profile", "ended", "mmd", "rates", "seconds", "jobs"), rows)
    judged = JUDGED | {
        "table_1": rows,
        "verdicts": {said["verdict"]: 1},
        "claims": [
            {"verdict": "does not hold"}
            | {key: said[key] for key in ("claim", "where", "rule", "measured", "why")}
        ],
        "expectations": [{"expected": said["expected"], "measured": said["found"], "met": None}],
    }
    figure = Picture(Figure("mmd", (), said["caption"], 5), "png", b"", 1)

    page = Page(report(about, [figure], judged))
    tame = Page(report(ABOUT | {"trials": about["trials"]}, [FIGURE], judged_as(*VERDICTS)))
    assert {tag for tag, _ in page.seen} <= {tag for tag, _ in tame.seen}
    known = {name for _, attributes in tame.seen for name in attributes}
    assert {name for _, attributes in page.seen for name in attributes} <= known
    text = page.text.replace('\\"', '"')  # in the JSON of the configuration
    values = [value or "" for _, attributes in page.seen for value in attributes.values()]
    assert [place for place, words in said.items() if words.lower() not in text.lower()] == []
    assert said["caption"] in values
    assert not [x for x in (text, *values) if "&lt;" in x or "&#" in x]  # escaped twice


def test_nothing_but_the_style_and_the_script_is_left_unescaped():
    files = sorted(TEMPLATES.iterdir())
    safe = [line for f in files for line in f.read_text("utf-8").splitlines() if "safe" in line]
    pages = [f for f in files if "<html" in f.read_text("utf-8")]
    assert safe == ["{{ style | safe }}</style>", "{{ script | safe }}</script>"] * len(pages)
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
    trials = {"all": 8, "ok": 5, "failed": 2, "missing": 1, "inapplicable": 0, "ended": 0}
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
    assert heads == ["Algorithm", "MMD at n = 400", "CPU time: power of N", "Memory (MB)"]


def judged_as(*verdicts):
    claims = [
        {"name": f"c{i}", "verdict": verdict, "claim": f"claim {i} of x_m", "where": f"Figure {i}"}
        | {"rule": "rule", "measured": f"{i} [0, 9]", "why": f"why {i}", "paper": "huszar2012"}
        for i, verdict in enumerate(verdicts, 1)
    ]
    counts = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
    papers = {"huszar2012": "Huszar and Duvenaud (2012)"}
    return JUDGED | {"papers": papers, "verdicts": counts, "claims": claims}


FIVE = ("holds", "does not hold", "holds with correction", "holds", "does not hold")


def test_the_first_lines_name_the_paper_and_what_was_found():
    judged = judged_as(*FIVE)
    judged["claims"][0]["name"] = "eight_are_worth_twenty"
    text = report(ABOUT, [FIGURE], judged)
    header = re.sub(r"<[^>]*>", "", text.partition("<header>")[2].partition("</header>")[0])
    for said in (
        "Ferenc Huszár and David Duvenaud, Optimally-Weighted Herding is Bayesian Quadrature, UAI",
        "Of 5 claims of the paper, 2 hold, 1 holds with a correction and 2 do not hold.",
        "sbq has the smallest MMD",
        "claim 1 of xm: 1 [0, 9] (holds).",
    ):
        assert said in header
    places = [text.index(f">{part}<") for part in ("Which rule, where", "What does not hold")]
    assert text.index('<figure id="mmd">') in range(*places)
    assert places[1] < text.index(">Claims of the paper</h2>")


def test_claims_that_do_not_hold_come_first_and_the_rest_is_folded():
    text = report(ABOUT, [FIGURE], judged_as(*FIVE))
    claims = text.partition('<h2 id="claims">')[2].partition("</section>")[0]
    heads = re.findall(r"<details( open)?><summary>.*?</span> ([\w ]+)</span>: (\d)", claims)
    assert heads == [
        (" open", "does not hold", "2"), ("", "holds with correction", "1"), ("", "holds", "2"),
    ]  # fmt: skip
    assert re.findall(r'id="claim-(\d)"', claims) == ["2", "5", "3", "1", "4"]
    failing = text.partition("What does not hold")[2].partition("</ul>")[0]
    assert re.findall(r'href="#claim-(\d)"', failing) == ["2", "5"]


def test_claims_without_a_failure_list_none():
    assert "What does not hold" not in report(ABOUT, [FIGURE], judged_as("holds"))


def test_claims_name_their_erratum_as_its_page_does():
    page = (PROJECT / "docs" / "errata.md").read_text(encoding="utf-8")
    for paper in PAPERS.values():
        names = {check.name for check in paper.claims}
        assert {*paper.findings, *paper.errata} <= names
        for section in paper.errata.values():
            assert f"\n## {section}\n" in page
    judged = judged_as("does not hold")
    judged["claims"][0]["name"] = "drawn_bound"
    assert "(Errata, 8. Figure 7: the bound)" in report(ABOUT, [FIGURE], judged)


def test_table_1_is_split_into_what_was_measured_and_what_was_known():
    row = {"algorithm": "sbq", "weights": "BQ", "cost": "M N^2", "guarantee": "g", "reference": "r"}
    row |= {"time_n": "1.4", "seconds": "2", "rate": "1.5", "mmd_400": "0.1"}
    text = report(ABOUT, [FIGURE], JUDGED | {"table_1": [row]})
    tables = text.partition('<h2 id="table-1">')[2].partition("</section>")[0].split("</table>")
    heads = [re.findall(r'role="columnheader">([^<]*)<', table) for table in tables[:2]]
    assert heads[0] == [
        "Algorithm", "MMD at n = 400", "CPU time: power of N", "CPU time (s)", "Rate a, n ≥ 20",
    ]  # fmt: skip
    assert heads[1] == ["Algorithm", "Weights", "Cost", "Guarantee", "Reference"]
    assert "M N<sup>2</sup>" not in heads  # cells are text


def test_the_report_says_when_and_with_what_it_was_made_and_how_to_cite():
    stated = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    text = report(
        ABOUT | {"versions": {"bqlib_version": "7", "git_commit": "abc"}}, [], None, "now"
    )
    words = html.unescape(re.sub(r"<[^>]*>", "\n", text))
    for said in ("now", "abc", "30 min", f'"{stated["title"]}", version 7'):
        assert said in words


def test_long_tables_are_folded_and_short_ones_are_not():
    rows = [{"algorithm": f"rule {i}"} for i in range(31)]
    assert "31 rows" in report(ABOUT | {"mmd": rows}, [])
    assert "30 rows" not in report(ABOUT | {"mmd": rows[:30]}, [])


def test_large_figures_have_fewer_colours_and_small_ones_are_as_drawn(results):
    noise = np.random.default_rng(0).integers(0, 256, (400, 400, 3), dtype=np.uint8)
    Image.fromarray(noise).save(results / "figures/mmd.png")
    (results / "figures/mmd.svg").write_bytes(b" " * 1_000_000)
    write_report(results, ["mmd"])
    (image,) = Page((results / "report.html").read_text(encoding="utf-8")).all("img")
    kind, _, data = image["src"].partition(";base64,")
    with Image.open(io.BytesIO(base64.b64decode(data))) as small:
        assert kind == "data:image/png" and small.size == (400, 400) and small.mode == "P"


def test_figures_and_tables_make_no_page_wider_than_a_phone():
    style = STYLE.read_text(encoding="utf-8")
    assert "max-width: 100%" in style and "min-width: 36rem" not in style
    page = Page(full())
    assert {a["href"] for a in page.all("a") if a.get("class") == "larger"} == {"#mmd"}


NODE = """
const made = [];
class Node {
  constructor(text) { this.textContent = text; this.childNodes = [text]; this.attributes = {}; }
  append(...all) { this.on && this.on(all); }
  addEventListener(kind, press) { this.press = press; made.push(this); }
  setAttribute(key, value) { this.attributes[key] = value; }
  getAttribute(key) { return this.attributes[key] ?? null; }
  removeAttribute(key) { delete this.attributes[key]; }
}
const rows = CELLS.map((cells) => ({ cells: cells.map((text) => new Node(text)) }));
const heads = CELLS[0].map(() => new Node("head"));
const body = { rows, append(...all) { body.rows = all; } };
globalThis.document = {
  querySelectorAll: () => [{ tBodies: [body], tHead: { rows: [{ cells: heads }] } }],
  createElement: () => new Node(""),
};
SCRIPT
const shown = [];
for (const column of PRESSED) {
  made[column].press();
  const texts = body.rows.map((row) => row.cells[column].textContent);
  shown.push([texts, { ...heads[column].attributes }]);
}
console.log(JSON.stringify(shown));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_heading_that_is_pressed_sorts_its_table():
    cells = [["sbq", "10 [9, 11]"], ["omp", "-"], ["iid", "2.5 %"], ["halton", "-1e-3"]]
    code = NODE.replace("CELLS", json.dumps(cells)).replace("PRESSED", "[1, 1, 0]")
    code = code.replace("SCRIPT", SCRIPT.read_text(encoding="utf-8"))
    ran = subprocess.run(["node", "-e", code], check=True, capture_output=True, text=True)
    rising, falling, names = json.loads(ran.stdout)
    assert rising == [["-1e-3", "2.5 %", "10 [9, 11]", "-"], {"aria-sort": "ascending"}]
    assert falling == [["10 [9, 11]", "2.5 %", "-1e-3", "-"], {"aria-sort": "descending"}]
    assert names[0] == ["halton", "iid", "omp", "sbq"]
