"""What happens when the arm stays where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robo_eval.agents.arm.random_targets import HIGH, LOW
from robo_eval.agents.base import Agent
from robo_eval.agents.registry import agent
from robo_eval_sim.arm.layout import GRIPPER_WIDTH, JOINT_POSITION


@agent("arm-still")
@dataclass(kw_only=True, eq=False)
class Still(Agent):
    """Asks every joint to stay where it is; for `action_mode="joint_position"`."""

    def act(self, observation: NDArray[Any]) -> NDArray[np.float32]:  # type: ignore[override]
        """The positions that are seen, within what may be asked for."""
        seen = np.append(observation[JOINT_POSITION], observation[GRIPPER_WIDTH])
        wanted: NDArray[np.float32] = np.clip(seen, LOW, HIGH).astype(np.float32)
        return wanted
