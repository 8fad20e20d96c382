"""MaTEx's claims, and the quantities that measure them, by artifact and name."""

from __future__ import annotations

from typing import Any

from suite.claims.judge import judge
from suite.papers.artifact import Frame
from suite.papers.catalogue import paper, published

PANELS: dict[str, Any] = {artifact.id: artifact for artifact in paper("matex_agd").artifacts}
QUANTITIES = {
    f"{i.partition('/')[2]}/{name}": q for i, panel in PANELS.items() for name, q in panel.quantities.items()
}
CLAIMS = {claim.id.partition("/")[2]: claim for claim in published("matex_agd")}


def found(name: str, frame: Frame) -> Any:
    each = QUANTITIES[name]
    return each.of(frame)


def verdict(name: str, frame: Frame) -> str:
    return judge(CLAIMS[name], found(name, frame), "paper").verdict
