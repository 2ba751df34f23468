"""What runs on a Dask worker: trials, within the worker's memory and by the right code."""

import gc
import socket
import sys
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version

from distributed import WorkerPlugin, get_worker

from bqlib.results.retry import OUT_OF_MEMORY
from bqlib.results.text import failure_of, one_line
from bqlib.running.errors import OtherCodeError
from bqlib.sweep.blas import one_blas_thread
from bqlib.sweep.datapoints import DataFileError
from bqlib.sweep.from_file import hold
from bqlib.sweep.plugins import PluginError


def means_for(spec, expected):
    """What the trials of a spec at all seeds have in common, see :meth:`Spec.data_means`.

    None where it cannot be had: each trial then fails by itself, or finds a way.

    Raises
    ------
    OtherCodeError
        As :func:`attempt`.
    """
    where = _checked(spec, expected)
    with memory_limited(own_memory()):
        try:
            _hold(spec, where)
            return spec.data_means()
        except OtherCodeError:
            raise
        except BaseException:
            return None


def attempt(spec, seeds, expected, means=None):
    """Run a spec at some seeds, within the worker's memory and by the versions that are expected.

    Parameters
    ----------
    spec : Spec or StudySpec
    seeds : sequence of int
    expected : dict
        What :func:`versions` gave in the run's process.
    means : bqlib.embeddings.DataMeans, optional
        What :func:`means_for` gave for the spec, or for another one that differs in its algorithm.

    Returns
    -------
    list of ((dict of ndarray, float), or str)
        For each seed, the arrays and the seconds, or why it failed.

    Raises
    ------
    OtherCodeError
        If the worker runs other versions, or other code than the spec's digest stands for, cannot
        load a plug-in, or finds other points in a data file than the digest stands for.
    """
    where = _checked(spec, expected)
    # The limit of threads is set once for all trials, as each search for libraries takes 1 ms.
    with memory_limited(own_memory()), one_blas_thread():
        return [_outcome(spec, seed, where, means) for seed in seeds]


def _checked(spec, expected):
    """The name of this machine; raises an OtherCodeError if it has other code."""
    where = socket.gethostname()
    refuse_other_versions(versions(), expected, where)
    try:
        code = spec.code_here()
    except PluginError as error:
        raise OtherCodeError(f"the worker on {where} has not all plug-ins: {error}") from None
    if code != spec.fingerprint:
        raise OtherCodeError(
            f"the worker on {where} runs other code: was bqlib or a plug-in changed during the "
            "run? Start it again"
        )
    return where


def _hold(spec, where):
    """Have the points of a spec's data file in this process."""
    try:
        hold(spec.target)
    except DataFileError as error:
        raise OtherCodeError(f"the worker on {where} lacks the data: {error}") from None


def _outcome(spec, seed, where, means):
    """Arrays and seconds of one trial, or why it failed."""
    try:
        _hold(spec, where)
        given = {} if means is None else {"means": means}
        arrays, seconds = spec.run(seed, **given)
    except OtherCodeError:
        raise
    except MemoryError as error:
        return one_line(f"{OUT_OF_MEMORY}: {error}".removesuffix(": "))
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        # Dask would close the worker for good, and tell nobody why.
        return failure_of(RuntimeError(f"its code raised {error!r}, which ends programs"))
    except BaseException as error:
        # One that is no Exception, such as asyncio's for a cancelled task, would end all trials.
        return failure_of(error)
    return arrays, round(seconds, 4)


def refuse_other_versions(theirs, ours, worker):
    """Raise an OtherCodeError unless a worker's versions are those of this process."""
    if theirs != ours:
        pairs = [f"{k} {theirs.get(k)} and not {ours[k]}" for k in ours if theirs.get(k) != ours[k]]
        raise OtherCodeError(f"worker {worker} runs {', '.join(pairs)}: make them equal")


class EndsQuickly(WorkerPlugin):
    """Lets a worker's process end without a last search for cycles among its objects, 0.3 s."""

    def teardown(self, worker):
        gc.freeze()


@cache
def versions():
    """Versions that results depend on."""
    packages = {name: version(name) for name in ("bqlib", "numpy", "scipy")}
    return packages | {"python": ".".join(map(str, sys.version_info[:2]))}


def own_memory():
    """Bytes of memory that the worker of this thread has; None where it is not limited."""
    return get_worker().memory_manager.memory_limit


@contextmanager
def memory_limited(limit):
    """Let allocations of this process beyond `limit`, a worker's bytes, raise a MemoryError.

    Without it, what runs out of memory is the machine or the job, and that kills the worker.
    A sixteenth and 256 MiB are left to Python and to the process that watches over the worker.
    """
    import resource  # not on every system

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if limit:
        wanted = max(limit - limit // 16 - 2**28, limit // 2)
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
