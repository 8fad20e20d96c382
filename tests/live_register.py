"""A register that holds whatever a test's paper says, as if it had been registered long before any run."""

from __future__ import annotations

from pathlib import Path

from suite.papers import registry
from suite.papers.published import published
from suite.papers.register import Register, ids_of, rule_of


def read(home: Path) -> Register:
    """Stands for ``suite.papers.register.read``."""
    papers = [registry.paper(name) for name in registry.papers_of(home)]
    rules = {
        claim.id: [{"date": "2000-01-01", "because": "for a test", "rule": rule_of(claim)}]
        for paper in papers
        for claim in published(paper.name)
    }
    return Register(rules, {a.id: dict.fromkeys(ids_of(a), "") for paper in papers for a in paper.artifacts})
