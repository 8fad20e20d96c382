"""Tables of stored runs: parquet that may come from anybody, parsed within bounds."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from suite.lazy import pd

Table = TypeVar("Table")

MOST_CELLS = 8_000_000  # rows times columns; the largest committed table has 210 thousand
MOST_BYTES = 64 * 2**20  # of all columns, unpacked
PARSING = 3 * MOST_BYTES  # address space for it: pages, columns, frame


def read_table(data: bytes) -> pd.DataFrame:
    """The table of a parquet file. Raises ValueError for anything else, and for what would unfold past the bounds.

    What the footer promises is looked at before a page is unpacked. A footer can lie, so the process may take no
    more than ``PARSING`` bytes meanwhile (on Linux; elsewhere only the footer bounds it).
    """
    read = lambda: pd.read_parquet(io.BytesIO(data), use_threads=False)
    return _bounded(data, read, lambda frame: int(frame.memory_usage(deep=True).sum()))


def check_table(data: bytes) -> None:
    """Raise ValueError where ``read_table`` would, at half its cost: a frame is made of columns without rows."""
    import pyarrow.parquet as pq

    table = _bounded(
        data, lambda: pq.ParquetFile(io.BytesIO(data)).read(use_threads=False), lambda table: table.nbytes
    )
    _bounded(data, lambda: table.schema.empty_table().to_pandas(use_threads=False), lambda frame: 0)


def _bounded(data: bytes, read: Callable[[], Table], size: Callable[[Table], int]) -> Table:
    """What ``read`` makes of a file whose footer and outcome are within the bounds. Raises as ``read_table``."""
    import pyarrow.parquet as pq

    import_module("pandas")  # here: its import needs threads and more memory than a table may take
    try:
        footer = pq.read_metadata(io.BytesIO(data))
        unpacked = sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))
        cells = footer.num_rows * footer.num_columns
        if cells <= MOST_CELLS and unpacked <= MOST_BYTES:
            with _at_most(PARSING):
                table = read()
            # A process that has freed memory before can take that much without asking for more.
            if (unpacked := size(table)) <= PARSING:
                return table
    except Exception as error:  # pyarrow and pandas fail in many ways on a file that is not what it says
        first = (str(error).splitlines() or [""])[0]
        raise ValueError(f"not a table that can be read: {type(error).__name__}: {first}") from error
    raise ValueError(
        f"a table of {cells:,} cells and {unpacked / 1e6:,.0f} MB unpacked; a run's may have {MOST_CELLS:,} cells "
        f"and {MOST_BYTES / 1e6:,.0f} MB"
    )


@contextlib.contextmanager
def _at_most(more: int) -> Iterator[None]:
    """The process cannot take ``more`` bytes of address space than it has; what asks for them gets a MemoryError."""
    if sys.platform != "linux":
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    bound = taken + more
    if soft == resource.RLIM_INFINITY or bound < soft:
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
