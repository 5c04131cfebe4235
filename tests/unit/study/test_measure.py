"""What a study measures, on sets of labelled points that take no time."""

from __future__ import annotations

import numpy as np
import pytest

from robo_eval.analysis.aiq import dissimilarity
from robo_eval.core.errors import InputError
from robo_eval.study.cloning import Budget, Examples
from robo_eval.study.domain import Labelled
from robo_eval.study.measure import Effort, examples_of, mixture_performances, pool_of

EFFORT = Effort(examples=400, budget=Budget(steps=150, rate=1e-2), episodes=200)


def points(name: str, label, outputs: int = 2) -> Labelled:
    """Points of a plane with a label of their own."""
    drawn = np.random.default_rng(0).uniform(-1, 1, (1_000, 2))
    sets = [Examples.of(half, label(half).astype(int)) for half in np.split(drawn, 2)]
    return Labelled(name=name, train=sets[0], test=sets[1], outputs=outputs)


SIDES = points("sides", lambda xy: xy[:, 0] > 0)
OTHER_SIDES = points("other sides", lambda xy: xy[:, 0] <= 0)
CHECKERS = points("checkers", lambda xy: np.sin(6 * xy[:, 0]) * np.sin(6 * xy[:, 1]) > 0)


def test_a_harder_test_is_more_complex():
    easy, hard = (pool_of(domain, 40, seed=1, effort=EFFORT) for domain in (SIDES, CHECKERS))
    np.testing.assert_array_equal(easy.sizes, hard.sizes)
    assert easy.complexity.area < hard.complexity.area
    assert easy.performances.mean() > 0.8


def test_the_same_seed_gives_the_same_pool_and_a_larger_one_has_it_whole():
    small, large = (pool_of(SIDES, count, seed=1, effort=EFFORT) for count in (3, 5))
    np.testing.assert_array_equal(small.performances, large.performances[:3])
    other = pool_of(SIDES, 3, seed=2, effort=EFFORT)
    assert (other.performances != small.performances).any()


def test_tests_that_contradict_each_other_are_more_unlike_than_one_is_to_itself():
    same, contrary = (
        mixture_performances(SIDES, other, seed=1, effort=EFFORT, trainings=2, hidden=(8,))
        for other in (SIDES, OTHER_SIDES)
    )
    assert same.shape == (2, 11)
    assert contrary[:, [0, -1]].min() > 0.9, "each alone is learned"
    assert dissimilarity(same) < 0.03
    # Of two answers that exclude each other the commoner is right with its share only.
    assert dissimilarity(contrary) > 0.15


def test_mixtures_do_not_depend_on_who_made_the_examples():
    given = tuple(examples_of(one, EFFORT, seed=1) for one in (SIDES, CHECKERS))
    more = {"seed": 1, "effort": EFFORT, "trainings": 1, "shares": (0.0, 0.5)}
    found = mixture_performances(SIDES, CHECKERS, **more)
    np.testing.assert_array_equal(
        mixture_performances(SIDES, CHECKERS, examples=given, **more), found
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Effort(episodes=0), "episodes 0"),
        (lambda: mixture_performances(SIDES, SIDES, seed=0, trainings=0), "trainings is 0"),
        (
            lambda: mixture_performances(
                SIDES, points("three", lambda xy: xy[:, 0] > 0, outputs=3), seed=0
            ),
            "sides shows 2 numbers and takes 2 actions, three 2 and 3",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
