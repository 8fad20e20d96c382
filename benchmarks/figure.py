"""Milliseconds of an update against the batch, drawn from a benchmark's document.

``python -m benchmarks.figure DOCUMENT [--out FILE]``; the suffix of the file says what it is: svg, png or pdf.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from suite.report.drawing import FORMS, image, write
from suite.report.speed_figures import against_batch
from suite.speed.baselines import read


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figure", description=__doc__)
    parser.add_argument("document", type=Path)
    parser.add_argument("--out", type=Path, default=Path("against-batch.svg"))
    given = parser.parse_args(arguments)
    if (form := given.out.suffix[1:]) not in FORMS:
        parser.error(f"--out must end in one of {', '.join(FORMS)}")
    drawn = against_batch(read(given.document))
    if drawn is None:
        print(f"{given.document} holds no workload of the batch: --only 'growth.*batch' times them", file=sys.stderr)
        return 1
    write(given.out, image(drawn, form))
    return 0


if __name__ == "__main__":
    sys.exit(main())
