"""MaTEx: leveraging asynchronicity in gradient descent for scalable deep learning."""

from __future__ import annotations

from collections.abc import Callable

from paper_figures.artifact import Paper
from paper_figures.matex_agd import algorithms, figure1, table1
from suite.experiments import Body, Experiment
from suite.models.table import counts
from suite.spec import RunSpec
from suite.training_cost import FLOPS_PER_SECOND


def _layers() -> Body:
    from paper_figures.matex_agd.layers import layers

    return layers


def _properties() -> Body:
    from paper_figures.matex_agd.properties import properties

    return properties


def _workers() -> Body:
    from paper_figures.matex_agd.workers import workers

    return workers


def _link() -> Body:
    from paper_figures.matex_agd.link import link

    return link


def _imagenet() -> Body:
    from paper_figures.matex_agd.imagenet import imagenet

    return imagenet


def _imagenet_seconds(spec: RunSpec) -> float:
    s = spec.settings
    pictures = s["updates"] * (3 * s["batch"] * s["workers"] + s["evaluate"]["examples"] / s["evaluate"]["every"])
    return pictures * counts(s["model"]["name"]).flops_per_example / FLOPS_PER_SECOND


def _serial_gap() -> Body:
    from paper_figures.matex_agd.serial_gap import serial_gap

    return serial_gap


def _seconds(value: float) -> Callable[[RunSpec], float]:
    return lambda spec: value


PAPER = Paper(
    name="matex_agd",
    title="Leveraging Asynchronicity in Gradient Descent for Scalable Deep Learning",
    citation=(
        "Jeff Daily, Abhinav Vishnu and Charles Siegel, Leveraging Asynchronicity in Gradient Descent for "
        "Scalable Deep Learning, under review at ICLR 2017"
    ),
    artifacts=(
        table1.TABLE1,
        *figure1.artifacts(),
        *algorithms.ARTIFACTS,
    ),
    experiments={
        "matex_agd/layers": Experiment(_layers, seconds=_seconds(2.0)),
        "matex_agd/properties": Experiment(_properties, seconds=_seconds(9.0)),
        "matex_agd/link": Experiment(_link, seconds=_seconds(240.0), memory=lambda spec: 900_000_000, timed=True),
        "matex_agd/serial_gap": Experiment(_serial_gap, seconds=_seconds(6.0)),
        "matex_agd/imagenet": Experiment(
            _imagenet, _imagenet_seconds, lambda spec: ("imagenet",), lambda spec: 8_000_000_000
        ),
        "matex_agd/workers": Experiment(
            _workers, seconds=_seconds(10.0), memory=lambda spec: 900_000_000, timed=True
        ),
    },
)
