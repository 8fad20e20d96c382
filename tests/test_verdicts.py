"""From what was measured to verdicts: which profile decides, what a proxy is, and what stands in the way."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from estimates import point
from fake_paper import PUBLISHED, fill, registered, specs

from suite.claims.estimate import over_seeds as exact
from suite.papers import catalogue
from suite.papers import measurement as judging
from suite.papers.artifact import Artifact, Missing
from suite.papers.catalogue import entries, published
from suite.papers.grades import Rests
from suite.papers.measurement import Measurement, besides, is_timed, measure_frame, verdicts
from suite.runs.archive import Layered
from suite.runs.comparison import Survey
from suite.runs.run import DamagedRun
from suite.spec import RunSpec

MORE = """
[fig4]
where = "Section 7"
because = "so"
needs = "cpu-small"
profile = "reduced"
[fig4.speed]
says = "Ten a second"
printed = 10
tolerance = 1
[fig4.size]
says = "Ten of them"
printed = 10
tolerance = 1
"""


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """The fake paper with an artifact more, whose quantities the tests say themselves."""
    with registered(tmp_path) as made:
        (tmp_path / "published" / "fake.toml").write_text(PUBLISHED + MORE)
        entries.cache_clear()
        yield replace(made, artifacts=(*made.artifacts, Artifact("fake/fig4", "Fig. 4")))


@pytest.fixture
def found():
    """Makes a measurement of quantities that no run stands behind, or those that are named."""

    def made(runs=(), missing=None, damaged=(), contested=None, **values):
        rests = {name: Rests(tuple(runs)) for name in values}
        lacking = {"size": Missing(missing)} if missing else {}
        return Measurement(values, lacking, list(damaged), rests, Survey(contested=contested or {}))

    return made


def judged(paper, name="size", /, stored=(), **measured):
    at = {profile: measured.get(profile, Measurement()) for profile in ("paper", "reduced", "smoke")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "measurements", lambda *_, **__: at)
        made = verdicts(paper, Layered([SimpleNamespace(ids=lambda: set(stored))]), artifacts=["fake/fig4"])
    return {verdict.claim.id.rpartition("/")[2]: verdict for verdict in made}[name]


def test_the_largest_profile_decides(paper, found):
    verdict = judged(paper, reduced=found(size=exact(10)), paper=found(size=exact(20)))
    assert (verdict.verdict, verdict.profile, verdict.red) == ("not reproduced", "paper", True)
    verdict = judged(paper, reduced=found(size=exact(10)))
    assert (verdict.verdict, verdict.profile, verdict.measured) == ("reproduced", "reduced", exact(10))


def test_a_smaller_profile_than_the_claim_s_own_is_only_shown(paper, found):
    verdict = judged(paper, smoke=found(size=exact(10)))
    assert (verdict.verdict, verdict.measured, verdict.proxy) == ("not run", None, exact(10))
    assert verdict.why == "needs profile reduced (cpu-small)"


def test_where_there_are_larger_runs_those_that_try_the_code_stand_in_for_nothing(paper, found):
    *others, artifact = paper.artifacts
    trained = RunSpec("fake/train")
    artifact = replace(artifact, runs=lambda profile: {"all": (trained,)} if profile == "reduced" else {})
    paper = replace(paper, artifacts=(*others, artifact))
    assert judged(paper, smoke=found(size=exact(10))).proxy == exact(10)
    assert judged(paper, smoke=found(size=exact(10)), stored={trained.id}).proxy is None


def test_of_several_proxies_the_one_of_the_largest_profile_is_shown(paper, found):
    near, far = point(9, proxy=True), point(8, proxy=True)
    verdict = judged(paper, smoke=found(size=exact(7)), reduced=found(size=far), paper=found(size=near))
    assert (verdict.verdict, verdict.proxy) == ("not run", near)
    verdict = judged(paper, smoke=found(size=exact(10)), paper=found(size=near))
    assert verdict.proxy == near
    verdict = judged(paper, reduced=found(size=exact(10)), paper=found(size=near))
    assert (verdict.verdict, verdict.profile) == ("reproduced", "reduced")


def test_what_is_damaged_is_red_where_it_hinders_the_claim(paper, found):
    faults = ["run a: is broken", "run b: too"]
    verdict = judged(paper, paper=found(damaged=faults), reduced=found(size=exact(10)))
    assert (verdict.verdict, verdict.red, verdict.why, verdict.profile) == ("not run", True, faults[0], "paper")
    verdict = judged(paper, paper=found(damaged=faults, size=exact(10)))
    assert (verdict.verdict, verdict.red) == ("reproduced", False)


def test_values_that_do_not_fit_a_claim_are_red(paper, found):
    verdict = judged(paper, paper=found(size=exact((10, 10))))
    assert (verdict.verdict, verdict.red, verdict.measured) == ("not run", True, exact((10, 10)))
    assert "2 values for 1" in verdict.why


def test_a_number_that_cannot_be_graded_is_red(paper, found, monkeypatch):
    monkeypatch.setattr(judging.Grading, "grade", lambda *_: 1 / 0)
    verdict = judged(paper, paper=found(size=exact(10)))
    assert (verdict.verdict, verdict.red) == ("not run", True)
    assert "could not be graded: ZeroDivisionError" in verdict.why


@pytest.fixture
def runs(tmp_path):
    store = fill(tmp_path / "store")
    return sorted((store.read(spec.id) for spec in specs("smoke")), key=lambda run: run.id)


@pytest.mark.parametrize(("odd", "more"), [(1, ""), (2, " (and 1 more runs)"), (3, " (and 2 more runs)")])
def test_a_verdict_on_contested_runs_names_the_first_and_counts_the_others(paper, found, runs, odd, more):
    contested = {run.id: f"run {run.id} is odd" for run in runs[::-1][-odd:]}
    verdict = judged(paper, paper=found(runs, size=exact(10), contested=contested))
    told = f"would be reproduced, but rests on contested evidence: run {min(contested)} is odd{more}"
    assert (verdict.verdict, verdict.red, verdict.why) == ("inconclusive", True, told)


def test_contested_runs_behind_another_claim_do_not_matter(paper, found, runs):
    contested = {runs[0].id: "odd"}
    measured = found(speed=exact(10), size=exact(10), contested=contested)
    measured.rests["speed"] = Rests((runs[0],))
    assert judged(paper, "speed", paper=measured).verdict == "inconclusive"
    assert judged(paper, "size", paper=measured).verdict == "reproduced"


def test_verdicts_of_the_chosen_artifacts_come_in_the_order_of_the_claims(paper, found):
    every = verdicts(paper, Layered([]))
    assert [v.claim.id for v in every] == [c.id for c in published("fake") if c.artifact != "fake/fig3"]
    some = verdicts(paper, Layered([]), artifacts=["fake/fig4", "fake/fig3"])
    assert [v.claim.id for v in some] == ["fake/fig3/nothing", "fake/fig4/speed", "fake/fig4/size"]
    assert (some[0].verdict, some[0].why) == ("not run", "no experiment measures this artifact yet")
    assert verdicts(paper, Layered([]), artifacts=[]) == []


def test_the_same_runs_are_measured_once(paper, tmp_path):
    """Over profiles that ask for the same, and over calls; another content of a run is measured anew."""
    asked = []

    panel = Artifact("fake/fig4", "", lambda _: {"a": specs("smoke")})

    @panel.quantity("size")
    def counting(frame):
        asked.append(frame.profile)
        return 10

    made = replace(paper, artifacts=(panel,))
    judge = lambda source: verdicts(made, source, artifacts=["fake/fig4"])[1]
    first = judge(fill(tmp_path / "a", note=""))
    assert (first.verdict, first.profile, asked) == ("reproduced", "paper", ["paper"])
    assert judge(fill(tmp_path / "b", note="")) == first
    assert asked == ["paper"]
    judge(fill(tmp_path / "c", note="another"))
    assert asked == ["paper"] * 2


def test_what_no_claim_asks_for_is_told_at_the_largest_profile_or_the_smallest_that_says_the_same(paper, found):
    measured = {
        "paper": found(same=exact(3), other=exact(4), large=exact(6)),
        "reduced": found(same=exact(3), other=exact(4)),
        "smoke": found(size=exact(1), speed=exact(1), same=exact(3), other=exact(3), small=exact(5)),
    }
    assert besides("fake/fig4", measured) == [
        ("same", "smoke", exact(3)),
        ("other", "reduced", exact(4)),
        ("small", "smoke", exact(5)),
        ("large", "paper", exact(6)),
    ]


def test_an_experiment_is_timed_that_says_so_and_none_that_is_not_here():
    assert [is_timed(name) for name in ("isgd/update-times", "train", "nobody/times")] == [True, False, False]


def test_what_goes_wrong_in_one_quantity_hinders_no_other():
    def damaged(frame):
        raise DamagedRun("run a: is broken")

    def wrong(frame):
        raise ZeroDivisionError("by zero")

    def lacking(frame):
        raise Missing("2 of 3 runs")

    def newer(frame):
        return {"loss": 1.0}["error"]

    panel = Artifact("fake/x", "")
    for value in (damaged, wrong, lacking, newer, lambda frame: 2):
        panel.quantity(value.__name__)(value)
    measured = measure_frame(panel, panel.read(Layered([]), "smoke"))
    assert measured.found == {"<lambda>": exact(2)}
    told = "fake/x/wrong could not be measured at smoke: ZeroDivisionError: by zero"
    *others, unstored = measured.damaged
    assert others == ["run a: is broken", told]
    assert unstored.startswith("fake/x/newer could not be measured at smoke: KeyError: 'error'; runs that were")
    assert {name: str(error) for name, error in measured.missing.items()} == {"lacking": "2 of 3 runs"}


# --- the index of what there is


def test_the_index_has_a_row_for_each_artifact(paper):
    rows = {row["id"]: row for row in catalogue.index_rows(["fake"])}
    assert list(rows) == ["fake/fig1", "fake/table1", "fake/fig2"]
    assert [row["drawn"] for row in rows.values()] == [True, False, True]
    assert rows["fake/fig1"]["runs"]["smoke"] == sorted(spec.id for spec in specs("smoke"))
    assert rows["fake/table1"]["runs"] == {"smoke": [], "reduced": [], "paper": []}
    assert [claim["id"] for claim in rows["fake/fig2"]["claims"]] == ["fake/fig2/scales"]
    assert rows["fake/fig2"]["claims"][0]["needs"] == "cluster"


def test_a_committed_index_is_read_as_it_is_unless_it_is_of_other_papers(paper, tmp_path):
    path = tmp_path / catalogue.INDEX
    assert catalogue.index() == catalogue.index_rows(["fake"])
    path.write_text('{"papers": ["fake"], "artifacts": [{"id": "as written"}]}')
    assert catalogue.index() == [{"id": "as written"}]
    path.write_text('{"papers": ["fake", "gone"], "artifacts": [{"id": "as written"}]}')
    assert catalogue.index() == catalogue.index_rows(["fake"])
