"""A Slurm cluster of two nodes on this machine, for trials: a controller, two daemons and a key of their own.

Needs Debian's ``slurm-wlm`` and ``munge`` (no service of theirs need run) and root: a node's daemon starts jobs as
their owner.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "munged")
CONFIGURATION = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/log/controller
SlurmdLogFile={folder}/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=20
SlurmctldTimeout=20
KillWait=5
JobRequeue=1
SchedulerParameters=sched_interval=2
MpiDefault=none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=2 RealMemory=4000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why there can be no cluster here; empty when there can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if absent:
        return f"{', '.join(absent)} not installed: apt-get install -y --no-install-recommends slurm-wlm munge"
    return "" if os.geteuid() == 0 else "a cluster on one machine needs root"


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Cluster:
    """A running cluster; ``environment`` makes Slurm's commands talk to it."""

    def __init__(self, folder: Path, name: str = "trial"):
        self.folder = folder
        for part in ("munge", "log", "state", "spool-n1", "spool-n2"):
            (folder / part).mkdir(parents=True)
        (folder / "munge").chmod(0o700)
        key = folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        controller, first, second = _free_ports(3)
        self.configuration = folder / "slurm.conf"
        host = socket.gethostname().partition(".")[0]
        self.configuration.write_text(CONFIGURATION.format(**locals()))
        self.environment = {"SLURM_CONF": str(self.configuration), "PATH": _path()}

    def call(self, *command: str) -> str:
        """What a command says on this cluster; raises CalledProcessError."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")
        return done.stdout.strip()

    def start(self) -> None:
        munge = self.folder / "munge"
        files = {name: str(munge / name) for name in ("log", "pid", "seed")}
        self.call("munged", "--force", "--key-file", str(munge / "key"), "--socket", str(munge / "sock"),
                  "--log-file", files["log"], "--pid-file", files["pid"], "--seed-file", files["seed"])  # fmt: skip
        self.start_controller()
        for node in ("n1", "n2"):
            self.start_node(node)
        wait_for(lambda: self.states() == ["idle", "idle"], 120)

    def start_controller(self) -> None:
        self.call("slurmctld", "-f", str(self.configuration))

    def start_node(self, node: str) -> None:
        self.call("slurmd", "-f", str(self.configuration), "-N", node)

    def states(self) -> list[str]:
        """The states of both nodes, or nothing while the controller does not answer."""
        with contextlib.suppress(RuntimeError):
            return [line.strip("*") for line in self.call("sinfo", "-h", "-N", "-o", "%T").splitlines()]
        return []

    def queue(self) -> list[tuple[str, str, str]]:
        """Of every task: job id, state, node."""
        rows = [line.split("|") for line in self.call("squeue", "-h", "-r", "-o", "%i|%T|%N").splitlines()]
        return [(name, state, node) for name, state, node in rows]

    def kill(self, daemon: str, number: signal.Signals = signal.SIGKILL) -> None:
        """End ``controller``, ``n1`` or ``n2``, by the process id that it wrote."""
        pid = int((self.folder / f"{daemon}.pid").read_text())
        os.kill(pid, number)
        wait_for(lambda: not Path(f"/proc/{pid}").exists(), 60)

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):
            self.call("scancel", "--user=root")
            wait_for(lambda: not self.queue(), 60)
        for daemon in ("controller", "n1", "n2", "munge/pid"):
            path = self.folder / (daemon if "/" in daemon else f"{daemon}.pid")
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(path.read_text()), signal.SIGTERM)


@contextlib.contextmanager
def cluster(folder: Path, name: str = "trial") -> Iterator[Cluster]:
    """A cluster until the block ends."""
    made = Cluster(folder, name)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def wait_for(ready: Callable[[], object], seconds: float) -> None:
    """Look twice a second; raises TimeoutError."""
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {seconds:g} s")
        time.sleep(0.5)
