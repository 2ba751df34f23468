"""Set-up by tools/setup.sh in a small copy of the project, with an interpreter and a pip of straw.

That the real pip installs the real lock is shown by every run of this suite through `make test`.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import psutil
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from project import PROJECT

REAL = sys._base_executable

PYPROJECT = """\
[project]
name = "small"
requires-python = ">=3.11"

[tool.pytest]
"""

# Stands for PYTHON: a real interpreter whose pip only puts the pip below into .venv.
INTERPRETER = f"""\
#!/bin/sh
if [ "$1 $2" = "-m pip" ]; then
    for folder in .venv/lib/python*/site-packages; do mkdir -p "$folder/pip"; done
    cp straw.py "$folder/pip/__main__.py"
else
    exec '{REAL}' "$@"
fi
"""

# Fails with the words in FAULT, or kills the set-up.
PIP = """\
import os, pathlib, signal, sys
fault = os.environ.get("FAULT")
if fault == "kill":
    os.kill(os.getppid(), signal.SIGKILL)
elif fault:
    sys.exit(fault)
"""


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def small(tmp_path):
    folder = tmp_path / "a b" / "small"
    (folder / "tools").mkdir(parents=True)
    shutil.copy(PROJECT / "tools/setup.sh", folder / "tools")
    (folder / "bqlib" / "running").mkdir(parents=True)
    shutil.copy(PROJECT / "bqlib/running/alive.py", folder / "bqlib" / "running")
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "requirements.lock").write_text("pip==26 \\\n    --hash=sha256:0\n")
    (folder / "straw.py").write_text(PIP)
    script(folder / "python", INTERPRETER)
    return folder


def set_up(folder, python="./python", **variables):
    """Run the script, and give what it printed and what it complained of."""
    ran = subprocess.run(
        ["sh", "tools/setup.sh"],
        cwd=folder,
        env=os.environ | {"PYTHON": python} | variables,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (ran.returncode == 0) == (ran.stderr == "")
    return ran.stdout, ran.stderr


def is_ready(folder):
    return (folder / ".venv/ready").exists()


def test_names_what_is_missing_when_there_is_no_python(small):
    _, error = set_up(small, python="./nowhere")
    assert "./nowhere was not found" in error
    assert "Python 3.11 or newer is needed" in error
    assert "make setup PYTHON=" in error


def test_refuses_an_old_python_and_leaves_the_environment_alone(small):
    set_up(small)
    for version in ("2.7", "3.10"):
        script(small / "old", f"#!/bin/sh\necho '{version} /usr'\n")
        _, error = set_up(small, python="./old")
        assert f"./old is Python {version}, and 3.11 or newer is needed" in error
        assert "make setup PYTHON=" in error
    assert set_up(small) == ("", "")


def test_names_the_package_when_python_lacks_venv(small):
    lacking = f'#!/bin/sh\n[ "$2" != venv ] || exit 1\nexec \'{REAL}\' "$@"\n'
    script(small / "lacking", lacking)
    _, error = set_up(small, python="./lacking")
    assert "apt-get install python3-venv" in error
    assert not is_ready(small)


@pytest.mark.parametrize(
    ("last_words", "advice"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "not the one that requirements.lock"),
        ("ERROR: No matching distribution found for a==1", "no fitting release"),
        ("ERROR: something else", ".venv/setup.log has them all"),
    ],
)
def test_tells_why_pip_failed(small, last_words, advice):
    _, error = set_up(small, FAULT=last_words)
    assert last_words in error
    assert advice in error
    assert not is_ready(small)


def test_tells_that_no_index_answers(small):
    # The real pip, and a port on which nobody listens.
    shutil.copy(PROJECT / "requirements.lock", small)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": os.devnull}
    _, error = set_up(
        small, REAL, PIP_RETRIES="1", PIP_FIND_LINKS="", PIP_NO_CACHE_DIR="1", **nowhere
    )
    assert "the package index could not be reached" in error
    assert not is_ready(small)


def test_killed_set_up_is_done_again(small):
    ran = subprocess.run(
        ["sh", "tools/setup.sh"],
        cwd=small,
        env=os.environ | {"PYTHON": "./python", "FAULT": "kill"},
    )
    assert ran.returncode == -signal.SIGKILL
    assert not is_ready(small)
    printed, error = set_up(small)
    assert "Removing .venv: its set-up was cut short." in printed
    assert not error
    assert is_ready(small)


def test_is_done_once_and_again_when_its_grounds_change(small):
    assert "Set-up done." in set_up(small)[0]
    assert set_up(small) == ("", "")

    pyproject = small / "pyproject.toml"
    pyproject.write_text(PYPROJECT + "xfail_strict = true\n")
    assert set_up(small) == ("", "")
    pyproject.write_text(PYPROJECT.replace("3.11", "3.10"))
    assert "Set-up done." in set_up(small)[0]

    with open(small / "requirements.lock", "a") as lock:
        lock.write("another==1\n")
    assert "Set-up done." in set_up(small)[0]

    moved = small.rename(small.with_name("moved"))
    assert "Set-up done." in set_up(moved)[0]
    assert set_up(moved) == ("", "")


@pytest.fixture
def pretender(small):
    """A process in the folder whose command line is that of a run."""
    command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(100)", "snakemake"]
    with subprocess.Popen(command, cwd=small, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.kill()


def test_the_environment_is_not_replaced_under_a_living_run(small, pretender):
    set_up(small)
    site = next(small.glob(".venv/lib/python*/site-packages"))
    (site / "psutil.pth").write_text(str(Path(psutil.__file__).parent.parent))
    with open(small / "requirements.lock", "a") as lock:
        lock.write("another==1\n")
    _, error = set_up(small)
    assert f"process {pretender.pid}: " in error
    assert is_ready(small)


def test_the_lock_answers_all_that_the_project_asks_for():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *chain(*extras.values())]
    locked = [
        Requirement(line.rstrip(" \\"))
        for line in (PROJECT / "requirements.lock").read_text().splitlines()
        if "==" in line.split(";")[0]
    ]
    for requirement in map(Requirement, asked):
        pins = [pin for pin in locked if canonical(pin) == canonical(requirement)]
        assert pins or requirement.name == project["name"], f"{requirement}: run `make lock`"
        for pin in pins:
            version = str(pin.specifier).removeprefix("==")
            assert requirement.specifier.contains(version), f"{requirement}: run `make lock`"


def canonical(requirement):
    return canonicalize_name(requirement.name)


def test_help_lists_every_command():
    targets = re.search(r"\.PHONY: (.*)", (PROJECT / "Makefile").read_text())[1].split()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    ran = subprocess.run(["make"], cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert re.findall(r"^  make (\w+)", ran.stdout, re.M) == targets


@pytest.fixture
def others(small, tmp_path):
    """An environment of another checkout, to which this one has a link."""
    other = tmp_path / "other" / ".venv"
    other.mkdir(parents=True)
    for name in ("ready", "precious"):
        (other / name).write_text(name)
    (small / ".venv").symlink_to(other)
    return other


def test_set_up_removes_a_link_and_nothing_behind_it(small, others):
    set_up(small)
    assert is_ready(small) and not (small / ".venv").is_symlink()
    assert sorted(path.name for path in others.iterdir()) == ["precious", "ready"]


def test_clean_removes_links_and_nothing_behind_them(small, others):
    shutil.copy(PROJECT / "Makefile", small)
    (small / "docs").mkdir()
    for name in ("docs/_build", "docs/_api", ".mypy_cache"):
        (small / name).symlink_to(others)
    subprocess.run(["make", "clean"], cwd=small, check=True, capture_output=True)
    assert not (small / ".venv").is_symlink() and not (small / "docs/_build").is_symlink()
    assert sorted(path.name for path in others.iterdir()) == ["precious", "ready"]


@pytest.mark.parametrize("name", [*'"$`\\\\:*?[]{}<>|', "\n", "\t"])
def test_a_folder_whose_path_tools_cannot_take_is_refused_before_set_up(small, name):
    strange = small.rename(small.with_name(f"a{name}b"))
    _, error = set_up(strange)
    assert "the path of this folder has a character that tools cannot take" in error
    assert "Move or rename the folder" in error
    assert not (strange / ".venv").exists()


def test_a_folder_may_have_other_characters(small):
    strange = small.rename(small.with_name("a ü%&'(#;!~@b"))
    set_up(strange)
    assert is_ready(strange)
