"""What others need to repeat an assessment, as a form that the trial fills in by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from robo_eval.gates.axes.index import EQUAL
from robo_eval.log.directory import PLAN
from robo_eval.log.evidence import CHECKED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from robo_eval.gates.assessment import Assessment
    from robo_eval.gates.profile import Profile
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.log.evidence import Evidence
    from robo_eval.log.manifest import Manifest
    from robo_eval.metrics.config import MetricConfig

_BY_PEOPLE: Final[Mapping[str, str]] = {
    "human_references": "Which humans the anchors and experts refer to, and how they were chosen",
    "battery_items": "Items of the micro-battery, their scoring and their distractors",
    "promotion": "What was agreed before the window about when a level is awarded",
    "ablation_tools": "What other tool budgets and latencies do to T and $",
    "ablation_memory": "What another policy of writing memory does to M",
    "held_out_drifts": "Which drifts were held out from the makers of the policy",
    "recomputation": "Who computed the numbers again, independently",
}
_FILE: Final = "checklist.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question.

    Attributes:
        id: Its name; those of `log.evidence.CHECKED` are answered in `checklist.csv`.
        question: What is asked.
        answer: The answer; empty while there is none.
        source: Where the answer comes from, or where it is to be given.
    """

    id: str
    question: str
    answer: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checklist:
    """The form.

    Attributes:
        items: Its questions.
    """

    SAID: ClassVar = ("complete",)

    items: tuple[Item, ...]

    @property
    def complete(self) -> bool:
        """Whether every question has an answer."""
        return not self.open

    @property
    def open(self) -> tuple[Item, ...]:
        """Questions without an answer."""
        return tuple(item for item in self.items if not item.answer)

    def as_text(self) -> str:
        """The form in Markdown."""
        done = len(self.items) - len(self.open)
        said = "complete" if not self.open else "incomplete"
        lines = [
            "# Reproducibility checklist",
            "",
            f"{done} of {len(self.items)} questions answered: {said}.",
            "",
        ]
        for item in self.items:
            mark = "x" if item.answer else " "
            answer = item.answer or f"open ({item.id})"
            lines.append(f"- [{mark}] {item.question}: {answer} ({item.source})")
        return "\n".join(lines) + "\n"


def checklist_of(
    trial: TrialDirectory,
    table: pd.DataFrame,
    evidence: Evidence,
    profile: Profile,
    config: MetricConfig,
    assessments: Sequence[Assessment],
) -> Checklist:
    """The form, filled in from manifest, plan, profile and evidence.

    Args:
        trial: The trial directory.
        table: Its episodes, of `metrics.frame.episodes_frame`.
        evidence: What was noted beside them.
        profile: What was asked.
        config: Settings of the metrics.
        assessments: What was said of each policy.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.2, 4.5 and 5, whose questions these are.
    """
    # A damaged manifest is an audit that fails; the form has no second word on it.
    manifest = _manifest(trial)
    items = [*_of_manifest(manifest), *_of_plan(trial, table, config)]
    items += _of_profile(profile, assessments)
    items += _of_evidence(evidence, assessments)
    answers = {one.item: one for one in evidence.checklist or ()}
    for name in CHECKED:
        given = answers.get(name)
        text = ""
        if given is not None:
            text = f"{given.answer}; {given.by}" + (f", {given.document}" * bool(given.document))
        items.append(Item(id=name, question=_BY_PEOPLE[name], answer=text, source=_FILE))
    return Checklist(items=tuple(items))


def _manifest(trial: TrialDirectory) -> Manifest | None:
    from robo_eval.core.errors import TrialDirectoryError

    try:
        return trial.manifest
    except TrialDirectoryError:
        return None


def _of_manifest(manifest: Manifest | None) -> list[Item]:
    source = "manifest.json"
    if manifest is None:
        questions = ("Software", "Packages", "Machine", "Log")
        return [Item(id=name.lower(), question=name, answer="", source=source)
                for name in questions]  # fmt: skip
    packages = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    machine = ", ".join(str(value) for value in manifest.machine.values())
    return [
        Item(id="software", question="Software", answer=manifest.software, source=source),
        Item(id="packages", question="Packages", answer=packages, source=source),
        Item(id="machine", question="Machine", answer=machine, source=source),
        Item(
            id="log", question="Log", source=source,
            answer=f"{manifest.rows} rows, newest {manifest.head}" if manifest.head else "",
        ),
    ]  # fmt: skip


def _of_plan(trial: TrialDirectory, table: pd.DataFrame, config: MetricConfig) -> list[Item]:
    plan = trial.plan
    families = sorted({task.family or task.env for task in plan.tasks})
    rules = sorted({task.scoring for task in plan.tasks})
    kind = "the same in every condition" if plan.seeds.shared else "different in each condition"
    policies = sorted(f"{name} {digest}" for name, digest in _pairs(table))
    snapshots = sorted(str(name) for name in table["calibration"].dropna().unique())
    snapshots += [path.name for path in trial.calibration_files]
    return [
        Item(id="battery", question="Task families and scoring rules", source=PLAN,
             answer=f"{', '.join(families)}; {', '.join(rules)}"),
        Item(id="plan", question="Digest of the locked plan", source=PLAN,
             answer=trial.plan_digest),
        Item(id="seeds", question="Seeds", source=PLAN,
             answer=f"from {plan.seeds.first} on, {kind}"),
        Item(id="policies", question="Digests of the policies", source="episodes.db",
             answer="; ".join(policies)),
        Item(id="calibration", question="Calibration snapshots", source="calibration/",
             answer=", ".join(snapshots)),
        Item(id="settings", question="Digest of the metric settings", source="assessment.json",
             answer=config.digest),
    ]  # fmt: skip


def _pairs(table: pd.DataFrame) -> list[tuple[str, str]]:
    found = table[["policy", "policy_digest"]].drop_duplicates()
    return [(str(name), str(digest)) for name, digest in found.itertuples(index=False)]


def _of_profile(profile: Profile, assessments: Sequence[Assessment]) -> list[Item]:
    index = next((one.readings.index for one in assessments if one.readings.index), None)
    equal = None if index is None else index.alternatives.get(EQUAL)
    compared = "" if equal is None or equal.value is None else str(equal)
    weights = profile.index.weights
    named = weights if isinstance(weights, str) else ", ".join(
        f"{axis} {weight:g}" for axis, weight in weights.items()
    )  # fmt: skip
    return [
        Item(id="thresholds", question="Thresholds of the levels", source="profile.toml",
             answer=f"profile {profile.name}, version {profile.version}, {profile.digest}"),
        Item(id="weights", question="Weights of the index, gamma", source="profile.toml",
             answer=f"{named}; gamma {profile.index.gamma:g}"),
        Item(id="equal_weights", question="The index with equal weights", source="the index",
             answer=compared),
    ]  # fmt: skip


def _of_evidence(evidence: Evidence, assessments: Sequence[Assessment]) -> list[Item]:
    measured = {
        axis.name: axis.source
        for one in assessments
        for axis in one.readings.axes
        if axis.value.value is not None and axis.source
    }
    diffs = [f"{one.revision}: {one.diff}" for one in evidence.revisions or ()]
    return [
        Item(id="anchors", question="Anchors of the axes and their sources", source="anchors.csv",
             answer="; ".join(f"{name}: {text}" for name, text in measured.items())),
        Item(id="diffs", question="Changes of the policies to themselves", source="revisions.csv",
             answer="; ".join(diffs) if diffs else "none" * (evidence.revisions is not None)),
        Item(id="evidence", question="SHA-256 of the files of evidence", source="the files",
             answer="; ".join(f"{name} {digest}" for name, digest in evidence.sources.items())),
    ]  # fmt: skip
