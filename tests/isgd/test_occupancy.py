"""Fig. 8 on four hosts: what travels along the tree, and known answers of what is read from the runs."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from paper_figures.isgd import fig8, settings
from paper_figures.isgd.experiments.occupancy import TreeOfProcesses
from suite.claims.judge import judge
from suite.communication.launch import spawn
from suite.papers.artifact import Missing
from suite.papers.catalogue import published

CLAIMS = {claim.id: claim for claim in published("isgd")}


def along_a_tree(group) -> tuple[list[float], list[float]]:
    """What a worker holds after the sum of 2 to the power of each rank, and what it was sent."""
    tree, held, sent = TreeOfProcesses(group), torch.full((3,), 2.0**group.rank), torch.full((3,), float(group.rank))
    tree.reduce(held)
    tree.broadcast(sent.add_(7.0) if group.rank == 0 else sent)
    return held.unique().tolist(), sent.unique().tolist()


@pytest.mark.processes
@pytest.mark.parametrize(("workers", "held"), [(4, [15.0, 2.0, 12.0, 8.0])])
def test_sums_go_up_the_tree_and_weights_down(workers, held):
    told = spawn(along_a_tree, workers, timeout=30)
    assert [values for values, _ in told] == [[each] for each in held]
    assert [values for _, values in told] == [[7.0]] * workers


def told(shares):
    """Four hosts with these shares (%) at batches 500 and 3000 by network; of three repetitions the middle one's."""

    def run(group):
        rows = [
            {"batch": batch, "repeat": repeat, "computed": 100 - share - apart, "communicated": share + apart}
            for batch, share in zip((500, 3000), shares[group.removeprefix("four ")], strict=True)
            for repeat, apart in enumerate((-0.05, 0.0, 0.05))
        ]
        return SimpleNamespace(id=group, results={"skipped": ""}, curve=lambda name: pd.DataFrame(rows))

    return SimpleNamespace(groups=[f"four {kind}" for kind in shares], run=run, profile="paper")


def measured(**shares):
    found = dict(fig8.measure_share(told(shares)))
    return {name: judge(CLAIMS[f"isgd/fig8/{name}"], value, "paper").verdict for name, value in found.items()}, found


def test_shares_as_printed_are_reproduced():
    words, found = measured(imagenet=(45, 16), cifar=(4, 2), mnist=(23, 10))
    assert words == dict.fromkeys(words, "reproduced")
    assert found["falls"].values == (pytest.approx(13.0),)
    assert found["order"].values == (pytest.approx(8.0), pytest.approx(6.0))
    assert found["caffe-quick-low"].values == (pytest.approx(4.0),)


def test_each_sentence_can_fail():
    assert measured(imagenet=(45, 33), cifar=(4, 2), mnist=(23, 10))[0]["falls"] == "not reproduced"
    assert measured(imagenet=(45, 16), cifar=(12, 2), mnist=(23, 10))[0]["caffe-quick-low"] == "not reproduced"
    assert measured(imagenet=(45, 9), cifar=(4, 2), mnist=(23, 10))[0]["order"] == "not reproduced"


def test_what_was_not_run_is_missing():
    with pytest.raises(Missing, match="no four hosts at smoke"):
        dict(fig8.measure_share(SimpleNamespace(groups=(), profile="smoke")))


def test_seconds_of_a_card_lie_between_those_that_were_timed():
    """AlexNet at a quarter of 500 images takes 55% of an update whose messages take the printed 45%."""
    seconds = settings.seconds_on("imagenet", 125)
    assert seconds == pytest.approx(6.9 * (0.02403 + 0.03348) / 2)
    messages = 4 * 243.86e6 / settings.CARDS["bandwidth"]
    assert messages / (messages + seconds) == pytest.approx(0.45, abs=0.001)
