"""Parts of a sweep that cannot work together at any seed, by what their code itself requires."""

from bqlib.sweep import plugins
from bqlib.sweep.build import build_kernel


def unworkable(experiment, targets):
    """What is certain to fail of a sweep whose keys are right one by one.

    A design or weight rule may have a function as its attribute ``requires``, see
    :func:`bqlib.designs.design.requires`. It is asked for every target, kernel and length-scale.

    Parameters
    ----------
    experiment : bqlib.sweep.experiment.Experiment
    targets : dict
        Label to target object.

    Returns
    -------
    list of (tuple, str)
        Location in the sweep and message of each problem.
    """
    found = {}  # location and message, to the labels of the pairs
    kernels = [
        (f"target {label}, kernel {name}", target, build_kernel(content, lengthscale, target))
        for label, target in targets.items()
        for name, content in experiment.kernels.items()
        for lengthscale in sorted({min(experiment.lengthscales), max(experiment.lengthscales)})
    ]
    for i, algorithm in enumerate(experiment.algorithms):
        for label, target, kernel in kernels:
            sizes = algorithm.sizes or (experiment.n,)
            for text in _refusals(algorithm, target, kernel, sizes, experiment.candidates):
                if len(algorithm.sizes) > 1 or algorithm.sizes not in ((), (experiment.n,)):
                    text += f". This is one of the sizes: {list(algorithm.sizes)}"
                found.setdefault((("algorithms", i), text), []).append(label)
    return [
        (loc, f"{text} ({'; '.join(dict.fromkeys(labels))})")
        for (loc, text), labels in found.items()
    ]


def inapplicable(experiment):
    """Which algorithms of a sweep of problems cannot work on which problems, as :func:`unworkable`.

    Parameters
    ----------
    experiment : bqlib.sweep.experiment.Experiment

    Returns
    -------
    dict of str to dict of str to str
        Algorithm to problem to why; only algorithms with such a problem.
    """
    found = {}
    pairs = {}  # each is built once, as data sets may be large
    for cell in experiment.cells():
        spec = experiment.unsigned_spec(cell)
        pair = pairs.get(cell.target) or spec.build()
        pairs = {cell.target: pair}
        sizes = spec.algorithm.sizes or (spec.n,)
        texts = _refusals(spec.algorithm, *pair, sizes, spec.candidates)
        if texts:
            found.setdefault(cell.algorithm, {})[cell.target] = texts[0]
    return found


def _refusals(algorithm, target, kernel, sizes, candidates):
    """Why an algorithm cannot work on a pair: what its design or its weight rule says."""
    texts = {}
    parts = zip(
        ("design", "weights"),
        algorithm.build(),
        (algorithm.design_parameters, algorithm.weights_parameters),
        strict=True,
    )
    for kind, function, parameters in parts:
        requirement = getattr(function, "requires", None)
        if requirement is None:
            continue
        name = plugins.without_folder(getattr(algorithm, kind))
        for n in sizes:
            try:
                requirement(target, kernel, n, candidates=candidates, **parameters)
            except (Exception, SystemExit) as error:  # a plug-in may raise any
                texts[f"{kind} {name} cannot work: {plugins.reason_of(error)}"] = None
    return list(texts)
