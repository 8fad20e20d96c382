"""Throughput over a shaped link, as ratios in one run::

    python benchmarks/link.py [--speeds 2e8 6e8] [--repeats 3]

Two one-thread workers, synchronous, layer-wise and delayed exchange, no communication, and PyTorch DDP, taking
turns. Needs Linux and root; says what is missing otherwise and exits with status 3.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from paper_figures.matex_agd.link import link
from paper_figures.matex_agd.link_results import SPEEDS, WORKLOADS
from suite.experiments import Context
from suite.spec import RunSpec
from suite.statistics import log_interval


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speeds", type=float, nargs="+", default=list(SPEEDS), help="bits per second")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions of every block, 2 or more")
    arguments = parser.parse_args()
    if arguments.repeats < 2:
        parser.error("--repeats must be at least 2: one repetition says nothing of the spread")
    spec = RunSpec("matex_agd/link", {"speeds": arguments.speeds, "repeats": arguments.repeats})
    done = link(spec, Context(Path("."), {}))
    if done.results["skipped"]:
        print(f"skipped: {done.results['skipped']}", file=sys.stderr)
        return 3
    forecast = done.curves["predicted"].set_index(["method", "speed"])["rate"]
    for workload, title in WORKLOADS.items():
        print(f"\n{title}: rate relative to no communication, 95% interval of {arguments.repeats} repetitions")
        table = done.curves[workload]
        for speed in arguments.speeds:
            wide = table[table["speed"] == speed].pivot(index="repeat", columns="method", values="seconds").dropna()
            for method in [name for name in wide.columns if name not in ("no comm", "empty sum")]:
                seen = log_interval([float(v) for v in wide["no comm"] / wide[method]])
                said = f"  predicted {forecast[method, speed]:.3f}" if (method, speed) in forecast else ""
                said = said if workload == "sleeping" else ""
                print(
                    f"  {speed / 1e6:7g} Mbit/s  {method:24s} {seen.mean:.3f} [{seen.low:.3f}, {seen.high:.3f}]{said}"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
