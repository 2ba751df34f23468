"""What a command or a profile sets beside the sweep file: the site file, and nothing else."""

import os
import shlex
from pathlib import Path

from bqlib.running.errors import RunError
from bqlib.sweep import shipped

SITE = "site"  # the one key of --config that is ours
DEFAULT_SITE = "profiles/local/site.yaml"


def refuse_settings(given, files):
    """Refuse what would be ignored, where this workflow is run by itself.

    Parameters
    ----------
    given : dict
        What ``--config`` of the command sets, or ``config`` of the profile.
    files : sequence of Path
        Those of ``--configfile``.

    Raises
    ------
    RunError
        With all problems.
    """
    problems = []
    if len(files) > 1:
        names = shlex.join(map(os.path.relpath, files))
        problems.append(
            f"--configfile {names}: Snakemake would merge these files into a sweep that none of "
            "them states. Give one sweep file, and write what the others add into it; run other "
            "sweeps by commands of their own"
        )
    sweep = os.path.relpath(files[-1]) if files else "the sweep file"
    problems += [
        f"--config {key}={value}: has no effect, as only {SITE} can be set with --config (or with "
        f"config in a profile). If it is a key of the sweep, write it into {sweep}"
        for key, value in given.items()
        if key != SITE
    ]
    if problems:
        raise RunError("\n".join(problems))


def default_sweep():
    """The sweep of a run that names none: ``config/config.yaml`` here, or that of bqlib."""
    own = Path("config", "config.yaml")
    return own if own.is_file() else shipped.DEFAULT_SWEEP


def sweep_file(word):
    """The file of a sweep: a path, or a name such as ``suite`` of one in ``config/``.

    Parameters
    ----------
    word : str
        The name is that of a file in ``config/`` here, or else of one that comes with bqlib.

    Returns
    -------
    Path
        It may not exist.
    """
    path = Path(word)
    if not path.suffix and not path.exists() and path.name == word:
        for folder in (Path("config"), shipped.DEFAULT_SWEEP.parent):
            if (folder / f"{word}.yaml").is_file():
                return folder / f"{word}.yaml"
    return path


def site_file(config, of_profiles, project, by="--config "):
    """Path of the site file.

    Parameters
    ----------
    config : dict
        The workflow's config, from the command and its profiles.
    of_profiles : callable
        Gives what the profiles alone set, a dict. Called only where `config` has no site.
    project : Path
        Folder of the workflow, at which relative paths start that lead to no file from the working
        directory.
    by : str, optional
        How the site was given, for messages.

    Raises
    ------
    RunError
        If the command replaces the profile's site by none, or if there is no such file.
    """
    if SITE not in config:
        lost = of_profiles().get(SITE)
        if lost is not None:
            raise RunError(
                f"--config replaces all that the profile sets with config, so that its site file "
                f"would be lost: add {SITE}={lost} to --config"
            )
    name = config.get(SITE, DEFAULT_SITE)
    if not isinstance(name, str):
        raise RunError(f"{by}{SITE}={name}: must be the path of a site file")
    path = Path(name) if Path(name).is_file() else project / name
    if not path.is_file():
        start = "" if os.path.isabs(name) else f", nor one in {Path.cwd()}"
        raise RunError(f"{by}{SITE}={name}: there is no site file {path}{start}")
    return path
