"""The register of rules: it records what decides each claim and which runs an artifact asks for, before those runs.

``published/register.jsonl`` of a paper's home holds a line for each rule and each change of a grid, by date.
``sgd-suite register`` appends lines; an edit of an old one shows in the history of the project. A line holds data
alone::

    {"claim": "isgd/fig5b/gain", "date": "...", "because": "...", "rule": {"rule": "within", "printed": [26.79], ...}}
    {"artifact": "isgd/fig5b", "date": "...", "because": "...", "added": ["<run id>", ...], "removed": []}

The judge compares these lines with the present rule and grid, and their dates with the beginning of each run that a
claim reads (:func:`standing`), in every command and for every store. A rule that changed after its runs began neither
confirms nor refutes: the verdict under the rule that stood when they began is the claim's verdict.

A line with ``moved`` gives the reason for a number that changed while its runs did not, with the number of before and
the digest of the runs. Where the change turned the verdict, the one of before stands and the present one is
exploratory. A line with ``families`` says since when claims on the same runs are corrected together
(``suite.claims.estimate``). A line with ``merged`` takes claims from the board and gives the last verdict of each;
``published/places.csv`` says where they went. A line with ``worded`` holds digests: by entry of what it says, what
would refute it, its number, whether that is printed, and where it counts; by paper of the settings that it prints. So
none of these changes without a reason either. A line with ``sources`` gives, by the digest of code that a run
records, the revision whose own files have it: that revision holds all that computed the run, though the tree was
changed.

The lines of before 2026-11-25 were made from a register of another form, closed then and kept beside it as
``register-closed.json``. They carry what that one knew: ``order``, whether the rule came before its evidence, and for
an amended rule ``earlier``, the verdict and the number under the rule before it. ``undated.txt`` lists the runs of
that time that recorded no beginning. No other run may come without one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from suite.claims.judge import Claim
from suite.papers.artifact import Artifact, Paper
from suite.papers.catalogue import PAPERS, entries, published
from suite.papers.printed_settings import digest_of, settings

FILE, UNDATED_RUNS = "register.jsonl", "undated.txt"
RULE = ("printed", "unit", "rule", "tolerance", "relative", "side", "order", "quantity", "profile", "margin")
DECIDING = ("registered", "amended")  # the rule of before decides, where the present one came after
REGISTERED, AMENDED, LATE, UNDATED, UNREGISTERED = "registered", "amended", "late", "undated", "unregistered"


class RegisterError(ValueError):
    """A register that cannot be read or written."""


@dataclass(frozen=True)
class Standing:
    """How rule and evidence of a claim follow each other.

    Attributes:
        order: "registered" where the rule came first; "amended" where another one did; "late" where none did;
            "undated" where the runs do not say when they began; "unregistered" where rule or grid are not those
            of the register.
        date: when the present rule was registered, "" for none.
        because: the reason that was given then; for "unregistered" what differs.
        rule: fields of the rule that stood when the runs began, where it is another one than the present.
        earlier: verdict and number under that rule, where only they are known; or before the number moved.
        since: when the number moved while its runs did not, "" where it never did.
    """

    order: str
    date: str = ""
    because: str = ""
    rule: Mapping[str, Any] | None = None
    earlier: Mapping[str, Any] | None = None
    since: str = ""


@dataclass
class Register:
    """The lines of one home, oldest first: rules by claim, the registration date of each run by artifact."""

    rules: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    grids: dict[str, dict[str, str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)  # by run, why it was last added to a grid
    removed: dict[str, set[str]] = field(default_factory=dict)
    undated: frozenset[str] = frozenset()
    moved: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    families: str = ""  # since when claims on the same runs are corrected together; "" for ever
    merged: dict[str, str] = field(default_factory=dict)  # last verdicts of claims taken from the board
    asked: dict[str, set[str]] = field(default_factory=dict)  # by artifact, the quantities of all rules there were
    worded: dict[str, str] = field(default_factory=dict)  # digests: by entry of its words, by paper of its settings
    sources: dict[str, str] = field(default_factory=dict)  # by digest of code, the revision that has it


def rule_of(claim: Claim) -> dict[str, Any]:
    """The fields that decide a claim, as JSON holds them. Words that only explain are left out."""
    found: dict[str, Any] = {}
    for name in RULE:
        if value := getattr(claim, name):
            found[name] = list(value) if isinstance(value, tuple) else value
    for name in ("doubt", "undetermined"):
        if getattr(claim, name):
            found[name] = True
    return found


def words_of(claim: Claim) -> str:
    """A digest of what an entry says, what would refute it, its number, whether that is printed, where it counts."""
    return digest_of([claim.says, claim.refuted_by, claim.printed, claim.basis, claim.kind, claim.row_of])


def words(paper: str) -> dict[str, str]:
    """The digests of all entries of a paper, and under its own name that of the settings that it prints."""
    return {entry.id: words_of(entry) for entry in entries(paper)} | {paper: settings(paper).digest}


def under(claim: Claim, rule: Mapping[str, Any]) -> Claim:
    """The claim with the fields of a rule that ``rule_of`` gave, and the defaults of those that it left out."""
    held = {name: tuple(value) if isinstance(value, list) else value for name, value in rule.items()}
    fields: dict[str, Any] = {name: held.get(name, getattr(Claim, name, ())) for name in RULE}
    if fields["order"] != claim.order:
        fields["pairs"] = ()
    if not claim.printed:
        fields["basis"] = "asked"  # no number is printed for it, so the bound of the earlier rule was ours
    return replace(claim, **fields)


def parsed(texts: Iterable[str], file: object) -> Register:
    """The register of the lines of a file. Raises RegisterError naming one that cannot be read."""
    register = Register()
    for number, text in enumerate(texts, 1):
        try:
            line = json.loads(text)
            if "claim" in line:
                lines = register.moved if "moved" in line else register.rules
                lines.setdefault(line["claim"], []).append(line)
                if "rule" in line:
                    asked = register.asked.setdefault(line["claim"].rpartition("/")[0], set())
                    asked.add(line["rule"].get("quantity", ""))
            elif "merged" in line:
                until = line["date"][:10]
                register.merged |= {claim: f"{verdict} until {until}" for claim, verdict in line["merged"].items()}
            elif "families" in line:
                register.families = line["date"]
            elif "worded" in line:
                register.worded |= line["worded"]
            elif "sources" in line:
                register.sources |= line["sources"]
            else:
                added, removed = line["added"], set(line["removed"])
                register.grids.setdefault(line["artifact"], {}).update(dict.fromkeys(added, line["date"]))
                register.reasons |= dict.fromkeys(added, line["because"])
                gone = register.removed.get(line["artifact"], set())
                register.removed[line["artifact"]] = gone.difference(added) | removed
        except (ValueError, KeyError, TypeError) as error:
            raise RegisterError(f"{file}, line {number} is no line of a register: {error}") from error
    return register


@cache
def read(home: Path) -> Register:
    """The register of a home, empty where it has none. Raises RegisterError naming a line that cannot be read."""
    path, listed = home / "published" / FILE, home / "published" / UNDATED_RUNS
    register = parsed(path.read_text(encoding="utf-8").splitlines() if path.exists() else (), path)
    if listed.exists():
        register.undated = frozenset(listed.read_text(encoding="utf-8").split())
    return register


def computed_by(environment: Mapping[str, Any]) -> str:
    """The revision that holds all the code that computed a run of this environment; "" where none is known to."""
    if not environment.get("dirty"):
        return str(environment.get("revision", ""))
    registers = map(read, {paper.home for paper in PAPERS.values()})
    return next((each.sources[code] for each in registers if (code := environment.get("code")) in each.sources), "")


def standing(
    claim: Claim,
    artifact: Artifact | None,
    began: Mapping[str, str],
    stored: Iterable[str] = (),
    digest: str = "",
) -> Standing:
    """How a claim stands whose number was read from runs.

    Args:
        claim: the claim as its table has it today.
        artifact: the artifact as the code has it today.
        began: ids of the runs that were read, and when each began (UTC, ISO 8601), "" where it does not say.
        stored: ids of all runs that could have been read.
        digest: of the contents of the runs that were read.
    """
    register = read(PAPERS[claim.paper].home)
    held = _ordered(claim, artifact, began, stored, register)
    if held.order != UNREGISTERED and not held.rule and not held.earlier:
        for line in register.moved.get(claim.id, ()):
            if line["moved"]["runs"] == digest:
                return replace(held, earlier=line["moved"], since=line["date"])
    return held


def _ordered(
    claim: Claim, artifact: Artifact | None, began: Mapping[str, str], stored: Iterable[str], register: Register
) -> Standing:
    """How the rule and the runs of a claim follow each other."""
    history = register.rules.get(claim.id, [])
    if what := differs(claim, artifact, register):
        return Standing(UNREGISTERED, because=what)
    first, last = history[0], history[-1]
    about = {"date": last["date"], "because": last["because"]}
    if not began:  # arithmetic on what is printed: the first rule came before anything
        return Standing(first.get("order", REGISTERED), **about) if first is last else _governed(first, about)
    grid = register.grids.get(claim.artifact, {})
    if not all(began.values()) and {run for run, when in began.items() if not when} - register.undated:
        return Standing(UNDATED, **about)
    if [run for run, when in began.items() if when and when < grid.get(run, "")]:
        return Standing(LATE, **about)
    first_began = min(began.values())
    # Lines of the closed register know the order themselves.
    in_force = [line for line in history if line["date"] <= first_began or "order" in line]
    if not in_force:
        return Standing(LATE, **about)
    governing = in_force[-1]
    if register.removed.get(claim.artifact, set()).intersection(stored):
        return Standing(AMENDED, **about)  # runs that were asked for, and are stored, are asked for no more
    if governing is not last:
        return _governed(governing, about)
    if last.get("order") and first_began < last["date"]:
        earlier = last.get("earlier")  # stands until other runs are read
        if earlier and max(began.values()) > earlier["date"]:
            earlier = None
        return Standing(last["order"], **about, rule=last.get("before"), earlier=earlier)
    return Standing(REGISTERED, **about)


def _governed(line: Mapping[str, Any], about: Mapping[str, str]) -> Standing:
    order = line["order"] if line.get("order") in (LATE, UNDATED) else AMENDED
    return Standing(order, **about, rule=line["rule"], earlier=line.get("earlier"))


def differs(claim: Claim, artifact: Artifact | None, register: Register) -> str:
    """In which way a claim's rule or its artifact's grid is not the registered one; "" where both are."""
    history = register.rules.get(claim.id)
    if not history:
        return "no line of the register names it"
    if history[-1]["rule"] != rule_of(claim):
        return f"its rule is not the one registered on {history[-1]['date'][:10]}"
    if register.worded.get(claim.id, "") != words_of(claim):
        return "its words are not the registered ones"
    if register.worded.get(claim.paper, "") != settings(claim.paper).digest:
        return f"the settings that {claim.paper} prints are not those registered"
    asked = artifact.ids() if artifact else set()
    if asked != set(register.grids.get(claim.artifact, {})) - register.removed.get(claim.artifact, set()):
        return f"the runs of {claim.artifact} are not those registered"
    return ""


def last_line(claim: Claim) -> str:
    """When a claim's rule was last registered, with how many others and why, "" where it never was."""
    rules = read(PAPERS[claim.paper].home).rules
    if not (history := rules.get(claim.id)):
        return ""
    date, because = history[-1]["date"], history[-1]["because"]
    others = sum(line["date"] == date for lines in rules.values() for line in lines) - 1
    return f"{date[:10]}{f', with {others} other rules' if others else ''}: {because}"


def later_runs(claim: Claim, runs: Iterable[str]) -> list[str]:
    """When some of a claim's runs were registered after its rule, and why."""
    register = read(PAPERS[claim.paper].home)
    history, grid = register.rules.get(claim.id), register.grids.get(claim.artifact, {})
    ruled = history[-1]["date"] if history else ""
    later = {(grid[run], register.reasons.get(run, "")) for run in runs if grid.get(run, "") > ruled}
    return [f"{date[:10]}: {because}" for date, because in sorted(later)]


def changes(which: Paper, date: str, because: str) -> list[dict[str, Any]]:
    """The lines that a paper's rules and grids lack in the register of its home."""
    register = read(PAPERS[which.name].home)
    lines: list[dict[str, Any]] = []
    for artifact in which.artifacts:
        held = set(register.grids.get(artifact.id, {})) - register.removed.get(artifact.id, set())
        added, removed = sorted(artifact.ids() - held), sorted(held - artifact.ids())
        if added or removed:
            lines.append(
                {"artifact": artifact.id, "date": date, "because": because, "added": added, "removed": removed}
            )
    for claim in published(which.name):
        history = register.rules.get(claim.id)
        if not history or history[-1]["rule"] != rule_of(claim):
            lines.append({"claim": claim.id, "date": date, "because": because, "rule": rule_of(claim)})
    if changed := {name: word for name, word in words(which.name).items() if register.worded.get(name, "") != word}:
        lines.append({"worded": changed, "date": date, "because": because})
    return lines


def append(home: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    """Add lines, if there are any, to the register of a home; its file."""
    path = home / "published" / FILE
    if lines:
        with path.open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in lines)
        read.cache_clear()
    return path
