"""Every Python block of the README and of docs/ runs, in order, in a folder of its own.

A block that runs only on a cluster or by hand has the comment `<!-- not run: reason -->` above it.
A block of text directly below one of Python is what the latter prints.
The tutorial's blocks, its commands as well, run in tests/slow/test_tutorial.py.
"""

import ast
import importlib.util
import json
import re
import subprocess
import unicodedata
from pathlib import Path

import numpy as np
import paper_sweep
import pytest
import yaml
from documented import blocks
from pybtex.database import parse_file, parse_string
from synthetic_sweep import power_curves, sweep

import bqlib
import bqlib.access.accessor  # as opening real results does
from bqlib import Candidates, ExponentiatedQuadratic, GaussianMixture, schema
from bqlib.access import opening
from bqlib.claims import PAPERS, Claim
from bqlib.claims.evidence import FAILS
from bqlib.discrepancy import mmd2_of_prefixes
from bqlib.rates import power_law
from bqlib.studies.alternatives import STUDY as ALTERNATIVES
from bqlib.sweep.file import load

ROOT = Path(__file__).parent.parent
PAPER_RATES = {"iid": 0.5, "herding": 0.92, "sbq": 1.5}
TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PRINTS = re.compile(
    r"^```python\n((?:(?!^```).*\n)*)^```\n\n```text\n((?:(?!^```).*\n)*)^```$", re.MULTILINE
)
OPEN = opening.open_results
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def refuse_other_text(shown, printed):
    """Words must be those printed; numbers may differ by one in their last place."""
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", printed).split()
    for ours, found in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True):
        last = 10.0 ** -len(ours.partition(".")[2]) if "." in ours else 0.0
        assert abs(float(ours) - float(found)) <= 1.01 * last, (shown, printed)


def results(path):
    """What a finished run leaves, in place of what is not there.

    The sweeps of pools run as their page says, so that it shows what they give.
    """
    if not isinstance(path, str) and "pool_" in path[0]:
        text = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
        sweep_file = re.search(r"^name: pool_SIZE\n.*?(?=^```)", text, re.MULTILINE | re.DOTALL)[0]
        for folder in map(Path, path):
            folder.mkdir(parents=True)
            paper_sweep.run(folder, sweep_file.replace("SIZE", folder.name.removeprefix("pool_")))
        return OPEN(path)
    curves = {name: power_curves(rate) for name, rate in PAPER_RATES.items()}
    return sweep(curves, lengthscales=(0.25, 0.5, 1.0))


@pytest.mark.parametrize("page", [p for p in PAGES if p != TUTORIAL], ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(opening, "open_results", results)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names, shown = {}, dict(PRINTS.findall(page.read_text(encoding="utf-8")))
    for language, code, line in blocks(page):
        if language == "python":
            exec(compile("\n" * line + code, page, "exec"), names)
            out = capsys.readouterr().out
            if code in shown:
                refuse_other_text(shown[code], out)
            printed = re.findall(r"\d+\.\d+", out)
            for number in re.findall(r"^print\(.*\)  # ([\d.]+)$", code, re.MULTILINE):
                places = len(number.partition(".")[2])
                assert number in {f"{float(text):.{places}f}" for text in printed}


@pytest.mark.parametrize("printed", ["mean 73.56 (31 runs)", "mean 73.54 (30 runs)", "mean"])
def test_text_that_a_block_does_not_print_is_found(printed):
    refuse_other_text("mean 73.54 (31 runs)", "mean 73.55 (31 runs)")
    with pytest.raises(AssertionError):
        refuse_other_text("mean 73.54 (31 runs)", printed)


@pytest.mark.parametrize("name", ["left_out", "against_n"])
def test_figures_of_the_simulator_are_drawn_by_the_code_of_its_page(name):
    page = "".join(code for _, code, _ in blocks(ROOT / "docs" / "simulator.md"))
    code = (ROOT / "docs" / "gallery" / f"{name}.py").read_text(encoding="utf-8")
    last = re.fullmatch(r"plt\.figure\((.+)\)", code.splitlines()[-1])[1]
    assert f"{last}.savefig(" in page
    others = set(code.splitlines()[:-1]) - set(page.splitlines())
    assert others == {"import matplotlib.pyplot as plt"}


def test_every_public_name_is_in_the_reference():
    listed = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").split()
    assert {f"bqlib.{name}" for name in bqlib.__all__} <= set(listed)


def test_the_table_of_variables_is_that_of_the_schema():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `([\w, ]+)` \| .+ \| (\w*) ?\|$", page, re.MULTILINE)
    variables = schema.VARIABLES | schema.ERROR_VARIABLES
    expected = [(name, ", ".join(v.dims), v.units) for name, v in variables.items()]
    assert rows == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target
    for script in re.findall(r"`((?:benchmarks|docs|tools)/[\w/]+\.\w+)", text):
        assert (ROOT / script).exists(), script


def cited(docstring):
    """Year, and the text with it, of each source that a docstring names."""
    section = docstring.partition("References\n----------\n")[2].partition("\n\n")[0]
    for source in re.split(r"(?<=[12]\d{3})\b", section):
        if year := re.search(r"\b(19|20)\d\d$", source):
            yield year[0], source


def run_blocks(name):
    """Run the Python of a page, and return what its names hold."""
    names = {}
    for language, code, _ in blocks(ROOT / "docs" / name):
        assert language == "python"
        exec(code, names)
    return names


def test_designs_of_the_questions_end_as_the_answers_say():
    names = run_blocks("faq.md")
    assert len(names["long"].points) < 100
    assert "pivot" in names["long"].stop
    assert (len(names["rough"].points), names["rough"].stop) == (100, "")


def test_integrals_of_the_page_agree_with_many_draws(capsys):
    run_blocks("integrands.md")
    assert capsys.readouterr().out.endswith("True\nTrue\n")


def test_every_source_of_a_docstring_is_in_the_bibliography():
    entries = parse_file(ROOT / "docs" / "references.bib").entries.values()
    known = [(entry.fields["year"], entry.persons["author"][0]) for entry in entries]
    found = 0
    for path in (ROOT / "bqlib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                for year, source in cited(ast.get_docstring(node) or ""):
                    first = [" ".join(person.last_names) for y, person in known if y == year]
                    assert any(in_ascii(name) in in_ascii(source) for name in first), (path, source)
                    found += 1
    assert found > 25


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_pages_cite_through_the_bibliography(page):
    entries = parse_file(ROOT / "docs" / "references.bib").entries
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"{cite:\w+}`(.+?)`", text)) <= set(entries)
    if not page.name.startswith("claims"):  # what `bqlib claims` prints
        assert not re.findall(r"[A-Z][a-zá-ú]+,? \(?(?:19|20)\d\d\b", text)


def in_ascii(text):
    """A name as it is written without accents; TeX's come as commands."""
    text = re.sub(r"[{}\\'\"]", "", text)
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def test_the_entry_to_cite_is_that_of_the_citation_file():
    page = (ROOT / "docs" / "citing.md").read_text(encoding="utf-8")
    entry = parse_string(re.search("```bibtex\n(.*?)```", page, re.DOTALL)[1], "bibtex")
    fields = entry.entries["bqlib"].fields
    stated = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (fields["title"], fields["version"]) == (stated["title"], stated["version"])
    (author,) = entry.entries["bqlib"].persons["author"]
    assert str(author).strip("{}") == stated["authors"][0]["name"]


def test_every_figure_has_a_text_in_its_place():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"!\[\s*\]", text), page
        plots = re.findall(r"^\.\. plot:: (.*\n(?: .*\n)*)", text, re.MULTILINE)
        assert all(":alt: " in plot for plot in plots), page


def test_every_page_is_reached_from_the_index():
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = {
        name
        for tree in re.findall("```{toctree}(.*?)```", text, re.DOTALL)
        for name in tree.split()
    }
    parts = {"index", "claims", "claims_hayakawa"}  # the page itself, and parts of another page
    assert {page.stem for page in PAGES[1:]} - parts <= listed


@pytest.mark.parametrize(
    "name, paper", [("claims", "huszar2012"), ("claims_hayakawa", "hayakawa2022")]
)
def test_the_tables_of_claims_have_every_claim_of_the_code(paper_page, name, paper):
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    claims = PAPERS[paper].claims
    sections = page.split("### ")[1:]
    cells = [re.findall(r"^\| (.+?) \| ", section, re.MULTILINE)[1:] for section in sections]
    for section, rows in zip(sections, cells, strict=True):
        assert section.partition("\n")[0].endswith(f": {len(rows)} of {len(claims)}")
    expected = [paper_page.first_cell(check.text, check.where) for check in claims]
    assert sorted(cell for rows in cells for cell in rows) == sorted(expected)


def test_the_tables_of_claims_show_texts_as_they_are(paper_page):
    claim = Claim("name", "|x_1| < $2", "Figure *", "rule", "[0, 1]", FAILS, "`a`", "huszar2012")
    assert paper_page.tables([claim]).splitlines() == [
        "### Does not hold: 1 of 1",
        "",
        "| claim | measured | why |",
        "|---|---|---|",
        r"| \|x\_1\| \< \$2 (Figure \*) | \[0, 1\] | \`a\` |",
    ]


@pytest.fixture(scope="module")
def paper():
    """Target and kernel of the paper."""
    numbers = json.loads((ROOT / "config" / "targets" / "chen2010_mixture.json").read_text())
    target = GaussianMixture(*(numbers[key] for key in ("weights", "means", "covariances")))
    return target, ExponentiatedQuadratic(0.5, scale="density")


def test_the_table_of_rules_has_the_mmds_of_the_study(paper):
    page = (ROOT / "docs" / "designs.md").read_text(encoding="utf-8").partition("\n## ")[0]
    row = re.compile(r"^\| `(\w+)` \|.* \| (0\.\d+) \| 0\.\d+ \|$", re.MULTILINE)
    printed = {name: float(mmd) for name, mmd in row.findall(page)}
    assert len(printed) == 12
    del printed["joint"]  # of the study `refinement`, which takes minutes
    del printed["msip"]  # of benchmarks/paper_designs.py
    printed["block_sbq_5"] = printed.pop("block_sbq")
    printed["iid_bq"] = 0.038  # of the page on weights
    found = [ALTERNATIVES.measure(*paper, Candidates(), 100, seed) for seed in range(5)]
    means = np.exp(np.mean([np.log(study["mmd"][:, -1]) for study in found], axis=0))
    means = dict(zip(found[0]["plan"].tolist(), means, strict=True))
    rounded = {name: float(f"{means[name]:.3g}") for name in printed}
    rounded["iid_bq"] = round(means["iid_bq"], 3)
    assert rounded == printed


@pytest.mark.parametrize("name", ["iid", "herding", "sbq"])
def test_residuals_of_a_curve_are_as_correlated_as_the_page_says(paper, name):
    design = getattr(bqlib, name)(*paper, 400, rng=0, candidates=paper[0].sample(2000, rng=1))
    matrix = design.rule(design.embedding, design.points).matrix
    log_mmd = 0.5 * np.log(mmd2_of_prefixes(design.embedding, design.points, matrix)[19:])
    n = np.arange(20, 401)
    fit = power_law(n, np.exp(log_mmd)[None])
    residual = log_mmd - fit["log_constant"][0] + fit["rate"][0] * np.log(n)
    assert residual[1:] @ residual[:-1] > 0.9 * (residual @ residual)


def script(name):
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def measured():
    """The script that compares numbers of the pages with results."""
    return script("measured")


@pytest.fixture(scope="module")
def paper_page():
    """The script that writes results of the paper into the pages."""
    return script("paper")


def test_measured_numbers_are_looked_up_in_sentences_of_the_pages(measured):
    assert len(measured.SENTENCES) >= 20
    for sentence in measured.SENTENCES:
        page = (ROOT / sentence.page).read_text(encoding="utf-8")
        # As the page has it, with the numbers that stand there
        parts = map(re.escape, re.split(r"{.*?}", sentence.text))
        pattern = r"([\d.]+)".join(parts).replace(re.escape(" ... "), r" [^\0]* ")
        found = re.search(pattern, " ".join(page.replace("\n|", "\0|").split()))
        assert found, f"{sentence.page} does not say: {sentence.text}"
        form = re.sub(r"{.*?}", "{}", sentence.text)
        assert measured.stands(form.format(*found.groups()), page)
        assert not measured.stands(form.format(*found.groups()[:-1], "7.7"), page)


def test_a_page_with_another_number_than_the_results_is_told(measured, monkeypatch, capsys):
    for rate, code, said in ((0.92, 0, "as in"), (0.93, 1, "NOT in")):
        sentence = measured.Sentence("README.md", "falls as n<sup>-{:.2f}</sup>", lambda n: [n])
        monkeypatch.setattr(measured, "gathered", lambda folder, rate=rate: rate)
        monkeypatch.setattr(measured, "SENTENCES", [sentence])
        assert measured.main() == code
        assert capsys.readouterr().out.startswith(f"{said} README.md: falls")


def test_the_commands_on_pools_write_the_sweeps_that_their_page_opens(tmp_path):
    text = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    section = text.partition("## Does the pool's size matter?")[2].partition("\n## ")[0]
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "pool.yaml").write_text(
        re.search(r"^```yaml\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[1]
    )
    commands = re.search(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[1]
    commands = commands.replace("bqlib run", "echo")  # tests/running runs sweeps
    subprocess.run(["bash", "-euc", commands], cwd=tmp_path, check=True)
    sizes = re.search(r"for size in \(([\d, ]+)\)", section)[1].split(", ")
    for size in sizes:
        sweep_file = tmp_path / "config" / f"pool_{size}.yaml"
        found = load(sweep_file, ROOT / "config" / "targets")
        assert (found.name, found.candidates.size) == (f"pool_{size}", int(size))
