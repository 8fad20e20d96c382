"""The report's parts one by one: tables beside figures, provenance, commands, and the runs behind them."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pandas as pd
import pytest
from fake_paper import claim, fig1_draw, fill, registered, specs, verdict

from suite.claims.judge import Verdict
from suite.claims.measured import EXACT, exact, interval, point
from suite.papers import verdicts
from suite.papers.artifact import Artifact
from suite.papers.verdicts import Measurement
from suite.report.behind import few_names, reasons, runs_behind, seeds, tried
from suite.report.data import encoded, known, plotted, table_of, values
from suite.report.page import Once, Section, Shown, show
from suite.report.provenance import departures, runs_and_environments
from suite.runs.archive import Layered
from suite.runs.store import DamagedRun, Outcome, Run, encode
from suite.spec import RunSpec


@pytest.fixture
def paper(tmp_path):
    with registered(tmp_path) as made:
        yield made


# --- tables of values


@pytest.mark.parametrize(
    ("made", "ours", "printed"),
    [
        (claim(printed=(10.0, 20.0)), (1.0, 2.0), [10.0, 20.0]),
        (claim("fake/fig1/it", "bound", (10.0,), side="lower"), (1.0, 2.0), [10.0, 10.0]),
        (claim("fake/fig1/it", "bound", (10.0, 20.0), side="lower"), (1.0, 2.0), [10.0, 20.0]),
        (claim("fake/fig1/it", "holds", (0.5,)), (1.0, 2.0, 3.0), [0.5, 0.5, 0.5]),
        (claim("fake/fig1/it", "order", (), order=("a", "b", "c")), (1.0, 2.0), [None, None]),
        (claim("fake/fig1/it", "bound", (10.0, 20.0), side="range"), (1.0, 2.0, 3.0), [10.0, 20.0, None]),
    ],
)
def test_each_value_stands_beside_what_is_printed_of_it(made, ours, printed):
    found = values([verdict(exact(ours), made=made)])
    assert [None if pd.isna(value) else value for value in found["printed"]] == printed
    assert found["ours"].tolist() == found["low"].tolist() == found["high"].tolist() == list(ours)


def test_what_is_only_near_stands_beside_and_what_was_not_measured_has_an_empty_row():
    near = Verdict(claim(), "not run", "why", None, "", point([7.0, 8.0], note="near", proxy=True))
    found = values([near, Verdict(claim("fake/fig1/other"), "not run", "why")])
    assert found["beside"].tolist()[:2] == [7.0, 8.0]
    assert found["n"].tolist() == [0, 0, 0]
    assert found["note"].tolist() == ["near", "near", ""]
    assert found["ours"].isna().all()
    shown = values([verdict(exact(1.0, note="mine"), proxy=point(7.0, proxy=True))])
    assert (shown["beside"].isna().all(), shown["ours"].tolist(), shown["note"].tolist()) == (True, [1.0], ["mine"])
    assert (shown["n"].tolist(), values([])) == ([1], None)


def test_a_table_is_written_as_csv_or_parquet(tmp_path):
    made = pd.DataFrame({"a": [1 / 3], "b": ["x"]})
    assert encoded(made, "csv") == b"a,b\n0.33333333,x\n"
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(encoded(made, "parquet"))), made)
    assert [known(form) for form in ("csv", "parquet")] == ["csv", "parquet"]
    with pytest.raises(ValueError, match="written as one of csv, parquet, not 'txt'"):
        encoded(made, "txt")


def test_a_panel_is_called_by_its_title_and_a_middle_one_too():
    from matplotlib.figure import Figure

    figure = Figure()
    for axes, title in zip(figure.subplots(1, 2), ("of all", ""), strict=True):
        axes.set_title(title)
        axes.bar([2], [3], bottom=1)
    assert plotted(figure)["panel"].tolist() == ["of all", "2"]
    assert plotted(figure)["y"].tolist() == [4.0, 4.0]


def test_what_shows_nothing_that_is_plotted_is_told_by_its_claims(paper):
    drawn = type("Drawn", (), {"profile": "", "groups": {}})()
    from matplotlib.figure import Figure

    drawn.figure = Figure()
    judge = lambda: [verdict(exact(10.0))]
    empty = replace(paper.artifact("fake/table1"), draw=fig1_draw)
    for artifact, shown in ((None, drawn), (empty, None), (empty, drawn)):
        assert table_of(artifact, Layered([]), shown, judge)["claim"].tolist() == ["fake/fig1/it"]
    framed = replace(empty, frame=lambda evidence: pd.DataFrame({"profile": [evidence.profile]}))
    assert table_of(framed, Layered([]), drawn, judge)["profile"].tolist() == ["smoke"]
    assert table_of(None, Layered([]), None, list) is None


# --- what stands behind a verdict and a page


def test_a_verdict_is_explained_line_by_line(paper, tmp_path):
    made = claim("fake/fig1/accuracy", "bound", (10.0,), side="lower", unit="s", tolerance=(1.0,))
    ours = verdict(interval(12.0, 10.04, 13.96), made=made, because="less data", decides=True)
    assert list(reasons(ours, paper.artifact("fake/fig1"))) == [
        ("printed", "≥ 10 s"),
        ("ours", "12.0 [10.0, 14.0] s"),
        ("why", "so it is"),
        ("rule", "bound lower, ± 1 s: a reason"),
        ("rests on", "reduced: less data (decides)"),
        ("register", "registered; 2000-01-01: for a test"),
        ("measure", "fake_paper:fig1_measures"),
        ("power", "catches a departure of 3.8 s four times in five"),
    ]


def test_a_verdict_without_numbers_says_that_it_has_none(paper):
    told = dict(reasons(Verdict(claim(rule="holds", printed=()), "not run", "no run"), None))
    assert told == {
        "printed": "holds",
        "ours": "not measured",
        "why": "no run",
        "rule": "holds, none: a reason",
        "register": "no line",
    }
    simply = verdict(exact(10.0), rests_on=EXACT, made=claim("fake/fig1/it", "bound", (1.0,), side="lower"))
    assert dict(reasons(simply, None))["rests on"] == "exact (decides nothing)"


def test_an_exploratory_verdict_is_told_beside_the_registered_one(paper):
    later = verdict(exact(12.0), "not reproduced")
    told = dict(reasons(verdict(exact(10.0), order="amended", exploratory=later), None))
    assert (told["register"], told["exploratory"]) == ("no line", "not reproduced 12")


def test_only_what_counts_is_tried(paper, monkeypatch):
    monkeypatch.setattr("suite.report.behind.trials", lambda *given: ["tried"])
    artifact = paper.artifact("fake/fig1")
    assert tried(verdict(exact(10.0)), artifact, Layered([])) == ["tried"]
    assert tried(verdict(exact(10.0), "inconclusive"), artifact, Layered([])) == []


def stored(number, environment):
    spec = RunSpec("toy/run", {"b": 1, "a": "x"}, number)
    files = encode(spec, {}, Outcome("finished", {}, note="a note"))
    return Run(spec.id, {**files, "environment.json": json.dumps(environment).encode()})


class Given:
    """A source of these runs, one of which is damaged."""

    def __init__(self, *runs):
        self.held = {run.id: run for run in runs}

    def read(self, run_id):
        if run_id == "damaged":
            raise DamagedRun("run damaged: is broken")
        return self.held[run_id]


def test_runs_share_an_environment_that_says_the_same_whenever_they_began_and_however_it_is_ordered():
    machine = {"cpu": "one", "memory_bytes": 2**33, "cores": 2, "swap_bytes": "none"}
    one = stored(0, {"machine": machine, "source": "s", "started": "2026-11-23T18:00:00+00:00"})
    same = stored(
        1, {"processor_seconds": 3, "source": "s", "machine": dict(reversed(machine.items())), "telemetry": {}}
    )
    other = stored(2, {"machine": {**machine, "cores": 4}, "source": "s"})
    asked = [one.id, "absent", same.id, "damaged", other.id]
    environments, described = runs_and_environments(Given(one, same, other), asked)
    facts = [("machine", "cores 2, cpu one, memory_bytes 8 GiB, swap_bytes none"), ("source", "s")]
    assert environments["E1"] == {"facts": facts, "runs": 2}
    assert (list(environments), environments["E2"]["runs"]) == (["E1", "E2"], 1)
    assert [run.environment for run in described] == ["E1", "", "E1", "", "E2"]
    assert [run.fault for run in described] == [
        "", "named by a quantity, but not stored", "", "run damaged: is broken", ""
    ]  # fmt: skip
    first = described[0]
    assert (first.experiment, first.seed, first.settings, first.note) == ("toy/run", 0, 'a="x", b=1', "a note")
    assert (first.origin, described[2].origin) == (
        "code revision not recorded: begun 2026-11-23",
        "code revision not recorded: made before starts were recorded",
    )
    assert described[2].seed == 1


def test_departures_stand_in_the_order_of_their_files(tmp_path):
    for name in ("d", "b", "a", "c", "e"):
        (tmp_path / f"{name}.py").write_text('"""Title.\n\nDiffers from it: in one way\n"""\n')
    assert [ledger.file for ledger in departures(tmp_path)] == [f"{name}.py" for name in "abcde"]


def test_a_source_is_read_once_also_where_it_is_damaged(tmp_path):
    asked = []

    class Source:
        def ids(self):
            asked.append("ids")
            return {"a", "damaged"}

        def read(self, run_id):
            asked.append(run_id)
            return Given(one).read(run_id) if run_id == "damaged" else one

    one = stored(0, {})
    once = Once(Source())
    assert once.ids() == once.ids() == {"a", "damaged"}
    assert once.read("a") is once.read("a") is once.versions("a")[0]
    for _ in range(2):
        with pytest.raises(DamagedRun, match="is broken"):
            once.read("damaged")
        with pytest.raises(KeyError):
            once.read("absent")
    assert asked == ["ids", "a", "damaged"]


def test_a_paper_s_failures_are_findings_or_unexplained():
    found = [verdict(said=said, red=red) for said, red in (("not reproduced", True), ("not reproduced", False))]
    section = Section(None, [Shown("a", "A", [found[0], verdict()]), Shown("b", "B", [found[1]])])
    assert (section.unexplained, section.findings) == (found[:1], found[1:])
    assert section.having("not reproduced") == found
    assert section.artifacts[0].tally == {"not reproduced": 1, "reproduced": 1}
    assert (Shown("a", "A", []).inches, Shown("a", "A", []).profiled) == (0.0, False)


def at(*profiles):
    return lambda profile: {"a": (RunSpec("fake/descent", {"profile": profile}),)} if profile in profiles else {}


@pytest.mark.parametrize(
    ("runs", "used", "command"),
    [
        (at("smoke", "reduced", "paper"), (), "smoke"),
        (at("reduced", "paper"), (), "reduced"),
        (at("paper"), (), "paper"),
        (at("smoke", "reduced", "paper"), ("paper", "smoke"), "paper"),
        (at("smoke", "reduced", "paper"), ("smoke", "reduced"), "reduced"),
        (at("reduced"), ("smoke",), "reduced"),
        (at("smoke", "reduced", "paper"), ("reduced",), "reduced"),
        (at("smoke", "reduced", "paper"), ("paper", "reduced", "smoke"), "paper"),
        (at(), ("smoke",), ""),
    ],
)
def test_an_artifact_is_remade_at_the_largest_profile_in_use(paper, runs, used, command):
    artifact, found = Artifact("fake/x", "X", runs), [replace(verdict(), profile=profile) for profile in (*used, "")]
    shown = show("fake/x", artifact, found, Layered([]), {})
    run = f"sgd-suite run fake/x --profile {command} && " if command else ""
    assert shown.command == f"{run}sgd-suite check fake/x"
    assert (shown.profiled, shown.undrawn, shown.drawn, shown.runs) == (bool(command), "", None, [])


def test_the_runs_behind_an_artifact_are_those_named_and_those_planned_that_are_stored(paper, tmp_path):
    store = fill(tmp_path / "store", note="")
    named = replace(verdict(exact(1.0, runs=["z", "y"])), profile="")
    near = replace(verdict(), proxy=point(1.0, runs=["x"], proxy=True))
    shown = show("fake/fig1", paper.artifact("fake/fig1"), [named, near], store, {})
    assert shown.runs == sorted([spec.id for spec in specs("smoke")] + ["x", "y", "z"])
    assert (shown.drawn.profile, shown.command.startswith("sgd-suite run fake/fig1 --profile smoke")) == (
        "smoke",
        True,
    )
    (absent,) = [show("fake/fig9", None, [verdict()], store, {})]
    assert (absent.title, absent.undrawn) == ("fig9", "No experiment measures this artifact yet.")


def test_what_was_measured_is_not_measured_again_to_draw(paper, tmp_path, monkeypatch):
    store = fill(tmp_path / "store", note="")
    artifact = replace(paper.artifact("fake/fig1"), measures=())
    measured = {("fake/fig1", "smoke"): verdicts.measure(paper.artifact("fake/fig1"), store, "smoke")}
    shown = show("fake/fig1", artifact, [], store, measured)
    assert shown.drawn.stamp == "smoke profile · stand-in · 3 runs"
    assert show("fake/fig1", artifact, [], store, {}).drawn.stamp == "smoke profile · 3 runs"
    assert isinstance(measured["fake/fig1", "smoke"], Measurement)


def test_names_and_seeds_are_said_in_a_line():
    assert seeds([3, 0, 1, 7, 1]) == "seeds 0-1, 3, 7"
    assert seeds([4, 4]) == "seed 4"
    assert few_names(["a"]) == "a"
    assert few_names(["a", "b", "c"]) == "a, b and c"
    assert few_names(list("abcde")) == "5 settings from a to e"


def test_runs_of_one_code_share_a_line_whatever_the_day(paper, monkeypatch):
    monkeypatch.setattr("suite.report.behind.groups_of", lambda *given: {})
    made = [
        stored(seed, {"revision": "c" * 20, "dirty": True, "started": f"2026-11-2{seed}T00:00:00+00:00"})
        for seed in (3, 4)
    ]
    alone = stored(5, {"revision": "d" * 20})
    measured = exact(1.0, runs=[run.id for run in (*made, alone)])
    told = list(runs_behind(verdict(measured), paper.artifact("fake/fig1"), Given(*made, alone)))
    assert told == [
        "2 runs, toy/run, seeds 3-4; by revision cccccccccccc, changed, begun 2026-11-23 to 2026-11-24",
        f"run {alone.id}, toy/run, seed 5; by revision dddddddddddd, made before starts were recorded",
    ]
