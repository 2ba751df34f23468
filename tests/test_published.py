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


@pytest.mark.parametrize(
    "dim, order, method, n, mean, deviation",
    [
        (1, 1, "recombination_10n", 20, 1.45e-2, 2.13e-3),
        (1, 1, "grid", 80, 5.14e-4, 0.0),
        (2, 1, "recombination_10n_nonnegative", 40, 0.110, 5.02e-3),
        (2, 1, "recombination_n2_nonnegative", 20, 0.266, 1.37e-2),
        (3, 3, "halton_bq", 5, 0.820, 1.05e-2),
    ],
)
def test_errors_of_hayakawa_are_those_of_the_files(dim, order, method, n, mean, deviation):
    sizes, means, deviations = published.hayakawa2022(dim, order)[method]
    at = sizes.tolist().index(n)
    assert (means[at], deviations[at]) == (mean, deviation)


def test_errors_of_hayakawa_are_complete_and_fall():
    for setting in ((1, 1), (1, 3), (2, 1), (3, 3)):
        found = published.hayakawa2022(*setting)
        assert len(found) == 6
        for n, mean, deviation in found.values():
            assert n.tolist() == [5, 10, 15, 20, 30, 40, 50, 65, 80]
            assert len(mean) == len(deviation) == 9 and mean[-1] < mean[0] / 5
            assert (deviation >= 0).all()
    with pytest.raises(ValueError, match="dimension 2 and order 3; they are for 1 and 1, 1 and 3"):
        published.hayakawa2022(2, 3)


def test_the_published_grid_is_its_closed_form():
    n, mean, deviation = published.hayakawa2022(1, 1)["grid"]
    assert [f"{value:.2e}" for value in np.pi**2 / (3 * n**2)] == [f"{value:.2e}" for value in mean]
    assert not deviation.any()


@pytest.mark.parametrize(
    "target, kernel, setting",
    [
        ({"family": "uniform", "lower": [0, 0], "upper": [1, 1]}, {"family": "korobov"}, (2, 1)),
        (
            {"family": "uniform", "lower": [0], "upper": [1]},
            {"family": "korobov", "order": 3},
            (1, 3),
        ),
        (
            {"family": "uniform", "lower": [0], "upper": [1]},
            {"family": "korobov", "order": 2},
            None,
        ),
        ({"family": "uniform", "lower": [0], "upper": [2]}, {"family": "korobov"}, None),
        ({"family": "uniform", "lower": [0], "upper": [1]}, {"family": "brownian"}, None),
        ({"weights": [1]}, {"family": "korobov"}, None),
    ],
)
def test_settings_of_hayakawa_are_known_by_what_they_are(target, kernel, setting):
    assert published.setting_of_hayakawa2022(target, kernel) == setting
