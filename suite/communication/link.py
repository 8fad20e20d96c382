"""A lab of several hosts on one Linux machine: network namespaces on a bridge, each behind a link of a set rate.

Nothing leaves the machine: the only traffic is between the namespaces made here. No namespace has a name or a
mount; they live as long as a process holds them, so that none is left behind, however the lab ends. Bandwidth is
shaped by ``tc``'s token bucket (tbf), which is in most kernels. Root is needed, or the right to administer networks;
:func:`probe` says what is missing.

A device there computes by sleeping, while processes exchange what is really there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

COMMAND_SECONDS = 10.0
INTERFACE = "lab0"  # of every host, on the link to the bridge
PAYLOAD = 1448 / 1514  # share of a full Ethernet frame that TCP delivers
NEW_NETWORK = 0x40000000  # CLONE_NEWNET


class NoLab(RuntimeError):
    """The machine does not allow or support shaped namespaces; says why."""


def _call(*command: str) -> None:
    """Run a command in the namespace of this thread; raises NoLab with what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoLab(f"{' '.join(command[:3])}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().partition("\n")[0]
        raise NoLab(f"{' '.join(command)}: {said or f'exit status {done.returncode}'}")


def _system(call: str, *arguments: int) -> None:
    """A system call that Python 3.11 does not offer. Raises NoLab where it is refused."""
    if getattr(ctypes.CDLL(None, use_errno=True), call)(*arguments):
        reason = os.strerror(ctypes.get_errno())
        raise NoLab(f"network namespaces need root, or the right to administer networks: {call}: {reason}")


def enter(network: str) -> None:
    """Move this thread, and what it starts from now on, into the namespace at the path ``network``."""
    with open(network, "rb") as held:
        _system("setns", held.fileno(), NEW_NETWORK)


@contextlib.contextmanager
def inside(network: str) -> Iterator[None]:
    """This thread in a namespace for a while."""
    with open("/proc/thread-self/ns/net", "rb") as home:
        enter(network)
        try:
            yield
        finally:
            _system("setns", home.fileno(), NEW_NETWORK)


def _fresh() -> int:
    """A descriptor of a new namespace, which a thread of its own makes so that no other one moves."""

    def make() -> int:
        _system("unshare", NEW_NETWORK)
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()


def address(rank: int) -> str:
    """The address of a host, the same in every lab."""
    return f"10.213.77.{rank + 1}"


def shape(interface: str, bits_per_second: float) -> None:
    """Limit what leaves by ``interface``, from inside its namespace; call it at both ends.

    Raises NoLab when tc refuses.
    """
    # the bucket must hold what one timer tick lets through, and at least a few frames of veth's 64 KiB segments
    burst = max(128_000, int(bits_per_second / 8 / 250))
    _call("tc", "qdisc", "replace", "dev", interface, "root", "tbf", "rate", f"{bits_per_second:.0f}bit",
          "burst", f"{burst}", "latency", "200ms")  # fmt: skip


@contextlib.contextmanager
def lab(hosts: int = 2, bits_per_second: float = 0.0) -> Iterator[tuple[str, ...]]:
    """Fresh hosts on one bridge, gone with all they hold at the end; gives the paths of their namespaces by rank.

    Args:
        hosts: how many, 2 to 250.
        bits_per_second: of each host's link, in either direction; 0 leaves it as fast as the machine is.

    Raises:
        NoLab: saying what is missing.
    """
    if sys.platform != "linux" or not (shutil.which("ip") and shutil.which("tc")):
        raise NoLab("network namespaces need Linux with iproute2 (the programs ip and tc)")
    with contextlib.ExitStack() as held:
        networks = []
        for _ in range(hosts + 1):
            descriptor = _fresh()
            held.callback(os.close, descriptor)
            networks.append(f"/proc/{os.getpid()}/fd/{descriptor}")
        hub, *ends = networks
        with inside(hub):
            _call("ip", "link", "add", "bridge", "type", "bridge")
            _call("ip", "link", "set", "bridge", "up")
            for rank, network in enumerate(ends):
                port = f"port{rank}"  # of the bridge, at its end of the link to a host
                _call("ip", "link", "add", port, "type", "veth", "peer", "name", INTERFACE, "netns", network)
                _call("ip", "link", "set", port, "master", "bridge", "up")
                if bits_per_second:
                    shape(port, bits_per_second)
        for rank, network in enumerate(ends):
            with inside(network):
                _call("ip", "addr", "add", f"{address(rank)}/24", "dev", INTERFACE)
                _call("ip", "link", "set", INTERFACE, "up")
                _call("ip", "link", "set", "lo", "up")
                if bits_per_second:
                    shape(INTERFACE, bits_per_second)
        yield tuple(ends)


def probe() -> str:
    """Why a shaped link cannot be had here; empty when it can."""
    try:
        with lab() as made, inside(made[0]):
            shape(INTERFACE, 1e8)
    except NoLab as error:
        return str(error)
    return ""


class Device:
    """Computes by sleeping, one piece after another from the beginning of an update on.

    A process that wakes up late does not delay the pieces that follow, as the host of a GPU does not.
    """

    def __init__(self) -> None:
        self._free = 0.0

    def begin(self) -> None:
        """An update begins now, or when the last one has been computed."""
        self._free = max(self._free, time.monotonic())

    def compute(self, seconds: float) -> None:
        self._free += seconds
        time.sleep(max(0.0, self._free - time.monotonic()))
