"""Commands that run sweeps: what they refuse, what they hand to Snakemake, and what they write."""

import os
import pwd
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from checkout import SWEEP

from bqlib.cli import running
from bqlib.cli.main import main
from bqlib.results.layout import Layout
from bqlib.running.session import lock
from bqlib.sweep import shipped


@pytest.fixture
def become(monkeypatch, tmp_path):
    """The commands that would replace this process, from a working directory with a sweep."""
    commands = []
    monkeypatch.setattr(os, "execv", lambda program, command: commands.append(command))
    monkeypatch.setattr(os, "environ", os.environ.copy())  # which is changed for the command
    monkeypatch.chdir(tmp_path)
    Path("config").mkdir()
    Path("config/config.yaml").write_text(SWEEP)
    Path("mine.yaml").write_text(SWEEP)
    return commands


PLAIN = [sys.executable, "-m", "bqlib.running.start", "--configfile"]
SNAKEFILE = ["--snakefile", str(shipped.SNAKEFILE)]


@pytest.mark.parametrize(
    ("words", "profile", "sweep", "others"),
    [
        ([], "local", "config/config.yaml", []),
        (["mine.yaml", "-n"], "local", "mine.yaml", ["-n"]),
        (["-n", "--until", "rates"], "local", "config/config.yaml", ["-n", "--until", "rates"]),
        (["--profile", "cluster", "mine.yaml", "-n"], "cluster", "mine.yaml", ["-n"]),
        (["mine.yaml", "--until", "gather", "--profile", "cluster", "-j", "4"], "cluster",
         "mine.yaml", ["--until", "gather", "-j", "4"]),
    ],
)  # fmt: skip
def test_what_is_not_ours_is_handed_to_snakemake_in_its_order(
    become, words, profile, sweep, others
):
    assert main(["run", *words]) == 0
    profile = str(shipped.PROFILES / profile)
    assert become == [[*PLAIN, sweep, "--profile", profile, *SNAKEFILE, *others]]


def test_profiles_of_ones_own_come_first(become):
    own = Path("profiles", "local")
    own.mkdir(parents=True)
    (own / "config.yaml").write_text("cores: 1\n")
    assert main(["run"]) == 0
    assert main(["run", "mine.yaml", "--profile", str(own.absolute())]) == 0
    assert [command[6] for command in become] == ["profiles/local", str(own.absolute())]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "none.yaml"], 2, "none.yaml: no such file; sweeps here: config/config.yaml, bad"),
        (["run", "--profile", "nowhere"], 2, "--profile nowhere: no folder with a config.yaml"),
        (["run", "mine.yaml", "bad.yaml"], 2, "two sweeps, mine.yaml and bad.yaml: run them one"),
        (["run", "mine.yaml", "-n", "bad.yaml"], 2, "two sweeps, mine.yaml and bad.yaml: run"),
        (["run", "mine.yaml", "--configfile", "bad.yaml"], 2, "--configfile: give the sweep in"),
        (
            ["run", "--directory", "x"],
            2,
            "--directory: change to that folder, and give the command",
        ),
        (["run", "-s", "x"], 2, "-s: this runs the workflow of bqlib; for others, snakemake -s"),
        (["run", "-n", "mine.yaml"], 2, "the sweep mine.yaml must come before the arguments of Sn"),
        (["resume", "--profile", "nowhere"], 2, "--profile nowhere: no folder with a config.yaml"),
    ],
)
def test_what_cannot_be_run_is_told(become, capsys, words, code, said):
    Path("bad.yaml").write_text("title: 1\n" + SWEEP)
    assert main(words) == code
    assert said in capsys.readouterr().err
    assert become == []


def test_a_killed_run_is_to_be_resumed_and_no_living_one(become, capsys, monkeypatch):
    Path(".snakemake/locks").mkdir(parents=True)
    Path(".snakemake/locks/0.output.lock").touch()
    assert main(["run"]) == 2
    assert "the last run here was killed: to continue it, give" in capsys.readouterr().err
    command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(99)", "snakemake"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
        run.stdout.readline()  # now its command line is there
        assert main(["resume"]) == 2
        assert "a run is alive here" in capsys.readouterr().err
        assert main(["run", "--unlock"]) == 2
        assert "a run is alive here and needs its lock" in capsys.readouterr().err
        assert main(["run"]) == 0  # Snakemake says that the folder is locked
        assert f"process {run.pid}" in capsys.readouterr().out
        run.kill()
    assert len(become) == 1
    assert main(["run", "--unlock"]) == 0


def test_a_run_of_another_user_is_not_resumed_while_it_holds_its_results(become, capsys):
    results = Layout("results/small").folder
    results.mkdir(parents=True)
    Path(".snakemake/locks").mkdir(parents=True)
    Path(".snakemake/locks/0.output.lock").touch()
    with lock(results):
        for words in (["resume"], ["run", "--unlock"]):
            assert main(words) == 2
            assert "another run works on results/small" in capsys.readouterr().out
    assert become == []


def test_without_a_sweep_here_that_of_bqlib_is_run_and_named(become, capsys):
    Path("config/config.yaml").unlink()
    assert main(["run"]) == 0
    assert f"runs the sweep of bqlib: {shipped.DEFAULT_SWEEP}" in capsys.readouterr().out


def test_without_snakemake_it_is_said_what_to_install(become, capsys, monkeypatch):
    monkeypatch.setattr(running.importlib.util, "find_spec", lambda name: None)
    assert main(["run"]) == 2
    assert "this needs snakemake, which is not installed: pip" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["HOME", "XDG_CACHE_HOME"])
@pytest.mark.parametrize("value", ["/dev/null", "/proc/nothing"])
def test_where_there_is_no_cache_snakemake_gets_one_here(
    become, monkeypatch, tmp_path, name, value
):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv(name, value)
    assert main(["run"]) == 0
    assert os.environ["XDG_CACHE_HOME"] == str(tmp_path / ".snakemake" / "cache")


def test_a_user_without_a_name_gets_one(become, monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert main(["run"]) == 0
    assert os.environ["LOGNAME"] == str(os.getuid())


def test_a_cache_that_can_be_written_is_used(become, monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["run"]) == 0
    assert "XDG_CACHE_HOME" not in os.environ and (tmp_path / ".cache/snakemake").is_dir()


def test_a_new_project_has_all_that_a_run_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "demo"]) == 0
    assert capsys.readouterr().out.endswith("to run it: cd demo && bqlib run\n")
    assert main(["validate", "demo/config/config.yaml"]) == 0
    assert {path.name for path in Path("demo").iterdir()} == {
        *(".gitignore", "README.md", "Snakefile", "cluster", "config", "profiles")
    }
    assert Path("demo/cluster/site.yaml").exists()
    for file in ("config/config.yaml", "profiles/local/site.yaml"):
        first = Path("demo", file).read_text().splitlines()[0]
        assert Path("demo", file).parent.joinpath(first.partition("$schema=")[2]).is_file()
    assert main(["init", "--", "-a project"]) == 0
    assert capsys.readouterr().out.endswith("cd './-a project' && bqlib run\n")
    assert main(["init", "demo"]) == 2
    assert "demo is not an empty folder: give a new one" in capsys.readouterr().err


def test_a_new_project_has_the_modes_of_its_user_and_not_of_an_installation(
    tmp_path, monkeypatch, request
):
    template = tmp_path / "template"
    shutil.copytree(shipped.TEMPLATE, template)
    for path in (template, *template.rglob("*")):
        path.chmod(0o555)
    monkeypatch.setattr(shipped, "TEMPLATE", template)
    request.addfinalizer(partial(os.umask, os.umask(0o077)))
    assert main(["init", str(tmp_path / "demo")]) == 0
    made = [path for path in (tmp_path / "demo").rglob("*") if not path.is_symlink()]
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}


@pytest.mark.parametrize("there", [True, False])
def test_a_project_that_cannot_be_written_as_a_whole_is_not_there(
    tmp_path, monkeypatch, capsys, there
):
    monkeypatch.setattr(shipped, "SCHEMAS", tmp_path / "nowhere")
    folder = tmp_path / "demo"
    if there:
        folder.mkdir()
    assert main(["init", str(folder)]) == 2
    assert "nowhere: No such file" in capsys.readouterr().err
    assert not list(folder.iterdir()) if there else not folder.exists()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    assert main(["init", str(tmp_path / "file" / "demo")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("demo: Not a directory")
