"""Fig. 7's measures on timings that were never made: what fills the paper's card, another one, and a CPU."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from fabricated_isgd_trainings import evidence

from paper_figures.isgd import fig7, settings
from suite.papers.counterfeits import Forged


def timed(device: str, card: str, overhead: float):
    """A gradient costs as much as ``overhead`` images and its own."""

    def make(_, spec):
        about = {"execution": {"device": device}, "machine": {"cpu": "some processor"}}
        about |= {"device": {"name": card}} if card else {}
        outcome = {"status": "finished", "results": {}}
        files = {
            "spec.json": spec.to_json().encode(),
            "outcome.json": json.dumps(outcome).encode(),
            "environment.json": json.dumps(about).encode(),
            "latency.parquet": b"",
        }
        sizes = [size for size in spec.settings["batches"] for _ in range(5)]
        table = pd.DataFrame({"batch": sizes, "seconds": [1e-5 * (size + overhead) for size in sizes]})
        return Forged(spec.id, files, {}, {"latency": table})

    return evidence(settings.latency("paper", "mnist"), make)


@pytest.mark.parametrize(
    ("device", "card", "saturation", "shape"),
    [
        ("cuda", "NVIDIA GeForce GTX TITAN X", False, False),
        ("cuda", "NVIDIA H100 80GB HBM3", True, False),
        ("cpu", "", True, True),
    ],
)
def test_only_the_papers_card_saturates_where_the_paper_says(device, card, saturation, shape):
    found = dict(fig7.measure_mnist(timed(device, card, 25.0)))
    assert found["saturation-1gpu"].values == (500.0,)
    assert (found["saturation-1gpu"].proxy, found["falls-then-flat"].proxy) == (saturation, shape)
    assert (card or "some processor") in found["saturation-1gpu"].note


@pytest.mark.parametrize("overhead", [0.0, 1e6])
def test_times_that_never_fall_or_fall_to_the_end_have_no_such_shape(overhead):
    fell, levelled = dict(fig7.measure_mnist(timed("cuda", "TITAN X", overhead)))["falls-then-flat"].values
    assert fell <= 0.2 or levelled <= 3.0
