"""What must hold for every table of episodes."""

import json

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.scoring import quality_of, score_end
from robo_eval.metrics.summary import summarise

FAST = MetricConfig(resamples=200)
SCORED = [reason for reason in EndReason if reason.is_scored and reason is not EndReason.SUCCESS]
UNSCORED = [reason for reason in EndReason if not reason.is_scored]


@st.composite
def rows(draw, index):
    row = {
        "episode_id": f"e{index}",
        "side": "sim",
        "task": "RoboEval/CartPole3D-v0",
        "policy": draw(st.sampled_from(["a", "b"])),
        "level": draw(st.sampled_from([0, 1, None])),
        "difficulty": "easy",
        "arm": draw(st.sampled_from(["main", "main", "control"])),
        "control_id": draw(st.sampled_from([None, "e0", "e1", "elsewhere"])),
        "seed": draw(st.integers(0, 3)),
        "ticks": draw(st.sampled_from([None, 0, 200])),
        "duration_s": draw(st.sampled_from([None, float("nan"), 0.0, 4.0])),
    }
    ticks = draw(st.one_of(st.none(), st.integers(0, 200)))
    if ticks is None:
        reason = draw(st.sampled_from([*UNSCORED, EndReason.TIMEOUT]))
        return {**row, "quality": None, "success": None, "end_reason": reason.value}
    success = ticks == 200
    reason = EndReason.SUCCESS if success else draw(st.sampled_from(SCORED))
    return {**row, "quality": ticks / 200, "success": success, "end_reason": reason.value}


@st.composite
def tables(draw):
    n = draw(st.integers(1, 12))
    return pd.DataFrame([draw(rows(index)) for index in range(n)])


@settings(max_examples=15)  # a whole summary each time
@given(tables(), st.integers(0, 1000))
def test_reordering_episodes_changes_no_metric(table, seed):
    first = json.dumps(summarise(table, config=FAST).as_dict(), allow_nan=False)
    # Of one start the first attempt counts: its episodes stay in their order.
    starts = np.random.default_rng(seed).permutation(table["seed"].unique())
    shuffled = pd.concat([table[table["seed"] == start] for start in starts])
    assert json.dumps(summarise(shuffled, config=FAST).as_dict(), allow_nan=False) == first


@settings(max_examples=15)  # a whole summary each time
@given(tables())
def test_counts_add_up_and_bounds_hold_the_truth(table):
    summary = summarise(table, config=FAST)
    main = table[table["arm"] == "main"]
    assert summary.coverage.scored == main["quality"].notna().sum()
    assert summary.coverage.attempted == len(main)
    assert sum(cell.coverage.attempted for cell in summary.cells) == len(main)
    for result in (*summary.policies, *summary.cells):
        lost = result.coverage.expected - result.coverage.scored
        assert sum(result.coverage.missing.values()) == lost
        assert (result.success_bounds is None) == (lost == 0)
        if result.success_bounds and result.success.value is not None:
            low, high = result.success_bounds
            assert low - 1e-12 <= result.success.value <= high + 1e-12
        if not result.coverage.is_sufficient:
            assert result.performance.reason
            assert getattr(result, "headline", None) is None


@given(tables(), st.data())
def test_a_twisted_score_is_refused_or_means_the_same(table, data):
    """Every cell of the score set to every odd value: refused by row and column, or harmless."""
    index = data.draw(st.integers(0, len(table) - 1))
    column = data.draw(st.sampled_from(["quality", "success", "end_reason"]))
    value = data.draw(
        st.sampled_from([None, float("nan"), float("inf"), -1, 2, 0, 1, True, "", "success", "x"])
    )
    table = table.astype({column: object})
    table.loc[index, column] = value
    refusal = None
    try:
        checked = episodes_frame(table)
    except InputError as err:
        refusal = str(err)
    if refusal is not None:
        assert f"row {index} (e{index})" in refusal
        assert "\n" not in refusal
    else:
        scored = checked["quality"].notna()
        assert (
            checked.loc[scored, "success"] == (checked.loc[scored, "end_reason"] == "success")
        ).all()


@given(
    st.integers(1, 400),
    st.integers(0, 400),
    st.booleans(),
    st.floats(0, 1),
    st.sampled_from([0, 0, 1]),
)
def test_success_is_exactly_reaching_the_threshold_unassisted(n, k, terminated, threshold, helped):
    quality = quality_of(sum([1 / n] * min(k, n)), (0.0, 1.0))
    reason = score_end(
        terminated=terminated,
        truncated=not terminated,
        quality=quality,
        success_quality=threshold,
        interventions=helped,
    )
    reached = min(k, n) / n >= threshold - 2e-9
    missed = min(k, n) / n < threshold + 2e-9
    if reason is EndReason.SUCCESS:
        assert reached
        assert not helped
    else:
        assert missed or helped
