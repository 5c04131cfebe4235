"""An agent of your own, compared with a baseline under the same seeds.

A plan file can name it too: `policies: [{name: lean, factory: "own_agent:LeanAgent"}]`.
"""

import hashlib
from pathlib import Path

import numpy as np

from robo_eval.core.plan import TrialPlan
from robo_eval_sim.tasks.cartpole3d.layout import POLE_ANGULAR_VELOCITY, POLE_QUAT_XYZW, Action


class LeanAgent:
    """Pushes the cart to where the pole is about to fall; ignores where the cart and balls are."""

    name = "lean"
    # The digest stands for all that defines the behaviour; here that is this file.
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()

    def reset(self, *, seed: int | None = None) -> None:
        """Nothing is kept from one episode to the next."""

    def act(self, observation: np.ndarray) -> Action:
        """One of the five actions, from the lean of the pole and how fast it changes."""
        x, y, z, w = observation[POLE_QUAT_XYZW]
        turn_x, turn_y, _ = observation[POLE_ANGULAR_VELOCITY]
        # Where the top of the pole will be in a quarter of a second, as seen from its foot.
        lean_x = 2 * (x * z + w * y) + 0.25 * turn_y
        lean_y = 2 * (y * z - w * x) - 0.25 * turn_x
        if max(abs(lean_x), abs(lean_y)) < 0.01:
            return Action.NOTHING
        if abs(lean_x) > abs(lean_y):
            return Action.RIGHT if lean_x > 0 else Action.LEFT
        return Action.FORWARD if lean_y > 0 else Action.BACKWARD


PLAN = TrialPlan.model_validate(
    {
        "name": "Own agent",
        "tasks": [{"levels": [0, 1], "difficulties": ["hard"]}],
        "policies": [{"name": "lean", "factory": "own_agent:LeanAgent"}, "balancer"],
        "episodes": 5,
    }
)


def main() -> None:
    """Play the plan once; played again, it only reads what is there."""
    from robo_eval.analysis.trial import analyse_trial
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.metrics.effects import policy_differences
    from robo_eval_sim.runner import run_simulated

    folder = Path("runs/own-agent")
    trial = TrialDirectory.open(folder) if folder.exists() else TrialDirectory.create(folder, PLAN)
    run_simulated(trial)
    # Each number is an Estimate: value, 95 % interval, sample size, and why if one is missing.
    for cell in analyse_trial(trial).cells:
        print(f"{cell.policy} at level {cell.level}: performance {cell.performance}")
    for effect in policy_differences(trial.frame(), "lean", "balancer"):
        print(f"lean minus balancer at level {effect.level}: {effect.difference}")


# Worker processes import this file; without this line each would start a run of its own.
if __name__ == "__main__":
    main()
