import numpy as np
import pytest

from bqlib import published

KERNEL = {"family": "exponentiated_quadratic", "scale": "density"}


@pytest.mark.parametrize("quantity", ["mmd", "weight_sum", "within_model", "out_of_model", "bound"])
def test_curves_are_positive_with_rising_n(quantity):
    for n, value in published.curves(quantity).values():
        assert len(n) == len(value)
        assert n[0] >= 1 and (np.diff(n) > 0).all()
        assert (value > 0).all()


def test_the_published_mmd_starts_where_theory_puts_it():
    curves = published.curves("mmd")
    assert list(curves) == ["iid", "herding", "herding_bq", "sbq"]
    # One point drawn from p has E MMD^2 = k(x, x) - V0.
    assert curves["iid"][1][0] == pytest.approx(
        np.sqrt(0.6366197723675814 - 0.0207787540403523), rel=0.02
    )
    # With one point, herding with BQ weights and SBQ are the same up to their choice of it.
    assert curves["sbq"][1][0] == pytest.approx(0.135, rel=0.01)
    assert all(curve[0][-1] == 400 for curve in curves.values())


def test_the_published_bound_is_the_square_of_the_mmd():
    n, bound = published.curves("bound")["sbq"]
    at, mmd = published.curves("mmd")["sbq"]
    np.testing.assert_allclose(bound, np.interp(n, at, mmd) ** 2, rtol=0.25)


def test_within_model_curves_are_back_on_their_own_sample_sizes():
    n, value = published.curves("within_model")["iid"]
    assert (n[0], n[-1]) == (30, 393)
    # An i.i.d. mean has an error of n^-1/2; on the printed abscissa it is nearly flat at first.
    slope = np.polyfit(np.log(n), np.log(value), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.06)


def test_the_papers_settings_are_known_by_what_they_are():
    assert published.has_papers_settings("chen2010_mixture", KERNEL, 0.5)
    assert published.has_papers_settings("chen2010_mixture", {**KERNEL, "shape": None}, 0.5)


@pytest.mark.parametrize(
    "target, kernel, lengthscale",
    [
        ("another", KERNEL, 0.5),
        ("chen2010_mixture", {**KERNEL, "scale": "unit"}, 0.5),
        ("chen2010_mixture", {**KERNEL, "family": "matern"}, 0.5),
        ("chen2010_mixture", {**KERNEL, "shape": [1.0, 2.0]}, 0.5),
        ("chen2010_mixture", KERNEL, 0.25),
    ],
)
def test_other_settings_are_not_the_papers(target, kernel, lengthscale):
    assert not published.has_papers_settings(target, kernel, lengthscale)
