"""Equations 14-17, the attentional translation network: one score per encoder state, weights that sum to one.

The paper trains it on Europarl. Here its attention is looked at on ragged sentences, and it is trained on number
phrases and on captions to see that it translates.
"""

from __future__ import annotations

from suite.claims.estimate import exact, interval
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities
from suite.spec import RunSpec

ATTENTION = RunSpec("inverse_law/attention", {"vocabulary": 40, "longest": 12, "sentences": 32, "steps": 6})
PHRASES = RunSpec(
    "inverse_law/phrases",
    {
        "corpus": "number_phrases",
        "vocabulary": 200,
        "model": {"embedding": 48, "hidden": 64},
        "descent": {"rule": "adam"},
        "rate": 0.005,
        "words": 600,
        "updates": 400,
        "test_sentences": 500,
        "beam": 4,
    },
)
CAPTIONS = RunSpec(
    "inverse_law/phrases",
    {
        "corpus": "multi30k",
        "vocabulary": 2_000,
        "longest": 14,
        "model": {"embedding": 96, "hidden": 128},
        "descent": {"rule": "adam"},
        "rate": 0.003,
        "words": 1_600,
        "updates": 600,
        "test_sentences": 300,
        "beam": 4,
    },
)


def runs(profile: str) -> Groups:
    """The check of the network, and beyond smoke a training on number phrases and one on captions."""
    trained = {} if profile == "smoke" else {"phrases": (PHRASES,), "captions": (CAPTIONS,)}
    return {"attention": (ATTENTION,), **trained}


def measure_attention(evidence: Evidence) -> Quantities:
    """Sums of the attention weights over ragged sentences, and scores per encoder state."""
    run = evidence.run("attention")
    results = run.results
    if results["least"] < 0 or results["on_padding"] > 0:
        yield "attention-sums", exact(-1, runs=[run.id], note="a weight is negative or lies on padding")
    else:
        low, high = results["sum_low"], results["sum_high"]
        yield "attention-sums", interval((low + high) / 2, low, high, runs=[run.id])
    scores = results["scores_per_state"]
    yield "one-score", interval(scores[0], min(scores), max(scores), runs=[run.id])


def measure_translations(evidence: Evidence) -> Quantities:
    """Share of unseen number phrases translated exactly by beam search: does the model translate at all?"""
    if "phrases" not in evidence.groups:
        raise Missing(f"no number phrases at {evidence.profile}")
    run = evidence.run("phrases")
    yield "phrases-exact", exact(run.results["exact_beam"], runs=[run.id])


def measure_captions(evidence: Evidence) -> Quantities:
    """BLEU on Multi30k's captions, with its signature: a small network and a short training."""
    if "captions" not in evidence.groups:
        raise Missing(f"no captions at {evidence.profile}")
    run = evidence.run("captions")
    yield "captions-bleu", exact(run.results["bleu_beam"], runs=[run.id], note=run.results["signature"])


ARTIFACTS = (
    Artifact(
        "inverse_law/eq17",
        "The attentional translation network",
        runs,
        (measure_attention, measure_translations, measure_captions),
    ),
)
