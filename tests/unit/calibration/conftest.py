"""A gantry of a few lines of arithmetic, so that the numbers are tested in seconds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from robo_eval.agents.cartpole3d.balancer import AxisPush
from robo_eval.agents.cartpole3d.model import PlanarModel
from robo_eval.agents.linear_quadratic import cost_to_go
from robo_eval.core.task import Channel, Constant
from robo_eval_calibration import innovations
from robo_eval_calibration.fit import fitted
from robo_eval_calibration.innovations import delayed
from robo_eval_calibration.recordings import Recording
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL, PUSHES, TICK_S
from robo_eval_sim.tasks.cartpole3d.spec import SPEC

NOISE = {
    "position_noise_m": 0.0005,
    "velocity_noise_m_s": 0.01,
    "tilt_noise_rad": 0.002,
    "tilt_rate_noise_rad_s": 0.02,
}
HIDDEN = {
    "cart_mass_kg": 1.3,
    "pole_com_height_m": 0.95,
    "slide_friction_n_s_m": 0.6,
    "delay_s": 1.4 * TICK_S,
}


def constant(name, low, nominal, high, wanted, stage=""):
    return Constant(name=name, low=low, high=high, nominal=nominal, wanted=wanted, stage=stage)


def channel(name, noise, rate_of=""):
    return Channel(name=name, unit="", noise=noise, rate_of=rate_of)


CONSTANTS = (
    constant("cart_mass_kg", 0.3, 1.0, 5.0, 0.05),
    constant("pole_mass_kg", 0.01, 0.1, 1.0, 0.005),
    constant("pole_com_height_m", 0.3, 1.0, 2.0, 0.05),
    constant("slide_friction_n_s_m", 0.0, 0.0, 10.0, 0.05),
    constant("push_gain", 0.3, 1.0, 2.0, 0.05),
    constant("delay_s", 0.0, 0.0, 0.1, 0.001),
    *(constant(name, 0.0, 0.0, 100 * sd, sd, "noise") for name, sd in NOISE.items()),
    constant("force_noise_n", 0.0, 0.0, 5.0, 0.2, "disturbance"),
    constant("force_memory_s", 0.0, 0.0, 5.0, 0.1, "disturbance"),
)


def find_constants():
    return CONSTANTS


TASK = replace(
    SPEC,
    find_constants=find_constants,
    channels=(
        channel("cart_x", "position_noise_m"),
        channel("cart_y", "position_noise_m"),
        channel("cart_vx", "velocity_noise_m_s", "cart_x"),
        channel("cart_vy", "velocity_noise_m_s", "cart_y"),
        channel("pole_roll", "tilt_noise_rad"),
        channel("pole_pitch", "tilt_noise_rad"),
        channel("pole_roll_rate", "tilt_rate_noise_rad_s", "pole_roll"),
        channel("pole_pitch_rate", "tilt_rate_noise_rad_s", "pole_pitch"),
    ),
    replay="steps",
)


class PlanarGantry:
    """Two planar poles on carts, one an axis."""

    task = TASK

    def predict(self, states, forces, constants):
        used = {one.name: one.nominal for one in TASK.constants} | dict(constants)
        model = PlanarModel.from_parameters(
            replace(
                NOMINAL,
                cart_mass_kg=used["cart_mass_kg"],
                pole_mass_kg=used["pole_mass_kg"],
                pole_com_height_m=used["pole_com_height_m"],
            )
        )
        after = np.empty_like(states)
        for axis, lean, sign in ((0, 5, 1.0), (1, 4, -1.0)):
            x, v = states[:, axis], states[:, axis + 2]
            n, rate = sign * states[:, lean], sign * states[:, lean + 2]
            force = used["push_gain"] * forces[:, axis] - used["slide_friction_n_s_m"] * v
            keep = 1.0 - TICK_S * model.damping
            v = keep * v + TICK_S * (model.cart_per_lean * n + model.cart_per_newton * force)
            rate = keep * rate + TICK_S * (model.pole_per_lean * n - model.pole_per_newton * force)
            after[:, axis], after[:, axis + 2] = x + TICK_S * v, v
            after[:, lean], after[:, lean + 2] = sign * (n + TICK_S * rate), sign * rate
        return after


def balancer():
    a, b = PlanarModel.from_parameters().discrete()
    weights = np.array([1.0, 1.0, 1000.0, 1.0])
    return AxisPush(a, b, cost_to_go(a, b, weights, 0.001))


def play(
    seed, *, hidden=HIDDEN, noise=NOISE, force_n=0.3, memory_s=0.4, ticks=200, extra=None,
    excited=0.0, with_efforts=False, push=lambda command: command, **fields
):  # fmt: skip
    """A recording of the balancer; `extra(state)` is a force that no constant explains."""
    rng = np.random.default_rng(seed)
    gantry, choose = PlanarGantry(), balancer()
    sds = np.array([noise[one.noise] for one in TASK.channels])
    state = np.concatenate([rng.uniform(-1, 1, 2), np.zeros(2), rng.uniform(-0.02, 0.02, 4)])
    seen, commands, efforts = [state + sds * rng.standard_normal(8)], [], []
    keep = math.exp(-TICK_S / memory_s) if memory_s else 0.0
    pushed = force_n * rng.standard_normal(2)
    home = seen[0][:2]
    for _ in range(ticks):
        x, y, vx, vy, roll, pitch, roll_rate, pitch_rate = seen[-1]
        action = choose.choose(
            x - home[0], vx, pitch, pitch_rate, y - home[1], vy, -roll, -roll_rate
        )
        if rng.random() < excited:
            action = rng.integers(5)
        commands.append(PUSHES[action])
        ahead = hidden.get("delay_s", 0.0) / TICK_S
        efforts.append(delayed(np.array([push(c) for c in commands]), ahead)[-1])
        force = efforts[-1] + pushed + (0.0 if extra is None else extra(state))
        state = gantry.predict(state[None], force[None], hidden)[0]
        seen.append(state + sds * rng.standard_normal(8))
        pushed = keep * pushed + math.sqrt(1 - keep**2) * force_n * rng.standard_normal(2)
        if np.abs(state[4:6]).max() > 0.17:
            break
    return Recording(
        **{
            "id": f"rec-{seed}", "env": SPEC.env, "side": "sim",
            "stamp_ns": np.arange(len(seen)) * 20_000_000,
            "states": np.array(seen), "commands": np.array(commands),
            "efforts": np.array(efforts) if with_efforts else None,
        } | fields
    )  # fmt: skip


@pytest.fixture(scope="package", autouse=True)
def one_thread():
    """As fits have it: products of such small matrices take many times as long on several."""
    with threadpool_limits(1):
        yield


@pytest.fixture(name="play", scope="session")
def play_fixture():
    return play


@pytest.fixture(scope="session")
def gantry():
    return PlanarGantry()


@pytest.fixture(scope="session")
def given():
    """What a balancer does not tell."""
    return {"pole_mass_kg": 0.1, "push_gain": 1.0}


@pytest.fixture(scope="session")
def found(gantry, given):
    """A fit of four recordings of the true model."""
    recordings = [play(seed) for seed in range(4)]
    return fitted(recordings, model=gantry, given=given, profiles=False)


@pytest.fixture
def hasty(monkeypatch):
    """Where the noise need not be found well."""
    monkeypatch.setattr(innovations, "_EVALUATIONS", 25)


@pytest.fixture(scope="session")
def hidden():
    return HIDDEN


@pytest.fixture(scope="session")
def noise():
    return NOISE
