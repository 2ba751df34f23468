"""The environments of the peers, each with an interpreter of its own under .venv/peers."""

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".venv" / "peers"
# One thread each.
THREADS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}


def python_of(peer):
    """The interpreter of a peer's environment, or None where it cannot be made."""
    if peer == "bqlib":
        return sys.executable
    folder = ENVIRONMENTS / peer
    python, wanted = folder / "bin" / "python", HERE / f"requirements-{peer}.txt"
    stamp = folder / "made-from.txt"
    if stamp.exists() and stamp.read_text() == wanted.read_text():
        return python
    print(f"Installing {peer} in {folder}", file=sys.stderr)
    venv.create(folder, clear=True, with_pip=True)
    if subprocess.run([python, "-m", "pip", "install", "-q", "-r", wanted]).returncode:
        return None
    stamp.write_text(wanted.read_text())
    return python
