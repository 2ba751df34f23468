"""Numbers of docs/errata.md that no claim prints."""

import re

import numpy as np
import pytest
from full_size import CONTENT
from project import PROJECT

from bqlib import ExponentiatedQuadratic, embed, herding, published
from bqlib.integrands import rkhs_ball
from bqlib.streams import stream
from bqlib.sweep.build import build_target

PAGE = (PROJECT / "docs" / "errata.md").read_text(encoding="utf-8")
TARGET = build_target(CONTENT["targets"]["chen2010_mixture"])
KERNEL = ExponentiatedQuadratic(0.5, scale="density")


def printed(pattern):
    return [float(number) for number in re.search(pattern, " ".join(PAGE.split())).groups()]


def test_how_much_the_published_errors_start_too_low():
    """The trials of the sweep at n = 1, as this is the n printed."""
    embedding = embed(KERNEL, TARGET)
    errors = {"iid": [], "herding": []}
    for seed in range(20):
        functions = rkhs_ball(embedding, stream("integrand/rkhs_ball", seed), centre_variance=3)
        pool = TARGET.sample(10_000, stream("candidates", seed))
        first = herding(TARGET, KERNEL, 1, rng=0, candidates=pool).points
        draw = TARGET.sample(1, stream("design/iid", seed))
        for name, points in (("iid", draw), ("herding", first)):
            errors[name].append(functions.errors(points, np.ones((1, 1))).mean())
    ratios = [
        np.exp(np.log(found).mean()) / published.curves("within_model")[name][1][0]
        for name, found in errors.items()
    ]
    said = printed(r"it is ([\d.]+) times lower than ours, that of herding ([\d.]+) times")
    assert ratios == pytest.approx(said, rel=0.02)


def test_the_box_of_the_published_code_misses_a_share_of_the_target():
    (share,) = printed(r"misses ([\d.]+) % of p")
    draws = TARGET.sample(400_000, rng=0)
    inside = (np.abs(draws[:, 0]) < 6) & (draws[:, 1] > -5) & (draws[:, 1] < 3)
    assert 100 * (1 - inside.mean()) == pytest.approx(share, abs=0.15)
