"""A copy of the project in a folder of its own, and the real workflow in it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

from project import PROJECT

SWEEP = """
name: small
targets: [chen2010_mixture]
kernels:
  eq_density: {family: exponentiated_quadratic, scale: density}
lengthscales: [0.5]
algorithms: [iid, herding]
candidates: {size: 200}
n: 20
seeds: 2
seeds_per_job: 1
rate_windows: [[5, 20]]
"""
PLAIN = "algorithms: [iid, herding]\n"
FAULTY = """algorithms:
  - {name: faulty_iid, design: {family: faults.py:faulty, rule: iid}, weights: uniform}
  - {name: faulty_herding, design: {family: faults.py:faulty, rule: herding}, weights: uniform}
"""


class Checkout:
    """A copy of the project, where sweeps can be run and code can be changed."""

    profile = "profiles/local"

    def __init__(self, folder):
        self.folder = folder
        for name in ("bqlib", "config", "profiles", "workflow"):
            shutil.copytree(
                PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        shutil.copy(PROJECT / "Snakefile", folder)
        (folder / "cluster").symlink_to("profiles/cluster")
        self.sweep = folder / "config" / "small.yaml"
        self.sweep.write_text(SWEEP)
        self.results = folder / "results" / "small"

    def edit(self, path, old, new):
        text = (self.folder / path).read_text()
        assert old in text
        (self.folder / path).write_text(text.replace(old, new))

    def set_faults(self, table):
        """Let trials of the sweep meet the faults of a table, as faults.py says.

        Whatever the table, the sweep asks for the same pieces.
        """
        config = self.sweep.parent
        shutil.copy(PROJECT / "tests" / "helpers" / "faults.py", config)
        (config / "faults.json").write_text(json.dumps(table))
        text = self.sweep.read_text().replace(PLAIN, FAULTY)
        assert FAULTY in text
        self.sweep.write_text(text)

    def attempts(self, what):
        """(rule, seed, attempt, process) of each attempt that started, or ended, in their order."""
        lines = (self.sweep.parent / "attempts").read_text().splitlines()
        return [tuple(words) for first, *words in map(str.split, lines) if first == what]

    def options(self):
        """Of Snakemake, for a run of the sweep."""
        return ["--profile", self.profile, "--configfile", self.sweep]

    def start(self, *arguments, **environment):
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *self.options(), *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,  # which can be interrupted without the tests
        )

    def run(self, *arguments, **environment):
        process = self.start(*arguments, **environment)
        process.output, _ = process.communicate(timeout=240)
        return process

    def resume(self, *arguments):
        """What ``make resume`` does."""
        unlocked = self.run("--unlock")
        assert unlocked.returncode == 0, unlocked.output
        return self.run(*arguments)

    def pieces(self):
        """sha256 of each piece by its name."""
        folder = self.results / "pieces"
        return {
            str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*.zip")
        }


THEIRS = """
rule theirs:
    input:
        lambda wildcards: ALL,


ALL = []
"""
MODULE = """

module {name}:
    snakefile:
        {source}
    config:
        {{"sweep": "config/{name}.yaml", "site": "profiles/local/site.yaml", "colour": "red"}}


use rule * from {name} as {name}_*


ALL += rules.{name}_all.input
"""


class Imported(Checkout):
    """A copy whose workflow is a module of another one, for each of some sweeps."""

    def __init__(self, folder, source='"workflow/Snakefile"', names=("small",)):
        super().__init__(folder)
        modules = [MODULE.format(name=name, source=source) for name in names]
        (folder / "Theirs").write_text(THEIRS + "".join(modules))

    def options(self):
        return ["--snakefile", "Theirs", "--cores", "2", "--rerun-incomplete"]


def jobs(output):
    """How many jobs of each rule a run had to do; those of pieces together.

    By our line, or by Snakemake's table, which ``--verbose`` and modules of others show.
    """
    told = re.search(r"^(?:\x1b\[K|\r)*\[bqlib\] jobs: (.+)$", output, re.M)
    stats = output.split("Job stats:")[1].split("\n\n")[0] if "Job stats:" in output else ""
    counts = told[1].split(", ") if told else stats.splitlines()
    found = Counter()
    for rule, count in re.findall(r"^(\w+) +(\d+)$", "\n".join(counts), re.M):
        found[re.sub(r"pieces_\d+$", "piece", rule)] += int(count)
    return found


def processes_of(folder):
    """Processes that run from a checkout, by what /proc says of them."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            environment = (place / "environ").read_bytes()
        except OSError:
            continue
        if f"PYTHONPATH={folder}\0".encode() in environment:
            found.append(int(place.name))
    return found
