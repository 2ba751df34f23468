"""What notebooks show of designs and integrals."""

import numpy as np
import pytest

from bqlib import ExponentiatedQuadratic, GaussianMixture, iid, mmd, sbq
from bqlib.designs import design as module
from bqlib.notebook import html_table
from bqlib.posterior import Integral

NORMAL = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])


def test_texts_stay_texts():
    shown = html_table("a < b", [("<script>", 'x & "y"')], "<b>")
    assert shown == (
        "<div><strong>a &lt; b</strong><table><tr><th>&lt;script&gt;</th>"
        "<td>x &amp; &quot;y&quot;</td></tr></table><p>&lt;b&gt;</p></div>"
    )
    assert "<p>" not in html_table("a", [])


def test_a_design_shows_its_mmd_its_end_and_its_first_points():
    design = sbq(NORMAL, ExponentiatedQuadratic(5.0), n=60, rng=0)
    shown = design._repr_html_()
    assert f"<td>{mmd(design.embedding, design.points, design.weights):.4g}</td>" in shown
    assert "of 60: the next pivot is below" in shown
    assert shown.count("weight ") == 5 and f"The first 5 of {len(design.points)} points" in shown
    assert f"weight {design.weights[4]:.4g}" in shown
    assert "The first" not in iid(NORMAL, ExponentiatedQuadratic(1.0), n=5, rng=0)._repr_html_()


def test_a_large_design_says_that_weights_are_not_computed(monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS_SHOWN", 9)
    monkeypatch.setattr(module, "mmd", None)
    shown = iid(NORMAL, ExponentiatedQuadratic(1.0), n=10, rng=0)._repr_html_()
    assert "Design: 10 points" in shown and "Not computed for more than 9 points" in shown


def test_a_mmd_below_rounding_is_said_to_be(monkeypatch):
    monkeypatch.setattr(module, "mmd", lambda *given: np.nan)
    shown = iid(NORMAL, ExponentiatedQuadratic(1.0), n=3, rng=0)._repr_html_()
    assert "<th>MMD</th><td>below the rounding error</td>" in shown


@pytest.mark.parametrize("freedom", [np.inf, 7.0])
def test_an_integral_shows_its_interval(freedom):
    found = Integral(0.25, 1e-4, 2.0, freedom)
    lower, upper = found.interval(0.95)
    shown = found._repr_html_()
    assert f"<td>{lower:.9g} to {upper:.9g}</td>" in shown
    assert "<td>0.25</td>" in shown and f"<td>{freedom:g}</td>" in shown
