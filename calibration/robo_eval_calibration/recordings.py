"""What a robot did in an episode, as a simulator can be asked about it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, Side, strongest_side
from robo_eval.core.names import unknown_name
from robo_eval.core.schedule import (
    PlannedEpisode,
    base_id_of,
    environment_keywords,
    injections_of,
    schedule,
    task_and_policy,
)
from robo_eval.core.task import TaskSpec, task_of, tasks
from robo_eval.core.wording import counted
from robo_eval.log.directory import ROBOT_FILE
from robo_eval.log.trace_folder import trace_digest
from robo_eval.log.trace_reader import read_trace
from robo_eval_sim.arm.layout import ARM_SIZE

if TYPE_CHECKING:
    from robo_eval.core.episode import Episode
    from robo_eval.log.directory import TrialDirectory

Array = NDArray[np.float64]
LEAST_TICKS: Final = 10
"""A shorter recording says next to nothing of a robot."""
_WRENCH: Final = 6
"""Numbers that end an observation with force and torque."""
_LONGEST_GAP_S: Final = 0.5
"""After a longer one nobody knows whether states were lost or a clock was set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One episode, tick by tick.

    Attributes:
        id: Of the episode.
        env: Gymnasium id of the task.
        keywords: Keywords of the environment it was played with, without `constants`.
        constants: What the trial's plan plays simulated episodes with.
        side: Where it was played: `sim`, `twin` or `real`.
        robot: Name of the robot; of a simulated episode that of its constants.
        policy: Who acted.
        begun_ns: Start, UTC nanoseconds.
        stamp_ns: Of each state since the start, shape (T + 1,), nanoseconds.
        states: `TaskSpec.channels` at the end of each tick, from the start on, shape (T + 1, C);
            a row of NaN where none was recorded.
        commands: What was asked of the motors in each tick, shape (T, A).
        efforts: What the drives applied in each tick, shape (T, A); None where nobody measured it.
        wrench: Force (N) and torque (N m) at the wrist, shape (T + 1, 6), if it was measured.
        things: Poses of things, position and quaternion xyzw, shape (T + 1, K, 7), if seen.
        start: State the episode began in, as `reset(options={"state": ...})` takes it.
        known: By how much constants are known to be more in it than in others of its group, such as
            `cart_mass_kg` by a load that was hung on.
        group: Recordings of one group are fitted together; alone if it is empty.
        sha256: Digest of its trace.
        cut: Why it ends before its episode did; empty if it does not.
    """

    id: str
    env: str
    keywords: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)
    side: str
    robot: str = ""
    policy: str = ""
    begun_ns: int = 0
    stamp_ns: NDArray[np.int64]
    states: Array
    commands: Array
    efforts: Array | None = None
    wrench: Array | None = None
    things: Array | None = None
    start: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, float] = field(default_factory=dict)
    group: str = ""
    sha256: str = ""
    cut: str = ""

    @property
    def ticks(self) -> int:
        """Ticks from its start to its end."""
        return len(self.commands)

    @property
    def day(self) -> str:
        """Date it was begun on, UTC, as `2026-11-29`."""
        return datetime.fromtimestamp(self.begun_ns / 1e9, UTC).date().isoformat()

    def with_known(self, constants: Mapping[str, float]) -> dict[str, float]:
        """Constants with what is known to be more in it."""
        return {**constants, **{name: constants[name] + more for name, more in self.known.items()}}

    @property
    def content(self) -> str:
        """Digest of its numbers alone: a copy under another name has the same."""
        parts = (self.states, self.commands, self.efforts, self.wrench, self.things)
        data = [b"" if part is None else np.ascontiguousarray(part).tobytes() for part in parts]
        return hashlib.sha256(b"|".join(data)).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a trial holds to calibrate with.

    Attributes:
        task: What the episodes were played of.
        recordings: In the order of their ids, which is the same however many workers played.
        left_out: Why each other episode cannot serve, by its id.
        scored: Episodes whose success can be compared with simulation, recorded or not, with what
            was planned.
    """

    task: TaskSpec
    recordings: list[Recording]
    left_out: dict[str, str]
    scored: list[tuple[Episode, PlannedEpisode]] = field(default_factory=list)


def gathered(
    trial: TrialDirectory, env: str = "", told: Callable[[int, int], None] | None = None
) -> Gathered:
    """Read what a trial holds to calibrate with.

    Of the sides that were played the robot's counts, else the twin's, else simulation, which then
    stands in for a robot.

    Args:
        trial: The trial.
        env: Gymnasium id of the task; empty where the trial has one that can be calibrated.
        told: Called with how many episodes were looked at, and how many there are.

    Raises:
        InputError: If the trial has no such task, several and none is named, or no recording.
        TrialDirectoryError: If the trial or a trace cannot be read.
    """
    from robo_eval.log.store import EpisodeStore

    task = task_to_calibrate(trial, env)
    with EpisodeStore(trial.path, durable=False, read_only=True) as store:
        rows = sorted(store.episodes(), key=lambda row: row.episode_id)
    side = strongest_side({row.side.value for row in rows if row.task == task.env})
    planned = {one.base_id: one for one in schedule(trial.plan, side)}
    found: list[Recording] = []
    left_out: dict[str, str] = {}
    scored: list[tuple[Episode, PlannedEpisode]] = []
    for number, row in enumerate(rows):
        if told is not None:
            told(number, len(rows))
        episode = planned.get(base_id_of(row.episode_id, row.attempt))
        reason = _unfit(trial, row, episode, task, side)
        if episode is not None and not reason:
            if row.end_reason.is_scored:
                scored.append((row, episode))
            recording, reason = _read(trial, row, episode, task)
            if recording is not None and not reason:
                found.append(recording)
                continue
        left_out[row.episode_id] = reason
    if not found:
        reasons = Counter(left_out.values()).most_common(3)
        why = "; ".join(f"{counted(number, 'episode')} {reason}" for reason, number in reasons)
        raise InputError(
            f"{trial.path}: holds no recording of {task.env} to calibrate with:"
            f" {why or 'no episode was played'}"
        )
    return Gathered(task=task, recordings=found, left_out=left_out, scored=scored)


def task_to_calibrate(trial: TrialDirectory, env: str = "") -> TaskSpec:
    """The task of a trial whose constants can be found.

    Raises:
        InputError: If there is none, or there are several and none is named.
    """
    played = {one.env: task_of(one.env) for one in trial.plan.tasks}
    fit = {name: spec for name, spec in played.items() if spec is not None and spec.replay}
    if not fit:
        known = ", ".join(sorted(name for name, spec in tasks().items() if spec.replay))
        raise InputError(
            f"{trial.path}: none of its tasks can be calibrated; those that can: {known or 'none'}"
        )
    if env and env not in fit:
        raise unknown_name(f"task to calibrate in {trial.path}", env, fit)
    if len(fit) > 1 and not env:
        raise InputError(f"{trial.path}: has several tasks; choose one by --task: {', '.join(fit)}")
    return fit[env or next(iter(fit))]


def _unfit(
    trial: TrialDirectory,
    row: Episode,
    planned: PlannedEpisode | None,
    task: TaskSpec,
    side: Side,
) -> str:
    """Why an episode cannot serve; empty if it can."""
    is_played = row.end_reason.is_scored or row.end_reason is EndReason.NO_VERDICT
    if row.task != task.env:
        return f"of another task, {row.task}"
    if row.side is not side:
        return f"of side {row.side.value}, beside episodes of side {side.value}"
    if not is_played:
        return f"ended as {row.end_reason.value}"
    if row.calibration is not None:
        return f"played with calibration {row.calibration}, which show no robot"
    if planned is None:
        return "not of this plan, so that nobody knows what was played"
    if planned.condition.level or planned.condition.novelty:
        return "with novelty, which changes what is to be found"
    if injections_of(trial.plan, planned):
        return "with an injected fault"
    return ""


def _read(
    trial: TrialDirectory, row: Episode, planned: PlannedEpisode, task: TaskSpec
) -> tuple[Recording | None, str]:
    """The recording of an episode, and why it cannot serve if it cannot."""
    if row.trace_uri is None:
        return None, "without a trace (plan `traces: all`)"
    place = trial.path / row.trace_uri
    if not place.exists():
        return None, "whose trace is missing"
    if (found := trace_digest(place)) != (row.trace_sha256 or found):
        return None, "whose trace was changed since it was recorded"
    section, policy = task_and_policy(trial.plan, planned)
    keywords = environment_keywords(section, planned, policy)
    constants = keywords.pop("constants", {})
    common: dict[str, Any] = {
        "id": row.episode_id,
        "env": row.task,
        "keywords": keywords,
        "constants": constants,
        "side": row.side.value,
        "robot": row.robot or f"constants-{digest(constants)[:8]}",
        "policy": row.policy,
        "begun_ns": row.start_ns or 0,
        "start": row.initial_state,
        "sha256": found,
    }
    if row.side is Side.SIM:
        recording = _from_trace(place, task, common)
    else:
        if not (trial.path / ROBOT_FILE).exists():
            raise InputError(f"{trial.path / ROBOT_FILE}: is missing; restore it from a copy")
        recording, set_back = _from_bag(trial, row, task, common)
        if set_back:
            return None, f"whose stamps go back {counted(set_back, 'time')}: a clock was set"
    if recording.ticks < LEAST_TICKS:
        return None, f"of fewer than {LEAST_TICKS} ticks"
    return recording, ""


def _from_trace(place: Path, task: TaskSpec, common: dict[str, Any]) -> Recording:
    """What the policy of a simulated episode saw, and what it did."""
    trace = read_trace(place)
    is_whole = task.replay == "whole"
    actions, efforts = trace.actions, trace.joint_effort
    if task.pushes:
        asked, pushes = actions[:, 0], np.array([*task.pushes, [np.nan] * len(task.pushes[0])])
        actions = pushes[np.where(np.isfinite(asked), asked, -1).astype(int)]
    things = [column for column, name in enumerate(trace.frames) if task.is_thing(name)]
    mode = common["keywords"].get("obs_mode")
    # Pictures come before the numbers.
    seen = trace.observations[:, -ARM_SIZE:] if mode == "rgbd" else trace.observations
    poses, at = trace.pose_world_frame[:, things], 0
    for part in task.state if mode != "rgbd" else ():
        for number, column in enumerate(things):  # as it was seen, where it was
            if part.name == f"{trace.frames[column]}_position":
                poses[:, number, :3] = seen[:, at : at + part.size]
        at += part.size
    return Recording(
        **common,
        stamp_ns=trace.stamp_ns,
        states=channels_of(task, seen),
        commands=actions,
        # Of a task that is played by steps what drives applied counts, which nobody measured.
        efforts=efforts[1:] if is_whole and efforts is not None else None,
        wrench=seen[:, -_WRENCH:] if mode == "state+wrench" else None,
        things=poses if things else None,
    )


def _from_bag(
    trial: TrialDirectory, row: Episode, task: TaskSpec, common: dict[str, Any]
) -> tuple[Recording, int]:
    """What a robot or twin did, and how often its stamps go back."""
    from robo_eval_robot.adapter import load_adapter
    from robo_eval_robot.config import read_robot
    from robo_eval_robot.replayed import motion_of

    config = read_robot(trial.path / ROBOT_FILE)
    adapter = load_adapter(config, task.env, common["keywords"])
    motion = motion_of(
        trial.path / str(row.trace_uri), config, adapter, row.initial_state, ticks=row.ticks or 0
    )
    rows = [
        None if state is None else np.concatenate([state[part.name] for part in task.state])
        for state in motion.states
    ]
    known = np.array([state is not None for state in rows])
    seen = channels_of(task, np.array([state for state in rows if state is not None]))
    states = np.full((len(rows), seen.shape[1]), np.nan)
    states[known] = seen
    end, cut = _end(np.flatnonzero(known), task.tick_s)
    efforts = _table(motion.applied)
    # Before the first command nothing was asked for.
    commands = np.nan_to_num(_table(motion.asked))
    recording = Recording(
        **common,
        stamp_ns=np.array(motion.stamp_ns[: end + 1], dtype=np.int64),
        states=states[: end + 1],
        commands=commands[:end],
        # Where states are known and no effort is, nobody measured it.
        efforts=None if np.isnan(efforts[known[1:]]).any() else efforts[:end],
        cut=cut,
    )
    return recording, motion.set_back


def _end(known: NDArray[np.intp], tick_s: float) -> tuple[int, str]:
    """The last tick before a gap that is too long, and why it is the last."""
    gaps = np.flatnonzero(np.diff(known) * tick_s > _LONGEST_GAP_S)
    if not gaps.size:
        return int(known[-1]), ""
    last, after = int(known[gaps[0]]), int(known[gaps[0] + 1])
    return last, f"no state for {(after - last) * tick_s:.2f} s after tick {last}"


def _table(forces: Sequence[tuple[float, ...] | None]) -> Array:
    """Forces of each tick, NaN where none is known."""
    width = max((len(force) for force in forces if force is not None), default=0)
    return np.array([(np.nan,) * width if force is None else force for force in forces])


def channels_of(task: TaskSpec, rows: Array) -> Array:
    """`TaskSpec.channels` of observations or states, shape (T, C)."""
    found: Array = resolve_name(task.environment).channels(rows)
    return found
