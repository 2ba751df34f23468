"""Commands that run a sweep through Snakemake, and make a project to run it in."""

import getpass
import importlib.util
import os
import shlex
import shutil
import sys
from pathlib import Path

from bqlib.cli.command import (
    SWEEP_FILE,
    Command,
    NoAnswerError,
    ProblemError,
    existing,
    without,
)
from bqlib.results.layout import RESULTS
from bqlib.running.settings import default_sweep, sweep_file
from bqlib.sweep import shipped

NAMED = ("local", "cluster", "batch")
# Without it, Python would take a file select.py of the working directory for a module of its own.
SAFE = {"PYTHONSAFEPATH": "1"}


def run(sweep, profile, others):
    """Run a sweep; this process becomes Snakemake, see :mod:`bqlib.running.start`."""
    _require_snakemake()
    from bqlib.running import alive  # 20 ms

    command = _snakemake(sweep, profile, others)
    there = list(alive.runs()) or list(_of_others())
    if there:
        print(*there, sep="\n")
        if "--unlock" in others:
            raise NoAnswerError("a run is alive here and needs its lock: wait for it, or stop it")
        print("This run is alive here. If Snakemake finds the folder locked, wait for that one.")
    elif alive.is_locked() and "--unlock" not in others:
        raise NoAnswerError(
            "the last run here was killed: to continue it, give the same command with resume in "
            "place of run"
        )
    sweep = sweep or default_sweep()
    if sweep == shipped.DEFAULT_SWEEP:
        print(f"No config/config.yaml is here, so this runs the sweep of bqlib: {sweep}")
    existing(sweep)
    _become(command)


def resume(sweep, profile, others):
    """Continue a run that was killed; this process becomes Snakemake."""
    _require_snakemake()
    import subprocess  # 10 ms

    from bqlib.running import alive  # 20 ms

    command = _snakemake(sweep, profile, ["--rerun-incomplete", *others])
    there = list(alive.runs()) or list(_of_others())
    if there:
        print(*there, sep="\n")
        raise NoAnswerError(
            "a run is alive here, so there is none to resume: wait for it, or stop it first"
        )
    unlock = _snakemake(sweep, profile, ["--unlock"])
    if subprocess.run(unlock, env=os.environ | _environment()).returncode:
        raise ProblemError("Snakemake could not unlock the folder, see above")
    _become(command)


def _of_others():
    """Messages on results in use: the processes of other users do not tell their folders."""
    from bqlib.results.layout import Layout
    from bqlib.running import alive
    from bqlib.running.errors import RunError
    from bqlib.running.session import LOCK_SECONDS, lock  # 50 ms

    if not alive.is_locked():
        return
    for folder in RESULTS.glob("*"):
        if os.access(Layout(folder).lock, os.W_OK):
            try:
                lock(folder, LOCK_SECONDS).close()
            except RunError as error:
                yield str(error)


def init(folder):
    """Write a project of one's own: sweep, targets, profiles, Snakefile, README and .gitignore."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NoAnswerError(f"{folder} is not an empty folder: give a new one")
    existed = folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _copy(shipped.TEMPLATE, folder)
        # With its dot, it would be left out of archives that packages are made from.
        (folder / "gitignore").rename(folder / ".gitignore")
        _copy(shipped.PROFILES, folder / "profiles")
        for own in (shipped.TARGETS, shipped.SCHEMAS):
            _copy(own, folder / "config" / own.name)
        (folder / "cluster").symlink_to(Path("profiles", "cluster"))
    except OSError:  # as where the disk is full: half a project could not be told from a whole one
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        if not existed:
            folder.rmdir()
        raise
    name = f"./{folder}" if str(folder).startswith("-") else str(folder)
    go = f"cd {shlex.quote(name)} && " if folder.resolve() != Path.cwd() else ""
    print(f"{folder}: a project with a small sweep; to run it: {go}bqlib run")


def _copy(source, folder):
    """Copy the files below a folder, and not the modes that an installation gave them."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.is_dir():
            _copy(path, folder / path.name)
        else:
            shutil.copyfile(path, folder / path.name)


def is_yaml(word):
    """Whether a word of a command line names a YAML file."""
    return word.endswith((".yaml", ".yml"))


def _require_snakemake():
    if importlib.util.find_spec("snakemake") is None:
        raise NoAnswerError(without("snakemake"))


def _snakemake(sweep, profile, others):
    """Snakemake's command for a sweep."""
    for word in others:
        if word.startswith("--configfile"):
            raise NoAnswerError(f"{word}: give the sweep in front, as in bqlib run mine.yaml")
        if word.partition("=")[0] in ("-s", "--snakefile"):
            raise NoAnswerError(
                f"{word}: this runs the workflow of bqlib; for others, snakemake {word}"
            )
        if word.partition("=")[0] in ("-d", "--directory"):
            raise NoAnswerError(f"{word}: change to that folder, and give the command there")
        if is_yaml(word) and Path(word).is_file():
            if sweep:
                raise NoAnswerError(f"two sweeps, {sweep} and {word}: run them one after the other")
            raise NoAnswerError(f"the sweep {word} must come before the arguments of Snakemake")
    found = profile
    if profile in NAMED:
        own = Path("profiles", profile)
        found = str(own if own.is_dir() else shipped.PROFILES / profile)
    if not Path(found, "config.yaml").is_file():
        raise NoAnswerError(
            f"--profile {profile}: no folder with a config.yaml; give {', '.join(NAMED)}, or the "
            "path of a profile"
        )
    command = [sys.executable, "-m", "bqlib.running.start"]
    # The Snakefile is last, as the others may take targets among Snakemake's arguments for theirs.
    command += ["--configfile", str(sweep_file(sweep) if sweep else default_sweep())]
    command += ["--profile", found]
    return [*command, "--snakefile", str(shipped.SNAKEFILE), *others]


def _become(command):
    sys.stdout.flush()
    os.environ |= _environment()
    os.execv(command[0], command)


def _environment():
    """What Snakemake needs; a user of a container may have no name, and no home."""
    try:
        getpass.getuser()
        name = {}
    except (KeyError, OSError):
        name = {"LOGNAME": str(os.getuid())}
    return SAFE | name | _cache()


def _cache():
    """The cache of Snakemake, which does not start without: here, if there is none."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(home, "snakemake")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return {}
    except OSError:
        pass
    return {"XDG_CACHE_HOME": str(Path(".snakemake", "cache").absolute())}


_PROFILE = (
    "--profile",
    {
        "default": "local",
        "help": "local, cluster or batch, here in profiles/ or that of bqlib, or the path of a "
        "profile (default: local)",
    },
)

COMMANDS = (
    Command(
        name="run",
        run=run,
        summary="run a sweep",
        about=(
            "Checks a sweep and runs it through Snakemake, on this machine or, with --profile "
            f"cluster, on a batch system. Results go to {RESULTS}/NAME in the working directory. "
            "Further arguments are Snakemake's, and come after the sweep."
        ),
        examples=(
            "bqlib run",
            "bqlib run mine.yaml --profile cluster",
            "bqlib run mine.yaml --dry-run",
        ),
        arguments=(SWEEP_FILE, _PROFILE),
        passes_on=True,
    ),
    Command(
        name="resume",
        run=resume,
        summary="continue a run that was killed",
        about=(
            "Unlocks the working directory and goes on with a run that was killed. It is refused "
            "while a run is alive here. Arguments are those of run."
        ),
        examples=("bqlib resume", "bqlib resume mine.yaml --profile cluster"),
        arguments=(SWEEP_FILE, _PROFILE),
        passes_on=True,
    ),
    Command(
        name="init",
        run=init,
        summary="write a project with a sweep, profiles and a README",
        about=(
            "Writes a project of your own into a new folder: a sweep with comments, targets, "
            "profiles with their site files, and a Snakefile, so that plain snakemake runs it too."
        ),
        examples=("bqlib init demo",),
        arguments=(("folder", {"help": "the folder to write, which must be new or empty"}),),
    ),
)
