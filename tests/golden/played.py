"""What the simulators show and look like, in short; a program that needs no test tools.

`python tests/golden/played.py` prints it as JSON: `played.json` is what it printed. Digests are of
four decimals, as in `behaviour_of`, and colours are means of small areas, so that the last bits of
another processor's arithmetic do not count.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

import gymnasium
import numpy as np

from robo_eval.agents import make_agent

EXPERTS = {
    "RoboEval/CartPole3D-v0": ("lookahead", {"level": 4, "difficulty": "hard"}),
    "RoboEval/PickPlace-v0": ("pick-place", {"level": 1, "action_mode": "joint_position"}),
    "RoboEval/Drawer-v0": ("drawer", {"level": 1, "action_mode": "joint_position"}),
}
AREA = 60
"""Height and width of the areas whose mean colours count, pixels."""


def played(name: str) -> dict[str, Any]:
    """An episode of an expert, what its end looks like, and how its level behaves."""
    agent_name, keywords = EXPERTS[name]
    env = gymnasium.make(name, render_mode="rgb_array", **keywords)
    agent = make_agent(agent_name)
    observation, _ = env.reset(seed=7)
    agent.reset(seed=7)
    seen, is_over = [observation], False
    while not is_over:
        observation, _, terminated, truncated, _ = env.step(agent.act(observation))
        seen.append(observation)
        is_over = terminated or truncated
    numbers = np.rint(np.asarray(seen, float) * 1e4).astype("<i8")
    picture = np.asarray(env.render(), float)
    height, width, colours = picture.shape
    areas = picture.reshape(height // AREA, AREA, width // AREA, AREA, colours).mean((1, 3))
    found = {
        "ticks": len(seen) - 1,
        "observations": hashlib.sha256(numbers.tobytes()).hexdigest(),
        "behaviour": env.unwrapped.behaviour,
        "colours": areas.round().astype(int).ravel().tolist(),
    }
    env.close()
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: played(name) for name in EXPERTS}))
