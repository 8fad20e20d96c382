"""What a site was made from: one file in its folder, by which the next call knows what to leave as it is."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

from suite.report.drawing import write
from suite.runs.files import now_in, staged, sweep

NAME = "site.json"


@dataclass
class RunGroup:
    """Files that are made together: ``key`` of what they were made from, digest of each by its path in the site."""

    key: str
    files: dict[str, str] = field(default_factory=dict)


class Folder:
    """The folder of a site with its stamp. A file that was edited or removed counts as not made."""

    def __init__(self, root: Path):
        self.root = Path(root)
        self.key, self.groups = self._stamp()
        self.written: list[str] = []
        self._sweep()

    def _sweep(self) -> None:
        """Remove the files of this site that a process left which died while it wrote them."""
        files = {self.root / path for group in self.groups.values() for path in group.files}
        for parent in {path.parent for path in files}:
            with contextlib.suppress(OSError):  # nothing can be written there, or there is nothing
                sweep((path for path, name in staged(parent) if parent / name in files), now_in(parent))

    def _stamp(self) -> tuple[str, dict[str, RunGroup]]:
        """The stamp's contents; nothing where there is none or it cannot be read."""
        try:
            known = json.loads((self.root / NAME).read_bytes())
            groups = {name: RunGroup(str(row["key"]), dict(row["files"])) for name, row in known["groups"].items()}
            if not all(_inside(path) for group in groups.values() for path in group.files):
                return "", {}
            return str(known["key"]), groups
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return "", {}

    def holds(self, name: str, key: str) -> bool:
        """Whether the group was made from ``key`` and all its files are as they were written."""
        group = self.groups.get(name)
        return (
            group is not None
            and group.key == key
            and all(self._intact(path, digest) for path, digest in group.files.items())
        )

    def complete(self, key: str) -> bool:
        """Whether the whole site was made from ``key`` and is as it was written."""
        return bool(self.groups) and self.key == key and all(self.holds(n, g.key) for n, g in self.groups.items())

    def _intact(self, path: str, digest: str) -> bool:
        try:
            return digest_of((self.root / path).read_bytes()) == digest
        except OSError:
            return False

    def put(self, name: str, key: str, files: Mapping[str, bytes]) -> None:
        """Write those of a group's files that differ from what is there, and remove those it no longer has.

        Raises StoreError when one cannot be written.
        """
        before = self.groups.get(name, RunGroup(""))
        group = RunGroup(key, {path: digest_of(data) for path, data in files.items()})
        for path, digest in group.files.items():
            if not self._intact(path, digest):
                write(self.root / path, files[path])
                self.written.append(path)
        self._remove(set(before.files) - set(group.files))
        self.groups[name] = group

    def close(self, key: str, names: Iterable[str]) -> None:
        """Keep these groups alone and say that the site is whole."""
        kept = {name: self.groups[name] for name in names}
        files = {path for group in kept.values() for path in group.files}
        self._remove({path for group in self.groups.values() for path in group.files} - files)
        self.key, self.groups = key, kept
        self.save()

    def save(self) -> None:
        """Write the stamp, so that the next call goes on from here."""
        rows = {name: asdict(group) for name, group in self.groups.items()}
        write(self.root / NAME, json.dumps({"key": self.key, "groups": rows}, indent=0).encode())

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with contextlib.suppress(OSError):
                (self.root / path).unlink()


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:20]


def _inside(path: str) -> bool:
    """Whether a path of a stamp, which anybody can have written, stays in the folder."""
    return not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts
