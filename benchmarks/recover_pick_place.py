"""Whether calibration finds the hidden constants of an arm, and says so when it cannot.

Plays recordings of the expert on stand-ins, PickPlace with hidden constants, fits each set of
recordings, and prints how often the truth lies in the intervals, errors and verdicts. The joints
are read with noise by the task itself; noise of the wrist's sensor and of the places of the thing
is added to what was recorded, because no constant plays it.

Run: `python benchmarks/recover_pick_place.py [--repeats 50] [--recordings 4] [--workers 2]`.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import gymnasium
import numpy as np
from recover_gantry import recovery

from robo_eval.core.spread import done
from robo_eval_calibration.fit import Fitted, fitted
from robo_eval_calibration.motions import simulated
from robo_eval_calibration.recordings import Recording
from robo_eval_sim.tasks.pick_place.layout import ENV
from robo_eval_sim.tasks.pick_place.spec import SPEC

HIDDEN = {
    "gain": 0.9,
    "delay_s": 7 * 0.05 / 12,
    "payload_kg": 0.2,
    "object_mass_kg": 0.12,
    "friction": 0.8,
}
JOINT_NOISE_RAD = 0.0005
WRENCH_NOISE = [0.3] * 3 + [0.03] * 3
"""N and N m."""
PLACE_NOISE_M = 0.0005


def recorded(seed: int) -> Recording:
    """An episode of the expert on a stand-in, as its sensors saw it."""
    constants = {**HIDDEN, "joint_noise_rad": JOINT_NOISE_RAD}
    env = gymnasium.make(ENV, obs_mode="state+wrench", constants=constants).unwrapped
    env.records_motion = True
    played, rows = simulated(env, SPEC, "pick-place", seed)
    moved = env.trajectory(rows, played.commands, np.zeros(played.ticks))
    things = moved.pose_world_frame[:, [moved.frames.index("object")]]
    rng = np.random.default_rng(seed)
    things[:, :, :3] += PLACE_NOISE_M * rng.standard_normal(things[:, :, :3].shape)
    env.close()
    wrench = rows[:, -6:] + WRENCH_NOISE * rng.standard_normal((len(rows), 6))
    return replace(played, wrench=wrench, things=things)


def repeat(job: tuple[int, int]) -> Fitted:
    """A stand-in's recordings, fitted."""
    number, recordings = job
    return fitted([recorded(10_000 * number + index) for index in range(recordings)])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--recordings", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    began = time.monotonic()
    jobs = [(number, given.recordings) for number in range(given.repeats)]
    fits = [fit for _, fit in done(jobs, repeat, workers=given.workers)]
    print(f"{given.repeats} repeats of {given.recordings} recordings of the expert\n")
    recovery("pick and place", fits, HIDDEN)
    print(f"\n{time.monotonic() - began:.0f} s with {given.workers} workers")


if __name__ == "__main__":
    main()
