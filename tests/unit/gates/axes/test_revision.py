"""Self-revision: which changes of a policy to itself count, and what they were worth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval import formulas
from robo_eval.core.plain import plain
from robo_eval.gates.axes.revision import RevisionAxis, revisions_measured
from robo_eval.gates.axes.settings import AxisSettings
from robo_eval.log.evidence import Revision


def change(name: str = "grip", **changed: Any) -> Revision:
    """The first event of the worked example, taken back with all of its gain."""
    given: dict[str, Any] = {
        "line": 2, "revision": name, "time_ns": 10**18, "diff": "diffs/1.patch", "holdout": "sha",
        "resources_equal": True, "proposed_by": "policy", "edits": 10, "edits_by_policy": 9,
        "checks": 10, "checks_without_labels": 8, "episodes": 100, "before": 62, "after": 70,
        "control_before": 61, "control_after": 63, "ablated": 62, **changed,
    }  # fmt: skip
    return Revision(**given)


def harmful(**changed: Any) -> Revision:
    """The second: a loss of 0.01, half of the policy's own doing."""
    own = {
        "proposed_by": "anna", "edits": 1, "edits_by_policy": 1, "checks_without_labels": 5,
        "before": 62, "after": 61, "control_before": 60, "control_after": 60, "ablated": None,
    }  # fmt: skip
    return change("speed", line=3, time_ns=10**18 + 1, **{**own, **changed})


def revised(*revisions: Revision, **settings: Any) -> RevisionAxis:
    return revisions_measured(revisions, AxisSettings(**settings))


def test_the_worked_example_of_the_scale():
    found = revised(change(), harmful())
    first, second = found.revisions
    assert first.gain.value == pytest.approx(0.06, abs=1e-9)
    assert first.autonomy == pytest.approx(0.9, abs=1e-9)
    assert second.gain.value == pytest.approx(-0.01, abs=1e-9)
    assert second.autonomy == pytest.approx(0.5, abs=1e-9)
    assert found.measured.raw.value == pytest.approx(0.49, abs=1e-9)
    assert (first.counts, second.counts) == (True, True)
    assert second.reason == "a loss, which subtracts"
    assert found.measured.raw.n == 900  # five arms of a hundred episodes, and four
    assert found.measured.parts["counted"].value == 2.0


def test_a_loss_may_count_nothing_by_choice():
    assert revised(change(), harmful(), positive_part=True).measured.raw.value == pytest.approx(
        0.54
    )


def test_no_file_is_no_measurement_and_an_empty_one_is():
    missing = revisions_measured(None, AxisSettings())
    assert (missing.measured.raw.value, missing.measured.draws) == (None, None)
    assert "revisions.csv" in str(missing.measured.raw.reason)
    empty = revised()
    assert (empty.measured.raw.value, empty.measured.raw.n) == (0.0, 0)
    assert empty.measured.raw.reason == "no revision happened"
    assert empty.measured.draws is not None
    assert not empty.measured.draws.any()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"resources_equal": False}, "not all arms had equal resources"),
        ({"diff": " "}, "no diff to audit it by"),
        ({"holdout": ""}, "no held-out episodes are named"),
        ({"checks": 0, "checks_without_labels": 0}, "no check decided on it"),
        ({"ablated": None}, "not ablated"),
        ({"ablated": 95}, "is left of the gain without it, which is not 0"),
        ({"ablated": 65}, "0.030 is left without it, more than 20% of the gain"),
    ],
)
def test_what_does_not_count_says_why(changed: dict[str, Any], reason: str):
    found = revised(change(**changed))
    (event,) = found.revisions
    assert not event.counts
    assert reason in event.reason
    assert event.gain.value == pytest.approx(0.06)
    # Not tried is no measurement; tried and not counting is one of 0.
    tried = changed.get("ablated", 0) is not None
    assert found.measured.raw.value == (0.0 if tried else None)
    assert str(found.measured.raw.reason).startswith("no revision counts: grip: ")
    assert reason in str(found.measured.raw.reason)


def test_as_much_of_a_gain_may_be_left_as_is_allowed():
    one = change(before=60, after=70, control_before=60, control_after=60, ablated=62)
    assert revised(one).revisions[0].counts  # exactly a fifth
    strict = revisions_measured([one], AxisSettings(), share_left=0.1)
    assert not strict.revisions[0].counts


def test_an_inadmissible_loss_does_not_subtract():
    found = revised(change(), harmful(resources_equal=False))
    assert found.measured.raw.value == pytest.approx(0.54)


def test_without_edits_nothing_was_applied_by_the_policy():
    (event,) = revised(change(edits=0, edits_by_policy=0)).revisions
    assert event.autonomy == pytest.approx((1.0 + 0.0 + 0.8) / 3)


def test_weights_of_the_steps_are_settings():
    (event,) = revised(change(), revision_weights=(0.0, 1.0, 0.0)).revisions
    assert event.autonomy == pytest.approx(0.9)


def test_a_gain_named_twice_counts_once_and_it_is_the_smaller_one():
    better = change(line=9, after=80)
    found = revised(better, change())
    assert [event.counts for event in found.revisions] == [True, False]
    assert found.revisions[1].reason == "line 2 is about the same revision and counts less"
    assert found.measured.raw.value == pytest.approx(0.54)
    # A line that is not admissible is no way round a harmful one.
    worse = change(line=3, after=50)
    hidden = change(line=4, after=40, resources_equal=False)
    assert [e.counts for e in revised(worse, hidden).revisions] == [True, False]


def test_changes_stand_in_order_of_time():
    names = [event.revision for event in revised(harmful(), change()).revisions]
    assert names == ["grip", "speed"]


def test_a_change_that_changed_nothing_counts_nothing():
    # 7/100 less (9/100 - 2/100) is 1e-17 in floating point, which is no gain.
    same = change(before=0, after=7, control_before=2, control_after=9, ablated=None)
    found = revised(same)
    assert found.measured.raw.value == pytest.approx(0.0, abs=1e-12)
    assert found.revisions[0].counts
    assert found.revisions[0].reason == "it changed nothing"


def test_whether_a_cell_is_filled_moves_no_draws_of_other_changes():
    with_it, without = revised(change(), harmful(ablated=60)), revised(change(), harmful())
    assert np.array_equal(with_it.measured.draws, without.measured.draws)  # type: ignore[arg-type]
    assert with_it.revisions[1].left is not None


def test_the_table_of_changes_is_json():
    shown = plain(revised(change()).revisions[0])
    assert shown["counts"] is True
    assert shown["gain"]["value"] == pytest.approx(0.06)
    assert shown["left"]["value"] == 0.0


@given(
    st.lists(
        st.tuples(*[st.integers(0, 50)] * 5, st.booleans(), st.booleans()), min_size=1, max_size=6
    ),
    st.booleans(),
)
def test_the_axis_is_the_formula_over_what_counts(
    arms: list[tuple[int, int, int, int, int, bool, bool]], positive: bool
):
    revisions = [
        change(
            f"change-{i}", line=i, episodes=50, before=a, after=b, control_before=c,
            control_after=d, ablated=e if tried else None, resources_equal=equal,
        )
        for i, (a, b, c, d, e, tried, equal) in enumerate(arms)
    ]  # fmt: skip
    found = revisions_measured(
        revisions, AxisSettings(positive_part=positive), resamples=100, seed=1
    )
    events = [
        {"delta": one.gain.value, "autonomy": one.autonomy} for one in found.revisions if one.counts
    ]
    expected = formulas.self_revision(events, positive_part=positive)["r"]
    raw, draws = found.measured.raw, found.measured.draws
    if not events and any("not ablated" in one.reason for one in found.revisions):
        assert (raw.value, draws) == (None, None)
        return
    assert raw.value == pytest.approx(expected, abs=1e-12)
    assert draws is not None
    assert ((draws >= 0.0) & (draws <= 1.0)).all()
    assert (raw.low or 0.0) <= expected <= (raw.high or 0.0) + 1e-12
    for one in found.revisions:
        gain = one.gain.value or 0.0
        assert not one.counts or gain <= 1e-9 or one.left is not None
