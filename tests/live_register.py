"""A register that holds whatever a test's paper says, as if it had been registered long before any run."""

from __future__ import annotations

from pathlib import Path

from suite.papers import catalogue
from suite.papers.catalogue import published
from suite.papers.register import Register, rule_of, words


def read(home: Path) -> Register:
    """Stands for ``suite.papers.register.read``."""
    papers = [catalogue.paper(name) for name in catalogue.papers_of(home)]
    rules = {
        claim.id: [{"date": "2000-01-01", "because": "for a test", "rule": rule_of(claim)}]
        for paper in papers
        for claim in published(paper.name)
    }
    grids = {a.id: dict.fromkeys(a.ids(), "") for paper in papers for a in paper.artifacts}
    return Register(rules, grids, worded={name: word for paper in papers for name, word in words(paper.name).items()})
