"""Whether calibration finds the hidden constants of a gantry, and says so when it cannot.

Plays recordings of the balancer on stand-ins, CartPole3D without balls and with hidden constants,
sensor noise and a hidden force, fits each set of recordings, and prints how often the truth lies in
the intervals, errors, verdicts, and how often faults of the structure are seen. Mass of the pole
and gain of the motors are given: a balancer does not tell them.

Run: `python benchmarks/recover_gantry.py [--repeats 50] [--recordings 4] [--workers 2]`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robo_eval.core.spread import done
from robo_eval_calibration.fit import Fitted, fitted
from robo_eval_calibration.innovations import delayed
from robo_eval_calibration.motions import simulated
from robo_eval_calibration.recordings import Array, Recording
from robo_eval_sim.tasks.cartpole3d.environment import CartPole3DEnv
from robo_eval_sim.tasks.cartpole3d.layout import CART_VELOCITY, PUSHES, TICK_S, has_fallen
from robo_eval_sim.tasks.cartpole3d.spec import SPEC

HIDDEN = {
    "cart_mass_kg": 1.3,
    "pole_com_height_m": 0.95,
    "slide_friction_n_s_m": 0.6,
    "delay_s": 1.4 * TICK_S,
}
GIVEN = {"pole_mass_kg": 0.1, "push_gain": 1.0}
SENSORS = {
    "position_noise_m": 0.0005,
    "velocity_noise_m_s": 0.01,
    "tilt_noise_rad": 0.002,
    "tilt_rate_noise_rad_s": 0.02,
}
WHITE = {"force_noise_n": 0.3, "force_memory_s": 0.0}
CORRELATED = {"force_noise_n": 0.3, "force_memory_s": 0.4}
_STILL_M_S = 1e-3


@dataclass(frozen=True)
class Fault:
    """What a stand-in has that no constant explains."""

    push: Callable[[Array], Array] = lambda command: command
    force: Callable[[Array], Array] = lambda _: np.zeros(2)


FAULTS = {
    "dry friction of 0.3 N": Fault(
        force=lambda row: -0.3 * np.tanh(row[CART_VELOCITY] / _STILL_M_S)
    ),
    "spring of 2 N/m": Fault(force=lambda row: -2.0 * row[:2]),
    "sign of x reversed": Fault(push=lambda command: command * [-1.0, 1.0]),
    "axes swapped": Fault(push=lambda command: command[::-1]),
}
CASES: dict[str, tuple[Mapping[str, float], Fault | None]] = {
    "white force": (WHITE, None),
    "correlated force": (CORRELATED, None),
    **{name: (CORRELATED, fault) for name, fault in FAULTS.items()},
}


class Faulty(CartPole3DEnv):
    """A stand-in whose pushes and forces are others than the simulator's, for one episode."""

    def __init__(self, fault: Fault, constants: Mapping[str, float]) -> None:
        super().__init__(balls=0, constants=constants)
        self._fault, self._delay = fault, constants["delay_s"] / TICK_S
        self._pushes: list[Array] = []

    def step(self, action: int | np.int64) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """As of any environment, with what is wrong."""
        self._pushes.append(self._fault.push(np.array(PUSHES[action])))
        state = self.physical_state()
        row = np.array([*state["cart_position"], *state["cart_velocity"]])
        x, y = delayed(np.array(self._pushes), self._delay)[-1] + self._fault.force(row)
        now = self.advance((float(x), float(y)))
        is_over = has_fallen(*now[4:8]) or len(self._pushes) == SPEC.max_ticks
        return self._observe(now), 0.0, is_over, False, {}


def recorded(constants: Mapping[str, float], seed: int, fault: Fault | None = None) -> Recording:
    """An episode of the balancer on a stand-in, as its sensors saw it."""
    env = CartPole3DEnv(balls=0, constants=constants) if fault is None else Faulty(fault, constants)
    played, _ = simulated(env, SPEC, "balancer", seed)
    env.close()
    return replace(played, keywords={"balls": 0})


def repeat(job: tuple[str, int, int]) -> tuple[Fitted, list[int]]:
    """A stand-in's recordings, fitted, with their lengths."""
    case, number, recordings = job
    force, fault = CASES[case]
    constants = {**HIDDEN, **SENSORS, **force}
    played = [recorded(constants, 10_000 * number + index, fault) for index in range(recordings)]
    found = fitted(played, given=GIVEN, profiles=False)
    return found, [len(one.commands) for one in played]


def recovery(case: str, fits: list[Fitted], hidden: Mapping[str, float] = HIDDEN) -> None:
    """Print how well the constants of a stand-in without faults were found."""
    print(
        "| case | constant | coverage | mean error | worst | half-width | identified | its worst |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, truth in hidden.items():
        every = [fit.found[name] for fit in fits]
        value = np.array([one.estimate.value for one in every], dtype=float)
        low = np.array([one.estimate.low for one in every], dtype=float)
        high = np.array([one.estimate.high for one in every], dtype=float)
        error = value / truth - 1.0
        is_told = np.array([one.judged.verdict == "identified" for one in every])
        worst = f"{abs(error[is_told]).max():.1%}" if is_told.any() else "-"
        print(
            f"| {case} | {name} | {((low <= truth) & (truth <= high)).mean():.2f} |"
            f" {error.mean():+.2%} | {abs(error).max():.1%} | {np.median(high - low) / 2:.3g} |"
            f" {is_told.mean():.2f} | {worst} |"
        )


def structure(case: str, fits: list[Fitted], ticks: list[int]) -> None:
    """Print what is said of the structure."""
    every = [fit.structure for fit in fits]
    skill = np.array([one.skill for one in every if one.skill is not None])
    share = np.array([one.share for one in every if one.share is not None])
    named = [sum(m.is_found for s in every for m in s.missing if m.name == name)
             for name in ("dry friction", "a spring")]  # fmt: skip
    bounds = sum(bool(one.bounds) for one in every)
    print(
        f"| {case} | {sum(bool(one.reasons) for one in every)} of {len(every)} | {named[0]} |"
        f" {named[1]} | {bounds} | {' '.join(f'{q:.2f}' for q in np.quantile(skill, [0, 0.5, 1]))}"
        f" | {share.min():.2f} to {share.max():.2f} | {min(ticks)} to {max(ticks)} |"
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--recordings", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--case", action="append", choices=list(CASES), help="these alone")
    given = parser.parse_args()
    began = time.monotonic()
    cases = given.case or list(CASES)
    jobs = [(case, number, given.recordings) for case in cases for number in range(given.repeats)]
    fits: dict[str, list[Fitted]] = {case: [] for case in cases}
    ticks: dict[str, list[int]] = {case: [] for case in cases}
    for (case, _, _), (fit, lengths) in done(jobs, repeat, workers=given.workers):
        fits[case].append(fit)
        ticks[case] += lengths
    print(f"{given.repeats} repeats of {given.recordings} recordings of the balancer\n")
    for case in cases:
        if CASES[case][1] is None:
            recovery(case, fits[case])
            print()
    print("| stand-in | structure | dry friction | spring | at a bound | skill | share | ticks |")
    print("|---|---|---|---|---|---|---|---|")
    for case in cases:
        structure(case, fits[case], ticks[case])
    print(f"\n{time.monotonic() - began:.0f} s with {given.workers} workers")


if __name__ == "__main__":
    main()
