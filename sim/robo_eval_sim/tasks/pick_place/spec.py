"""What PickPlace declares of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from robo_eval.core.task import QUATERNION, Constant, LevelLike, Part, TaskSpec
from robo_eval_sim.arm.layout import TICK_S
from robo_eval_sim.arm.parts import ARM_BODIES, ARM_CHANNELS, ARM_STATE, arm_constants
from robo_eval_sim.tasks.pick_place.layout import ENV, MAX_TICKS


def _levels() -> Mapping[int, LevelLike]:
    # Level files are looked for when somebody asks.
    from robo_eval_sim.arm.levels import levels_of

    return levels_of(ENV, __package__)


def _constants() -> tuple[Constant, ...]:
    return arm_constants(without="slide_friction_n")


SPEC: Final = TaskSpec(
    env=ENV,
    title="PickPlace",
    environment="robo_eval_sim.tasks.pick_place.environment:PickPlaceEnv",
    end="It ends when the object lies at its goal, let go and still, or after 200 ticks of 0.05 s.",
    success="The object lies within 2 cm of its goal, let go and still.",
    succeeded="placed",
    quality="Share of the five stages that were done, and of the next one a part.",
    stages=("reached", "grasped", "lifted", "carried", "placed"),
    tick_s=TICK_S,
    max_ticks=MAX_TICKS,
    state=(
        *ARM_STATE,
        Part(name="object_position", size=3, unit="m", about="its middle in world"),
        Part(name="object_quat_xyzw", size=4, unit=QUATERNION, about="in world"),
        Part(name="object_velocity", size=3, unit="m/s", about="world axes"),
        Part(name="object_angular_velocity", size=3, unit="rad/s", about="world axes"),
        Part(name="goal_position", size=2, unit="m", about="x, y in world"),
    ),
    bodies={**ARM_BODIES, "object": "thing"},
    levels=_levels,
    find_constants=_constants,
    channels=ARM_CHANNELS,
    replay="whole",
)
