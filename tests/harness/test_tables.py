"""Tables from anybody: how large they may be, and what the process is left with."""

from __future__ import annotations

import contextlib
import io
import resource
import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import table

from suite.runs import run, tables
from suite.runs.run import Outcome, encode
from suite.runs.tables import read_table
from suite.spec import RunSpec


def test_cells_are_counted_over_rows_and_columns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tables, "MOST_CELLS", 10)
    assert read_table(table({"a": range(5), "b": range(5)})).shape == (5, 2)
    with pytest.raises(ValueError, match=r"a table of 12 cells and 0 MB unpacked; a run's may have 10 cells"):
        read_table(table({"a": range(6), "b": range(6)}))
    monkeypatch.setattr(run, "MOST_CELLS", 10)  # what nobody would read is not stored
    with pytest.raises(ValueError, match=r"its table 't' has 12 cells"):
        encode(RunSpec("toy"), {}, Outcome("finished", {}, {"t": pd.DataFrame({"a": range(6), "b": range(6)})}))


def test_a_table_is_the_first_thing_that_a_process_reads():
    """pandas is imported on its first use: within the bound on memory that import would not end."""
    code = "import sys; from suite.runs.tables import read_table; print(len(read_table(sys.stdin.buffer.read())))"
    done = subprocess.run(
        [sys.executable, "-c", code], input=table({"a": range(5)}), capture_output=True, timeout=120
    )
    assert done.stdout == b"5\n", done.stderr.decode()


def test_bytes_are_those_that_the_pages_unpack_to(monkeypatch: pytest.MonkeyPatch):
    data = table({"a": ["y" * 1000] * 100}, use_dictionary=False, compression="zstd")
    unpacked = pq.read_metadata(io.BytesIO(data)).row_group(0).total_byte_size
    assert unpacked > 100_000 > 10 * len(data)
    monkeypatch.setattr(tables, "MOST_BYTES", unpacked)
    assert len(read_table(data)) == 100
    monkeypatch.setattr(tables, "MOST_BYTES", unpacked - 1)
    with pytest.raises(ValueError, match="a table of 100 cells and 0 MB unpacked"):
        read_table(data)


def test_text_that_unfolds_in_memory_alone_is_refused_too(monkeypatch: pytest.MonkeyPatch):
    """Two thousand times the same kilobyte, where nothing else bounds it."""
    monkeypatch.setattr(sys, "platform", "elsewhere")
    monkeypatch.setattr(tables, "PARSING", 10**6)
    data = table({"a": pa.array(["y" * 1000] * 2000).dictionary_encode().cast(pa.string())})
    assert pq.read_metadata(io.BytesIO(data)).row_group(0).total_byte_size < 10_000
    with pytest.raises(ValueError, match=r"a table of 2,000 cells and 2 MB unpacked"):
        read_table(data)


@pytest.mark.parametrize("data", [b"", b"PAR1 is no table PAR1", table({"a": [1]})[:-9]])
def test_what_is_no_table_is_refused_with_the_reason_in_one_line(data: bytes):
    with pytest.raises(ValueError, match=r"^not a table that can be read: \w+: \w[^\n]+$"):
        read_table(data)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no limit is set")
@pytest.mark.parametrize("data", [table({"a": [1]}), b"no table"])
def test_the_process_may_take_as_much_afterwards_as_before(data: bytes):
    before = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(ValueError):
        read_table(data)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
