"""Success, quality and end reason of an imported episode, each from the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason


def complete_score(
    where: str, values: dict[str, Any], sources: Mapping[str, str], threshold: float | None
) -> None:
    """Success, quality and end reason, each from the others where it is missing."""
    end, success, quality = (values.get(name) for name in ("end_reason", "success", "quality"))
    if success is None and end is not None and end.is_scored:
        success = end is EndReason.SUCCESS
    if success is None and quality is not None and threshold is not None:
        success = quality >= threshold
    if success is None and (end is None or end.is_scored):
        named = sources.get("success") or sources.get("quality") or "success"
        raise InputError(
            f"{where}, column {named!r}: whether it succeeded cannot be told; map success or"
            " end_reason, or give success_quality"
        )
    if quality is None and success is not None:
        quality = 1.0 if success else 0.0
    if end is None:
        end = EndReason.SUCCESS if success else EndReason.FAILURE
    _check_score(where, sources, success=success, quality=quality, end=end, threshold=threshold)
    if success and values.get("interventions"):
        column = sources.get("interventions", "interventions")
        raise InputError(
            f"{where}, column {column!r}: is {values['interventions']}, but an assisted episode"
            " is never a success"
        )
    values.update(end_reason=end, success=success, quality=quality)


def _check_score(
    where: str,
    sources: Mapping[str, str],
    *,
    success: bool | None,
    quality: float | None,
    end: EndReason,
    threshold: float | None,
) -> None:
    if success is not None and success != (end is EndReason.SUCCESS):
        column = sources.get("success", "success")
        raise InputError(
            f"{where}, column {column!r}: success {success} contradicts end_reason {end.value!r}"
        )
    if success is None or quality is None:
        return
    if threshold is None:
        contradicts = quality == (0.0 if success else 1.0)
    else:
        contradicts = success != (quality >= threshold)
    if contradicts:
        column = sources.get("quality", "quality")
        raise InputError(
            f"{where}, column {column!r}: quality {quality:g} contradicts success {success}"
        )
