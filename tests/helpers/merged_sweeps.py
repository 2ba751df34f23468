"""Small sweeps that differ in what a test wants, to be merged."""

import paper_sweep

SWEEP = """
name: {name}
title: Sweep {name}
targets: [chen2010_mixture]
kernels: {{eq: {{family: exponentiated_quadratic{kernel}}}}}
lengthscales: {lengthscales}
algorithms: {algorithms}
candidates: {{size: {size}}}
n: {n}
seeds: {seeds}
rate_windows: {windows}
"""
SETTINGS = {
    "kernel": "", "lengthscales": [0.5, 1], "algorithms": "[herding, sbq]", "size": 60, "n": 12,
    "seeds": 2, "windows": [[2, 12]],
}  # fmt: skip


def run(folder, more="", **settings):
    """Run a sweep named as its folder, and return the folder of its results."""
    folder.mkdir(exist_ok=True)
    text = SWEEP.format(name=folder.name, **SETTINGS | settings) + more
    paper_sweep.run(folder, text)
    return folder
