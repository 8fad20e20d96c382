"""A small translation task that needs no download: German number words to English ones."""

from __future__ import annotations

from functools import cache

import torch

from suite.data import counter
from suite.data.catalogue import dataset

SEED = 2013
FORMS = ("cardinal", "ordinal")


@cache
def _phrases() -> tuple[tuple[str, str], ...]:
    """All splits' pairs, training ones first.

    The number of digits is drawn uniformly from 2 to 6, then the digits, then cardinal or ordinal; a pair of
    form and number is used once, so no test phrase is seen in training.
    """
    from num2words import num2words

    wanted = sum(dataset("number_phrases").sizes.values())
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
    sizes = dataset("number_phrases").sizes
    start = 0
    for name, size in sizes.items():
        if name == split:
            return list(_phrases()[start : start + size])
        start += size
    raise KeyError(split)
