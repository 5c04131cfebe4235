"""What axes, index, progress, frontier and form of an assessment say, in the words of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from robo_eval.core.estimate import Estimate
from robo_eval.page.words import count, listed, percent, spaced, thousands
from robo_eval.report.level_words import amount, in_words, sentence, shown, written
from robo_eval.report.levels_model import (
    AxesPart,
    AxisRow,
    FormPart,
    FrontierPart,
    ProgressRow,
    Question,
    Shown,
)

if TYPE_CHECKING:
    from robo_eval.gates.axes.anchors import Axis
    from robo_eval.gates.axes.frontier import Frontier
    from robo_eval.gates.axes.index import Index
    from robo_eval.gates.axes.progress import Escape, Progress
    from robo_eval.gates.checklist import Checklist
    from robo_eval.gates.readings import Readings

_MOST_PARTS: Final = 4
"""Numbers on the way to an axis that are named; the file of the assessment has all of them."""
_SAME: Final = 1e-9


# Axes and index ----------------------------------------------------------------------------------


def axes_part(
    readings: Readings, weights: str | Mapping[str, float], places: Mapping[str, str]
) -> AxesPart | None:
    """The axes of a policy and its index; None if they were not computed.

    Args:
        readings: The evidence on the policy.
        weights: Weights of the index: a name, or a weight by axis.
        places: Names of files and folders, and what to call them.
    """
    if not readings.axes:
        return None
    index = readings.index
    valued = sum(axis.value.value is not None for axis in readings.axes)
    shares = {} if index is None else index.weights
    return AxesPart(
        rows=[_axis(axis, shares, places) for axis in readings.axes],
        counted=f"{valued} of {len(readings.axes)} have a value",
        text=[] if index is None else _index_text(index, weights),
        alternatives=[] if index is None else _alternatives(index),
    )


def _axis(axis: Axis, shares: Mapping[str, float], places: Mapping[str, str]) -> AxisRow:
    share = shares.get(axis.name)
    missing = axis.value.value is None and axis.raw.value is None
    return AxisRow(
        title=f"{axis.name} {axis.title}",
        raw=Shown(label="", value="", note="") if missing else _raw(axis.raw, places),
        anchors=_anchors(axis),
        source=written(axis.source, places),
        value=shown("", axis.value, places=places),
        rests_on=thousands(axis.value.n) if axis.value.n else "",
        weight="" if share is None else percent(share),
        made_of=_made_of(axis.parts, places),
    )


def _raw(found: Estimate, places: Mapping[str, str]) -> Shown:
    it = shown("", found, places=places)
    unit = "" if found.unit in ("", "ratio") else f" {found.unit}"
    return Shown(label="", value=f"{it.value}{unit}" if it.value else "", note=it.note)


def _anchors(axis: Axis) -> str:
    if axis.baseline is None or axis.expert is None:
        return "none"
    scale = ", log scale" if axis.scale == "log" else ""
    return f"{amount(axis.baseline)} to {amount(axis.expert)}{scale}"


def _made_of(parts: Mapping[str, Estimate], places: Mapping[str, str]) -> str:
    known = {name: found for name, found in parts.items() if found.value is not None}
    texts = [
        f"{spaced(name)} {amount(found.value or 0.0, found.unit)}" for name, found in known.items()
    ]
    return written(listed(texts, _MOST_PARTS), places)


def _index_text(index: Index, weights: str | Mapping[str, float]) -> list[str]:
    named = f"the weights “{weights}”" if isinstance(weights, str) else "weights of its own"
    if index.index.value is None:
        return [sentence(f"no index with {named}: {index.index.reason}")]
    text = [f"Index {in_words(index.index)} with {named}."]
    if index.adjusted.value is not None:
        even = "" if index.uniformity.value is None else amount(index.uniformity.value, "ratio")
        text.append(
            f"Adjusted for how uneven the axes are, uniformity {even}: {in_words(index.adjusted)}."
        )
    return text


def _alternatives(index: Index) -> list[Shown]:
    """The index with other weights; empty if none of them has a value, as the reason is told."""
    if all(found.value is None for found in index.alternatives.values()):
        return []
    return [
        shown(f"{spaced(name)} weights" if _is_profile(name) else spaced(name), found)
        for name, found in index.alternatives.items()
    ]


def _is_profile(name: str) -> bool:
    return not name.startswith("with")


# Progress ----------------------------------------------------------------------------------------


def progress_rows(progress: Mapping[str, Progress], places: Mapping[str, str]) -> list[ProgressRow]:
    """Progress of each family, as the rows of a table."""
    return [
        ProgressRow(family=family, numbers=_progress(found, places))
        for family, found in progress.items()
    ]


def _progress(found: Progress, places: Mapping[str, str]) -> list[Shown]:
    estimates = {
        "kappa": found.kappa,
        "gain per day": found.kappa_time,
        "slope": found.slope,
        "curvature": found.mean_curvature,
    }
    return [
        *(shown(label, it, places=places) for label, it in estimates.items()),
        _said("speeds up", is_so=found.accelerates),
        _said("keeps its pace", is_so=found.holds),
        Shown(
            label="steps",
            value=amount(found.steps),
            note=f"{count(found.checkpoints, 'checkpoint')} on {count(found.days, 'day')}"
            + (f", {found.left_out} before people changed something" * bool(found.left_out)),
        ),
        shown("score", found.score, places=places),
        _escape(found.escape),
    ]


def _said(label: str, *, is_so: bool | None) -> Shown:
    value = {True: "yes", False: "not shown", None: "not known"}[is_so]
    return Shown(label=label, value=value, note="")


def _escape(found: Escape) -> Shown:
    parts = []
    if found.resources is not None:
        parts.append(f"{amount(found.resources)} resources")
    if found.days is not None:
        parts.append(f"{amount(found.days)} days")
    note = f"{'at most, ' * bool(parts)}to reach {amount(found.target)}"
    return Shown(label="next step", value=", ".join(parts) or "nothing bounds it", note=note)


# Delegation --------------------------------------------------------------------------------------


def frontier_part(found: Frontier, policies: int) -> FrontierPart | None:
    """How much of the work can be delegated; None if no policy could be compared.

    Args:
        found: The frontier.
        policies: How many policies the trial has.
    """
    values = [one.quality.value for one in found.bins if one.quality.value is not None]
    if not values:
        return None
    is_flat = len(values) == len(found.bins) and max(values) - min(values) <= _SAME
    text = [_flat(found, policies)] if is_flat else _risen(found)
    if found.empty and not is_flat:
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
    return FrontierPart(found=found, text=text, note=_note(found), is_drawn=not is_flat)


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


def _note(found: Frontier) -> str:
    """What the picture of the frontier shows."""
    level = percent(next(one.quality.level for one in found.bins if one.quality.value is not None))
    return (
        "Best mean quality of the policies whose interventions stay within what a degree of"
        f" autonomy allows, at most {amount(found.most_interventions)} per episode at autonomy 0."
        f" Dots with their {level} band; the line is the fit that never rises."
    )


# Form --------------------------------------------------------------------------------------------


def form_part(found: Checklist, places: Mapping[str, str]) -> FormPart:
    """The form that others need to repeat the assessment."""
    items = [
        Question(
            question=written(item.question, places),
            answer=written(item.answer, places),
            source=written(item.source, places),
        )
        for item in found.items
    ]
    answered = [item for item in items if item.answer]
    return FormPart(
        answered=f"{len(answered)} of {len(items)} questions are answered.",
        open=[item for item in items if not item.answer],
        items=items,
    )


def joined(names: Sequence[str]) -> str:
    """Names as a list in a sentence.

    Example:
        >>> joined(["a", "b", "c"])
        'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
