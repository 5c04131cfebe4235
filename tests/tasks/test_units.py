"""A magnitude in another unit than asked for is refused, and its unit guessed."""

from __future__ import annotations

import gymnasium
import pytest

import robo_eval_sim  # noqa: F401 - registers the tasks
from robo_eval.core.errors import InputError


@pytest.mark.parametrize(
    ("axis", "magnitude", "guessed"),
    [
        ("goal_shift", 300, "; is it in millimetres?"),
        ("gravity_tilt", 30, "; is it in degrees?"),
        ("payload", 900, "; is it in grams?"),
        ("delay", 400, "; is it in milliseconds?"),
        ("goal_shift", 0.4, ""),  # no more than too large
        ("goal_shift", 1e9, ""),  # too large in any unit
        ("gravity_tilt", "30", ""),
    ],
)
def test_the_unit_of_a_magnitude_is_guessed(axis: str, magnitude: object, guessed: str) -> None:
    with pytest.raises(InputError) as refused:
        gymnasium.make("RoboEval/PickPlace-v0", novelty={axis: magnitude})
    assert str(refused.value).endswith(f"is needed, given {magnitude!r}{guessed}")
