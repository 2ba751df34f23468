"""Scores of a submission: the MMDs of its points, computed anew, as the curves of a sweep."""

import json
from collections import defaultdict
from dataclasses import replace

import numpy as np

from bqlib.candidates import Candidates
from bqlib.designs.design import Design
from bqlib.designs.own_weights import OwnWeights, own
from bqlib.embeddings import data_means, embed
from bqlib.results.codec import empty_arrays
from bqlib.results.damage import DamagedError, read_head
from bqlib.results.layout import Layout, has_results, head
from bqlib.results.lazy import in_memory
from bqlib.results.store import labels_of, provenance, write_curves
from bqlib.schema import DOES_NOT_APPLY, FAILED, MISSING, OF_PROBLEM, OK, SWEEP_DIMS
from bqlib.suite.mistakes import Mistakes
from bqlib.suite.table import POINTS
from bqlib.sweep.blas import one_blas_thread
from bqlib.sweep.experiment import Experiment
from bqlib.sweep.problems import problems as problems_of_suite
from bqlib.sweep.spec import Algorithm
from bqlib.trial import trial
from bqlib.weights import PrefixWeights, bq, uniform

SUBMITTED = "submission"  # in place of a design and a weight rule, and the attribute with the facts
RULES = {"uniform": uniform, "bq": bq, "own": own}
LARGEST_HEAD = 2**26  # bytes; those of the suite's scores take 1 MB
NOT_ENTERED = "the problem was not entered"
LEVELS_FROM = 0.5  # more of the seeds must reach a level
# Of (sum of absolute weights)^2 times the kernel's height: how an MMD^2 may round elsewhere.
ROUNDING = 64 * np.finfo(float).eps
UNSURE = 0.1  # of an MMD^2: beyond, its rounding counts in full


def score(submission):
    """MMDs of a submission, computed from its points alone by the functions of a sweep.

    Parameters
    ----------
    submission : bqlib.suite.submission.Submission

    Returns
    -------
    xarray.Dataset
        In memory, of the form that :func:`bqlib.open_results` gives for a sweep of problems, with
        ``.bq``. Its targets are all problems of the suite. Those that were not entered have status
        3, as if the method did not apply to them; seeds that were not have status 0. The one
        algorithm has the name of the method. The attribute ``submission`` holds what the submission
        says of itself and the sha256 of its files. ``mmd2_rounding``, which no sweep has, is by how
        much each MMD^2 may round, see :func:`rounding_of_square`.

    Raises
    ------
    SubmissionError
        If there are no points, or if the MMD of some cannot be computed.

    Notes
    -----
    O(n^3 + n^2 d) time for a sequence and O(n^2) memory, and the same for each set with BQ weights;
    once for each problem of a data set of M points O(M^2 d).

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from bqlib.suite.scores import score
    >>> from bqlib.suite.submission import write_submission
    >>> about = {
    ...     "method": "midpoints", "version": "1", "authors": ["A. Author"], "citation": "",
    ...     "licence": "CC0-1.0", "code": "", "information": [], "suite": "bqbench-1",
    ...     "kind": "set", "weights": "uniform",
    ... }
    >>> points = (np.arange(16)[:, None] + 0.5) / 16
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scored = score(write_submission(folder, about, [("box_1d_brownian", 0, points)]))
    >>> mmd = scored.mmd.sel(target="box_1d_brownian", n=16).squeeze()
    >>> bool(abs(mmd - 1 / (np.sqrt(12) * 16)) < 1e-12)
    True
    """
    mistakes = Mistakes()
    if not submission.sets:
        mistakes.add(POINTS, 0, "has no rows: there is nothing to score")
        mistakes.refuse()
    experiment = experiment_of(submission)
    labels = labels_of(experiment)
    arrays = empty_arrays({name: len(each) for name, each in labels.items()}, SWEEP_DIMS)
    heights = np.full_like(arrays["mmd"], np.nan)
    for i, name in enumerate(labels["target"]):
        if name not in submission.sets:
            arrays["status"][i] = DOES_NOT_APPLY
            arrays["reason"][i] = NOT_ENTERED
    with one_blas_thread():  # as in a sweep, whose last digits these are
        for name, seeds in submission.sets.items():
            problem = problems_of_suite()[name]
            target, kernel = problem.build()
            means = data_means(kernel, target)
            for seed, sets in seeds.items():
                try:
                    found = _curves(problem, target, kernel, submission.about, seed, sets, means)
                except (ArithmeticError, ValueError) as error:
                    line = min(points.line for points in sets.values())
                    mistakes.add(POINTS, line, f"problem {name}, seed {seed}: {error}")
                    continue
                at = (labels["target"].index(name), 0, 0, 0, seed)
                for variable, values in found.items():
                    if np.ndim(values):
                        own_part = tuple(slice(size) for size in np.shape(values))
                        arrays[variable][at][own_part] = values
                    else:
                        arrays[variable][at] = values
                arrays["status"][at] = OK
                for n, found in sets.items():  # of a sequence, the last one has all its points
                    height = kernel.diagonal(found.points).max()
                    heights[at][n - 1 if submission.about.kind == "set" else ...] = height
    mistakes.refuse()
    facts = submission.about.model_dump() | {"sha256": submission.sha256}
    attributes = {SUBMITTED: json.dumps(facts, sort_keys=True, allow_nan=False)}
    dataset = in_memory(arrays, labels, provenance(experiment) | attributes)
    rounding = _rounding_of_square(dataset["mmd"].copy(data=heights), dataset["weight_l1"])
    return dataset.assign(mmd2_rounding=rounding)


def experiment_of(submission):
    """The sweep of problems that a submission stands for: all of the suite, with one algorithm."""
    about, suite = submission.about, problems_of_suite()
    algorithm = Algorithm(
        about.method,
        SUBMITTED,
        SUBMITTED,
        # So that other points under the same name are told apart where results are merged.
        {"version": about.version, "points": submission.sha256[POINTS][:16]},
        {"rule": about.weights},
        _sizes_of(submission),
    )
    return Experiment(
        name=about.method,
        title=f"{about.method} {about.version}, submitted to {about.suite}",
        targets={name: problem.target for name, problem in suite.items()},
        kernels={OF_PROBLEM: {}},
        lengthscales=(1.0,),
        algorithms=(algorithm,),
        candidates=Candidates(),
        integrands={},
        n=max(problem.n for problem in suite.values()),
        seeds=submission.seeds,
        seeds_per_job=submission.seeds,
        rate_windows=(),
        problems={name: problem.settings() for name, problem in suite.items()},
    )


def write_scores(dataset, folder):
    """Write the scores of a submission as ``curves.zarr``, which :func:`bqlib.open_results` opens.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`score` gives it.
    folder : path-like
        It is made if it is missing. Scores that are there already are replaced.

    Returns
    -------
    Path
        The store.

    Raises
    ------
    FileExistsError
        If the folder holds results of a run.

    Notes
    -----
    O(N) time for N numbers, one problem at a time.
    """
    at = Layout(folder)
    if has_results(folder) and not _are_scores(at.curves):
        raise FileExistsError(
            f"{folder} holds results that are no scores of a submission: give another folder"
        )
    write_curves(dataset.drop_vars("mmd2_rounding", errors="ignore"), at.curves)
    return at.curves


def table_of_scores(dataset):
    """What scores come to, by problem.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`score` gives it, or of one algorithm of a sweep of problems.

    Returns
    -------
    list of dict
        For each problem that was entered ``problem``, ``seeds``, ``n`` (the largest that all seeds
        have), ``mmd`` (its median over seeds, see :func:`scored_mmd`; None if seeds have no n in
        common, or half of them failed), ``of_no_points`` (the MMD of no points), ``best_known``
        (the least MMD known at any n), ``levels`` (how many more than half of the seeds reach;
        those that failed reach none) and ``of_levels``.
    """
    return rows_of(dataset, scored_mmd(dataset))


def scored_mmd(dataset):
    """The MMDs that count: where rounding may hide more of one, a bound that it is not above.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`score` gives it, or of one algorithm of a sweep of problems.

    Returns
    -------
    xarray.DataArray
        Like ``mmd``. Where MMD^2 may round by more than a tenth, the root of MMD^2, or of 0 below
        the rounding of float64, with its rounding added: 64 eps (sum |w|)^2 max k(x, x).
    """
    mmd, of_square = dataset["mmd"], rounding_of_square(dataset)
    bound = np.sqrt(mmd.fillna(0.0) ** 2 + of_square)
    return mmd.where(of_square <= UNSURE * mmd**2, bound)


def rounding_of_square(dataset):
    """By how much each MMD^2 may round, of the form of the curves; NaN where there are no weights.

    It is 64 eps (sum |w|)^2 max k(x, x).

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`score` gives it, or of one algorithm of a sweep of problems. The latter has of a
        set the points of the largest n alone, which then stand for those of every n.
    """
    if "mmd2_rounding" in dataset:
        return dataset["mmd2_rounding"]
    heights = []
    for name in dataset["target"].values.tolist():
        points = dataset["points"].sel(target=name).values.reshape(-1, dataset.sizes["dim"])
        target, kernel = problems_of_suite()[name].build()
        points = points[np.isfinite(points[:, 0]), : target.dim]
        heights.append(kernel.diagonal(points).max() if len(points) else np.nan)
    heights = dataset["target"].copy(data=np.array(heights))
    return _rounding_of_square(heights, dataset["weight_l1"])


def _rounding_of_square(heights, weight_l1):
    return (ROUNDING * heights * weight_l1**2).transpose(*weight_l1.dims)


def rows_of(dataset, mmds_that_count):
    """As :func:`table_of_scores`, for given MMDs."""
    rows = []
    entered = {*dataset["target"].values.tolist()}
    for name, problem in problems_of_suite().items():
        if name not in entered:
            continue
        trials = dataset.sel(target=name).squeeze(("kernel", "lengthscale", "algorithm"))
        status = trials["status"].values
        if not (status == OK).any():
            continue
        tried, failed = status != MISSING, status[status != MISSING] == FAILED
        ranks = trials["rank_reached"].values[status == OK].astype(int)
        mmds = mmds_that_count.sel(target=name).squeeze(("kernel", "lengthscale", "algorithm"))
        mmds = np.where(failed[:, None], np.inf, mmds.values[tried])
        by_all = np.flatnonzero(np.isfinite(trials["weight_sum"].values[status == OK]).all(axis=0))
        largest = int(by_all[-1]) + 1 if len(by_all) else int(ranks.max())
        last = np.median(mmds[:, largest - 1]) if len(by_all) else np.nan
        least = np.nanmin(mmds, axis=1, initial=np.inf)
        reached = (least[:, None] <= np.array(problem.levels)).mean(axis=0) > LEVELS_FROM
        rows.append(
            {
                "problem": name,
                "seeds": int(tried.sum()),
                "n": largest,
                "mmd": float(last) if np.isfinite(last) else None,
                "of_no_points": float(np.sqrt(problem.prior_variance)),
                "best_known": min((mmd for _, mmd, _ in problem.best_known), default=None),
                "levels": int(reached.sum()),
                "of_levels": len(problem.levels),
            }
        )
    return rows


def _curves(problem, target, kernel, about, seed, sets, means):
    """Curves of one problem and seed, as a trial of a sweep gives them."""
    sizes = tuple(sorted(sets)) if about.kind == "set" else ()
    own_sequence = about.weights == "own" and not sizes
    end = max(sets)
    stop = "" if end == problem.n or sizes else f"points were submitted up to n = {end}"

    def submitted(target, kernel, n, *, rng, candidates):
        found = sets[n] if sizes else sets[end]
        rule = OwnWeights(found.weights) if about.weights == "own" else bq
        return Design(embed(kernel, target), found.points, rule, stop)

    rule = _Listed(sets) if own_sequence else RULES[about.weights]
    pool = replace(problem.candidates, size=1)  # which no submission asks for
    found = trial(target, kernel, submitted, rule, pool, problem.n, seed, sizes=sizes, means=means)
    if own_sequence:
        unlisted = [n - 1 for n in range(1, end + 1) if n not in sets]
        for name in ("mmd", "weight_sum", "weight_l1", "min_weight", "duplicates"):
            found[name][unlisted] = np.nan
    return found


class _Listed:
    """The rule of a sequence with weights of its own: those at each n that is listed, else zero."""

    def __init__(self, sets):
        self.sets, self.__name__ = sets, SUBMITTED

    def __call__(self, embedding, points):
        matrix = np.zeros((len(points), len(points)))
        for n, found in self.sets.items():
            matrix[n - 1, :n] = found.weights
        return PrefixWeights(matrix)


def _sizes_of(submission):
    """The n at which a submission is scored; none if its curves have every n."""
    listed = defaultdict(set)
    for name, seeds in submission.sets.items():
        for seed, sets in seeds.items():
            listed[name, seed] |= {*sets}
    about = submission.about
    every = about.weights != "own" or all(len(ns) == max(ns) for ns in listed.values())
    if about.kind == "sequence" and every:
        return ()
    return tuple(sorted(set().union(*listed.values())))


def _are_scores(store):
    """Whether a store is one that :func:`write_scores` wrote, as far as its head tells."""
    try:
        small = head(store).is_file() and head(store).stat().st_size <= LARGEST_HEAD
        return small and SUBMITTED in read_head(store)["attributes"]
    except DamagedError:
        return False
