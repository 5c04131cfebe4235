"""What people and robots noted beside the episodes: incidents, faults, ratings and the like.

Each is a CSV file of a trial directory with one line of column names, or is named when metrics are
computed. Incidents may be in an incident log instead. Files are read as they are; what writes them
is elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from robo_eval.core.kinds import Side

SIDES: Final = tuple(side.value for side in Side)
PHYSICAL: Final = (Side.REAL.value, Side.TWIN.value)
NAMES: Final = (
    "incidents", "faults", "repairs", "ratings", "pauses", "tools", "checkpoints", "expansion",
    "teams", "retention", "retrieval", "revisions", "anchors", "experts", "probes", "declarations",
    "checklist",
)  # fmt: skip
"""Kinds of evidence; `NAME.csv` in a trial directory holds each."""
YES_OR_NO: Final = ("delivery", "domain_audit", "seeds_escrow")
"""Declarations that are yes or no."""
DECLARED: Final = (
    *YES_OR_NO, "cost_ratio", "throughput_ratio", "project_days", "milestone_2", "milestone_4",
)  # fmt: skip
"""What people can vouch for."""
CHECKED: Final = (
    "human_references", "battery_items", "promotion", "ablation_tools", "ablation_memory",
    "held_out_drifts", "recomputation",
)  # fmt: skip
"""Questions of the reproducibility checklist that only people can answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """What all notes have in common.

    Attributes:
        line: Line of the file, for messages.
        side: `real`, `twin` for a stand-in behind ROS, or `sim`, which only notes on a policy can
            have.
        episode_id: The episode it belongs to, if that is known.
        policy: The policy that was running, if that is known.
    """

    line: int
    side: str = Side.REAL.value
    episode_id: str | None = None
    policy: str | None = None

    @property
    def place(self) -> str:
        """Where in its file it is, for messages."""
        return f"line {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident(_Noted):
    """One physical event, at its highest severity.

    Attributes:
        incident_id: Its id, unique in the file.
        severity: One of `SEVERITIES`.
        time_ns: When it happened, UTC; None if not known.
        description: What happened.
        record: Station and number of its report in an incident log; None in a table.
    """

    incident_id: str
    severity: str
    time_ns: int | None = None
    description: str = ""
    record: str | None = None

    @property
    def place(self) -> str:
        """Where in its file it is, for messages."""
        return f"line {self.line}" if self.record is None else f"record {self.record}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(_Noted):
    """A disturbance inside an episode that a robot should recover from.

    Attributes:
        fault: Its name, such as `grasp_slip`.
        recovered: Whether the episode went on afterwards.
        recovered_by: `robot`, or who helped.
        recoverable: Whether a robot should recover from it at all.
        injected: Whether it was provoked.
        duration_s: How long it lasted; None if not known.
    """

    fault: str
    recovered: bool
    recovered_by: str = "robot"
    recoverable: bool = True
    injected: bool = False
    duration_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair(_Noted):
    """Work on a robot after a failure.

    Attributes:
        hours: How long it took.
        description: What was done.
    """

    hours: float
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating(_Noted):
    """What a second person says about the end of an episode.

    Attributes:
        rater: Who.
        success: The verdict; None if the person could not say.
        blind: Whether the person did not know the policy.
        time_ns: When, UTC; None if not known.
        milestones: Steps of the rubric and whether they were reached; None if not sure.
    """

    rater: str
    success: bool | None = None
    blind: bool = False
    time_ns: int | None = None
    milestones: Mapping[str, bool | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A time in which nothing was played because a person asked for it.

    Attributes:
        line: Line of the file, for messages.
        side: Where; empty if not known.
        time_ns: When it began, UTC.
        duration_s: How long it lasted.
        before_episode_id: The episode that was played next, if that is known.
    """

    line: int
    side: str = ""
    time_ns: int
    duration_s: float
    before_episode_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse(_Noted):
    """How often a category of tools was used with success, under one drift.

    Attributes:
        category: An end-effector, a tool or a perception pipeline.
        episodes: How often it was needed.
        successes: How often with success.
        drift: How strong the drift was, such as `mild`.
    """

    category: str
    episodes: int
    successes: int
    drift: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(_Noted):
    """What a policy that goes on learning could do at a time, in one task family.

    Attributes:
        time_ns: When, UTC.
        family: Task family.
        capability: In [0, 1].
        resources: What it had spent on its own initiative until then; never falls.
        drift: Type of the drift that had set in since the checkpoint before, such as `payload`.
        human_patches: Changes that people made to it since the checkpoint before.
        schema: By which rules resources were counted, such as a version or digest of them.
        utc_offset_s: Of the clock it was noted by, from UTC.
    """

    time_ns: int
    family: str
    capability: float
    resources: float
    drift: str = ""
    human_patches: int = 0
    schema: str = ""
    utc_offset_s: int = 0

    @property
    def day(self) -> int:
        """Number of the calendar day by the clock of the place, from 1970 on."""
        return (self.time_ns // 10**9 + self.utc_offset_s) // 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTrial(_Noted):
    """Episodes before, after or without a new tool.

    Attributes:
        tool: The end-effector, tool or perception pipeline.
        stage: `before`, `after`, or `ablated`: with exactly this change taken out again.
        group: `needs` for tasks that need it, `control` for those that do not.
        episodes: How many.
        successes: How many with success.
        installed_by: `policy` if it found, installed and integrated the tool by itself, or who did.
    """

    tool: str
    stage: str
    group: str
    episodes: int
    successes: int
    installed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamTrial(_Noted):
    """Episodes of one task with so many robots, under the same tools and total budget.

    Attributes:
        task: Its name.
        robots: How many at once, at most.
        episodes: How many.
        successes: How many with success.
        unresolved_conflict: In how many a conflict stayed unresolved.
        loop: In how many they repeated themselves.
        chatter: In how many they talked far more than one robot alone.
        mode_collapse: In how many all did nearly the same.
    """

    task: str
    robots: int
    episodes: int
    successes: int
    unresolved_conflict: int = 0
    loop: int = 0
    chatter: int = 0
    mode_collapse: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention(_Noted):
    """How much of what a policy was taught it still knew after so many days.

    Attributes:
        family: Kind of what was taught: places, objects, procedures.
        lag_days: Days between teaching and asking.
        trials: How often it was asked.
        recalled: How often it still knew.
    """

    family: str
    lag_days: float
    trials: int
    recalled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval(_Noted):
    """What a policy returned when it was asked for items, of each query the first `k`.

    Attributes:
        family: Kind of what was asked for.
        k: Items asked for in each query.
        queries: How many queries.
        relevant: Items that were to be found, over all queries.
        found: How many of them were among the first `k`.
        returned: Items returned, over all queries, of each at most `k`.
        verified: How many of those a person or a check confirmed.
    """

    family: str
    k: int
    queries: int
    relevant: int
    found: int
    returned: int
    verified: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision(_Noted):
    """One change of a policy to itself, measured on the same held-out episodes in every arm.

    Attributes:
        revision: Its name.
        time_ns: When, UTC.
        diff: Where the change is kept, so that it can be audited.
        holdout: What names the held-out episodes, such as the digest of their seeds.
        resources_equal: Whether all arms had equal resources.
        proposed_by: `policy`, or who proposed it.
        edits: How many edits it has.
        edits_by_policy: How many of them were applied without a person.
        checks: How many checks decided on its acceptance.
        checks_without_labels: How many of them needed no label of a person.
        episodes: Episodes in each arm.
        before: Successes before it.
        after: Successes after it.
        control_before: Successes of a frozen copy, at the time of `before`.
        control_after: Successes of the same copy at the time of `after`.
        ablated: Successes with the change taken back; None if that was not tried.
    """

    revision: str
    time_ns: int
    diff: str
    holdout: str
    resources_equal: bool
    proposed_by: str
    edits: int
    edits_by_policy: int
    checks: int
    checks_without_labels: int
    episodes: int
    before: int
    after: int
    control_before: int
    control_after: int
    ablated: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor(_Noted):
    """Raw values of an axis that count 0 and 1, frozen for the window.

    Attributes:
        axis: One of the ten.
        baseline: Value of a strong feasible baseline, which counts 0.
        expert: Value of an expert team or the ceiling, which counts 1; below the baseline where
            lower is better.
        scale: `linear`, or `log` to compare logarithms.
        source: Where the two numbers come from.
    """

    axis: str
    baseline: float
    expert: float
    scale: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expert(_Noted):
    """How human professionals did in a task family, on the same battery.

    Attributes:
        family: Task family.
        quality: Their mean quality, in [0, 1].
        se: Its standard error.
        n: Their episodes.
        source: Where the numbers come from.
    """

    family: str
    quality: float
    se: float
    n: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(_Noted):
    """One cognitive probe of a micro-battery, beside the median of people.

    Attributes:
        probe: Its name, such as `working_memory_span`.
        ability: Broad ability of the Cattell-Horn-Carroll model it belongs to, such as `Gwm`.
        n: How often it was given.
        mean: Mean score.
        sd: Standard deviation of the scores.
        human_median: Median score of people.
        human_n: How many people.
        assisted: Whether tools were allowed.
    """

    probe: str
    ability: str
    n: int
    mean: float
    sd: float
    human_median: float
    human_n: int
    assisted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration(_Noted):
    """Something a person vouches for that no log can show.

    Attributes:
        what: One of `DECLARED`.
        value: 1 for yes and 0 for no, or the number.
        low: Lower end of its interval, if it is a number.
        high: Upper end of its interval.
        n: What it rests on: workcells, tasks, findings.
        by: Who declares it.
        time_ns: When, UTC.
        document: Where it is shown.
    """

    what: str
    value: float
    low: float | None
    high: float | None
    n: int
    by: str
    time_ns: int
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(_Noted):
    """What a person answers to a question of the reproducibility checklist.

    Attributes:
        item: One of `CHECKED`.
        answer: In words.
        by: Who answers.
        document: Where it is shown; empty if nowhere.
    """

    item: str
    answer: str
    by: str
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything noted beside the episodes of a trial; None where there is no such file.

    Attributes:
        incidents: Incidents of physical sides.
        faults: Faults inside episodes.
        repairs: Repairs.
        ratings: Second ratings.
        pauses: Pauses of the run.
        tools: Use of tool categories.
        checkpoints: What a policy that learns could do over time.
        expansion: Episodes before, after and without new tools.
        teams: Episodes with one robot and with several.
        retention: What was still known after so many days.
        retrieval: What was returned on request.
        revisions: Changes of a policy to itself.
        anchors: Raw values of axes that count 0 and 1.
        experts: How human professionals did.
        probes: Cognitive probes.
        declarations: What people vouch for.
        checklist: Answers to the reproducibility checklist.
        sources: SHA-256 of each file that was read, by its name; of an incident log that of the
            records that count.
        files: Path of each file, by kind.
        silent: Physical sides of which an incident log says nothing, not even that nothing
            happened.
        problems: Why an incident log is not what was recorded.
    """

    incidents: tuple[Incident, ...] | None = None
    faults: tuple[Fault, ...] | None = None
    repairs: tuple[Repair, ...] | None = None
    ratings: tuple[Rating, ...] | None = None
    pauses: tuple[Pause, ...] | None = None
    tools: tuple[ToolUse, ...] | None = None
    checkpoints: tuple[Checkpoint, ...] | None = None
    expansion: tuple[ToolTrial, ...] | None = None
    teams: tuple[TeamTrial, ...] | None = None
    retention: tuple[Retention, ...] | None = None
    retrieval: tuple[Retrieval, ...] | None = None
    revisions: tuple[Revision, ...] | None = None
    anchors: tuple[Anchor, ...] | None = None
    experts: tuple[Expert, ...] | None = None
    probes: tuple[Probe, ...] | None = None
    declarations: tuple[Declaration, ...] | None = None
    checklist: tuple[Answer, ...] | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
