"""What holds of every trial, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.analysis import sailon
from robo_eval.core.errors import InputError

SHARE = st.floats(0.0, 1.0)


@st.composite
def trials(draw: st.DrawFn) -> dict[str, Any]:
    n = draw(st.integers(1, 12))
    index = st.none() | st.integers(0, n - 1)
    return {
        "n_episodes": n,
        "onset": draw(index),
        "declared": draw(index),
        "condition": draw(st.sampled_from(["system", "given"])),
        "performance": draw(st.lists(SHARE, min_size=n, max_size=n)),
        "baseline": draw(st.lists(SHARE, min_size=n, max_size=n)),
    }


@given(st.lists(trials(), max_size=8))
def test_detection_adds_up(every: list[dict[str, Any]]) -> None:
    found = sailon.detection_summary(every)
    own = [one for one in every if one["condition"] == "system"]
    false_of_controls = sum(one["onset"] is None and one["declared"] is not None for one in own)
    assert found["n_trials"] == len(own)
    assert (
        found["n_detected"] + found["n_false_positive"] + found["n_missed"]
        == found["n_novelty"] + false_of_controls
    )
    assert sailon.detection_summary(list(reversed(every))) == pytest.approx(found)


@given(trials())
def test_agent_and_baseline_mirror_each_other(one: dict[str, Any]) -> None:
    own = sailon.reaction(one["performance"], one["baseline"], one["onset"])
    other = sailon.reaction(one["baseline"], one["performance"], one["onset"])
    for name in ("opti", "apti", "ipti"):
        ours, theirs = own[name], other[name]  # type: ignore[literal-required]
        assert (ours is None) == (theirs is None)
        assert ours is None or math.isclose(ours + theirs, 1.0, abs_tol=1e-12)


@given(st.lists(SHARE, min_size=1, max_size=12), SHARE, SHARE)
def test_what_follows_a_declaration_does_not_take_it_back(
    probability: list[float], threshold: float, later: float
) -> None:
    declared = sailon.declared_index(probability, threshold)
    if declared is not None:
        assert sailon.declared_index([*probability, later], threshold) == declared
        onset = min(declared, len(probability) - 1)
        assert sailon.fn_unlatched(probability, threshold, onset) <= len(probability) - onset - 1  # type: ignore[operator]


@given(st.lists(SHARE, min_size=1, max_size=12), SHARE, SHARE)
def test_a_lower_threshold_declares_no_later(p: list[float], one: float, other: float) -> None:
    low, high = (sailon.declared_index(p, threshold) for threshold in sorted((one, other)))
    assert high is None or (low is not None and low <= high)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sailon.reaction([1, 1], [1, 1], 1, window=2), "window: 2 .* 1 from the onset"),
        (lambda: sailon.reaction([1, 1], [1, 1], 1, window=0), "window .* given 0"),
        (lambda: sailon.reaction([1, 1], [1], 1), "baseline has 1 .* performance 2"),
        (lambda: sailon.reaction([1, math.nan], [1, 1], 1), r"performance\[1\] .* nan"),
        (lambda: sailon.detection(2, None, 2), "onset: episode 2 is outside .* 2 episodes"),
        (lambda: sailon.detection(None, True, 2), "declared .* given True"),
        (lambda: sailon.declared_index([0.5, 1.5], 0.5), r"probability\[1\] .* given 1.5"),
        (lambda: sailon.declared_index([0.5], [0.5, 0.5]), "threshold has 2 .* probability 1"),
        (lambda: sailon.detection_summary([{"onset": None}]), "trial: declared is missing"),
        (lambda: sailon.detection_summary([{"condition": "x"}]), "condition .* given 'x'"),
        (lambda: sailon.mean_over_trials([math.inf]), "value .* given inf"),
    ],
)
def test_bad_input_is_named(call: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()


def test_a_declaration_is_read_from_what_was_stated() -> None:
    trial = {"n_episodes": 3, "onset": 1, "probability": [0.1, 0.6, 0.2], "threshold": [0.5] * 3}
    assert sailon.detection_summary([trial])["m1"] == 0.0
