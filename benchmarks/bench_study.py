"""How fast the analyses of agents and the training of pools are.

Run: .venv/bin/python benchmarks/bench_study.py

The last part, policies of a pool beside deep Q-learning of level 0, needs the extras `study` and
`train` and some five minutes; it is left out where they are not installed.
"""

from __future__ import annotations

import platform
import resource
import time
from collections.abc import Callable
from typing import Final

import gymnasium
import numpy as np

from robo_eval.analysis.acc import bootstrap
from robo_eval.analysis.aiq import Space, quotient_interval, space
from robo_eval.core.errors import MissingExtraError
from robo_eval.study.dqn import Learning, check_library, train_dqn
from robo_eval.study.entries import tests_of
from robo_eval.study.measure import lesson, performance, policy
from robo_eval.study.network import Architecture, Network
from robo_eval.study.suite import PoolSection, parse_suite
from robo_eval_sim.tasks.cartpole3d.layout import BALL_COUNT, PUSHES

AGENTS, ITEMS, RESAMPLES = 1000, 1000, 1000
TESTS, DIMENSIONS, EPISODES = 24, 10, 30
POLICIES: Final = 20
LEARNING = Learning(rate=3e-4, reward=200.0, temperature=(1.0, 0.1), checks=10)
TICKS = 100_000
SUITE = """
version: 1
name: level 0
tasks:
  - env: RoboEval/CartPole3D-v0
    name: level {level}
    each: {level: [0, 1]}
    experts: [balancer]
    observed: 36
"""


def timed(work: Callable[[], object]) -> float:
    """Wall time, seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def bench_acc() -> None:
    """Intervals of many agents over many items."""
    rng = np.random.default_rng(0)
    for levels in (20, ITEMS):
        difficulty = rng.integers(levels, size=ITEMS) / levels
        response = (rng.random((AGENTS, ITEMS)) < 1.0 - difficulty).astype(float)

        def work(response: np.ndarray = response, difficulty: np.ndarray = difficulty) -> None:
            for row in response:
                bootstrap(row, difficulty, resamples=RESAMPLES)

        print(
            f"ACC bootstrap, {AGENTS} agents, {ITEMS} items of {len(np.unique(difficulty))}"
            f" difficulties, {RESAMPLES} resamples: {timed(work):.1f} s, {peak_gib():.2f} GiB"
        )


def bench_quotient() -> None:
    """The interval of the quotient of an agent, in a made space."""
    suite = made_space()
    rng = np.random.default_rng(1)
    rows = [rng.beta(5, 2, EPISODES) for _ in range(TESTS)]
    took = timed(lambda: quotient_interval(suite, rows, resamples=RESAMPLES))
    print(
        f"quotient, {TESTS} tests in {suite.k} dimensions, {RESAMPLES} resamples: {took:.1f} s,"
        f" {peak_gib():.2f} GiB"
    )


def made_space() -> Space:
    """Tests in random directions."""
    rng = np.random.default_rng(0)
    at = np.abs(rng.normal(size=(TESTS, DIMENSIONS)))
    at /= np.linalg.norm(at, axis=1, keepdims=True)
    apart = np.sqrt(np.clip(1.0 - at @ at.T, 0.0, 1.0))
    np.fill_diagonal(apart, 0.0)
    return space(apart, rng.uniform(0.2, 1.0, TESTS), k=DIMENSIONS, d_max=1.0)


def bench_pool() -> None:
    """Policies of a pool beside deep Q-learning, on level 0."""
    level_0 = tests_of(parse_suite(SUITE, source="benchmark"))[0].with_expert(0)
    plan = PoolSection(steps=1200, episodes=20)
    started = time.perf_counter()
    taught = lesson(level_0.build(), plan.examples, seed=1)
    found = [policy(taught, plan, number, seed=1)[1] for number in range(POLICIES)]
    pool_s = time.perf_counter() - started
    print(
        f"a policy of a pool of {POLICIES} on level 0: {pool_s / POLICIES:.2f} s, examples and"
        f" {plan.episodes} episodes to judge it by included; median performance"
        f" {np.median(found):.3f}"
    )
    try:
        check_library()
    except MissingExtraError as err:
        print(f"deep Q-learning left out: {err}")
        return
    started = time.perf_counter()
    trained = by_dqn(TICKS)
    dqn_s = time.perf_counter() - started
    reached = performance(taught.domain, wide(trained, taught.domain.inputs), plan.episodes, seed=1)
    as_good = sum(value >= reached for value in found)
    print(f"deep Q-learning, {TICKS} ticks: {dqn_s:.0f} s, performance {reached:.3f}")
    if as_good:
        each_s = pool_s / as_good
        print(
            f"{as_good} of {POLICIES} policies do as well: {each_s:.2f} s for each of them,"
            f" {dqn_s / each_s:.0f} times as fast"
        )
    else:
        print("no policy of the pool does as well")


def by_dqn(steps: int) -> Network:
    """The agent of the AIQ paper, trained for some ticks in one thread, as pools are."""
    import torch  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    return train_dqn(
        Architecture(inputs=BALL_COUNT, hidden=(512, 512), outputs=len(PUSHES)),
        lambda: gymnasium.make("RoboEval/CartPole3D-v0"),
        steps=steps,
        seed=0,
        observed=BALL_COUNT,
        learning=LEARNING,
    )


def wide(network: Network, inputs: int) -> Network:
    """A network that is shown more, and does not look at it."""
    built = network.architecture
    first = np.zeros((inputs, built.hidden[0]), dtype=np.float32)
    first[: built.inputs] = network.weights[0]
    return Network(
        Architecture(inputs=inputs, hidden=built.hidden, outputs=built.outputs),
        [first, *network.weights[1:]],
        network.biases,
    )


def peak_gib() -> float:
    """Most memory this process has used so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Run all."""
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}")
    bench_acc()
    bench_quotient()
    bench_pool()


if __name__ == "__main__":
    main()
