"""The shaped link: what it lets through, and that nothing of it stays behind."""

from __future__ import annotations

import subprocess
import sys

import bodies
import pytest

from suite.communication import link as netlab
from suite.communication.launch import spawn

WHY_NOT = netlab.probe()
needs_lab = pytest.mark.skipif(bool(WHY_NOT), reason=f"no shaped link here: {WHY_NOT}")


def namespaces() -> str:
    return subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("lacking", "delay"), [("tbf", False), ("netem", True)])
def test_a_machine_that_cannot_shape_a_link_says_what_it_lacks(monkeypatch, lacking: str, delay: bool):
    """Network namespaces alone are not enough, and what is not asked for is not missed."""

    def call(*command: str) -> None:
        if lacking in command:
            raise netlab.NoLab(f"tc knows no {lacking}")

    monkeypatch.setattr(netlab, "_call", call)
    monkeypatch.setattr(netlab.shutil, "which", lambda name: name)
    monkeypatch.setattr(netlab.os, "geteuid", lambda: 0)
    assert netlab.probe(delay=delay) == f"tc knows no {lacking}"
    assert netlab.probe(delay=not delay) == ""


@pytest.mark.processes
def test_workers_start_behind_a_command_of_their_own():
    found = spawn(bodies.place, 2, timeout=30, prefix=lambda rank: ["env", f"SGD_TEST_PLACE=node {rank}"])
    assert found == [(0, "node 0"), (1, "node 1")]


@needs_lab
@pytest.mark.processes
def test_a_sum_takes_what_the_rate_allows():
    """Two workers on a ring send 2 MB once: at 100 Mbit/s no faster than the wire, less what the bucket holds."""
    with netlab.lab() as lab:
        slow, fast = spawn(
            bodies.timed_exchange,
            2,
            lab.interfaces,
            (1e8, 2e9),
            timeout=30,
            prefix=lab.prefix,
            environment=lab.environment,
        )[0]
        inside = lab.names[0]
        assert inside in namespaces()
    assert slow > 0.9 * (2e6 - 128_000) * 8 / 1e8
    assert fast < slow / 2
    assert inside not in namespaces()


@needs_lab
def test_the_lab_is_removed_after_an_error():
    with pytest.raises(KeyError), netlab.lab() as lab:
        raise KeyError
    assert lab.names[0] not in namespaces()
    assert lab.names[1] not in namespaces()


@pytest.mark.parametrize("rate", [0, 1e5, 1e12])
def test_refuses_rates_out_of_range(rate):
    with pytest.raises(ValueError, match="must lie between"):
        netlab.shape("none", rate)


def test_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(netlab.shutil, "which", lambda name: None)
    assert "iproute2" in netlab.probe()
    monkeypatch.undo()
    monkeypatch.setattr(netlab.os, "geteuid", lambda: 1000)
    if not WHY_NOT:
        assert "root" in netlab.probe()


def test_a_kernel_without_netem_is_told_apart():
    """Either latency can be shaped, or the reason names netem's command."""
    if WHY_NOT:
        pytest.skip(f"no shaped link here: {WHY_NOT}")
    why = netlab.probe(delay=True)
    assert not why or "netem" in why


@pytest.fixture
def called(monkeypatch) -> list[tuple[str, ...]]:
    """The commands that are asked for, none of which is run."""
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(netlab, "_call", lambda *command: commands.append(command))
    monkeypatch.setattr(netlab.sys, "platform", "linux")
    monkeypatch.setattr(netlab.shutil, "which", lambda name: name)
    monkeypatch.setattr(netlab.os, "geteuid", lambda: 0)
    return commands


@pytest.mark.parametrize(
    ("bits", "burst"), [(1e6, 128_000), (2.56e8, 128_000), (2.6e8, 130_000), (1e10, 5_000_000), (4e10, 20_000_000)]
)
def test_the_bucket_of_a_rate_holds_a_250th_of_a_second_or_two_segments(called, bits: float, burst: int):
    netlab.shape("veth", bits)
    ((*command,),) = called
    assert command[command.index("dev") + 1] == "veth"
    assert command[command.index("tbf") + 1 :][:4] == ["rate", f"{bits:.0f}bit", "burst", str(burst)]


@pytest.mark.parametrize("bits", [0.99e6, 1.4e6, 4e10, 5e10])
def test_rates_between_a_megabit_and_forty_gigabits_are_shaped(called, bits: float):
    if 1e6 <= bits <= 4e10:
        netlab.shape("veth", bits, delay_seconds=0.0015)
        assert called[0][-4:] == ("delay", "1500us", "rate", f"{bits:.0f}bit")
    else:
        with pytest.raises(ValueError, match=r"must lie between 1e\+06 and 4e\+10"):
            netlab.shape("veth", bits)


def test_a_lab_joins_two_namespaces_and_removes_those_that_it_made(called):
    with netlab.lab() as lab:
        made = [command for command in called if "add" in command and "netns" in command and "link" not in command]
        assert [command[-1] for command in made] == list(lab.names)
        (link,) = [command for command in called if "veth" in command]
        ends = [link[link.index(one) : link.index(one) + 3] for one in lab.interfaces]
        assert ends == [(one, "netns", name) for one, name in zip(lab.interfaces, lab.names, strict=True)]
        for name, interface, address in zip(lab.names, lab.interfaces, netlab.ADDRESSES, strict=True):
            inside = [command[3:] for command in called if command[:3] == ("ip", "-n", name)]
            assert inside[0] == ("addr", "add", f"{address}/30", "dev", interface)
            assert {command[2] for command in inside if command[-1] == "up"} == {interface, "lo"}
        called.clear()
    assert [command[-2:] for command in called] == [("del", name) for name in lab.names]


def test_a_lab_that_cannot_be_finished_removes_what_it_began(called, monkeypatch):
    def call(*command: str) -> None:
        called.append(command)
        if "veth" in command:
            raise netlab.NoLab("no veth")

    monkeypatch.setattr(netlab, "_call", call)
    assert netlab.probe() == "no veth"
    names = [command[-1] for command in called if command[:3] == ("ip", "netns", "add")]
    assert [command[-1] for command in called if command[:3] == ("ip", "netns", "del")] == names != []


@pytest.mark.parametrize("delay", [False, True])
def test_what_a_link_needs_is_tried_where_its_first_end_lies(called, delay: bool):
    """A rate unless a latency is asked for."""
    assert netlab.probe(**({"delay": True} if delay else {})) == ""
    (tried,) = [command for command in called if "tc" in command]
    (link,) = [command for command in called if "veth" in command]
    assert (tried[3], tried[tried.index("dev") + 1]) == (link[link.index("netns") + 1], link[3])
    assert ("netem" in tried, "tbf" in tried) == (delay, not delay)


@pytest.mark.parametrize("lacking", ["ip", "tc"])
def test_one_of_the_programs_is_not_enough(called, monkeypatch, lacking: str):
    monkeypatch.setattr(netlab.shutil, "which", lambda name: None if name == lacking else name)
    assert "iproute2" in netlab.probe()
    monkeypatch.setattr(netlab.shutil, "which", lambda name: name)
    monkeypatch.setattr(netlab.sys, "platform", "darwin")
    assert "Linux" in netlab.probe()
    assert called == []


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("import sys; print('out'); sys.exit('no such device\\nnor other')", "no such device"),
        ("import sys; print('only this'); sys.exit(3)", "only this"),
        ("import sys; sys.exit(3)", "exit status 3"),
    ],
)
def test_a_command_that_fails_is_told_with_the_first_line_that_it_said(script: str, told: str):
    with pytest.raises(netlab.NoLab) as failed:
        netlab._call(sys.executable, "-c", script)
    assert str(failed.value).endswith(f": {told}")
    netlab._call(sys.executable, "-c", "")


def test_a_full_frame_carries_1448_of_its_1514_bytes():
    assert round(netlab.PAYLOAD, 4) == 0.9564
