"""What a study measures, on sets of labelled points that take no time."""

from __future__ import annotations

import numpy as np
import pytest

from robo_eval.core.errors import InputError
from robo_eval.study.cloning import Examples
from robo_eval.study.domain import Labelled
from robo_eval.study.measure import SHARES, Lesson, alone, lesson, mixture, policy
from robo_eval.study.suite import LearnerSection, PoolSection

POOL = PoolSection(examples=400, steps=150, rate=1e-2, episodes=200)
LEARNER = LearnerSection(examples=400, steps=150, rate=1e-2, episodes=200, hidden=(8,))


def points(name: str, label, outputs: int = 2) -> Labelled:
    """Points of a plane with a label of their own."""
    drawn = np.random.default_rng(0).uniform(-1, 1, (1_000, 2))
    sets = [Examples.of(half, label(half).astype(int)) for half in np.split(drawn, 2)]
    return Labelled(name=name, train=sets[0], test=sets[1], outputs=outputs)


def taught(domain: Labelled, *, stream: int = 0) -> Lesson:
    return lesson(domain, 400, seed=1, stream=stream)


SIDES = points("sides", lambda xy: xy[:, 0] > 0)
OTHER_SIDES = points("other sides", lambda xy: xy[:, 0] <= 0)
CHECKERS = points("checkers", lambda xy: np.sin(6 * xy[:, 0]) * np.sin(6 * xy[:, 1]) > 0)


def test_policies_of_a_pool_are_of_the_same_size_in_every_test_and_do_worse_in_a_harder_one():
    easy, hard = (
        [policy(taught(domain), POOL, number, seed=1) for number in range(20)]
        for domain in (SIDES, CHECKERS)
    )
    assert [size for size, _ in easy] == [size for size, _ in hard]
    assert len({size for size, _ in easy}) > 10
    assert np.mean([value for _, value in easy]) > 0.8
    assert np.mean([value for _, value in easy]) > np.mean([value for _, value in hard]) + 0.1


def test_a_policy_depends_on_its_number_and_the_seed_only():
    own = taught(SIDES)
    found = [policy(own, POOL, number, seed=1) for number in (2, 3, 2)]
    assert found[0] == found[2]
    assert found[0] != found[1]
    assert policy(own, POOL, 2, seed=2) != found[0]


def test_tests_that_contradict_each_other_cannot_both_be_learned():
    """Of two answers that exclude each other, the commoner is right with its share only."""
    by_itself = [alone(taught(one), LEARNER, 0, seed=1) for one in (SIDES, OTHER_SIDES)]
    assert min(by_itself) > 0.9
    first, second = mixture(taught(SIDES), taught(OTHER_SIDES), LEARNER, 0, seed=1)
    assert first.shape == (len(SHARES),)
    np.testing.assert_allclose(first + second, 1.0, err_msg="each answer is right in one of them")
    middle = SHARES.index(0.5)
    assert first[0] < 0.1 < 0.9 < first[-1]
    assert 0.5 * (first[middle] + second[middle]) == pytest.approx(0.5)


def test_a_test_mixed_with_itself_is_learned_at_every_share():
    first, second = mixture(taught(SIDES), taught(SIDES, stream=1), LEARNER, 0, seed=1)
    np.testing.assert_array_equal(first, second)
    assert first.min() > 0.9


def test_other_trainings_draw_other_examples():
    found = [
        mixture(taught(SIDES), taught(CHECKERS), LEARNER, number, seed=1, shares=(0.5,)).tolist()
        for number in (0, 1, 0)
    ]
    assert found[0] == found[2]
    assert found[0] != found[1]


def test_one_learner_cannot_learn_tests_of_other_sizes():
    three = points("thirds", lambda xy: np.digitize(xy[:, 0], [-0.3, 0.3]), outputs=3)
    with pytest.raises(InputError, match="sides shows 2 numbers and takes 2 actions, thirds 2 and"):
        mixture(taught(SIDES), taught(three), LEARNER, 0, seed=1)
