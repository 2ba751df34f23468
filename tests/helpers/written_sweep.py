"""A sweep file that tests write, edit and load in the working directory."""

from pathlib import Path

import pytest

from bqlib.sweep.file import load
from bqlib.sweep.words import SweepError

NORMAL = {
    "family": "gaussian_mixture",
    "about": "A normal on the plane.",
    "weights": [1.0],
    "means": [[0.0, 0.0]],
    "covariances": [[[1.0, 0.0], [0.0, 1.0]]],
}


SWEEP = """\
name: tiny
targets: [normal]
kernels:
  eq: {family: exponentiated_quadratic, scale: density}
lengthscales: [0.5, 1]
algorithms: [iid, sbq]
candidates:
  size: 100
n: 40
seeds: 3
seeds_per_job: 2
rate_windows: [[5, 40]]
"""


def loaded(text):
    Path("sweep.yaml").write_text(text, encoding="utf-8")
    return load("sweep.yaml")


def edited(*edits):
    text = SWEEP
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def problems_of(text):
    with pytest.raises(SweepError) as caught:
        loaded(text)
    assert str(caught.value) == "\n".join(caught.value.problems)
    assert all(problem.startswith("sweep.yaml:") for problem in caught.value.problems)
    return [problem.removeprefix("sweep.yaml:") for problem in caught.value.problems]
