"""Which autonomy level each policy has shown, and what is missing, in the words of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.gates.quantity import about
from robo_eval.page.words import count, joined, listed, sentence, spaced, thousands
from robo_eval.report.level_figures import LEAST_AXES, LEAST_DAYS, has_axes, has_days, kept
from robo_eval.report.level_frontier import frontier_note, frontier_text
from robo_eval.report.level_words import (
    COUNTED,
    Shown,
    amount,
    ends,
    in_words,
    shown,
    written,
)

if TYPE_CHECKING:
    from robo_eval.gates import Assessment, GateResult, Lacking
    from robo_eval.gates.axes.anchors import Axis
    from robo_eval.gates.axes.index import Index
    from robo_eval.gates.axes.progress import Escape, Progress
    from robo_eval.gates.trial import TrialFindings

_BODIES: Final = {
    Side.REAL.value: "on the robot",
    Side.TWIN.value: "on the twin",
    Side.SIM.value: "in simulation",
}
_ASKED: Final = {"at_least": "≥ ", "at_most": "≤ ", "above": "> ", "families": "≥ "}
_FEW: Final = 2
"""Policies up to which the main tables are unfolded."""
_MOST_PARTS: Final = 4
"""Numbers on the way to an axis that are named; the file of the assessment has all of them."""


def autonomy_of(
    findings: TrialFindings | None, *, places: Mapping[str, str] | None = None
) -> Autonomy | None:
    """What is shown of the autonomy levels; None if no policy was played on a robot or its twin.

    In simulation alone nearly every gate would be missing, which says nothing about the policy.

    Args:
        findings: What is said of the trial.
        places: Names of files and folders, and what to call them: where a trial lay says something
            about a machine, not about the trial.
    """
    if findings is None or all(one.side == Side.SIM.value for one in findings.policies):
        return None
    return Autonomy(findings=findings, places=places or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Autonomy:
    """The assessments of a trial; templates read them, and ask here for what needs words.

    Attributes:
        findings: What is said of the trial.
        places: Names of files and folders, and what to call them.
    """

    findings: TrialFindings
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def policies(self) -> Sequence[Assessment]:
        """The assessment of each policy."""
        return self.findings.policies

    @property
    def is_open(self) -> bool:
        """Whether the main tables are unfolded."""
        return len(self.policies) <= _FEW

    @property
    def how_to_read(self) -> list[str]:
        """How to read the section."""
        names = self.policies[0].name_of
        highest = max((step.level for one in self.policies for step in one.steps), default=0)
        text = [
            (
                f"Level that the evidence supports, {names(0)} to {names(highest)}. A gate reads"
                " the end of the interval that speaks against it, and what was not measured does"
                f" not pass. A level needs its own gates, those of the levels from {names(2)} on"
                " below it, and the audits; and no level is issued of tasks that are not fit to"
                " show one."
            )
        ]
        if any(one.side == Side.TWIN.value for one in self.policies):
            text.append(
                "AR_twin and S2S stand where gates ask for AR and S2R: what a twin showed is"
                " evidence of the twin, and the higher levels ask for episodes on a physical robot."
            )
        return text

    def written(self, text: str) -> str:
        """A text of the assessment as the page writes it."""
        return written(text, self.places)

    # Verdict -------------------------------------------------------------------------------------

    @staticmethod
    def where(one: Assessment) -> str:
        """Where the evidence was found."""
        return _BODIES[one.side]

    @staticmethod
    def headline(one: Assessment) -> str:
        """What is shown, what point values say, and what the evidence rests on."""
        grounds = one.readings.grounds
        rests_on = [f"the evidence: {', '.join(grounds)}"] if grounds else []
        return " ".join(map(sentence, (one.headline, *rests_on)))

    def verdict(self, one: Assessment) -> list[str]:
        """Why that is shown, and what else is to be said of the level, each as a sentence."""
        said = [sentence(self.written(one.reason))]
        if one.would_be is not None:
            needs = ["on a robot"] if one.side != Side.REAL.value else []
            if any(audit.status != "pass" for audit in one.readings.battery):
                needs.append("with tasks that are fit to show a level")
            said.append(f"Would be {one.name_of(one.would_be)} {joined(needs)}.")
        left_out = one.readings.left_out or one.readings.left_out_allowed
        return [*said, sentence(left_out)] if left_out else said

    def lines(self, found: Iterable[Lacking]) -> list[str]:
        """What is missing, each text once: several gates may ask for one thing."""
        efforts = {item.text: item.effort for item in found}
        return [sentence(self.written(f"{effort}: {text}")) for text, effort in efforts.items()]

    # Gates ---------------------------------------------------------------------------------------

    @staticmethod
    def gates(one: Assessment, *, counts: bool) -> list[dict[int, GateResult]]:
        """Each gate by level, in the order in which the levels bring them.

        Args:
            one: The assessment of a policy.
            counts: Whether those that decide are wanted, or those that are only reported.
        """
        rows: dict[str, dict[int, GateResult]] = {}
        for gate in one.gates:
            if gate.counts == counts:
                rows.setdefault(gate.id, {})[gate.level] = gate
        return list(rows.values())

    @staticmethod
    def found(gate: GateResult) -> Shown:
        """The evidence a gate read."""
        it = gate.found
        if gate.test == "families":
            return Shown("" if it.value is None else count(it.n, "family", "families"))
        note = "" if it.value is None else shown(it).note
        if note and ends(it):
            note += ", each one-sided" * gate.is_one_sided
        return Shown(_value(it), note, _rests_on(gate))

    @staticmethod
    def asked(gate: GateResult) -> str:
        """The threshold of a gate, with its direction."""
        if gate.test == "zero":
            return "none"
        if gate.test == "closure":
            return "shown"
        return f"{_ASKED[gate.test]}{amount(gate.threshold)}"

    def why(self, one: Assessment, by_level: Mapping[int, GateResult]) -> str:
        """The reason of the lowest level that is not passed, else of the highest that is."""
        gates = list(by_level.values())
        told = next((gate for gate in gates if gate.status != "pass"), gates[-1])
        is_same = len({gate.reason for gate in gates}) == 1
        return ("" if is_same else f"{one.name_of(told.level)}: ") + self.written(told.reason)

    # Axes, index and progress --------------------------------------------------------------------

    @property
    def axes_note(self) -> str:
        """Why a policy is not in the picture of the axes; empty if all are."""
        return self._left_out(has_axes, f"the axes: fewer than {LEAST_AXES} of them have a value")

    @property
    def days_note(self) -> str:
        """Why a policy is not in the picture over time; empty if all are."""
        return self._left_out(
            has_days,
            f"capability over time: checkpoints.csv has fewer than {LEAST_DAYS} days with all task"
            " families",
        )

    def _left_out(self, is_drawn: Callable[[Assessment], bool], what: str) -> str:
        names = [one.policy for one in self.policies if not is_drawn(one)]
        if not names:
            return ""
        who = "" if len(names) == len(self.policies) else f" for {joined(names)}"
        return f"There is no picture{who} of {what}."

    @property
    def has_kept(self) -> bool:
        """Whether a maintenance closure holds, which the picture over time shades."""
        return any(kept(one) for one in self.policies)

    shown = staticmethod(shown)

    @staticmethod
    def raw(axis: Axis) -> Shown:
        """What was measured for an axis."""
        it, unit = shown(axis.raw), axis.raw.unit
        has_unit = it.value and unit not in ("", "ratio")
        return it._replace(value=f"{it.value} {unit}") if has_unit else it

    @staticmethod
    def anchors(axis: Axis) -> str:
        """Raw values that count 0 and 1."""
        if axis.baseline is None or axis.expert is None:
            return "none"
        scale = ", log scale" if axis.scale == "log" else ""
        return f"{amount(axis.baseline)} to {amount(axis.expert)}{scale}"

    @staticmethod
    def made_of(axis: Axis) -> str:
        """What else was measured on the way to an axis."""
        texts = [
            f"{spaced(name)} {amount(found.value, found.unit)}"
            for name, found in axis.parts.items()
            if found.value is not None
        ]
        return listed(texts, _MOST_PARTS)

    def index(self, found: Index) -> list[str]:
        """The index in words, each a sentence."""
        weights = self.findings.profile.index.weights
        named = f"the weights “{weights}”" if isinstance(weights, str) else "weights of its own"
        if found.index.value is None:
            return [sentence(f"no index with {named}: {found.index.reason}")]
        text = [f"Index {in_words(found.index)} with {named}."]
        if found.adjusted.value is not None:
            even = "" if found.uniformity.value is None else amount(found.uniformity.value, "ratio")
            text.append(
                f"Adjusted for how uneven the axes are, uniformity {even}:"
                f" {in_words(found.adjusted)}."
            )
        return text

    @staticmethod
    def alternatives(found: Index) -> dict[str, Shown]:
        """The index with other weights; empty if none has a value, as the reason is told."""
        if all(other.value is None for other in found.alternatives.values()):
            return {}
        return {
            spaced(name) + " weights" * (not name.startswith("with")): shown(other)
            for name, other in found.alternatives.items()
        }

    @staticmethod
    def progress(found: Progress) -> dict[str, Shown]:
        """What is said of the progress of a task family, alike for all families."""
        known = {True: "yes", False: "not shown", None: "not known"}
        steps = f"{count(found.checkpoints, 'checkpoint')} on {count(found.days, 'day')}"
        if found.left_out:
            steps += f", {found.left_out} before people changed something"
        return {
            "kappa": shown(found.kappa),
            "gain per day": shown(found.kappa_time),
            "slope": shown(found.slope),
            "curvature": shown(found.mean_curvature),
            "speeds up": Shown(known[found.accelerates]),
            "keeps its pace": Shown(known[found.holds]),
            "steps": Shown(amount(found.steps), steps),
            "score": shown(found.score),
            "next step": _escape(found.escape),
        }

    # Delegation ----------------------------------------------------------------------------------

    @property
    def frontier_text(self) -> list[str]:
        """How much of the work can be delegated; empty if there is nothing to say."""
        return frontier_text(self.findings.frontier, len(self.policies))

    @property
    def frontier_note(self) -> str:
        """What the picture of the frontier shows."""
        return frontier_note(self.findings.frontier)


def _value(found: Estimate) -> str:
    if found.value is not None:
        return amount(found.value, found.unit)
    # Where nothing happened in the hours, they show one end and no point.
    if found.low is not None:
        return f"at least {amount(found.low, found.unit)}"
    return "" if found.high is None else f"at most {amount(found.high, found.unit)}"


def _rests_on(gate: GateResult) -> str:
    found = gate.found
    if not _value(found) or found.method in COUNTED:
        return ""
    noun = about(gate.reads).noun
    return count(found.n, noun) if noun else f"n = {thousands(found.n)}"


def _escape(found: Escape) -> Shown:
    parts = []
    if found.resources is not None:
        parts.append(f"{amount(found.resources)} resources")
    if found.days is not None:
        parts.append(f"{amount(found.days)} days")
    note = f"{'at most, ' * bool(parts)}to reach {amount(found.target)}"
    return Shown(", ".join(parts) or "nothing bounds it", note)
