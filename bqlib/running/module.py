"""The sweep of a workflow that is a module of another one: what the importing Snakefile gives it.

Its ``config`` holds the sweep under the key ``sweep``, as a path or a mapping, or its own keys are
those of the sweep. Other keys are the importing workflow's. A mapping is written to a file, which
the run's process and jobs on other machines read.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from bqlib.results.files import open_itself, write_atomically
from bqlib.running.errors import RunError
from bqlib.running.settings import SITE
from bqlib.sweep import yamlfile
from bqlib.sweep.file import checked, keys, shelf_of
from bqlib.sweep.words import quoted, shown

SWEEP = "sweep"
FOLDER = Path(".snakemake", "bqlib")  # beside what else Snakemake keeps of a working directory
OWN_MAPPING = f'config: {{"{SWEEP}": "FILE"}} in the module statement'


@dataclass(frozen=True)
class Stated:
    """A sweep as a mapping.

    Attributes
    ----------
    tree : dict
    lines : dict
        As :func:`bqlib.sweep.file.checked` takes them.
    source : str
        Where it comes from, as messages say it.
    folder : Path
        Where its relative paths start.
    problems : sequence of (int, str)
        Line and message of what is wrong with how it is written.
    """

    tree: dict
    lines: dict
    source: str
    folder: Path
    problems: tuple[tuple[int, str], ...] = ()

    @property
    def shelf(self):
        """Folder of the targets that it may call by name."""
        return shelf_of(self.folder / "sweep.yaml")

    def experiment(self):
        """The checked sweep; a SweepError has all problems."""
        return checked(
            self.tree,
            self.folder,
            self.shelf,
            lambda line: f"{self.source}:{line}" if line else self.source,
            self.lines,
            self.problems,
        )

    def written(self):
        """Path of a file that holds it. Its name tells its content, so that none ever changes."""
        data = yamlfile.text_of(self.tree).encode()
        if len(data) > yamlfile.MOST_BYTES:
            raise RunError(f"{self.source}: is too long: put large data into a .json file")
        name = hashlib.sha256(data).hexdigest()[:16]
        path = Path.cwd() / FOLDER / f"{name}.yaml"
        try:
            if not _holds(path, data):
                write_atomically(path, data)
        except OSError as error:
            raise RunError(
                f"{path} cannot be written ({error.strerror}): if it is there, remove it"
            ) from None
        return path


def _holds(path, data):
    """Whether a file has these bytes, whoever wrote it."""
    with suppress(OSError), open(path, "rb", opener=open_itself) as file:
        return file.read(len(data) + 1) == data
    return False


def refuse_moved_outputs(modifiers):
    """Refuse a module whose outputs Snakemake would move, and not what reads them.

    Parameters
    ----------
    modifiers : iterable
        (prefix, replacements) of each module around this workflow.

    Raises
    ------
    RunError
    """
    for prefix, replacements in modifiers:
        for word, given in (("prefix", prefix), ("replace_prefix", replacements)):
            if given:
                raise RunError(
                    f"module with {word}: it would move the outputs of rules alone, and not the "
                    f"paths by which the jobs find them. Leave {word} out: the results of a sweep "
                    "are in results/NAME, and its name keeps them apart from others"
                )


def refuse_another(experiment, known, results):
    """Refuse the sweep of a module, unless it is that of another one with its name.

    Parameters
    ----------
    experiment, known : bqlib.sweep.experiment.Experiment
        The sweeps of both modules.
    results : path-like
        Where the results of either would go.

    Raises
    ------
    RunError
    """
    if experiment.canonical() != known.canonical():
        raise RunError(
            f"two modules have different sweeps of the name {experiment.name}, so that both "
            f"results would go to {results}: give one of them another name"
        )


def stated_sweep(config, whole, files, given, read):
    """The sweep that an importing Snakefile gives to its module.

    Parameters
    ----------
    config : dict
        That of the module statement.
    whole : dict
        The importing workflow's.
    files : sequence of path-like
        Its config files, in its Snakefile and on the command line.
    given : dict
        What ``--config`` sets.
    read : callable
        Snakemake's way to read a config file.

    Returns
    -------
    Path or Stated

    Raises
    ------
    RunError
        If there is no sweep, if several config files or ``--config`` make it up together, or if a
        key is close to one of ours that is missing.
    """
    if not isinstance(config, Mapping):
        raise RunError(f"config of the module: must be a mapping, as in {OWN_MAPPING}")
    _refuse_near_keys(config)
    sweep = config.get(SWEEP, config)
    if isinstance(sweep, str | os.PathLike):
        if not os.path.isfile(sweep):
            raise RunError(f"config {SWEEP}={sweep}: there is no such file in {Path.cwd()}")
        return Path(sweep)
    if not isinstance(sweep, Mapping):
        raise RunError(
            f"config {SWEEP}: must be the path of a sweep file or a mapping, not {shown(sweep)}"
        )
    place = _place_of(sweep, whole)
    if place is not None:
        found = {file: _at(read(file), place) for file in _different(files)}
        holding = [file for file, values in found.items() if _ours(values)]
        _refuse_mixtures(holding, _ours(_at(given, place)))
        if len(holding) == 1 and _ours(found[holding[0]]) == _ours(sweep):
            return _of_file(holding[0], place, sweep if sweep is not config else _ours(sweep))
    source = "config" + "".join(f".{key}" for key in ([SWEEP] if SWEEP in config else []))
    return Stated(
        _plain(sweep if sweep is not config else _ours(sweep)), {(): 0}, source, Path.cwd()
    )


def _plain(sweep):
    """A mapping of Snakemake as one of lists and dicts."""
    try:
        return json.loads(json.dumps(sweep))
    except (TypeError, ValueError) as error:
        raise RunError(f"the sweep in config is not one that a file can state: {error}") from None


def _different(files):
    """Each file once."""
    return list({os.path.realpath(file): Path(file) for file in files}.values())


def _place_of(mapping, whole):
    """The keys that lead to a mapping in another one; None if it is not in there."""
    if mapping is whole:
        return ()
    for key, value in whole.items():
        below = _place_of(mapping, value) if isinstance(value, Mapping) else None
        if below is not None:
            return (key, *below)
    return None


def _at(mapping, place):
    """The mapping to which some keys lead; an empty one if there is none."""
    for key in place:
        mapping = mapping.get(key) if isinstance(mapping, Mapping) else None
    return mapping if isinstance(mapping, Mapping) else {}


def _refuse_mixtures(files, given):
    if len(files) > 1:
        raise RunError(
            f"config files {shlex.join(map(os.path.relpath, files))}: Snakemake merges them key by "
            "key into a sweep that none of them states. Keep the sweep's keys in one of them; or "
            f"give the sweep as a file of its own, with {OWN_MAPPING}"
        )
    if given:
        stated = os.path.relpath(files[0]) if files else "the sweep"
        raise RunError(
            f"--config {' '.join(given)}: would change the sweep into one that no file states. "
            f"Write it into {stated}"
        )


def _of_file(file, place, sweep):
    """A sweep that one config file states, with its lines and the numbers of YAML 1.2."""
    plain = Stated(_plain(sweep), {(): 0}, str(file), file.parent)
    try:
        tree, lines, problems = yamlfile.read(file)
    except yamlfile.UnreadableError:  # perhaps only for what is not ours
        return plain
    tree = _at(tree, place)
    if not plain.tree.keys() <= tree.keys():
        return plain
    lines = {loc[len(place) :]: line for loc, line in lines.items() if loc[: len(place)] == place}
    starts = tuple(yamlfile.dotted((*place, key)) for key in plain.tree)
    twice = tuple((line, text) for line, text in problems if text.startswith(starts))
    tree = {key: tree[key] for key in plain.tree}
    return Stated(tree, lines, str(file), file.parent, twice)


def _refuse_near_keys(config):
    known = [*keys(), SWEEP, SITE]
    plain = SWEEP not in config
    if plain and not set(config) & set(keys()):
        near = _near(config, known)
        hint = "".join(f'; {quoted(key)} may be meant as "{ours}"' for key, ours in near)
        raise RunError(
            f"config holds no sweep{hint}: write {OWN_MAPPING}, a mapping in place of FILE, or "
            "give the keys of a sweep themselves"
        )
    problems = [
        f'config {key}: unknown key {quoted(key)}; did you mean "{ours}"? If it is a key of your '
        f"own, write {OWN_MAPPING}: then nothing else in config is read but {SITE}"
        for key, ours in _near(config, known if plain else [SWEEP, SITE])
    ]
    if problems:
        raise RunError("\n".join(problems))


def _near(config, known):
    """(key, ours) of each foreign key that is close to one of ours which is missing."""
    missing = [key for key in known if key not in config]
    for key in config:
        if key not in known:
            found = get_close_matches(str(key).lower(), missing, n=1, cutoff=0.8)
            yield from ((key, ours) for ours in found)


def _ours(mapping):
    """A mapping without the keys of others, where it is a workflow's config."""
    return {key: value for key, value in mapping.items() if key in keys()}
