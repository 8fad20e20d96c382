"""A process that holds a claim, for the tests: prints ``held FOLDER``, then answers each line it reads.

    python held.py STORE RUN_ID

``write`` writes a file into the claim's folder and tells whether it could; ``lost`` tells whether the claim is known
to be lost.
"""

from __future__ import annotations

import sys
from pathlib import Path

from suite.runs.store import Store

if __name__ == "__main__":
    with Store(Path(sys.argv[1]), create=True).claim(sys.argv[2]) as claim:
        print("held", claim.open(lambda left: True) if claim else "", flush=True)
        for line in sys.stdin:
            if line.strip() == "write":
                try:
                    (claim.folder / "checkpoint").write_text("mine")
                    print("wrote", flush=True)
                except OSError as error:
                    print(type(error).__name__, flush=True)
            else:
                print(claim.lost, flush=True)
