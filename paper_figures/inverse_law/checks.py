"""Small batches beside the law of Fig. 1: what the grid of tests passes over, and how far they leave the law."""

from __future__ import annotations

from paper_figures.inverse_law.exponents import FAR
from paper_figures.inverse_law.readings import as_measured, crossings, curve, law_fit
from paper_figures.inverse_law.settings import BY_NAME, SWINGING
from suite.claims.intervals import log_interval
from suite.papers.artifact import Evidence, Missing, Quantities


def passed_over(evidence: Evidence) -> Quantities:
    """At small batches: updates to the lowest threshold on the grid over those that every update's test finds."""
    for name, batches in SWINGING.items():
        row = BY_NAME[name]
        for batch in batches:
            try:
                every, grid = evidence.runs(f"{name}/{batch}/every"), evidence.runs(f"{name}/{batch}")
            except Missing:
                continue
            threshold = row.thresholds(evidence.profile)[-1]
            (exact,), (coarse,) = crossings(every, threshold), crossings(grid, threshold)
            ratios = [a / b for a, b in zip(coarse.seen, exact.seen, strict=True) if a and b]
            if len(ratios) > 1:
                yield f"grid-over-every-update-{batch}", as_measured([log_interval(ratios)], [*every, *grid])


def excess(evidence: Evidence) -> Quantities:
    """Updates at small batches over those that the law fitted to M >= 16 foretells, to the lowest threshold reached.

    A batch size at which a seed did not arrive within the limit has none.
    """
    for name in SWINGING:
        row = BY_NAME[name]
        runs = curve(evidence, row)
        for threshold in row.thresholds(evidence.profile):
            counted = crossings(runs, threshold)
            law = law_fit([u for u in counted if u.batch >= FAR])
            for u in counted:
                if u.batch < FAR and not u.censored:
                    ratios = [n / law.predict(u.batch) for n in u.seen if n]
                    yield f"excess-{threshold:g}-{u.batch}", as_measured([log_interval(ratios)], runs)
