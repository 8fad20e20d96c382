"""What a function's code leads to, by whatever way it holds on to it."""

from __future__ import annotations

import functools
from functools import partial

import pytest

from suite.clock import Link, WallClock
from suite.cost_models.machines import network
from suite.experiment import Experiment, lazily
from suite.papers.reaching import TIME_MODELS, definitions, reaches, reads_a_clock
from suite.papers.registry import paper
from suite.parameter_server.tree import server_tree

NETWORK = "suite.cost_models.machines:network"


def plainly(*given):
    """Stands for a function that does nothing by itself."""


def by_default(model=network):
    return model


def by_keyword(*, model=network):
    return model


@functools.wraps(network)
def wrapped(*given):
    return plainly(*given)


def itself():
    def function():
        return function

    return function


def holding(value):
    return lambda: value


class Field:
    def __init__(self, model):
        self.model = model

    def __call__(self):
        return self.model


@pytest.mark.parametrize(
    "function",
    [
        network,
        by_default,
        by_keyword,
        wrapped,
        functools.cache(network),
        holding(network),
        holding([plainly, network]),
        holding((plainly, network)),
        partial(plainly, network),
        partial(plainly, model=network),
        partial(partial(plainly, network), 3),
        partial(network, 3),
        partial(plainly, NETWORK),
        lazily(NETWORK),
        Experiment(lazily(NETWORK)).load,
        Field(network),
        holding(Field(network)),
    ],
)
def test_a_time_model_is_found_however_it_is_held(function):
    assert reaches(function, [NETWORK]) == NETWORK
    assert reaches(function, TIME_MODELS)


@pytest.mark.parametrize(
    "function",
    [
        plainly,
        server_tree,
        itself(),
        partial(plainly, "network"),
        partial(plainly, "of no package: network"),
        partial(plainly, "nobody.here:network"),
        partial(plainly, 3, None, [network.__name__]),
        holding({"model": 3}),
        lazily("suite.parameter_server.tree:server_tree"),
    ],
)
def test_what_leads_to_no_time_model_reaches_none(function):
    assert reaches(function, TIME_MODELS) == ""


def test_an_object_that_was_handed_over_leads_to_its_class():
    assert reaches(partial(plainly, Link(0.0, 1.0)), ["suite.clock:Link"]) == "suite.clock:Link"
    assert ("suite.clock", "WallClock") in definitions(partial(plainly, WallClock()))


def test_of_several_places_the_first_by_name_is_told():
    every = [lazily(place) for place in sorted(TIME_MODELS, reverse=True) if ":" in place]
    assert len(every) > 5
    assert reaches(partial(plainly, *every), TIME_MODELS) == "suite.clock:Compute"


def test_a_module_stands_for_all_that_is_in_it():
    assert reaches(network, ["suite.cost_models.machines"]).startswith("suite.cost_models.machines:")
    assert reaches(server_tree, ["suite.cost_models.machines"]) == ""


def test_a_bare_name_means_a_definition_of_any_paper_and_none_of_the_suite():
    body = paper("isgd").experiments["isgd/latency"].load
    (module, name), *_ = sorted(place for place in definitions(body) if place[0].startswith("paper_figures."))
    assert reaches(body, [f":{name}"]) == f"{module}:{name}"
    assert reaches(network, [":network"]) == ""


def test_what_a_function_needs_nothing_for_is_not_among_its_definitions():
    assert definitions(plainly) == frozenset()
    assert definitions(itself()) == frozenset()
    assert ("suite.parameter_server.tree", "server_tree") in definitions(server_tree)


def test_a_clock_is_found_behind_any_definition():
    assert reads_a_clock(partial(plainly, paper("isgd").experiments["isgd/latency"].load))
    assert not reads_a_clock(partial(plainly, WallClock()))
    assert not reads_a_clock(plainly)
