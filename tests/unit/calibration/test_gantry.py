"""The constants of CartPole3D are found in what its own environment plays."""

from dataclasses import replace

import gymnasium
import pytest

from robo_eval.core.task import task_named
from robo_eval_calibration.fit import fitted
from robo_eval_calibration.motions import simulated
from robo_eval_sim.tasks.cartpole3d.layout import ENV


@pytest.fixture(scope="module")
def recorded(hidden, noise):
    def of(seed):
        constants = hidden | noise | {"force_noise_n": 0.3, "force_memory_s": 0.4}
        env = gymnasium.make(ENV, balls=0, constants=constants)
        played, _ = simulated(env, task_named(ENV), "balancer", seed)
        env.close()
        return replace(played, keywords={"balls": 0})

    return of


def test_one_episode_tells_the_constants_it_was_played_with(recorded, given, hidden):
    found = fitted([recorded(1)], given=given, profiles=False)
    assert found.found["cart_mass_kg"].estimate.value == pytest.approx(1.3, rel=0.03)
    assert found.found["pole_com_height_m"].estimate.value == pytest.approx(0.95, rel=0.06)
    assert found.found["delay_s"].estimate.value == pytest.approx(0.028, rel=0.05)
    assert found.chi2 == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
def test_workers_find_the_same(recorded, given, tmp_path):
    recordings = [recorded(1), recorded(2)]
    alone = fitted(recordings, given=given, profiles=False)
    shared = fitted(recordings, given=given, profiles=False, workers=2, jobs_folder=tmp_path)
    assert shared.found == alone.found
