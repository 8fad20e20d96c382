"""Tables of stored runs: parquet that may come from anybody, parsed within bounds."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MOST_CELLS = 10_000_000  # rows times columns
MOST_BYTES = 128 * 2**20  # of all columns, unpacked


def read_table(data: bytes) -> pd.DataFrame:
    """The table of a parquet file. Raises ValueError for anything else, and for what would unfold past the bounds.

    What the footer promises is looked at before a page is unpacked; one that understates its pages fails to parse.
    """
    import pandas as pd
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(io.BytesIO(data))
        unpacked = sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))
        cells = footer.num_rows * footer.num_columns
        if cells <= MOST_CELLS and unpacked <= MOST_BYTES:
            return pd.read_parquet(io.BytesIO(data))
    except Exception as error:  # pyarrow and pandas fail in many ways on a file that is not what it says
        first = (str(error).splitlines() or [""])[0]
        raise ValueError(f"not a table that can be read: {type(error).__name__}: {first}") from error
    raise ValueError(
        f"a table of {cells:,} cells and {unpacked / 1e6:,.0f} MB unpacked; a run's may have {MOST_CELLS:,} cells "
        f"and {MOST_BYTES / 1e6:,.0f} MB"
    )
