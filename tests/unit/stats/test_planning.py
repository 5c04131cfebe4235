import numpy as np
import pytest
from scipy import stats

from robo_eval.stats.paired import mcnemar_p
from robo_eval.stats.planning import (
    episodes_for_width,
    episodes_per_arm,
    exposure_for_rate,
    failure_free_episodes,
    mcnemar_power,
    minimum_detectable_difference,
    pairs_for_power,
    seeds_needed,
)
from robo_eval.stats.proportions import clopper_pearson_interval
from robo_eval.stats.rates import garwood_interval


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.5, 0.83, 1.0])
@pytest.mark.parametrize("width", [0.6, 0.15, 0.05])
def test_fewest_episodes_for_a_width_by_trying_all(rate, width):
    n = np.arange(1, 2000)
    low, high = clopper_pearson_interval(np.round(rate * n), n)
    assert episodes_for_width(rate, width) == n[high - low <= width][0]


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_failure_free_episodes_just_show_the_rate(level):
    for rate in (0.3, 0.5, 0.9, 0.95, 0.999):
        n = failure_free_episodes(rate, level=level)
        assert clopper_pearson_interval(n, n, level=level, sided="lower")[0] >= rate - 1e-12
        if n > 1:
            fewer = clopper_pearson_interval(n - 1, n - 1, level=level, sided="lower")[0]
            assert fewer < rate
    assert failure_free_episodes(0.5, level=0.75) == 2  # 0.5^2 is exactly 1 - 0.75


@pytest.mark.parametrize("events", [0, 1, 7])
def test_exposure_just_shows_the_rate(events):
    hours = exposure_for_rate(0.02, events=events, level=0.9)
    upper = garwood_interval(events, hours, level=0.9, sided="upper")[1]
    assert upper == pytest.approx(0.02, rel=1e-10)


def power_by_enumeration(n, win, loss, alpha, alternative):
    total = 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            if b + c > 0 and mcnemar_p(b, c, alternative=alternative) <= alpha:
                total += stats.multinomial.pmf([b, c, n - b - c], n, [win, loss, 1 - win - loss])
    return total


@pytest.mark.parametrize("alternative", ["two", "greater", "less"])
@pytest.mark.parametrize(("win", "loss"), [(0.3, 0.1), (0.6, 0.4), (0.0, 0.5), (0.02, 0.01)])
def test_power_equals_adding_up_all_tables(win, loss, alternative):
    for n, alpha in ((4, 0.05), (23, 0.05), (15, 0.3)):
        found = mcnemar_power(n, win, loss, alpha=alpha, alternative=alternative)
        expected = power_by_enumeration(n, win, loss, alpha, alternative)
        assert found == pytest.approx(expected, abs=1e-12)


def test_power_of_equal_sides_keeps_the_level():
    for n in (5, 50, 500, 5000):
        assert mcnemar_power(n, 0.2, 0.2) <= 0.05
    assert mcnemar_power(10, 0.0, 0.0) == 0.0


@pytest.mark.parametrize("alternative", ["two", "greater"])
def test_fewest_pairs_by_trying_all(alternative):
    for win, loss in ((0.5, 0.1), (0.9, 0.0), (0.6, 0.4), (0.2, 0.05)):
        n = pairs_for_power(win, loss, power=0.7, alternative=alternative)
        powers = [mcnemar_power(m, win, loss, alternative=alternative) for m in range(1, n + 1)]
        assert powers[-1] >= 0.7
        assert max(powers[:-1]) < 0.7
    mirrored = pairs_for_power(0.1, 0.5, power=0.7, alternative="less")
    assert mirrored == pairs_for_power(0.5, 0.1, power=0.7, alternative="greater")


def test_least_difference_is_where_the_power_is_reached():
    for n, discordant in ((61, 0.3), (200, 0.1), (40, 1.0)):
        difference = minimum_detectable_difference(n, discordant)
        win, loss = (discordant + difference) / 2, (discordant - difference) / 2
        assert mcnemar_power(n, win, loss) == pytest.approx(0.8, abs=1e-6)
    one_sided = minimum_detectable_difference(61, 0.3, alternative="less")
    assert one_sided == minimum_detectable_difference(61, 0.3, alternative="greater")
    assert one_sided < minimum_detectable_difference(61, 0.3)
    assert minimum_detectable_difference(5, 1.0) is None


def test_episodes_per_arm_have_about_the_power():
    """By enumeration of the score test: an approximation, so within three points."""
    n = episodes_per_arm(0.5, 0.3)
    k = np.arange(n + 1)
    pooled = (k[:, None] + k) / (2 * n)
    with np.errstate(invalid="ignore"):
        z = np.abs(k[:, None] - k) / np.sqrt(2 * n * pooled * (1 - pooled))
    chance = np.outer(stats.binom.pmf(k, n, 0.5), stats.binom.pmf(k, n, 0.3))
    assert chance[z >= stats.norm.ppf(0.975)].sum() == pytest.approx(0.8, abs=0.03)
    assert episodes_per_arm(0.3, 0.5) == n == 93


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: episodes_for_width(1.5, 0.1), "rate must be between 0 and 1, given 1.5"),
        (lambda: episodes_for_width(0.5, 0.0), "width must be between 0 and 1, given 0"),
        (lambda: episodes_for_width(0.5, 1e-4), "needs more than 1000000 episodes"),
        (lambda: failure_free_episodes(1.0), "rate must be between 0 and 1, given 1"),
        (lambda: failure_free_episodes(0.5, level=1.0), "level must be between"),
        (lambda: exposure_for_rate(0.0), "rate must be above 0 and finite, given 0"),
        (lambda: exposure_for_rate(0.1, events=-1), "events must be at least 0"),
        (lambda: pairs_for_power(0.2, 0.2), "no difference to find, given 0.2 and 0.2"),
        (lambda: pairs_for_power(0.1, 0.2, alternative="greater"), "no difference to find"),
        (lambda: pairs_for_power(0.8, 0.4), "add up to 1 at most: 0.8, 0.4"),
        (lambda: pairs_for_power(0.2500001, 0.25), "needs more than 1000000 pairs"),
        (lambda: mcnemar_power(0, 0.2, 0.1), "n must be at least 1"),
        (lambda: mcnemar_power(9, -0.2, 0.1), "add up to 1 at most"),
        (lambda: minimum_detectable_difference(9, 0.0), "discordant must be above 0"),
        (lambda: minimum_detectable_difference(9, 0.5, power=1.0), "power must be between"),
        (lambda: episodes_per_arm(0.5, 0.5), "no difference to find"),
        (lambda: episodes_per_arm(-0.1, 0.5), "first must be between 0 and 1, given -0.1"),
    ],
)
def test_impossible_plans_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_seeds_stand_for_what_their_episodes_are_worth():
    """The variance of a mean over seeds is that of so many independent episodes."""
    rng = np.random.default_rng(0)
    independent, repeats, alike = 60, 8, 0.4
    seeds = seeds_needed(independent, repeats, alike=alike)
    # Outcomes that correlate by `alike`: a share of them copies the seed's own.
    copies = rng.random((4000, seeds, repeats)) < np.sqrt(alike)
    shared = rng.random((4000, seeds, 1)) < 0.5
    outcomes = np.where(copies, shared, rng.random((4000, seeds, repeats)) < 0.5)
    variance = outcomes.mean(axis=(1, 2)).var()
    assert variance == pytest.approx(0.25 / independent, rel=0.08)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [((0, 2, 1.0), "independent"), ((5, 0, 1.0), "repeats"), ((5, 2, 1.1), "alike")],
)
def test_impossible_seeds_are_refused(arguments, match):
    independent, repeats, alike = arguments
    with pytest.raises(ValueError, match=match):
        seeds_needed(independent, repeats, alike=alike)
