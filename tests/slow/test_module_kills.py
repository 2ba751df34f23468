"""The workflow as a module of another one: from git, interrupted, killed, and with rules changed.

More kills: python tests/helpers/kills.py --kills 60 --module
"""

import os
import signal
import subprocess
import time

import pytest
from checkout import Checkout, Imported, jobs, processes_of
from kills import digests, kill_once, undisturbed

from bqlib.results.layout import Layout


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Digests of the results of a run that was left in peace."""
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


def left_of(checkout):
    """What a run has left of itself, after the time that it may take to end."""
    deadline = time.monotonic() + 10
    while processes_of(checkout.folder) and time.monotonic() < deadline:
        time.sleep(0.2)
    hidden = [path.name for path in checkout.folder.glob("results/*/.*")]
    return processes_of(checkout.folder), sorted(set(hidden) - {".lock", ".status.json"})


def test_a_module_from_git_gives_what_a_run_by_itself_gives(tmp_path, whole):
    repository = tmp_path / "repository"
    Checkout(repository)
    git = ["git", "-C", repository, "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "workflow", "Snakefile"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True)
    found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    source = (
        f"gitfile({str(repository)!r}, path='workflow/Snakefile', commit='{found.stdout.strip()}')"
    )
    theirs = Imported(tmp_path / "theirs", source)
    for path in ("Snakefile", "workflow/Snakefile"):
        (theirs.folder / path).unlink()
    theirs.edit("config/small.yaml", "seeds: 2", "seeds: 4")
    ran = theirs.run()
    assert ran.returncode == 0, ran.output
    assert digests(theirs.results) == whole
    assert left_of(theirs) == ([], [])
    again = theirs.run()
    assert again.returncode == 0 and "Nothing to be done" in again.output, again.output


@pytest.mark.parametrize(
    ("whom", "number"), [("all", signal.SIGINT), ("Snakemake", signal.SIGKILL)]
)
def test_two_sweeps_that_are_ended_leave_nothing_and_can_be_resumed(tmp_path, whom, number):
    theirs = Imported(tmp_path / "theirs", names=("small", "other"))
    theirs.edit("config/small.yaml", "seeds: 2", "seeds: 4")
    theirs.set_faults({"*": ["sleep", 0.3]})
    other = theirs.folder / "config" / "other.yaml"
    other.write_text(theirs.sweep.read_text().replace("name: small", "name: other"))
    pieces = theirs.folder / "results"
    run = theirs.start()
    while len(list(pieces.glob("*/pieces/**/*.zip"))) < 5:
        assert run.poll() is None, run.communicate()[0]
        time.sleep(0.1)
    os.killpg(run.pid, number) if whom == "all" else os.kill(run.pid, number)
    output, _ = run.communicate(timeout=60)
    assert run.returncode != 0
    left, hidden = left_of(theirs)
    assert not left and set(hidden) <= {Layout(theirs.results).kept.name}, output
    if number != signal.SIGKILL:
        # Before any code of ours, Python itself tells of what a job that just starts hears.
        assert "Traceback" not in output or "KeyboardInterrupt" in output, output
        assert "[bqlib] stopped: the workflow ended before it was complete" in output
    theirs.set_faults({})
    again = theirs.resume()
    assert again.returncode == 0, again.output
    done_again = [jobs(again.output).get(f"{name}_piece", 0) for name in ("small", "other")]
    assert 0 < sum(done_again) < 16
    assert left_of(theirs) == ([], [])
    small, others = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.zip")}
        for folder in (pieces / "small" / "pieces", pieces / "other" / "pieces")
    )
    assert len(small) == 8 and small == others  # of the same cells


@pytest.mark.parametrize("seed", [18])
def test_a_killed_module_ends_and_the_next_run_completes_it(tmp_path, seed, whole):
    kill = kill_once(tmp_path, seed, whole, Imported)
    assert not kill.faults, kill


def test_a_rule_of_the_module_can_be_changed_and_a_prefix_is_refused(tmp_path):
    theirs = Imported(tmp_path / "theirs")
    snakefile = theirs.folder / "Theirs"
    snakefile.write_text(
        snakefile.read_text()
        + "use rule figures from small as small_figures with:\n    threads: 1\n"
        + "    log:\n        'figures.log',\n"
    )
    ran = theirs.run("small_figures")
    assert ran.returncode == 0, ran.output
    assert jobs(ran.output)["small_figures"] == 1 and (theirs.folder / "figures.log").exists()
    theirs.edit("Theirs", "    config:", "    prefix:\n        'theirs'\n    config:")
    ran = theirs.run("-n")
    assert ran.returncode == 1 and "module with prefix: it would move" in ran.output
    assert "Traceback" not in ran.output


def test_two_sweeps_of_one_name_are_refused(tmp_path):
    theirs = Imported(tmp_path / "theirs", names=("small", "other"))
    other = theirs.folder / "config" / "other.yaml"
    other.write_text(theirs.sweep.read_text().replace("n: 20", "n: 21"))
    ran = theirs.run("-n")
    assert (
        ran.returncode == 1 and "two modules have different sweeps of the name small" in ran.output
    )


def test_a_run_that_another_one_works_on_is_told(tmp_path):
    theirs = Imported(tmp_path / "theirs")
    theirs.set_faults({"*": ["wait", "refused"]})
    first = theirs.start()
    while not (theirs.sweep.parent / "attempts").exists():
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.1)
    second = theirs.run("--nolock")
    (theirs.sweep.parent / "refused").touch()
    assert second.returncode == 1 and "another run works on results/small" in second.output
    output, _ = first.communicate(timeout=240)
    assert first.returncode == 0, output
    assert left_of(theirs) == ([], [])


HOOKS = """
import signal


onstart:
    print("their start")


onsuccess:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    print("their success", *(handler.__qualname__ for handler in handlers))
    print("their shell", shell._process_prefix, "of theirs")
"""


def test_hooks_of_the_importing_workflow_are_called_and_none_are_needed(tmp_path):
    theirs = Imported(tmp_path / "theirs")
    snakefile = theirs.folder / "Theirs"
    snakefile.write_text(snakefile.read_text() + HOOKS)
    ran = theirs.run("small_gather")
    assert ran.returncode == 0 and "their start" in ran.output, ran.output
    told = ran.output.index("[bqlib] results are in results/small")
    told_to_theirs = "their success default_int_handler JobScheduler.exit_gracefully"
    assert told < ran.output.index(told_to_theirs)
    [prefix] = [line for line in ran.output.splitlines() if line.startswith("their shell")]
    assert "trap" not in prefix
    assert left_of(theirs) == ([], [])
    theirs.edit("config/small.yaml", "seeds: 2", "seeds: 3")
    ran = theirs.run("small_gather", "--no-hooks")
    assert ran.returncode == 0 and "their start" not in ran.output, ran.output
    assert left_of(theirs)[0] == []


DEPLOYED = """
configfile: "config/small.yaml"


module bq:
    snakefile:
        "workflow/Snakefile"
    config:
        config


use rule * from bq
"""


def test_a_deployed_workflow_has_the_sweep_as_its_config_and_rules_as_they_are_named(
    tmp_path, whole
):
    deployed = Imported(tmp_path / "deployed")
    (deployed.folder / "Theirs").write_text(DEPLOYED)
    deployed.edit("config/small.yaml", "seeds: 2", "seeds: 4")
    deployed.sweep.write_text(deployed.sweep.read_text() + "colour: red\n")
    ran = deployed.run("--config", "site=profiles/local/site.yaml", "shade=dark")
    assert ran.returncode == 0, ran.output
    assert jobs(ran.output)["piece"] == 2 and digests(deployed.results) == whole
    assert left_of(deployed) == ([], [])
    for arguments, told in (
        (["--configfile", "config/quick.yaml"], "config files config/quick.yaml config/small.yaml"),
        (["--config", "seeds=5"], "--config seeds: would change the sweep into one that no file"),
    ):
        ran = deployed.run("-n", *arguments)
        assert ran.returncode == 1 and told in ran.output, ran.output
        assert "Traceback" not in ran.output
    ran = deployed.run("-n", "--configfile", "config/quick.yaml", "--replace-workflow-config")
    assert ran.returncode == 0 and "results/quick" in ran.output, ran.output
