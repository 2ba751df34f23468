"""What other users put in the way of a run, and what results from elsewhere may hold, is never run.

Of each guard there is a control: the same attack without the guard works.
"""

import os
import pickle
import stat
import subprocess
import sys
import textwrap

import numpy as np
import paper_sweep
import pytest

from bqlib.cli.main import main
from bqlib.results.files import read_private
from bqlib.results.layout import Layout
from bqlib.running.client import logged
from bqlib.running.errors import RunError
from bqlib.running.journal import cancel_jobs, note_job
from bqlib.running.kept import Kept
from bqlib.running.session import lock
from bqlib.sweep.plugins import PluginError, load

NOBODY = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")


@pytest.fixture
def trap(tmp_path):
    """A folder for temporary files in which another user waits with code; and its witness."""
    folder = tmp_path / "shared"
    scratch = folder / "dask-scratch-space"
    scratch.mkdir(parents=True)
    folder.chmod(0o1777)
    witness = folder / "ran"
    (scratch / "resource.py").write_text(f"open({str(witness)!r}, 'w').close()")
    scratch.chmod(0o777)
    for path in (scratch, scratch / "resource.py"):
        os.chown(path, NOBODY, NOBODY)
    return folder, witness


def run_with(folder, code):
    """Run code with a folder for temporary files."""
    environment = {**os.environ, "TMPDIR": str(folder)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


@needs_root
def test_without_care_another_users_code_runs(trap):
    folder, witness = trap
    code = """
        if __name__ == "__main__":
            from distributed import LocalCluster
            LocalCluster(1, dashboard_address=None, worker_dashboard_address=None).close()
    """
    run_with(folder, code)
    assert witness.exists()


@needs_root
@pytest.mark.parametrize("system", ["local", "job"])
def test_no_code_of_another_user_runs(trap, tmp_path, system):
    folder, witness = trap
    code = f"""
        import asyncio, sys
        from pathlib import Path
        from bqlib.running.cluster import connect
        from bqlib.running.site import Site

        def look():
            sys.modules.pop("resource", None)
            import resource
            return sys.path

        async def main():
            site = Site(system={system!r}, workers=1)
            async with connect(site, Path({str(tmp_path)!r})) as client:
                print(*await client.submit(look), *look(), sep="\\n")

        if __name__ == "__main__":
            asyncio.run(main())
    """
    ran = run_with(folder, code)
    assert ran.returncode == 0, ran.stderr
    entries = ran.stdout.splitlines()
    assert not witness.exists()
    own = [path for path in entries if path.startswith(str(folder))]
    assert own and not any("/shared/dask-scratch-space" in path for path in own)
    assert not list(folder.glob("bqlib-*"))


@pytest.fixture
def cancelled(tmp_path, monkeypatch):
    """A command `scancel` that writes its arguments down; and where."""
    witness = tmp_path / "cancelled"
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "scancel"
    command.write_text(f'#!/bin/sh\necho "$@" >>{witness}\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=os.pathsep)
    return witness


def test_from_a_journal_only_numbers_and_names_of_jobs_are_read(tmp_path, cancelled):
    note_job(tmp_path, "slurm", "17")
    hostile = (
        f"touch {tmp_path}/ran",
        "slurm 1; touch ran",
        "slurm --user=root",
        f"slurm $(touch {tmp_path}/ran)",
        "sh 3",
        "slurm 18 19",
    )
    with open(Layout(tmp_path).journal, "a") as journal:
        journal.write("\n".join(hostile) + "\nslurm 20_[1-4]\n")
    cancel_jobs(tmp_path)
    assert cancelled.read_text().splitlines() == ["17 20_[1-4]"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_journal_that_others_may_write_is_left_alone(tmp_path, cancelled, mode):
    note_job(tmp_path, "slurm", "17")
    Layout(tmp_path).journal.chmod(mode)
    cancel_jobs(tmp_path)
    assert not cancelled.exists()


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_kept_trials_are_data(tmp_path):
    kept, witness = Kept(tmp_path / "kept"), tmp_path / "ran"
    outcome = {"mmd": np.arange(3.0), "rank_reached": 3.0, "reason": "it ends"}, 1.5
    kept.write("digest", {0: outcome})
    arrays, seconds = kept.read("digest", [0])[0]
    assert seconds == 1.5 and arrays["reason"] == "it ends" and arrays["rank_reached"] == 3.0
    assert type(arrays["reason"]) is str and arrays["mmd"].tolist() == [0, 1, 2]
    [file] = kept.folder.iterdir()
    packed = pickle.dumps(Payload(witness))
    for hostile in (packed, b"", b"PK\x03\x04" + packed, file.read_bytes()[:-9]):
        file.write_bytes(hostile)
        assert kept.read("digest", [0]) == {}
    np.savez(file, **{"0/mmd": np.array([Payload(witness)], dtype=object)})
    assert kept.read("digest", [0]) == {}
    assert not witness.exists()
    pickle.loads(packed)  # the control
    assert witness.exists()


def test_a_private_file_is_checked_after_it_was_opened(tmp_path):
    file, link, pipe = (tmp_path / name for name in ("file", "link", "pipe"))
    file.write_bytes(b"own")
    assert read_private(file, 3) == b"own"
    with pytest.raises(OSError, match="more than 2 bytes"):
        read_private(file, 2)
    link.symlink_to(file)
    os.mkfifo(pipe, 0o600)
    for path, why in ((link, "symbolic link"), (pipe, "not a regular file")):
        with pytest.raises(OSError, match=why):
            read_private(path, 3)
    file.chmod(0o660)
    with pytest.raises(OSError, match="written by others"):
        read_private(file, 3)


@needs_root
def test_a_file_of_another_user_is_not_private(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"theirs")
    os.chown(file, NOBODY, NOBODY)
    with pytest.raises(OSError, match="written by others"):
        read_private(file, 10)


def test_a_run_writes_through_no_link_among_its_results(tmp_path):
    results, victim = tmp_path / "results", tmp_path / "victim"
    results.mkdir()
    victim.write_text("precious")
    at = Layout(results)
    at.log("run").parent.mkdir()
    for path in (at.lock, at.journal, at.log("gather")):
        path.symlink_to(victim)
    with pytest.raises(RunError, match=r"\.lock cannot be opened: Too many levels"):
        lock(results)
    with pytest.raises(OSError, match="Too many levels"):
        note_job(results, "slurm", "1")
    with pytest.raises(OSError, match="Too many levels"), logged(at.log("gather")):
        print("overwritten")
    kept = Kept(at.kept)
    kept.write("digest", {0: ({"mmd": np.zeros(1)}, 1.0)})
    [file] = kept.folder.iterdir()
    file.unlink()
    file.symlink_to(victim)
    assert Kept(at.kept).read("digest", [0]) == {}
    kept.write("digest", {0: ({"mmd": np.zeros(1)}, 1.0)})
    assert victim.read_text() == "precious"
    assert stat.S_IMODE(kept.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["folder", "file", "sticky folder"])
def test_a_plugin_that_every_user_may_write_is_not_loaded(tmp_path, kind):
    folder, witness = tmp_path / "plugins", tmp_path / "ran"
    folder.mkdir()
    file = folder / f"{kind.replace(' ', '_')}.py"
    file.write_text(f"open({str(witness)!r}, 'w').close()\n")
    if kind == "file":
        file.chmod(0o666)
    else:
        folder.chmod(0o777 if kind == "folder" else 0o1777)
    if kind == "sticky folder":
        if os.getuid() != 0:
            pytest.skip("only root can act as another user")
        os.chown(file, NOBODY, NOBODY)
    with pytest.raises(PluginError, match="is not loaded: every user of this machine may write"):
        load("design", f"{file}:pick")
    assert not witness.exists()


def test_a_plugin_of_ones_own_in_a_shared_folder_is_loaded(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    (folder / "own.py").write_text("def rule(embedding, points):\n    return None\n")
    assert load("weights", f"{folder}/own.py:rule").__name__ == "rule"


SWEEP = """
name: paper
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic}}
lengthscales: [0.5]
algorithms: [iid]
candidates: {size: 20}
n: 5
seeds: 2
"""
HOSTILE = (
    b"",
    b"\x80\x04\x95",
    b"PK\x03\x04",
    b"{" * 100_000,
    b'{"attributes": {"config": "[]"}}',
    b'{"seconds": {"0": "x"}, "failed": 3, "sha256": []}',
    b"#!/bin/sh\ntouch ran\n",
)


def test_a_hostile_file_in_any_place_of_results_runs_nothing(
    tmp_path, monkeypatch, capsys, cancelled
):
    results = tmp_path / "results" / "paper"
    results.mkdir(parents=True)
    paper_sweep.run(results, SWEEP)
    witness = tmp_path / "ran"
    payload = pickle.dumps(Payload(witness))
    at = Layout(results)
    note_job(results, "slurm", "17")
    Kept(at.kept).write("digest", {0: ({"mmd": np.zeros(1)}, 1.0)})
    monkeypatch.chdir(tmp_path)
    files = [path for path in sorted(results.rglob("*")) if path.is_file()]
    files += [at.manifest, at.provenance, at.claims, at.private / "key.pem"]
    for i, file in enumerate(files):
        known = file.read_bytes() if file.exists() else None
        file.parent.mkdir(exist_ok=True)
        for hostile in (payload, HOSTILE[i % len(HOSTILE)]):
            file.write_bytes(hostile)
            for command in ("show", "check", "claims", "export"):
                given = [command, str(results)] + ["out.csv"] * (command == "export")
                assert main(given) in (0, 1, 2)
            cancel_jobs(results)
            Kept(at.kept).read("digest", [0])
        if known is None:
            file.unlink()
        else:
            file.write_bytes(known)
    capsys.readouterr()
    assert not witness.exists() and not list(tmp_path.rglob("ran"))
    assert set(cancelled.read_text().split()) == {"17"}
