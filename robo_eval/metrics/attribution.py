"""Whose hours and incidents these are, and what in the evidence does not fit the episodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.defaults import SEVERITIES
from robo_eval.core.kinds import LATE_COMPUTER, EndReason, Side
from robo_eval.core.units import DAY_NS
from robo_eval.log.evidence import Evidence, Fault, Incident, Rating, Repair
from robo_eval.log.incident_log import PLAYED
from robo_eval.log.spans import SLACK_NS, Windows, other_policy, spans_ns
from robo_eval.metrics.contradictions import contradictions
from robo_eval.metrics.finding import MOST_FINDINGS, Finding
from robo_eval.metrics.tables import is_true

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan

BodyKey = tuple[str, str]
"""Side and policy."""
Note = Incident | Fault | Repair
_Kind = TypeVar("_Kind", Incident, Fault, Repair)
_HOUR_S: Final = 3600.0
_SET_UP_S: Final = 60.0
"""Motors may be on for so long before and after an episode."""
_ROUNDING: Final = 1e-9
_ONE_EACH: Final = 3
"""So many robots may have played one episode only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """Evidence by side and policy.

    Attributes:
        incidents: Incidents; None without a record of them: then nothing is known, not that there
            were none.
        faults: Faults; None without a file of them.
        repairs: Repairs; None without a file of them.
        findings: What did not fit.
        silent: Sides of which the record of incidents says nothing, though it is there.
    """

    incidents: Mapping[BodyKey, Sequence[Incident]] | None
    faults: Mapping[BodyKey, Sequence[Fault]] | None
    repairs: Mapping[BodyKey, Sequence[Repair]] | None
    findings: tuple[Finding, ...] = ()
    silent: tuple[str, ...] = ()

    def incidents_of(self, body: BodyKey) -> Sequence[Incident] | None:
        """Incidents of a body; None if nobody kept a record of them."""
        if self.incidents is None or body[0] in self.silent:
            return None
        return self.incidents.get(body, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """How long a body was exposed.

    Attributes:
        hours: Sum over all attempts, void and lost ones included.
        episodes: Attempts with a known exposure.
        unknown: Attempts without one; they add nothing to the hours.
    """

    hours: float
    episodes: int
    unknown: int


def exposures_of(table: pd.DataFrame) -> dict[BodyKey, Exposure]:
    """Exposure of each physical side and policy, of both arms and all attempts.

    Args:
        table: A table from `episodes_frame`.
    """
    physical = table.loc[table["side"] != Side.SIM.value, ["side", "policy", "exposure_s"]]
    found = {}
    for (side, policy), rows in physical.groupby(["side", "policy"], sort=False):
        seconds = rows["exposure_s"].to_numpy(dtype=np.float64)
        # A physical attempt of no time at all was not measured.
        known = ~np.isnan(seconds) & (seconds > 0.0)
        found[str(side), str(policy)] = Exposure(
            hours=math.fsum(seconds[known]) / _HOUR_S,
            episodes=int(known.sum()),
            unknown=int((~known).sum()),
        )
    return found


def attribute(evidence: Evidence, table: pd.DataFrame, plan: TrialPlan | None = None) -> Attributed:
    """Say whose each note is: by its episode, by the policy it names, or by its time.

    A note that fits nowhere is a finding. Where a side has one policy only, its notes are that
    policy's all the same; an incident that could be anybody's counts for each policy of its side,
    because none is dropped for being badly described.

    Args:
        evidence: What was noted.
        table: A table from `episodes_frame`.
        plan: The plan, if there is one.
    """
    notes: list[Note] = [
        *(evidence.incidents or ()),
        *(evidence.faults or ()),
        *(evidence.repairs or ()),
    ]
    log = _Log(table, notes)
    findings = [
        *(Finding(where=evidence.files["incidents"], text=text) for text in evidence.problems),
        *_sides(table, plan),
        *_targets(table, plan),
        *_hours(table),
        *_voids(table, plan),
        *_ratings(evidence, table),
        *contradictions(evidence, table),
    ]

    def sorted_out(kind: str, notes: Sequence[_Kind] | None) -> dict[BodyKey, list[_Kind]] | None:
        if notes is None:
            return None
        own: dict[BodyKey, list[_Kind]] = {}
        for note in notes:
            problems: list[str] = []
            body = log.body_of(note, problems.append)
            where = f"{evidence.files.get(kind, kind)}: {note.place}"
            findings.extend(Finding(where=where, text=text) for text in problems)
            # What may have been anybody's incident counts against everybody.
            spread = kind == "incidents" and body is None
            bodies = [(note.side, policy) for policy in log.policies.get(note.side, ())]
            for one in bodies if spread else [body]:
                if one is not None:
                    own.setdefault(one, []).append(note)
        return own

    incidents = sorted_out("incidents", evidence.incidents)
    faults = sorted_out("faults", evidence.faults)
    repairs = sorted_out("repairs", evidence.repairs)
    return Attributed(
        incidents=incidents,
        faults=faults,
        repairs=repairs,
        findings=tuple(findings),
        silent=evidence.silent,
    )


class _Log:
    """The physical episodes of a table, ready to be asked about notes.

    Args:
        table: A table from `episodes_frame`.
        notes: What will be asked about; only their episodes are looked up.
    """

    def __init__(self, table: pd.DataFrame, notes: Sequence[Note]) -> None:
        rows = table.loc[table["side"] != Side.SIM.value, list(PLAYED)]
        self.policies: dict[str, list[str]] = {}
        bodies = rows[["side", "policy"]].drop_duplicates()
        for side, policy in zip(bodies["side"], bodies["policy"], strict=True):
            self.policies.setdefault(side, []).append(policy)
        named = rows[rows["episode_id"].isin({note.episode_id for note in notes})]
        starts, ends = spans_ns(named)
        columns = (named["side"], named["policy"], starts, ends)
        found = zip(named["episode_id"], zip(*columns, strict=True), strict=True)
        self._named: dict[str, tuple[str, str, float, float]] = dict(found)
        self._windows: dict[str, Windows] = {}
        if any(isinstance(note, Incident) for note in notes):
            self._windows = Windows.by_side(rows)

    def body_of(self, note: Note, complain: Callable[[str], None]) -> BodyKey | None:
        """Side and policy of a note; None if nobody can tell."""
        side = note.side
        time_ns = note.time_ns if isinstance(note, Incident) else None
        if note.episode_id is not None and note.episode_id in self._named:
            return self._of_episode(note, time_ns, complain)
        if note.episode_id is not None:
            complain(f"episode_id {note.episode_id!r} is no physical episode of the log")
        windows = self._windows.get(side)
        running = None
        if time_ns is not None:
            running = next((one for one, _ in windows.at(time_ns)), None) if windows else None
            if running is None:
                complain(f"its time lies in no exposure of side {side}")
        own = self.policies.get(side, [])
        if note.policy is not None and note.policy not in own:
            complain(f"policy {note.policy!r} played no episode on side {side}")
        if isinstance(note, Incident) and (problem := other_policy(note, windows)):
            complain(problem)
            return None
        only = own[0] if len(own) == 1 else None
        for policy in (note.policy, running, only):
            if policy is not None and policy in own:
                return side, policy
        complain("whose it is cannot be told; name its episode_id, policy or time")
        return None

    def _of_episode(
        self, note: Note, time_ns: int | None, complain: Callable[[str], None]
    ) -> BodyKey | None:
        episode_id, side = str(note.episode_id), note.side
        own, policy, start, end = self._named[episode_id]
        if note.policy not in (None, policy):
            complain(f"policy {note.policy!r} did not play episode {episode_id!r}; {policy!r} did")
        if own != side:
            complain(
                f"episode_id {episode_id!r} was played on side {own}, the line says {side};"
                " results of a twin are never those of a robot"
            )
        # Comparisons with what is not known are false.
        if time_ns is not None and (time_ns < start - SLACK_NS or time_ns > end + SLACK_NS):
            complain(f"its time lies outside episode {episode_id!r}")
        if isinstance(note, Incident) and (problem := other_policy(note, self._windows.get(side))):
            complain(problem)
            return None
        return own, policy


def _sides(table: pd.DataFrame, plan: TrialPlan | None) -> list[Finding]:
    """Rows whose side cannot be the one they say."""
    found = []
    robots: dict[str, dict[str, str]] = {}
    is_named = table["robot"].notna() & (table["side"] != Side.SIM.value)
    named = table.loc[is_named, ["robot", "side", "episode_id"]]
    # The first by name, so that the order of rows changes nothing.
    for robot, own in named.groupby("robot", sort=True):
        firsts = own.groupby("side")["episode_id"].min()
        robots[str(robot)] = {str(side): str(episode) for side, episode in firsts.items()}
    for robot, sides in robots.items():
        if len(sides) > 1:
            found.append(
                Finding(
                    where=f"episodes: {sides[Side.REAL.value]}",
                    text=f"column 'side' is real, but robot {robot!r} is a twin in episode"
                    f" {sides[Side.TWIN.value]}; one robot id has one body",
                )
            )
    if plan is None or plan.imported is not None:
        return found
    planned = {side.value for side in plan.sides}
    for side, episode in table.groupby("side")["episode_id"].min().items():
        if side not in planned:
            found.append(
                Finding(
                    where=f"episodes: {episode}",
                    text=f"column 'side' is {side}, which the plan does not name",
                )
            )
    return found


def _targets(table: pd.DataFrame, plan: TrialPlan | None) -> list[Finding]:
    """Successes whose quality is below what the plan calls a success, by any task that fits.

    Where a person judges or the environment tells, success and quality come from two sources and
    may differ; so they may in another log whose map names no threshold.
    """
    found: list[tuple[str, float, float]] = []
    least: dict[str, float] = {}
    theirs = plan.imported.column_map.get("success_quality") if plan and plan.imported else 1.0
    for task in plan.tasks if plan is not None else ():
        if theirs is None:
            return []
        # Imports of an earlier version hold it in their map only.
        target = 0.0 if task.success else min(task.success_quality, float(theirs))
        least[task.env] = min(target, least.get(task.env, 1.0))
    succeeded = is_true(table["success"].to_numpy())
    if plan is not None and plan.imported is None:
        judged = [side.value for side in Side if plan.judging.asks(side)]
        succeeded = succeeded & ~table["side"].isin(judged).to_numpy(dtype=bool)
    qualities = table["quality"].to_numpy(dtype=np.float64)
    for env, target in least.items():
        played = (table["task"] == env).to_numpy(dtype=bool)
        weak = np.flatnonzero(succeeded & played & (qualities < target - _ROUNDING))
        names = table["episode_id"].to_numpy(dtype=object)[weak]
        found += [
            (str(name), float(q), target) for name, q in zip(names, qualities[weak], strict=True)
        ]
    return [
        Finding(
            where=f"episodes: {name}",
            text=f"column 'success' is true, but quality {quality:g} is below the plan's"
            f" success_quality of {target:g}",
        )
        for name, quality, target in sorted(found)[:MOST_FINDINGS]
    ]


def _hours(table: pd.DataFrame) -> list[Finding]:
    """Exposure that is longer than its episode, and robots that were in two episodes at once."""
    columns = ["episode_id", "side", "robot", "start_ns", "duration_s", "exposure_s"]
    rows = table.loc[table["side"] != Side.SIM.value, columns].sort_values("episode_id")
    seconds = rows["exposure_s"].to_numpy(dtype=np.float64)
    longest = rows["duration_s"].to_numpy(dtype=np.float64) + _SET_UP_S
    found = [
        Finding(
            where=f"episodes: {rows['episode_id'].iloc[row]}",
            text=f"column 'exposure_s' is {seconds[row]:g}, but the episode took"
            f" {longest[row] - _SET_UP_S:g} s; exposure ends with its episode",
        )
        for row in np.flatnonzero(seconds > longest)[:MOST_FINDINGS]
    ]
    for (_, robot), own in rows.assign(robot=_told_apart(rows)).groupby(["side", "robot"]):
        found += _overlaps(str(robot), own)
    return found


def _told_apart(rows: pd.DataFrame) -> pd.Series[str]:
    """The robot of each row; those without a name, or with one each, are taken as one robot."""
    names = rows["robot"].fillna("").astype(str)
    episodes = names.map(names.value_counts())
    many = int((episodes == 1).sum()) > _ONE_EACH
    return names.where(~(many & (episodes == 1)), "")


def _overlaps(robot: str, rows: pd.DataFrame) -> list[Finding]:
    starts, ends = spans_ns(rows)
    order = np.argsort(starts, kind="stable")  # unknown starts come last
    order = order[~np.isnan(ends[order])]
    early = starts[order][1:] < np.maximum.accumulate(ends[order])[:-1] - SLACK_NS
    ids = rows["episode_id"].to_numpy(dtype=object)[order]
    return [
        Finding(
            where=f"episodes: {ids[row + 1]}",
            text=f"{_called(robot)} was still in episode {ids[row]} when it began; a robot is in"
            " one episode at a time",
        )
        for row in np.flatnonzero(early)[:MOST_FINDINGS]
    ]


def _called(robot: str) -> str:
    return f"robot {robot!r}" if robot else "a robot that cannot be told from others"


def void_reason(detail: str) -> str:
    """Which reason a void attempt was given, without what was said about it.

    Example:
        >>> void_reason("interrupted: stopped by SIGINT")
        'interrupted'
    """
    return detail.partition(":")[0].strip()


def _voids(table: pd.DataFrame, plan: TrialPlan | None) -> list[Finding]:
    """Void attempts that nobody gave a reason for, or one that the plan does not name."""
    is_void = table["end_reason"] == EndReason.VOID.value
    rows = table.loc[is_void, ["episode_id", "end_detail"]].sort_values("episode_id")
    known = None if plan is None or plan.imported is not None else plan.known_void_reasons
    found = []
    for name, detail in zip(rows["episode_id"], rows["end_detail"], strict=True):
        problem = None
        if not detail:
            problem = "without a reason (column 'end_detail')"
        elif known is not None and void_reason(str(detail)) not in known:
            names = ", ".join(name for name in known if name != LATE_COMPUTER) or "none"
            problem = f"for {str(detail)!r:.60}, which is none of the plan's reasons ({names})"
        if problem is not None:
            where = f"episodes: {name}"
            found.append(Finding(where=where, text=f"is void {problem}; a void hides an outcome"))
        if len(found) == MOST_FINDINGS:
            break
    return found


def _ratings(evidence: Evidence, table: pd.DataFrame) -> list[Finding]:
    ids = set(table["episode_id"]) if evidence.ratings else set()
    return [
        Finding(
            where=f"{evidence.files.get('ratings', 'ratings')}: line {rating.line}",
            text=f"episode_id {rating.episode_id!r} is not in the log",
        )
        for rating in evidence.ratings or ()
        if rating.episode_id not in ids
    ]


def counts_by_severity(incidents: Iterable[Incident]) -> dict[str, int]:
    """Incidents by severity; none is 0."""
    counts = Counter(incident.severity for incident in incidents)
    return {severity: counts[severity] for severity in SEVERITIES}


def bursts_by_severity(incidents: Iterable[Incident]) -> dict[str, list[int]]:
    """How many incidents of a severity came together: in one episode, else on one day (UTC).

    Those of which neither is known stand alone. Sizes are in ascending order.
    """
    sizes: dict[str, Counter[object]] = {severity: Counter() for severity in SEVERITIES}
    for incident in incidents:
        place: object = incident.episode_id
        if place is None:
            time_ns = incident.time_ns
            place = (incident.incident_id,) if time_ns is None else time_ns // DAY_NS
        sizes[incident.severity][place] += 1
    return {severity: sorted(own.values()) for severity, own in sizes.items()}


def rating_pairs(
    ratings: Sequence[Rating], verdicts: Mapping[str, object]
) -> tuple[NDArray[np.int64], int]:
    """How often first verdict and second rating said what.

    Args:
        ratings: Second ratings.
        verdicts: Success by episode, as it was logged; True, False or None.

    Returns:
        Table of shape (2, 2), first verdict by second, failure before success; and the number of
        ratings without a verdict on both sides.
    """
    table = np.zeros((2, 2), dtype=np.int64)
    missing = 0
    for rating in ratings:
        first = verdicts.get(rating.episode_id or "")
        if rating.success is None or not isinstance(first, bool | np.bool_):
            missing += 1
            continue
        table[int(first), int(rating.success)] += 1
    return table, missing
