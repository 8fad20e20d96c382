"""Tables of stored runs: parquet that may come from anybody, parsed within bounds."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MOST_CELLS = 8_000_000  # rows times columns; the largest committed table has 28 thousand
MOST_BYTES = 64 * 2**20  # of all columns, unpacked
PARSING = 3 * MOST_BYTES  # address space for it: pages, columns, frame


def read_table(data: bytes) -> pd.DataFrame:
    """The table of a parquet file. Raises ValueError for anything else, and for what would unfold past the bounds.

    What the footer promises is looked at before a page is unpacked. A footer can lie, so the process may take no
    more than ``PARSING`` bytes meanwhile (on Linux; elsewhere only the footer bounds it).
    """
    import pandas as pd
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(io.BytesIO(data))
        unpacked = sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))
        cells = footer.num_rows * footer.num_columns
        if cells <= MOST_CELLS and unpacked <= MOST_BYTES:
            with _at_most(PARSING):
                frame = pd.read_parquet(io.BytesIO(data), use_threads=False)
            # A process that has freed memory before can take that much without asking for more.
            if (unpacked := int(frame.memory_usage(deep=True).sum())) <= PARSING:
                return frame
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
