"""An imported episode: its values, and how success, quality and end reason follow from others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil, floor
from typing import Any, Final

from robo_eval.core.episode import Episode, is_good_enough
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason
from robo_eval.log.cells import UNITS, CellError, Reading
from robo_eval.log.column_map import Conversion, ImportMap

_MOST_TRIALS: Final = 1_000_000
"""Episodes that one line can stand for."""
_FLOAT: Final = Decimal("1e-9")
"""How far a rate may be off that somebody computed."""
_OF: Final = re.compile(r"(?P<successes>\d+)\s*(?:/|of)\s*(?P<trials>\d+)", re.ASCII)


@dataclass(slots=True, eq=False)
class ImportedRow:
    """One episode while it is imported: its values, and where they are from.

    Attributes:
        where: File and line, or bag, for messages.
        values: Its values, by our column.
        sources: Their column, by ours, until all is checked.
    """

    where: str
    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def episode(self, plan_digest: str) -> Episode:
        """The episode they are.

        Raises:
            InputError: If they contradict each other.
        """
        try:
            return Episode(plan_digest=plan_digest, **self.values)
        except InputError as err:
            raise InputError(f"{self.where}: {err}") from err

    def wrong(self, ours: str, what: str) -> InputError:
        """What is wrong with one of our columns, by the name of theirs."""
        return InputError(f"{self.where}, column {self.sources.get(ours) or ours!r}: {what}")


def counts_of(
    given: Mapping[str, str | None],
    read: Reading,
    sources: Mapping[str, Conversion],
    decimals: int = 0,
) -> tuple[int, int] | None:
    """How many of how many episodes succeeded, by the cells of a line that stands for them all.

    Args:
        given: The cells of `COUNTED` that there are; successes may be `7/10`.
        read: How they are read.
        sources: What their numbers are given in, of each that is no constant.
        decimals: Most decimals of a rate in its table.

    Returns:
        Successes and trials; None if the line does not say how many succeeded.

    Raises:
        CellError: If they cannot be.
    """
    text = given.get("successes") or given.get("rate")
    if text is None:
        return None
    pair = _OF.fullmatch(given.get("successes") or "")
    plain = Conversion()
    if pair and sources.get("successes", plain).scale != 1:
        raise CellError(f"{text!r:.60} says both numbers; leave scale out")
    told = {
        name: read.whole(cell, scale=sources.get(name, plain).scale)
        for name, cell in given.items()
        if cell is not None and name != "rate" and not (pair and name == "successes")
    }
    if pair:
        own = {name: int(digits) for name, digits in pair.groupdict().items()}
        if told.get("trials", own["trials"]) != own["trials"]:
            raise CellError(f"{text!r} is of other trials than {given['trials']!r:.60}")
        told = own
    n = told.get("trials")
    if n is None:
        raise CellError(f"{text!r:.60} is of how many episodes? give trials, or write it as 7/10")
    if not 0 <= n <= _MOST_TRIALS:
        raise CellError(f"{n} trials: a line stands for 0 to {_MOST_TRIALS} episodes")
    k = told.get("successes")
    k = _of_rate(text, n, read, sources.get("rate", plain), decimals) if k is None else k
    if not 0 <= k <= n:
        raise CellError(f"{k} of {n} trials cannot have succeeded")
    return k, n


def decimals_of(text: str, read: Reading, unit: str | None) -> int:
    """How many decimals a number is written with."""
    written = read.plain(text.removesuffix(unit or "").rstrip()) or Decimal(0)
    return max(0, -int(written.as_tuple().exponent))


def _of_rate(text: str, n: int, read: Reading, source: Conversion, decimals: int) -> int:
    """The one whole number of successes that a rate of so many trials stands for."""
    unit = source.unit
    rate = Decimal(repr(read.share(text, unit, source.scale)))
    decimals = max(decimals, decimals_of(text, read, unit))
    factor = source.scale * (UNITS[unit] if unit else 1)
    # 0 and 1 without decimals anywhere are none and all.
    digit = Decimal(0) if factor == 1 and not decimals else factor.scaleb(-decimals)
    # Rounded to its last digit, or else cut after it; floats have no more than some digits.
    for low, high in ((digit / 2, digit / 2), (Decimal(0), digit)):
        least, most = ((rate + off) * n for off in (-max(low, _FLOAT), max(high, _FLOAT)))
        fits = range(max(ceil(least), 0), min(floor(most), n) + 1)
        if len(fits) == 1:
            return fits[0]
        # Nobody rounds a share to one decimal; 0.9 is what a program writes of 0.90.
        if decimals <= 1 and factor == 1 and rate * n == int(rate * n):
            return int(rate * n)
        if fits:
            break
    how_many = "several numbers" if fits else "no whole number"
    raise CellError(
        f"{text!r:.60} of {n} trials is {how_many} of successes; give successes, or the rate with"
        " all its decimals"
    )


def complete_score(
    row: ImportedRow, mapping: ImportMap, *, stopped: EndReason | None = None
) -> None:
    """Success, quality and end reason, each from the others where it is missing.

    Args:
        row: The episode; completed in place.
        mapping: Which quality counts as success, and what a success with interventions is.
        stopped: Why it was stopped from outside, if it was; it is no success then, whatever the
            rest says.

    Raises:
        InputError: If it cannot be told whether the episode succeeded, or what is given
            contradicts itself.
    """
    values = row.values
    if stopped is not None:
        _complete_stopped(values, stopped)
        return
    threshold = mapping.success_quality
    end, success, quality = (values.get(name) for name in ("end_reason", "success", "quality"))
    if success is None and end is not None and end.is_scored:
        success = end is EndReason.SUCCESS
    if success is None and quality is not None and threshold is not None:
        success = is_good_enough(quality, threshold)
    if end is None and success is None and quality is None:
        # Nothing is said: a missing score is missing, and no failure.
        end = EndReason.NO_VERDICT
    if success is None and end is None:
        what = "whether it succeeded cannot be told from quality alone"
        remedy = "give success_quality, or say it in success or end_reason"
        raise row.wrong("quality", f"{what}; {remedy}")
    if quality is None and success is not None:
        quality = 1.0 if success else 0.0
    if end is None:
        end = EndReason.SUCCESS if success else EndReason.FAILURE
    _check_score(row, success=success, quality=quality, end=end, threshold=threshold)
    if success and values.get("interventions"):
        if mapping.assisted_success == "refuse":
            what = f"is {values['interventions']}, but an assisted episode is never a success"
            remedy = f"set assisted_success: failure in the {mapping.WHAT[0]} to take such rows as"
            raise row.wrong("interventions", f"{what}; {remedy} failures")
        end, success = EndReason.FAILURE, False
        # A quality of theirs stays, as in scores of ours; one made of the success goes with it.
        quality = 0.0 if values.get("quality") is None else quality
    values.update(end_reason=end, success=success, quality=quality)


def _complete_stopped(values: dict[str, Any], stopped: EndReason) -> None:
    """The score of an episode that was stopped: a quality of theirs stays, success does not."""
    end = values.get("end_reason")
    if end is not None and not end.is_scored:
        values.update(success=None, quality=None)
        return
    quality = values.get("quality")
    values.update(end_reason=stopped, success=False, quality=0.0 if quality is None else quality)


def _check_score(
    row: ImportedRow,
    *,
    success: bool | None,
    quality: float | None,
    end: EndReason,
    threshold: float | None,
) -> None:
    scored = [name for name in ("success", "quality") if name in row.sources]
    if not end.is_scored and quality is not None and not (success and "success" in scored):
        what = f"an episode that ended by {end.value!r} has no score"
        remedy = "leave the cell empty, or map the end to failure or to 'by the score'"
        raise row.wrong(scored[-1] if scored else "quality", f"{what}; {remedy}")
    if success is not None and success != (end is EndReason.SUCCESS):
        what = f"success {success} contradicts end_reason {end.value!r}"
        raise row.wrong("success", what)
    if success is None or quality is None:
        return
    # All steps done and the task not is a failure of full quality.
    if success and quality == 0.0:
        remedy = "leave quality out, or give success `values` if its words mean the opposite"
    elif threshold is not None and success != is_good_enough(quality, threshold):
        remedy = "leave success_quality out of the map if the two were judged apart"
    else:
        return
    what = f"quality {quality:g} contradicts success {success}; {remedy}"
    raise row.wrong("quality", what)
