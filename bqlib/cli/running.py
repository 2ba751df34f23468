"""Commands that run a sweep through Snakemake, and make a project to run it in."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from bqlib.cli.command import Command, NoAnswerError, ProblemError, loaded, without
from bqlib.results.layout import RESULTS
from bqlib.sweep import shipped

NAMED = ("local", "cluster", "batch")


def run(sweep, profile, others):
    """Check a sweep and run it; this process becomes Snakemake."""
    _require_snakemake()
    from bqlib.running import alive  # 20 ms

    there = list(alive.runs())
    if there:
        print(*there, sep="\n")
        print("This run is alive here. If Snakemake finds the folder locked, wait for that one.")
    elif alive.is_locked():
        raise NoAnswerError(
            "the last run here was killed: to continue it, give the same command with resume in "
            "place of run"
        )
    loaded(sweep, None)
    _become(_snakemake(sweep, profile, others))


def resume(sweep, profile, others):
    """Continue a run that was killed; this process becomes Snakemake."""
    _require_snakemake()
    import subprocess  # 10 ms

    from bqlib.running import alive  # 20 ms

    there = list(alive.runs())
    if there:
        print(*there, sep="\n")
        raise NoAnswerError(
            "a run is alive here, so there is none to resume: wait for it, or stop it first"
        )
    unlocked = subprocess.run(_snakemake(sweep, profile, ["--unlock"]))
    if unlocked.returncode:
        raise ProblemError("Snakemake could not unlock the folder, see above")
    _become(_snakemake(sweep, profile, ["--rerun-incomplete", *others]))


def init(folder):
    """Write a project of one's own: sweep, targets, profiles, Snakefile, README and .gitignore."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NoAnswerError(f"{folder} is not an empty folder: give a new one")
    folder.mkdir(parents=True, exist_ok=True)
    # A name with a dot would be left out of archives that packages are made from. One file goes
    # first, as its error says in one line that a folder cannot be written.
    shutil.copy(shipped.TEMPLATE / "gitignore", folder / ".gitignore")
    shutil.copytree(
        shipped.TEMPLATE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("gitignore")
    )
    shutil.copytree(shipped.PROFILES, folder / "profiles")
    for own in (shipped.TARGETS, shipped.SCHEMAS):
        shutil.copytree(own, folder / "config" / own.name)
    (folder / "cluster").symlink_to(Path("profiles", "cluster"))
    go = f"cd {folder} && " if folder.resolve() != Path.cwd() else ""
    print(f"{folder}: a project with a small sweep; to run it: {go}bqlib run")


def _require_snakemake():
    if importlib.util.find_spec("snakemake") is None:
        raise NoAnswerError(without("snakemake"))


def _snakemake(sweep, profile, others):
    """Snakemake's command for a sweep."""
    if others[:1] and Path(others[0]).suffix in (".yaml", ".yml"):
        raise NoAnswerError(f"two sweeps, {sweep} and {others[0]}: run them one after the other")
    found = profile
    if profile in NAMED:
        own = Path("profiles", profile)
        found = str(own if own.is_dir() else shipped.PROFILES / profile)
    if not Path(found, "config.yaml").is_file():
        raise NoAnswerError(
            f"--profile {profile}: no folder with a config.yaml; give {', '.join(NAMED)}, or the "
            "path of a profile"
        )
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(shipped.SNAKEFILE)]
    return [*command, "--profile", found, "--configfile", str(sweep), *others]


def _become(command):
    sys.stdout.flush()
    os.environ |= _cache()
    os.execv(command[0], command)


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


_SWEEP = (
    "sweep",
    {"nargs": "?", "help": "the sweep file (default: config/config.yaml here, or that of bqlib)"},
)
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
            "Further arguments are Snakemake's. The sweep comes first."
        ),
        examples=(
            "bqlib run",
            "bqlib run mine.yaml --profile cluster",
            "bqlib run mine.yaml --dry-run",
        ),
        arguments=(_SWEEP, _PROFILE),
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
        arguments=(_SWEEP, _PROFILE),
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
