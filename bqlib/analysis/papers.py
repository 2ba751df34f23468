"""Which papers a sweep is of: those whose settings and algorithms it has."""

import json

from bqlib.analysis.cells import kernel_of
from bqlib.published import has_papers_settings, setting_of_hayakawa2022


def is_of_huszar2012(experiment):
    """Whether a sweep has SBQ and herding at the settings of Huszar and Duvenaud (2012).

    Only then can their claims be judged; some need studies too, and say so.

    Parameters
    ----------
    experiment : bqlib.sweep.experiment.Experiment
    """
    names = {algorithm.name for algorithm in experiment.algorithms}
    return {"sbq", "herding"} <= names and any(
        has_papers_settings(cell.target, experiment.kernels[cell.kernel], cell.lengthscale)
        for cell in experiment.cells()
    )


def is_of_hayakawa2022(experiment):
    """Whether a sweep has recombination from 10 n draws at published settings of Hayakawa et al.

    Parameters
    ----------
    experiment : bqlib.sweep.experiment.Experiment
    """
    names = {algorithm.name for algorithm in experiment.algorithms}
    return "recombination_10n" in names and any(
        setting_of_hayakawa2022(target, kernel)
        for target in experiment.targets.values()
        for kernel in experiment.kernels.values()
    )


IS_OF = {"huszar2012": is_of_huszar2012, "hayakawa2022": is_of_hayakawa2022}


def papers_of(experiment):
    """Keys of the papers that a sweep is of, as in :data:`bqlib.claims.PAPERS`.

    Parameters
    ----------
    experiment : bqlib.sweep.experiment.Experiment

    Returns
    -------
    tuple of str
    """
    return tuple(key for key, is_of in IS_OF.items() if is_of(experiment))


def hayakawa2022_setting(dataset, cell):
    """Dimension and order of a cell that has published errors of Hayakawa's, or None.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it.
    cell : dict
        Labels of at least its target and kernel.
    """
    config = json.loads(dataset.attrs["config"])
    target, kernel = config["targets"][cell["target"]], kernel_of(config, cell)
    return setting_of_hayakawa2022(target, kernel)
