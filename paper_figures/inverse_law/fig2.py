"""Figure 2: updates against target words per mini-batch, German-English translation, one panel per learning rate.

The paper trains an attentional network on Europarl at four rates, seven batch sizes and five seeds, and finds the
counts again well fitted by N_inf + alpha / M. At ``reduced`` all rates but the smallest are searched on seven
sittings of Europarl with a smaller network, and on captions, which stand in for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from paper_figures.inverse_law.drawing import draw_law, finish_law, key, told, updates_table
from paper_figures.inverse_law.law import Search, crossings, exponent, searches
from paper_figures.inverse_law.misfits import achievable, largest_misfit
from suite.batch_size.law import Updates
from suite.claims.intervals import Interval
from suite.papers.figure import Artifact, Figure, Frame, Groups, Missing, RunSpec, np, pd

WORD_BATCHES = (100, 200, 400, 800, 1600, 3200, 6400)
CORPORA = {
    "europarl": "Europarl de-en",
    "europarl_sample": "seven sittings of Europarl de-en",
    "multi30k": "Multi30k de-en, a stand-in",
}
RATES = (0.1, 0.2, 0.5, 1.0)
SEEDS = 5
REDUCED_SEEDS = 2
REDUCED_SIZES = {1.0: WORD_BATCHES, 0.5: WORD_BATCHES[:5], 0.2: WORD_BATCHES[:5]}  # a larger one takes hours a run
EVERY_THRESHOLD = 0.5  # below this rate the last one takes more updates than ``limit``
CAPTION_WORDS = (12, 25, 50, 100, 200, 400, 800, 1600)  # above 100 the noise of a batch no longer shows

CAPTIONS = {
    "corpus": "multi30k",
    "vocabulary": 1_000,
    "model": {"embedding": 32, "hidden": 32},
    "sentences": 4_000,  # of the corpus, those with at most ``longest`` words
    "longest": 12,
    "sample": 100,  # sentences whose loss is tested
    "growth": 0.03,
    "limit": 3_000,
    "monitors": {"training": [5.0, 4.7, 4.4]},
    "test_sentences": 100,
}
SITTINGS = {
    **CAPTIONS,
    "corpus": "europarl_sample",
    "vocabulary": 2_000,
    "model": {"embedding": 64, "hidden": 64},
    "sentences": None,
    "longest": 40,
    "sample": 200,
    "monitors": {"training": [6.0, 5.5, 5.0]},
    "test_sentences": 300,
}
WHOLE = {
    "corpus": "europarl",
    "test_corpus": "newstest2013",
    "vocabulary": 16_000,
    "model": {"embedding": 512, "hidden": 512},
    "sentences": None,
    "longest": None,
    "sample": 2_000,
    "growth": 0.01,
    "limit": 200_000,
    "monitors": {"training": [6.0, 5.0, 4.0]},
    "test_sentences": 3_000,
}


def translate_spec(words: int, rate: float, seed: int, design: Mapping[str, Any]) -> RunSpec:
    """The search of one point of Figure 2; ``design`` is WHOLE, SITTINGS or CAPTIONS."""
    settings = {"descent": {"rule": "torch"}, "rate": rate, "words": words, "beam": 4, **design}
    return RunSpec("inverse_law/translate", settings, seed)


def panel_runs(rate: float, profile: str) -> Groups:
    """Runs of one panel; at reduced those of a rate in ``REDUCED_SIZES``, on Europarl and on captions."""

    def specs(design: Mapping[str, Any], sizes: Sequence[int], seeds: int) -> tuple[RunSpec, ...]:
        return tuple(translate_spec(words, rate, seed, design) for words in sizes for seed in range(seeds))

    def reachable(design: Mapping[str, Any]) -> Mapping[str, Any]:
        if rate >= EVERY_THRESHOLD:
            return design
        return {**design, "monitors": {"training": design["monitors"]["training"][:-1]}}

    if profile == "paper":
        return {"panel": specs(WHOLE, WORD_BATCHES, SEEDS)}
    if profile == "reduced" and rate in REDUCED_SIZES:
        captions = specs(reachable(CAPTIONS), CAPTION_WORDS, REDUCED_SEEDS)
        return {"panel": specs(reachable(SITTINGS), REDUCED_SIZES[rate], REDUCED_SEEDS), "captions": captions}
    return {}


def counts(runs: list[Search]) -> dict[float, list[Updates]]:
    """Updates to every threshold (nats)."""
    return {threshold: crossings(runs, threshold) for threshold in runs[0].results["thresholds_training"]}


def law(group: str, frame: Frame) -> Interval:
    """One exponent for all thresholds that every batch size of the larger half reached."""
    found = counts(searches(frame, [group])).values()
    return exponent([c for c in found if not any(u.censored for u in c[len(c) // 2 :])])


def misfit(frame: Frame) -> Interval:
    """The largest relative misfit of the law over all thresholds and achievable batch sizes."""
    return largest_misfit(counts(searches(frame, ["panel"])).values())


def note(frame: Frame) -> str:
    bleu = frame["panel"]["bleu_beam"]
    score = f"BLEU {bleu.min():.1f} to {bleu.max():.1f} where they end"
    fall = f"updates fall by {fallen(frame):.0%} at most from the smallest batches to the largest"
    sizes = [run.batch for run in searches(frame, ["panel"])]
    trained_at = f"{CORPORA[settings_of(frame, 'panel')['corpus']]}, {min(sizes)} to {max(sizes)} words"
    return f"{trained_at}; {fall}; {score}"


def fallen(frame: Frame) -> float:
    """The largest share of a threshold's updates, by means over seeds, that the largest batch size saves.

    A curve that hardly falls passes the test of its misfit whatever power of M it falls with.
    """
    reached = [kept for counted in counts(searches(frame, ["panel"])).values() if (kept := achievable(counted))]
    ends = ([np.array(u.seen, float).mean() for u in (kept[0], kept[-1])] for kept in reached)
    return max(1 - float(last / first) for first, last in ends)


def settings_of(frame: Frame, group: str) -> Mapping[str, Any]:
    return frame.runs_of(group)[0].spec.settings


def trained(frame: Frame) -> dict[str, list[Search]]:
    """The runs of each corpus that was trained at this learning rate, Europarl first."""
    found = {group: searches(frame, [group]) for group in ("panel", "captions") if frame.whole(group)}
    if not found:
        raise Missing(f"no runs of this learning rate at {frame.profile}")
    return found


def table(frame: Frame) -> pd.DataFrame:
    """A row per corpus, threshold (nats), batch size (words) and seed: ``updates``, NaN beyond ``limit``."""
    name = lambda group: CORPORA[settings_of(frame, group)["corpus"]]
    parts = [updates_table(counts(runs), corpus=name(group)) for group, runs in trained(frame).items()]
    return pd.concat(parts, ignore_index=True)


def draw(frame: Frame, figure: Figure) -> None:
    """Updates to a training loss against target words per batch on logarithmic axes, with the fitted law."""
    from matplotlib.lines import Line2D

    panels = trained(frame)
    for axes, (group, runs) in zip(figure.subplots(1, len(panels), squeeze=False).flat, panels.items(), strict=True):
        found, settings = counts(runs), settings_of(frame, group)
        for order, (threshold, counted) in enumerate(found.items()):
            draw_law(axes, counted, f"{threshold:g}", order)
        finish_law(axes, list(found.values()))
        title = f"{CORPORA[settings['corpus']]}, rate {settings['rate']:g}"
        with contextlib.suppress(Missing):
            far = largest_misfit(found.values())
            ends = "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * end for end in (far.mean, far.low, far.high)))
            title += f"\nmisfit {ends.replace('inf', '∞')}%"
            title += f"\n{told(law(group, frame))}"
        axes.set(xlabel="target words per mini-batch M", ylabel="updates to the threshold, $N$", title=title)
    marks = key([counted for runs in panels.values() for counted in counts(runs).values()])
    marks.append(Line2D([], [], linestyle="none", label="beside a curve: its loss"))
    figure.legend(handles=marks, ncols=3, loc="outside upper left", fontsize="small")


def panel(letter: str, rate: float) -> Artifact:
    """The panel of one learning rate. The law on captions, a stand-in, is drawn alone."""
    made = Artifact(
        f"inverse_law/fig2{letter}",
        f"Updates against words per batch, translation at learning rate {rate:g}",
        partial(panel_runs, rate),
        size=(7.4, 4.4),
        frame=table,
    )
    made.drawing(draw)
    made.quantity("misfit", ["panel"], note=note)(misfit)
    made.quantity("law", ["panel"], note=note)(partial(law, "panel"))  # which decided until the misfit was registered
    return made


A, B, C, D = map(panel, "abcd", RATES)
