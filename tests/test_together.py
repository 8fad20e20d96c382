"""The board of all methods: equal trials, a choice without test images, and scores with known answers."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from paper_figures.together import board
from paper_figures.together.experiments.study import best, by_law, crossing, rate_of
from paper_figures.together.methods import OTHERS, methods, study, trials
from paper_figures.together.seconds import LINKS, TIMES, Costs
from paper_figures.together.tasks import DIGITS, MNIST, TASKS, Task
from suite.claims.intervals import Interval
from suite.commands.together import board as shown
from suite.commands.together import rows
from suite.data.catalogue import DATASETS, DatasetInfo
from suite.data.images import content_digest
from suite.data.text import character_windows, load_pairs
from suite.experiment import Context, OutOfTime
from suite.models.table import counts
from suite.papers.artifact import Frame, Missing
from suite.papers.catalogue import experiment
from suite.runs.run import Outcome, encode
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training.numerics import choose

ARTIFACT = "together/mnist"
EXECUTION = choose(RunSpec("train"), "cpu", 1)


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_every_method_has_as_many_trials_inside_its_box_and_the_same_budget(task: Task):
    model = dict(task.model)
    assert task.parameters == counts(model.pop("name"), **model).parameters
    for method in (method for method in methods(task) if not method.by_law):
        drawn = trials(task, method)
        assert len(drawn) == task.trials
        low, high = task.adaptive_rates if method.adaptive else task.rates
        rates = [trial.rate / (1 if method.adaptive else 1 - trial.momentum) for trial in drawn]
        strata = sorted(int(task.trials * math.log(rate / low) / math.log(high / low)) for rate in rates)
        assert strata == list(range(task.trials))  # one in each interval, so none outside
        for settings in (method.settings(task, method, trial) for trial in drawn):
            server = settings.get("server")
            each = settings["batch"] * settings["workers"] // (settings["algorithm"]["n"] if server else 1)
            assert settings["updates"] * each == task.budget * task.batch
            assert settings["updates"] % settings["evaluate"]["every"] == 0


def test_a_crossing_lies_between_two_evaluations():
    places, errors = [0, 10, 20, 30, 40], [0.9, 0.5, 0.2, 0.4, 0.1]
    assert crossing(places, errors, 0.3, 1) == pytest.approx(10 + 10 * 2 / 3)
    assert crossing(places, errors, 0.3, 3) == pytest.approx(30 + 10 * (0.4 - 0.3) / (0.4 - 0.2))  # .5, .4, .2
    assert crossing(places, errors, 0.05, 1) == math.inf
    assert crossing(places, errors, 0.95, 1) == 0


def test_a_trial_that_reached_the_target_comes_before_one_of_lower_error():
    ends = (90, 0.02), (math.inf, 0.03), (math.inf, 0.01)
    reached, late, lower = ({"gradients": at, "error": error} for at, error in ends)
    assert [best(tried) for tried in ([late, lower, reached], [late, lower])] == [2, 1]


def test_the_law_chooses_the_batch_of_the_least_predicted_seconds_at_the_rate_where_that_is_least():
    """N(M) is 400 + 9,600 / M at the first rate and half of it at the third; at the others one trial is lost."""
    law = next(method for method in methods(MNIST) if method.by_law)
    plan, constants = study(MNIST, law)["study"], {0: (400, 9_600), 2: (200, 4_800)}
    tried = plan["trials"][: plan["tried"]]
    rates = [rate_of(trial) for trial in tried]
    assert (len(tried), len(set(rates))) == (MNIST.trials, MNIST.trials // 2)

    def ended(place: int) -> dict[str, float]:
        floor, rise = constants.get(place % 4, (math.inf, 0) if place < 4 else (300, 0))
        return {"gradients": (floor * tried[place]["batch"] + rise) / plan["batch"], "error": 0.02}

    found = [ended(place) for place in range(len(tried))]
    slower = {"update_seconds": [[size, 1.0 + size] for size in MNIST.sizes]}  # least (200 + 4,800 / M) (1 + M): 5
    chosen = plan["trials"][by_law(plan | slower, found)]
    assert (rate_of(chosen), chosen["batch"]) == (rates[2], 4)
    alike = {"update_seconds": [[size, 1.0] for size in MNIST.sizes]}  # the fewest updates
    assert plan["trials"][by_law(plan | alike, found)]["batch"] == max(MNIST.sizes)
    lost = [each | {"gradients": math.inf, "error": 0.1 * (place != 5)} for place, each in enumerate(found)]
    assert by_law(plan, lost) == 5  # without a law the best trial
    for trial in plan["trials"]:
        assert trial["updates"] * trial["batch"] == MNIST.budget * MNIST.batch


def fabricated(folder: Path, gradients: dict[str, list[float]], errors: dict[str, list[float]]) -> Frame:
    """Studies of some methods that came to these numbers, by seed."""
    store, groups = Store(folder, create=True), board.runs(ARTIFACT, "reduced")
    for name, arrivals in gradients.items():
        (spec,) = groups[name]
        ends = pd.DataFrame({"seed": range(len(arrivals)), "gradients": arrivals, "test_error": errors[name]})
        ends = ends.assign(status="finished", error=0.02)
        outcome = Outcome("finished", {"choice": 0}, {"ends": ends})
        store.commit(spec.id, encode(spec, {"started": "2099"}, outcome))
    return board.PANEL.read(store, "reduced", groups)


def test_ratios_are_paired_by_seed_and_a_missed_target_makes_a_bound(tmp_path: Path):
    """Four learners take 1.5 times SGD's gradients on every seed, so 3 / 8 of its rounds; one seed of SMA misses."""
    base = [1000.0, 1200.0, 2000.0]
    gradients = {"sgd": base, "sync-4": [1.5 * each for each in base], "sma-4": [1000.0, 1200.0, math.inf]}
    errors = {"sgd": [0.02] * 3, "sync-4": [0.01] * 3, "sma-4": [0.02, 0.02, math.nan]}
    frame = fabricated(tmp_path, gradients, errors)
    table, fewer = (board.table(ARTIFACT, frame, budget) for budget in (None, 1300))
    of = lambda table, method: table[table["method"] == method].set_index("score")
    assert set(table["method"]) == {"SGD", "synchronous SGD", "hardsync", "layer-wise", "SMA"}  # three read one study
    sync, sma = of(table, "synchronous SGD"), of(table, "SMA")
    assert sync["ratio"][["gradients", "rounds", "test error"]].tolist() == pytest.approx([1.5, 3 / 8, 0.5])
    assert (sync["reached"].iloc[0], sync["bound"]["rounds"]) == (3, "")
    assert (sma["reached"].iloc[0], *sma["bound"][["rounds", "test error"]]) == (2, ">=", "")
    assert math.log(sma["ratio"]["gradients"]) == pytest.approx(math.log(MNIST.budget / 2000) / 3)
    assert (sync["says"]["rounds"], sma["says"]["gradients"]) == ("less", "")  # always 3 / 8; one seed apart
    sgd, rarer = of(fewer, "SGD"), of(fewer, "synchronous SGD")
    assert (sgd["reached"].iloc[0], rarer["reached"].iloc[0]) == (2, 0)
    assert (rarer["bound"]["rounds"], rarer["says"]["rounds"]) == ("<>", "")  # 1 / 4 always, which says nothing
    asked = board.PANEL.more(frame)
    missed = asked["sma-4-gradients"].of(frame)
    ends = sma.loc["gradients", ["ratio", "low", "high"]].tolist()
    assert (*map(math.exp, missed.spans[0]), missed.n) == (*map(pytest.approx, ends), 3)
    named = {method.name: method for method in methods(MNIST)}
    assert missed.runs == tuple(board.spec_of(MNIST, named[name]).id for name in ("sma-4", "sgd"))
    assert missed.note == "log of the ratio to SGD's; 2 of 3 seeds reached the target"
    with pytest.raises(Missing, match="no run of diloco-4"):
        asked["diloco-4-rounds"].of(frame)


@pytest.mark.parametrize(
    ("bound", "says"),
    [("", ["less", "more", "more"]), (">=", ["", "more", ""]), ("<=", ["less", "", ""]), ("<>", ["", "", ""])],
)
def test_a_bound_is_told_on_its_own_side_and_else_counts_among_those_not_rejected(bound: str, says: list[str]):
    """Scores clearly below SGD's and clearly above it, which may be bounds; and one above it at 3%, which is none."""
    ratios = [board.Ratio(Interval(mean, mean - 0.1, mean + 0.1, 5, 4), 1.0, bound) for mean in (-1.0, 1.0)]
    ratios.append(board.Ratio(Interval(0.12, 0.02, 0.22, 5, 4), 1.0, ""))
    rivals = [SimpleNamespace(name=str(at), shares="") for at in range(3)]
    found = board.decided(rivals, {str(at): each for at, each in enumerate(ratios)})  # type: ignore[arg-type]
    assert [found.get(str(at), "") for at in range(3)] == says


def test_a_method_of_another_package_stands_on_the_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The file of the documentation, behind an entry point: its study is planned, and its row is shown."""
    page = (Path(__file__).parents[1] / "docs" / "together.md").read_text(encoding="utf-8")
    written: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], written)
    assert OTHERS.group in page  # of the entry points
    monkeypatch.setitem(OTHERS, "rare", written["RARE"])
    gradients = {"sgd": [1000.0, 1200.0], "rare-4": [2000.0, 2400.0]}
    frame = fabricated(tmp_path, gradients, {name: [0.02, 0.02] for name in gradients})
    table = board.table(ARTIFACT, frame).query("score == 'rounds'")
    assert table["method"].tolist() == ["SGD", "Local SGD, rarely"]
    assert table["ratio"].tolist() == pytest.approx([1, 0.5])
    assert board.PANEL.more(frame)["rare-4-rounds"].of(frame).values == (pytest.approx(math.log(0.5)),)


def test_a_table_wider_than_the_terminal_goes_on_below(tmp_path: Path):
    """Nothing is wider than the terminal, every block names the methods, and no number is lost."""
    gradients = {"sgd": [1000.0, 1200.0], "sma-4": [1100.0, 1500.0], "sma-16": [math.inf, math.inf]}
    table = board.table(ARTIFACT, fabricated(tmp_path, gradients, {name: [0.02, 0.02] for name in gradients}))
    assert sum(line.count(" none of 2  ") for line in rows(table, 200)) == 2  # gradients and rounds
    words = lambda lines: Counter(" ".join(lines).split())
    for most in (50, 60, 80, 100, 200):
        text = rows(table, most)
        assert max(map(len, text)) <= most
        blocks = "\n".join(text).split("\n\n")
        assert all(re.search(r"SMA\^? +4\b", block) and re.search(r"SMA\^? +16\b", block) for block in blocks)
        assert words(rows(table, 200)) <= words(text)
        assert (len(blocks) == 1) == (most >= len(max(rows(table, 200), key=len)))


def test_seconds_by_link_are_those_of_the_models_by_hand():
    """A ring of four sends 6 quarters of the parameters in 6 messages; at 1 Gb/s that outweighs a gradient."""
    latency, bandwidth = LINKS["1 Gb/s"]
    exchange = 6 * latency + 1.5 * 4 * MNIST.parameters / bandwidth
    step = MNIST.gradient_seconds
    local = {"algorithm": {"h": 8}}
    late = {"algorithm": {"h": 8, "switch": 40}}
    costs = partial(Costs, MNIST, 4, "1 Gb/s")
    assert TIMES["alone"](costs({}), 100) == pytest.approx(100 * step)
    image = {size: seconds / size for size, seconds in MNIST.update_seconds.items()}
    assert TIMES["alone"](costs({"batch": 64}), 100) == pytest.approx(100 * step * image[64] / image[16])
    assert TIMES["blocking"](costs({}), 100) == pytest.approx(100 * (step + exchange))
    assert TIMES["overlapped"](costs({}), 100) == pytest.approx(100 * max(step, exchange))
    assert TIMES["local"](costs(local), 80) == pytest.approx(80 * step + 10 * exchange)
    assert TIMES["post-local"](costs(late), 80) == pytest.approx(80 * step + 45 * exchange)
    fast = partial(Costs, MNIST, 4, "100 Gb/s")
    assert TIMES["layer-wise"](fast({}), 1) < TIMES["blocking"](fast({}), 1)
    assert TIMES["delayed"](fast({}), 100) == pytest.approx(100 * step, rel=1e-6)
    assert TIMES["hardsync"](fast({"algorithm": {}}), 50) > TIMES["softsync"](fast({"algorithm": {"n": 4}}), 50)


def test_a_task_without_runs_is_planned_and_shows_none(tmp_path: Path):
    """A study for each method that has runs of its own; a table only where SGD's is stored."""
    for artifact, profiles in board.PROFILES.items():
        planned = {spec.id for specs in board.runs(artifact, "reduced").values() for spec in specs}
        assert len(planned) == sum(not method.shares for method in methods(profiles["reduced"]))
        with pytest.raises(Missing, match=f"{artifact}: not run"):
            shown(artifact.partition("/")[2], "reduced", None, Store(tmp_path, create=True))


def test_a_study_of_a_transformer_on_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A method of the board on windows of number words: the loss falls, and errors are shares of all characters."""
    load = lambda split: character_windows([english for _, english in load_pairs("number_phrases", split)], 16)
    sizes = {split: len(load(split)[0]) for split in ("train", "test")}
    known = DatasetInfo("words", "", "characters", sizes, embedded=True, shape=(1, 1, 16), classes=96, load=load)
    monkeypatch.setitem(DATASETS, "words", known)
    data = {"name": "words", "transform": "as-is", "digest": content_digest("words")}
    model = {"name": "character_transformer", "width": 16, "blocks": 1, "context": 16}
    task = replace(DIGITS, data=data, model=model, trials=1, adaptive_rates=(0.01, 0.02), budget=96)
    method = next(each for each in methods(task) if each.name == "diloco-4")
    spec = board.spec_of(task, method)
    found = experiment(spec.experiment).load()(spec, Context(tmp_path, EXECUTION))
    for _, curve in found.curves["curves"].groupby("seed"):
        assert curve["validation_loss"].iloc[-1] < 0.8 * curve["validation_loss"].iloc[0]
        assert curve["validation_error"].between(0, 1).all()


def test_a_study_chooses_on_held_out_images_and_resumes_to_the_same_numbers(tmp_path: Path):
    """Interrupted after its first training it goes on with the second, and comes to what it would have come to."""
    method = next(each for each in methods(DIGITS) if each.name == "local-4")
    spec = board.spec_of(DIGITS, method)
    body = experiment(spec.experiment).load()
    once, twice = tmp_path / "once", tmp_path / "twice"
    once.mkdir()
    twice.mkdir()
    whole = body(spec, Context(once, EXECUTION))
    calls = iter(range(10**6))
    with pytest.raises(OutOfTime):
        body(spec, Context(twice, EXECUTION, stop=lambda: next(calls) > 14))
    resumed = body(spec, Context(twice, EXECUTION))
    assert whole.results == resumed.results
    for name in ("trials", "ends"):
        pd.testing.assert_frame_equal(whole.curves[name], resumed.curves[name])
    tried = whole.curves["trials"]
    best = min(range(len(tried)), key=lambda i: (tried["gradients"][i], tried["error"][i]))
    assert whole.results["choice"] == best
    assert len(whole.curves["ends"]) == len(DIGITS.seeds)
    assert whole.curves["ends"]["test_error"].between(0, 1).all()
