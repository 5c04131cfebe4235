import numpy as np
import pytest

from robo_eval.stats.prediction_powered import prediction_powered_rate


def trial(n, n_sim, agreement, rng, p=0.7):
    sim, more = (rng.random(n) < p).astype(float), (rng.random(n_sim) < p).astype(float)
    real = np.where(rng.random(n) < agreement, sim, rng.random(n) < p).astype(float)
    return real, sim, more


def test_weight_has_the_least_variance():
    real, sim, more = trial(80, 500, 0.8, np.random.default_rng(0))
    found = prediction_powered_rate(real, sim, more)

    def variance(weight):
        return (real - weight * sim).var(ddof=1) / 80 + weight**2 * sim.var(ddof=1) / 500

    around = [variance(found.weight + step) for step in (-0.01, 0.0, 0.01)]
    assert around[1] == min(around)


def test_useless_simulation_leaves_the_plain_mean():
    real = np.tile([1.0, 1.0, 0.0], 20)
    found = prediction_powered_rate(real, np.ones(60), [1.0] * 99 + [0.0])
    assert found.weight == 0.0
    assert (found.estimate.value, found.estimate.low) == (found.plain.value, found.plain.low)
    assert found.correlation is None
    opposed = prediction_powered_rate(real, 1.0 - real, [1.0, 0.0] * 100)
    assert opposed.weight == 0.0
    assert opposed.correlation == pytest.approx(-1.0)


def test_good_simulation_narrows_the_interval():
    found = prediction_powered_rate(*trial(100, 2000, 0.9, np.random.default_rng(1)))
    assert found.standard_error < 0.7 * found.plain_standard_error
    assert found.estimate.reason is None
    assert (found.n, found.n_sim) == (100, 2000)


def test_few_pairs_are_refused():
    rng = np.random.default_rng(2)
    few = prediction_powered_rate(*trial(29, 500, 0.8, rng))
    assert (few.estimate.value, few.weight, few.standard_error) == (None, None, None)
    assert few.estimate.reason == "29 pairs; at least 30 needed"
    assert few.plain.low < few.plain.value < few.plain.high
    one = prediction_powered_rate([1.0], [1.0], [0.0, 1.0])
    assert (one.plain.value, one.plain_standard_error) == (1.0, None)


def test_equal_outcomes_leave_the_doubt_of_their_number():
    found = prediction_powered_rate(np.ones(60), np.tile([0.0, 1.0], 30), [0.0, 1.0])
    assert found.estimate.value == 1.0
    assert found.estimate.low == pytest.approx(0.025 ** (1 / 60), abs=1e-5)


def test_its_interval_holds_the_truth_where_few_fail():
    rng = np.random.default_rng(4)
    found = [
        prediction_powered_rate(*trial(30, 300, 0.95, rng, p=0.95)).estimate for _ in range(200)
    ]
    assert sum(one.low <= 0.95 <= one.high for one in found) >= 186


def test_what_lies_outside_a_rate_is_cut_off():
    """Simulation was lucky in the pairs' conditions: the correction would go beyond 1."""
    real = np.array([1.0] * 58 + [0.0] * 2)
    sim = np.array([1.0] * 50 + [0.0] * 10)
    found = prediction_powered_rate(real, sim, np.ones(1000))
    assert found.estimate.high == 1.0
    assert 0.0 <= found.estimate.low <= found.estimate.value <= 1.0


def test_impossible_trials_are_refused():
    with pytest.raises(ValueError, match="real and sim must be of equal length, given 2 and 1"):
        prediction_powered_rate([1, 0], [1], [1, 0])
    with pytest.raises(ValueError, match="sim_only must be between 0 and 1, given 2"):
        prediction_powered_rate([1, 0], [1, 0], [2, 0])
    with pytest.raises(ValueError, match="1 pair and 2 further episodes are needed, given 0 and 2"):
        prediction_powered_rate([], [], [1, 0])
    with pytest.raises(ValueError, match="real holds nan"):
        prediction_powered_rate([float("nan")], [1], [1, 0])
