"""Archives from a stranger, by the thousand, in one process.

    python tests/harness/hostile.py --count 10000 --seed 0 --out tests/harness/hostile.md

Half of them are exports spoiled in some way (bytes, names, sizes, packings, JSON, tables, seals made again or not),
merged into a store that holds the true runs. Half are committed runs with something forged and every seal made
again, laid over the committed evidence. A spoiled export must be refused in one sentence and leave the store as it
was, or bring nothing but what the store names; a forged run must be named by the survey that ``check`` prints.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from suite.papers.catalogue import committed
from suite.papers.measurement import is_timed
from suite.runs.archive import MANIFEST, Archive, Layered, export, merge
from suite.runs.comparison import relation, survey
from suite.runs.run import CHECKSUMS, Run, StoreError, digest, seal, verified
from suite.runs.store import Store
from suite.spec import ID_LENGTH

MEMORY = 500  # MB that the process may take at most
Files = dict[str, bytes]
ZEROS = bytes(2**20)
SIZES = (1, 16, 80)  # MB that a bomb unpacks to
PIECES: list[bytes] = []  # files in a table's place; another process makes them, whose memory is not counted


def number(rng: random.Random) -> Any:
    return rng.choice([0, -1, 1e308, float("nan"), float("inf"), 2**70, "", None, [], {}, True, rng.random()])


def shaken(value: Any, rng: random.Random) -> Any:
    """A JSON value with one place changed."""
    if isinstance(value, dict) and value:
        key = rng.choice(sorted(value))
        if rng.random() < 0.2:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: shaken(value[key], rng)}
    if isinstance(value, list) and value:
        place = rng.randrange(len(value))
        return [*value[:place], shaken(value[place], rng), *value[place + 1 :]]
    return number(rng)


def flipped(data: bytes, rng: random.Random, times: int = 1) -> bytes:
    changed = bytearray(data)
    for _ in range(times):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def table(columns: dict[str, Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream, **options)
    return stream.getvalue()


def odd_table(data: bytes, rng: random.Random) -> bytes:
    """A file in a table's place."""
    if rng.random() < 0.5:
        return rng.choice(PIECES)
    if rng.random() < 0.5:
        return data[: rng.randrange(len(data) + 1)]
    return flipped(data, rng, rng.choice([1, 1, 5, 50]))


def pieces() -> list[bytes]:
    """Tables that unfold, that lie about what they hold, and that are none."""
    many = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000_000, np.int8)), [1.0])
    packed = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    long = table({"x": pa.repeat("y" * 100_000, 3000)}, **packed)
    return [
        b"",
        b"PAR1" + bytes(range(40)) + b"PAR1",
        table({"x": many}),
        table({"x": [[{"a": [1, None]}], None]}),
        table({f"c{i}": [i] for i in range(2000)}),
        long,
        understated(long),
        table({"\x1b[2J": [1.0], "\u202e": [None]}),
    ]


def understated(data: bytes) -> bytes:
    """The same table with a footer that says that it unpacks to a few bytes: every size in it that is large is small.

    Thrift writes numbers in groups of seven bits; those above 16 MB take four bytes or more.
    """
    length = int.from_bytes(data[-8:-4], "little")
    footer = bytearray(data[-8 - length : -8])
    size = pq.read_metadata(io.BytesIO(data)).row_group(0).total_byte_size
    for promised in {size, pq.read_metadata(io.BytesIO(data)).row_group(0).column(0).total_uncompressed_size}:
        true, small = varint(2 * promised), varint(2 * 1000)
        small = small[:-1] + bytes([small[-1] | 0x80]) + b"\x80" * (len(true) - len(small) - 1) + b"\x00"
        footer = footer.replace(true, small)
    changed = data[: -8 - length] + bytes(footer) + data[-8:]
    assert pq.read_metadata(io.BytesIO(changed)).row_group(0).total_byte_size == 1000
    return changed


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def sealed(files: Files) -> Files:
    rest = {name: data for name, data in files.items() if name != CHECKSUMS}
    return rest | {CHECKSUMS: seal(rest)}


def spoil(runs: dict[str, Files], path: Path, rng: random.Random) -> str:
    """Write a spoiled export of the runs; returns what was done."""
    runs = {run_id: dict(files) for run_id, files in runs.items()}
    run_id = rng.choice(sorted(runs))
    files = runs[run_id]
    name = rng.choice(sorted(files))
    how = rng.choice(["json", "table", "name", "bytes", "zip", "bomb", "manifest", "packing", "deep", "none"])
    if how == "json":
        name = rng.choice(["spec.json", "environment.json", "outcome.json", CHECKSUMS])
        files[name] = json.dumps(shaken(json.loads(files[name]), rng)).encode()
    elif how == "table":
        name = rng.choice([*(n for n in files if n.endswith(".parquet")), "more.parquet"])
        files[name] = odd_table(files.get(name, b"PAR1PAR1"), rng)
    elif how == "name":
        odd = ["../x", "/x", "a\\b", ".x", "x" * 300, "\x00", "\x1b[2J.json", "", "a:b", "é" * 100, "con", "x/y"]
        files[rng.choice(odd)] = files.pop(name)
    elif how == "bytes":
        files[name] = flipped(files[name], rng)
    elif how == "bomb":
        return bomb(runs, run_id, path, rng.choice(SIZES))
    elif how == "deep":
        files[rng.choice(["outcome.json", "environment.json"])] = b"[" * 200_000
    if rng.random() < 0.8 and how != "bytes":
        runs[run_id] = sealed(files)
    manifest: Any = {"schema": 1, "about": {}, "runs": {i: digest(f.get(CHECKSUMS, b"")) for i, f in runs.items()}}
    if how == "manifest":
        manifest = shaken(manifest, rng)
    packing = rng.choice([zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2]) if how == "packing" else zipfile.ZIP_DEFLATED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(path, "w", packing) as target:
            target.writestr(MANIFEST, json.dumps(manifest))
            for i, content in runs.items():
                for n, data in content.items():
                    target.writestr(zipfile.ZipInfo(f"{i}/{n}"), data, packing)
                    if how == "name" and rng.random() < 0.05:
                        target.writestr(f"{i}/{n}", data)
    if how == "zip":
        data = path.read_bytes()
        cut = data[: rng.randrange(len(data))]
        path.write_bytes(rng.choice([lambda: flipped(data, rng, rng.choice([1, 3, 30])), lambda: cut])())
    return how


def bomb(runs: dict[str, Files], run_id: str, path: Path, size: int) -> str:
    """Write the runs with one more file, zeros, in one of them; every seal is right."""
    kept = path.with_name(f"{run_id}-{size}.bomb")
    if kept.exists():
        shutil.copy(kept, path)
        return f"bomb of {size} MB"
    zeros = hashlib.sha256()
    for _ in range(size):
        zeros.update(ZEROS)
    checksums = json.loads(runs[run_id][CHECKSUMS])
    checksums["files"]["more.parquet"] = zeros.hexdigest()
    runs[run_id][CHECKSUMS] = json.dumps(checksums).encode()
    manifest = {"schema": 1, "about": {}, "runs": {i: digest(files[CHECKSUMS]) for i, files in runs.items()}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr(MANIFEST, json.dumps(manifest))
        for i, files in runs.items():
            for name, data in files.items():
                target.writestr(f"{i}/{name}", data)
        with target.open(f"{run_id}/more.parquet", "w") as stream:
            for _ in range(size):
                stream.write(ZEROS)
    shutil.copy(path, kept)
    return f"bomb of {size} MB"


def forge(run: Run, rng: random.Random) -> tuple[str, Files]:
    """A run with something changed and sealed again, and what that was."""
    files = dict(run.files)
    how = rng.choice(["result", "table", "status", "environment and result"])
    if how == "table" and run.curves:
        name = rng.choice(run.curves)
        frame = run.curve(name)
        plain = [c for c in frame.columns if pd.api.types.is_numeric_dtype(frame[c])]
        if plain and len(frame):
            column, row = rng.choice(plain), rng.randrange(len(frame))
            values = frame[column].astype(float)
            values.iloc[row] = values.iloc[row] * 1.5 + 0.125
            files[f"{name}.parquet"] = table({c: values if c == column else frame[c] for c in frame.columns})
            return how, sealed(files)
    outcome = json.loads(files["outcome.json"])
    numbers = [n for n, v in outcome["results"].items() if isinstance(v, int | float) and not isinstance(v, bool)]
    if how == "status" or not numbers:
        outcome["status"] = "diverged" if outcome["status"] == "finished" else "finished"
    else:
        name = rng.choice(sorted(numbers))
        outcome["results"][name] = outcome["results"][name] * 1.5 + 0.125
    if how.startswith("environment"):
        files["environment.json"] = json.dumps(run.environment | {"source": "forged"}).encode()
    files["outcome.json"] = json.dumps(outcome).encode()
    return how, sealed(files)


def try_spoiled(true: dict[str, Files], folder: Path, store: Store, rng: random.Random) -> tuple[str, str]:
    path = folder / "hostile.zip"
    how = spoil(true, path, rng)
    before, done = snapshot(store), None
    with contextlib.suppress(StoreError):
        done = merge(Archive(path), store, partial(relation, timed=False))
    if done is None:
        assert snapshot(store) == before, f"{how}: refused, yet something stayed"
        return how, "refused"
    for run_id in done.new + done.contested:
        for run in store.versions(run_id):
            for name in run.curves:
                run.curve(name)
    for run_id, files in true.items():
        assert store.read(run_id).files == files, f"{how}: a stored run has changed"
    for run_id in done.contested:
        assert len(store.versions(run_id)) > 1
    told = "contested, both kept" if done.contested else "another execution, told" if done.others else "the same runs"
    restore(store, before)
    return how, "new runs of their own" if done.new else told


def snapshot(store: Store) -> set[Path]:
    parts = ("runs", "contested", "refused", "staging")
    return {path for part in parts if (store.root / part).is_dir() for path in (store.root / part).iterdir()}


def restore(store: Store, before: set[Path]) -> None:
    for path in snapshot(store) - before:
        shutil.rmtree(path)


def try_forged(evidence: Layered, ids: list[str], rng: random.Random) -> tuple[str, str]:
    run_id = rng.choice(ids)
    run = evidence.read(run_id)
    how, files = forge(run, rng)
    forged = verified(run_id, files)
    siblings = {i: evidence.versions(i) * 2 for i in rng.sample(ids, 2) if i != run_id}
    found = survey({run_id: [forged, run], **siblings}, is_timed)
    kind = found.kinds[run_id]
    assert kind != "equal", (how, run_id)
    assert any(kind in line for line in found.lines()), (how, run_id)
    return how, f"named: {kind}"


def peak() -> float:
    """Most memory that this process has taken so far, MB; getrusage would count that of who started it."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def trial(count: int, seed: int) -> Iterator[Counter[tuple[str, str, str]]]:
    """What became of ``count`` archives and forgeries, by kind; told after every thousand too."""
    rng = random.Random(seed)
    evidence = Layered(committed())
    ids = sorted(evidence.ids())
    assert all(len(i) == ID_LENGTH for i in ids)
    found: Counter[tuple[str, str, str]] = Counter()
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as name:
        folder = Path(name)
        small = sorted(rng.sample(ids, 200), key=lambda i: sum(map(len, evidence.read(i).files.values())))[:40]
        true = {i: dict(evidence.read(i).files) for i in rng.sample(small, 3)}
        export(true, folder / "true.zip", {})
        store = Store(folder / "store", create=True)
        merge(Archive(folder / "true.zip"), store, partial(relation, timed=False))
        subprocess.run([sys.executable, __file__, "--pieces", str(folder)], check=True)
        PIECES[:] = [piece.read_bytes() for piece in sorted(folder.glob("*.piece"))]
        for place in range(count):
            if place % 2:
                found["spoiled", *try_spoiled(true, folder, store, rng)] += 1
            else:
                found["forged", *try_forged(evidence, ids, rng)] += 1
            if (place + 1) % 1000 == 0 or place + 1 == count:
                yield found


def report(found: Counter[tuple[str, str, str]], memory: float, seed: int) -> str:
    head = (
        "# Archives from a stranger\n\nWritten by `python tests/harness/hostile.py`: "
        f"{found.total():,} archives and forgeries in one process, seed {seed}; none changed a verdict silently, "
        f"no traceback, {memory:.0f} MB of memory at most.\n\n| | what was done | what became of it | times |\n"
        "|---|---|---|--:|\n"
    )
    return head + "".join(f"| {' | '.join(key)} | {times} |\n" for key, times in sorted(found.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pieces", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.pieces:
        for place, piece in enumerate(pieces()):
            (chosen.pieces / f"{place}.piece").write_bytes(piece)
        sys.exit()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for made in trial(chosen.count, chosen.seed):
        text = report(made, peak(), chosen.seed)
        if chosen.out:
            chosen.out.write_text(text, encoding="utf-8")
    print(text)
    sys.exit(0 if peak() < MEMORY else 1)
