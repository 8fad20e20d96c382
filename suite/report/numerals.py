"""Numbers as text: as many digits as the interval supports, and the judge's rules in a reader's notation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from suite.claims.estimate import Estimate, over_seeds
from suite.claims.intervals import percent_saved
from suite.claims.judge import OURS, Claim, accepted, inside

GROUPED_FROM = 10_000  # 10,000 and more get thousands separators; 2016 stays 2016
NO_NUMBER = "no number"
DIGITS = 3  # significant ones of a value of ours without an interval
MOST_DIGITS = 12
RELATIONS = {"lower": "≥", "above": ">", "upper": "≤", "below": "<"}
# Units that are natural logarithms of a ratio: the quantity, and the words for more and less of it.
LOGARITHMS: Mapping[str, tuple[str, str, str]] = {
    "log updates": ("gradient evaluations", "more", "fewer"),
    "log iterations": ("iterations", "more", "fewer"),
    "log images": ("images", "more", "fewer"),
    "log seconds": ("time", "more", "less"),
    "log hours": ("time", "more", "less"),
    "log seconds per update": ("time per update", "more", "less"),
    "log of the ratio of seconds": ("time", "more", "less"),
    "log of the ratio of times": ("time", "more", "less"),
    "log of the ratio of rates": ("throughput", "more", "less"),
    "log of the ratio of learning rates": ("learning rate", "higher", "lower"),
}


NUMBER = re.compile(r"[-−]?\d+(?:,\d{3}(?!\d))*(?:\.\d+)?(?:e[-+]?\d+)?")
NO_BOUND = " [−∞, ∞]"
ROUNDING = 1e-12  # of a value: an interval no wider is one of no width, computed in floating point
OWN = 4  # significant digits of a value without an interval


def alike(before: str, now: str) -> bool:
    """Whether two texts are the same but for one in the last digit of numbers, where rounding may fall either way.

    Whole numbers and those of one or two digits must be equal.
    """
    if before == now:
        return True
    if NUMBER.sub("#", before) != NUMBER.sub("#", now):
        return False
    return all(_near(a, b) for a, b in zip(NUMBER.findall(before), NUMBER.findall(now), strict=True))


def _near(a: str, b: str) -> bool:
    """Equal, or of three digits and more, not both whole, and one apart in the last digit of the coarser."""
    numbers = [Decimal(text.replace(",", "").replace("−", "-")) for text in (a, b)]
    places = [int(number.as_tuple().exponent) for number in numbers]
    short = min(len(number.as_tuple().digits) for number in numbers) < 3
    unit = Decimal(1).scaleb(max(places))
    return a == b or (not short and min(places) < 0 and abs(numbers[0] - numbers[1]) <= unit)


def number(value: float, half_width: float = 0.0, digits: int = OWN) -> str:
    """A value with two significant digits of its uncertainty, or with ``digits`` of its own when it has none.

    Digits before the decimal point are always whole.
    """
    if not math.isfinite(value):
        return NO_NUMBER if math.isnan(value) else "∞" if value > 0 else "−∞"
    if not value and 0 < half_width < 1e-6:
        return "0"
    if value and not (1e-6 if half_width else 1e-4) <= abs(value) < 1e9:
        return _signed(f"{value:.3g}" if half_width else f"{value:.{digits}g}")
    if 0 < half_width < math.inf:
        places = 1 - math.floor(math.log10(half_width))
        value = round(value, places) + 0.0  # no "-0"
        form = f".{max(places, 0)}f"
    else:
        value = rounded(value, digits)
        form = ".0f" if value == round(value) else f".{digits}g"
    return _signed(f"{value:{',' if abs(value) >= GROUPED_FROM else ''}{form}}")


def rounded(value: float, digits: int) -> float:
    """A value to so many significant digits, or to a whole number where that takes more."""
    if not math.isfinite(value):
        return value
    whole = len(str(int(abs(value))))
    return float(f"{value:.{max(digits, whole)}g}") if abs(value) < 1e9 else value


def _signed(text: str) -> str:
    """The minus sign of print before the number; an exponent keeps its hyphen."""
    return f"−{text[1:]}" if text.startswith("-") else text


def markdown(head: Sequence[str], rows: Iterable[Iterable[object]], align: str) -> str:
    """A table; ``align`` has a letter for each column, "r" for one of numbers."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, *rows)]
    rule = "".join("|--:" if side == "r" else "|---" for side in align)
    return "\n".join([lines[0], f"{rule}|", *lines[1:]])


def few(texts: Sequence[str]) -> str:
    """Values in one line, of many the first four."""
    shown = ", ".join(texts[:4])
    return f"{shown}, and {len(texts) - 4} more" if len(texts) > 4 else shown


def _of_a_difference(unit: str) -> str:
    return "points" if unit == "%" else unit  # 5% less of what is printed is another thing


def with_unit(text: str, unit: str) -> str:
    if unit in ("", "1") or text == NO_NUMBER:
        return text
    return f"{text}{unit}" if unit.startswith("%") else f"{text} {unit}"


def units(unit: str, count: int) -> list[str]:
    """The unit of each of ``count`` values; ``images/s, s`` names those of two."""
    named = unit.split(", ")
    return named if len(named) == count else [unit] * count


def with_units(texts: Sequence[str], unit: str) -> list[str]:
    """Each text with its unit."""
    return [with_unit(text, each) for text, each in zip(texts, units(unit, len(texts)), strict=True)]


def ours(measured: Estimate, claim: Claim) -> list[str]:
    """Each value with its interval, read as the claim's rule reads it.

    ``25.1 [23.9, 26.3]%``, ``holds``, or ``ISGD: 6% more iterations than SGD, 95% CI 8% fewer to 22% more`` where the
    value is the logarithm of a ratio.
    """
    digits, unit = digits_of(measured, claim), claim.displayed_unit
    if claim.rule == "holds":
        return [_share(*span, digits, _cases(claim), ranged=measured.ranged) for span in measured.spans]
    if claim.rule == "order" and len(measured.values) == len(claim.order) - 1:
        pairs = zip(claim.steps, measured.spans, strict=True)
        if unit in LOGARITHMS:
            return [_ratio(a, b, span, *LOGARITHMS[unit]) for (a, b), span in pairs]
        steps = [(a, b, _with_ends(*span, digits, ranged=measured.ranged)) for (a, b), span in pairs]
        return [_bounded(f"{b} minus {a}: {with_unit(text, _of_a_difference(unit))}") for a, b, text in steps]
    percent = unit in LOGARITHMS
    spans = [_in_percent(span) for span in measured.spans] if percent else measured.spans
    texts = [_with_ends(value, low, high, digits, ranged=measured.ranged) for value, low, high in spans]
    return [_bounded(text) for text in with_units(texts, _percent_of(unit) if percent else unit)]


def _percent_of(unit: str) -> str:
    noun, more, _ = LOGARITHMS[unit]
    return f"% {more} {noun}"


def _in_percent(logarithms: Iterable[float]) -> tuple[float, ...]:
    return tuple(100 * math.expm1(value) for value in logarithms)


def _bounded(text: str) -> str:
    """A value without any bound on its error, of one run or as others never arrived, is said to have none."""
    return text.replace(NO_BOUND, "") + ", without bounds" if NO_BOUND in text else text


def digits_of(measured: Estimate, claim: Claim) -> int:
    """The digits that values without an interval are shown with.

    They are three, or as many as the paper prints, or as many as it takes for the rule to decide on the rounded
    values as it does on the values.
    """
    texts = [_as_printed(value).lstrip("−0.").partition("e")[0] for value in claim.printed]
    fewest = max([DIGITS, *(sum(map(str.isdigit, text)) for text in texts)])
    exactly = measured.finite and measured.values == measured.low == measured.high
    if not exactly or not claim.expects(len(measured.values)):
        return fewest
    region = accepted(claim, len(measured.values))
    for digits in range(fewest, MOST_DIGITS):
        shown = over_seeds([rounded(value, digits) for value in measured.values])
        if inside(shown, region) == inside(measured, region):
            return digits
    return MOST_DIGITS


def _ratio(a: str, b: str, span: tuple[float, float, float], noun: str, more: str, less: str) -> str:
    """``a`` against ``b`` in per cent, where the span is of the logarithm of b / a."""
    value, *ends = (-percent_saved(bound) for bound in span)
    low, high = sorted(ends)
    half = (high - low) / 2 if math.isfinite(high) else 0.0
    side = lambda text, signed: f"{text}% {more if signed >= 0 else less}"
    said = f"{a}: {side(number(abs(value), half, DIGITS), value)} {noun} than {b}"
    if low == high:
        return said
    if not any(map(math.isfinite, span[1:])):
        return f"{said}, without bounds"
    first, last = (side(_end(abs(bound), half), bound) for bound in (low, high))
    return f"{said}, 95% CI {first} to {last}"


def values(measured: Estimate) -> list[str]:
    """Each value with its interval, for a quantity that no claim reads."""
    return [_bounded(_with_ends(*span, DIGITS, ranged=measured.ranged)) for span in measured.spans]


def _with_ends(value: float, low: float, high: float, digits: int, *, ranged: bool) -> str:
    half = (high - low) / 2 if high - low > ROUNDING * abs(value) else 0.0
    if not half:
        return number(value, 0, digits)
    return between(number(value, half, digits), _end(low, half), _end(high, half), ranged=ranged)


def between(value: str, low: str, high: str, *, ranged: bool) -> str:
    """A value with its 95% confidence interval in brackets, or with the ends of a range in words."""
    return f"{value}, from {low} to {high}" if ranged else f"{value} [{low}, {high}]"


def _end(bound: float, half_width: float) -> str:
    """An end of an interval; one that is near zero is not shown as zero, for a verdict may hang on its sign."""
    text = number(bound, half_width, DIGITS)
    return _signed(f"{bound:.2g}") if bound and not text.strip("−0.") else text


def _cases(claim: Claim) -> str:
    """What a rule counts of which the statement holds in a share."""
    return claim.unit.removeprefix("share of ") if claim.unit.startswith("share of ") else "cases"


def _share(value: float, low: float, high: float, digits: int, cases: str, *, ranged: bool) -> str:
    if low == high and value in (0, 1):
        return "holds" if value else "does not hold"
    return f"holds in {_with_ends(100 * value, 100 * low, 100 * high, digits, ranged=ranged)}% of {cases}"


def printed(claim: Claim) -> list[str]:
    """The printed number, the one that follows, or the bound that is asked, as the claim's rule reads it."""
    shown, word = compared(claim), basis(claim)
    return shown if word == "printed" else [f"{word}: {shown[0]}", *shown[1:]]


def basis(claim: Claim) -> str:
    """The word before what our number is compared with: no paper prints the relation that a question of ours asks."""
    return "asked" if claim.kind == OURS and not claim.printed else claim.basis


def compared(claim: Claim) -> list[str]:
    """What the claim's rule compares with, whichever of the three it is."""
    unit, printed = claim.displayed_unit, claim.printed
    if unit in LOGARITHMS:
        unit, printed = _percent_of(unit), _in_percent(printed)
    numbers = [_as_printed(value) for value in printed]
    if claim.rule == "order":
        return [" < ".join(claim.order)]
    if claim.rule == "holds":
        needed = claim.printed[0] if claim.printed else 1.0
        return ["holds" if needed == 1 else f"holds in {number(100 * needed)}% of {_cases(claim)}"]
    if claim.rule == "bound" and claim.side == "range":
        return [with_unit(" to ".join(numbers), claim.unit)]
    if claim.rule == "bound":
        numbers = [f"{RELATIONS[claim.side]} {text}" for text in numbers]
    return with_units(numbers, unit)


def _as_printed(value: float) -> str:
    if value == round(value):
        return number(value)
    if not 1e-4 <= abs(value) < 1e9:
        return _signed(f"{value:.6g}")
    return _signed(f"{value:,.12g}" if abs(value) >= GROUPED_FROM else f"{value:.12g}")


def departures(sizes: Sequence[float], unit: str) -> str:
    """How far from the claim, value by value; one that is a logarithm is said in per cent."""
    if unit in LOGARITHMS:
        shares = ", ".join(f"{number(100 * math.expm1(size), digits=2)}%" for size in dict.fromkeys(sizes))
        return f"{shares} in {LOGARITHMS[unit][0]}"
    texts = [number(size, digits=DIGITS) for size in dict.fromkeys(sizes)]
    return with_unit(", ".join(texts), _of_a_difference(unit))


def tolerance(claim: Claim) -> str:
    """What the rule allows beyond the printed value."""
    if claim.rule == "holds":
        return "none"
    if claim.rule == "order":
        steps = ", ".join(dict.fromkeys(number(t) for t in claim.tolerance))
        return with_unit(f"every step above {steps}", claim.unit if any(claim.tolerance) else "")
    if claim.relative is not None:
        return f"± {number(100 * claim.relative)}% of the printed value"
    if not any(claim.tolerance):
        return "none"
    unit = _of_a_difference(claim.unit)
    allowed = list(dict.fromkeys(number(t) for t in claim.tolerance))
    return "± " + ", ".join(with_units(allowed, unit) if ", " in unit else [with_unit(", ".join(allowed), unit)])
