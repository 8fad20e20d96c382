"""Captured gradients, updates and tests: rehearsed everywhere, on CUDA graphs where there is a GPU."""

from __future__ import annotations

import gc

import pytest
import torch
from engine_cases import agree, bound, digits, points, problem
from rehearsal import Refused, Rehearsal
from torch.utils._pytree import tree_leaves

from reference_impls.contract import Points
from suite.experiment import Context
from suite.spec import RunSpec
from suite.training.build import assemble
from suite.training.evaluation import CapturedTest, score
from suite.training.gradients.backend import AutogradGradients, compute_gradients
from suite.training.gradients.cuda_graph import KEPT, Captured, CapturedUpdate, overwrite
from suite.training.gradients.paths import backend
from suite.training.loop import TrainingRun, rounds, weights_digest
from suite.training.numerics import apply, choose
from suite.training.problem import Classification
from suite.training.recording import CudaGraphs

EXECUTION = choose(RunSpec("train"), "cpu", 1)
MOVED = (1.0, 1.5, 0.5)


def rehearsed(case, **options):
    return Captured(case, Rehearsal(), **options)


def three(case):
    device = case.targets.device
    at = Points(points(case, 3), (1, 1, 1), torch.zeros(3, dtype=torch.int64, device=device))
    return at, case.b0().repeat(3, 1), torch.arange(12, device=device).view(3, 4)


@pytest.mark.parametrize("channels_last", [True, False], ids=["channels-last", "channels-first"])
@pytest.mark.parametrize("name", ["digits_lenet", "tiny_bn", "linear"])
def test_one_recording_serves_all_points_and_batches(name, channels_last):
    case = problem(name, channels_last=channels_last, **({"input_shape": (1, 8, 8)} if name == "linear" else {}))
    at, rows, examples = three(case)
    captured = rehearsed(case)
    for factor in MOVED:
        moved, other = at._replace(parameters=factor * at.parameters), examples.flip(0).roll(int(2 * factor), 1)
        ours = tuple(part.clone() for part in compute_gradients(captured, moved, factor * rows, other))
        agree(ours, compute_gradients(AutogradGradients(case), moved, factor * rows, other), case.d)
    assert captured.recorder.recorded == 1
    assert captured.recorder.replays == len(MOVED)
    assert set(captured.recorder.branches) == {3}


def test_batches_of_another_shape_are_another_recording():
    case = problem("digits_lenet")
    at, rows, examples = three(case)
    captured = rehearsed(case)
    for width in (4, 2, 4):
        compute_gradients(captured, at, rows, examples[:, :width])
    assert captured.recorder.recorded == 2


def test_buffers_outlive_the_next_call_and_the_modules_own_are_left_alone():
    case = problem("tiny_bn")
    at, rows, examples = three(case)
    own = {name: buffer.clone() for name, buffer in case.flat.module.named_buffers()}
    captured = rehearsed(case)
    first = compute_gradients(captured, at, rows, examples)[2]
    kept = first.clone()
    compute_gradients(captured, at, first, examples.flip(0))
    assert torch.equal(first, kept)
    for name, buffer in case.flat.module.named_buffers():
        assert torch.equal(buffer, own[name]), name


def test_graphs_of_many_shapes_do_not_pile_up():
    case = problem("linear", input_shape=(1, 2, 2))
    captured = rehearsed(case)
    x, rows = points(case, 1), case.b0()[None]
    for size in range(1, KEPT + 3):
        captured.indexed(x, rows, torch.arange(size)[None])
    assert len(captured._graphs) == KEPT
    batch = [case.fetch(torch.arange(1))]  # the first, recorded again
    expected = tuple(part.clone() for part in AutogradGradients(case)(x, rows, batch))
    agree(captured.indexed(x, rows, torch.arange(1)[None]), expected, case.d)


def test_what_no_graph_can_replay_is_noticed():
    """The rehearsal is no rubber stamp."""
    x, wide = torch.ones(3), [False]
    body = (
        lambda: x.mul_(float(x.sum())),  # reads a value
        lambda: x.add_(len(torch.nonzero(x))),  # a shape depends on values
        lambda: x.add_(torch.tensor([1.0, 2.0, 3.0])),  # brings values from the host
    )
    for act in body:
        with pytest.raises(Refused, match="cannot be captured"):
            Rehearsal().record(act)
    replay = Rehearsal().record(lambda: x[: 2 if wide[0] else 3].mul_(1.0))
    replay()
    wide[0] = True
    with pytest.raises(Refused, match="other operations"):
        replay()


def session(tmp_path, gradients, **changes):
    spec = digits(0, precision="float64", evaluate={"every": 100}, updates=15, **changes)
    apply(execution := EXECUTION | {"precision": "float64"})
    made = assemble(spec.settings, spec.seed, execution, None)
    return TrainingRun(spec, Context(tmp_path, execution), made, gradients(made.problem))


ALGORITHMS = {
    "sgd": {"drops": [[4, 0.1]]},
    "plain sgd": {"descent": {"rule": "torch"}},
    "isgd": {"algorithm": {"name": "isgd", "batches": 4, "zeta": 0.01, "stop": 3, "margin": 0.5}},
    "batch norm": {"model": {"name": "tiny_bn", "channels": 1, "input_size": 28}},
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_update_in_one_call_is_the_update(tmp_path, name):
    """All of it: state, velocity, statistics, learning rate, and what is recorded. In float64, over 15 updates."""
    ours = session(tmp_path, rehearsed, **ALGORITHMS[name])
    theirs = session(tmp_path, AutogradGradients, **ALGORITHMS[name])
    assert isinstance(ours.step, CapturedUpdate)
    assert theirs.step is None
    for turn in rounds(1):
        if turn.t == 15:
            break
        ours.update(turn)
        theirs.update(turn)
    assert ours.t == theirs.t == 15
    for mine, other in zip(tree_leaves(ours.state), tree_leaves(theirs.state), strict=True):
        assert mine.dtype == other.dtype
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(ours.buffers, theirs.buffers, rtol=1e-9, atol=1e-12)
    for each in (ours, theirs):
        each.recorder.settle()
    assert ours.recorder.updates.keys() == theirs.recorder.updates.keys()
    for column, values in theirs.recorder.updates.items():
        assert ours.recorder.updates[column] == pytest.approx(values, rel=1e-9), column
    if name == "isgd":
        assert any(theirs.recorder.updates["chasing"])


def test_a_captured_run_resumes_to_the_same_bits(tmp_path):
    """Also in a session that has recorded its update before it took up the checkpoint."""
    turns = list(zip(range(12), rounds(1), strict=False))
    whole, first, later = (session(tmp_path, rehearsed) for _ in range(3))
    for _, turn in turns:
        whole.update(turn)
    for _, turn in turns[:7]:
        first.update(turn)
    first.save()
    for _, turn in turns[:2]:
        later.update(turn)
    later.resume()
    for _, turn in turns[7:]:
        later.update(turn)
    assert weights_digest(later.state.x) == weights_digest(whole.state.x)
    assert torch.equal(later.state.memory, whole.state.memory)


def test_workers_at_one_point_are_one_batch_unless_every_gradient_is_to_be_computed_by_itself(tmp_path):
    spec = digits(0, precision="float64", workers=3)
    made = assemble(spec.settings, spec.seed, EXECUTION | {"precision": "float64"}, None)
    states = []
    for options, branches in (({}, 1), ({"joins": False}, 3)):
        one = TrainingRun(spec, Context(tmp_path, EXECUTION), made, rehearsed(made.problem), **options)
        one.update(next(one.turns()))
        assert set(one.backend.recorder.branches) == {branches}
        states.append(one.state.x)
    torch.testing.assert_close(*states, rtol=1e-12, atol=1e-14)


def test_a_state_is_overwritten_as_if_at_once():
    """Elastic averaging's next "previous" is the present "centre": copying one by one would lose it."""
    kept = (torch.tensor([1.0]), (torch.tensor([2.0]), torch.tensor([3.0])))
    overwrite(kept, (kept[0] + 10, (kept[0], kept[1][0])))
    assert [float(leaf) for leaf in tree_leaves(kept)] == [11.0, 1.0, 2.0]


def test_an_update_of_several_workers_stays_outside_the_graph(tmp_path):
    assert session(tmp_path, rehearsed, workers=2).step is None
    sma = session(tmp_path, rehearsed, workers=2, algorithm={"name": "crossbow"})
    assert sma.step is None
    sma.update(next(rounds(2)))  # its gradients are captured all the same
    assert sma.backend.recorder.replays == 1


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("name", ["digits_lenet", "tiny_bn", "crossbow_lenet"])
def test_a_captured_test_is_the_test(name, channels_last):
    """Dropout is off in a test, so its networks can be tested captured."""
    case = problem(name, examples=20, channels_last=channels_last)
    tested = CapturedTest(case, Rehearsal())
    for factor in (1.0, 1.01):
        x, row = factor * points(case, 1)[0], factor * case.b0()
        ours = tested.score(x, row, case.inputs, case.targets, chunk=8)
        theirs = score(case, x, row, case.inputs, case.targets, chunk=8)
        assert abs(ours[0] - theirs[0]) <= bound(torch.tensor(theirs[0], dtype=x.dtype), case.d)
        assert ours[1] == theirs[1]
    assert tested.recorder.recorded == 2  # chunks of eight, and the rest of four
    assert tested.recorder.replays == 2 * 3


def on_gpu(case):
    network = case.flat.module.cuda()
    flat = type(case.flat)(network, channels_last=True)
    return Classification(flat, case.inputs.cuda(), case.targets.cuda(), lambda pixels: pixels.float() / 256 - 0.5)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["digits_lenet", "tiny_bn"])
def test_captured_gradients_agree_with_looped_ones(name):
    case = on_gpu(problem(name, dtype=torch.float32))
    at, rows, examples = three(case)
    captured = backend("captured", case)
    for factor in MOVED:  # the second call replays
        moved = at._replace(parameters=at.parameters * factor)
        ours = tuple(part.clone() for part in compute_gradients(captured, moved, rows, examples))
        agree(ours, compute_gradients(AutogradGradients(case), moved, rows, examples), case.d)


@pytest.mark.gpu
def test_a_graph_outlives_the_workspaces_of_others():
    """torch.compile's graphs clear cuBLAS's workspaces, and one that another graph allocated goes with that graph."""
    case = on_gpu(problem("digits_lenet", dtype=torch.float32))
    at, rows, examples = three(case)
    first, second = backend("captured", case), backend("captured", case)
    for captured in (first, second):
        compute_gradients(captured, at, rows, examples)
    del first, captured
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    others = torch.full((2**28,), torch.nan, device="cuda")  # 1 GiB, over what was freed
    ours = tuple(part.clone() for part in compute_gradients(second, at, rows, examples))
    torch.cuda.synchronize()
    assert bool(others.isnan().all())
    agree(ours, compute_gradients(AutogradGradients(case), at, rows, examples), case.d)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["digits_lenet", "tiny_bn", "crossbow_lenet"])
def test_captured_tests_agree_with_looped_ones(name):
    case = on_gpu(problem(name, dtype=torch.float32, examples=20))
    tested = CapturedTest(case, CudaGraphs())
    for factor in MOVED:
        x = factor * points(case, 1)[0]
        ours = tested.score(x, case.b0(), case.inputs, case.targets, chunk=8)
        theirs = score(case, x, case.b0(), case.inputs, case.targets, chunk=8)
        assert abs(ours[0] - theirs[0]) <= bound(torch.tensor(theirs[0], dtype=torch.float32), case.d)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["sgd", "isgd", "batch norm"])
def test_captured_updates_agree_with_looped_ones(tmp_path, name):
    spec = digits(0, precision="float64", updates=20, **ALGORITHMS[name])
    sessions = []
    for path in ("captured", "looped"):
        apply(execution := EXECUTION | {"precision": "float64", "device": "cuda", "path": path})
        made = assemble(spec.settings, spec.seed, execution, None)
        sessions.append(TrainingRun(spec, Context(tmp_path, execution), made, backend(path, made.problem)))
    for _, turn in zip(range(20), rounds(1), strict=False):
        for each in sessions:
            each.update(turn)
    assert sessions[0].step is not None
    for mine, other in zip(*(tree_leaves(each.state) for each in sessions), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-8, atol=1e-10)
