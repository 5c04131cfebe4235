"""How numbers, intervals and names are written in a report."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence

from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import counted

DASH = "–"
MARK = "†"
"""Stands by a number that rests on too few of the episodes it should rest on."""
NO_INTERVAL = "[-]"
"""Stands by a number without interval, as on the terminal; the reason stands below."""


def number(value: float | None, *, digits: int | None = 2, signed: bool = False) -> str:
    """A number with a fixed count of decimals, or of three digits; a dash where there is none.

    Args:
        value: The number.
        digits: Decimals; None for three significant digits.
        signed: Whether a plus is written.

    Example:
        >>> number(0.6039), number(None), number(-0.04, signed=True), number(0.00628, digits=None)
        ('0.60', '–', '−0.04', '0.00628')
    """
    if value is None:
        return DASH
    sign = "+" if signed else ""
    if digits is None and abs(value) >= 1000:
        return f"{value:{sign},.0f}".replace(",", "\N{NO-BREAK SPACE}").replace("-", "−")
    text = f"{value:{sign}.3g}" if digits is None else f"{value:{sign}.{digits}f}"
    if float(text) == 0.0:
        text = text.lstrip("+-")
    return text.replace("-", "−")


def bounds(estimate: Estimate, *, digits: int | None = 2, signed: bool = False) -> str:
    """The interval as `low to high`; empty where there is none.

    Example:
        >>> bounds(Estimate(value=0.5, low=0.2, high=0.8, n=9, method="wilson", unit="ratio"))
        '0.20 to 0.80'
    """
    if estimate.low is None or estimate.high is None:
        return ""
    low, high = (number(x, digits=digits, signed=signed) for x in (estimate.low, estimate.high))
    return f"{low} to {high}"


def no_interval(estimate: Estimate) -> str:
    """Why a number has no interval; empty where it has one, or where there is no number.

    Example:
        >>> no_interval(Estimate(value=0.5, n=1, method="none", unit="ratio", reason="one value"))
        'no interval: one value'
    """
    if estimate.value is None or not (estimate.low is None or estimate.high is None):
        return ""
    return f"no interval: {estimate.reason or 'no reason given'}"


def no_interval_note(estimates: Iterable[Estimate]) -> str:
    """What the mark of numbers without interval means; empty where none carries it."""
    reasons = dict.fromkeys(
        found.removeprefix("no interval: ") for e in estimates if (found := no_interval(e))
    )
    return f"{NO_INTERVAL} no interval: {'; '.join(reasons)}." if reasons else ""


def bounds_or_reason(estimate: Estimate, *, digits: int | None = 2) -> str:
    """The interval with its level, or why there is none.

    Example:
        >>> bounds_or_reason(Estimate(value=1, n=1, method="none", unit="s", reason="one value"))
        'no interval: one value'
    """
    return no_interval(estimate) or f"{percent(estimate.level)} {bounds(estimate, digits=digits)}"


def interval_text(estimate: Estimate, *, digits: int | None = 2, signed: bool = False) -> str:
    """Value and interval in one line, or the reason why there is none of them.

    Example:
        >>> interval_text(Estimate.missing(reason="no scored episodes", unit="ratio"))
        'not measured: no scored episodes'
    """
    if estimate.value is None:
        return f"not measured: {estimate.reason}"
    value = number(estimate.value, digits=digits, signed=signed)
    edges = bounds(estimate, digits=digits, signed=signed)
    return (
        f"{value}, {percent(estimate.level)} {edges}"
        if edges
        else f"{value} ({no_interval(estimate)})"
    )


def percent(share: float) -> str:
    r"""A share as a percentage, kept on one line.

    Example:
        >>> percent(0.95)
        '95\xa0%'
    """
    return f"{100 * share:.3g}\N{NO-BREAK SPACE}%"


def count(number_of: int, noun: str, plural: str = "") -> str:
    """A number of things, with the plural where it belongs.

    Example:
        >>> count(1, "pair"), count(200, "episode")
        ('1 pair', '200 episodes')
    """
    return counted(number_of, noun, plural, gap="\N{NO-BREAK SPACE}")


def thousands(value: int) -> str:
    r"""An integer with gaps between thousands.

    Example:
        >>> thousands(1020)
        '1\xa0020'
    """
    return f"{value:,}".replace(",", "\N{NO-BREAK SPACE}")


def missing_words(missing: Mapping[str, int]) -> str:
    """Why episodes have no score, with how many for each reason.

    Example:
        >>> missing_words({"fault": 2, "not_played": 7})
        '2 fault, 7 not played'
    """
    return ", ".join(f"{thousands(n)} {spaced(reason)}" for reason, n in missing.items())


def spaced(word: str) -> str:
    """A word of the log as people write it.

    Example:
        >>> spaced("safety_stop")
        'safety stop'
    """
    return word.replace("_", " ")


def shortened(text: str, most: int) -> str:
    """Text of at most so many characters, cut in the middle: names differ at both ends.

    Example:
        >>> shortened("balancer-with-a-long-name-v2", 16)
        'balancer…name-v2'
    """
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Some names, and how many more there are.

    Example:
        >>> listed(["a", "b", "c"], 2)
        'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def sentence(text: str) -> str:
    """A text as a sentence of its own.

    Example:
        >>> sentence("no axis counts")
        'No axis counts.'
    """
    return f"{text[:1].upper()}{text[1:]}."


def joined(names: Sequence[str]) -> str:
    """Names as a list in a sentence.

    Example:
        >>> joined(["a", "b", "c"])
        'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def duration(seconds: float) -> str:
    """A length of time in the units a person would use.

    Example:
        >>> duration(75), duration(4.2), duration(float("inf"))
        ('1 min 15 s', '4.2 s', 'not finite')
    """
    if not math.isfinite(seconds):
        return "not finite"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def plain_text(text: str) -> str:
    """Text for a chart, in which nothing is taken as markup.

    Example:
        >>> plain_text("<b>bold</b>")
        '&lt;b&gt;bold&lt;/b&gt;'
    """
    return html.escape(text, quote=False)
