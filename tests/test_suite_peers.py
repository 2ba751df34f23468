"""What the adapters tell other packages of the problems: their kernels and targets."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bqlib.suite.submission import read_submission
from bqlib.sweep.problems import problems

PEERS = Path(__file__).parent.parent / "benchmarks" / "suite_peers"


@pytest.fixture(scope="module")
def entering():
    sys.path.insert(0, str(PEERS))
    try:
        import entering

        yield entering
    finally:
        sys.path.remove(str(PEERS))


def test_kernels_are_those_of_the_problems(entering):
    x, left_out = np.random.default_rng(0).standard_normal((6, 20)), set()
    for name, problem in problems().items():
        target, kernel = problem.build()
        ours = entering.kernel_function(SimpleNamespace(kernel=problem.kernel))
        if ours is None:
            left_out.add(problem.kernel["family"])
            continue
        points = x[:, : target.dim]
        expected = kernel(points, points)
        found = np.array([ours(y, points) for y in points])
        assert abs(found - expected / expected[0, 0]).max() < 1e-13, name
    assert left_out == {
        "brownian", "brownian_bridge", "integrated_brownian", "korobov", "l2_star", "stein",
    }  # fmt: skip


def test_points_of_the_unit_cube_become_those_of_the_target(entering):
    cube = (np.arange(1000)[:, None] + 0.5) / 1000
    moments, named = {}, ("box_1d_bridge", "normal_1d_matern12", "mixture_1d_eq")
    for name in named:
        target = problems()[name].target
        box = np.array([target["lower"], target["upper"]]) if "lower" in target else None
        points = entering.from_unit_cube(SimpleNamespace(target=target, box=box), cube)
        moments[name] = points if points is None else (points.mean(), points.std())
    assert moments.pop("mixture_1d_eq") is None
    np.testing.assert_allclose(moments["box_1d_bridge"], (0.5, 12**-0.5), rtol=1e-5)
    np.testing.assert_allclose(moments["normal_1d_matern12"], (0, 1), atol=2e-3)
    ends = np.array([[0.0], [1.0]])
    normal = SimpleNamespace(target=problems()["normal_1d_matern12"].target)
    assert np.isfinite(entering.from_unit_cube(normal, ends)).all()


def test_an_adapter_writes_a_submission(tmp_path):
    words = ["--rules", "scipy_sobol", "scipy_latin_hypercube", "--problems", "normal_2d_eq",
             "rings_eq", "--seeds", "2"]  # fmt: skip
    command = [sys.executable, PEERS / "with_scipy.py", tmp_path, *words]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=PEERS.parent.parent)
    assert ran.returncode == 0, ran.stderr
    sobol = read_submission(tmp_path / "scipy_sobol")
    latin = read_submission(tmp_path / "scipy_latin_hypercube")
    assert sobol.sets.keys() == {"normal_2d_eq"}  # rings have no inverse distribution function
    assert {*sobol.sets["normal_2d_eq"]} == {0, 1}
    assert {*latin.sets["normal_2d_eq"][0]} == {16, 32, 64, 128}
    points = sobol.sets["normal_2d_eq"][0][128].points
    assert abs(points.mean(axis=0)).max() < 0.05 < abs(points).max()
