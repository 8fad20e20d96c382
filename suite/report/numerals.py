"""Numbers as text: as many digits as the interval supports, and the judge's rules in a reader's notation."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise

from suite.claims.judge import Claim
from suite.claims.measured import Measured

GROUPED_FROM = 10_000  # 10,000 and more get thousands separators; 2016 stays 2016
RELATIONS = {"lower": "≥", "above": ">", "upper": "≤", "below": "<"}


NUMBER = re.compile(r"[-−]?\d+(?:,\d{3}(?!\d))*(?:\.\d+)?(?:e[-+]?\d+)?")
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
    if a == b:
        return True
    a, b = (text.replace(",", "").replace("−", "-") for text in (a, b))
    if min(len(re.sub(r"\D|e.*", "", text).lstrip("0")) for text in (a, b)) < 3 or "." not in a + b:
        return False
    return abs(float(a) - float(b)) <= 1.0001 * max(map(_unit, (a, b)))


def _unit(text: str) -> float:
    """One in the last digit of a number that is written so."""
    mantissa, _, exponent = text.partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def decimals(value: float, half_width: float = 0.0, of_own: int = OWN, of_half: int = 2) -> int:
    """Decimals that show ``of_half`` digits of an uncertainty, or ``of_own`` digits of a value that has none."""
    if 0 < half_width < math.inf:
        return of_half - 1 - math.floor(math.log10(half_width))
    return max(of_own - 1 - math.floor(math.log10(abs(value))), 0) if value else 0


def number(value: float, half_width: float = 0.0) -> str:
    """A value with two significant digits of its uncertainty, or with four digits of its own when it has none."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value and not 1e-4 <= abs(value) < 1e9:
        return _signed(f"{value:.3g}" if half_width else f"{value:.{OWN}g}")
    if half_width > 0 and math.isfinite(half_width):
        shown = decimals(value, half_width)
        value = round(value, shown) + 0.0  # no "-0"
        return _signed(f"{value:,.{max(shown, 0)}f}" if abs(value) >= GROUPED_FROM else f"{value:.{max(shown, 0)}f}")
    if value == round(value):
        return _signed(f"{value:,.0f}" if abs(value) >= GROUPED_FROM else f"{value:.0f}")
    shown = decimals(value)
    return _signed(f"{round(value, shown):,.{shown}f}" if abs(value) >= GROUPED_FROM else f"{value:.{OWN}g}")


def _signed(text: str) -> str:
    return text.replace("-", "−") if text.startswith("-") and "e" not in text else text


def with_unit(text: str, unit: str) -> str:
    if not unit:
        return text
    return f"{text}%" if unit == "%" else f"{text} {unit}"


def with_units(texts: Sequence[str], unit: str) -> list[str]:
    """Each text with the unit; ``images/s, s`` names the units of two values one by one."""
    units = unit.split(", ")
    if len(units) != len(texts):
        units = [unit] * len(texts)
    return [with_unit(text, each) for text, each in zip(texts, units, strict=True)]


def ours(measured: Measured, claim: Claim) -> list[str]:
    """Each value with its interval, read as the claim's rule reads it: ``25.1 [23.9, 26.3]%``, or ``holds``."""
    triples = list(zip(measured.values, measured.low, measured.high, strict=True))
    if claim.rule == "holds":
        return [_share(*triple) for triple in triples]
    shown = with_units([_with_interval(*triple) for triple in triples], claim.unit)
    if claim.rule == "order" and len(shown) == len(claim.order) - 1:
        return [f"{a} → {b}: {text}" for (a, b), text in zip(pairwise(claim.order), shown, strict=True)]
    return shown


def values(measured: Measured) -> list[str]:
    """Each value with its interval, for a quantity that no claim reads."""
    return [_with_interval(*span) for span in measured.spans]


def _with_interval(value: float, low: float, high: float) -> str:
    half = (high - low) / 2
    return f"{number(value, half)} [{_end(low, half)}, {_end(high, half)}]" if half else number(value)


def _end(bound: float, half_width: float) -> str:
    """An end of an interval; one that is near zero is not shown as zero, for a verdict may hang on its sign."""
    text = number(bound, half_width)
    return _signed(f"{bound:.2g}") if bound and not text.strip("−0.") else text


def _share(value: float, low: float, high: float) -> str:
    if low == high and value in (0, 1):
        return "holds" if value else "does not hold"
    return f"holds in {_with_interval(100 * value, 100 * low, 100 * high)}% of cases"


def printed(claim: Claim) -> list[str]:
    """What the paper prints, as the claim's rule reads it."""
    numbers = [_as_printed(value) for value in claim.printed]
    if claim.rule == "order":
        return [" < ".join(claim.order)]
    if claim.rule == "holds":
        needed = claim.printed[0] if claim.printed else 1.0
        return ["holds" if needed == 1 else f"holds in {number(100 * needed)}% of cases"]
    if claim.rule == "bound" and claim.side == "range":
        return [with_unit(" to ".join(numbers), claim.unit)]
    if claim.rule == "bound":
        numbers = [f"{RELATIONS[claim.side]} {text}" for text in numbers]
    return with_units(numbers, claim.unit)


def _as_printed(value: float) -> str:
    if value == round(value):
        return number(value)
    return _signed(f"{value:.12g}" if 1e-4 <= abs(value) < 1e9 else f"{value:.6g}")


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
    unit = "points" if claim.unit == "%" else claim.unit  # 2% of what is printed is a relative tolerance
    allowed = list(dict.fromkeys(number(t) for t in claim.tolerance))
    return "± " + ", ".join(with_units(allowed, unit) if ", " in unit else [with_unit(", ".join(allowed), unit)])
