import hashlib
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest
from matplotlib.lines import Line2D
from synthetic_sweep import power_curves, sweep

from bqlib.figures import save, style
from bqlib.figures.bq_illustration import bq_illustration
from bqlib.figures.curves import curves
from bqlib.figures.heatmap import heatmap
from bqlib.figures.mmd import mmd
from bqlib.figures.slopes import slopes


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


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_layout_is_that_of_matplotlib_and_the_figure_keeps_its_engine(suffix, tmp_path):
    dataset = sweep({"sbq": power_curves(1.5, n=50), "iid": power_curves(0.5, n=50)})
    figure, other = mmd(dataset), mmd(dataset)
    engine, canvas, dpi = figure.get_layout_engine(), figure.canvas, figure.dpi
    [written] = save(figure, tmp_path / f"mmd{suffix}")
    assert (figure.get_layout_engine(), figure.canvas, figure.dpi) == (engine, canvas, dpi)
    own = {".svg": {"Date": None, "Creator": "bqlib"}, ".png": {"Software": "bqlib"}}[suffix]
    with style.ours():
        other.savefig(tmp_path / f"other{suffix}", metadata=own)
    assert written.read_bytes() == (tmp_path / f"other{suffix}").read_bytes()


def test_a_figure_is_drawn_once_for_each_file(tmp_path):
    drawn = []

    class Counted(Line2D):
        def draw(self, renderer):
            drawn.append(type(renderer).__name__)
            super().draw(renderer)

    figure = style.figure(3, 2)
    figure.add_subplot().add_line(Counted([0, 1], [0, 1]))
    save(figure, tmp_path / "line")
    assert len(drawn) == 2


def test_a_file_of_another_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"mmd\.pdf: a name must end in \.svg or \.png"):
        save(mmd(sweep({"sbq": power_curves(1.5, n=20)})), [tmp_path / "mmd.pdf"])
    assert not list(tmp_path.iterdir())


HOSTILE = {
    "axes.facecolor": "yellow",
    "backend": "svg",
    "font.family": "monospace",
    "lines.linewidth": 9,
    "patch.linewidth": 9,
    "savefig.bbox": "tight",
    "svg.fonttype": "none",
    "text.usetex": True,
    "xtick.direction": "in",
}
DRAWN = {
    "bq_illustration": bq_illustration,
    "curves": lambda: curves(sweep({"sbq": power_curves(1.5, n=50)})),
    "heatmap": lambda: heatmap(sweep({"sbq": power_curves(1.5, n=50)}), "error", n=20),
    "mmd": lambda: mmd(sweep({"sbq": power_curves(1.5, n=50)})),
    "slopes": lambda: slopes(sweep({"sbq": power_curves(1.5, n=50)})),
}


@pytest.mark.parametrize("name", DRAWN)
def test_figures_are_the_same_bytes_in_every_style_and_leave_it_alone(name, tmp_path):
    ours = save(DRAWN[name](), tmp_path / "ours")
    with matplotlib.rc_context(HOSTILE):
        before = dict(matplotlib.rcParams)
        theirs = save(DRAWN[name](), tmp_path / "theirs")
        assert dict(matplotlib.rcParams) == before
    assert [f.read_bytes() for f in theirs] == [f.read_bytes() for f in ours]


def test_no_figure_is_made_in_another_context():
    for file in Path(style.__file__).parent.glob("*.py"):
        assert "rc_context" not in file.read_text(encoding="utf-8"), file


def test_no_two_algorithms_share_colour_and_marker():
    names = ["joint", "block_sbq_5", *(f"rule_{i}" for i in range(20)), "sbq"]
    looks = style.line_styles(names)
    assert len({(look["color"], look["marker"]) for look in looks.values()}) == len(names)
