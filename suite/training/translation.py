"""Translation with the attentional network of inverse_law: text as pieces, the training problem, search, BLEU.

A *word* of a batch size is a subword piece of the English side, the end mark not counted; the loss is the mean
cross-entropy (nats) per piece, the end mark counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from sentencepiece import SentencePieceProcessor
from torch import Tensor, nn
from torch.nn import functional as F

from suite.data.order import padded
from suite.data.text import Pair, load_pairs
from suite.data.vocabulary import BEGIN, END, PAD, train_vocabulary
from suite.models import build, initialise
from suite.training.flat import FlatModule
from suite.training.numerics import ONEDNN


@dataclass(frozen=True)
class Corpus:
    """Aligned training text: ``source`` German, ``target`` English, over one joint vocabulary.

    A sentence is a list of piece numbers, closed by the end mark.
    """

    vocabulary: SentencePieceProcessor
    source: list[list[int]]
    target: list[list[int]]

    @property
    def lengths(self) -> list[int]:
        """Target words of each sentence, without the end mark."""
        return [len(row) - 1 for row in self.target]


def prepare(
    name: str, size: int, *, root: Path | None = None, sentences: int | None = None, longest: int | None = None
) -> Corpus:
    """The training split of a corpus as pieces of a joint vocabulary trained on it.

    ``longest`` leaves out pairs with more English words between spaces, ``sentences`` keeps the first so many of
    the rest. Raises DataError (a ValueError) naming a missing or unaligned corpus, or a vocabulary that the text
    cannot yield; ValueError if no pair is short enough.
    """
    pairs = load_pairs(name, "train", root=root)
    if longest is not None:
        pairs = [pair for pair in pairs if len(pair[1].split()) <= longest]
    pairs = pairs[:sentences]
    if not pairs:
        raise ValueError(f"{name} has no pair of at most longest={longest} words; choose a larger limit")
    vocabulary = train_vocabulary([text for pair in pairs for text in pair], size)
    return Corpus(vocabulary, *(vocabulary.encode(list(side)) for side in zip(*pairs, strict=True)))


Inputs = tuple[Tensor, Tensor, Tensor]  # source [B, S], a mask [B, S] that is true on words, previous words [B, T]


def collate(
    source: Sequence[Sequence[int]], target: Sequence[Sequence[int]], device: str = "cpu"
) -> tuple[Inputs, Tensor]:
    """A batch of encoded sentences, padded on the right: what the network reads, and the words [B, T] it is to say.

    Previous words are the target shifted by one, begun with the begin mark.
    """
    before, after = padded(source, PAD).to(device), padded(target, PAD).to(device)
    previous = torch.cat((torch.full((len(after), 1), BEGIN, device=device), after[:, :-1]), 1)
    return (before, before != PAD, previous), after


class TeacherForced(nn.Module):
    """The network as a function of one argument, (source, mask, previous): logits [B, T, V]."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, inputs: Inputs) -> Tensor:
        return self.network(*inputs)


def word_loss(logits: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy of [B, T, V] against [B, T], padding left out: mean or sum over words."""
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction=reduction)


class Translation:
    """The training problem, with batches of sentences instead of images."""

    q, batch_norm, dropout, kernels = 0, False, False, ONEDNN

    def __init__(self, corpus: Corpus, sizes: dict[str, int], weights_seed: int, device: str = "cpu"):
        network = build("cgru", vocabulary=len(corpus.vocabulary), **sizes)
        initialise(network, weights_seed)
        self.network = network.to(device)
        self.flat = FlatModule(TeacherForced(self.network))
        self.corpus, self.device, self.d = corpus, device, self.flat.d

    def b0(self) -> Tensor:
        return self.flat.x.new_zeros(0)

    def fetch(self, examples: Tensor) -> tuple[Inputs, Tensor]:
        """Inputs and targets of the sentences ``examples`` [b]."""
        source, target = ([side[i] for i in examples.tolist()] for side in (self.corpus.source, self.corpus.target))
        return collate(source, target, self.device)

    def criterion(self, logits: Tensor, target: Tensor) -> Tensor:
        return word_loss(logits, target)


@torch.no_grad()
def beam_search(network: Any, source: Tensor, mask: Tensor, width: int, limit: int) -> list[list[int]]:
    """The best of ``width`` hypotheses by mean log-probability per word (Nematus normalises so too).

    A hypothesis that has reached the end mark keeps its place with probability one. With ``width`` 1 this is
    greedy search.
    """
    count, device = len(source), source.device
    encoded = network.encode(source, mask).select(torch.arange(count, device=device).repeat_interleave(width))
    state = encoded.start
    word = torch.full((count * width,), BEGIN, device=device)
    scores = torch.full((count, width), -torch.inf, device=device)
    scores[:, 0] = 0.0  # all hypotheses are the same at first: keep one
    lengths = torch.zeros(count, width, device=device)
    done = torch.zeros(count, width, dtype=torch.bool, device=device)
    history = torch.empty(count, width, 0, dtype=torch.int64, device=device)
    for _ in range(limit):
        logits, stepped = network.step(encoded, word, state)
        logs = torch.log_softmax(logits, 1).view(count, width, -1)
        vocabulary = logs.shape[2]
        stay = torch.full_like(logs, -torch.inf)
        stay[:, :, END] = 0.0
        logs = torch.where(done[:, :, None], stay, logs)
        scores, places = (scores[:, :, None] + logs).flatten(1).topk(width, 1)
        parent, word = places // vocabulary, places % vocabulary
        rows = (parent + width * torch.arange(count, device=device)[:, None]).flatten()
        state = stepped[rows]
        before = done.gather(1, parent)
        lengths = lengths.gather(1, parent) + ~before
        history = torch.cat((history.gather(1, parent[:, :, None].expand_as(history)), word[:, :, None]), 2)
        done = before | (word == END)
        word = word.flatten()
        if done.all():
            break
    best = (scores / lengths).argmax(1)
    found = history[torch.arange(count, device=device), best].tolist()
    return [words[: words.index(END)] if END in words else words for words in found]


def translate(
    problem: Translation, sentences: Sequence[str], *, beam: int = 1, limit: int = 60, chunk: int = 100
) -> list[str]:
    """English for German sentences, by greedy search or a beam of that width."""
    network, found = problem.network.eval(), []
    rows = problem.corpus.vocabulary.encode(list(sentences))
    for start in range(0, len(rows), chunk):
        source = padded(rows[start : start + chunk], PAD).to(problem.device)
        found += beam_search(network, source, source != PAD, beam, limit)
    network.train()
    return problem.corpus.vocabulary.decode(found)


def score(found: Sequence[str], pairs: Sequence[Pair]) -> tuple[float, float, str]:
    """Corpus BLEU of translations against the English side of test pairs, the share that are exact, and a signature.

    The signature is sacrebleu's, without which a BLEU means nothing.
    """
    from sacrebleu.metrics import BLEU

    wanted = [english for _, english in pairs]
    metric = BLEU()
    bleu = metric.corpus_score(list(found), [wanted]).score
    same = sum(a.strip() == b.strip() for a, b in zip(found, wanted, strict=True))
    return bleu, same / len(wanted), str(metric.get_signature())
