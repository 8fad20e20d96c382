"""Every verdict compares rule and grid with the register, and its dates with the beginnings of the runs."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path

import pytest
import toy
from toy import specs

from suite.claims.judge import Claim
from suite.commands.refresh import kept
from suite.commands.register import command as record
from suite.papers import register
from suite.papers.catalogue import PAPERS, Registered, SelectorError, entries, paper, published
from suite.papers.measurement import verdicts
from suite.papers.printed_settings import settings
from suite.papers.register import RegisterError, read, rule_of, standing
from suite.report import data
from suite.runs.run import Outcome, encode
from suite.runs.store import Store

LIVE = register.read
CLAIM = Claim("toy/table1/it", "it is ten", "Table 1", "within", "reduced", "cpu-small", "so", (10.0,), quantity="it")
RULES = """
[table1]
where = "Table 1"
because = "so"
needs = "cpu-small"
[table1.mean]
says = "The mean of the draws is one half"
printed = 0.5
tolerance = {tolerance}
profile = "reduced"
"""


@pytest.fixture
def home(tmp_path: Path, papers, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home that the toy paper comes from, with a register of its own."""
    (tmp_path / "published").mkdir()
    PAPERS["toy"] = Registered(lambda: toy.PAPER, tmp_path)
    monkeypatch.setattr(register, "read", LIVE)
    publish(tmp_path, 0.1)
    yield tmp_path
    LIVE.cache_clear()
    settings.cache_clear()


def publish(home: Path, tolerance: float, more: str = "") -> None:
    (home / "published" / "toy.toml").write_text(RULES.format(tolerance=tolerance) + more)
    entries.cache_clear()


def seeds(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the toy paper, which asks its artifacts once, have so many seeds."""
    monkeypatch.setenv("TOY_RUNS", str(count))
    remade = tuple(replace(each, runs=inspect.unwrap(each.runs)) for each in toy.PAPER.artifacts)
    PAPERS["toy"] = Registered(lambda: replace(toy.PAPER, artifacts=remade), PAPERS["toy"].home)
    paper.cache_clear()


def at(date: str) -> None:
    """Record today's rules as if on another day."""
    register.append(PAPERS["toy"].home, register.changes(paper("toy"), date, "a reason"))


def run(root: Path, began: str, value: float = 0.9, count: int = 3) -> Store:
    store = Store(root / f"{began or 'undated'}.store", create=True)
    for spec in specs(profile="reduced", sleep=0.0)[:count]:
        about = {"started": began} if began else {}
        store.commit(spec.id, encode(spec, about, Outcome("finished", {"value": value})))
    return store


def verdict(store: Store):
    (found,) = verdicts(paper("toy"), store, artifacts=["toy/table1"])
    return found


def unregistered() -> dict[str, str]:
    """Claims of all papers whose rule or grid is not the registered one, and in which way."""
    found = {}
    for name, registered in PAPERS.items():
        artifacts = {artifact.id: artifact for artifact in paper(name).artifacts}
        for claim in published(name):
            if what := register.differs(claim, artifacts.get(claim.artifact), read(registered.home)):
                found[claim.id] = what
    return found


def test_no_rule_no_grid_and_no_entry_has_changed_without_a_line() -> None:
    """`sgd-suite register --because "..."` writes one."""
    assert unregistered() == {}
    for name, registered in PAPERS.items():
        worded = read(registered.home).worded
        assert [entry for entry, word in register.words(name).items() if worded.get(entry, "") != word] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"printed": (11.0,)},
        {"unit": "min"},
        {"rule": "bound", "side": "lower"},
        {"tolerance": (2.0,)},
        {"relative": 0.1},
        {"margin": 0.1},
        {"quantity": "that"},
        {"profile": "paper"},
        {"doubt": "another table"},
        {"undetermined": "the rate"},
    ],
)
def test_what_decides_a_claim_makes_it_another_rule(changes) -> None:
    assert rule_of(replace(CLAIM, **changes)) != rule_of(CLAIM)
    assert json.loads(json.dumps(rule_of(replace(CLAIM, **changes)))) == rule_of(replace(CLAIM, **changes))


@pytest.mark.parametrize(
    "changes", [{"says": "ten it is"}, {"where": "p. 3"}, {"because": "it is so"}, {"finding": "so"}, {"lacks": "x"}]
)
def test_words_that_only_explain_leave_the_rule_as_it_is(changes) -> None:
    assert rule_of(replace(CLAIM, **changes)) == rule_of(CLAIM)


def test_a_rule_that_came_first_decides(home: Path) -> None:
    at("2021-01-01")
    found = verdict(run(home, "2021-01-02"))
    assert (found.verdict, found.order, found.exploratory) == ("not reproduced", "registered", None)


def test_a_widened_tolerance_ends_in_exploratory_until_new_runs_begin(home: Path) -> None:
    """The path of an author who sees red, widens the tolerance and registers it."""
    at("2021-01-01")
    store = run(home, "2021-01-02")
    assert verdict(store).red
    publish(home, 1.0)
    found = verdict(store)
    assert (found.verdict, found.order, found.red) == ("reproduced", "unregistered", True)
    assert "its rule is not the one registered on 2021-01-01" in found.why

    at("2022-01-01")
    found = verdict(store)
    assert (found.verdict, found.order) == ("not reproduced", "amended")
    assert found.exploratory is not None
    assert found.exploratory.verdict == "reproduced"

    found = verdict(run(home, "2022-01-02"))
    assert (found.verdict, found.order, found.exploratory) == ("reproduced", "registered", None)


@pytest.mark.parametrize(("began", "order"), [("2020-12-31", "late"), ("", "undated")])
def test_runs_from_before_any_rule_or_without_a_beginning_decide_nothing(home: Path, began: str, order: str) -> None:
    at("2021-01-01")
    found = verdict(run(home, began))
    assert (found.order, found.decides) == (order, False)


def test_a_claim_without_a_line_is_red(home: Path) -> None:
    found = verdict(run(home, "2021-01-02"))
    assert (found.order, found.red) == ("unregistered", True)


@pytest.mark.parametrize("more", ['refuted_by = "Another mean."\n', 'kind = "ours"\n'])
def test_another_sentence_or_board_needs_a_reason(home: Path, more: str) -> None:
    at("2020-01-01")
    publish(home, 0.1, more)
    (claim,) = published("toy")
    assert "its words" in register.differs(claim, None, register.read(home))
    at("2020-01-02")
    assert "its words" not in register.differs(claim, None, register.read(home))


def test_another_printed_setting_needs_a_reason(home: Path) -> None:
    """It may turn what was reduced into what decides."""
    at("2020-01-01")
    (home / "published" / "settings").mkdir()
    (home / "published" / "settings" / "toy.toml").write_text("[artifacts.table1]\nspeaks_of = 'three seeds'\n")
    settings.cache_clear()
    assert unregistered() == {"toy/table1/mean": "the settings that toy prints are not those registered"}
    at("2020-01-02")
    assert unregistered() == {}


def test_another_seed_is_another_grid(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More seeds are unregistered until they are registered; fewer, once theirs are stored, are an amendment."""
    at("2021-01-01")
    store = run(home, "2021-01-02")
    seeds(4, monkeypatch)
    assert unregistered() == {"toy/table1/mean": "the runs of toy/table1 are not those registered"}
    seeds(2, monkeypatch)
    assert verdict(store).order == "unregistered"
    record(because="fewer")
    found = verdict(store)
    assert (found.order, found.red) == ("amended", True)


def test_a_run_from_before_its_grid_is_late(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds(2, monkeypatch)
    at("2021-01-01")
    seeds(3, monkeypatch)
    record(because="a third seed")
    found = verdict(run(home, "2021-01-02"))
    assert found.order == "late"
    (why,) = register.later_runs(found.claim, found.measured.runs)
    assert why.endswith(": a third seed")


def closed(home: Path, order: str, began: str, **more) -> register.Standing:
    (claim,) = published("toy")
    artifact = paper("toy").artifacts[0]
    grid = {"artifact": artifact.id, "date": "", "because": "b", "added": sorted(artifact.ids()), "removed": []}
    line = {"claim": claim.id, "date": "2021-01-01", "because": "b", "rule": rule_of(claim), "order": order, **more}
    worded = {"worded": register.words("toy"), "date": "2021-01-01", "because": "b"}
    (home / "published" / register.FILE).write_text("".join(json.dumps(each) + "\n" for each in (grid, line, worded)))
    (home / "published" / register.UNDATED_RUNS).write_text("old\n")
    LIVE.cache_clear()
    return standing(claim, artifact, {"old": began})


EARLIER = {"verdict": "reproduced", "values": [1], "low": [1], "high": [1], "date": "2020-06-01"}


def test_lines_of_the_closed_register_know_the_order_of_older_runs(home: Path) -> None:
    assert closed(home, "undated", "").order == "undated"
    assert closed(home, "registered", "2020-01-01").order == "registered"
    assert closed(home, "undated", "2021-02-01").order == "registered"  # begun after the rule


def test_an_earlier_number_stands_until_other_runs_are_read(home: Path) -> None:
    before = {"rule": "within", "printed": [0.5], "tolerance": [0.2]}
    found = closed(home, "amended", "2020-05-01", earlier=EARLIER, before=before)
    assert (found.order, found.earlier, found.rule) == ("amended", EARLIER, before)
    found = closed(home, "amended", "2020-07-01", earlier=EARLIER, before=before)
    assert (found.order, found.earlier, found.rule) == ("amended", None, before)


def test_the_register_command_says_what_it_wrote(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(because="first")
    assert capsys.readouterr().out.endswith("1 rule, 3 grids, 1 sentence\n")
    record(because="again")
    assert capsys.readouterr().out == f"{home.name}: the register is up to date\n"
    publish(home, 0.2)
    record(because="wider")
    assert register.last_line(published("toy")[0]).endswith(": wider")
    with pytest.raises(RegisterError, match="--because is empty; say why"):
        record(because=" ")
    with pytest.raises(SelectorError, match="nothing is called 'nobody'"):
        record(["nobody"], because="why")
    PAPERS["toy"] = Registered(lambda: toy.PAPER, home / "published")  # as an experiment of one's own
    with pytest.raises(SelectorError, match="toy has no folder `published` of printed values"):
        record(["toy"], because="why")


def test_a_line_that_is_none_is_named(home: Path) -> None:
    (home / "published" / register.FILE).write_text('{"claim": "a"}\n{"artifact": "b"}\n')
    LIVE.cache_clear()
    with pytest.raises(RegisterError, match=r"register.jsonl, line 2 is no line of a register"):
        read(home)


def test_a_rule_on_another_quantity_leaves_the_number_of_the_one_before(home: Path) -> None:
    """Registered on the mean, 0.9, and since then on the share, 1."""
    at("2021-01-01")
    before = verdict(run(home, "2021-01-02"))
    publish(home, 0.6, 'quantity = "share"')
    at("2022-01-01")
    found = verdict(run(home, "2021-01-03"))  # also before the line of 2022
    assert (found.verdict, found.measured.values) == (before.verdict, before.measured.values)
    assert (found.exploratory.verdict, found.exploratory.measured.values) == ("reproduced", (1.0,))


def test_a_number_that_moved_while_its_runs_did_not_is_exploratory(home: Path) -> None:
    at("2026-01-01")
    store = run(home, "2026-02-01T00:00:00+00:00", value=0.5)
    now = verdict(store)
    assert now.verdict == "reproduced"
    before = {"runs": now.digest, "verdict": "not reproduced", "values": [0.9], "low": [0.9], "high": [0.9]}
    line = {"claim": now.claim.id, "date": "2026-03-01", "because": "a mean was a sum"}
    register.append(home, [line | {"moved": before | {"runs": "of others"}}])
    assert verdict(store) == now
    register.append(home, [line | {"moved": before}])
    found = verdict(store)
    assert (found.verdict, found.exploratory.verdict) == ("not reproduced", "reproduced")
    assert found.measured.values == (0.9,)


def test_a_moved_number_is_kept_until_the_register_gives_a_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at("2026-01-01")
    store = run(home, "2026-02-01T00:00:00+00:00")
    now = data.rows([verdict(store)])
    old = [now[0] | {"ours": "0.5", "low": "0.5", "high": "0.5", "verdict": "reproduced"}]
    path = home / data.FILE
    path.write_text(data.written(old))
    text, owed = kept(path, data.written(now), home)
    assert data.read(text) == old
    assert len(owed) == 1
    publish(home, 0.1, 'refuted_by = "Another mean."\n')
    seen = []
    monkeypatch.setattr("suite.commands.refresh.readme.judged_of", lambda *_: seen.append(verdict(store)) or seen)
    record(["toy"], because="a sum was a mean")
    assert seen[0].order == "registered"  # by then also the other words are
    assert kept(path, data.written(now), home) == (data.written(now), [])
    assert verdict(store).exploratory.verdict == now[0]["verdict"]


def test_a_run_of_a_changed_tree_is_a_revisions_where_the_digest_of_its_code_is(monkeypatch):
    monkeypatch.setattr(register, "read", lambda home: register.Register(sources={"5ac": "b" * 40}))
    clean, changed = {"revision": "a" * 40, "dirty": False, "code": "5ac"}, {"revision": "a" * 40, "dirty": True}
    assert register.computed_by(clean) == "a" * 40
    assert register.computed_by({**changed, "code": "5ac"}) == "b" * 40
    assert register.computed_by({**changed, "code": "7e5"}) == register.computed_by(changed) == ""
