"""The binary tree along which Caffe sums over devices, as (sender, receiver) pairs per round."""

from __future__ import annotations


def tree(devices: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Rounds that bring the sum of all devices to device 0; backwards they broadcast from it.

    In round r the devices still holding an unsent sum stand 2^r apart, and every second one sends to the one before
    it. Raises ValueError for fewer than one device.
    """
    if devices < 1:
        raise ValueError(f"a reduction tree needs at least one device, not {devices}")
    rounds, apart = [], 1
    while apart < devices:
        rounds.append(tuple((device + apart, device) for device in range(0, devices - apart, 2 * apart)))
        apart *= 2
    return tuple(rounds)
