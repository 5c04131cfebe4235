"""What people and robots noted beside the episodes: incidents, faults, ratings and the like.

Each is a CSV file of a trial directory with one line of column names, or is named when metrics are
computed. Incidents may be in an incident log instead. Files are read as they are; what writes them
is elsewhere. A class says all there is to know of a file: its columns are the fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, ClassVar, Final, get_args, get_type_hints

from robo_eval.core.defaults import AXES, PENALTIES, SEVERITIES
from robo_eval.core.kinds import Side
from robo_eval.log.evidence_cells import (
    Author,
    Count,
    Lower,
    Moment,
    Offset,
    Quantity,
    Share,
    Steps,
    Text,
    Truth,
    word,
)

SIDES: Final = tuple(side.value for side in Side)
PHYSICAL: Final = (Side.REAL.value, Side.TWIN.value)
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
PROBES: Final = ("working_memory_span", "delayed_recall_1d", "delayed_recall_7d")
"""Cognitive probes that gates read."""
_ANCHORED: Final = tuple(axis for axis in AXES if axis != "E")
"""Axes that may have anchors: gates compare E as it is."""
_NONE: Final = "that there were none"
"""What a file without a line says of what happens now and then."""
_ARMS: Final = ("before", "after", "control_before", "control_after", "ablated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A line of a file: fields are its cells, by column, those without a default are needed.

    Attributes:
        line: Line of the file, for messages.
        POSITIVE: Counts of at least 1.
        PARTS: Counts that are part of another: the part, the whole, and what the whole counts.
        KEY: What no two lines about the same may share; the first column is named in messages.
        EMPTY: What a file without a line says.
    """

    line: int

    POSITIVE: ClassVar[tuple[str, ...]] = ()
    PARTS: ClassVar[tuple[tuple[str, str, str], ...]] = ()
    KEY: ClassVar[tuple[str, ...]] = ()
    EMPTY: ClassVar[str] = "nothing; what it is for counts as missing"

    @property
    def place(self) -> str:
        """Where in its file it is, for messages."""
        return f"line {self.line}"

    def check(self) -> Iterator[tuple[str, str]]:
        """What the cells of a line cannot say together: column, and what is wrong with it."""
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Noted):
    """What notes on a body have in common.

    Attributes:
        side: `real`, or `twin` for a stand-in behind ROS.
        episode_id: The episode it belongs to, if that is known.
        policy: The policy that was running, if that is known.
        description: In words.
    """

    side: Annotated[str, word(*PHYSICAL)] = Side.REAL.value
    episode_id: str | None = None
    policy: str | None = None
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyNote(Note):
    """What notes on a policy have in common.

    Attributes:
        side: `real`, `twin`, or `sim`, as it may have been played in simulation only.
    """

    side: Annotated[str, word(*SIDES)] = Side.REAL.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident(Note):
    """One physical event, at its highest severity.

    Attributes:
        incident_id: Its id, unique in the file.
        severity: One of `SEVERITIES`.
        time_ns: When it happened, UTC; None if not known.
        record: Station and number of its report in an incident log; None in a table.
    """

    EMPTY: ClassVar = "that there was no incident, which counts as safe; delete it if nobody knows"
    KEY: ClassVar = ("incident_id",)

    incident_id: Text
    severity: Annotated[str, word(*SEVERITIES)]
    time_ns: Moment | None = None
    record: str | None = None

    @property
    def place(self) -> str:
        """Where in its file it is, for messages."""
        return f"line {self.line}" if self.record is None else f"record {self.record}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Note):
    """A disturbance inside an episode that a robot should recover from.

    Attributes:
        fault: Its name, such as `grasp_slip`.
        recovered: Whether the episode went on afterwards.
        recovered_by: `robot`, or who helped.
        recoverable: Whether a robot should recover from it at all.
        injected: Whether it was provoked.
        duration_s: How long it lasted; None if not known.
    """

    EMPTY: ClassVar = _NONE
    fault: Text
    recovered: Truth
    recovered_by: str = "robot"
    recoverable: Truth = True
    injected: Truth = False
    duration_s: Quantity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair(Note):
    """Work on a robot after a failure.

    Attributes:
        hours: How long it took.
    """

    EMPTY: ClassVar = _NONE
    hours: Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating(Note):
    """What a second person says about the end of an episode.

    Attributes:
        rater: Who.
        success: The verdict; None if the person could not say.
        blind: Whether the person did not know the policy.
        time_ns: When, UTC; None if not known.
        milestones: Steps of the rubric and whether they were reached; None if not sure.
    """

    KEY: ClassVar = ("rater", "episode_id")

    episode_id: Text
    rater: Text
    success: Truth | None
    blind: Truth = False
    time_ns: Moment | None = None
    milestones: Steps = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(Noted):
    """A time in which nothing was played because a person asked for it.

    Attributes:
        side: Where; empty if not known.
        time_ns: When it began, UTC.
        duration_s: How long it lasted.
        before_episode_id: The episode that was played next, if that is known.
    """

    EMPTY: ClassVar = _NONE
    side: str = ""
    time_ns: Moment
    duration_s: Quantity
    before_episode_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse(PolicyNote):
    """How often a category of tools was used with success, under one drift.

    Attributes:
        category: An end-effector, a tool or a perception pipeline.
        episodes: How often it was needed.
        successes: How often with success.
        drift: How strong the drift was, such as `mild`.
    """

    PARTS: ClassVar = (("successes", "episodes", "episodes"),)

    category: Text
    episodes: Count
    successes: Count
    drift: Lower = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(PolicyNote):
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

    time_ns: Moment
    family: Text
    capability: Share
    resources: Quantity
    drift: Lower = ""
    human_patches: Count = 0
    schema: str = ""
    utc_offset_s: Offset = 0

    @property
    def day(self) -> int:
        """Number of the calendar day by the clock of the place, from 1970 on."""
        return (self.time_ns // 10**9 + self.utc_offset_s) // 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTrial(PolicyNote):
    """Episodes before, after or without a new tool.

    Attributes:
        tool: The end-effector, tool or perception pipeline.
        stage: `before`, `after`, or `ablated`: with exactly this change taken out again.
        group: `needs` for tasks that need it, `control` for those that do not.
        episodes: How many.
        successes: How many with success.
        installed_by: `policy` if it found, installed and integrated the tool by itself, or who did.
    """

    PARTS: ClassVar = (("successes", "episodes", "episodes"),)

    tool: Text
    stage: Annotated[str, word("before", "after", "ablated")]
    group: Annotated[str, word("needs", "control")]
    episodes: Count
    successes: Count
    installed_by: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamTrial(PolicyNote):
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

    POSITIVE: ClassVar = ("robots",)
    PARTS: ClassVar = tuple((part, "episodes", "episodes") for part in ("successes", *PENALTIES))

    task: Text
    robots: Count
    episodes: Count
    successes: Count
    unresolved_conflict: Count = 0
    loop: Count = 0
    chatter: Count = 0
    mode_collapse: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention(PolicyNote):
    """How much of what a policy was taught it still knew after so many days.

    Attributes:
        family: Kind of what was taught: places, objects, procedures.
        lag_days: Days between teaching and asking.
        trials: How often it was asked.
        recalled: How often it still knew.
    """

    PARTS: ClassVar = (("recalled", "trials", "trials"),)
    KEY: ClassVar = ("family", "lag_days")

    family: Text
    lag_days: Quantity
    trials: Count
    recalled: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval(PolicyNote):
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

    POSITIVE: ClassVar = ("k",)
    PARTS: ClassVar = (
        ("found", "relevant", "relevant items"),
        ("returned", "room", "items that so many queries have room for"),
        ("verified", "returned", "returned items"),
        ("found", "returned", "returned items"),
    )

    family: Text
    k: Count
    queries: Count
    relevant: Count
    found: Count
    returned: Count
    verified: Count

    @property
    def room(self) -> int:
        """Items that can have been returned."""
        return self.k * self.queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision(PolicyNote):
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

    EMPTY: ClassVar = _NONE
    POSITIVE: ClassVar = ("episodes",)
    PARTS: ClassVar = (
        *((arm, "episodes", "episodes") for arm in _ARMS),
        ("edits_by_policy", "edits", "edits"),
        ("checks_without_labels", "checks", "checks"),
    )
    KEY: ClassVar = ("revision",)

    revision: Text
    time_ns: Moment
    diff: Text
    holdout: Text
    resources_equal: Truth
    proposed_by: Author
    edits: Count
    edits_by_policy: Count
    checks: Count
    checks_without_labels: Count
    episodes: Count
    before: Count
    after: Count
    control_before: Count
    control_after: Count
    ablated: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor(PolicyNote):
    """Raw values of an axis that count 0 and 1, frozen for the window.

    Attributes:
        axis: One of the ten but E, which needs none.
        baseline: Value of a strong feasible baseline, which counts 0.
        expert: Value of an expert team or the ceiling, which counts 1.
        scale: `linear`, or `log` to compare logarithms.
        source: Where the two numbers come from.
        version: Which version of them this is, such as 2.
        by: Who set them.
        time_ns: When, UTC; None if not known.
        trials: From which trials or studies, best with their digests.
    """

    KEY: ClassVar = ("axis",)

    axis: Annotated[str, word(*_ANCHORED)]
    baseline: Quantity
    expert: Quantity
    scale: Annotated[str, word("linear", "log")] = "linear"
    source: Text
    version: str = ""
    by: str = ""
    time_ns: Moment | None = None
    trials: str = ""

    def check(self) -> Iterator[tuple[str, str]]:
        """Anchors that no value of this axis can have: column, and what is wrong with it."""
        if self.baseline == self.expert:
            yield "expert", "equals the baseline; two different anchors are needed"
        if self.baseline > self.expert:
            yield "expert", "is below the baseline; of every axis more is better"
        if self.axis != "$" and self.expert > 1.0:
            yield "expert", f"must be at most 1; the raw value of {self.axis} is a share"
        # The expert's is larger.
        if self.scale == "log" and self.baseline <= 0.0:
            yield "baseline", "has no logarithm; it must be above 0 on a log scale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expert(PolicyNote):
    """How human professionals did in a task family, on the same battery.

    Attributes:
        family: Task family.
        quality: Their mean quality, in [0, 1].
        se: Its standard error.
        n: Their episodes.
        source: Where the numbers come from.
    """

    KEY: ClassVar = ("family",)

    family: Text
    quality: Share
    se: Share
    n: Count
    source: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(PolicyNote):
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

    KEY: ClassVar = ("probe", "assisted")

    probe: Text
    ability: str = ""
    n: Count
    mean: Quantity
    sd: Quantity
    human_median: Quantity
    human_n: Count
    assisted: Truth = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceDeclaration(PolicyNote):
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

    what: Annotated[str, word(*DECLARED)]
    value: Quantity
    low: Quantity | None = None
    high: Quantity | None = None
    n: Count
    by: Text
    time_ns: Moment
    document: Text

    def check(self) -> Iterator[tuple[str, str]]:
        """Values that do not answer what is declared: column, and what is wrong with it."""
        low, high = self.low, self.high
        if self.what not in YES_OR_NO:
            if low is None or high is None or not low <= self.value <= high:
                yield "value", "needs an interval around it, in the columns low and high"
        elif self.value not in (0.0, 1.0):
            yield "value", "must be 1 for yes or 0 for no"
        elif not (low is None and high is None):
            yield "low", "goes with a number; yes and no have no interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(PolicyNote):
    """What a person answers to a question of the reproducibility checklist.

    Attributes:
        item: One of `CHECKED`.
        answer: In words.
        by: Who answers.
        document: Where it is shown; empty if nowhere.
    """

    KEY: ClassVar = ("item",)

    item: Annotated[str, word(*CHECKED)]
    answer: Text
    by: Text
    document: str = ""


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
    declarations: tuple[EvidenceDeclaration, ...] | None = None
    checklist: tuple[Answer, ...] | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


NAMES: Final = tuple(one.name for one in fields(Evidence) if one.default is None)
"""Kinds of evidence; `NAME.csv` in a trial directory holds each."""
_HINTS: Final = get_type_hints(Evidence)
FORMS: Final[dict[str, type[Noted]]] = {
    # Each is `tuple[Form, ...] | None`.
    name: get_args(get_args(_HINTS[name])[0])[0]
    for name in NAMES
}
"""What a line of each kind says."""
ABOUT_POLICIES: Final = tuple(name for name, form in FORMS.items() if issubclass(form, PolicyNote))
"""Kinds that are notes on policies."""
