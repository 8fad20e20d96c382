"""Equation 7: the time to converge of one learner, Eq. 5 with P = 1 and no communication."""

from __future__ import annotations

from paper_figures.inverse_law.synthetic_systems import draws, relative
from reference_impls.inverse_law_model import Law, System, convergence_seconds
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities


def measure_special_case(evidence: Evidence) -> Quantities:
    """Eq. 7 is Eq. 5 with P = 1 and no communication."""

    def difference(law: Law, system: System, learners: int, batch: float) -> float:
        alone = (law.floor + law.sensitivity / batch) * system.seconds_per_example * max(batch, system.knee)
        return relative(alone, convergence_seconds(law, system, batch, 1))

    yield "special-case", exact(max(difference(*draw, 10.0**k) for draw in draws() for k in range(6)))


ARTIFACTS = (Artifact("inverse_law/eq7", "Time to converge of one learner", measures=(measure_special_case,)),)
