"""What columns each file of evidence has, and what a line of it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from robo_eval.core.defaults import PENALTIES, SEVERITIES
from robo_eval.formulas.composite import AXES
from robo_eval.log.evidence import (
    CHECKED,
    DECLARED,
    YES_OR_NO,
    Anchor,
    Answer,
    Checkpoint,
    Declaration,
    Expert,
    Fault,
    Incident,
    Pause,
    Probe,
    Rating,
    Repair,
    Retention,
    Retrieval,
    Revision,
    TeamTrial,
    ToolTrial,
    ToolUse,
)
from robo_eval.log.evidence_line import Line

_ANCHORED: Final = tuple(axis for axis in AXES if axis != "E")
"""Axes that may have anchors: gates compare E as it is."""
_COMMON: Final = ("side", "episode_id", "policy")
COLUMNS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "incidents": (("incident_id", "severity"), (*_COMMON, "time", "description")),
    "faults": (
        ("fault", "recovered"),
        (*_COMMON, "recovered_by", "recoverable", "injected", "duration_s", "description"),
    ),
    "repairs": (("hours",), (*_COMMON, "description")),
    "pauses": (("time", "duration_s"), ("side", "before_episode_id", "operator", "asked_by")),
    "tools": (("category", "episodes", "successes"), (*_COMMON, "drift", "description")),
    "expansion": (
        ("tool", "stage", "group", "episodes", "successes", "installed_by"),
        (*_COMMON, "description"),
    ),
    "teams": (
        ("task", "robots", "episodes", "successes"),
        (*_COMMON, *PENALTIES, "description"),
    ),
    "declarations": (
        ("what", "value", "n", "by", "time", "document"),
        (*_COMMON, "low", "high", "description"),
    ),
    "checkpoints": (
        ("time", "family", "capability", "resources"),
        (*_COMMON, "drift", "human_patches", "schema", "description"),
    ),
    "retention": (("family", "lag_days", "trials", "recalled"), (*_COMMON, "description")),
    "retrieval": (
        ("family", "k", "queries", "relevant", "found", "returned", "verified"),
        (*_COMMON, "description"),
    ),
    "revisions": (
        (
            "revision",
            "time",
            "diff",
            "holdout",
            "resources_equal",
            "proposed_by",
            "edits",
            "edits_by_policy",
            "checks",
            "checks_without_labels",
            "episodes",
            "before",
            "after",
            "control_before",
            "control_after",
        ),
        (*_COMMON, "ablated", "description"),
    ),
    "anchors": (("axis", "baseline", "expert", "source"), (*_COMMON, "scale", "description")),
    "experts": (("family", "quality", "se", "n", "source"), (*_COMMON, "description")),
    "checklist": (("item", "answer", "by"), (*_COMMON, "document", "description")),
    "probes": (
        ("probe", "n", "mean", "sd", "human_median", "human_n"),
        (*_COMMON, "ability", "assisted", "description"),
    ),
    "ratings": (
        ("episode_id", "rater", "success"),
        ("side", "policy", "blind", "time", "milestones", "description"),
    ),
}
"""Columns each file needs, and further ones it may have."""


def _incident(line: Line) -> Incident:
    return Incident(
        **line.noted,
        incident_id=line.text("incident_id"),
        severity=line.word("severity", SEVERITIES),
        time_ns=line.time_ns("time"),
        description=line.cells.get("description", ""),
    )


def _fault(line: Line) -> Fault:
    recovered = line.truth("recovered", None)
    if recovered is None:
        raise line.wrong("recovered", "must be true or false")
    return Fault(
        **line.noted,
        fault=line.text("fault"),
        recovered=recovered,
        recovered_by=line.optional("recovered_by") or "robot",
        recoverable=bool(line.truth("recoverable", True)),  # noqa: FBT003
        injected=bool(line.truth("injected", False)),  # noqa: FBT003
        duration_s=line.amount("duration_s", None),
    )


def _repair(line: Line) -> Repair:
    hours = line.amount("hours", None)
    if hours is None:
        raise line.wrong("hours", "must be a number of at least 0")
    return Repair(**line.noted, hours=hours, description=line.cells.get("description", ""))


def _rating(line: Line) -> Rating:
    line.text("episode_id")
    return Rating(
        **line.noted,
        rater=line.text("rater"),
        success=line.truth("success", None),
        blind=bool(line.truth("blind", False)),  # noqa: FBT003
        time_ns=line.time_ns("time"),
        milestones=line.answers("milestones"),
    )


def _pause(line: Line) -> Pause:
    time_ns, seconds = line.time_ns("time"), line.amount("duration_s", None)
    if time_ns is None or seconds is None:
        column = "time" if time_ns is None else "duration_s"
        raise line.wrong(column, "is empty; a pause has a time and a length")
    return Pause(
        line=line.number,
        side=line.cells.get("side", ""),
        time_ns=time_ns,
        duration_s=seconds,
        before_episode_id=line.optional("before_episode_id"),
    )


def _tool_use(line: Line) -> ToolUse:
    return ToolUse(
        **line.noted_of_policy,
        **line.tally,
        category=line.text("category"),
        drift=line.cells.get("drift", "").lower(),
    )


def _tool_trial(line: Line) -> ToolTrial:
    return ToolTrial(
        **line.noted_of_policy,
        **line.tally,
        tool=line.text("tool"),
        stage=line.word("stage", ("before", "after", "ablated")),
        group=line.word("group", ("needs", "control")),
        installed_by=line.text("installed_by"),
    )


def _team_trial(line: Line) -> TeamTrial:
    tally = line.tally
    found: dict[str, Any] = {name: line.count(name, default=0) for name in PENALTIES}
    for name, count in found.items():
        if count > tally["episodes"]:
            raise line.wrong(name, f"is more than the {tally['episodes']} episodes")
    robots = line.count("robots")
    if robots < 1:
        raise line.wrong("robots", "must be at least 1")
    return TeamTrial(
        **line.noted_of_policy, **tally, **found, task=line.text("task"), robots=robots
    )


def _declaration(line: Line) -> Declaration:
    time_ns = line.time_ns("time")
    if time_ns is None:
        raise line.wrong("time", "is empty; a declaration has a time")
    what, value = line.word("what", DECLARED), line.quantity("value")
    low, high = line.amount("low", None), line.amount("high", None)
    if what in YES_OR_NO and value not in (0.0, 1.0):
        raise line.wrong("value", "must be 1 for yes or 0 for no")
    if what in YES_OR_NO and not (low is None and high is None):
        raise line.wrong("low", "goes with a number; yes and no have no interval")
    if what not in YES_OR_NO and (low is None or high is None or not low <= value <= high):
        raise line.wrong("value", "needs an interval around it, in the columns low and high")
    return Declaration(
        **line.noted_of_policy,
        what=what, value=value, low=low, high=high, n=line.count("n"), by=line.text("by"),
        time_ns=time_ns, document=line.text("document"),
    )  # fmt: skip


def _checkpoint(line: Line) -> Checkpoint:
    time_ns = line.time_ns("time")
    if time_ns is None:
        raise line.wrong("time", "is empty; a checkpoint has a time")
    return Checkpoint(
        **line.noted_of_policy,
        time_ns=time_ns,
        family=line.text("family"),
        capability=line.quantity("capability", most=1.0),
        resources=line.quantity("resources"),
        drift=line.cells.get("drift", "").lower(),
        human_patches=line.count("human_patches", default=0),
        schema=line.cells.get("schema", ""),
        utc_offset_s=line.utc_offset_s("time"),
    )


def _retention(line: Line) -> Retention:
    trials, recalled = line.count("trials"), line.count("recalled")
    if recalled > trials:
        raise line.wrong("recalled", f"is more than the {trials} trials")
    return Retention(
        **line.noted_of_policy,
        family=line.text("family"),
        lag_days=line.quantity("lag_days"),
        trials=trials,
        recalled=recalled,
    )


def _retrieval(line: Line) -> Retrieval:
    names = ("k", "queries", "relevant", "found", "returned", "verified")
    found: dict[str, Any] = {name: line.count(name) for name in names}
    if found["k"] < 1:
        raise line.wrong("k", "must be at least 1")
    room = found["k"] * found["queries"]
    for name, most, of in (
        ("found", found["relevant"], "relevant items"),
        ("returned", room, "items that so many queries have room for"),
        ("verified", found["returned"], "returned items"),
        ("found", found["returned"], "returned items"),
    ):
        if found[name] > most:
            raise line.wrong(name, f"is more than the {most} {of}")
    return Retrieval(**line.noted_of_policy, family=line.text("family"), **found)


def _revision(line: Line) -> Revision:
    time_ns, equal = line.time_ns("time"), line.truth("resources_equal", None)
    if time_ns is None:
        raise line.wrong("time", "is empty; a revision has a time")
    if equal is None:
        raise line.wrong("resources_equal", "must be true or false")
    episodes = line.count("episodes")
    if not episodes:
        raise line.wrong("episodes", "must be at least 1")
    counts = ("before", "after", "control_before", "control_after")
    arms: dict[str, int | None] = {name: line.count(name) for name in counts}
    arms["ablated"] = line.count("ablated") if line.cells.get("ablated") else None
    for name, count in arms.items():
        if count is not None and count > episodes:
            raise line.wrong(name, f"is more than the {episodes} episodes")
    steps = {}
    for part, whole in (("edits_by_policy", "edits"), ("checks_without_labels", "checks")):
        steps[part], steps[whole] = line.count(part), line.count(whole)
        if steps[part] > steps[whole]:
            raise line.wrong(part, f"is more than the {steps[whole]} {whole}")
    named = {name: line.text(name) for name in ("revision", "diff", "holdout", "proposed_by")}
    if named["proposed_by"].lower() == "policy":
        named["proposed_by"] = "policy"
    found: dict[str, Any] = {**line.noted_of_policy, **named, **steps, **arms}
    return Revision(**found, time_ns=time_ns, resources_equal=equal, episodes=episodes)


def _anchor(line: Line) -> Anchor:
    baseline, expert = line.quantity("baseline"), line.quantity("expert")
    scale = line.word("scale", ("linear", "log"), "linear")
    axis = line.word("axis", _ANCHORED)
    if baseline == expert:
        raise line.wrong("expert", "equals the baseline; two different anchors are needed")
    if baseline > expert:
        raise line.wrong("expert", "is below the baseline; of every axis more is better")
    if axis != "$" and expert > 1.0:
        raise line.wrong("expert", f"must be at most 1; the raw value of {axis} is a share")
    for name, value in (("baseline", baseline), ("expert", expert)):
        if scale == "log" and value <= 0.0:
            raise line.wrong(name, "has no logarithm; it must be above 0 on a log scale")
    return Anchor(
        **line.noted_of_policy,
        axis=axis,
        baseline=baseline,
        expert=expert,
        scale=scale,
        source=line.text("source"),
    )


def _expert(line: Line) -> Expert:
    return Expert(
        **line.noted_of_policy,
        family=line.text("family"),
        quality=line.quantity("quality", most=1.0),
        se=line.quantity("se", most=1.0),
        n=line.count("n"),
        source=line.text("source"),
    )


def _probe(line: Line) -> Probe:
    return Probe(
        **line.noted_of_policy,
        probe=line.text("probe"),
        ability=line.cells.get("ability", ""),
        n=line.count("n"),
        mean=line.quantity("mean"),
        sd=line.quantity("sd"),
        human_median=line.quantity("human_median"),
        human_n=line.count("human_n"),
        assisted=bool(line.truth("assisted", False)),  # noqa: FBT003
    )


def _answer(line: Line) -> Answer:
    return Answer(
        **line.noted_of_policy,
        item=line.word("item", CHECKED),
        answer=line.text("answer"),
        by=line.text("by"),
        document=line.cells.get("document", ""),
    )


READERS: Final[dict[str, Callable[[Line], Any]]] = {
    "incidents": _incident,
    "faults": _fault,
    "repairs": _repair,
    "ratings": _rating,
    "pauses": _pause,
    "tools": _tool_use,
    "checkpoints": _checkpoint,
    "expansion": _tool_trial,
    "teams": _team_trial,
    "retention": _retention,
    "retrieval": _retrieval,
    "revisions": _revision,
    "anchors": _anchor,
    "experts": _expert,
    "probes": _probe,
    "checklist": _answer,
    "declarations": _declaration,
}
