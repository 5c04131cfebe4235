"""Success, quality and end reason of an imported episode, each from the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robo_eval.core.episode import is_good_enough
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason


def complete_score(
    where: str,
    values: dict[str, Any],
    sources: Mapping[str, str],
    *,
    threshold: float | None,
    assisted_success: str,
    stopped: EndReason | None = None,
) -> None:
    """Success, quality and end reason, each from the others where it is missing.

    Args:
        where: File and line, for error messages.
        values: The values of one line by our column; completed in place.
        sources: Their column by ours.
        threshold: Least quality that counts as success, if there is such a rule.
        assisted_success: What a success with interventions is, see `ColumnMap`.
        stopped: Why it was stopped from outside, if it was; it is no success then, whatever the
            rest says.

    Raises:
        InputError: If it cannot be told whether the episode succeeded, or what is given
            contradicts itself.
    """
    if stopped is not None:
        _complete_stopped(values, stopped)
        return
    end, success, quality = (values.get(name) for name in ("end_reason", "success", "quality"))
    if success is None and end is not None and end.is_scored:
        success = end is EndReason.SUCCESS
    if success is None and quality is not None and threshold is not None:
        success = is_good_enough(quality, threshold)
    if end is None and success is None and quality is None:
        # Nothing is said: a missing score is missing, and no failure.
        end = EndReason.NO_VERDICT
    if success is None and end is None:
        named = sources.get("quality") or "quality"
        raise InputError(
            f"{where}, column {named!r}: whether it succeeded cannot be told from quality alone;"
            " give success_quality, or say it in success or end_reason"
        )
    if quality is None and success is not None:
        quality = 1.0 if success else 0.0
    if end is None:
        end = EndReason.SUCCESS if success else EndReason.FAILURE
    _check_score(where, sources, success=success, quality=quality, end=end, threshold=threshold)
    if success and values.get("interventions"):
        if assisted_success == "refuse":
            column = sources.get("interventions", "interventions")
            raise InputError(
                f"{where}, column {column!r}: is {values['interventions']}, but an assisted episode"
                " is never a success; set assisted_success: failure in the column map to take such"
                " rows as failures"
            )
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
    where: str,
    sources: Mapping[str, str],
    *,
    success: bool | None,
    quality: float | None,
    end: EndReason,
    threshold: float | None,
) -> None:
    scored = [name for name in ("success", "quality") if name in sources]
    if not end.is_scored and quality is not None and not (success and "success" in scored):
        column = sources[scored[-1]] if scored else "quality"
        raise InputError(
            f"{where}, column {column!r}: an episode that ended by {end.value!r} has no score;"
            " leave the cell empty, or map the end to failure or to 'by the score'"
        )
    if success is not None and success != (end is EndReason.SUCCESS):
        column = sources.get("success", "success")
        raise InputError(
            f"{where}, column {column!r}: success {success} contradicts end_reason {end.value!r}"
        )
    if success is None or quality is None:
        return
    # All steps done and the task not is a failure of full quality.
    if success and quality == 0.0:
        remedy = "leave quality out, or give success `values` if its words mean the opposite"
    elif threshold is not None and success != is_good_enough(quality, threshold):
        remedy = "leave success_quality out of the map if the two were judged apart"
    else:
        return
    column = sources.get("quality", "quality")
    raise InputError(
        f"{where}, column {column!r}: quality {quality:g} contradicts success {success}; {remedy}"
    )
