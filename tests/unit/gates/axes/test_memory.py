"""Memory from what was still known after days and what was found on request."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval import formulas
from robo_eval.gates.axes.draws import Resampled
from robo_eval.gates.axes.memory import decay_rate, memory_measured
from robo_eval.gates.axes.settings import AxisSettings
from robo_eval.log.evidence import Retention, Retrieval


def kept(lag: float, recalled: int, trials: int = 100, family: str = "places") -> Retention:
    return Retention(line=2, family=family, lag_days=lag, trials=trials, recalled=recalled)


def found_of(found: int, relevant: int = 100, family: str = "places", k: int = 5) -> Retrieval:
    return Retrieval(
        line=2, family=family, k=k, queries=relevant, relevant=relevant, found=found,
        returned=found, verified=found,
    )  # fmt: skip


def memory(
    retention: list[Retention] | None, retrieval: list[Retrieval] | None, **settings: Any
) -> Resampled:
    return memory_measured(retention, retrieval, AxisSettings(**settings))


def test_the_worked_example_of_the_scale():
    found = memory([kept(14, 50)], [found_of(81)])
    assert found.parts["half_life_days"].value == pytest.approx(14.0, abs=1e-9)
    assert found.parts["retention"].value == pytest.approx(0.6666666667, abs=1e-9)
    assert found.parts["recall@5"].value == pytest.approx(0.81, abs=1e-9)
    assert found.raw.value == pytest.approx(0.7348469228, abs=1e-9)
    assert found.raw.n == 200
    assert found.raw.reason is None
    assert found.raw.low is not None
    assert 0.5 < found.raw.low < 0.7348 < (found.raw.high or 0.0) < 0.9


def test_the_rate_is_that_of_least_squares_through_the_origin():
    lag, share = np.array([1.0, 7.0, 30.0]), np.array([0.9, 0.6, 0.2])
    trials = np.array([100.0, 50.0, 10.0])
    root = np.sqrt(trials)
    slope, *_ = np.linalg.lstsq((root * lag)[:, None], root * -np.log(share), rcond=None)
    assert decay_rate(lag, share, trials) == pytest.approx(float(slope[0]))
    exact = np.exp(-0.05 * lag)
    assert decay_rate(lag, exact, trials) == pytest.approx(0.05)


@given(half_life=st.floats(0.5, 200.0), lags=st.lists(st.floats(0.1, 60.0), min_size=1, max_size=5))
def test_a_curve_without_noise_gives_its_half_life(half_life: float, lags: list[float]):
    lag = np.array(lags)
    share = np.exp(-math.log(2.0) / half_life * lag)
    rate = decay_rate(lag, share, np.full(len(lags), 20.0))
    assert math.log(2.0) / float(rate) == pytest.approx(half_life, rel=1e-9)


def test_who_forgets_nothing_has_no_half_life_but_a_lower_end_of_one():
    found = memory([kept(7, 20, 20), kept(30, 20, 20)], [found_of(100)])
    life = found.parts["half_life_days"]
    assert life.value is None
    assert "infinite" in str(life.reason)
    assert life.low is not None
    assert life.low > 30.0
    assert found.parts["retention"].value == 1.0
    assert found.raw.value == 1.0
    assert found.raw.low is not None
    assert 0.8 < found.raw.low < 1.0


def test_who_forgets_everything_is_not_perfect():
    found = memory([kept(7, 0, 20)], [found_of(100)])
    assert found.raw.value == 0.0
    assert found.parts["half_life_days"].value == 0.0
    assert "places: nothing was recalled at any time" in str(found.raw.reason)
    assert found.raw.high is not None
    assert 0.1 < found.raw.high < 0.8  # within the week it may have known it for a while


def test_a_time_at_which_nothing_was_recalled_lowers_the_axis_and_is_said():
    with_line = memory([kept(7, 90), kept(30, 0)], [found_of(80)])
    without = memory([kept(7, 90)], [found_of(80)])
    assert (with_line.raw.value or 0.0) < (without.raw.value or 0.0)
    assert "1 lines with nothing recalled count as half a recall" in str(with_line.raw.reason)
    rate = decay_rate(np.array([7.0, 30.0]), np.array([0.9, 0.5 / 101]), np.array([100.0, 100.0]))
    assert with_line.parts["half_life_days"].value == pytest.approx(math.log(2.0) / float(rate))


def test_the_axis_is_the_median_over_families():
    lives, recalls = {"a": 50, "b": 25, "c": 90}, {"a": 81, "b": 60, "c": 90}
    retention = [kept(14, recalled, family=name) for name, recalled in lives.items()]
    retrieval = [found_of(found, family=name) for name, found in recalls.items()]
    found = memory(retention, retrieval)
    each = [
        formulas.memory(-14 * math.log(2) / math.log(lives[name] / 100), 7, recalls[name] / 100)[
            "m"
        ]
        for name in lives
    ]
    assert found.raw.value == pytest.approx(np.median([m or 0.0 for m in each]))
    assert found.parts["half_life_days of a"].value == pytest.approx(14.0)
    assert found.parts["recall@5 of b"].value == pytest.approx(0.6)


def test_a_family_in_one_file_alone_is_left_out_and_named():
    found = memory([kept(14, 50), kept(14, 50, family="tools")], [found_of(81)])
    assert found.raw.value == pytest.approx(0.7348469228)
    assert "only one of both files has them: tools" in str(found.raw.reason)


def test_only_lines_of_the_declared_k_count():
    found = memory([kept(14, 50)], [found_of(81), found_of(10, k=1)])
    assert found.parts["recall@5"].value == 0.81
    assert "1 lines of retrieval.csv with another k than 5" in str(found.raw.reason)
    one = memory([kept(14, 50)], [found_of(81), found_of(10, k=1)], recall_k=1)
    assert one.parts["recall@1"].value == 0.1


def test_what_was_asked_at_once_says_nothing_about_decay():
    found = memory([kept(0, 100), kept(14, 50)], [found_of(81)])
    assert found.raw.value == pytest.approx(0.7348469228)
    assert "1 lines of retention.csv at lag 0" in str(found.raw.reason)


@pytest.mark.parametrize(
    ("retention", "retrieval", "words"),
    [
        (None, [found_of(81)], "no line of retention.csv (family, lag_days, trials, recalled)"),
        ([kept(14, 50)], None, "no line of retrieval.csv (family, k = 5"),
        (None, None, "and none of retrieval.csv"),
        ([kept(14, 50)], [], "no line of retrieval.csv"),
        ([kept(14, 0, 0)], [found_of(81)], "no family has both"),
        ([kept(0, 50)], [found_of(81)], "no family has both"),
        ([kept(14, 50)], [found_of(81, k=3)], "with k 5"),
        ([kept(14, 50)], [found_of(81, family="tools")], "no family has both"),
        ([kept(14, 50)], [found_of(0, 0)], "no family has both"),
    ],
)
def test_what_is_missing_is_named(
    retention: list[Retention] | None, retrieval: list[Retrieval] | None, words: str
):
    found = memory(retention, retrieval)
    assert (found.raw.value, found.draws) == (None, None)
    assert words in str(found.raw.reason)


def test_draws_are_the_same_for_a_seed():
    again = [memory([kept(14, 50)], [found_of(81)]).draws for _ in range(2)]
    assert np.array_equal(*again)  # type: ignore[call-overload]
    other = memory_measured([kept(14, 50)], [found_of(81)], AxisSettings(), seed=1).draws
    assert not np.array_equal(again[0], other)  # type: ignore[arg-type]


def test_draws_of_retention_are_the_formula_of_the_drawn_half_lives():
    """The form used for many draws at once is that of the formula."""
    found = memory([kept(14, 5, 10)], [found_of(10, 10)])
    low, high = (getattr(found.parts["half_life_days"], end) for end in ("low", "high"))
    part = found.parts["retention"]
    assert formulas.memory(low, 7.0)["retention"] == pytest.approx(part.low, abs=2e-3)
    assert formulas.memory(high, 7.0)["retention"] == pytest.approx(part.high, abs=2e-3)


@given(
    lines=st.lists(
        st.tuples(st.floats(0.0, 90.0), st.integers(0, 30), st.integers(0, 30)),
        min_size=1, max_size=6,
    ),
    found=st.integers(0, 40),
)  # fmt: skip
def test_every_value_and_draw_is_a_share(lines: list[tuple[float, int, int]], found: int):
    retention = [kept(lag, min(a, b), max(a, b)) for lag, a, b in lines]
    one = memory_measured(retention, [found_of(found, 40)], AxisSettings(), resamples=100)
    if one.raw.value is not None:
        assert one.draws is not None
        assert 0.0 <= (one.raw.low or 0.0) <= one.raw.value <= (one.raw.high or 0.0) <= 1.0
        assert ((one.draws >= 0.0) & (one.draws <= 1.0)).all()
