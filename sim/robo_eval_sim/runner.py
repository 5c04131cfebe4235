"""How the simulated half of a plan is played in parallel and lands in the log."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from robo_eval.core.episode import Episode
from robo_eval.core.errors import CheckFailedError, InputError, InterruptedRunError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import (
    PlannedEpisode,
    attempts_of,
    base_id_of,
    count_unscored,
    remaining,
    schedule,
)
from robo_eval.core.series import next_block, series_of, shortened
from robo_eval.core.stop_signals import StopFlag, stop_signals
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.planned_row import row_for
from robo_eval.log.provenance import cores, software
from robo_eval.log.store import EpisodeStore
from robo_eval.metrics.scoring import SCORE_VERSION
from robo_eval_sim.play import Stage, declared

CHUNK: Final = 8
"""Most episodes a worker plays between two commits: what a kill can cost in repeated work."""
_PHYSICAL: Final = frozenset({Side.TWIN, Side.REAL})
_POOL_FROM: Final = 12
"""From how many episodes on starting worker processes (about a second) pays."""
_COMMIT_EVERY_S: Final = 0.1
"""How long an episode that ended may wait for its commit when nobody else is waiting."""
_MANAGER_END_S: Final = 10.0
"""How long the thread that feeds the workers may take to notice that they are gone."""
_AHEAD: Final = 2
"""Chunks queued per worker, so that none waits for the next."""

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


def check_plan(plan: TrialPlan) -> None:
    """Build each policy and each environment once, so that a bad name is refused before a run.

    Raises:
        RoboEvalError: If a policy or an environment of the plan cannot be made.
    """
    stage = Stage(plan, "", Path())
    try:
        for index in range(len(plan.policies)):
            stage.policy(index)
        seen: set[tuple[int, int | None]] = set()
        for planned in schedule(plan, Side.SIM):
            key = (planned.condition.task, planned.condition.level)
            if key not in seen:
                seen.add(key)
                stage.environment(planned)
    finally:
        stage.close()


def run_simulated(
    trial: TrialDirectory,
    *,
    jobs: int | None = None,
    on_progress: Progress | None = None,
) -> RunResult:
    """Play every simulated episode of a trial that has no scored attempt yet.

    Where the plan has a physical side, simulated episodes are the partners of what was played
    there: each starts from the state its physical episode really started in.

    Rows are committed as episodes end; a killed run is continued by calling this again, and
    ends with the log of an undisturbed one.

    Args:
        trial: The trial directory; it is locked while the run lasts.
        jobs: Worker processes; none means one per core.
        on_progress: Called after each commit.

    Raises:
        InputError: If the trial was imported, or a policy or level is not the one logged so far.
        InterruptedRunError: On SIGINT, SIGTERM or SIGHUP, after what ended was committed.
        TrialDirectoryError: If another process runs in this directory, or it cannot be written.
    """
    if trial.plan.imported is not None:
        raise InputError(
            f"{trial.path}: its episodes were imported from {trial.plan.imported.file}; there is"
            " nothing to play"
        )
    started = time.perf_counter()
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store, stop_signals() as stop:
        is_matched = bool(set(trial.plan.sides) & _PHYSICAL)
        planned = partners(trial.plan, store) if is_matched else schedule(trial.plan, Side.SIM)
        _check_policies(trial, store)
        run = _Run(trial, store, jobs or default_jobs(), stop, on_progress, len(planned))
        run.skip(sum(episode.side is not Side.SIM for episode in store.episodes()))
        _check_levels(trial, store, run.due(planned))
        while todo := run.due(planned):
            run.play(todo)
        plan = shortened(trial.plan, series_of(trial.plan, run.attempts))
        if plan is not trial.plan and not is_matched:
            planned = schedule(plan, Side.SIM)
        unscored = count_unscored(planned, run.attempts)
        trial.write_manifest(status="complete", store=store)
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
        found.append(
            replace(
                match,
                base_id=_simulated(match.base_id, match.side),
                control_id=match.control_id and _simulated(match.control_id, match.side),
                side=Side.SIM,
                pair_id=episode.pair_id,
                start=episode.initial_state or None,
            )
        )
    return found


def _simulated(base_id: str, side: Side) -> str:
    return f"{base_id.removesuffix(side.value)}{Side.SIM.value}"


def _check_policies(trial: TrialDirectory, store: EpisodeStore) -> None:
    """Refuse to add episodes of a policy that is not the one logged so far."""
    logged: dict[str, str] = {}
    for episode in store.episodes():
        logged[episode.policy] = episode.policy_digest
    stage = Stage(trial.plan, trial.plan_digest, trial.path)
    for index, entry in enumerate(trial.plan.policies):
        if entry.name in logged and logged[entry.name] != stage.policy(index).digest:
            raise InputError(
                f"{trial.path}: policy {entry.name!r} is not the one of the logged episodes: its"
                f" digest was {logged[entry.name][:12]}, now it is"
                f" {stage.policy(index).digest[:12]}; start a new trial"
            )


def _check_levels(
    trial: TrialDirectory, store: EpisodeStore, todo: Sequence[PlannedEpisode]
) -> None:
    """Refuse to add episodes of a level that behaves otherwise than it did in those logged."""
    logged = {
        (e.task, e.level, e.difficulty, e.profile): e
        for e in store.episodes()
        if e.behaviour is not None
    }
    stage = Stage(trial.plan, trial.plan_digest, trial.path)
    try:
        for condition, planned in {p.condition: p for p in todo}.items():
            task = trial.plan.tasks[condition.task]
            word = condition.difficulty and condition.difficulty.value
            profile = None if condition.level is None else task.profile.value
            known = logged.get((task.env, condition.level, word, profile))
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


class _Run:
    """One pass over the episodes that are still to do."""

    def __init__(
        self,
        trial: TrialDirectory,
        store: EpisodeStore,
        jobs: int,
        stop: StopFlag,
        on_progress: Progress | None,
        planned: int,
    ) -> None:
        self._trial = trial
        self._store = store
        self._jobs = jobs
        self._stop = stop
        self._on_progress = on_progress
        self._planned = planned
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

    def play(self, todo: Sequence[PlannedEpisode]) -> None:
        if self._jobs == 1 or len(todo) < _POOL_FROM:
            self._play_here(todo)
            return
        chunks = deque(_chunks(todo, self._jobs))
        while chunks:
            left = self._play_in_pool(chunks)
            suspects = [planned for chunk in left[: self._jobs * _AHEAD] for planned in chunk]
            self._play_suspects(suspects)
            chunks = deque(left[self._jobs * _AHEAD :])

    def _play_here(self, todo: Sequence[PlannedEpisode]) -> None:
        stage = Stage(self._trial.plan, self._trial.plan_digest, self._trial.path)
        ended: list[Episode] = []
        due = time.monotonic() + _COMMIT_EVERY_S
        try:
            for planned in todo:
                if self._stop.signal_name is not None:
                    break
                ended.append(stage.play(planned))
                if len(ended) >= CHUNK or time.monotonic() >= due:
                    self._commit(ended)
                    ended = []
                    due = time.monotonic() + _COMMIT_EVERY_S
        finally:
            stage.close()
            self._commit(ended)
        self._check_stop()

    def _play_in_pool(self, chunks: deque[list[PlannedEpisode]]) -> list[list[PlannedEpisode]]:
        """Play chunks in worker processes; returns those that a dying worker left unplayed."""
        running: dict[Future[list[Episode]], list[PlannedEpisode]] = {}
        pool = _started(_pool(self._trial, self._jobs))
        try:
            while chunks or running:
                while chunks and len(running) < self._jobs * _AHEAD:
                    chunk = chunks.popleft()
                    running[_submit(pool, _play_chunk, chunk)] = chunk
                # The time-out lets the main thread notice a signal.
                finished, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in finished:
                    self._commit(future.result())
                    del running[future]
                self._check_stop()
        except BrokenProcessPool:
            for future in list(running):
                if future.done() and future.exception() is None:
                    self._commit(future.result())
                    del running[future]
            return [*running.values(), *chunks]
        finally:
            _shut_down(pool)
        return []

    def _play_suspects(self, suspects: Sequence[PlannedEpisode]) -> None:
        """Play one by one what was under way when a worker died.

        Nobody can say in whose episode it died; in a process of its own each shows itself, so
        that only the culprit is logged as lost.
        """
        pool: ProcessPoolExecutor | None = None
        try:
            for planned in suspects:
                self._check_stop()
                pool = pool or _started(_pool(self._trial, 1))
                try:
                    rows = _submit(pool, _play_chunk, [planned]).result()
                except BrokenProcessPool:
                    rows = [self._lost(planned)]
                    _shut_down(pool)
                    pool = None
                self._commit(rows)
        finally:
            if pool is not None:
                _shut_down(pool)

    def _commit(self, episodes: Sequence[Episode]) -> None:
        if not episodes:
            return
        self._store.append(episodes)
        self.played += len(episodes)
        for episode in episodes:
            self.attempts[base_id_of(episode.episode_id, episode.attempt)].append(
                episode.end_reason
            )
        if self._on_progress is not None:
            self._on_progress(len(self._store) - self._others, self._planned, episodes[-1])

    def _lost(self, planned: PlannedEpisode) -> Episode:
        stage = Stage(self._trial.plan, self._trial.plan_digest, self._trial.path)
        return row_for(
            planned,
            self._trial.plan,
            self._trial.plan_digest,
            policy_digest=stage.policy(planned.policy).digest,
            start_ns=time.time_ns(),
            duration_s=0.0,
            ticks=0,
            episode_return=None,
            quality=None,
            success=None,
            score_version=SCORE_VERSION,
            end_reason=EndReason.LOST,
            end_detail="the process playing it died",
            software=software(),
        )

    def _check_stop(self) -> None:
        if self._stop.signal_name is None:
            return
        self._trial.write_manifest(status="interrupted", store=self._store)
        raise InterruptedRunError(
            f"stopped by {self._stop.signal_name} after {len(self._store) - self._others} of"
            f" {self._planned} episodes; go on with: robo-eval resume {self._trial.path}"
        )


def _chunks(todo: Sequence[PlannedEpisode], jobs: int) -> Iterator[list[PlannedEpisode]]:
    """Episodes of one cell together, so that a worker builds an environment once.

    The order a plan asks for matters where a body warms up or an operator tires; simulated
    episodes depend on their seed alone, so they are regrouped.
    """
    size = max(1, min(CHUNK, len(todo) // (jobs * 4)))
    cells: dict[object, list[PlannedEpisode]] = defaultdict(list)
    for planned in todo:
        cells[planned.cell].append(planned)
    for cell in cells.values():
        for first in range(0, len(cell), size):
            yield cell[first : first + size]


# Worker processes ------------------------------------------------------------------------------

_stage: Stage | None = None


def _pool(trial: TrialDirectory, jobs: int) -> ProcessPoolExecutor:
    # One thread per worker: numpy's own threads would fight over the same cores.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    return ProcessPoolExecutor(
        max_workers=jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(trial.plan, trial.plan_digest, trial.path, os.getpid()),
    )


def _started(pool: ProcessPoolExecutor) -> ProcessPoolExecutor:
    """The pool once its first worker answers.

    Raises:
        CheckFailedError: If workers cannot start, so that no episode is blamed for it.
    """
    try:
        _submit(pool, os.getpid).result()
    except BrokenProcessPool as err:
        _shut_down(pool)
        raise CheckFailedError(
            "worker processes cannot start; a script that runs trials needs"
            " `if __name__ == '__main__':`, or use jobs=1"
        ) from err
    return pool


def _submit(pool: ProcessPoolExecutor, task: Callable[..., Any], *given: Any) -> Future[Any]:  # noqa: ANN401
    """Submit with Ctrl-C held back: workers start here and inherit that, from their first moment.

    Ctrl-C reaches the whole process group; only the parent decides what it means.
    """
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(task, *given)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _start_worker(plan: TrialPlan, plan_digest: str, trial: Path, parent: int) -> None:
    global _stage
    _die_with(parent)
    _stage = Stage(plan, plan_digest, trial)


def _die_with(parent: int) -> None:
    """Ask the kernel to end this process when its parent dies, even by SIGKILL (Linux)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the kernel was asked
            os._exit(1)


def _play_chunk(chunk: Sequence[PlannedEpisode]) -> list[Episode]:
    if _stage is None:
        raise RuntimeError("worker was not started")
    return [_stage.play(planned) for planned in chunk]


def _shut_down(pool: ProcessPoolExecutor) -> None:
    workers = list((pool._processes or {}).values())  # noqa: SLF001 - no public way to end them
    manager: Any = pool._executor_manager_thread  # noqa: SLF001
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()
    if manager is not None:
        # Python wakes this thread when it exits, which fails if it is just closing its pipe.
        manager.join(_MANAGER_END_S)


# Signals ---------------------------------------------------------------------------------------
