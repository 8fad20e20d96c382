"""The trees of Rudra-adv and Rudra-adv*."""

from __future__ import annotations

import pytest
import torch

from suite.parameter_server.servers import Layout
from suite.parameter_server.topology import Node, server_tree


@pytest.mark.parametrize(
    ("learners", "per_leaf", "fan_out"), [(8, 2, 2), (54, 8, 8), (13, 4, 2), (1, 8, 2), (100, 3, 3)]
)
def test_a_tree_averages_like_one_server(learners: int, per_leaf: int, fan_out: int) -> None:
    gradients = torch.randn(learners, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    root = server_tree(learners, per_leaf, fan_out)

    def relayed(node: Node) -> torch.Tensor:
        return gradients[node.learners].sum(0) + sum(map(relayed, node.children))

    assert (relayed(root) / root.size - gradients.mean(0)).abs().max() < 1e-14


@pytest.mark.parametrize(("learners", "per_leaf", "fan_out"), [(8, 2, 2), (54, 8, 8), (100, 3, 3), (7, 7, 2)])
def test_every_learner_has_one_leaf_and_every_server_one_parent(learners: int, per_leaf: int, fan_out: int) -> None:
    root = server_tree(learners, per_leaf, fan_out)
    nodes = root.below()
    assert sorted(worker for node in nodes for worker in node.learners) == list(range(learners))
    assert root.size == learners
    assert root.parent is None
    for node in nodes:
        assert len(node.children) <= fan_out
        assert len(node.learners) <= per_leaf
        assert all(child.parent is node for child in node.children)


@pytest.mark.parametrize("values", [(0, 1, 2), (4, 0, 2), (4, 2, 1)])
def test_impossible_trees_are_refused(values: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="server tree"):
        server_tree(*values)


def edges(architecture: str, learners: int) -> dict[str, list[tuple[str, str]]]:
    made = Layout(learners, architecture, per_leaf=3, fan_out=2).edges()
    return {what: [(a, b) for a, b, kind in made if kind == what] for what in ("gradients", "weights")}


@pytest.mark.parametrize("architecture", ["base", "adv", "adv*"])
def test_gradients_reach_the_weights_and_weights_reach_every_learner(architecture: str) -> None:
    found = edges(architecture, 14)
    up = dict(found["gradients"])
    tops = {receiver for receiver in up.values() if receiver not in up}
    assert len(tops) == 1
    learners = {f"learner {worker}" for worker in range(14)}
    assert learners <= set(up)
    reached, frontier = set(), set(tops)
    while frontier:
        reached |= frontier
        frontier = {receiver for sender, receiver in found["weights"] if sender in frontier} - reached
    assert learners <= reached


def test_in_the_broadcast_tree_a_learner_sends_to_two_unless_told() -> None:
    weights = [edge for edge in Layout(6, "adv*").edges() if edge[2] == "weights"]
    pairs = [("root", 0), ("learner 0", 1), ("learner 0", 2), ("learner 1", 3), ("learner 1", 4), ("learner 2", 5)]
    assert weights == [(sender, f"learner {child}", "weights") for sender, child in pairs]
