"""The experiment ``inverse_law/translate``: a search of Figure 2.

Settings::

    corpus, vocabulary (pieces), model {embedding, hidden}, descent {rule, ...}, rate
    words      target words per batch            sentences?, longest?   which of the corpus (null: all)
    sample (sentences tested), growth, limit, monitors {training: [thresholds]}
    test_corpus?  whose test split is translated; without it that of ``corpus``
    test_sentences (0: none), beam
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from paper_figures.inverse_law.experiments.search import SearchRun, SteppedSgd, Trained
from suite.data.order import WordOrder
from suite.data.text import Pair, load_pairs
from suite.experiment import Context, Outcome
from suite.spec import RunSpec, seed
from suite.training.build import make_optimizer
from suite.training.gradients.backend import AutogradGradients
from suite.training.loss_reading import LossReading, read_loss
from suite.training.numerics import apply
from suite.training.translation import Translation, prepare, score, translate, word_loss

CHUNK = 50  # sentences of a test read at a time


class Trainer(SteppedSgd):
    """SGD on the translation network with batches of words."""

    def __init__(self, spec: RunSpec, context: Context):
        settings = spec.settings
        corpus = prepare(
            settings["corpus"],
            settings["vocabulary"],
            root=context.data,
            sentences=settings.get("sentences"),
            longest=settings.get("longest"),
        )
        problem = Translation(corpus, dict(settings["model"]), seed(spec.seed, "weights"), context.device)
        rate = torch.tensor(settings["rate"], device=context.device)
        super().__init__(AutogradGradients(problem), make_optimizer(settings["descent"], problem.flat), rate)
        self.order = WordOrder(corpus.lengths, settings["words"], seed(spec.seed, "order"))
        drawn = torch.randperm(
            len(corpus.lengths), generator=torch.Generator().manual_seed(seed("samples", settings["corpus"]))
        )
        rows = drawn[: settings.get("sample") or 0]
        self.sample = [self.problem.fetch(part) for part in rows.split(CHUNK) if len(part)]
        self.test_examples = sum(int((target != 0).sum()) for _, target in self.sample)  # words

    def examples(self, t: int) -> Tensor:
        return self.order.sentences(t)[None]

    def reader(self, sample: str) -> Callable[[Any, float], LossReading]:
        """How the monitor reads the mean loss per word over the sample of training sentences."""
        if sample != "training":
            raise ValueError(f"translation has a training sample only, not {sample!r}")

        @torch.no_grad()
        def chunks() -> Iterator[tuple[float, int]]:
            for inputs, target in self.sample:
                logits = self.flat.module(inputs)
                yield word_loss(logits, target, "sum").item(), int((target != 0).sum())

        def read(trained: Trained, threshold: float) -> LossReading:
            self.load(trained)
            return read_loss(chunks(), self.test_examples, threshold)

        return read


def search(spec: RunSpec, context: Context) -> Outcome:
    """Run or resume the search of one point of Figure 2; the weights it ends with translate unseen sentences."""
    apply(context.execution)
    unseen = test_pairs(spec, context)
    trainer = Trainer(spec, context)

    def judge(trained: Trained) -> dict[str, Any]:
        if not unseen:
            return {}
        trainer.load(trained)
        return judged(trainer, spec, unseen)

    return SearchRun(spec, context, trainer, judge).run()


def test_pairs(spec: RunSpec, context: Context) -> list[Pair]:
    """The unseen sentences to translate, read before the training so that an absent test set costs nothing."""
    settings = spec.settings
    if not (count := settings.get("test_sentences")):
        return []
    return load_pairs(settings.get("test_corpus", settings["corpus"]), "test", root=context.data)[:count]


def judged(trainer: Trainer, spec: RunSpec, pairs: list[Pair]) -> dict[str, Any]:
    """BLEU with its signature, exact matches, and a few translations to look at."""
    german = [source for source, _ in pairs]
    results: dict[str, Any] = {}
    for name, beam in (("greedy", 1), ("beam", spec.settings["beam"])):
        found = translate(trainer.problem, german, beam=beam)
        bleu, exact, signature = score(found, pairs)
        results |= {f"bleu_{name}": bleu, f"exact_{name}": exact, "signature": signature}
    results["shown"] = [[*pair, text] for pair, text in zip(pairs[:5], found, strict=False)]
    return results
