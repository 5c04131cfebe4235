"""The assessment of a trial directory: its numbers, its audits, and a level for each policy."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robo_eval.core import door
from robo_eval.core.errors import CheckFailedError, InputError, TrialDirectoryError
from robo_eval.core.kinds import UNPLAYED, Arm, Side, strongest_side
from robo_eval.core.names import unknown_name
from robo_eval.core.plain import plain
from robo_eval.gates.assessment import Assessment, assess
from robo_eval.gates.audits import Audit, audit, window_audit
from robo_eval.gates.axes.frontier import Frontier, Shift, frontier_of, shift
from robo_eval.gates.checklist import Checklist, checklist_of
from robo_eval.gates.evidence import readings_of
from robo_eval.gates.grounds import grounds_of
from robo_eval.gates.profile import Profile as LevelProfile
from robo_eval.gates.profile import Window, load_profile
from robo_eval.gates.recordings import Borne, autonomy_measured, borne_out, own_log
from robo_eval.log.directory import PREFLIGHT
from robo_eval.log.snapshot import read_snapshot
from robo_eval.metrics import registry
from robo_eval.metrics.calibrated import name_of
from robo_eval.metrics.trials import once_in_trials

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from robo_eval.log.directory import TrialDirectory
    from robo_eval.log.evidence import Evidence
    from robo_eval.metrics.config import MetricConfig
    from robo_eval.metrics.summary import TrialSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFindings:
    """What is said of a trial.

    Attributes:
        policies: The assessment of each policy.
        checklist: What others need to repeat it.
        frontier: How much of the work can be delegated to these policies, on the side they are
            judged on.
        profile: By which profile.
        config: With which settings of the metrics.
        shift: What became of the frontier since an earlier trial; None if none was compared.
        since: Which trial that was: its name, the digest of its plan, and the end of its log.
    """

    policies: tuple[Assessment, ...]
    checklist: Checklist
    frontier: Frontier
    profile: LevelProfile
    config: MetricConfig
    shift: Shift | None = None
    since: Mapping[str, object] | None = None

    def as_dict(self) -> dict[str, object]:
        """All of it as one JSON document."""
        return {
            "assessments": [one.as_dict() for one in self.policies],
            "frontier": plain(self.frontier),
            "shift": plain(self.shift),
            "checklist": plain(self.checklist),
            "since": plain(self.since),
            "profile": plain(self.profile),
            "settings": self.config.as_dict(),
            "packages": registry.packages(),
            "metric_files": registry.files(),
        }


def assess_trial(
    trial: TrialDirectory,
    profile: str | Path | LevelProfile = "robotics",
    *,
    policy: str | None = None,
    config: MetricConfig | None = None,
) -> tuple[Assessment, ...]:
    """Which level each policy of a trial has shown; see `examine_trial`."""
    found = examine_trial(trial, profile, config=config).policies
    names = [one.policy for one in found]
    if policy is not None and policy not in names:
        raise unknown_name("policy", policy, names)
    return tuple(one for one in found if policy in (None, one.policy))


def examine_trial(
    trial: TrialDirectory,
    profile: str | Path | LevelProfile = "robotics",
    *,
    config: MetricConfig | None = None,
    since: TrialDirectory | None = None,
) -> TrialFindings:
    """Which level each policy of a trial has shown, and all that is said beside it.

    Args:
        trial: The trial directory.
        since: An earlier trial, to compare the delegability frontier with.
        profile: Name of a profile, path of one, or a profile.
        config: Settings of the metrics; those of the plan if none are given.

    Raises:
        InputError: If profile, log or evidence cannot be read, there is no such policy, or the
            earlier trial is of another side or of other task families.
        CheckFailedError: If the log of the earlier trial does not verify.
        TrialDirectoryError: If a log cannot be read.
    """
    from robo_eval.analysis.trial import analyse_trial, load_metrics, scored_frame
    from robo_eval.log.evidence_read import read_evidence

    load_metrics(trial)  # a gate of the profile may read one
    asked = profile if isinstance(profile, LevelProfile) else load_profile(profile)
    table = scored_frame(trial, config=config)
    noted = read_evidence(trial.path)
    summary = analyse_trial(trial, config=config, frame=table)
    found = examine_summary(trial, summary, table, noted, asked)
    return found if since is None else _compared_with(since, found, table)


def _compared_with(
    since: TrialDirectory, found: TrialFindings, table: pd.DataFrame
) -> TrialFindings:
    """The same, with what became of the frontier since an earlier trial."""
    from robo_eval.analysis.trial import log_problem, scored_frame

    problem = log_problem(since)
    if problem is not None:
        raise CheckFailedError(f"{since.path}: the log does not verify: {problem}")
    config = found.config
    before = scored_frame(since, config=config)
    earlier = _judged(before)
    first, second = (strongest_side(set(one["side"])).value for one in (before, table))
    if first != second:
        raise InputError(
            f"{since.path}: its episodes are of side {first} and those of this trial of side"
            f" {second}; compare trials of one side"
        )
    families = sorted(map(str, set(earlier["family"]) ^ set(_judged(table)["family"])))
    if families and len(earlier):
        raise InputError(
            f"{since.path}: task family {families[0]!r} is in one of the trials only; compare"
            " trials of the same families"
        )
    change = shift(
        _frontier(since, before, found.profile, config), found.frontier,
        level=config.level, seed=config.seed,
    )  # fmt: skip
    manifest = since.manifest
    which: dict[str, object] = {
        "trial": since.plan.name,
        "plan_digest": since.plan_digest,
        "rows": 0 if manifest is None else manifest.rows,
        "head": "" if manifest is None else manifest.head,
    }
    return replace(found, shift=change, since=which)


def examine_summary(
    trial: TrialDirectory,
    summary: TrialSummary,
    table: pd.DataFrame,
    evidence: Evidence,
    profile: str | Path | LevelProfile = "robotics",
) -> TrialFindings:
    """`examine_trial` for callers that have analysed the trial already.

    Args:
        trial: The trial directory.
        summary: What `analyse_trial` found of the same log and evidence.
        table: What `scored_frame(trial)` returned.
        evidence: What was noted beside the episodes.
        profile: Name of a profile, path of one, or a profile.

    Raises:
        InputError: If the profile cannot be used.
    """
    asked = profile if isinstance(profile, LevelProfile) else load_profile(profile)
    names = list(dict.fromkeys(table["policy"]))
    audits, grounds = {}, {}
    for name in map(str, names):
        own = table[(table["policy"] == name) & (table["arm"] == Arm.MAIN.value)]
        borne = borne_out(trial, own)
        audits[name] = audits_of(
            trial, summary, own, evidence, name, borne=borne, window=asked.window
        )
        grounds[name] = grounds_of(trial, own, borne)
    readings = readings_of(
        summary, table, asked, evidence=evidence, audits=audits, grounds=grounds, plan=trial.plan
    )
    found = tuple(assess(one, asked) for one in readings)
    return TrialFindings(
        policies=found,
        checklist=checklist_of(trial, table, evidence, asked, summary.config, found),
        frontier=_frontier(trial, table, asked, summary.config),
        profile=asked,
        config=summary.config,
    )


def _frontier(
    trial: TrialDirectory, table: pd.DataFrame, profile: LevelProfile, config: MetricConfig
) -> Frontier:
    # Who helped is not known: no episode shows what can be delegated.
    known = table if trial.plan.says_help else table.iloc[:0]
    return frontier_of(_judged(known), profile.frontier, level=config.level, seed=config.seed)


def _judged(table: pd.DataFrame) -> pd.DataFrame:
    """Scored episodes of that side."""
    scored = table[(table["arm"] == Arm.MAIN.value) & table["quality"].notna()]
    return once_in_trials(scored[scored["side"] == strongest_side(set(scored["side"])).value])


def audits_of(
    trial: TrialDirectory,
    summary: TrialSummary,
    own: pd.DataFrame,
    evidence: Evidence,
    policy: str,
    *,
    borne: Borne,
    window: Window,
) -> tuple[Audit, ...]:
    """Whether the evidence on a policy is whole, and was fairly got.

    Args:
        trial: The trial directory.
        summary: Its numbers.
        own: Episodes of the policy, of the main arm.
        evidence: What was noted beside them.
        policy: Its name.
        borne: What its recordings bear out.
        window: How far outside the time of the episodes a note may be dated.
    """
    physical = own[own["side"] != Side.SIM.value]
    return (
        _log(summary),
        _scored(summary, policy),
        _evidence(trial, summary),
        window_audit(own, evidence, window, policy),
        _settings(trial, summary.config),
        own_log(trial, own, borne),
        autonomy_measured(trial, own),
        _one_policy(own),
        _sim_logs(own),
        _real_logs(own[own["side"] == Side.REAL.value]),
        _incident_reports(evidence, strongest_side(set(own["side"])).value),
        _calibration(trial, own),
        _manifest(trial),
        _limits(trial),
        _help(trial, physical if len(physical) else own),
    )  # fmt: skip


def _log(summary: TrialSummary) -> Audit:
    return audit(
        "log", "the log verifies", passes=bool(summary.verified),
        good="the rows are those that were logged", bad=summary.log_problem or "not verified",
    )  # fmt: skip


def _settings(trial: TrialDirectory, config: MetricConfig) -> Audit:
    """Whether metrics are computed as was agreed before: with others any gate could be passed."""
    from robo_eval.metrics.config import MetricConfig as Config

    good = f"those of the locked plan, {config.digest[:12]}"
    if trial.plan.imported is not None:  # whose plan says what was found, and agrees on nothing
        good = f"of an imported trial, {config.digest[:12]}"
    agreed = Config.of(trial.plan.metrics).digest
    return audit(
        "settings", "settings of the metrics were agreed before",
        passes=trial.plan.imported is not None or config.digest == agreed, good=good,
        bad=f"plan.yaml holds others ({agreed[:12]}) than those used ({config.digest[:12]});"
        " leave out --config",
    )  # fmt: skip


def _scored(summary: TrialSummary, policy: str) -> Audit:
    short = [one for one in summary.policies if one.policy == policy and not one.is_sayable]
    text = "; ".join(
        f"side {one.side}: {one.coverage.scored} of {one.coverage.expected} episodes"
        for one in short
    )
    return audit(
        "scored", "enough episodes have a score", passes=not short,
        good=f"at least {summary.config.min_coverage:.0%} on every side", bad=text,
    )  # fmt: skip


def _evidence(trial: TrialDirectory, summary: TrialSummary) -> Audit:
    first = next(iter(summary.findings), None)
    # Results are passed on; where the trial lies on this machine is not for others.
    where = "" if first is None else first.where.removeprefix(f"{trial.path}{os.sep}")
    more = f", and {len(summary.findings) - 1} more" if len(summary.findings) > 1 else ""
    return audit(
        "evidence", "the evidence fits the episodes", passes=first is None,
        good="no finding", bad="" if first is None else f"{where}: {first.text}{more}",
    )  # fmt: skip


def _incident_reports(evidence: Evidence, side: str) -> Audit:
    """Whether somebody kept a record of incidents on the side a policy is judged on."""
    bad = "no incidents.db and no incidents.csv"
    if "incidents" in evidence.files:
        bad = f"{Path(evidence.files['incidents']).name} says nothing of side {side}"
    return audit(
        "incident_reports", "incident reports", kind="missing",
        passes=evidence.incidents is not None and side not in evidence.silent,
        good=f"{len(evidence.incidents or ())} incidents on record",
        bad=bad,
    )  # fmt: skip


def _one_policy(own: pd.DataFrame) -> Audit:
    plans, digests = own["plan_digest"].nunique(), own["policy_digest"].nunique()
    what = [f"{digests} versions of the policy"] if digests > 1 else []
    what += [f"{plans} plans"] if plans > 1 else []
    first = own.drop_duplicates(["plan_digest", "policy_digest"])["episode_id"]
    return audit(
        "one_policy", "one version of policy and plan", passes=not what,
        good="one digest of each",
        bad=f"{' and '.join(what)} in episodes.db, from {', from '.join(first[:3])} on",
    )  # fmt: skip


def _sim_logs(own: pd.DataFrame) -> Audit:
    n = int(((own["side"] == Side.SIM.value) & own["quality"].notna()).sum())
    return audit(
        "sim_logs", "simulation logs", passes=n > 0, kind="missing",
        good=f"{n} scored episodes", bad="no scored episode in simulation",
    )  # fmt: skip


def _real_logs(real: pd.DataFrame) -> Audit:
    title = "execution logs of the robot"
    played = real[~real["end_reason"].isin(UNPLAYED)]
    if not len(played):
        return Audit(
            id="real_logs", title=title, status="missing", reason="no episode on a physical robot"
        )
    bare = int(played["trace_uri"].isna().sum())
    return audit(
        "real_logs", title, passes=bare == 0,
        good=f"{len(played)} episodes, each with its recording",
        bad=f"{bare} of {len(played)} episodes have no recording",
    )  # fmt: skip


def _calibration(trial: TrialDirectory, own: pd.DataFrame) -> Audit:
    """Whether snapshots are there, and fit the episodes they stand for."""
    kept = {entry.name: entry.file for entry in trial.plan.calibrations}
    none = {name for name, file in kept.items() if file is None}
    named = sorted({str(name) for name in own["calibration"].dropna()} - none)
    names = {name_of(name) for name in named}
    files = [path for path in trial.calibration_files if not names or path.stem in names]
    found = [
        problem for path in files
        if (problem := _unfit(path, own, is_named=bool(names), is_ours=path.stem in kept))
    ]  # fmt: skip
    # Of several that no episode names, one has to fit.
    is_unfit = bool(found) and (bool(names) or len(found) == len(files))
    good = named or [path.name for path in files]
    return audit(
        "calibration_snapshots", "calibration snapshots", passes=bool(good) and not is_unfit,
        good=", ".join(good[:3]), kind="fail" if is_unfit else "missing",
        bad=found[0] if is_unfit else "no episode names one, and calibration/ holds none",
    )  # fmt: skip


def _unfit(path: Path, own: pd.DataFrame, *, is_named: bool, is_ours: bool) -> str | None:
    """Why a snapshot does not fit the episodes played with it, and those they are compared with."""
    try:
        snapshot = read_snapshot(path)
    except InputError as err:  # others keep theirs in a form of their own
        return str(err).removeprefix(f"{path.parent}{os.sep}") if is_ours else None
    is_met = (own["side"] != Side.SIM.value) & own["quality"].notna()
    if is_named:
        is_played = own["calibration"].fillna("").map(name_of) == path.stem
        is_met = is_played | (is_met & own["task"].isin(own.loc[is_played, "task"]))
    for (task, robot), rows in own[is_met].fillna({"robot": ""}).groupby(["task", "robot"]):
        in_order = rows.sort_values("start_ns", na_position="first")
        stamps_ns = in_order["start_ns"].dropna().astype("int64").tolist()
        # Of those that came before the snapshot it may have been made.
        days = [datetime.fromtimestamp(ns / 1e9, UTC).date() for ns in stamps_ns[-1:]]
        day = max([snapshot.valid.from_, *days])
        for problem in snapshot.problems(task=str(task), robot=str(robot), day=day):
            return f"{path.name}: {problem} ({in_order['episode_id'].iloc[-1]})"
    return None


def _manifest(trial: TrialDirectory) -> Audit:
    name, title = "run_manifest", "run manifest"
    try:
        manifest = trial.manifest
    except TrialDirectoryError as err:
        return Audit(id=name, title=title, status="fail", reason=str(err))
    if manifest is None:
        return Audit(id=name, title=title, status="missing", reason="manifest.json is missing")
    return audit(
        name, title, passes=manifest.status == "complete",
        good=f"complete, {manifest.rows} rows", bad=f"the trial is {manifest.status}",
    )  # fmt: skip


def _limits(trial: TrialDirectory) -> Audit:
    """Whether the run showed beforehand that the robot's limits and stops were in force."""
    name, title = "limits_in_force", "safety limits in force"
    try:
        found: Any = door.json_of(door.bytes_of(trial.path / PREFLIGHT))
    except FileNotFoundError:
        return Audit(
            id=name, title=title, status="missing",
            reason=f"no {PREFLIGHT}, in which the run shows that the robot stops by itself",
        )  # fmt: skip
    except (OSError, ValueError) as err:
        return Audit(id=name, title=title, status="fail", reason=f"{PREFLIGHT}: {err}")
    problem = found.get("problem") if isinstance(found, dict) else "is not a JSON object"
    passed = isinstance(found, dict) and found.get("passed") is True
    return audit(
        name, title, passes=passed, good="the preflight passed",
        bad=f"{PREFLIGHT}: {problem or 'does not say that it passed'}",
    )  # fmt: skip


def _help(trial: TrialDirectory, played: pd.DataFrame) -> Audit:
    """Whether people kept out of what is scored; that help makes no success is no excuse."""
    if not trial.plan.says_help:
        return Audit(
            id="no_help", title="no teleoperation or human help", status="missing",
            reason="the import says nothing of interventions",
        )  # fmt: skip
    scored = played[played["quality"].notna()]
    helped = scored[scored["interventions"] > 0]
    return audit(
        "no_help", "no teleoperation or human help", passes=not len(helped),
        good="none in a scored episode",
        bad=f"{len(helped)} of {len(scored)} scored episodes, the first"
        f" {helped['episode_id'].iloc[0] if len(helped) else ''}",
    )  # fmt: skip
