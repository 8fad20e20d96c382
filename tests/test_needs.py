"""What a claim is said to need is what its runs take, by the estimates of ``plan``."""

from suite.claims.judge import NEEDS
from suite.papers.artifact import Measure
from suite.papers.evidence import committed
from suite.papers.published import published
from suite.papers.reaching import definitions
from suite.papers.register import captured, texts
from suite.papers.registry import PAPERS, experiment, paper
from suite.papers.verdicts import verdicts
from suite.runs.archive import Layered

HALF_A_DAY, HUNDREDS = 12 * 3600, 200  # seconds of one core, trainings


def asked() -> dict[str, tuple[str, list[float]]]:
    """For each artifact with claims that only time on a CPU keeps from being decided: which need, and its runs."""
    found = {}
    for name in PAPERS:
        for artifact in paper(name).artifacts:
            of = [c for c in published(name) if c.artifact == artifact.id and c.profile == "paper" and not c.lacks]
            needs = {claim.needs for claim in of} & {"cpu-small", "cpu-large"}
            assert len(needs) < 2, artifact.id
            if needs:
                specs = {spec.id: spec for group in artifact.runs("paper").values() for spec in group}
                found[artifact.id] = needs.pop(), [experiment(s.experiment).seconds(s) for s in specs.values()]
    return found


def test_what_a_cpu_is_said_to_do_is_what_it_takes():
    found = asked()
    assert {need for need, _ in found.values()} <= set(NEEDS)
    large = {name for name, (need, _) in found.items() if need == "cpu-large"}
    assert large == {name for name, (_, s) in found.items() if max(s) > HALF_A_DAY or len(s) > HUNDREDS}
    assert len(large) > 5


def test_a_claim_that_no_code_would_decide_says_what_it_lacks():
    """Where neither a measure names it, nor one finds it or a name put together like it, no run is asked for."""
    undecided = []
    for name in PAPERS:
        made = paper(name)
        measured: dict = {}
        found = verdicts(made, Layered(committed()), measured=measured)
        for claim in (verdict.claim for verdict in found if verdict.verdict == "not run" and not verdict.claim.lacks):
            at = [each for (artifact, _), each in measured.items() if artifact == claim.artifact]
            known = {quantity for each in at for quantity in each.found}
            known |= {quantity for each in at for error in each.missing.values() for quantity in error.rows}
            measures = made.artifact(claim.artifact).measures
            if claim.quantity not in known and not any(reaches(f, claim.quantity) for f in measures):
                undecided.append(claim.id)
    assert undecided == []


def reaches(function: Measure, quantity: str) -> bool:
    """Whether a measure, or what it calls, names a quantity, or was made for what its name ends in."""
    held, parts = " ".join(captured(function)), quantity.split("-")
    ends = ("-".join(parts[at:]) for at in range(1, len(parts)))
    return any(quantity in texts(":".join(place)) for place in definitions(function)) or any(e in held for e in ends)
