"""Translation: word batches as the problem sees them, the decoder's GRU, attention, search, and BLEU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from paper_figures.inverse_law import fig2
from paper_figures.inverse_law.experiments.translate import Trainer, search
from suite.data.catalogue import DATASETS, DataError
from suite.data.text import load_pairs
from suite.data.vocabulary import BEGIN, END, PAD
from suite.experiment import Context
from suite.models import build, initialise
from suite.spec import RunSpec
from suite.training.gradients.backend import AutogradGradients
from suite.training.numerics import choose
from suite.training.translation import Translation, beam_search, collate, prepare, translate, word_loss

WORDS = 30
PHRASES = {"corpus": "number_phrases", "vocabulary": 200}


@pytest.fixture(scope="module")
def network():
    module = build("cgru", vocabulary=WORDS, embedding=8, hidden=12)
    initialise(module, 3)
    return module.double()


def sentences(lengths, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [[*torch.randint(4, WORDS, (n - 1,), generator=generator).tolist(), END] for n in lengths]


def batch_of(lengths, seed=0):
    return collate(sentences(lengths, seed), sentences(lengths, seed + 1))


def test_collate_shifts_and_pads():
    (source, mask, previous), target = collate([[7, END], [8, 9, END]], [[5, 6, END], [4, END]])
    assert source.tolist() == [[7, END, PAD], [8, 9, END]]
    assert mask.tolist() == [[True, True, False], [True, True, True]]
    assert previous.tolist() == [[BEGIN, 5, 6], [BEGIN, 4, END]]
    assert target.tolist() == [[5, 6, END], [4, END, PAD]]


def test_the_loss_is_the_mean_over_words_not_sentences(network):
    long, short = batch_of([9]), batch_of([2], seed=4)
    inputs, target = collate(
        *(
            [side[0].tolist() for side in sides]
            for sides in zip((long[0][0], long[1]), (short[0][0], short[1]), strict=True)
        )
    )
    with torch.no_grad():
        sums = [word_loss(network(*read), said, "sum") for read, said in (long, short)]
        mean = word_loss(network(*inputs), target)
    assert mean == pytest.approx(float(sum(sums)) / 11, rel=1e-12)


def test_a_batch_split_over_workers_has_the_same_gradient(network):
    """Weighted by words, the mean gradient of the parts is the gradient of the whole."""
    inputs, target = batch_of([5, 5, 5, 5, 5, 5])

    def gradient(rows: slice) -> tuple[torch.Tensor, ...]:
        loss = word_loss(network(*(part[rows] for part in inputs)), target[rows])
        return torch.autograd.grad(loss, list(network.parameters()))

    whole, split = gradient(slice(6)), [gradient(rows) for rows in (slice(0, 2), slice(2, 4), slice(4, 6))]
    for gradient, *pieces in zip(whole, *split, strict=True):
        assert torch.allclose(gradient, sum(pieces) / 3, rtol=0, atol=1e-13)


def test_a_beam_of_one_is_greedy(network):
    ((source, mask, _), _), network = batch_of([4, 8, 2, 6, 7]), network.eval()
    encoded = network.encode(source, mask)
    state, word, words = encoded.start, torch.full((5,), BEGIN), []
    for _ in range(12):
        logits, state = network.step(encoded, word, state)
        word = logits.argmax(1)
        words.append(word)
    rows = torch.stack(words, 1).tolist()
    expected = [row[: row.index(END)] if END in row else row for row in rows]
    assert beam_search(network, source, mask, 1, 12) == expected


def test_a_wide_beam_finds_the_best_of_all_short_translations():
    """Three words and a limit of three: every hypothesis fits in the beam, so the search must be exhaustive."""
    module = build("cgru", vocabulary=5, embedding=6, hidden=6)
    initialise(module, 9)
    module = module.double()
    source = torch.tensor([[4, 4, END]])
    mask = source != PAD
    found = beam_search(module, source, mask, 5, 2)[0]

    def mean_log(words):
        previous = torch.tensor([[BEGIN, *words[:-1]]])
        with torch.no_grad():
            logs = torch.log_softmax(module(source, mask, previous), 2)[0]
        return sum(float(logs[i, w]) for i, w in enumerate(words)) / len(words)

    every = [[END], *([a, b] for a in range(5) if a != END for b in range(5))]
    best = max(every, key=mean_log)
    assert found == (best[: best.index(END)] if END in best else best)


@pytest.fixture(scope="module")
def problem():
    corpus = prepare("number_phrases", 60, sentences=150)
    return Translation(corpus, {"embedding": 8, "hidden": 12}, weights_seed=1)


def test_the_words_of_a_sentence_are_those_before_its_end_mark(problem):
    assert replace(problem.corpus, target=[[4, 5, 6, END], [END]]).lengths == [3, 0]


def test_each_word_fetched_is_read_before_the_next_is_asked_for(problem):
    (_, mask, previous), target = problem.fetch(torch.tensor([3, 0]))
    assert mask.shape[0] == 2
    assert torch.equal(previous[0, 1:], target[0, :-1])
    assert previous[:, 0].tolist() == [BEGIN, BEGIN]
    assert END in target[0]


@pytest.mark.parametrize("beam", [1, 3])
def test_sentences_are_translated_alike_alone_and_in_chunks(problem, beam):
    """Padding to a chunk's longest sentence changes no translation, and none changes places."""
    given = [german for german, _ in load_pairs("number_phrases", "test")[:7]]
    alone = [translate(problem, [text], beam=beam, limit=9)[0] for text in given]
    assert translate(problem, given, beam=beam, limit=9, chunk=3) == alone
    assert translate(problem, given, beam=beam, limit=9) == alone
    assert len(set(alone)) > 1
    assert problem.network.training


def test_training_reduces_the_loss_and_resumes_from_any_state():
    """The trainer is a function of state and batch number: two stretches equal one, to the bit."""
    small = {"model": {"embedding": 12, "hidden": 16}, "words": 60, "sample": 20}
    spec = RunSpec("inverse_law/translate", {**PHRASES, "descent": {"rule": "adam"}, "rate": 0.005, **small})
    context = Context(Path("."), {"device": "cpu"})
    trainer = Trainer(spec, context)
    assert isinstance(trainer.backend, AutogradGradients)
    read = trainer.reader("training")
    start = trainer.start()
    before = read(start, 99.0).loss
    whole = trainer.advance(start, 0, 20)
    halves = trainer.advance(trainer.advance(start, 0, 8), 8, 20)
    assert torch.equal(whole.state.x, halves.state.x)
    assert read(whole, 99.0).loss < before


def test_europarl_is_trained_on_and_newstest_translated(tmp_path):
    """The runs of the paper's profile from the first read to the last, on little text in the layout of the whole."""

    def store(name, split, pairs):
        info = DATASETS[name]
        folder = tmp_path / info.hub / info.config
        folder.mkdir(parents=True)
        table = pd.DataFrame({"translation": [{"de": german, "en": english} for german, english in pairs]})
        table.to_parquet(folder / f"{info.prefix(split)}-00000-of-00001.parquet")

    pairs = load_pairs("number_phrases", "train")[:400]
    (spec, *_) = fig2.panel_runs(0.5, "paper")["panel"]
    little = {
        "vocabulary": 60,
        "model": {"embedding": 8, "hidden": 8},
        "sample": 10,
        "limit": 6,
        "test_sentences": 3,
        "monitors": {"training": [0.01]},
    }
    assert set(little) <= set(spec.settings)
    spec = RunSpec(spec.experiment, {**spec.settings, **little}, spec.seed)
    context = Context(tmp_path, choose(spec, "cpu", 1), data=tmp_path)
    store("europarl", "train", [*pairs, ("", "an empty side, as in the original")])
    with pytest.raises(DataError, match="newstest2013 is not below"):
        search(spec, context)
    store("newstest2013", "test", pairs[:5])
    found = search(spec, context)
    assert found.results["updates"] == 6
    assert [pair[:2] for pair in found.results["shown"]] == [list(pair) for pair in pairs[:3]]


def test_a_search_counts_updates_to_a_threshold_and_translates(tmp_path):
    """With the settings of Figure 2's runs, which leave the coarse grid out, and a network that learns in seconds."""
    reduced = fig2.translate_spec(400, 0.5, 0, fig2.CAPTIONS).settings
    small = {
        **PHRASES,
        "model": {"embedding": 12, "hidden": 16},
        "words": 60,
        "sample": 20,
        "sentences": None,
        "limit": 60,
        "monitors": {"training": [4.5, 0.01]},
        "test_sentences": 3,
        "beam": 2,
    }
    assert set(small) <= set(reduced)
    spec = RunSpec("inverse_law/translate", {**reduced, **small})
    found = search(spec, Context(tmp_path, choose(spec, "cpu", 1)))
    first, never = (
        dict(zip(found.results["thresholds_training"], found.results["crossed_training"], strict=True))[t]
        for t in (4.5, 0.01)
    )
    assert 0 < first <= 60
    assert never == -1
    assert 0 <= found.results["bleu_beam"] <= 100
    assert "nrefs:1" in found.results["signature"]
