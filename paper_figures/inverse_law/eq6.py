"""Equation 6: validation adds its own computation, spread over the updates between two, and no communication."""

from __future__ import annotations

from paper_figures.inverse_law.synthetic_systems import draws, relative
from reference_impls import inverse_law_model as forms
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities


def measure_validation(evidence: Evidence) -> Quantities:
    """Eq. 6: what validation adds per update is its own cost over the updates between two validations."""
    held, cases = 0, 0
    for law, system, learners in draws():
        plain = forms.convergence_seconds(law, system, 256, learners)
        added = [
            forms.validated_seconds(
                law,
                system,
                256,
                learners,
                validation_examples=12_000,
                updates_per_validation=every,
                validation=system,
            )
            - plain
            for every in (1, 10, 100)
        ]
        once = law.updates(256) * system.compute(12_000 / learners)
        cases += 1
        # ten times rarer costs ten times less, and nothing else is added: no communication
        held += all(relative(cost * every, once) < 1e-6 for cost, every in zip(added, (1, 10, 100), strict=True))
    yield "cv-amortised", exact(held / cases)


ARTIFACTS = (Artifact("inverse_law/eq6", "With cross-validation", measures=(measure_validation,)),)
