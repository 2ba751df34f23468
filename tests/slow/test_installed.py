"""The package as others install it: complete, and run from an environment without the clone."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy
import pytest
from checkout import Checkout, jobs, processes_of
from project import PROJECT

PACKAGES = Path(numpy.__file__).parent.parent
MARK = "nothing"  # a path that does not exist
PLAIN = ("python", "-P", "-m", "snakemake", "--profile", "profiles/local")
CARRIED = ("Snakefile", "workflow", "config", "profiles")  # beside the package in a clone


def tree(*names):
    """Paths of the files in these folders of the clone, and these files."""
    found = []
    for path in (PROJECT / name for name in names):
        found += [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    paths = (path.relative_to(PROJECT) for path in found)
    return {str(path) for path in paths if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", folder]
    subprocess.run([*build, "-t", "sdist"], cwd=PROJECT, check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        sdist.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    subprocess.run([*build, "-t", "wheel"], cwd=unpacked, check=True)
    return folder


def test_the_wheel_has_the_package_and_the_workflow(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    carried = {f"bqlib/project/{path}" for path in tree(*CARRIED)}
    assert names == tree("bqlib") | carried


def test_the_sdist_has_all_that_its_tests_need(built):
    (unpacked,) = (built / "unpacked").iterdir()
    names = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    needed = tree("bqlib", *CARRIED, "tests", "docs/install.md", "Makefile", "requirements.lock")
    assert needed <= names


def environment(built, folder):
    """Make an environment with the wheel alone; its folder of packages."""
    venv.create(folder, symlinks=True)
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", wheel], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    return packages


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The programs of an environment with the wheel, and this one's packages but for the clone."""
    folder = tmp_path_factory.mktemp("environment")
    (environment(built, folder) / "others.pth").write_text(f"{PACKAGES}\n")
    return folder / "bin"


def test_without_the_extras_it_is_said_what_to_install(built, tmp_path):
    packages = environment(built, tmp_path / "environment")
    for name in ("numpy", "numpy.libs", "scipy", "scipy.libs"):
        if (PACKAGES / name).exists():
            (packages / name).symlink_to(PACKAGES / name)
    bare = tmp_path / "environment" / "bin"
    made = ran(bare, tmp_path, "bqlib", "init", "demo")
    assert made.returncode == 0, made.output
    for words in (
        ["run"],
        ["resume"],
        ["validate", "config/config.yaml"],
        ["plan", "config/config.yaml"],
    ):
        told = ran(bare, tmp_path / "demo", "bqlib", *words)
        assert told.returncode == 2
        assert re.fullmatch(
            r"bqlib: this needs \w+, .* pip install 'bqlib\[workflow\]', .*\n", told.output
        )
    code = "from bqlib import *; print(len(sobol(Uniform([0], [1]), Matern(0.2), 3, rng=0).points))"
    assert ran(bare, tmp_path, "python", "-c", code).output == "3\n"


def ran(installed, folder, *command):
    """What a command of the environment printed, all in one."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    path = os.pathsep.join([str(installed), os.environ["PATH"]])
    # By PYTHONPATH, processes_of finds what is left.
    environment = clean | {"PATH": path, "PYTHONPATH": str(folder / MARK)}
    found = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )
    found.output = found.stdout + found.stderr
    return found


def pieces(results):
    """sha256 of each piece, by its name."""
    folder = results / "pieces"
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*.zip")
    }


@pytest.fixture(scope="module")
def project(installed, tmp_path_factory):
    """A project of one's own that has run."""
    folder = tmp_path_factory.mktemp("empty")
    made = ran(installed, folder, "bqlib", "init", "demo")
    assert made.returncode == 0, made.output
    plain = ran(installed, folder / "demo", *PLAIN, "-n")
    assert plain.returncode == 0 and jobs(plain.output)["piece"] == 8, plain.output
    run = ran(installed, folder / "demo", "bqlib", "run")
    assert run.returncode == 0, run.output
    assert "[bqlib] results are in results/first; read report.html first" in run.output
    return folder / "demo"


def test_a_new_project_runs_from_the_wheel_alone(project):
    assert (project / "results/first/report.html").stat().st_size > 0
    assert (project / "results/first/figures/mmd.png").stat().st_size > 0
    assert not processes_of(project / MARK)


def test_plain_snakemake_finds_nothing_to_do_in_it(installed, project):
    again = ran(installed, project, *PLAIN)
    assert again.returncode == 0 and "Nothing to be done" in again.output


def test_the_clone_computes_the_same_bytes(project, tmp_path):
    clone = Checkout(tmp_path / "a clone")
    clone.sweep.write_bytes((project / "config/config.yaml").read_bytes())
    run = clone.run("--until", "piece")
    assert run.returncode == 0, run.output
    assert pieces(project / "results/first") == pieces(clone.folder / "results/first")


def test_a_sweep_of_ones_own_needs_no_project(installed, project, tmp_path):
    text = (project / "config/config.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("seeds: 5", "seeds: 1"))
    for name in ("snakemake", "bqlib", "select", "json"):  # no modules of ours or of Python
        (tmp_path / f"{name}.py").write_text(f"open('ran', 'a').write('{name}')\n")
    run = ran(installed, tmp_path, "bqlib", "run", "mine.yaml", "--until", "gather")
    assert run.returncode == 0, run.output
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "results/first/curves.zarr").is_dir()
