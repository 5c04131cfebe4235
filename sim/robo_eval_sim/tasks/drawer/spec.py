"""What Drawer declares of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from robo_eval.core.task import Constant, LevelLike, Part, TaskSpec
from robo_eval_sim.arm.layout import TICK_S
from robo_eval_sim.arm.parts import ARM_BODIES, ARM_CHANNELS, ARM_STATE, arm_constants
from robo_eval_sim.tasks.drawer.layout import ENV, MAX_TICKS


def _levels() -> Mapping[int, LevelLike]:
    # Level files are looked for when somebody asks.
    from robo_eval_sim.arm.levels import levels_of
    from robo_eval_sim.tasks.drawer.setting import DrawerSetting

    return levels_of(ENV, __package__, DrawerSetting)


def _constants() -> tuple[Constant, ...]:
    from robo_eval_sim.tasks.drawer.setting import DrawerSetting

    return arm_constants(DrawerSetting)


SPEC: Final = TaskSpec(
    env=ENV,
    title="Drawer",
    environment="robo_eval_sim.tasks.drawer.environment:DrawerEnv",
    end="It ends when the drawer stands still at its goal, or after 200 ticks of 0.05 s.",
    success="The handle was grasped, and the drawer stands still within 1 cm of its goal.",
    succeeded="finished",
    quality="Share of the four stages that were done, and of the next one a part.",
    stages=("reached", "grasped", "moved", "done"),
    tick_s=TICK_S,
    max_ticks=MAX_TICKS,
    state=(
        *ARM_STATE,
        Part(name="handle_position", size=3, unit="m", about="middle of the handle, in world"),
        Part(name="cabinet_yaw", size=1, unit="rad", about="about the vertical"),
        Part(name="opening", size=1, unit="m", about="how far the drawer is pulled out"),
        Part(name="opening_speed", size=1, unit="m/s"),
        Part(name="goal_opening", size=1, unit="m"),
    ),
    bodies={**ARM_BODIES, "cabinet": "base", "drawer": "thing"},
    levels=_levels,
    find_constants=_constants,
    channels=ARM_CHANNELS,
    replay="whole",
)
