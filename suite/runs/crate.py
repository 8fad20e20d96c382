"""An export described as an RO-Crate, for archives of research data (https://w3id.org/ro/crate/1.2).

Each run is a data set that an action of the suite made. Authors and licence are those of the suite's own metadata;
whoever publishes runs under another licence changes it in the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from suite.clock import counted
from suite.runs.run import CHECKSUMS, Run, digest

NAME = "ro-crate-metadata.json"
SPECIFICATION = "https://w3id.org/ro/crate/1.2"
SUITE = "sgd-scaling-suite"
SPDX = "https://spdx.org/licenses/"
Entity = dict[str, Any]


def described(runs: Sequence[Run], manifest: str, content: bytes) -> bytes:
    """The metadata file of an export.

    Args:
        runs: Those that it holds, one or more.
        manifest: The name of the file that lists them.
        content: That file.
    """
    licence = str(metadata.metadata(SUITE)["License-Expression"])
    latest = max(str(run.environment.get("started", "")) for run in runs) or datetime.now(UTC).isoformat()
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{counted(len(runs), 'run')} of {SUITE}",
        "description": f"Runs of {', '.join(sorted({run.spec.experiment for run in runs}))}: settings, results, "
        "curves and environment of each, with checksums.",
        "datePublished": latest[:10],
        "license": {"@id": SPDX + licence},
        "hasPart": [{"@id": manifest}, *({"@id": f"{run.id}/"} for run in runs)],
        "mentions": [{"@id": f"#{run.id}"} for run in runs],
    }
    descriptor = {
        "@id": NAME,
        "@type": "CreativeWork",
        "conformsTo": {"@id": SPECIFICATION},
        "about": {"@id": "./"},
    }
    listed = file(manifest, "List of runs, with the digest of each one's checksums", content)
    author = {"@id": "#authors", "@type": "Organization", "name": metadata.metadata(SUITE)["Author"]}
    terms = {
        "@id": SPDX + licence,
        "@type": "CreativeWork",
        "name": licence,
        "description": "Licence, by its SPDX name",
    }
    graph = [descriptor, root, listed, software(), author, terms]
    for run in runs:
        graph += entities(run)
    document = {"@context": f"{SPECIFICATION}/context", "@graph": graph}
    return json.dumps(document, indent=1, ensure_ascii=False).encode()


def software() -> Entity:
    """The suite as it is installed: no SoftwareApplication, which must have an address."""
    known = metadata.metadata(SUITE)
    return {
        "@id": "#suite",
        "@type": "CreativeWork",
        "name": SUITE,
        "description": known["Summary"],
        "version": known["Version"],
        "author": {"@id": "#authors"},
        "license": {"@id": SPDX + known["License-Expression"]},
    }


def entities(run: Run) -> list[Entity]:
    """A run's folder, its file of checksums, and the action that made it."""
    folder, began = f"{run.id}/", run.environment.get("started")
    said = f"{run.spec.experiment}, seed {run.spec.seed}"
    checksums = f"{folder}{CHECKSUMS}"
    made = {"@id": folder, "@type": "Dataset", "name": said, "identifier": run.id}
    action = {"@id": f"#{run.id}", "@type": "CreateAction", "name": f"Run of {said}"}
    action["description"] = f"At revision {run.environment.get('revision', 'unknown')} of the suite"
    if began:
        made["dateCreated"] = action["startTime"] = began
    return [
        made | {"description": f"Settings: {run.spec.text}", "hasPart": {"@id": checksums}},
        file(checksums, "SHA-256 of the run's other files", run.files[CHECKSUMS]),
        action | {"instrument": {"@id": "#suite"}, "result": {"@id": folder}},
    ]


def file(name: str, description: str, content: bytes) -> Entity:
    return {
        "@id": name,
        "@type": "File",
        "name": name.rpartition("/")[2],
        "description": description,
        "encodingFormat": "application/json",
        "contentSize": str(len(content)),
        "sha256": digest(content),
    }
