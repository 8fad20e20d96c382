"""Downloads of data sets from the Hub, at their pinned revisions. Nothing else of the suite uses the network."""

from __future__ import annotations

import hashlib
from pathlib import Path

from suite.data.catalogue import DATASETS, DataError, data_root, locate, missing


def fetch(name: str, root: Path | None = None) -> Path | None:
    """Download the set at its pinned revision into ``root`` and return its folder (None if embedded).

    Raises:
        DataError: no revision is pinned, the download failed, or a file is not the one of that revision.
    """
    info = DATASETS[name]
    if info.embedded:
        return None
    if info.hub is None or info.revision is None:
        raise DataError(f"{name} cannot be fetched, since no revision of it is pinned: {missing(name, root)}")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    patterns = [f"{info.config}/{info.prefix(split)}-*.parquet" for split in info.sizes]
    target = data_root(root) / info.hub
    try:
        snapshot_download(
            info.hub,
            repo_type="dataset",
            revision=info.revision,
            allow_patterns=patterns,
            local_dir=target,
        )
    except (HfHubHTTPError, OfflineModeIsEnabled, OSError) as error:
        # the licence of ImageNet is accepted on its page, with a token, before the Hub hands it out
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise DataError(
            f"{name}: {info.hub} at {info.revision[:12]} could not be downloaded "
            f"({why}); check the connection and your access to it, "
            f"or copy its files to {target} from another machine"
        ) from error
    for file, expected in info.sha256.items():
        _check_digest(name, target / info.config / file, expected)
    folder = locate(name, root)
    if folder is None:
        raise DataError(
            f"{name}: {info.hub} at {info.revision[:12]} holds no file matching {', '.join(patterns)}; "
            f"copy the files to {target}/{info.config} from another machine"
        )
    return folder


def _check_digest(name: str, path: Path, expected: str) -> None:
    """Move a downloaded file aside that is another than the pinned one. Raises DataError then."""
    if not path.exists():
        return
    with open(path, "rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != expected:
        aside = path.rename(path.with_name(f"{path.name}.refused"))
        raise DataError(
            f"{name}: {path.name} has the SHA-256 {found[:12]}..., where that of the pinned revision is "
            f"{expected[:12]}...; it was moved to {aside}. Look at what HF_ENDPOINT names, and fetch it again"
        )
