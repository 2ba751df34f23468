"""A Slurm of our own on this machine: three nodes of four CPUs, loopback only, no accounting."""

import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
NODES = ("n1", "n2", "n3")
DEFAULT_CONF = Path("/etc/slurm/slurm.conf")

SITE = """
system: slurm
workers: 3
memory: 1GiB
# three of a node's four CPUs, so that each worker has a node for itself
directives: ["--cpus-per-task=3"]
"""

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# cred_expire is also how long a requeued job waits; two minutes by default
AuthInfo=socket={folder}/munge.socket,cred_expire=10
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.own.pid
SlurmdPidFile={folder}/slurmd-%n.own.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
# neither cgroups nor systemd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
# nodes may claim more than this machine has
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
SlurmctldTimeout=10
SlurmdTimeout=20
InactiveLimit=0
KillWait=5
BatchStartTimeout=10
CompleteWait=0
# for how long squeue shows jobs that have ended
MinJobAge=600
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
# a job above its memory is killed, looked at from time to time, as that takes the processor
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=10
JobAcctGatherParams=OverMemoryKill,UsePss
AccountingStorageType=accounting_storage/none
NodeName=DEFAULT CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1
NodeName=DEFAULT RealMemory=8000 State=UNKNOWN
{nodes}
PartitionName=test Nodes=ALL Default=YES MaxTime=60 DefaultTime=10 State=UP PriorityTier=10
PartitionName=low Nodes=ALL MaxTime=60 DefaultTime=10 State=UP PriorityTier=1
PartitionName=high Nodes=ALL MaxTime=60 DefaultTime=10 State=UP PriorityTier=100 PreemptMode=OFF
"""


def on_this_machine(seconds):
    """So many seconds, or more where the machine has other work."""
    return seconds * max(1, os.getloadavg()[0] / os.cpu_count())


def missing():
    """Why a Slurm cannot be started here, or an empty text."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"needs Slurm (not here: {', '.join(absent)}): apt-get install slurm-wlm munge"
    return "" if os.getuid() == 0 else "starting a Slurm needs root"


class Slurm:
    """The daemons, each by the name of its node or program."""

    def __init__(self, folder):
        self.folder = folder
        self.daemons = {}
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (folder / name).mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        host = socket.gethostname().partition(".")[0]
        nodes = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + 1 + i}"
            for i, node in enumerate(NODES)
        ]
        self.conf = folder / "slurm.conf"
        self.conf.write_text(
            CONF.format(host=host, port=port, folder=folder, nodes="\n".join(nodes))
        )
        # Steps of jobs that Snakemake submits look at the default place alone.
        self.owns_default = DEFAULT_CONF.is_symlink() or not DEFAULT_CONF.exists()
        if self.owns_default:
            DEFAULT_CONF.parent.mkdir(exist_ok=True)
            DEFAULT_CONF.unlink(missing_ok=True)
            DEFAULT_CONF.symlink_to(self.conf)

    def up(self):
        """Start what does not run; return when all nodes take jobs."""
        os.environ["SLURM_CONF"] = str(self.conf)
        key = self.folder / "munge.key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(secrets.token_bytes(128))
            os.chmod(self.folder, 0o755)
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed"}
        options = [f"--{option}={self.folder}/munge.{end}" for option, end in files.items()]
        options += [f"--log-file={self.folder}/munged.log", "--foreground", "--force"]
        self._start("munged", "munged", *options)
        self._wait("munged", lambda: (self.folder / "munge.socket").exists())
        self._start("slurmctld", "slurmctld", "-D", "-i")
        for node in NODES:
            self._start(node, "slurmd", "-D", "-N", node)
        self._wait("the nodes", self._all_take_jobs)

    def down(self):
        """End all jobs and daemons."""
        self.call("scancel", f"--user={os.getuid()}")
        self._wait("the end of all jobs", lambda: not self.queue())
        for name in (*NODES, "slurmctld", "munged"):
            self.kill(name)
        if DEFAULT_CONF.is_symlink() and DEFAULT_CONF.readlink() == self.conf:
            DEFAULT_CONF.unlink()

    def kill(self, name):
        """Stop the daemon of a node, or slurmctld."""
        process = self.daemons.pop(name)
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def call(self, *command):
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout

    def queue(self):
        """State and name of each job that waits, runs or ends, by its number."""
        rows = self.call("squeue", "--noheader", "--format=%A %T %j").splitlines()
        return {number: (state, name) for number, state, name in map(str.split, rows)}

    def running(self):
        """Numbers of the jobs that run, and the node of each."""
        rows = self.call("squeue", "--noheader", "--states=RUNNING", "--format=%A %N")
        return dict(map(str.split, rows.splitlines()))

    def _start(self, name, *command):
        if name in self.daemons and self.daemons[name].poll() is None:
            return
        with open(self.folder / f"{name}.out", "ab") as output:
            self.daemons[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def _all_take_jobs(self):
        states = self.call("sinfo", "--noheader", "--Node", "--partition=test", "--format=%N %t")
        found = dict(map(str.split, states.splitlines()))
        for node, state in found.items():
            if re.match("down|drain|fail", state):
                self.call("scontrol", "update", f"NodeName={node}", "State=RESUME")
        return [found.get(node) in ("idle", "mix", "alloc", "comp") for node in NODES] == [True] * 3

    def _wait(self, what, ready, seconds=90):
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end:
                logs = [path.read_text()[-800:] for path in self.folder.glob("*.log")]
                raise TimeoutError(f"Slurm: {what}: not within {seconds} s\n" + "\n".join(logs))
            time.sleep(0.2)
