import numpy as np
import pytest

from robo_eval.core.kinds import Arm
from robo_eval.metrics.effects import novelty_effects, policy_differences


def _matched(episode, n, *, control_arm=Arm.CONTROL, effect=-0.3, seed=0):
    """n seeds at levels 0 (the control) and 2; the seed decides most of the outcome."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        luck = rng.uniform(0.4, 0.9)
        control = f"control-{i}" if control_arm is Arm.CONTROL else f"zero-{i}"
        rows.append(episode(control, round(luck, 3), arm=control_arm, seed=i))
        quality = round(luck + effect + rng.uniform(-0.03, 0.03), 3)
        rows.append(episode(f"m{i}", quality, level=2, control_id=control, seed=i))
    return rows


def test_pairing_finds_an_effect_that_luck_would_hide(frame, episode):
    effects = novelty_effects(frame(*_matched(episode, 20)))
    (cell,) = effects.cells
    assert cell.difference.value == pytest.approx(-0.3, abs=0.02)
    # Twenty pairs leave open that one in six goes another way; luck alone spreads by more.
    assert cell.difference.high - cell.difference.low < 0.35
    assert cell.difference.method == "paired_gaffke"
    assert (cell.n_pairs, cell.n_expected, cell.verdict) == (20, 20, "lower")


def test_level_0_of_the_plan_serves_as_control(frame, episode):
    effects = novelty_effects(frame(*_matched(episode, 12, control_arm=Arm.MAIN)))
    assert [(cell.level, cell.n_pairs) for cell in effects.cells] == [(2, 12)]


def test_no_effect_is_undecided_and_equal_pairs_leave_doubt(frame, episode):
    (cell,) = novelty_effects(frame(*_matched(episode, 20, effect=0.0))).cells
    assert cell.verdict == "undecided"
    same = [
        row
        for i, q in enumerate((0.9, 0.8, 0.7))
        for row in (
            episode(f"c{i}", q, arm=Arm.CONTROL),
            episode(f"m{i}", round(q - 0.1, 1), level=1, control_id=f"c{i}"),
        )
    ]
    (equal,) = novelty_effects(frame(*same)).cells
    assert equal.difference.value == pytest.approx(-0.1)
    assert equal.difference.low < -0.1 < 0.0 < equal.difference.high
    assert equal.verdict == "undecided"


def test_below_95_percent_of_the_pairs_there_is_no_verdict(frame, episode):
    rows = _matched(episode, 20)
    # Two controls crash: the pairs are lost although every novelty episode is scored.
    rows[0] = episode("control-0", None, arm=Arm.CONTROL)
    rows[2] = episode("control-1", None, arm=Arm.CONTROL)
    (cell,) = novelty_effects(frame(*rows)).cells
    assert cell.verdict is None
    assert cell.difference.value == pytest.approx(-0.3, abs=0.02)
    assert cell.difference.reason == "18 of 20 pairs scored"


def test_a_repeated_control_still_matches(frame, episode):
    rows = _matched(episode, 3)
    control = rows[0]
    rows[0] = episode("control-0", None, arm=Arm.CONTROL)
    rows.append(episode("control-0-a2", control.quality, arm=Arm.CONTROL, attempt=2))
    (cell,) = novelty_effects(frame(*rows)).cells
    assert cell.n_pairs == 3


def test_episodes_that_share_a_control_count_as_one_draw(frame, episode):
    rng = np.random.default_rng(1)
    rows = []
    for i in range(8):
        luck = float(rng.uniform(0, 0.4))
        rows.append(episode(f"c{i}", 0.9, arm=Arm.CONTROL))
        rows.extend(
            episode(f"m{i}{d}", round(0.5 + luck, 3), level=2, difficulty=d, control_id=f"c{i}")
            for d in ("easy", "medium", "hard")
        )
    effects = novelty_effects(frame(*rows))
    (level,) = effects.levels
    assert (level.difference.n, level.n_pairs) == (8, 24)
    # Three copies of eight draws are still eight draws.
    assert level.difference.low == pytest.approx(effects.cells[0].difference.low)
    (overall,) = effects.policies
    assert (overall.level, overall.difference.n) == (None, 8)


def test_without_controls_there_are_no_effects(frame, episode):
    effects = novelty_effects(frame(episode("a"), episode("b", 0.5, level=1)))
    assert (effects.cells, effects.levels, effects.policies) == ((), (), ())


def test_policies_are_compared_on_the_same_seeds(frame, episode):
    rng = np.random.default_rng(2)
    rows = []
    for i in range(25):
        luck = round(float(rng.uniform(0.2, 0.7)), 3)
        rows.append(episode(f"b{i}", luck, level=1, seed=i))
        better = round(luck + 0.2 + float(rng.uniform(-0.02, 0.02)), 3)
        rows.append(episode(f"a{i}", better, level=1, seed=i, policy="adaptive"))
    (found,) = policy_differences(frame(*rows), "adaptive", "balancer")
    assert (found.level, found.n_pairs, found.verdict) == (1, 25, "higher")
    assert found.difference.value == pytest.approx(0.2, abs=0.01)
    (reverse,) = policy_differences(frame(*rows), "balancer", "adaptive")
    assert reverse.difference.value == pytest.approx(-found.difference.value)
    assert reverse.verdict == "lower"
