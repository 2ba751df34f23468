"""Synthetic curves, and datasets of the shape of a sweep, for the tests."""

import json

import numpy as np
import xarray as xr
from project import PROJECT
from scipy.signal import lfilter

from bqlib.results.lazy import TEXT
from bqlib.schema import OK, SWEEP_DIMS

PAPER = {
    "targets": {
        "chen2010_mixture": json.loads(
            (PROJECT / "config" / "targets" / "chen2010_mixture.json").read_text()
        )
    },
    "kernels": {"eq": {"family": "exponentiated_quadratic", "scale": "density"}},
}


def correlated_noise(rng, shape, sd, correlation=0.97):
    """Stationary noise that is correlated along the last axis, as a curve is along n."""
    burn_in = 300
    white = rng.standard_normal((*shape[:-1], burn_in + shape[-1]))
    noise = lfilter([1.0], [1.0, -correlation], white, axis=-1)[..., burn_in:]
    return sd * np.sqrt(1 - correlation**2) * noise


def power_curves(rate, *, seeds=10, n=400, sd=0.05, rng=0):
    """Curves C n^-rate with correlated noise, independent between seeds, shape (seeds, n)."""
    noise = correlated_noise(np.random.default_rng(rng), (seeds, n), sd)
    return 0.8 * np.arange(1, n + 1) ** -float(rate) * np.exp(noise)


def sweep(curves, *, lengthscales=(0.5,), windows=((20, 400), (100, 400)), **config):
    """A dataset with the same curves at every length-scale.

    `curves` has for each algorithm its curves, shape (seeds, n). Keywords replace `targets` or
    `kernels` of the paper.
    """
    config = PAPER | config
    mmd = np.array([[[list(curves.values())] * len(lengthscales)]])
    shape = (len(config["targets"]), len(config["kernels"]), *mmd.shape[2:])
    mmd = np.broadcast_to(mmd, shape).copy()
    seeds, n = mmd.shape[4:]
    labels = {
        "target": np.array(list(config["targets"]), dtype=object),
        "kernel": np.array(list(config["kernels"]), dtype=object),
        "lengthscale": np.array(lengthscales, dtype=float),
        "algorithm": np.array(list(curves), dtype=object),
        "seed": np.arange(seeds),
        "n": np.arange(1, n + 1),
    }
    dims = (*SWEEP_DIMS, "seed")
    data = {
        "mmd": ((*dims, "n"), mmd),
        "status": (dims, np.full(mmd.shape[:-1], OK, dtype=np.int8)),
        "reason": (dims, np.full(mmd.shape[:-1], "", dtype=TEXT)),
    }
    config = {**config, "rate_windows": [list(window) for window in windows]}
    return xr.Dataset(data, labels, {"config": json.dumps(config)})
