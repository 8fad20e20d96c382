"""Figure 2: updates against target words per mini-batch, German-English translation, one panel per learning rate.

The paper trains an attentional network on Europarl at four rates, seven batch sizes and five seeds, and finds the
counts again well fitted by N_inf + alpha / M. At ``reduced`` one rate on a small corpus stands in for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from paper_figures.inverse_law.plots import draw_law, finish_law
from paper_figures.inverse_law.readings import crossings, exponent
from suite.batch_size.law import Updates
from suite.claims.measured import exact, interval
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORD_BATCHES = (100, 200, 400, 800, 1600, 3200, 6400)
CORPORA = {"europarl": "Europarl de-en", "multi30k": "Multi30k de-en"}
RATES = (0.1, 0.2, 0.5, 1.0)
SEEDS = 5
REDUCED_RATE, REDUCED_SEEDS = 1.0, 2
REDUCED_WORDS = (12, 25, 50, 100, 200, 400, 800, 1600)  # above 100 the noise of a batch no longer shows
WORDS = RunSpec("inverse_law/words", {"corpus": "number_phrases", "words": [100, 200, 400, 800, 1600, 3200, 6400]})


def translate_spec(words: int, rate: float, seed: int, profile: str) -> RunSpec:
    """The search of one point of Figure 2."""
    paper = profile == "paper"
    settings: dict[str, Any] = {
        "corpus": "europarl" if paper else "multi30k",
        "vocabulary": 16_000 if paper else 1_000,
        "model": {"embedding": 512, "hidden": 512} if paper else {"embedding": 32, "hidden": 32},
        "descent": {"rule": "torch"},
        "rate": rate,
        "words": words,
        "sentences": None if paper else 4_000,  # of the corpus, those with at most ``longest`` words
        "longest": None if paper else 12,
        "sample": 2_000 if paper else 100,  # sentences whose loss is tested
        "growth": 0.01 if paper else 0.03,
        "limit": 200_000 if paper else 3_000,
        "monitors": {"training": [6.0, 5.0, 4.0] if paper else [5.0, 4.7, 4.4]},
        "test_sentences": 3_000 if paper else 100,
        "beam": 4,
    }
    return RunSpec("inverse_law/translate", settings, seed)


def figure_specs(rate: float, profile: str) -> tuple[RunSpec, ...]:
    """Runs of one panel; at reduced only the largest rate, as a proxy on a small corpus."""
    if profile == "paper":
        return tuple(translate_spec(w, rate, s, profile) for w in WORD_BATCHES for s in range(SEEDS))
    if profile == "reduced" and rate == REDUCED_RATE:
        return tuple(translate_spec(w, rate, s, profile) for w in REDUCED_WORDS for s in range(REDUCED_SEEDS))
    return ()


def panel_runs(rate: float) -> Callable[[str], Groups]:
    """The runs function of the panel of one learning rate."""

    def runs(profile: str) -> Groups:
        specs = figure_specs(rate, profile)
        return {"panel": specs} if specs else {}

    return runs


def first_panel_runs(profile: str) -> Groups:
    """The first panel also has the claim on how batches are filled with words."""
    return {**panel_runs(RATES[0])(profile), "words": (WORDS,)}


def measure_panel(evidence: Evidence) -> Quantities:
    """Exponent of the words per batch in N - N_inf; a proxy unless trained on Europarl."""
    found = exponent(counts(evidence))
    runs = evidence.runs("panel")
    corpus = runs[0].spec.settings["corpus"]
    kind = "measured" if corpus == "europarl" else "proxy"
    yield (
        "law",
        interval(found.mean, found.low, found.high, kind=kind, n=found.n, runs=[r.id for r in runs], note=corpus),
    )


def counts(evidence: Evidence) -> list[Updates]:
    """Updates to the lowest threshold that at least two batch sizes reached, by words per batch."""
    if "panel" not in evidence.groups:
        raise Missing(f"no runs of this learning rate at {evidence.profile}")
    runs = evidence.runs("panel")
    for threshold in sorted(runs[0].results["thresholds_training"]):
        found = crossings(runs, threshold)
        if sum(u.censored < len(u.seen) for u in found) >= 2:
            return found
    raise Missing("two batch sizes that reached a threshold")


def measure_settings(evidence: Evidence) -> Quantities:
    """What the runs of the paper profile are specified with."""
    specs = [spec for rate in RATES for spec in figure_specs(rate, "paper")]
    yield "batch-sizes", exact(sorted({spec.settings["words"] for spec in specs}))
    yield "learning-rates", exact(sorted({spec.settings["rate"] for spec in specs}))
    yield "seeds", exact([len({spec.seed for spec in specs}), len(specs)])


def measure_batches(evidence: Evidence) -> Quantities:
    """By how much of its last sentence a batch of words exceeds its size, at most; below 0 would fall short."""
    run = evidence.run("words")
    yield "batch-rule", exact(run.results["worst"], runs=[run.id], note=f"{run.results['short']} batches fell short")


def draw_panel(evidence: Evidence, figure: Figure) -> None:
    """Updates against words per batch on logarithmic axes with the fitted law."""
    if "panel" not in evidence.groups:
        raise Missing(f"no runs of this learning rate at {evidence.profile}")
    runs = evidence.runs("panel")
    axes = figure.add_subplot()
    found = [crossings(runs, threshold) for threshold in runs[0].results["thresholds_training"]]
    for order, (threshold, counted) in enumerate(zip(runs[0].results["thresholds_training"], found, strict=True)):
        draw_law(axes, counted, f"loss {threshold:g}", order)
    finish_law(axes, found)
    axes.set_xlabel("target words per mini-batch M")
    axes.set_ylabel("updates to the threshold")
    settings = runs[0].spec.settings
    axes.set_title(f"{CORPORA[settings['corpus']]}, rate {settings['rate']:g}")


ARTIFACTS = tuple(
    Artifact(
        f"inverse_law/fig2{letter}",
        f"Updates against words per batch, translation at learning rate {rate:g}",
        first_panel_runs if letter == "a" else panel_runs(rate),
        (measure_panel, measure_settings, measure_batches) if letter == "a" else (measure_panel,),
        draw=draw_panel,
        alt="Updates to a training loss against target words per batch on logarithmic axes, with the fitted law.",
    )
    for letter, rate in zip("abcd", RATES, strict=True)
)
