import hashlib
import subprocess
import sys

import numpy as np
import pytest
from synthetic_sweep import PAPER, power_curves, sweep

from bqlib.figures import save, style
from bqlib.figures.mmd import mmd
from bqlib.schema import FAILED, MISSING, OK

N = np.arange(1.0, 101)


@pytest.fixture(scope="module")
def curves():
    return {
        "iid": power_curves(0.5, n=100, rng=1),
        "herding": power_curves(0.9, n=100, rng=2),
        "sbq": power_curves(1.5, n=100, rng=3),
    }


def panels(figure):
    return {axes.get_title(loc="left"): axes for axes in figure.axes if axes.axison}


def lines(axes, kind):
    found = {line.get_gid(): line for line in axes.lines if line.get_gid()}
    return {
        gid.removeprefix(f"{kind} "): line for gid, line in found.items() if gid.startswith(kind)
    }


def notes(axes):
    (text,) = [text for text in axes.texts if text.get_gid() == "notes"]
    return " ".join(text.get_text().split())


def test_a_panel_for_each_lengthscale_with_medians_and_bands(curves):
    figure = mmd(sweep(curves, lengthscales=(0.25, 0.5, 1.0)))
    assert list(panels(figure)) == ["length-scale 0.25", "length-scale 0.5", "length-scale 1"]
    for axes in panels(figure).values():
        assert axes.get_xscale() == axes.get_yscale() == "log"
        median = lines(axes, "median")
        assert list(median) == ["iid", "herding", "sbq"]
        x, y = median["sbq"].get_data()
        assert (x[0], x[-1]) == (1, 100)
        np.testing.assert_array_equal(y, np.median(curves["sbq"][:, x - 1], axis=0))
        band = axes.collections[2].get_paths()[0].vertices
        assert band[:, 1].min() == curves["sbq"][:, -1].min()
        assert notes(axes) == ""
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["i.i.d.", "herding", "SBQ"]
    assert "median of 10 seeds" in figure.legends[0].get_title().get_text()


def test_the_published_curves_stand_only_behind_the_papers_panel(curves):
    figure = mmd(sweep(curves, lengthscales=(0.25, 0.5)))
    ours, paper = panels(figure).values()
    assert lines(ours, "published") == {}
    assert set(lines(paper, "published")) == {"iid", "herding", "sbq"}
    thin, thick = lines(paper, "published")["sbq"], lines(paper, "median")["sbq"]
    assert thin.get_zorder() < thick.get_zorder() and thin.get_linewidth() < thick.get_linewidth()
    assert thin.get_xdata().max() <= 100
    assert "published" in figure.legends[0].get_title().get_text()


def test_no_published_curves_at_other_settings(curves):
    kernels = {"eq": {"family": "exponentiated_quadratic", "scale": "unit"}}
    figure = mmd(sweep(curves, kernels=kernels))
    assert lines(figure.axes[0], "published") == {}
    assert "published" not in figure.legends[0].get_title().get_text()


def test_a_curve_that_ends_early_is_marked_and_said(curves):
    dataset = sweep(curves)
    dataset["mmd"].loc[{"algorithm": "sbq", "n": slice(81, None)}] = np.nan
    dataset["mmd"].loc[{"algorithm": "herding", "seed": [2, 3], "n": slice(61, None)}] = np.nan
    axes = mmd(dataset).axes[0]
    assert set(lines(axes, "end")) == {"herding", "sbq"}
    assert lines(axes, "end")["sbq"].get_xdata()[0] == 80
    assert lines(axes, "median")["herding"].get_xdata()[-1] == 60
    assert "SBQ: float64 ends at n = 80" in notes(axes)
    assert "herding: float64 ends at n = 60 in 2 of 10 seeds" in notes(axes)


def test_failed_and_missing_seeds_are_said(curves):
    dataset = sweep(curves)
    dataset["status"].loc[{"algorithm": "sbq", "seed": [0, 1]}] = FAILED
    dataset["status"].loc[{"algorithm": "iid"}] = MISSING
    dataset["mmd"] = dataset["mmd"].where(dataset["status"] == OK)
    axes = mmd(dataset).axes[0]
    assert "SBQ: 2 of 10 seeds failed" in notes(axes)
    assert "i.i.d.: 10 of 10 seeds missing" in notes(axes)
    assert set(lines(axes, "median")) == {"herding", "sbq"}
    np.testing.assert_array_equal(
        lines(axes, "median")["sbq"].get_ydata()[-1], np.median(curves["sbq"][2:, -1])
    )


def test_targets_and_kernels_have_rows_of_their_own(curves):
    kernels = PAPER["kernels"] | {"unit": {"family": "exponentiated_quadratic", "scale": "unit"}}
    figure = mmd(sweep(curves, lengthscales=(0.5, 1.0), kernels=kernels))
    titles = list(panels(figure))
    assert titles[0] == "chen2010_mixture, eq\nlength-scale 0.5"
    assert titles[3] == "chen2010_mixture, unit\nlength-scale 1"
    assert [bool(lines(axes, "published")) for axes in panels(figure).values()] == [
        True, False, False, False
    ]  # fmt: skip


@pytest.mark.parametrize("lengthscales, algorithms", [(1, 1), (2, 12), (4, 2), (5, 4), (6, 12)])
def test_any_number_of_panels_and_algorithms_draws(lengthscales, algorithms):
    names = ["iid", "herding", "herding_bq", "sbq", *"abcdefgh"][:algorithms]
    dataset = sweep(
        {name: power_curves(1.0, n=20, seeds=2, rng=i) for i, name in enumerate(names)},
        lengthscales=[0.25 * (i + 1) for i in range(lengthscales)],
    )
    figure = mmd(dataset)
    assert len(panels(figure)) == lengthscales
    figure.draw_without_rendering()


def test_a_sweep_with_no_results_and_one_with_one_seed_draw(curves):
    dataset = sweep({"sbq": curves["sbq"][:1]})
    figure = mmd(dataset)
    assert "One seed" in figure.legends[0].get_title().get_text()
    dataset["status"][:] = MISSING
    dataset["mmd"][:] = np.nan
    mmd(dataset).draw_without_rendering()


def test_algorithms_differ_without_their_colours():
    names = ["iid", "herding", "herding_bq", "sbq", *"abcdefgh"]
    styles = style.line_styles(names)
    assert list(styles) == names
    looks = {(str(line["linestyle"]), line["marker"]) for line in styles.values()}
    assert len(looks) == len(names)
    assert styles["sbq"] == style.line_styles(["omp", "sbq"])["sbq"]


SCRIPT = """
import sys
from synthetic_sweep import power_curves, sweep
from bqlib.figures import save
from bqlib.figures.mmd import mmd
save(mmd(sweep({"sbq": power_curves(1.5, n=50)})), sys.argv[1])
"""


def test_files_are_the_same_bytes_in_every_process(tmp_path):
    figure = mmd(sweep({"sbq": power_curves(1.5, n=50)}))
    written = save(figure, tmp_path / "here" / "mmd")
    assert [file.name for file in written] == ["mmd.svg", "mmd.png"]
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "there")],
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "5", "SOURCE_DATE_EPOCH": "1"},
    )
    for file in written:
        other = tmp_path / f"there{file.suffix}"
        digests = [hashlib.sha256(f.read_bytes()).hexdigest() for f in (file, other)]
        assert digests[0] == digests[1], file
    assert b"<dc:date>" not in written[0].read_bytes()


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"mmd\.pdf"):
        save(mmd(sweep({"sbq": power_curves(1.5, n=20)})), [tmp_path / "mmd.pdf"])
    assert not list(tmp_path.iterdir())
