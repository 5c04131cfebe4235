"""The ways a network may be trained on a mixture, on sets of labelled points that take no time."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from robo_eval.core.errors import InputError, MissingExtraError, PlanError
from robo_eval.study.cloning import Examples
from robo_eval.study.domain import Domain, Labelled
from robo_eval.study.entries import tests_of
from robo_eval.study.measure import alone, lesson
from robo_eval.study.network import Architecture, Network
from robo_eval.study.suite import LearnerSection, PoolSection, parse_suite
from robo_eval.study.trainers import Mixture, trained

SEARCH = LearnerSection(
    trainer="es", examples=200, steps=60, batch=16, plays=100, episodes=500, hidden=(8,)
)
BUILT = Architecture(inputs=2, hidden=(8,), outputs=2)


def sides(*, swapped: bool = False) -> Labelled:
    drawn = np.random.default_rng(0).uniform(-1, 1, (1_000, 2))
    halves = [Examples.of(half, ((half[:, 0] > 0) ^ swapped).astype(int))
              for half in np.split(drawn, 2)]  # fmt: skip
    return Labelled(name="sides", train=halves[0], test=halves[1], outputs=2)


def learned(first: Domain, second: Domain, share: float, *, seed: int = 3) -> Network:
    examples = first.examples(200, seed=0)
    mixture = Mixture(first=first, second=second, share=share)
    return trained(BUILT, examples, mixture, SEARCH, seed=seed)


def test_a_search_learns_what_cloning_is_shown():
    assert alone(lesson(sides(), 200, seed=1), SEARCH, 0, seed=1) > 0.95


@pytest.mark.parametrize(("share", "better"), [(0.9, "first"), (0.1, "second")])
def test_a_search_in_a_mixture_learns_the_test_that_most_episodes_are_of(share, better):
    first, second = sides(), sides(swapped=True)
    network = learned(first, second, share)
    found = {
        name: domain.performances(network, 500, seed=0).mean()
        for name, domain in (("first", first), ("second", second))
    }
    assert found[better] > 0.9
    assert sum(found.values()) == pytest.approx(1.0)


def test_a_search_follows_from_its_seed():
    values = [learned(sides(), sides(), 1.0, seed=seed).arrays() for seed in (1, 1, 2)]
    assert all(np.array_equal(values[0][name], values[1][name]) for name in values[0])
    assert any(not np.array_equal(values[0][name], values[2][name]) for name in values[0])


def test_what_is_not_said_is_usual_for_the_trainer():
    assert (PoolSection().steps, PoolSection().batch) == (600, 128)
    search = PoolSection(trainer="es", steps=7)
    assert (search.steps, search.batch, search.rate) == (7, 32, 0.1)
    assert PoolSection(trainer="dqn").steps == 50_000


@pytest.mark.parametrize(
    ("changed", "is_other"),
    [
        ({"steps": 61}, True),
        ({"plays": 99}, True),
        ({"batch": 18}, True),
        ({"hidden": (5,)}, True),
        ({"trainings": 9}, False),
        ({"alone": 9}, False),
    ],
)
def test_what_a_network_depends_on(changed: dict[str, Any], is_other: bool):
    other = LearnerSection(**{**SEARCH.model_dump(), **changed})
    assert (other.effort() != SEARCH.effort()) == is_other


def test_plays_are_no_part_of_what_cloning_gives():
    assert PoolSection(plays=3).effort() == PoolSection(plays=4).effort()


SUITE = """
version: 1
name: sides
{sets}
tasks:
- {{env: CartPole-v1, name: one, experts: [balancer], returns: [0, 500]}}
- {{env: CartPole-v1, name: two, experts: [balancer], returns: [0, 500]}}
pool: {{{pool}}}
"""


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        ("trainer: es, batch: 3", "batch"),
        ("trainer: pso", "trainer"),
        ("trainer: [es]", "trainer"),
        ("trainer: es, plays: 0", "plays"),
    ],
)
def test_a_wrong_trainer_is_refused_by_its_key(pool, words):
    with pytest.raises(PlanError, match=rf"made\.yaml.*pool\.?{words}|made\.yaml.*{words}"):
        parse_suite(SUITE.format(sets="", pool=pool), source="made.yaml")


def test_sets_are_not_learned_by_deep_q_learning():
    suite = parse_suite(
        SUITE.format(sets="sets: [{set: digits}]", pool="trainer: dqn"), source="made.yaml"
    )
    with pytest.raises(InputError, match="digits is a set of examples, which dqn cannot learn"):
        tests_of(suite)
    task = suite.tasks[0].model_copy(update={"labelled": 100})
    with pytest.raises(InputError, match="is labelled, which makes it a set of examples, which dq"):
        tests_of(suite.model_copy(update={"tasks": (task,), "sets": ()}))


def test_what_is_missing_is_said_before_anything_is_done(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)  # as if it were not installed
    suite = parse_suite(SUITE.format(sets="", pool="trainer: dqn"), source="made.yaml")
    with pytest.raises(MissingExtraError, match=r"robo-eval-stack\[train\]"):
        tests_of(suite)
