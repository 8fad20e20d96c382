"""Curves of a run under way: recorded on the device, moved to the host when a checkpoint needs them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from suite.lazy import np, pd


class CurveRecorder:
    """Per-update rows (loss and what the algorithm shows of itself) and evaluation rows.

    Nothing is read from the device while rows are added; ``settle`` moves what has gathered, after which
    ``finite`` says whether every recorded and every evaluated loss so far was finite.
    """

    def __init__(self, every: int = 1):
        self.every = every
        self.updates: dict[str, list[Any]] = {}
        self.evaluations: dict[str, list[float]] = {}
        self.finite = True
        self._waiting: list[tuple[int, dict[str, Tensor]]] = []

    def wants(self, update: int) -> bool:
        """Whether an update is kept; of the others nothing need be computed."""
        return update % self.every == 0

    def add(self, update: int, values: dict[str, Tensor]) -> None:
        """Keep the 0-d tensors of one update, if it is wanted."""
        if self.wants(update):
            self._waiting.append((update, values))

    def evaluate(self, **row: float) -> None:
        """Add one evaluation row of host numbers."""
        for name, value in row.items():
            self.evaluations.setdefault(name, []).append(value)
            if name.endswith("loss"):
                self.finite &= math.isfinite(value)

    def settle(self) -> None:
        """Move gathered rows to the host."""
        if not self._waiting:
            return
        names = list(self._waiting[0][1])
        table = torch.stack(
            [torch.stack([row[name].double().reshape(()) for name in names]) for _, row in self._waiting]
        ).tolist()
        self.updates.setdefault("update", []).extend(update for update, _ in self._waiting)
        for column, name in enumerate(names):
            self.updates.setdefault(name, []).extend(row[column] for row in table)
        self._waiting.clear()
        position = names.index("loss")
        self.finite &= all(math.isfinite(row[position]) for row in table)

    def to_plain(self) -> dict[str, Any]:
        """For a checkpoint: settled rows as tensors and evaluation rows as lists."""
        return {"evaluations": self.evaluations, "names": list(self.updates)}

    def tensors(self) -> dict[str, Tensor]:
        return {f"curve/{name}": torch.tensor(values, dtype=torch.float64) for name, values in self.updates.items()}

    def restore(self, plain: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Continue from a checkpoint's rows."""
        self.evaluations = plain["evaluations"]
        self.updates = {name: tensors[f"curve/{name}"].tolist() for name in plain["names"]}
        losses = [v for n, column in self.evaluations.items() if n.endswith("loss") for v in column]
        self.finite = all(map(math.isfinite, [*losses, *self.updates.get("loss", [])]))

    def tables(self) -> dict[str, Any]:
        """The curves as data frames: ``updates`` (float32 but for the counter) and ``evaluations``."""
        tables = {}
        if self.updates:
            frame = pd.DataFrame({n: np.asarray(v, dtype=np.float32) for n, v in self.updates.items()})
            frame["update"] = np.asarray(self.updates["update"], dtype=np.int32)
            tables["updates"] = frame
        if self.evaluations:
            tables["evaluations"] = pd.DataFrame(self.evaluations)
        return tables
