"""The trees of Rudra-adv and Rudra-adv*: servers over learners, and learners down which weights are broadcast."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from reference_impls.contract import GradientRef


@dataclass
class Node:
    """A server of the tree, beneath the root. ``children`` are servers, ``learners`` those of a leaf."""

    name: str
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    learners: list[int] = field(default_factory=list)
    timestamp: int = 0  # of the weights it holds
    buffer: list[GradientRef] = field(default_factory=list)
    port: Any = None  # Port: one message at a time
    relaying: Any = None  # simpy.Event while a relay to the parent is under way, else None
    fetching: Any = None  # the same while it asks the parent for weights
    gathered: Any = None  # simpy.Event: the gradients that gather now have been delivered to the parent

    @property
    def size(self) -> int:
        """Learners beneath."""
        return len(self.learners) + sum(child.size for child in self.children)

    def below(self) -> list[Node]:
        """This node and all beneath it, parents first."""
        return [self] + [node for child in self.children for node in child.below()]


def server_tree(learners: int, per_leaf: int, fan_out: int) -> Node:
    """A root over leaves of at most ``per_leaf`` learners, at most ``fan_out`` children to a server.

    Raises ValueError unless learners >= 1, per_leaf >= 1 and fan_out >= 2.
    """
    if learners < 1 or per_leaf < 1 or fan_out < 2:
        raise ValueError(
            f"server tree: learners={learners} and per_leaf={per_leaf} must be at least 1, and "
            f"fan_out={fan_out} at least 2"
        )
    leaves = -(-learners // per_leaf)
    bounds = [leaf * learners // leaves for leaf in range(leaves + 1)]
    level = [Node(f"leaf {leaf}", learners=list(range(bounds[leaf], bounds[leaf + 1]))) for leaf in range(leaves)]
    depth = 0
    while len(level) > fan_out:
        depth += 1
        level = [
            Node(f"server {depth}.{at // fan_out}", children=level[at : at + fan_out])
            for at in range(0, len(level), fan_out)
        ]
    root = Node("root", children=level)
    for node in root.below():
        for child in node.children:
            child.parent = node
    return root


def receivers(sender: int, learners: int, fan_out: int = 2) -> list[int]:
    """Children of a learner in adv*'s broadcast tree; -1 is the root server."""
    if sender < 0:
        return [0]
    first = sender * fan_out + 1
    return list(range(first, min(first + fan_out, learners)))
