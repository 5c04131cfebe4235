"""What CartPole3D declares of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from robo_eval.core.task import QUATERNION, LevelLike, Part, Room, TaskSpec, Tilt
from robo_eval_sim.tasks.cartpole3d.layout import (
    ENV,
    EPISODE_TICKS,
    NOMINAL,
    POLE_LIMIT_RAD,
    PUSHES,
    TICK_S,
    Action,
)


def _levels() -> Mapping[int, LevelLike]:
    # Level files are looked for when somebody asks.
    from robo_eval_sim.novelty import levels_in

    return levels_in(f"{__package__}.levels", ENV)


SPEC: Final = TaskSpec(
    env=ENV,
    title="CartPole3D",
    environment="robo_eval_sim.tasks.cartpole3d.environment:CartPole3DEnv",
    end="It ends when roll or pitch of the pole is beyond 10 degrees, or after 200 ticks of"
    " 0.02 s.",
    success="The pole stayed up for the whole episode.",
    succeeded="survived",
    quality="Ticks survived divided by 200.",
    tick_s=TICK_S,
    max_ticks=EPISODE_TICKS,
    actions=tuple(action.name.lower() for action in Action),
    pushes=PUSHES,
    state=(
        Part(name="cart_position", size=2, unit="m", about="x, y in world"),
        Part(name="cart_velocity", size=2, unit="m/s", about="x, y in world"),
        Part(name="pole_quat_xyzw", size=4, unit=QUATERNION, about="of the pole in world"),
        Part(name="pole_angular_velocity", size=3, unit="rad/s", about="world axes"),
    ),
    tilt=Tilt(frame="pole", limit_rad=POLE_LIMIT_RAD),
    room=Room(
        half_width=NOMINAL.arena_half_width_m,
        floor=NOMINAL.arena_floor_m,
        ceiling=NOMINAL.arena_ceiling_m,
    ),
    bodies={"cart": "base", "pole": "body", "ball": "thing"},
    levels=_levels,
    adapters={"cartpole3d": "robo_eval_robot.cartpole3d:CartPole3DAdapter"},
    twin="robo_eval_twin.gantry:Gantry",
    is_default=True,
)
