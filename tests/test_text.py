"""Parallel text: layouts, alignment, number phrases, vocabularies, batches counted in words."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.data.catalogue import DATASETS, DataError, available
from suite.data.order import WordOrder, word_batches
from suite.data.text import Pair, load_pairs
from suite.data.verify import verify
from suite.data.vocabulary import BEGIN, END, PAD, UNKNOWN, train_vocabulary

PAIRS: list[Pair] = [(f"Satz {n} sagt\u2028nichts", f"Sentence {n} says\x85nothing") for n in range(30)]


def write_parquet(path: Path, pairs: list[Pair], flat: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"de": german, "en": english} for german, english in pairs]
    pq.write_table(pa.Table.from_pylist(rows if flat else [{"translation": row} for row in rows]), path)


def write_text(folder: Path, stem: str, german: str, english: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.de").write_bytes(german.encode())
    (folder / f"{stem}.en").write_bytes(english.encode())


@pytest.mark.parametrize(
    ("name", "split", "path", "flat"),
    [
        ("europarl", "train", "Helsinki-NLP/europarl/de-en/train-00000-of-00001.parquet", False),
        ("newstest2013", "test", "wmt/wmt14/de-en/validation-00000-of-00001.parquet", True),
        ("multi30k", "validation", "multi30k/de-en/validation-00000-of-00001.parquet", False),
        ("europarl_sample", "test", "europarl-sample/de-en/test-00000-of-00001.parquet", True),
        ("wmt14_sample", "train", "wmt14-sample/de-en/train-00000-of-00001.parquet", False),
    ],
)
def test_hub_layouts(tmp_path: Path, name: str, split: str, path: str, flat: bool) -> None:
    write_parquet(tmp_path / path, PAIRS, flat)
    assert load_pairs(name, split, tmp_path) == PAIRS


@pytest.mark.parametrize(
    ("name", "split", "folder", "stem"),
    [
        ("europarl", "train", "europarl", "europarl-v7.de-en"),
        ("newstest2013", "test", "newstest2013", "newstest2013"),
        ("multi30k", "test", "multi30k/de-en", "test"),
    ],
)
def test_text_files_aligned_by_line(tmp_path: Path, name: str, split: str, folder: str, stem: str) -> None:
    german, english = ("\n".join(side) + "\n" for side in zip(*PAIRS, strict=True))
    write_text(tmp_path / folder, stem, german, english.replace("\n", "\r\n").removesuffix("\r\n"))
    assert load_pairs(name, split, tmp_path) == PAIRS


def test_unequal_files_name_the_first_line_without_a_partner(tmp_path: Path) -> None:
    write_text(tmp_path / "newstest2013", "newstest2013", "a\nb\nc\nd\n", "a\nb\n")
    with pytest.raises(DataError, match=r"line 3 of .*2013.de has no partner.*2013.en ends at line 2"):
        load_pairs("newstest2013", "test", tmp_path)
    write_text(tmp_path / "newstest2013", "newstest2013", "a\n", "a\nb\nc\n")
    with pytest.raises(DataError, match=r"line 2 of .*2013.en has no partner.*2013.de ends at line 1"):
        load_pairs("newstest2013", "test", tmp_path)


def test_an_empty_side_names_its_line_except_where_a_corpus_is_known_for_it(tmp_path: Path) -> None:
    write_text(tmp_path / "newstest2013", "newstest2013", "a\n \nc\n", "a\nb\nc\n")
    with pytest.raises(DataError, match=r"line 2 of .* has no German side"):
        load_pairs("newstest2013", "test", tmp_path)
    write_text(tmp_path / "europarl", "europarl-v7.de-en", "a\n \nc\nd\n", "a\nb\nc\n\n")
    assert load_pairs("europarl", "train", tmp_path) == [("a", "a"), ("c", "c")]
    write_parquet(tmp_path / "multi30k/de-en/train-00000-of-00001.parquet", [("a", "b"), ("c", "")])
    with pytest.raises(DataError, match=r"row 1 of .* has no English side"):
        load_pairs("multi30k", "train", tmp_path)


def test_damaged_corpora_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "newstest2013"
    write_text(folder, "newstest2013", "a\nb\n", "a\nb\n")
    (folder / "newstest2013.de").write_bytes(b"a\n\xff\n")
    with pytest.raises(DataError, match=r"line 2 of .*newstest2013.de is not UTF-8"):
        load_pairs("newstest2013", "test", tmp_path)
    (folder / "newstest2013.de").write_bytes(b"\n\xff\n")
    with pytest.raises(DataError, match=r"line 2 of .*newstest2013.de is not UTF-8"):
        load_pairs("newstest2013", "test", tmp_path)
    (folder / "newstest2013.de").unlink()
    with pytest.raises(DataError, match=r"holds newstest2013.en; keep one .de and one .en"):
        load_pairs("newstest2013", "test", tmp_path)
    write_text(folder, "newstest2013", "", "")
    with pytest.raises(DataError, match="holds no sentence pair"):
        load_pairs("newstest2013", "test", tmp_path)
    path = tmp_path / "multi30k/de-en/test-00000-of-00001.parquet"
    write_parquet(path, PAIRS)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DataError, match=r"multi30k: .*test-00000-of-00001.parquet is damaged"):
        load_pairs("multi30k", "test", tmp_path)
    assert not all(check.passed for check in verify("multi30k", tmp_path))


def test_what_is_no_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="europarl is not below"):
        load_pairs("europarl", "train", tmp_path)
    with pytest.raises(DataError, match="mnist holds images"):
        load_pairs("mnist", "train", tmp_path)
    with pytest.raises(DataError, match="split 'test' does not exist; it has train"):
        load_pairs("europarl", "test", tmp_path)
    with pytest.raises(DataError, match="split 'dev' does not exist; it has train, validation, test"):
        load_pairs("number_phrases", "dev")


def test_shards_are_those_of_one_whole_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGD_SUITE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "multi30k" / "de-en"
    for split, names in {
        "train": ["train-00001-of-00002.parquet"],
        "validation": ["validation-00000-of-00001.parquet", "validation-00001-of-00003.parquet"],
        "test": ["test-all.parquet"],  # says nothing of others
    }.items():
        for name in names:
            write_parquet(folder / name, PAIRS)
        assert available("multi30k", tmp_path)[0] == (split == "test")
    with pytest.raises(DataError, match="shard 0 of 2 is missing"):
        load_pairs("multi30k", "train", tmp_path)
    with pytest.raises(DataError, match="mixes shards of several exports"):
        load_pairs("multi30k", "validation", tmp_path)
    assert load_pairs("multi30k", "test", tmp_path) == PAIRS
    assert not list((tmp_path / "cache").rglob("*.arrow"))  # a shard is read where it lies, not copied first


def test_number_phrases_are_right_reproducible_and_never_in_two_splits() -> None:
    splits = {split: load_pairs("number_phrases", split) for split in DATASETS["number_phrases"].sizes}
    assert {split: len(pairs) for split, pairs in splits.items()} == dict(DATASETS["number_phrases"].sizes)
    everything = [pair for pairs in splits.values() for pair in pairs]
    assert len(set(everything)) == len(everything)
    assert splits["train"][0] == ("eintausendeins", "one thousand and one")
    translations = dict(everything)
    assert len(translations) == len(everything)  # no German phrase has two translations
    # two-digit numbers are few and their forms drawn often: these are among them
    assert translations["siebenundvierzig"] == "forty-seven"
    words = sorted(len(english.split()) for _, english in everything)
    assert words[0] == 1
    assert words[-1] >= 9  # lengths vary, as batches counted in words need


def test_a_corpus_is_verified_by_its_size_and_content_split_by_split() -> None:
    report = verify("number_phrases")
    assert all(check.passed for check in report)
    splits = DATASETS["number_phrases"].sizes
    assert [check.name for check in report] == [f"{s} {what}" for s in splits for what in ("size", "content")]


@pytest.mark.data
@pytest.mark.parametrize("name", ["multi30k", "multi30k_characters", "europarl_sample", "wmt14_sample"])
def test_real_corpora_are_whole(name: str, data_of) -> None:
    report = verify(name, data_of(name))
    assert all(check.passed for check in report), report


def phrases() -> list[str]:
    return [side for pair in load_pairs("number_phrases", "train")[:800] for side in pair]


def test_vocabulary_returns_what_it_encodes() -> None:
    vocabulary = train_vocabulary(phrases(), 200)
    assert len(vocabulary) == 200
    rows = vocabulary.encode(phrases()[:50])
    assert all(row[-1] == END and UNKNOWN not in row for row in rows)
    assert vocabulary.decode(rows) == phrases()[:50]
    framed = [[BEGIN, *row, PAD, PAD] for row in rows]
    assert vocabulary.decode(framed) == phrases()[:50]
    assert UNKNOWN in vocabulary.encode(["語"])[0]
    assert vocabulary.decode([[], [END]]) == ["", ""]


def test_vocabulary_is_kept_by_content_and_rebuilt_when_damaged(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SGD_SUITE_CACHE", str(tmp_path))
    model = train_vocabulary(phrases(), 150).serialized_model_proto()
    path = next(tmp_path.rglob("*.inputs.npy"))
    kept = path.stat().st_mtime_ns
    assert train_vocabulary(phrases(), 150).serialized_model_proto() == model
    assert path.stat().st_mtime_ns == kept
    for spoil in (model[:100], b"", model + b"\0"):
        path.write_bytes(spoil)
        assert train_vocabulary(phrases(), 150).serialized_model_proto() == model
    train_vocabulary(phrases()[:-1], 150)
    train_vocabulary(phrases(), 160)
    assert len(list(tmp_path.glob("vocabularies/*.inputs.npy"))) == 3


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=80),
    st.integers(1, 150),
    st.sampled_from([None, 3]),
    st.integers(0, 3),
)
@settings(deadline=None, max_examples=150)
def test_batches_reach_the_number_of_words_with_their_last_sentence(
    lengths: list[int], words: int, seed: int | None, epoch: int
) -> None:
    batches = word_batches(lengths, words, seed, epoch)
    counts = [[lengths[sentence] for sentence in batch.tolist()] for batch in batches]
    assert sorted(torch.cat(batches).tolist()) == list(range(len(lengths)))
    for count in counts[:-1]:
        assert sum(count) >= words > sum(count[:-1])
    assert sum(counts[-1][:-1]) < words  # the last may be short, never long
    assert all(len(batch) for batch in batches)
    # the literal loop of the paper, over the same order
    literal: list[list[int]] = [[]]
    for sentence in torch.cat(batches).tolist():
        if sum(lengths[each] for each in literal[-1]) >= words:
            literal.append([])
        literal[-1].append(sentence)
    assert [batch.tolist() for batch in batches] == literal


def test_word_batches_follow_seed_and_epoch() -> None:
    lengths = [1 + n % 7 for n in range(50)]
    drawn = [torch.cat(word_batches(lengths, 20, *key)).tolist() for key in ((1, 0), (1, 1), (2, 0), (1, 0))]
    assert drawn[0] == drawn[3]
    assert len({tuple(row) for row in drawn}) == 3
    assert torch.cat(word_batches(lengths, 20, 1)).tolist() == drawn[0]  # the first epoch
    assert torch.cat(word_batches(lengths, 20, None)).tolist() == list(range(50))
    assert [batch.tolist() for batch in word_batches([2, 1, 1], 1, None)] == [[0], [1], [2]]


def test_word_order_gives_any_batch_alone() -> None:
    lengths = torch.tensor([1 + n * n % 23 for n in range(40)])
    sequential = [batch.tolist() for epoch in range(4) for batch in word_batches(lengths, 30, 7, epoch)]
    starts = [len(word_batches(lengths, 30, 7, epoch)) for epoch in range(3)]
    for number in (len(sequential) - 1, 0, starts[0], starts[0] - 1, starts[0] + starts[1]):
        assert WordOrder(lengths, 30, 7).sentences(number).tolist() == sequential[number]
    order = WordOrder(lengths, 30, 7)
    assert [order.sentences(number).tolist() for number in range(len(sequential))] == sequential
