"""Two network namespaces joined by a shaped link, for tests and benchmarks on one Linux machine.

Nothing leaves the machine: the only traffic is between the two namespaces made here, over a veth pair that belongs
to them alone. Bandwidth is shaped by ``tc``'s token bucket (tbf), which is in every kernel; latency by netem, which
is not. Root is needed, or the right to administer networks; :func:`probe` says what is missing.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

COMMAND_SECONDS = 10.0
ADDRESSES = ("10.213.77.1", "10.213.77.2")
SLOWEST, FASTEST = 1e6, 4e10  # bits per second that shape() accepts
PAYLOAD = 1448 / 1514  # share of a full Ethernet frame that TCP delivers


class NoLab(RuntimeError):
    """The machine does not allow or support shaped namespaces; says why."""


def _call(*command: str) -> None:
    """Run a command; raises NoLab with what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoLab(f"{' '.join(command[:3])}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().partition("\n")[0]
        raise NoLab(f"{' '.join(command)}: {said or f'exit status {done.returncode}'}")


@dataclass(frozen=True)
class Lab:
    """Two namespaces; worker ``rank`` lives in ``names[rank]`` with ``ADDRESSES[rank]`` on ``interfaces[rank]``."""

    names: tuple[str, str]
    interfaces: tuple[str, str]

    def prefix(self, rank: int) -> Sequence[str]:
        """Command prefix that runs a program in the namespace of ``rank``."""
        return ("ip", "netns", "exec", self.names[rank])

    def environment(self, rank: int) -> dict[str, str]:
        """Variables that make gloo use the link."""
        return {"GLOO_SOCKET_IFNAME": self.interfaces[rank]}


def shape(interface: str, bits_per_second: float, *, delay_seconds: float = 0.0) -> None:
    """Limit what leaves by ``interface``, from inside its namespace; call it at both ends.

    Raises ValueError for a rate out of range, NoLab when tc refuses (``delay_seconds`` needs netem).
    """
    if not SLOWEST <= bits_per_second <= FASTEST:
        raise ValueError(f"rate {bits_per_second:g} bit/s must lie between {SLOWEST:g} and {FASTEST:g}")
    # the bucket must hold what one timer tick lets through, and at least a few frames of veth's 64 KiB segments
    burst = max(128_000, int(bits_per_second / 8 / 250))
    rate = f"{bits_per_second:.0f}bit"
    if delay_seconds:
        _call("tc", "qdisc", "replace", "dev", interface, "root", "netem", "delay", f"{delay_seconds * 1e6:.0f}us",
              "rate", rate)  # fmt: skip
        return
    _call("tc", "qdisc", "replace", "dev", interface, "root", "tbf", "rate", rate, "burst", f"{burst}",
          "latency", "200ms")  # fmt: skip


@contextlib.contextmanager
def lab() -> Iterator[Lab]:
    """A fresh pair of namespaces, removed with all they hold at the end. Raises NoLab saying what is missing."""
    if sys.platform != "linux" or not (shutil.which("ip") and shutil.which("tc")):
        raise NoLab("network namespaces need Linux with iproute2 (the programs ip and tc)")
    if os.geteuid():
        raise NoLab("network namespaces need root")
    mark = secrets.token_hex(3)
    made = Lab((f"sgd-{mark}-0", f"sgd-{mark}-1"), (f"sgd{mark}a", f"sgd{mark}b"))
    standing: list[str] = []
    try:
        for name in made.names:
            _call("ip", "netns", "add", name)
            standing.append(name)
        first, second = made.interfaces
        _call("ip", "link", "add", first, "netns", made.names[0], "type", "veth",
              "peer", "name", second, "netns", made.names[1])  # fmt: skip
        for rank, (name, interface) in enumerate(zip(made.names, made.interfaces, strict=True)):
            inside = ("ip", "-n", name)
            _call(*inside, "addr", "add", f"{ADDRESSES[rank]}/30", "dev", interface)
            _call(*inside, "link", "set", interface, "up")
            _call(*inside, "link", "set", "lo", "up")
        yield made
    finally:
        for name in standing:
            with contextlib.suppress(NoLab):
                _call("ip", "netns", "del", name)


def probe(*, delay: bool = False) -> str:
    """Why a shaped link (with ``delay``: one of a set latency) cannot be had here; empty when it can."""
    try:
        with lab() as made:
            tool = ("ip", "netns", "exec", made.names[0], "tc", "qdisc", "add", "dev", made.interfaces[0], "root")
            if delay:
                _call(*tool, "netem", "delay", "1ms")
            else:
                _call(*tool, "tbf", "rate", "100mbit", "burst", "128000", "latency", "50ms")
    except NoLab as error:
        return str(error)
    return ""
