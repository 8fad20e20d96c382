"""Parallel text, German to English: ``load_pairs("multi30k", "train")`` is a list of (de, en).

A small translation task that needs no download: German number words to English ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import accumulate, zip_longest
from pathlib import Path

import numpy as np
import torch

from suite.data import counter, parquet
from suite.data.catalogue import DATASETS, DataError, DatasetInfo, present_files

SEED = 2013
FORMS = ("cardinal", "ordinal")


@cache
def _phrases() -> tuple[tuple[str, str], ...]:
    """All splits' pairs, training ones first.

    The number of digits is drawn uniformly from 2 to 6, then the digits, then cardinal or ordinal; a pair of
    form and number is used once, so no test phrase is seen in training.
    """
    from num2words import num2words

    wanted = sum(DATASETS["number_phrases"].sizes.values())
    draws = torch.arange(3 * wanted)
    digits = 2 + counter.below(5, SEED, draws, torch.tensor(0))
    lowest = 10 ** (digits - 1)
    numbers = lowest + counter.below(9 * lowest, SEED, draws, torch.tensor(1))
    forms = counter.below(len(FORMS), SEED, draws, torch.tensor(2))
    distinct = list(dict.fromkeys(zip(forms.tolist(), numbers.tolist(), strict=True)))[:wanted]
    assert len(distinct) == wanted
    return tuple(
        (num2words(number, lang="de", to=FORMS[form]), num2words(number, lang="en", to=FORMS[form]))
        for form, number in distinct
    )


def number_phrases(split: str) -> list[tuple[str, str]]:
    """The (German, English) phrases of a split: cardinals and ordinals of 10 to 999,999, none in two splits.

    German writes such a number as one compound with units before tens, English as several words with tens
    first, so a model must both segment and reorder.
    """
    sizes = DATASETS["number_phrases"].sizes
    end = dict(zip(sizes, accumulate(sizes.values()), strict=True))[split]
    return list(_phrases()[end - sizes[split] : end])


Pair = tuple[str, str]


def load_pairs(
    name: str,
    split: str,
    root: Path | None = None,
) -> list[Pair]:
    """The (German, English) sentences of a split, stripped, in stored order.

    Args:
        name, split: as in :data:`suite.data.catalogue.DATASETS`.
        root: folder in the Hub's layout; by default ``$SGD_SUITE_DATA``.

    A stored corpus is parquet with a ``translation`` column of ``{de, en}`` (or two columns ``de`` and
    ``en``), or a pair of UTF-8 files ``*.de`` and ``*.en`` aligned line by line.

    Raises:
        DataError: the corpus is absent, damaged, or not aligned; the message names the first bad line. Pairs
            with an empty side are an error, except in Europarl, which holds many: there they are left out.
    """
    info = DATASETS[name]
    info.prefix(split)
    if info.kind != "pairs":
        raise DataError(f"{name} holds images, not text; use suite.data.images.load_images")
    if info.embedded:
        return number_phrases(split)
    _, files = present_files(name, split, root)
    source = _from_parquet(info, files) if files[0].suffix == ".parquet" else _from_text(info, files)
    pairs: list[Pair] = []
    for where, german, english in source:
        german, english = german.strip(), english.strip()
        if german and english:
            pairs.append((german, english))
        elif not info.gaps:
            side = "German" if not german else "English"
            raise DataError(f"{name}: {where} has no {side} side, so it is not aligned; copy it again")
    if not pairs:
        raise DataError(f"{name}: {files[0]} holds no sentence pair; copy it again")
    return pairs


def character_windows(sentences: list[str], length: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows of a text's characters, one behind the other, and what stands one place later in the text.

    Args:
        sentences: They are joined as lines, in their order.
        length: Characters of a window. What fills none at the end is left out.

    Returns:
        Codes uint8 [N, 1, 1, length] and int64 [N, length]: 0 ends a line, 1 to 95 are ASCII's printable characters
        in their order, and any other is a question mark.

    Example:
        >>> codes, later = character_windows(["a b"], 2)
        >>> codes[:, 0, 0].tolist(), later.tolist()
        ([[66, 1]], [[1, 67]])
    """
    text = "".join(f"{sentence}\n" for sentence in sentences).encode("ascii", "replace")
    ascii_codes = np.frombuffer(text, np.uint8)
    codes = np.where((ascii_codes >= 32) & (ascii_codes < 127), ascii_codes - 31, 0).astype(np.uint8)
    count = (len(codes) - 1) // length
    windows = codes[: count * length].reshape(count, 1, 1, length)
    return windows, codes[1 : count * length + 1].reshape(count, length).astype(np.int64)


def _from_parquet(info: DatasetInfo, files: list[Path]) -> Iterator[tuple[str, str, str]]:
    parquet.check_shards(info.name, files)
    for file in files:
        flat = not set(info.columns) <= set(parquet.columns(info.name, file))
        row = 0
        for table in parquet.batches(info.name, file, ("de", "en") if flat else info.columns, rows=10_000):
            rows = table.to_pylist() if flat else table.column("translation").to_pylist()
            for translation in rows:
                sides = [translation.get(side) or "" for side in ("de", "en")] if translation else ["", ""]
                yield f"row {row} of {file}", sides[0], sides[1]
                row += 1


def _from_text(info: DatasetInfo, files: list[Path]) -> Iterator[tuple[str, str, str]]:
    german = [path for path in files if path.suffix == ".de"]
    english = [path for path in files if path.suffix == ".en"]
    if len(german) != 1 or len(english) != 1:
        found = ", ".join(path.name for path in files)
        raise DataError(f"{info.name}: {files[0].parent} holds {found}; keep one .de and one .en file per split")
    lines = _lines(info, german[0]), _lines(info, english[0])
    for number, (de, en) in enumerate(zip_longest(*lines), start=1):
        if de is None or en is None:
            longer, other = (english[0], german[0]) if de is None else (german[0], english[0])
            raise DataError(
                f"{info.name}: line {number} of {longer} has no partner, since {other} "
                f"ends at line {number - 1}; copy both files again"
            )
        yield f"line {number} of {german[0]} and {english[0]}", de, en


def _lines(info: DatasetInfo, path: Path) -> list[str]:
    content = path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{info.name}: line {line} of {path} is not UTF-8; convert the file") from error
    # not splitlines(): Europarl holds U+2028 and U+0085 within sentences
    return text.removesuffix("\n").split("\n") if text else []
