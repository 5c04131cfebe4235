"""A start that is tried again until it succeeds raises no success rate."""

import numpy as np
import pandas as pd
import pytest

from robo_eval.metrics.agreement import compare_sides
from robo_eval.metrics.comparison import compare_policies
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.effects import policy_differences
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.performance import FIRST_ATTEMPTS, policies, success_of_rows
from robo_eval.metrics.rank_agreement import _shares
from robo_eval.metrics.summary import summarise
from robo_eval.metrics.tables import main_rows

FAST = MetricConfig(resamples=199)


def attempts(policy, outcomes, side="real", *, start=0):
    """Rows of each seed's attempts in turn: `[[0, 1], [1]]` is a failure that was tried again."""
    for seed, tried in enumerate(outcomes):
        for n, good in enumerate(tried):
            yield {
                "episode_id": f"{policy}-{side}-{seed}-{n}", "side": side, "task": "push",
                "policy": policy, "seed": seed, "quality": float(good), "success": bool(good),
                "end_reason": "success" if good else "failure",
                "start_ns": start + seed * 10**9 + n * 10**12,
            }  # fmt: skip


def until_success(rng, share, seeds):
    """Each seed is tried until it succeeds."""
    return [[0] * (int(rng.geometric(share)) - 1) + [1] for _ in range(seeds)]


TRIED = [[0, 0, 1], [0, 1], *[[1]] * 8]
"""Eight of ten starts succeed at once, the others when they were tried again."""


@pytest.fixture
def tried():
    return pd.DataFrame(attempts("A", TRIED))


def test_the_first_attempt_counts_and_it_is_said(tried):
    (found,) = policies(tried, None, FAST)
    for one in (found.success, found.success_exact, found.performance):
        assert one.value == pytest.approx(0.8)
    assert found.success.reason == FIRST_ATTEMPTS
    assert found.success.low == pytest.approx(0.4439, abs=1e-3)
    assert found.headline.startswith("10/13, by seeds 0.80")


@pytest.mark.parametrize("known", [True, False])
def test_the_first_is_the_earliest_else_the_first_that_was_logged(tried, known):
    turned = tried.iloc[::-1]
    if not known:
        tried = tried.assign(start_ns=None)
        turned = tried
    (found,) = policies(turned, None, FAST)
    assert found.success.value == pytest.approx(0.8)


def test_seeds_that_repeat_equally_often_count_by_their_mean():
    (found,) = policies(pd.DataFrame(attempts("A", [[0, 1], [1, 1], [0, 0]])), None, FAST)
    assert found.success.value == pytest.approx(0.5)
    assert found.success.reason is None


def test_trying_again_hides_no_failure_from_comparisons(tried):
    both = pd.concat([tried, pd.DataFrame(attempts("B", [*[[0]] * 2, *[[1]] * 8]))])
    (side,) = compare_policies(episodes_frame(both), None, FAST)
    assert side.pairs[0].difference.value == pytest.approx(0.0)
    assert [own.success.value for own in side.policies] == pytest.approx([0.8, 0.8])
    (effect,) = policy_differences(both, "A", "B", config=FAST)
    assert effect.difference.value == pytest.approx(0.0)
    simulated = pd.DataFrame(attempts("A", [[1]] * 10, "sim"))
    found = compare_sides(pd.concat([tried, simulated]), config=FAST)
    assert found.difference.value == pytest.approx(-0.2)
    assert found.agreement.value == pytest.approx(0.8)
    rows = main_rows(episodes_frame(tried))
    assert _shares(rows, rows, is_paired=False)[1].mean() == pytest.approx(0.8)


def test_intervals_of_starts_that_were_tried_until_they_succeed_hold_the_truth():
    rng, truth, rounds, held, values = np.random.default_rng(3), 0.9, 60, 0, []
    for _ in range(rounds):
        frame = pd.DataFrame(attempts("A", until_success(rng, truth, 30)))
        found = success_of_rows(main_rows(episodes_frame(frame)), FAST, exact=True)
        held += found.low <= truth <= found.high
        values.append(found.value)
    assert held / rounds > 0.93
    assert np.mean(values) == pytest.approx(truth, abs=0.02)


@pytest.mark.parametrize("is_paired", [True, False])
def test_an_episode_that_was_void_at_first_lacks_no_simulated_partner(is_paired):
    """Levels compare it with none, and no simulation can mend that."""
    real, sim = (pd.DataFrame(attempts("A", [[1]] * 6, side)) for side in ("twin", "sim"))
    for frame in (real, sim):
        frame["attempt"] = 1
        frame["pair_id"] = [f"pair-{seed}" for seed in frame["seed"]] if is_paired else None
    void = real.iloc[:1].assign(
        episode_id="void", quality=np.nan, success=None, pair_id=None,
        end_reason="void", end_detail="late_computer: 5 late control ticks, 4 are allowed",
    )  # fmt: skip
    real.loc[0, ["episode_id", "attempt"]] = ["void-a2", 2]
    both = pd.concat([void, real, sim], ignore_index=True)
    (body,) = summarise(both, config=FAST).robots
    assert body.agreement.why_alone == ""
    assert body.of("S2R").value == pytest.approx(1.0)
    told = [
        one
        for one in body.strict.numbers
        if one.name.startswith(("S2S", "uncompared")) and not one.family
    ]
    assert len(told) > 2
    for one in told[:2]:
        text = f"{one.note} {one.estimate.reason or ''}"
        assert "left out or tried again" in text
        assert "partner" not in text
        assert "simulated" not in text
        assert "robo-eval partner" not in one.remedy
    alone = both[both["episode_id"] != sim["episode_id"].iloc[-1]]
    (body,) = summarise(alone, config=FAST).robots
    if is_paired:
        text = body.strict.agreement.agreement.reason
        assert "partner or were left out or tried again" in text
        assert "33%" in text
