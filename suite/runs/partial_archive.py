"""Runs under way as one file, so that another machine goes on where this one had to stop.

The file is a zip of ``STORE/partial``. Whoever takes it in looks at names and sizes before anything is unpacked; what
a folder holds is judged when its run is resumed, which begins anew what it cannot go on with.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from suite.runs.store import DamagedRun, Store, StoreError, is_run_id, plain_name

MOST_BYTES = 8 * 2**30  # of all checkpoints together


def pack(root: Path, target: Path) -> list[str]:
    """Write what has been begun in a store and is not finished; returns the ids of its runs."""
    store = Store(root)
    begun = sorted(folder for folder in (root / "partial").iterdir() if folder.name not in store.ids())
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for run in begun:
            for file in sorted(run.glob("*/*")):
                archive.write(file, f"{run.name}/{file.parent.name}/{file.name}")
    return [run.name for run in begun]


def take(source: Path, root: Path) -> list[str]:
    """Put the runs of such a file into a store that has neither finished nor begun them; returns their ids.

    Raises StoreError for a file that is no zip, DamagedRun for names or sizes that ``pack`` does not write.
    """
    store = Store(root, create=True)
    try:
        archive = zipfile.ZipFile(source)
    except (OSError, zipfile.BadZipFile) as error:
        raise StoreError(f"{source} holds no runs under way: {error}") from error
    with archive:
        files: dict[str, list[tuple[str, str, zipfile.ZipInfo]]] = {}
        for info in archive.infolist():
            run_id, *rest = info.filename.split("/")
            if not is_run_id(run_id) or len(rest) != 2 or not all(map(plain_name, rest)):
                raise DamagedRun(f"{source}: {info.filename[:200]!r} is not a file of a run under way")
            files.setdefault(run_id, []).append((rest[0], rest[1], info))
        if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
            raise DamagedRun(f"{source}: its files unpack to more than {MOST_BYTES:,} bytes")
        wanted = [r for r in files if r not in store.ids() and not store.partial(r).exists()]
        for run_id in wanted:
            for claim, name, info in files[run_id]:
                folder = store.partial(run_id) / claim
                folder.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(archive.read(info))
    return wanted
