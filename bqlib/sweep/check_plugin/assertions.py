"""What the checks of plug-ins share: findings, assertions, and comparisons.

A check is a function that raises a :class:`ViolationError`, or any other error, if the plug-in
fails. It may return a text that is worth knowing.
"""

import pickle
import random
from dataclasses import dataclass

import numpy as np

from bqlib.sweep import plugins

DRAWS, BLOCK = 100_000, 5_000  # of the samples that integrals are compared with
STANDARD_ERRORS = 5
STEP = 1e-4  # of differences of fourth order, in the units of x
SLOPE_TOLERANCE = 1e-6  # of the largest value or slope
# What the code under test can raise. Ctrl-C is not among them, because it is not a failure.
ANY_ERROR = (Exception, SystemExit)


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    passed : bool
    text : str
        What was checked, and what is wrong or worth knowing.
    """

    passed: bool
    text: str


class ViolationError(Exception):
    """The plug-in breaks a rule; the message says how."""


class Findings:
    """The findings about one plug-in, in `found`."""

    def __init__(self):
        self.found = []

    def verify(self, rule, check, *arguments):
        """Add a finding. Return what `check` returns, or None if it fails."""
        try:
            result = check(*arguments)
        except ViolationError as violation:
            self.fail(rule, violation)
        except ANY_ERROR as error:
            self.fail(rule, plugins.reason_of(error))
        else:
            note = f" ({result})" if isinstance(result, str) and result else ""
            self.found.append(Finding(True, rule + note))
            return result
        return None

    def fail(self, rule, why):
        """Add the finding that the plug-in breaks a rule."""
        self.found.append(Finding(False, f"{rule}: {why}"))

    def verify_streams(self, draw):
        """Add the findings about draw(rng), whose arrays must depend on the stream alone."""
        self.verify(
            "the same stream gives the same result, and global random states do not change",
            same_stream,
            draw,
        )
        self.verify("another stream gives another result", other_stream, draw)


def require(condition, violation):
    """Raise a ViolationError if a condition does not hold."""
    if not condition:
        raise ViolationError(violation)


def require_array(array, shape, name):
    """Require a finite float64 array of this shape."""
    require(isinstance(array, np.ndarray), f"{name} is a {type(array).__name__}, not an array")
    require(array.shape == shape, f"{name} has shape {array.shape}, not {shape}")
    require(array.dtype == np.float64, f"{name} has dtype {array.dtype}, not float64")
    require(np.isfinite(array).all(), f"{name} contains NaN or infinity")


def require_attributes(found, names):
    """Require an object with these attributes."""
    missing = [name for name in names if not hasattr(found, name)]
    require(not missing, f"it returns a {type(found).__name__} without {', '.join(missing)}")


def require_close(found, expected, tolerance, how):
    """Require two arrays that agree to `tolerance`; `how` says where `expected` comes from."""
    excess = np.abs(found - expected) - tolerance
    if (excess > 0).any() or not np.isfinite(excess).all():
        worst = np.unravel_index(np.argmax(np.nan_to_num(excess, nan=np.inf)), excess.shape)
        allowed = np.broadcast_to(tolerance, excess.shape)[worst]
        raise ViolationError(
            f"{np.asarray(found)[worst]:.10g}, but {np.asarray(expected)[worst]:.10g} {how} "
            f"(they may differ by {allowed:.2g})"
        )


def require_derivative(derivative, function, x, name):
    """Require that `derivative` agrees with differences of `function` at x (m, d)."""
    values, slopes = function(x), derivative(x)
    require_array(slopes, (*np.shape(values), x.shape[1]), name)
    largest = max(np.abs(slopes).max(), np.abs(values).max())
    require_close(slopes, _difference(function, x), SLOPE_TOLERANCE * largest, "by differences")


def _difference(function, x):
    """Derivatives of function (m, d) to (m, ...) in each coordinate of x, on the last axis."""
    slopes = []
    for own in np.eye(x.shape[1]) * STEP:
        near = function(x + own) - function(x - own)
        far = function(x + 2 * own) - function(x - 2 * own)
        slopes.append((8 * near - far) / (12 * STEP))
    return np.stack(slopes, axis=-1)


def require_integrals(found, function, draws, how):
    """Require integrals (m,) that agree with averages of function (b, d) to (m, b) over draws."""
    total = squares = 0
    for block in np.split(draws, len(draws) // BLOCK):
        values = function(block)
        total, squares = total + values.sum(axis=1), squares + np.square(values).sum(axis=1)
    mean = total / len(draws)
    error = np.sqrt(np.maximum(squares / len(draws) - mean**2, 0) / len(draws))
    require_close(found, mean, STANDARD_ERRORS * error + 1e-9 * np.abs(mean), how)


def sampled(target):
    """Draws (n, d) for :func:`require_integrals`."""
    return target.sample(DRAWS, np.random.default_rng(0))


def same_stream(draw):
    """Require that draw(rng) repeats itself, and uses no other random numbers."""
    states = global_states()
    first, second = draw(np.random.default_rng(1)), draw(np.random.default_rng(1))
    require(global_states() == states, "it draws from a global random state: draw from rng instead")
    require(np.array_equal(first, second), "two calls with the same stream differ")


def other_stream(draw):
    """Require that draw(rng) depends on the stream."""
    first, second = draw(np.random.default_rng(1)), draw(np.random.default_rng(2))
    require(not np.array_equal(first, second), "two different streams give the same result")


def global_states():
    """The states of Python's and NumPy's global generators."""
    return pickle.dumps((random.getstate(), np.random.get_state()))  # noqa: NPY002
