"""Sums over workers that are rows of this process: which rows they take, and what is a copy."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from suite.communication.collectives import Alone, Local, Processes, in_process
from suite.communication.group import Group


def processes(rows: int) -> Processes:
    return Processes(Group(dist.HashStore(), 0, 1, 1.0, "gloo"), rows=rows)


@pytest.mark.parametrize("made", [Local, in_process, processes], ids=["local", "in process", "one process"])
def test_a_sum_takes_a_row_for_all_or_for_each_or_one_for_as_many_as_share_it(made):
    collective = made(4)
    assert (collective.workers, collective.rows) == (4, 4)
    for each, fitting in ((None, {1, 4}), (1, {4}), (2, {2}), (4, {1})):
        for count in range(1, 9):
            rows = torch.arange(3.0).repeat(count, 1)
            if count in fitting:
                assert collective.sum(rows, each).tolist() == [0.0, count, 2.0 * count]
                continue
            shared = "one row, or a row for each" if each is None else f"{4 // each} rows for {each} of them each"
            for asked in (collective.sum, collective.start):
                with pytest.raises(ValueError, match=f"handed {count} rows for 4 workers; it takes {shared}"):
                    asked(rows, each)


def test_the_sum_of_a_lone_worker_is_its_row_and_what_is_started_may_be_kept():
    alone, rows = in_process(1), torch.ones(1, 3)
    assert isinstance(alone, Alone)
    assert alone.sum(rows).data_ptr() == rows.data_ptr()
    started = alone.start(rows)
    assert started.done()
    rows.fill_(7)
    assert started.wait().tolist() == [1.0] * 3
    for each, count in ((None, 2), (2, 1), (1, 2)):
        for asked in (alone.sum, alone.start):
            with pytest.raises(ValueError, match=f"{count} rows for 1 workers"):
                asked(torch.ones(count, 3), each)
