"""Claims and expectations of the second paper, on a small sweep of its line, and their controls."""

import json

import numpy as np
import paper_sweep
import pytest
from project import PROJECT

from bqlib.analysis.papers import papers_of
from bqlib.claims import PAPERS, Evidence, as_json, as_text, evaluate, read, table_1
from bqlib.claims.evidence import CORRECTED, FAILS, HOLDS, UNKNOWN
from bqlib.claims.hayakawa2022 import expectations
from bqlib.claims.hayakawa2022.measured import squares_of_grid
from bqlib.figures.mmd import mmd
from bqlib.sweep.file import load

KEY = "hayakawa2022"
OWN, BEST = ({"algorithm": f"recombination_10n{end}"} for end in ("", "_nonnegative"))
CONFIG = PROJECT / "config" / "hayakawa.yaml"
SMALL = {  # up to n = 20, with 20 seeds, and without the cube
    "n: 80": "n: 20",
    ", 30, 40, 50, 65, 80]": "]",
    "seeds: 50": "seeds: 20",
    "{size: 6400}": "{size: 400}",
    "  - {name: cube, family: uniform, lower: [0, 0, 0], upper: [1, 1, 1]}\n": "",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    text = CONFIG.read_text(encoding="utf-8")
    for old, new in SMALL.items():
        assert old in text
        text = text.replace(old, new)
    return paper_sweep.run(tmp_path_factory.mktemp("whole"), text).compute()


@pytest.fixture(scope="module")
def curves(whole):
    return {part: whole.sel(target=[part]) for part in ("line", "square")}


def judged(curves):
    claims, expected = evaluate(Evidence(curves, None, {}), [KEY])
    return {c.name: c for c in claims}, {e.name: e for e in expected}


def changed(curves, variable, factor, **labels):
    """Curves of which a variable is multiplied somewhere."""
    other = curves.copy(deep=True)
    other[variable].loc[labels] = other[variable].loc[labels] * factor
    return other


def test_its_sweep_is_of_the_paper_and_of_no_other():
    assert papers_of(load(CONFIG)) == (KEY,)


def test_every_expectation_is_met_on_a_part(whole, curves):
    _, expected = judged(whole)
    assert all(expectation.met for expectation in expected.values()), expected
    assert expected["published_grid"].measured == "equal in 18 of 18 cells"
    _, square = judged(curves["square"])
    assert square["published_means"].met and square["greedy_rules_are_better"].met
    assert square["published_grid"].met is None and "unit line" in square["exact_grid"].measured


def test_verdicts(curves):
    line, square = (judged(found)[0] for found in curves.values())
    assert line["rules_are_convex"].verdict == square["rules_are_convex"].verdict == HOLDS
    assert line["competes_with_the_optimum"].verdict == CORRECTED
    assert square["competes_with_the_optimum"].verdict == UNKNOWN
    assert square["better_than_draws"].verdict == HOLDS
    assert line["better_than_draws"].verdict == UNKNOWN
    assert line["better_weights_help"].verdict == HOLDS
    assert {claim.paper for claim in line.values()} == {KEY}


@pytest.mark.parametrize(
    "part, claim, variable, factor, labels, verdict",
    [
        ("line", "rules_are_convex", "weight_sum", 1 + 1e-9, OWN, FAILS),
        ("line", "rules_are_convex", "min_weight", -1, OWN, FAILS),
        ("line", "competes_with_the_optimum", "mmd", 0.1, BEST, HOLDS),
        ("line", "competes_with_the_optimum", "mmd", 9, BEST, FAILS),
        ("square", "better_than_draws", "mmd", 0.5, {"algorithm": "iid_bq", "n": 10}, FAILS),
        ("square", "better_weights_help", "mmd", 0.5, OWN | {"n": 10}, FAILS),
    ],
)  # fmt: skip
def test_a_verdict_changes_where_the_errors_do(
    curves, part, claim, variable, factor, labels, verdict
):
    claims, _ = judged(changed(curves[part], variable, factor, **labels))
    assert claims[claim].verdict == verdict


@pytest.mark.parametrize(
    "part, name, labels",
    [
        ("line", "published_means", {}),
        ("square", "greedy_rules_are_better", {"algorithm": "omp_10n", "n": 5}),
    ],
)
def test_an_expectation_fails_where_the_errors_are_others(curves, part, name, labels):
    _, expected = judged(changed(curves[part], "mmd", 1.5, **labels))
    assert expected[name].met is False


def test_few_seeds_and_other_sweeps_are_not_judged(curves):
    _, expected = judged(curves["square"].isel(seed=slice(5)))
    assert expected["published_means"].measured == "needs 20 seeds"
    other = curves["square"].assign_attrs(
        config=curves["square"].attrs["config"].replace('"korobov"', '"brownian"')
    )
    claims, expected = judged(other)
    assert {claim.verdict for claim in claims.values()} == {UNKNOWN}
    assert all(expectation.met is None for expectation in expected.values())


def test_records_name_their_paper(curves):
    evidence = Evidence(curves["line"], None, {})
    claims, expected = evaluate(evidence, [KEY])
    rows = table_1(evidence, [KEY])
    written = as_json(claims, expected, rows)
    assert json.loads(written)["papers"] == {KEY: PAPERS[KEY].citation}
    assert rows == [] and read(written) == (claims, expected, rows)
    assert as_text(claims, expected).startswith("Claims of Hayakawa, Oberhauser and Lyons (2022):")


def test_published_roots_are_drawn_behind_ours(curves):
    figure = mmd(curves["square"])
    (line,) = [
        line for line in figure.axes[0].lines if line.get_gid() == "published recombination_10n"
    ]
    assert line.get_ydata()[:4] == pytest.approx(np.sqrt([3.14, 1.30, 0.736, 0.480]))
    assert any(
        "Hayakawa" in text.get_text() for text in figure.findobj(lambda a: hasattr(a, "get_text"))
    )
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1  # nothing is cut off


@pytest.mark.parametrize("name", ["published_grid", "exact_grid"])
def test_another_grid_is_told(curves, monkeypatch, name):
    def wrong(order, n):
        return squares_of_grid(order, n) * (1 + 0.01 * (n == 10))

    monkeypatch.setattr(expectations, "squares_of_grid", wrong)
    _, expected = judged(curves["line"])
    assert expected[name].met is False
