"""What a claim is said to need is what its runs take, by the estimates of ``plan``."""

from suite.claims.judge import NEEDS
from suite.papers.catalogue import PAPERS, experiment, paper, published

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
    assert large
