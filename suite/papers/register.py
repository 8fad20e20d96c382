"""The register of rules: what decided each claim, fixed when, and whether its evidence came first.

``published/register.json`` in a paper's home is append-only: ``sgd-suite register`` adds an entry for what has
changed, each entry holding the digest of the one before, and nothing edits it. Per claim it holds three fingerprints:
of the *rule* (printed values, rule, tolerance, side, profile ...), of the *measure* (the syntax trees that its
function reaches, names of definitions, docstrings and paths apart) and of the *runs* (grid, seeds, stopping rules:
the specifications that the artifact asks for).

When one of them changes, the measure as it was last committed is replayed on the stored runs. The same interval and
verdict make the change *reworded*; any other is *amended*, and the verdict under the earlier rule is stored beside
the new one and never computed again. A claim without any evidence may change freely: *registered*. A claim first
registered when its evidence was there is *late*. Entry 0 orders older evidence by the history of the project: by the
revisions that the first runs of a claim name; those made from a changed or unknown tree leave it *undated*.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from suite.claims.judge import PROFILES, Claim
from suite.papers.artifact import Artifact, Measure, Paper
from suite.papers.published import published
from suite.papers.registry import PAPERS, homes, paper
from suite.runs.fingerprint import present
from suite.spec import canonical

FILE = "register.json"
RULE = ("printed", "unit", "rule", "tolerance", "relative", "side", "order", "quantity", "profile", "doubt")
PARTS = ("rule", "measure", "runs")
REGISTERED, UNREGISTERED = "registered", "unregistered"
CHANGES = (REGISTERED, "reworded", "amended", "late", "undated", "withdrawn")
APART = ("amended", "late", "undated")  # counted apart from what was registered before its evidence
START = "0" * 64  # what the first entry holds as the digest of the one before


class RegisterError(ValueError):
    """A register that was edited by hand, or that does not know a rule of today."""


@dataclass(frozen=True)
class Standing:
    """How a claim stands in the register: its fingerprints, and how evidence and rule follow each other.

    ``change`` is the last one that matters for the order (an *amended* claim stays one when it is reworded later);
    ``since`` says of each fingerprint when it became what it is; ``earlier`` is the verdict under the rule before the
    last amendment, with its reason.
    """

    claim: str
    fingerprints: Mapping[str, str]
    change: str
    date: str
    because: str
    since: Mapping[str, str]
    earlier: Mapping[str, Any] | None = None


def rule_of(claim: Claim) -> str:
    """Fingerprint of the fields that decide a claim; words that only explain are left out."""
    fields = {name: getattr(claim, name) for name in RULE}
    if claim.known_difference:
        fields["shown_by"] = claim.known_difference.shown_by
    return digest(fields)


def measure_of(claim: Claim, artifact: Artifact) -> str:
    """Fingerprint of the functions that measure a claim's quantity, with all that they reach.

    A measure that another function has made stands for that one and for what it was made with.
    """
    chosen = measuring(claim.quantity, artifact)
    if not chosen:
        return digest(None)
    code = present().fingerprint(*sorted(set(map(place_of, chosen))))
    made_with = sorted(text for function in chosen for text in captured(function))
    return digest([code, made_with]) if made_with else code


def measuring(quantity: str, artifact: Artifact) -> list[Measure]:
    """The measures that name a quantity as a whole text; where none does (the name is put together), all."""
    return [function for function in artifact.measures if spells(function, quantity)] or list(artifact.measures)


def spells(function: Measure, quantity: str) -> bool:
    """Whether a measure names a quantity as a whole text."""
    return quantity in texts(place_of(function))


def place_of(function: Callable[..., Any]) -> str:
    """Where a function is defined, "package.module:name"; for one made inside another, where that one is."""
    return f"{function.__module__}:{function.__qualname__.partition('.<locals>')[0]}"


def captured(function: Callable[..., Any]) -> list[str]:
    """What a function made inside another holds of it, as text."""
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    return [value.__qualname__ if callable(value) else repr(value) for value in values]


@cache
def texts(place: str) -> frozenset[str]:
    """The texts that stand in a definition."""
    module, _, name = place.partition(":")
    found = present().module(module)
    nodes = found.definitions.get(name, []) if found else []
    inner = (part for node in nodes for part in ast.walk(node))
    return frozenset(part.value for part in inner if isinstance(part, ast.Constant) and isinstance(part.value, str))


@cache
def runs_of(artifact: Artifact) -> str:
    """Fingerprint of the runs an artifact asks for, by profile and group."""
    return digest({p: {name: [s.id for s in specs] for name, specs in artifact.runs(p).items()} for p in PROFILES})


def fingerprints(claim: Claim, artifact: Artifact | None) -> dict[str, str]:
    """What the register holds of a claim today."""
    if artifact is None:
        return {"rule": rule_of(claim), "measure": digest(None), "runs": digest(None)}
    return {"rule": rule_of(claim), "measure": measure_of(claim, artifact), "runs": runs_of(artifact)}


def today(which: Paper) -> dict[str, dict[str, str]]:
    """The fingerprints of all claims of a paper as its files and code stand, those without a verdict too."""
    artifacts = {artifact.id: artifact for artifact in which.artifacts}
    return {claim.id: fingerprints(claim, artifacts.get(claim.artifact)) for claim in published(which.name)}


def entries(home: Path) -> list[dict[str, Any]]:
    """The entries of a register, oldest first. Raises RegisterError where the chain of digests is broken."""
    path = home / "published" / FILE
    if not path.exists():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))["entries"]
    before = START
    for number, entry in enumerate(found):
        if entry["previous"] != before:
            raise RegisterError(f"{path}: entry {number} does not follow the one before: it was edited by hand")
        before = entry_digest(entry)
    return found


def entry_digest(entry: Mapping[str, Any]) -> str:
    """What the next entry holds of this one."""
    return hashlib.sha256(canonical(entry).encode()).hexdigest()


def newest() -> str:
    """Digest of the newest entries of all registers: recorded with every run that begins under them."""
    return digest([entry_digest(found[-1]) for home in homes() if (found := entries(home))])


def append(home: Path, date: str, because: str, claims: Mapping[str, Mapping[str, Any]]) -> Path:
    """Add an entry. The file is written line by claim, so that a difference shows what changed."""
    found = entries(home)
    before = entry_digest(found[-1]) if found else START
    found.append({"date": date, "because": because, "claims": claims, "previous": before})
    lines = []
    for entry in found:
        head = ", ".join(f"{json.dumps(key)}: {json.dumps(entry[key])}" for key in ("date", "because", "previous"))
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in entry["claims"].items())
        lines.append(f'{{{head}, "claims": {{\n{rows}\n}}}}')
    path = home / "published" / FILE
    path.write_text('{"entries": [\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8")
    standings.cache_clear()
    return path


@cache
def standings(home: Path) -> Mapping[str, Standing]:
    """How each claim of a home stands after all entries; withdrawn ones are absent."""
    found: dict[str, Standing] = {}
    for entry in entries(home):
        for name, row in entry["claims"].items():
            before = found.pop(name, None)
            if row["change"] == "withdrawn":
                continue
            change, earlier, date, because = row["change"], row.get("earlier"), entry["date"], row.get("because", "")
            if before and change == "reworded":
                change, earlier, date, because = before.change, before.earlier, before.date, before.because
            elif before and change == "registered" and before.change in APART:
                change = before.change  # a rule that was once changed after its evidence stays so
            since = dict.fromkeys(PARTS, entry["date"])
            if before:
                since |= {part: before.since[part] for part in PARTS if before.fingerprints[part] == row[part]}
            prints = {part: row[part] for part in PARTS}
            found[name] = Standing(name, prints, change, date, because or entry["because"], since, earlier)
    return found


def standing(claim: str) -> Standing | None:
    """How a claim stands, or None when no entry names it."""
    return standings(PAPERS[claim.partition("/")[0]].home).get(claim)


def unregistered(names: list[str] | None = None) -> dict[str, list[str]]:
    """Claims whose rule, measure or runs are not those of the register, with the parts that differ."""
    wrong: dict[str, list[str]] = {}
    for name in names or list(PAPERS):
        now = today(paper(name))
        known = {c: s for c, s in standings(PAPERS[name].home).items() if c.partition("/")[0] == name}
        for claim, prints in now.items():
            held = known.get(claim)
            if parts := [part for part in PARTS if held is None or held.fingerprints[part] != prints[part]]:
                wrong[claim] = parts
        wrong |= {claim: ["withdrawn"] for claim in known if claim not in now}
    return wrong


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]
