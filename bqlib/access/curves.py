"""Curves computed here and now, as a notebook wants them."""

import os
import warnings
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from numbers import Integral
from queue import SimpleQueue
from weakref import WeakSet

import bqlib.access.accessor  # noqa: F401, as it registers .bq
from bqlib.access.attempt import attempt, follow
from bqlib.results.codec import empty_arrays
from bqlib.results.lazy import in_memory
from bqlib.results.retry import WORKER_DIED
from bqlib.results.store import labels_of, provenance
from bqlib.results.text import one_line
from bqlib.schema import FAILED, OK, SWEEP_DIMS
from bqlib.sweep.blas import one_blas_thread
from bqlib.sweep.objects import experiments_of, united


def curves(
    target,
    kernel,
    algorithms,
    n,
    seeds,
    *,
    lengthscales=None,
    candidates=None,
    integrands=None,
    rate_windows=(),
    sizes=None,
    on=None,
    workers=None,
    progress=True,
):
    """Curves of algorithms at every number of points, computed here and now.

    Parameters
    ----------
    target : target, str or dict, or several
        An object such as ``bqlib.Uniform([0], [1])``; the name of a target of bqlib or the path of
        a ``.json`` file; or the keys of a target in a sweep. For several, a list of these, or a
        mapping from labels to objects.
    kernel : kernel, class, str or dict, or several
        An object such as ``bqlib.Matern(0.5)``, which has its length-scale. Or a class, a function
        of ``lengthscale``, a name such as ``"matern"``, or the keys of a kernel in a sweep: these
        take all `lengthscales`. For several, a list, or a mapping from labels to one of these each.
        A kernel without one number as its length-scale, such as a sum, a multiple or one of a
        class of yours, has the label 1.0 there.
    algorithms : str, function or dict, or a list of these
        Names such as ``"sbq"``, designs such as ``bqlib.sbq``, or
        ``{"name": ..., "design": ..., "weights": ...}``, with names or functions. A rule with
        parameters is ``{"family": "sbq", "refine": 5}``.
    n : int
        Largest number of points.
    seeds : int
        Number of replications: seeds 0 to seeds - 1.
    lengthscales : float or sequence of float, optional
        Of all kernels that are no objects. In the units of x, to 12 significant digits.
    candidates : bqlib.Candidates or dict, optional
        How each seed draws its pool. Default: ``bqlib.Candidates()``.
    integrands : dict, optional
        Label to the keys of a family of test functions, as in a sweep.
    rate_windows : sequence of (int, int), optional
        First and last n of the windows in which ``.bq.rates()`` fits.
    sizes : sequence of int, optional
        The n at which designs are made whose points are a set, such as ``"joint"``; their curves
        are NaN elsewhere. Default: 5, 10, 20, 50, 100, ... below `n`, and `n`. An error if no
        algorithm makes sets.
    on : {"threads", "processes"}, distributed.Client or concurrent.futures.Executor, optional
        Where trials run. Default: here, one after the other. Processes take seconds to start, and
        pay for runs of more than a minute. Threads start at once; as they wait for each other in
        Python, they pay only for thousands of candidates. Processes and a client's workers do not
        know the embeddings that a notebook registered: write these in a module.
    workers : int, optional
        How many threads or processes. Default: as many as there are cores for this process.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        In memory, of the form that :func:`bqlib.open_results` gives, with ``.bq``. A combination
        of kernel and length-scale that was not asked for has status 0. A trial that failed has
        status 2 and its ``reason``; if a process dies, so have the trials that were not finished.

    Raises
    ------
    bqlib.sweep.words.SweepError
        If a name is not known, a count is below 1, `n` is above the number of candidates, a kernel
        has no length-scale or no embedding for a target, or a design cannot work with them. It is
        a ValueError; its message lists every problem.
    ValueError
        If `on` is no such place, `workers` is below 1, or `on` has no workers.

    Warns
    -----
    UserWarning
        If trials failed.

    Notes
    -----
    The arrays are those of a sweep with the same content, bit for bit. The cost is that of the
    designs, O(M n^2) for a trial of SBQ with M candidates. An interrupt ends it at once and leaves
    no process; threads end after the trial that they are at. What was finished is lost: for runs of
    hours write a sweep, which keeps it. Jupyter interrupts the workers of a local Dask cluster too:
    make a new client after it.

    Examples
    --------
    >>> import bqlib
    >>> found = bqlib.curves(
    ...     bqlib.Uniform([0.0], [1.0]), bqlib.Matern(0.3), ["iid", "sbq"], n=20, seeds=2,
    ...     candidates=bqlib.Candidates(200), progress=False,
    ... )
    >>> found.mmd.sel(n=20).mean("seed").squeeze().values.round(4)
    array([0.1042, 0.0006])
    """
    _refuse_workers(on, workers)
    experiments = experiments_of(
        target, kernel, algorithms, n, seeds, lengthscales, candidates, integrands, rate_windows,
        sizes,
    )  # fmt: skip
    whole = united(experiments)
    labels = labels_of(whole)
    arrays = empty_arrays({name: len(each) for name, each in labels.items()}, SWEEP_DIMS)
    specs = [e.unsigned_spec(cell) for e in experiments for cell in e.cells()]
    trials = [(spec, seed) for seed in range(whole.seeds) for spec in specs]
    with closing(_outcomes(trials, on, workers)) as outcomes:
        for index, outcome in _shown(outcomes, len(trials), progress):
            spec, seed = trials[index]
            at = (*(labels[dim].index(getattr(spec.cell, dim)) for dim in SWEEP_DIMS), seed)
            _fill(arrays, at, outcome)
    _warn_of_failures(arrays)
    return in_memory(arrays, labels, provenance(whole))


def _lost(error):
    """Why a trial failed whose worker is lost."""
    return f"{WORKER_DIED}, or that of a trial beside it: {one_line(str(error))}"


def _fill(arrays, at, outcome):
    """Put what a trial gave in its place."""
    failed = isinstance(outcome, str)
    arrays["status"][at] = FAILED if failed else OK
    if failed:
        arrays["reason"][at] = outcome
        return
    for name, values in outcome.items():
        if name == "reason":
            arrays[name][at] = one_line(values)
        elif name == "points":  # targets may differ in dimension
            arrays[name][at][:, : values.shape[1]] = values
        else:
            arrays[name][at] = values


def _warn_of_failures(arrays):
    failed = arrays["status"] == FAILED
    if failed.any():
        tried = (arrays["status"] != 0).sum()
        warnings.warn(
            f"{failed.sum()} of {tried} trials failed, the first because of "
            f"{arrays['reason'][failed][0]} (status and reason of the dataset tell of each)",
            stacklevel=3,
        )


def _shown(outcomes, total, progress):
    """The outcomes as they come, with a progress bar."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")  # it is drawn as text then
        from tqdm.auto import tqdm  # takes 30 ms
    return tqdm(outcomes, total=total, desc="trials", unit="trial", disable=not progress)


def _refuse_workers(on, workers):
    if workers is None:
        return
    if on not in ("threads", "processes"):
        raise ValueError(f"workers is {workers!r}, but only 'threads' and 'processes' have any")
    if isinstance(workers, bool) or not isinstance(workers, Integral) or workers < 1:
        raise ValueError(f"workers is {workers!r}; it must be a whole number of at least 1")


def _outcomes(trials, on, workers):
    """(index, outcome) of each trial, as it ends."""
    if on is None:
        with one_blas_thread():
            for index, trial in enumerate(trials):
                yield index, attempt(*trial)
        return
    with _submitting(on, workers or len(os.sched_getaffinity(0))) as (submit, lost):
        running, ended = {}, SimpleQueue()  # as_completed never hears of those that are cancelled
        for index, trial in enumerate(trials):
            try:
                running[submit(attempt, *trial)] = index
            except lost as error:
                yield index, _lost(error)
        for future in running:
            future.add_done_callback(ended.put)
        for _ in range(len(running)):
            future = ended.get()
            try:
                outcome = future.result()
            except lost as error:
                outcome = _lost(error)
            except CancelledError:
                raise RuntimeError(
                    "a trial was cancelled: its executor or client was shut down meanwhile"
                ) from None
            yield running.pop(future), outcome


@contextmanager
def _submitting(on, workers):
    """The function that submits a trial, and the errors that say that its worker is lost.

    When this ends, no trial waits and no process is left.
    """
    if on == "threads":
        executor = ThreadPoolExecutor(workers)
        try:
            with one_blas_thread():
                yield executor.submit, ()
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
    elif on == "processes":
        from loky import ProcessPoolExecutor  # takes 50 ms

        executor = ProcessPoolExecutor(workers, initializer=follow, initargs=(os.getpid(),))
        try:
            yield executor.submit, BrokenExecutor
        finally:
            executor.shutdown(kill_workers=True)
    elif getattr(on, "asynchronous", False):
        raise ValueError("on is an asynchronous client; it must be one with asynchronous=False")
    elif hasattr(on, "get_executor") or isinstance(on, Executor):
        executor, lost = on, BrokenExecutor
        if not isinstance(on, Executor):
            from distributed import KilledWorker  # takes 0.6 s, and whoever has a client has it

            executor, lost = on.get_executor(pure=False), KilledWorker
        submitted = WeakSet()

        def submit(*work):
            trial = executor.submit(*work)
            submitted.add(trial)
            return trial

        try:
            yield submit, lost
        finally:
            for trial in submitted:
                trial.cancel()
    else:
        raise ValueError(
            f"on is {on!r}; it must be None, 'threads', 'processes', a Dask client or an executor"
        )
