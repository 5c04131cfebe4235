"""What CartPole3D declares of itself."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from robo_eval.core.task import (
    QUATERNION,
    Channel,
    Constant,
    LevelLike,
    Part,
    TaskSpec,
    Tilt,
    Walls,
)
from robo_eval_sim.tasks.cartpole3d.layout import (
    ENV,
    EPISODE_TICKS,
    NOMINAL,
    POLE_LIMIT_RAD,
    PUSHES,
    TICK_S,
    Action,
)


@functools.cache
def _constants() -> tuple[Constant, ...]:
    # With the levels: when somebody asks.
    from robo_eval_sim.tasks.cartpole3d.physics import LEVEL_0

    rows = (
        ("cart_mass_kg", "kg", 0.1, 10.0, 0.05, "mass of the cart", ""),
        ("pole_mass_kg", "kg", 0.01, 1.0, 0.005, "mass of the pole", ""),
        ("pole_com_height_m", "m", 0.2, 2.0, 0.05, "centre of mass above the pivot", ""),
        ("slide_friction_n_s_m", "N s/m", 0.0, 20.0, 0.1, "viscous friction of the slides", ""),
        ("push_gain", "", 0.2, 5.0, 0.05, "force on the cart as a share of what is told", ""),
        ("delay_s", "s", 0.0, 0.2, 0.001, "how much later a push acts", ""),
        ("position_noise_m", "m", 0.0, 0.1, 0.001, "noise of the cart's position", "noise"),
        ("velocity_noise_m_s", "m/s", 0.0, 1.0, 0.01, "noise of the cart's velocity", "noise"),
        ("tilt_noise_rad", "rad", 0.0, 0.1, 0.001, "noise of roll and pitch", "noise"),
        ("tilt_rate_noise_rad_s", "rad/s", 0.0, 2.0, 0.02, "noise of their rates", "noise"),
        ("force_noise_n", "N", 0.0, 10.0, 0.1, "size of a hidden force", "disturbance"),
        ("force_memory_s", "s", 0.0, 10.0, 0.1, "memory of that force", "disturbance"),
    )
    return tuple(
        Constant(
            name=name,
            unit=unit,
            low=low,
            high=high,
            nominal=getattr(LEVEL_0, name),
            wanted=wanted,
            about=about,
            stage=stage,
            is_log=low > 0.0,
        )
        for name, unit, low, high, wanted, about, stage in rows
    )


_CHANNELS: Final = tuple(
    Channel(name=name, unit=unit, noise=noise, rate_of=rate_of)
    for name, unit, noise, rate_of in (
        ("cart_x", "m", "position_noise_m", ""),
        ("cart_y", "m", "position_noise_m", ""),
        ("cart_vx", "m/s", "velocity_noise_m_s", "cart_x"),
        ("cart_vy", "m/s", "velocity_noise_m_s", "cart_y"),
        ("pole_roll", "rad", "tilt_noise_rad", ""),
        ("pole_pitch", "rad", "tilt_noise_rad", ""),
        ("pole_roll_rate", "rad/s", "tilt_rate_noise_rad_s", "pole_roll"),
        ("pole_pitch_rate", "rad/s", "tilt_rate_noise_rad_s", "pole_pitch"),
    )
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
    room=Walls(
        half_width=NOMINAL.arena_half_width_m,
        floor=NOMINAL.arena_floor_m,
        ceiling=NOMINAL.arena_ceiling_m,
    ),
    bodies={"cart": "base", "pole": "body", "ball": "thing"},
    levels=_levels,
    adapters={"cartpole3d": "robo_eval_robot.cartpole3d:CartPole3DAdapter"},
    twin="robo_eval_twin.gantry:Gantry",
    find_constants=_constants,
    channels=_CHANNELS,
    replay="steps",
    is_default=True,
)
