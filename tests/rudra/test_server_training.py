"""Training along a simulated server: what must equal plain SGD, one gradient at a time, and an unbroken run."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from simulated_systems import COSTS
from torch import Tensor

from reference_impls import rudra, rudra_protocol
from reference_impls.contract import Turn
from suite.communication.collectives import Local
from suite.data.order import FixedCycle
from suite.experiment import Context, OutOfTime
from suite.parameter_server import training as server_training
from suite.parameter_server.protocol import GammaDurations, Staleness, play
from suite.parameter_server.simulation import simulation
from suite.parameter_server.training import train
from suite.spec import RunSpec, thaw
from suite.training import loop
from suite.training.build import SOLVERS, Setup, make_algorithm
from suite.training.gradients.backend import Functional, Vectorised
from suite.training.gradients.native import Native
from suite.training.loop import train as train_plainly
from suite.training.numerics import choose
from suite.training.optimizers import CaffeSGD
from suite.training.problem import QuadraticProblem

EXECUTION = choose(RunSpec("train"), "cpu", 1)


def spec(n: int, learners: int, updates: int, **changes: Any) -> RunSpec:
    settings = {
        "data": {"name": "digits", "transform": "scale", "size": 28, "subset": 400},
        "model": {"name": "digits_lenet"},
        "algorithm": {"name": "rudra", "workers": learners, "n": n, "history": 3 * n + 3},
        "descent": {"rule": "caffe", "momentum": 0.9, "decay": 0.004, "multipliers": True},
        "rate": 0.001,
        "drops": [],
        "batch": 4,
        "workers": learners,
        "order": {"kind": "with-replacement"},
        "updates": updates,
        "evaluate": {"every": updates},
        "server": {"architecture": "base", **COSTS},
        **changes,
    }
    return RunSpec("rudra/train", settings)


@pytest.fixture(autouse=True)
def small_test_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate on 50 images: the tests compare weights, not errors."""
    assemble = loop.assemble

    def assembled(*arguments: Any) -> Any:
        made = assemble(*arguments)
        made.test_inputs, made.test_targets = made.test_inputs[:50], made.test_targets[:50]
        return made

    monkeypatch.setattr(loop, "assemble", assembled)


def folder(tmp_path: Path, name: str) -> Path:
    made = tmp_path / name
    made.mkdir()
    return made


NATIVE = pytest.param("native", marks=pytest.mark.compiler)


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("path", ["looped", NATIVE])
@pytest.mark.parametrize("n", [0, 1])
def test_one_learner_is_plain_sgd_bit_for_bit(n: int, path: str, tmp_path: Path) -> None:
    execution = {**EXECUTION, "path": path}
    # LeNet's products differ in their last bits with where the weights begin, which is another place on the server
    wanted = spec(n, 1, 12, model={"name": "linear"})
    ours = train(wanted, Context(folder(tmp_path, "server"), execution))
    settings = thaw(wanted.settings)
    del settings["server"]
    settings["algorithm"] = {"name": "sgd"}
    plain = train_plainly(RunSpec("train", settings), Context(folder(tmp_path, "plain"), execution))
    assert ours.results["weights_digest"] == plain.results["weights_digest"]
    assert ours.curves["updates"]["loss"].tolist() == plain.curves["updates"]["loss"].tolist()


@pytest.mark.compiler
@pytest.mark.parametrize("n", [0, 2, 6])
def test_an_update_at_once_is_that_of_its_gradients(n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One gradient on weights of any age, several of one age, and some updates of both kinds."""
    wanted, execution = spec(n, 6, 40, record={"every": 1}), {**EXECUTION, "path": "native"}
    made, step = [], Native.server_step
    monkeypatch.setattr(Native, "server_step", lambda *given: made.append(step(*given)) or made[-1])
    ours = train(wanted, Context(folder(tmp_path, "at once"), execution))
    assert made[0] is not None
    monkeypatch.setattr(Native, "server_step", lambda self, algorithm: None)
    parts = train(wanted, Context(folder(tmp_path, "in parts"), execution))
    for name in ("mean_staleness", "virtual_seconds", "gradients"):
        assert ours.results[name] == parts.results[name]
    assert list(ours.curves["updates"]["loss"]) == pytest.approx(list(parts.curves["updates"]["loss"]), rel=1e-4)


@pytest.mark.parametrize(
    ("n", "path"),
    [(0, "looped"), (6, "looped"), (6, "vectorised"), pytest.param(6, "native", marks=pytest.mark.compiler)],
)
def test_a_run_cut_short_ends_in_the_same_bits(
    n: int, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = {**EXECUTION, "path": path}
    wanted = spec(n, 6, 8 if n == 0 else 24)
    whole = train(wanted, Context(folder(tmp_path, "whole"), execution))
    update = server_training.ServerRun.update

    def update_until_late(session: Any, turn: Turn) -> None:
        update(session, turn)
        if session.t in (3, 5):
            object.__setattr__(session.context, "deadline", 0.0)

    monkeypatch.setattr(server_training.ServerRun, "update", update_until_late)
    place = folder(tmp_path, "cut")
    for _ in range(2):
        with pytest.raises(OutOfTime):
            train(wanted, Context(place, execution))
    again = train(wanted, Context(place, execution))
    for name in ("weights_digest", "virtual_seconds", "mean_staleness", "test_loss", "gradients"):
        assert again.results[name] == whole.results[name]
    assert again.curves["updates"].equals(whole.curves["updates"])


def test_an_update_of_several_gradients_gets_each_loss_and_a_sum_for_each_timestamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of six learners make one, on weights of up to three ages."""
    update, seen = rudra.Softsync.update, []

    def watched(self: Any, state: Any, turn: Turn, losses: Tensor, sums: Tensor, lr: Tensor) -> Any:
        seen.append((len(losses), len(sums), len({entry.read for entry in turn.entries})))
        return update(self, state, turn, losses, sums, lr)

    monkeypatch.setattr(rudra.Softsync, "update", watched)
    wanted = spec(2, 6, 12, evaluate={"every": 6})
    made = train(wanted, Context(folder(tmp_path, "run"), EXECUTION))
    assert all((losses, sums) == (3, timestamps) for losses, sums, timestamps in seen)
    assert {1, 2} <= {timestamps for _, _, timestamps in seen}
    timed = list(islice(simulation(thaw(wanted.settings)["server"], 6, 2, 4, wanted.seed), 12))
    counted = Staleness().add(timed)
    assert made.results["gradients"] == counted.total == 36
    assert made.results["mean_staleness"] == pytest.approx(counted.mean)
    rows = made.curves["evaluations"]
    assert rows["virtual_seconds"].tolist() == [0.0, timed[5][0], timed[11][0]]
    assert rows["epoch"].tolist() == [0.0, 6 * 12 / 400, 12 * 12 / 400]


def test_batch_norm_is_refused(tmp_path: Path) -> None:
    wanted = spec(1, 2, 2, model={"name": "crossbow_resnet32"}, descent={"rule": "caffe"})
    with pytest.raises(ValueError, match="batch norm"):
        train(wanted, Context(folder(tmp_path, "norm"), EXECUTION))


# --- updates on a quadratic in float64

LEARNERS, BATCH = 6, 3


def problem() -> QuadraticProblem:
    generator = torch.Generator().manual_seed(2)
    rows = torch.randn(90, 8, generator=generator, dtype=torch.float64)
    return QuadraticProblem(rows, torch.linspace(0.5, 2.0, 8, dtype=torch.float64))


def examples(workers: list[int], numbers: Tensor) -> Tensor:
    start = (torch.tensor(workers) * 31 + numbers * 7) % 90
    return (start[:, None] + torch.arange(BATCH)) % 90


def trained(n: int, updates: int, paths: type) -> Tensor:
    """Weights after ``updates`` as a run makes them."""
    made, rate = problem(), torch.tensor(0.05, dtype=torch.float64)
    order = SimpleNamespace(indices=lambda numbers, workers: examples(workers.tolist(), numbers))
    algorithm = rudra.Softsync(CaffeSGD(0.9), Local(LEARNERS), LEARNERS, n, history=4 * LEARNERS)
    session = SimpleNamespace(
        algorithm=algorithm,
        state=algorithm.init(torch.zeros(8, dtype=torch.float64)),
        backend=paths(made),
        buffers=torch.zeros(1, 0, dtype=torch.float64),
        made=SimpleNamespace(problem=made, order=order),
        rate=lambda t: rate,
    )
    for _, turn in islice(play(rudra_protocol.Server(LEARNERS, n), LEARNERS, GammaDurations(1.0, 0.2, 4)), updates):
        server_training.ServerRun.applied(session, turn)
    return session.state.x


def one_at_a_time(n: int, updates: int) -> Tensor:
    """The same schedule with every single gradient computed by itself from the version it read."""
    made = problem()
    x = torch.zeros(8, dtype=torch.float64)
    versions, velocity = [x], torch.zeros_like(x)
    for _, turn in islice(play(rudra_protocol.Server(LEARNERS, n), LEARNERS, GammaDurations(1.0, 0.2, 4)), updates):
        total = torch.zeros_like(x)
        for entry in turn.entries:
            rows = made.rows[examples([entry.worker], torch.tensor([entry.number]))[0]]
            total += (made.curvature * (versions[entry.read] - rows)).mean(0)
        velocity = 0.9 * velocity + 0.05 * total / len(turn.entries)
        versions.append(versions[-1] - velocity)
    return versions[-1]


@pytest.mark.parametrize("paths", [Functional, Vectorised])
@pytest.mark.parametrize("n", [0, 1, 2, 6])
def test_an_update_equals_one_gradient_at_a_time(n: int, paths: type) -> None:
    assert (trained(n, 60, paths) - one_at_a_time(n, 60)).abs().max() < 1e-12


# --- AdaGrad after hardsync (section 5.5) on a quadratic in one number

HARDSYNC = {"updates": 2, "algorithm": {"n": 0}, "descent": {"rule": "caffe", "momentum": 0.5}, "rate": 0.25}
SOFTSYNC = {"rate": 0.1, "descent": {"rule": "adagrad"}, "evaluate": {"every": 6}, "warmstart": HARDSYNC}


@pytest.fixture
def quadratic(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Trainings on (x - 1)^2 / 2 from x = 0; holds the weights after every update."""

    def assembled(settings: Any, run_seed: int, execution: Any, root: Any) -> Setup:
        problem = QuadraticProblem(torch.ones(8, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
        object.__setattr__(problem, "targets", torch.zeros(8))
        solver = {**thaw(settings["descent"])}
        optimizer = SOLVERS[solver.pop("rule")](**solver)
        algorithm = make_algorithm(settings["algorithm"], optimizer, Local(settings["workers"]), 1)
        none, x0 = torch.zeros(0), torch.zeros(1, dtype=torch.float64)
        return Setup(problem, x0, FixedCycle(8, 1, run_seed), algorithm, none, none)  # type: ignore[arg-type]

    def watched(session: Any, turn: Turn) -> None:
        update(session, turn)
        seen.append(session.model().item())

    seen: list[float] = []
    update = server_training.ServerRun.update
    monkeypatch.setattr(loop, "assemble", assembled)
    monkeypatch.setattr(loop.TrainingRun, "on_images", lambda self, x, buffers: {"test_loss": x.item()})
    monkeypatch.setattr(server_training.ServerRun, "update", watched)
    return seen


def test_softsync_with_adagrad_starts_from_an_epoch_of_hardsync(quadratic: list[float], tmp_path: Path) -> None:
    """Hardsync moves by 0.25 and 0.3125. AdaGrad remembers nothing of it: its first step is the rate."""
    wanted = spec(1, 2, 6, batch=1, **SOFTSYNC)
    made = train(wanted, Context(folder(tmp_path, "run"), EXECUTION))
    versions, squares = [0.5625], 0.0
    for _, turn in islice(simulation(thaw(wanted.settings)["server"], 2, 1, 1, 0), 6):
        gradient = sum(versions[entry.read] - 1 for entry in turn.entries) / 2
        squares += gradient**2
        versions.append(versions[-1] - 0.1 * gradient / math.sqrt(squares))
    assert versions[1] == pytest.approx(0.6625)
    assert quadratic == pytest.approx([0.25, 0.5625, *versions[1:]], rel=1e-9)
    assert made.curves["evaluations"]["test_loss"].tolist() == pytest.approx([versions[0], versions[-1]], rel=1e-9)


def test_a_warm_start_cut_short_ends_in_the_same_bits(
    quadratic: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = spec(1, 2, 6, batch=1, **SOFTSYNC)
    whole = train(wanted, Context(folder(tmp_path, "whole"), EXECUTION))
    place = folder(tmp_path, "cut")
    for _ in range(HARDSYNC["updates"] + 6):  # one update a session
        with pytest.raises(OutOfTime):
            train(wanted, Context(place, EXECUTION, deadline=0.0))
    again = train(wanted, Context(place, EXECUTION))
    assert again.results["weights_digest"] == whole.results["weights_digest"]
    assert quadratic[:8] == quadratic[8:]
