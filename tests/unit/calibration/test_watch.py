"""Constants over days: which changed, since when, how sure, and when to calibrate again."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

from robo_eval.cli.calibrate import app
from robo_eval.core.errors import CheckFailedError, InputError, PlanError
from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import plain
from robo_eval_calibration.watch import Day, Watched, dates, day_of, order_p, snapshots_in, watched

FIRST = date(2026, 11, 1)
RNG = np.random.default_rng(7)
NOISE = RNG.standard_normal(16)


def estimate(value: float, half: float = 0.1, n: int = 4) -> Estimate:
    return Estimate(
        value=value, low=value - half, high=value + half, n=n, method="re_kh", unit="kg"
    )


def days_of(values: Any, name: str = "mass_kg", half: float = 0.1) -> list[Day]:
    return [
        Day(
            day=FIRST + timedelta(days=number),
            source=f"{number}.yaml",
            of=("task", "gantry", "real"),
            constants={name: estimate(float(value), half)},
            recordings=frozenset({f"{number}"}),
        )
        for number, value in enumerate(values)
    ]


def only(days: list[Day], **keywords: Any) -> Watched:
    (found,) = watched(days, **keywords).constants
    return found


def test_a_jump_is_found_with_its_day_its_size_and_its_chance() -> None:
    values = 1.3 + 0.01 * NOISE[:12] + 0.1 * (np.arange(12) >= 7)
    found = only(days_of(values))
    assert found.verdict == "changed"
    assert found.since == FIRST + timedelta(days=7)
    assert found.since_low <= found.since <= found.since_high
    assert found.change == pytest.approx(0.1, abs=0.02)
    # 7 days before and 5 after: of 12! orders 2 * 7! * 5! have no less contrast.
    assert 0.0 < found.p < 0.01


def test_every_order_of_eight_days_counts_once() -> None:
    """A step in the middle is as clear in the 2 * 4! * 4! orders that keep both halves whole."""
    assert order_p(np.array([0.0] * 4 + [1.0] * 4)) == pytest.approx(2 * 24 * 24 / 40320)
    assert order_p(np.array([0.0] * 3 + [1.0] * 5)) == pytest.approx(2 * 6 * 120 / 40320)


def test_the_contrast_is_that_of_the_t_test_between_the_parts() -> None:
    x = NOISE[:10] + 2.0 * (np.arange(10) >= 6)
    t = [abs(stats.ttest_ind(x[:k], x[k:]).statistic) for k in range(2, 9)]
    assert dates(x)[0] == 2 + int(np.argmax(t))


def test_dates_are_those_whose_likelihood_is_near_the_best() -> None:
    x = np.array([0.0, 0.3, -0.3, 0.0, 0.5, 1.0, 1.3, 0.7, 1.0])
    rest = [
        float(((x[:k] - x[:k].mean()) ** 2).sum() + ((x[k:] - x[k:].mean()) ** 2).sum())
        for k in range(1, 9)
    ]
    wanted = [k for k, one in enumerate(rest, 1) if 9 * np.log(one / min(rest)) <= 6.0]
    assert dates(x) == (1 + int(np.argmin(rest)), tuple(wanted))
    assert len(wanted) > 1


@given(
    st.lists(st.integers(-50, 50), min_size=9, max_size=14),
    st.floats(0.01, 100.0),
    st.floats(-1e3, 1e3),
)
def test_neither_unit_nor_zero_nor_direction_changes_the_chance(
    values: list[int], scale: float, shift: float
) -> None:
    x = np.array(values, dtype=float)
    p = order_p(x, draws=199)
    assert 0.0 < p <= 1.0
    assert order_p(scale * x + shift, draws=199) == p
    assert order_p(-x, draws=199) == p


def test_steady_days_are_no_change_and_ask_for_nothing() -> None:
    found = watched(days_of(1.3 + 0.01 * NOISE[:12]))
    assert found.constants[0].verdict == "no change shown"
    assert found.constants[0].change is None
    assert not found.is_due


def test_days_that_are_all_alike_are_steady() -> None:
    found = only(days_of([7.0] * 12))
    assert (found.verdict, found.p) == ("no change shown", 1.0)
    assert found.correlation.value is None


def test_a_quantised_step_is_dated_to_the_day() -> None:
    found = only(days_of([7.0] * 6 + [8.0] * 6))
    assert found.verdict == "changed"
    assert found.since_low == found.since == found.since_high == FIRST + timedelta(days=6)


def test_seven_days_are_too_few_and_say_how_many_are_needed() -> None:
    found = only(days_of([1.0] * 3 + [2.0] * 4))
    assert found.verdict == "too few days"
    assert found.p is None
    assert "7 of the 8" in str(found.reason)


def test_eight_days_of_two_constants_cannot_tell_a_change_and_say_so() -> None:
    """The clearest change of 8 days has the chance 0.029, which Holm doubles."""
    both = [
        replace(one, constants={**one.constants, "friction": estimate(0.6)})
        for one in days_of([1.0] * 4 + [2.0] * 4)
    ]
    for found in watched(both).constants:
        assert found.verdict == "too few days"
        assert "8 of the 9 that are needed to watch 2 constants" in str(found.reason)


def test_correlated_days_are_told() -> None:
    wandering = np.sin(np.arange(20) / 3.0)
    steady = only(days_of(np.tile([0.0, 1.0], 10)))
    assert only(days_of(0.01 * wandering)).correlation.value > 0.5
    assert steady.correlation.high < 0.0


def test_today_is_held_against_the_snapshot_in_use() -> None:
    near, far = days_of([1.0, 1.05], half=0.1), days_of([1.0, 1.5], half=0.1)
    assert not watched(near).is_due
    found = watched(far)
    assert found.is_due
    assert "mass_kg is not today" in found.reasons[0]
    moved = found.constants[0].moved
    assert moved.value == pytest.approx(0.5)
    # Two equal intervals of 4 recordings: Welch's t with 6 degrees of freedom.
    error = 0.1 / stats.t.ppf(0.975, 3) * np.sqrt(2.0)
    assert moved.high - moved.value == pytest.approx(error * stats.t.ppf(0.975, 6))


def test_a_snapshot_from_after_the_change_is_not_to_be_replaced() -> None:
    days = days_of(1.3 + 0.01 * NOISE[:12] + 0.1 * (np.arange(12) >= 5), half=0.05)
    assert watched(days).is_due
    found = watched(days, in_use=days[9])
    assert found.constants[0].verdict == "changed"
    assert not found.is_due


def test_one_recording_a_day_has_no_interval_to_compare() -> None:
    days = [
        replace(one, constants={"mass_kg": estimate(float(number), n=1)})
        for number, one in enumerate(days_of([1.0, 2.0]))
    ]
    found = only(days)
    assert found.moved_p is None
    assert "record more than one" in str(found.moved.reason)


def test_a_constant_that_was_not_found_today_has_no_value_today() -> None:
    days = days_of([1.0, 1.0])
    days[1] = replace(days[1], constants={})
    found = only(days)
    assert found.today.value is None
    assert found.days == 1


def test_the_order_of_files_changes_nothing() -> None:
    days = days_of(1.3 + NOISE[:10])
    assert plain(watched(days[::-1])) == plain(watched(days))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"day": FIRST}, ("1.yaml", str(FIRST), "one snapshot a day")),
        ({"of": ("task", "arm", "real")}, ("1.yaml", "robot is 'arm'", "one task, robot and side")),
        ({"recordings": frozenset({"0"})}, ("1.yaml", "0.yaml", "recordings of its own")),
    ],
)
def test_days_that_cannot_be_compared_are_refused(
    changed: dict[str, Any], words: tuple[str, ...]
) -> None:
    first, second = days_of([1.0, 2.0])
    with pytest.raises(InputError) as raised:
        watched([first, replace(second, **changed)])
    for word in words:
        assert word in str(raised.value)


# Files ------------------------------------------------------------------------------------------


def write(path: Path, day: date, value: float, **changed: Any) -> Path:
    constant = {
        "value": value, "low": value - 0.01, "high": value + 0.01, "unit": "kg", "nominal": 1.0,
        "n": 2, "by_recording": [value, value], "method": "re_kh", "verdict": "identified",
    }  # fmt: skip
    data = {
        "version": 1, "name": "found", "task": "MyLab/Turn-v0", "robot": "gantry",
        "side": "twin", "made": "2026-12-24T10:00:00Z",
        "valid": {"from": day, "until": day + timedelta(days=14)},
        "recordings": [
            {"id": f"rec-{i}", "episode": f"e{i}", "sha256": f"{day.toordinal() * 10 + i:064x}"}
            for i in (1, 2)
        ],
        "constants": {
            "mass_kg": constant,
            "delay_s": {"value": 0.0, "kept": 0.0, "verdict": "not identifiable"},
        },
        **changed,
    }  # fmt: skip
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(data))
    return path


def test_a_day_is_that_of_its_recordings_and_holds_what_was_measured(tmp_path: Path) -> None:
    found = day_of(write(tmp_path / "a.yaml", FIRST, 1.3))
    assert found.day == FIRST
    assert set(found.constants) == {"mass_kg"}
    assert found.constants["mass_kg"].n == 2
    assert len(found.recordings) == 2


def test_snapshots_of_trials_and_files_are_taken_once(tmp_path: Path) -> None:
    one = write(tmp_path / "calibration" / "a.yaml", FIRST, 1.3)
    two = write(tmp_path / "b.yaml", FIRST + timedelta(days=1), 1.3)
    assert snapshots_in([tmp_path, one, two]) == [one, two]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty/calibration: holds no snapshot.*calibrate fit"):
        snapshots_in([tmp_path / "empty"])


def test_the_verb_prints_and_ends_with_1_where_a_calibration_is_due(tmp_path: Path) -> None:
    files = [
        write(tmp_path / f"{day}.yaml", FIRST + timedelta(days=day), 1.3 + 0.1 * (day >= 5))
        for day in range(10)
    ]
    done = CliRunner().invoke(app, ["watch", *map(str, files)])
    assert isinstance(done.exception, CheckFailedError)
    assert "mass_kg changed" in str(done.exception)
    assert "2026-11-06" in done.output
    done = CliRunner().invoke(app, ["watch", *map(str, files[:5]), "--json"])
    assert done.exit_code == 0
    assert '"verdict": "too few days"' in done.output


@pytest.mark.parametrize("is_json", [False, True])
def test_one_day_compares_nothing_and_a_file_that_is_named_twice_is_told(
    tmp_path: Path, is_json: bool
) -> None:
    one = write(tmp_path / "calibration" / "a.yaml", FIRST, 1.3)
    for again in ([one], [tmp_path]):
        done = CliRunner().invoke(
            app, ["watch", str(one), *map(str, again), *(["--json"] if is_json else [])]
        )
        assert isinstance(done.exception, CheckFailedError)
        for word in ("nothing was compared: 1 day;", "a.yaml is named 2 times", "two days"):
            assert word in str(done.exception)
        assert "nothing asks" not in done.output
    two = write(tmp_path / "b.yaml", FIRST + timedelta(days=1), 1.3)
    done = CliRunner().invoke(app, ["watch", str(one), str(one), str(two)])
    assert done.exit_code == 0
    assert "a.yaml is named 2 times" in " ".join(done.output.split())
    assert "nothing asks for a new calibration" in done.output


def test_days_without_intervals_compare_nothing() -> None:
    days = [replace(one, constants={"mass_kg": estimate(1.0, n=1)}) for one in days_of([1.0, 2.0])]
    assert not watched(days).is_compared
    assert watched(days_of([1.0, 2.0])).is_compared


def test_a_file_that_is_no_snapshot_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", FIRST, 1.3, valid={})
    done = CliRunner().invoke(app, ["watch", str(path)])
    assert isinstance(done.exception, PlanError)
    assert "a.yaml: valid.from: is missing" in str(done.exception)
