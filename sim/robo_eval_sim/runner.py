"""How the simulated half of a plan is played in parallel and lands in the log."""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from robo_eval.agents.confined import digest_of
from robo_eval.core import spread
from robo_eval.core.confined import Confined, can_fork, wait_for
from robo_eval.core.episode import Episode
from robo_eval.core.errors import (
    InputError,
    InterruptedRunError,
    PlanError,
    RoboEvalError,
)
from robo_eval.core.kinds import EndReason, FaultBy, Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import (
    PlannedEpisode,
    attempts_of,
    base_id_of,
    count_unscored,
    lost_trials,
    remaining,
    schedule,
    simulated_id,
)
from robo_eval.core.series import due, next_block, series_of, shortened
from robo_eval.core.stop_signals import StopFlag, stop_signals
from robo_eval.core.task import NAMESPACE
from robo_eval.log.directory import TRACES, TrialDirectory
from robo_eval.log.files import write_atomically
from robo_eval.log.planned_row import declared, row_for
from robo_eval.log.provenance import cores, software
from robo_eval.log.store import EpisodeStore
from robo_eval.log.trace_folder import trace_digest
from robo_eval.metrics.scoring import SCORE_VERSION
from robo_eval.metrics.tasks import axes_of, with_novelty
from robo_eval_sim.play import Stage, trace_uri
from robo_eval_sim.probe import Step, probe
from robo_eval_sim.worker import WORDS, WORLD_LIMIT_S, Worker, limits_of

CHUNK: Final = 8
"""Most episodes a worker plays between two commits: what a kill can cost in repeated work."""
_PHYSICAL: Final = frozenset({Side.TWIN, Side.REAL})
_POOL_FROM: Final = 12
"""From how many episodes on starting worker processes (about a second) pays."""
_COMMIT_EVERY_S: Final = 0.1
"""How long an episode that ended may wait for its commit when nobody else is waiting."""
_DIED: Final = "the process playing it died"
_DIED_IN_TRIAL: Final = f"{_DIED}; `robo-eval resume` plays its whole trial again"
_AHEAD: Final = 8
"""With fewer episodes left a worker is given more, so that it need not wait for them."""

Progress = Callable[[int, int, Episode], None]
"""Called after each commit with episodes done, episodes planned, and the newest row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run ended.

    Attributes:
        planned: Episodes the plan asks for.
        done: Episodes whose attempts are over: scored, or out of retries.
        unscored: Of those, the ones without a score.
        played: Attempts played by this call.
        seconds: Wall time of this call.
    """

    planned: int
    done: int
    unscored: int
    played: int
    seconds: float


def default_jobs() -> int:
    """Worker processes used when nobody says how many: the cores this process may use."""
    return cores()


def check_plan(plan: TrialPlan) -> list[str]:
    """Build each environment once, and have each policy give one action on each task.

    What cannot be made or does not fit is refused before a run. The episodes of a run play with
    environments and policies of their own, so nothing of this is in their results.

    Returns:
        Remarks, a line each.

    Raises:
        RoboEvalError: If a policy or an environment of the plan cannot be made, or a policy gives
            no action that its task takes.
    """
    nominal = {c.task: c for c in reversed(list(plan.conditions()))}
    first: dict[object, PlannedEpisode] = {}
    meetings: dict[tuple[int, int], PlannedEpisode] = {}
    for p in schedule(plan, Side.SIM):
        mode = plan.policies[p.policy].action_mode
        begins = p.trial and p.trial.onset_tick
        key = (p.condition.task, p.condition.level, p.condition.novelty, mode, p.way, begins)
        first.setdefault(key, p)
        if p.index == 0 and (p.trial or p.condition == nominal[p.condition.task]):
            meetings.setdefault((p.policy, p.condition.task), p)
    ours: list[PlannedEpisode] = []
    others: list[PlannedEpisode] = []
    for planned in first.values():
        is_ours = plan.tasks[planned.condition.task].env.startswith(NAMESPACE)
        (ours if is_ours else others).append(planned)
    stage = Stage(plan, "", Path())
    try:
        for planned in ours:
            stage.environment(planned)
    finally:
        stage.close()
    return _probed(plan, others, [meetings[key] for key in sorted(meetings)])


def _probed(
    plan: TrialPlan, worlds: Sequence[PlannedEpisode], meetings: Sequence[PlannedEpisode]
) -> list[str]:
    """Build environments of somebody else, and ask policies, where they can do no harm."""
    limits_s = {**limits_of(plan), None: WORLD_LIMIT_S}
    process = Confined(probe, plan, worlds, meetings, forks=can_fork())
    step = Step("tasks")
    remarks: list[str] = []
    try:
        while wait_for(process, limits_s[step.asked]):
            found = process.pipe.recv()
            if isinstance(found, RoboEvalError):
                raise found
            if found is None:
                return remarks
            if isinstance(found, Step):
                step = found
            else:
                remarks.append(found)
        problem = f"{step.problem or WORDS[step.asked]} within {limits_s[step.asked]:g} s"
        remedy = "; if it needs longer, raise decision_timeout_s" if step.asked is not None else ""
        raise PlanError(f"{step.where}: {problem}{remedy}")
    except EOFError as err:
        verb = "made" if step.asked is None else "asked"
        raise PlanError(f"{step.where}: the process that {verb} it ended") from err
    finally:
        process.end()


def run_simulated(
    trial: TrialDirectory,
    *,
    jobs: int | None = None,
    ray: str | None = None,
    on_progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> RunResult:
    """Play every simulated episode of a trial that has no scored attempt yet.

    Where the plan has a physical side, simulated episodes are the partners of what was played
    there: each starts from the state its physical episode really started in.

    Rows are committed as episodes end; a killed run is continued by calling this again, and
    ends with the log of an undisturbed one. A trial with an onset of which an earlier call lost an
    episode, because its process died, is played again whole, as a new attempt. A simulated episode
    whose trace is gone or damaged is played again from its seed; its row stays, and the trace is
    put back if it is the one that the row names. Policies play in processes of their own. One that
    does not answer within the plan's `decision_timeout_s` is ended with its process, and its
    episode is a fault by the policy.

    Args:
        trial: The trial directory; it is locked while the run lasts.
        jobs: Worker processes; none means one per core.
        ray: Address of a Ray cluster that plays instead, `auto` or `host:port`; its nodes need this
            package, and the modules of the plan's policies.
        on_progress: Called after each commit.
        say: Told in one line what a signal does, and what became of damaged traces.

    Raises:
        InputError: If the trial was imported, or a policy or level is not the one logged so far.
        InterruptedRunError: On SIGINT, after the episodes under way; on a second one, on SIGTERM
            or SIGHUP, at once. What ended was committed.
        TrialDirectoryError: If another process runs in this directory, or it cannot be written.
    """
    if trial.plan.imported is not None:
        raise InputError(
            f"{trial.path}: its episodes were imported from {trial.plan.imported.file}; there is"
            " nothing to play"
        )
    started = time.perf_counter()
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store, stop_signals() as stop:
        physical = set(trial.plan.sides) & _PHYSICAL
        is_matched = bool(physical)
        planned = partners(trial.plan, store) if is_matched else schedule(trial.plan, Side.SIM)
        _check_policies(trial, store)
        jobs = jobs or (default_jobs() if ray is None else spread.cluster_cores(ray))
        _restore_traces(trial, store, planned, default_jobs() if ray else jobs, stop, say)
        about = trial, store, jobs, stop, on_progress, len(planned), say
        run = _Run(*about) if ray is None else _OnCluster(*about, ray=ray)
        run.skip(sum(episode.side is not Side.SIM for episode in store.episodes()))
        _check_levels(trial, store, run.due(planned))
        try:
            if lost := lost_trials(planned, run.attempts):
                run.play(lost)
            while todo := run.due(planned):
                run.play(todo)
        finally:
            run.end()
        plan = shortened(trial.plan, series_of(trial.plan, run.attempts))
        if plan is not trial.plan and not is_matched:
            planned = schedule(plan, Side.SIM)
        unscored = count_unscored(planned, run.attempts)
        is_open = any(
            due(trial.plan, side, attempts_of(store.episodes(), side)) for side in physical
        )
        trial.write_manifest(status="interrupted" if is_open else "complete", store=store)
    return RunResult(
        planned=len(planned),
        done=len(planned),
        unscored=unscored,
        played=run.played,
        seconds=time.perf_counter() - started,
    )


def partners(plan: TrialPlan, store: EpisodeStore) -> list[PlannedEpisode]:
    """The simulated half of the pairs whose physical half was scored, in the order it was.

    Args:
        plan: The locked plan.
        store: Its rows.
    """
    planned = {p.base_id: p for side in _PHYSICAL for p in schedule(plan, side)}
    found = []
    for episode in store.episodes():
        match = planned.get(base_id_of(episode.episode_id, episode.attempt))
        if match is None or episode.pair_id is None or not episode.end_reason.is_scored:
            continue
        control = match.control_id
        found += [
            replace(
                match,
                base_id=simulated_id(match.base_id, match.side, way),
                control_id=control and simulated_id(control, match.side, way),
                side=Side.SIM,
                pair_id=episode.pair_id,
                start=episode.initial_state or None,
                way=way,
            )
            for way in plan.ways(Side.SIM)
        ]
    return found


def _check_policies(trial: TrialDirectory, store: EpisodeStore) -> None:
    """Refuse to add episodes of a policy that is not the one logged so far."""
    logged: dict[str, str] = {}
    for episode in store.episodes():
        logged[episode.policy] = episode.policy_digest
    for entry in trial.plan.policies:
        if entry.name not in logged:
            continue
        digest = digest_of(entry, trial.plan.decision_timeout_s)
        if logged[entry.name] != digest:
            raise InputError(
                f"{trial.path}: policy {entry.name!r} is not the one of the logged episodes: its"
                f" digest was {logged[entry.name][:12]}, now it is {digest[:12]}; start a new trial"
            )


def _check_levels(
    trial: TrialDirectory, store: EpisodeStore, todo: Sequence[PlannedEpisode]
) -> None:
    """Refuse to add episodes of a level that behaves otherwise than it did in those logged."""
    logged = {
        (e.task, e.level, e.difficulty, e.profile, with_novelty("", axes_of(e.novelty))): e
        for e in store.episodes()
        if e.behaviour is not None
    }
    stage = Stage(trial.plan, trial.plan_digest, trial.path)
    try:
        for condition, planned in {p.condition: p for p in todo}.items():
            task = trial.plan.tasks[condition.task]
            word = condition.difficulty and condition.difficulty.value
            profile = None if condition.level is None else task.profile.value
            novelty = with_novelty("", dict(condition.novelty))
            known = logged.get((task.env, condition.level, word, profile, novelty))
            now = declared(stage.environment(planned)) if known else {}
            if known and now.get("behaviour", known.behaviour) != known.behaviour:
                level = "" if profile is None else f" level {condition.level} {word} ({profile})"
                made = ", ".join(filter(None, (known.software, known.engine, known.numerics)))
                raise InputError(
                    f"{trial.path}: {task.env}{level} behaves otherwise than in the logged"
                    f" episodes: {str(known.behaviour)[:12]}, now {now['behaviour'][:12]}; start a"
                    f" new trial, or go on with what they were played with: {made}"
                )
    finally:
        stage.close()


class Players(spread.Crew[PlannedEpisode, Episode]):
    """Worker processes that play episodes of a plan.

    Args:
        plan: The plan.
        plan_digest: Its SHA-256.
        folder: Where traces go, in `traces/`.
        jobs: Most workers.
        forks: Whether a single worker may be a copy of this process.
    """

    ahead = _AHEAD

    def __init__(
        self, plan: TrialPlan, plan_digest: str, folder: Path, jobs: int, *, forks: bool = True
    ) -> None:
        super().__init__()
        self.look_s = max(0.02, min(_COMMIT_EVERY_S, plan.decision_timeout_s / 4))
        self._plan = plan
        self._plan_digest = plan_digest
        self._folder = folder
        self._jobs = jobs
        self._forks = forks
        self._due_s = 0.0
        self._is_stopping = False
        self._digests: dict[str, str] = {}
        self._begun: dict[str, list[Episode]] = {}

    def play(self, todo: Sequence[PlannedEpisode]) -> None:
        """Play episodes in worker processes, and commit them as they end."""
        jobs = self._jobs if len(todo) >= _POOL_FROM else 1
        chunks = deque(_chunks(todo, jobs))
        try:
            self._check_stop()
            for _ in self.do(chunks, jobs):
                if len(self.ended) >= CHUNK or time.monotonic() >= self._due_s:
                    self._commit()
                self._check_stop()
                if self._is_stopping:
                    chunks.clear()
        finally:
            self._commit()
        self._check_stop()

    def hire(self, *, is_alone: bool) -> Worker:
        """A new worker."""
        forks = self._forks and is_alone
        return Worker(self._plan, self._plan_digest, self._folder, forks=forks)

    def lose(self, worker: Worker, problem: tuple[FaultBy, str] | None) -> None:  # type: ignore[override]
        """Say of the episode under way what is known."""
        planned = worker.todo.popleft()
        told = worker.beat.so_far()
        self.ended.append((planned, self._unfinished(worker, planned, problem, told)))
        # What the policy knew of its trial is gone, and with it the rest of the trial.
        if planned.trial is None:
            return
        if problem is not None:
            problem = (
                problem[0],
                f"its trial ended in episode {planned.trial.episode}: {problem[1]}",
            )
        told = {"start_ns": time.time_ns(), "ticks": 0, "duration_s": 0.0}
        while worker.todo and worker.todo[0].series == planned.series:
            rest = worker.todo.popleft()
            self.ended.append((rest, self._unfinished(worker, rest, problem, told)))

    def _unfinished(
        self,
        worker: Worker,
        planned: PlannedEpisode,
        problem: tuple[FaultBy, str] | None,
        told: Mapping[str, float],
    ) -> Episode:
        """The row of an episode whose process was ended, or died."""
        entry = self._plan.policies[planned.policy]
        if entry.name not in self._digests:
            self._digests[entry.name] = digest_of(entry, self._plan.decision_timeout_s)
        by, detail = problem or (None, _DIED if planned.trial is None else _DIED_IN_TRIAL)
        return row_for(
            planned,
            self._plan,
            self._plan_digest,
            policy_digest=self._digests[entry.name],
            episode_return=None,
            quality=None,
            success=None,
            score_version=SCORE_VERSION,
            end_reason=EndReason.FAULT if by else EndReason.LOST,
            end_detail=detail,
            fault_by=by,
            uninterrupted_actions=told["ticks"],
            software=software(),
            **worker.declared.get(planned.condition, {}),
            **told,
        )

    def _taken(self) -> list[Episode]:
        """The rows of the episodes that have ended since; those of a trial once all are there.

        A run that ends in the middle of a trial plays it again from its first episode.
        """
        ended, self.ended = self.ended, []
        rows = []
        for planned, row in ended:
            own = self._begun.setdefault(planned.series, [])
            own.append(row)
            if planned.trial is None or len(own) == planned.trial.episodes:
                rows += self._begun.pop(planned.series)
        return rows

    def _commit(self) -> None:
        """Take care of the episodes that have ended."""

    def _check_stop(self) -> None:
        """Raise, or let the workers stop, if that was asked for."""


class Portion(NamedTuple):
    """Episodes of a plan that one node of a cluster plays.

    Attributes:
        plan: The plan.
        plan_digest: Its SHA-256.
        todo: The episodes.
        folder: Where modules of the plan's policies are looked for, if the node has it.
    """

    plan: TrialPlan
    plan_digest: str
    todo: Sequence[PlannedEpisode]
    folder: str


def play_portion(portion: Portion) -> tuple[list[Episode], dict[str, bytes]]:
    """Play episodes on the node this runs on.

    Returns:
        Their rows, and the content of each trace by what its row calls it.
    """
    if Path(portion.folder).is_dir():
        os.chdir(portion.folder)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / TRACES).mkdir()
        # A copy of a node's process, which has threads, would not work.
        crew = Players(portion.plan, portion.plan_digest, folder, 1, forks=False)
        try:
            crew.play(portion.todo)
        finally:
            crew.end()
        rows = [row for _, row in crew.ended]
        uris = [row.trace_uri for row in rows if row.trace_uri is not None]
        return rows, {uri: (folder / uri).read_bytes() for uri in uris}


class _Run(Players):
    """One pass over the episodes that are still to do."""

    def __init__(
        self,
        trial: TrialDirectory,
        store: EpisodeStore,
        jobs: int,
        stop: StopFlag,
        on_progress: Progress | None,
        planned: int,
        say: Callable[[str], None] | None,
        *,
        folder: Path | None = None,
    ) -> None:
        super().__init__(trial.plan, trial.plan_digest, folder or trial.path, jobs)
        self._trial = trial
        self._store = store
        self._stop = stop
        self._on_progress = on_progress
        self._planned = planned
        self._say = say
        self._others = 0
        self.attempts = attempts_of(store.episodes(), Side.SIM)
        self.played = 0

    def skip(self, rows: int) -> None:
        """Leave rows of another side out of what is reported as progress."""
        self._others = rows

    def due(self, planned: Sequence[PlannedEpisode]) -> Sequence[PlannedEpisode]:
        """What to play next: all that is left, or as much as the stopping rule wants to see."""
        plan = self._trial.plan
        todo = remaining(planned, self.attempts, retries=plan.retries)
        return next_block(plan, todo, self.attempts)

    def _commit(self) -> None:
        self._due_s = time.monotonic() + _COMMIT_EVERY_S
        episodes = self._taken()
        if not episodes:
            return
        self._store.append(episodes)
        self.played += len(episodes)
        for episode in episodes:
            self._digests[episode.policy] = episode.policy_digest
            self.attempts[base_id_of(episode.episode_id, episode.attempt)].append(
                episode.end_reason
            )
        if self._on_progress is not None:
            self._on_progress(len(self._store) - self._others, self._planned, episodes[-1])

    def _check_stop(self) -> None:
        """Let the episodes under way end, and begin no other; or raise, if there are none left."""
        if self._stop.signal_name is None:
            return
        if not self._stop.is_now and any(worker.todo for worker in self.workers):
            if not self._is_stopping and self._say is not None:
                self._say("stopping after this episode; once more to stop now")
            self._is_stopping = True
            for worker in self.workers:
                worker.stop()
            return
        self._commit()
        self._trial.write_manifest(status="interrupted", store=self._store)
        raise InterruptedRunError(
            f"stopped by {self._stop.signal_name} after {len(self._store) - self._others} of"
            f" {self._planned} episodes; go on with: robo-eval resume {self._trial.path}"
        )


class _OnCluster(_Run):
    """Has the nodes of a Ray cluster play; rows and traces are written here alone."""

    def __init__(self, *given: Any, ray: str) -> None:
        super().__init__(*given)
        self._ray = ray

    def play(self, todo: Sequence[PlannedEpisode]) -> None:
        """Play episodes on the cluster, and commit them as its nodes send them."""
        chunks = _chunks(todo, max(2, self._jobs))
        portions = [Portion(self._plan, self._plan_digest, one, str(Path.cwd())) for one in chunks]
        try:
            for portion, (rows, traces) in spread.done(
                portions, play_portion, ray=self._ray, idle=self._check_stop
            ):
                for uri, content in traces.items():
                    write_atomically(self._folder / uri, content, durable=False)
                self.ended += zip(portion.todo, rows, strict=True)
                self._commit()
        finally:
            self._commit()
        self._check_stop()


class _Again(_Run):
    """Plays episodes once more for the sake of their traces, and adds no row."""

    def restore(self, rows: Mapping[str, Episode], todo: Sequence[PlannedEpisode]) -> list[str]:
        """Put traces back that are those their rows name; returns the ids of the others."""
        self._rows = rows
        self._different: list[str] = []
        try:
            self.play(todo)
        finally:
            self.end()
        return self._different

    def _commit(self) -> None:
        for episode in self._taken():
            row = self._rows.get(episode.episode_id)
            if row is None:
                continue
            if episode.trace_uri is None or episode.trace_sha256 != row.trace_sha256:
                self._different.append(episode.episode_id)
                continue
            (self._folder / episode.trace_uri).replace(self._trial.path / episode.trace_uri)


def _restore_traces(
    trial: TrialDirectory,
    store: EpisodeStore,
    planned: Sequence[PlannedEpisode],
    jobs: int,
    stop: StopFlag,
    say: Callable[[str], None] | None,
) -> None:
    """Play simulated episodes again whose trace is missing, empty or not the one of its row.

    The log only grows: a row stays as it is, and only the trace it names is put back.
    """
    damaged = {row.episode_id: row for row in store.episodes() if _lacks_trace(trial.path, row)}
    simulated = {p.base_id: p for p in planned}
    todo = []
    for row in damaged.values():
        match = simulated.get(base_id_of(row.episode_id, row.attempt))
        if row.side is Side.SIM and match is not None:
            todo.append(replace(match, attempt=row.attempt))
    n_damaged = len(todo)
    # Of a trial every episode is played again, for what the policy remembers.
    again = dict.fromkeys((one.series, one.attempt) for one in todo if one.trial)
    todo = [one for one in todo if not one.trial] + [
        replace(one, attempt=attempt)
        for series, attempt in again
        for one in planned
        if one.series == series
    ]
    tell = say or (lambda _line: None)
    if todo:
        with tempfile.TemporaryDirectory(prefix=".again-", dir=trial.path) as folder:
            players = _Again(trial, store, jobs, stop, None, len(planned), say, folder=Path(folder))
            players.skip(sum(episode.side is not Side.SIM for episode in store.episodes()))
            (Path(folder) / TRACES).mkdir()
            different = players.restore(damaged, todo)
        if n := n_damaged - len(different):
            tell(
                f"traces that were missing or damaged: {n}, made again from the seeds, as they were"
            )
        for episode_id in different:
            tell(
                f"{damaged[episode_id].trace_uri}: is missing or damaged and stays so: its episode"
                " plays differently now"
            )
    played = {p.episode_id for p in todo}
    for row in damaged.values():
        if row.episode_id not in played:
            tell(
                f"{row.trace_uri}: is missing or damaged and stays so: only simulated episodes of"
                " the plan are played again"
            )


def _lacks_trace(trial: Path, row: Episode) -> bool:
    """Whether the trace a row names is missing, empty or another one."""
    if row.trace_uri is None:
        return False
    if row.side is Side.SIM and row.trace_uri != trace_uri(row.episode_id):
        return False  # not written by a run; `verify` says more
    try:
        return trace_digest(trial / row.trace_uri) != row.trace_sha256
    except OSError:
        return True


def _chunks(todo: Sequence[PlannedEpisode], jobs: int) -> Iterator[list[PlannedEpisode]]:
    """Episodes of one cell together, so that each of several workers builds an environment once.

    The order a plan asks for matters where a body warms up or an operator tires; simulated
    episodes depend on their seed alone, so they are regrouped. Those of a trial stay together.
    """
    if todo and todo[0].trial is not None:
        for _, own in groupby(todo, key=lambda planned: planned.series):
            yield list(own)
        return
    if jobs == 1:
        for first in range(0, len(todo), CHUNK):
            yield list(todo[first : first + CHUNK])
        return
    size = max(1, min(CHUNK, len(todo) // (jobs * 4)))
    cells: dict[object, list[PlannedEpisode]] = defaultdict(list)
    for planned in todo:
        cells[planned.cell].append(planned)
    for cell in cells.values():
        for first in range(0, len(cell), size):
            yield cell[first : first + size]
