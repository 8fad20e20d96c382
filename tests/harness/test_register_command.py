"""The command ``register``: whose registers it writes, what it says of a claim, the replay of earlier rules."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from suite.commands import register as command
from suite.commands.register import ReplayError, change_of, replay, repository
from suite.papers import register
from suite.papers.selection import SelectorError

PRINTS = {"rule": "a", "measure": "b", "runs": "c"}
NOT_RUN, YES, NO = ({"verdict": verdict} for verdict in ("not run", "reproduced", "not reproduced"))


@pytest.mark.parametrize(("factor", "change"), [(1 + 0.9e-9, "reworded"), (1 + 1.2e-9, "amended")])
def test_intervals_that_differ_by_more_than_rounding_are_other_intervals(factor: float, change: str):
    held = {**YES, "values": [0.5, "inf"], "low": [0.25, "-inf"]}
    assert change_of(held, {**held, "values": [0.5 * factor, "inf"]}) == change


class Homes:
    """Two homes with papers of their own; what is changed, and what the rules of before and of today say of it."""

    def __init__(self, folder: Path) -> None:
        self.papers = {folder / "one": ["ant", "bee", "cat", "dog"], folder / "two": ["elk"]}
        self.before: dict[str, dict] = {}
        self.now: dict[str, dict] = {}
        self.replayed: list[list[str]] = []
        for home in self.papers:
            (home / "published").mkdir(parents=True)

    def last(self, home: str) -> dict[str, dict]:
        (found,) = [each for each in self.papers if each.name == home]
        return register.entries(found)[-1]["claims"]

    def replay(self, revision: str, papers: list[str], home: Path) -> dict[str, dict]:
        self.replayed.append(papers)
        return self.before


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Homes:
    made = Homes(tmp_path)
    mine = lambda names: [claim for claim in made.before | made.now if claim.partition("/")[0] in names]
    told = lambda paper: [
        SimpleNamespace(claim=SimpleNamespace(id=name)) for name in made.now if name in mine([paper])
    ]
    monkeypatch.setattr(command, "PAPERS", {name: home for home, names in made.papers.items() for name in names})
    monkeypatch.setattr(command, "homes", lambda: list(made.papers))
    monkeypatch.setattr(command, "papers_of", made.papers.__getitem__)
    monkeypatch.setattr(command, "unregistered", lambda names: {claim: ["rule"] for claim in mine(names)})
    monkeypatch.setattr(command, "paper", lambda name: name)
    monkeypatch.setattr(command, "today", lambda paper: {name: PRINTS for name in made.now if name in mine([paper])})
    monkeypatch.setattr(command, "verdicts", lambda paper, source: told(paper))
    monkeypatch.setattr(command, "read", lambda verdict: made.now[verdict.claim.id])
    monkeypatch.setattr(command, "replay", made.replay)
    return made


def held(homes: Homes, *claims: str) -> None:
    """What the register of the first home knows already."""
    rows = {claim: {**PRINTS, "change": "registered"} for claim in claims}
    register.append(next(iter(homes.papers)), "d0", "begun", rows)


def test_only_the_homes_of_the_named_papers_are_written(homes: Homes):
    homes.now = {"ant/fig1/a": NOT_RUN, "elk/fig1/e": NOT_RUN}
    (said,) = command.register("a reason", papers=["elk"])
    assert said.endswith("two/published/register.json: 1 registered")
    assert [len(list((home / "published").iterdir())) for home in homes.papers] == [0, 1]
    assert homes.last("two")["elk/fig1/e"]["change"] == "registered"
    with pytest.raises(SelectorError, match="nothing is called 'emu'; the papers are ant, bee"):
        command.register("a reason", papers=["elk", "emu"])


def test_a_register_with_nothing_to_add_is_up_to_date(homes: Homes):
    assert command.register("a reason") == ["one: the register is up to date", "two: the register is up to date"]
    assert [list((home / "published").iterdir()) for home in homes.papers] == [[], []]


def test_each_claim_is_told_how_it_changed_with_what_was_said_before(homes: Homes):
    held(homes, *(f"ant/fig1/{name}" for name in ("amended", "late", "reworded", "gone")))
    homes.before = {"ant/fig1/amended": NO, "ant/fig1/late": NOT_RUN, "ant/fig1/reworded": YES, "ant/fig1/gone": YES}
    homes.now = dict.fromkeys(("ant/fig1/amended", "ant/fig1/late", "ant/fig1/reworded", "ant/fig1/new"), YES)
    command.register("a reason")
    assert homes.last("one") == {
        "ant/fig1/amended": {**PRINTS, "change": "amended", "earlier": NO},
        "ant/fig1/late": {**PRINTS, "change": "late", "earlier": NOT_RUN},
        "ant/fig1/reworded": {**PRINTS, "change": "reworded"},
        "ant/fig1/gone": {"change": "withdrawn"},
        "ant/fig1/new": {**PRINTS, "change": "late"},
    }


def test_the_papers_concerned_are_replayed_once_in_alphabetical_order(homes: Homes):
    homes.now = {f"{name}/fig1/a": YES for name in ("dog", "cat", "bee", "ant")}
    held(homes, "bee/fig1/a")
    command.register("a reason")
    assert homes.replayed == [["ant", "bee", "cat", "dog"]]


def test_the_first_reason_that_fits_a_claim_stands_beside_it(homes: Homes):
    homes.now = dict.fromkeys(("ant/fig1/a", "ant/fig2/a", "bee/fig1/a"), NOT_RUN)
    command.register("all", reasons={"ant/fig1/*": "its figure", "ant/*": "its paper", "cat": "no claim"})
    reasons = {claim: row.get("because") for claim, row in homes.last("one").items()}
    assert reasons == {"ant/fig1/a": "its figure", "ant/fig2/a": "its paper", "bee/fig1/a": None}


CHECK = """
import json, os, sys
from pathlib import Path

evidence = sorted(path.name for path in Path("pack/evidence").iterdir())
rule = Path("pack/rule").read_text()
if rule == "broken":
    sys.exit("x" * 600 + "the end")
row = {"id": "toy/fig1/a", "verdict": rule, "ours": {"values": evidence, "low": sys.argv[1:], "high": [], "n": 1}}
print(json.dumps([row, {"id": "toy/fig1/b", "verdict": "not run", "ours": None}]))
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Commits a rule to a repository with a ``check`` of its own, which says what it finds; returns a home in it."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    top = tmp_path / "top"
    home = top / "pack"
    (top / "suite").mkdir(parents=True)
    (top / "suite" / "__init__.py").touch()
    (top / "suite" / "__main__.py").write_text(CHECK)
    home.mkdir()
    monkeypatch.setattr(command, "folders", lambda: [home / "evidence", tmp_path / "elsewhere", home / "absent"])
    (tmp_path / "elsewhere").mkdir()

    def commit(rule: str) -> Path:
        (home / "rule").write_text(rule)
        who = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
        for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "m"]):
            subprocess.run(["git", "-C", str(top), *words], check=True)
        return home

    return commit


@pytest.mark.parametrize("was", [[], ["old.zip", "stale.zip"]], ids=["new", "replaced"])
def test_the_rules_of_a_revision_judge_the_evidence_of_today(
    checkout: Callable[[str], Path], tmp_path: Path, was: list
):
    evidence = tmp_path / "top" / "pack" / "evidence"
    for name in was:
        evidence.mkdir(exist_ok=True)
        (evidence / name).touch()
    home = checkout("reproduced")
    (home / "rule").write_text("not reproduced")
    evidence.mkdir(exist_ok=True)
    (evidence / "fresh.zip").touch()
    (evidence / "stale.zip").unlink(missing_ok=True)
    assert replay("HEAD", ["toy", "other"], home) == {
        "toy/fig1/a": {
            "verdict": "reproduced",
            "values": sorted({"fresh.zip", *was} - {"stale.zip"}),
            "low": ["check", "toy", "other", "--json"],
            "high": [],
        },
        "toy/fig1/b": {"verdict": "not run"},
    }


def test_what_the_rules_of_before_could_not_judge_is_told_by_the_end_of_their_complaint(
    checkout: Callable[[str], Path], tmp_path: Path
):
    (tmp_path / "top" / "pack" / "evidence").mkdir()
    with pytest.raises(ReplayError) as caught:
        replay("HEAD", ["toy"], checkout("broken"))
    said = "x" * (500 - len("the end")) + "the end"
    assert str(caught.value) == f"the code of HEAD could not judge the stored runs: {said}"


def test_a_revision_that_git_does_not_know_is_named(checkout: Callable[[str], Path]):
    with pytest.raises(ReplayError, match="git does not know the revision 'HAED'"):
        replay("HAED", ["toy"], checkout("reproduced"))


def test_a_home_in_no_checkout_has_no_rules_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ReplayError, match="lies in no git checkout"):
        repository(tmp_path)


def test_the_checkout_of_a_home_is_found_from_below(checkout: Callable[[str], Path], tmp_path: Path):
    assert repository(checkout("reproduced")) == (tmp_path / "top").resolve()
