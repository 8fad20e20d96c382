"""Stored runs made up from their specifications: valid in form, with numbers that look like a training's."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Iterable
from typing import Any

import pandas as pd

from suite.models.table import counts
from suite.runs.store import Run
from suite.spec import RunSpec


class Fabricated:
    """A source of runs in which every run of ``specs`` is stored."""

    def __init__(self, specs: Iterable[RunSpec]):
        self.specs = {spec.id: spec for spec in specs}
        self.made: dict[str, Run] = {}

    def ids(self) -> set[str]:
        return set(self.specs)

    def read(self, run_id: str) -> Run:
        if run_id not in self.made:
            self.made[run_id] = self._make(run_id)
        return self.made[run_id]

    def _make(self, run_id: str) -> Run:
        spec = self.specs[run_id]
        results, curves = MAKERS[spec.experiment](spec, random.Random(run_id))
        files = {
            "spec.json": spec.to_json().encode(),
            "environment.json": json.dumps({"execution": {"device": "cpu"}, "source": "made up"}).encode(),
            "outcome.json": json.dumps({"status": "finished", "results": results}).encode(),
        }
        for name, table in curves.items():
            stream = io.BytesIO()
            table.to_parquet(stream)
            files[f"{name}.parquet"] = stream.getvalue()
        return Run(run_id, files)


Made = tuple[dict[str, Any], dict[str, pd.DataFrame]]


def train(spec: RunSpec, draw: random.Random) -> Made:
    """Errors that fall exponentially, more slowly with more workers."""
    s = spec.settings
    every, workers = s["evaluate"]["every"], s.get("workers", 1)
    epochs = s["updates"] // every
    last = {"digits_lenet": 0.02, "crossbow_lenet": 0.08}.get(s["model"]["name"], 0.1)
    slow = {"sgd": 1.4, "crossbow": 1.0 if s["algorithm"].get("momentum") else 1.8}[s["algorithm"]["name"]]
    pace = slow * workers**0.3 * epochs / 12
    rows = []
    for epoch in range(epochs + 1):
        error = last + (0.9 - last) * math.exp(-epoch / pace) + draw.gauss(0, 0.004)
        rows.append({"update": every * epoch, "test_error": max(0.001, error), "train_error": max(0.0, error - 0.02)})
    return {"test_error": rows[-1]["test_error"]}, {"evaluations": pd.DataFrame(rows)}


def followed(spec: RunSpec, draw: random.Random) -> Made:
    rows = []
    for epoch in range(1, spec.settings["epochs"] + 1):
        centre = 0.8 * math.exp(-epoch / 2) + abs(draw.gauss(0, 0.002))
        rows.append({"epoch": epoch, "learners": 4, "centre_error": centre, "replica_error": centre + 0.01})
    return rows[-1], {"models": pd.DataFrame(rows)}


def throughput(spec: RunSpec, draw: random.Random) -> Made:
    s = spec.settings
    results: dict[str, Any] = {
        "tuned_learners": 3,
        "best_learners": 3,
        "resize_over_iteration": 0.1,
        "resize_seconds": 1e-4,
    }
    sides = {"looped": lambda k: k**0.8, "vectorised": lambda k: k**0.9, "batch": lambda k: 0.5 + 0.5 * k}
    ratios = {"over_one": lambda k: k**0.2, "over_batch": lambda k: 0.8, "vectorised_over_looped": lambda k: 0.9}
    if counts(s["model"]).has_dropout:
        results["refused_vectorised"] = "a network with dropout cannot be packed or vectorised"
        del sides["vectorised"], ratios["vectorised_over_looped"]
    rows = []
    for k in s["learners"]:
        results[f"path_{k}"] = "looped"
        for name, value in ratios.items():
            results[f"{name}_{k}"] = [value(k) * (1 + draw.gauss(0, 0.02)) for _ in range(s["repeats"])]
        for side, time in sides.items():
            seconds = time(k)
            rows += [
                {"side": side, "learners": k, "repeat": r, "seconds": 1e-3 * seconds} for r in range(s["repeats"])
            ]
    return results, {"seconds": pd.DataFrame(rows)}


def engine(spec: RunSpec, draw: random.Random) -> Made:
    rules = [f"{rule}, {b}" for rule in ("first come", "round robin", "barrier") for b in ("alike", "varied")]
    sides = [*rules, "in turn, alike", *(f"{k} learners" for k in range(1, spec.settings.get("most", 4) + 1))]
    rows = [(side, repeat, 0.01 + 0.01 * draw.random()) for side in sides for repeat in range(3)]
    return {"tuned": 2}, {"seconds": pd.DataFrame(rows, columns=["side", "repeat", "seconds"])}


def memory(spec: RunSpec, draw: random.Random) -> Made:
    rows = [
        {"batch": batch, "learners": k, "shared": shared, "bytes": 10_000 * batch * (1 if shared else k) + 20_000 * k}
        for batch in spec.settings["batches"]
        for k in spec.settings["learners"]
        for shared in (True, False)
    ]
    extra = {f"extra_{how}": [1e6] * len(spec.settings["batches"]) for how in ("own", "shared")}
    return {"parameters": 5000, **extra}, {"memory": pd.DataFrame(rows)}


MAKERS = {
    "train": train,
    "crossbow/followed": followed,
    "crossbow/throughput": throughput,
    "crossbow/engine": engine,
    "crossbow/engine-asleep": engine,
    "crossbow/memory": memory,
}
