"""The pieces of work a study consists of: each by itself, with a digest of all it depends on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from robo_eval.analysis.aiq import observation_entropy
from robo_eval.core.canonical import digest
from robo_eval.study import measure
from robo_eval.study.domain import Domain, Task
from robo_eval.study.entries import TaskTest, Test, loaded
from robo_eval.study.measure import Lesson
from robo_eval.study.sets import as_labelled
from robo_eval.study.suite import LearnerSection, PoolSection, Suite, Training

Kind = Literal["expert", "entropy", "pool", "alone", "mixture"]
Spent = PoolSection | LearnerSection | int
"""What is spent: a section of the suite, or a number of episodes."""
CHUNK: Final = 10
"""Policies of a pool in one piece of work."""
_TICK_S: Final = 1.5e-3
"""What a tick of deep Q-learning takes, more or less: it is not tried before."""
_TRIED: Final = 100
"""Examples and updates that say how long others will take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyJob:
    """A piece of work.

    Attributes:
        kind: What is done.
        tests: The test, or the two of a mixture.
        seed: Of the study.
        plan: What is spent: the section of the suite, or a number of episodes.
        number: Which training, or which chunk of policies.
        digest: SHA-256 of all that its result depends on.
    """

    kind: Kind
    tests: tuple[Test, ...]
    seed: int
    plan: Spent
    number: int = 0
    digest: str = ""

    def named(self) -> StudyJob:
        """The same with its digest."""
        own: dict[str, Any] = {
            "method": measure.METHOD,
            "kind": self.kind,
            "tests": [test.identity for test in self.tests],
            "seed": self.seed,
            "plan": self.plan if isinstance(self.plan, int) else self.plan.effort(),
            "number": self.number,
        }
        if self.kind == "expert":
            own["experts"] = [loaded(one).digest for one in self.tests[0].experts]
        return replace(self, digest=digest(own))

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.kind} {' and '.join(test.name for test in self.tests)}"


def first_jobs(suite: Suite, tests: list[Test]) -> list[StudyJob]:
    """What is done first: the experts of each test are compared, and work is timed."""
    return [_job("expert", suite, suite.expert_episodes, test) for test in tests]


def main_jobs(suite: Suite, tests: list[Test]) -> Iterator[StudyJob]:
    """Everything else, once the expert of each test is known."""
    pool, learner = suite.pool, suite.learner
    watched = learner.model_copy(update={"episodes": suite.entropy_episodes})
    for test in tests:
        if test.is_played:
            yield _job("entropy", suite, watched, test)
        for chunk in range(-(-pool.policies // CHUNK)):
            yield _job("pool", suite, pool, test, number=chunk)
        for number in range(learner.alone):
            yield _job("alone", suite, learner, test, number=number)
        for number in range(learner.trainings):
            yield _job("mixture", suite, learner, test, test, number=number)
    for place, first in enumerate(tests):
        for second in tests[place + 1 :]:
            for number in range(learner.trainings):
                yield _job("mixture", suite, learner, first, second, number=number)


def _job(
    kind: Kind,
    suite: Suite,
    plan: Spent,
    *tests: Test,
    number: int = 0,
) -> StudyJob:
    return StudyJob(kind=kind, tests=tests, seed=suite.seed, plan=plan, number=number).named()


def do(job: StudyJob) -> dict[str, Any]:
    """Do a piece of work; the same job gives the same result, wherever it is done.

    Returns:
        Plain data for JSON; `seconds` is how long it took.
    """
    started = time.perf_counter()
    # Sums of several threads are in another order, and small networks gain nothing by them.
    with threadpool_limits(1):
        found = _DOERS[job.kind](job)
    return {**found, "seconds": time.perf_counter() - started}


# The kinds of work -----------------------------------------------------------------------------


def _expert(job: StudyJob) -> dict[str, Any]:
    """Episodes of every expert, and how long those and learning take here."""
    test, episodes = job.tests[0], _episodes(job)
    domain: Domain = test.build()
    few = measure.lesson(domain, _TRIED, seed=job.seed)
    started = time.perf_counter()
    plan = LearnerSection(examples=_TRIED, steps=_TRIED)
    network = measure.learner(few, few, plan, 1.0, 0, seed=job.seed)
    step_s = (time.perf_counter() - started) / _TRIED
    # The labels of a set are its expert, which is never wrong.
    played, durations = [np.ones(1)], []
    if isinstance(test, TaskTest):
        played = []
        for one in test.task.experts:
            started = time.perf_counter()
            seed = measure.played_seed(job.seed)
            played.append(test.build(one).expert_performances(episodes, seed=seed))
            durations.append((time.perf_counter() - started) / episodes)
    if not test.is_played:
        if isinstance(domain, Task):
            domain = as_labelled(domain, _TRIED, seed=job.seed)
        started = time.perf_counter()
        measure.performance(domain, network, episodes, seed=job.seed)
        durations = [(time.perf_counter() - started) / episodes]
    return {
        "performances": [one.tolist() for one in played],
        "best": best_expert(played),
        # A small network answers as fast as the fastest expert.
        "episode_s": min(durations),
        "step_s": step_s,
    }


def best_expert(played: list[NDArray[np.float64]]) -> int:
    """Place of the first expert that is not clearly worse than the best one in the same episodes.

    Clearly is by more than two standard errors: which of equals is a little ahead is luck, and what
    networks learn should not hang on it.
    """
    means = [one.mean() for one in played]
    best = int(np.argmax(means))
    for place, one in enumerate(played):
        behind = played[best] - one
        # One episode has no standard error, so that only its equals are as good.
        error = behind.std(ddof=1) / len(behind) ** 0.5 if len(behind) > 1 else 0.0
        if behind.mean() <= 2.0 * error:
            return place
    return best


def _entropy(job: StudyJob) -> dict[str, Any]:
    """Entropy of what the learner sees once it is trained."""
    plan = job.plan
    assert isinstance(plan, LearnerSection)
    own = _lesson(job.tests[0], plan.examples, job.seed)
    network = measure.learner(own, own, plan, 1.0, 0, seed=job.seed)
    domain = own.domain
    assert isinstance(domain, Task)
    seen = domain.observations(network, plan.episodes, seed=measure.played_seed(job.seed))
    found = observation_entropy(seen.astype(np.float64))
    return {"bits": found.by_variable.tolist(), "total": found.total}


def _pool(job: StudyJob) -> dict[str, Any]:
    plan = job.plan
    assert isinstance(plan, PoolSection)
    own = _lesson(job.tests[0], plan.examples, job.seed)
    first = job.number * CHUNK
    found = [
        measure.policy(own, plan, number, seed=job.seed) for number in range(first, first + CHUNK)
    ]
    return {"sizes": [size for size, _ in found], "performances": [value for _, value in found]}


def _alone(job: StudyJob) -> dict[str, Any]:
    plan = job.plan
    assert isinstance(plan, LearnerSection)
    own = _lesson(job.tests[0], plan.examples, job.seed)
    return {"performance": measure.alone(own, plan, job.number, seed=job.seed)}


def _mixture(job: StudyJob) -> dict[str, Any]:
    plan = job.plan
    assert isinstance(plan, LearnerSection)
    first, second = job.tests
    is_same = first.identity == second.identity
    found = measure.mixture(
        _lesson(first, plan.examples, job.seed),
        # A test is mixed with itself by other examples of it.
        _lesson(second, plan.examples, job.seed, stream=int(is_same)),
        plan,
        job.number,
        seed=job.seed,
    )
    return {"first": found[0].tolist(), "second": found[1].tolist()}


_DOERS: Final = {
    "expert": _expert, "entropy": _entropy, "pool": _pool, "alone": _alone, "mixture": _mixture,
}  # fmt: skip


def _episodes(job: StudyJob) -> int:
    assert isinstance(job.plan, int)
    return job.plan


# What work costs -------------------------------------------------------------------------------


class Costs:
    """How long pieces of work take, from what was tried where they are done.

    Args:
        tried: Results of the first pieces of work, None where there is none yet.
    """

    def __init__(self, tried: Iterable[dict[str, Any] | None]) -> None:
        known = [one for one in tried if one is not None]
        self._episode_s = float(np.mean([one["episode_s"] for one in known] or [0.01]))
        self._step_s = float(np.median([one["step_s"] for one in known] or [2e-4]))

    def of(self, job: StudyJob) -> float:
        """Seconds of one processor."""
        plan, episode_s = job.plan, self._episode_s
        if isinstance(plan, int):
            return plan * episode_s * max(1, len(job.tests[0].experts))
        learned_s = self._learned_s(plan)
        if job.kind == "mixture":
            return len(measure.SHARES) * (learned_s + 2 * plan.episodes * episode_s)
        return (CHUNK if job.kind == "pool" else 1) * (learned_s + plan.episodes * episode_s)

    def _learned_s(self, plan: Training) -> float:
        """Seconds to train one network."""
        if plan.trainer == "es":
            return plan.steps * plan.batch * plan.plays * self._episode_s
        if plan.trainer == "dqn":
            return plan.steps * _TICK_S
        return plan.steps * plan.batch / 128 * self._step_s


# What a worker keeps ---------------------------------------------------------------------------

_LESSONS: dict[str, Lesson] = {}
_DOMAINS: dict[str, Domain] = {}


def _lesson(test: Test, count: int, seed: int, *, stream: int = 0) -> Lesson:
    """Examples of a test; a worker makes them once."""
    identity = digest(test.identity)
    key = f"{identity} {count} {seed} {stream}"
    if identity not in _DOMAINS:
        _DOMAINS[identity] = test.domain()
    if key not in _LESSONS:
        _LESSONS[key] = measure.lesson(_DOMAINS[identity], count, seed=seed, stream=stream)
    return _LESSONS[key]
