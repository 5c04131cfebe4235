"""How much of the work can be delegated, in the words of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from robo_eval.page.words import count, listed, percent
from robo_eval.report.level_words import amount, in_words

if TYPE_CHECKING:
    from robo_eval.gates.axes.frontier import Frontier

_SAME: Final = 1e-9


def is_drawn(found: Frontier) -> bool:
    """Whether a picture says more than the words: some policy was compared, and it is not flat."""
    return bool(_values(found)) and not _is_flat(found)


def _values(found: Frontier) -> list[float]:
    return [one.quality.value for one in found.bins if one.quality.value is not None]


def _is_flat(found: Frontier) -> bool:
    values = _values(found)
    return len(values) == len(found.bins) and max(values) - min(values) <= _SAME


def frontier_text(found: Frontier, policies: int) -> list[str]:
    """What the frontier says, each as a sentence; empty if no policy could be compared.

    Args:
        found: The frontier.
        policies: How many policies the trial has.
    """
    if not _values(found):
        return []
    text = [_flat(found, policies)] if _is_flat(found) else _risen(found)
    if found.empty and not _is_flat(found):
        least = amount(min(found.empty))
        text.append(
            f"From autonomy {least} on no policy stays within the interventions it allows; those"
            " degrees are left out."
            if list(found.empty) == [one.demand for one in found.bins][-len(found.empty) :]
            else f"{count(len(found.empty), 'degree')} of autonomy that no policy keeps to are"
            " left out."
        )
    if found.left_out:
        text.append(
            f"Not compared, because a task family was not played: {listed(found.left_out)}."
        )
    return text


def _flat(found: Frontier, policies: int) -> str:
    best = found.bins[0]
    who = str(best.policy) if policies > 1 else "The policy"
    is_shown = (best.quality.low or 0.0) >= found.target - _SAME
    reached = "is shown to reach" if is_shown else "is not shown to reach"
    return (
        f"{who} needs so little help that every degree of autonomy allows it: its mean quality,"
        f" {in_words(best.quality)}, {reached} the {amount(found.target)} asked of work that is"
        " delegated; whether it is safe is another question. A picture would show a flat line."
    )


def _risen(found: Frontier) -> list[str]:
    share = found.fraction_delegable
    area = in_words(found.auf)
    text = [f"Best quality on average over autonomy, the area under the frontier (AUF): {area}."]
    if share.value is not None:
        interval = ""
        if share.low is not None and share.high is not None:
            ends = f"{percent(share.low)} to {percent(share.high)}"
            interval = f" ({percent(share.level)} interval {ends})"
        text.append(
            f"At {percent(share.value)}{interval} of the degrees of autonomy the best quality is"
            f" at least {amount(found.target)}, which is asked of delegated work; whether it"
            " is safe is another question."
        )
    if found.auf_share.value is not None:
        text.append(
            f"The area of the share of episodes that reach it is {in_words(found.auf_share)}."
        )
    return text


def frontier_note(found: Frontier) -> str:
    """What the picture of the frontier shows."""
    level = percent(next(one.quality.level for one in found.bins if one.quality.value is not None))
    return (
        "Best mean quality of the policies whose interventions stay within what a degree of"
        f" autonomy allows, at most {amount(found.most_interventions)} per episode at autonomy 0."
        f" Dots with their {level} band; the line is the fit that never rises."
    )
