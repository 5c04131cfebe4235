"""A policy beside human professionals, and innovation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import InputError
from robo_eval.core.plain import plain
from robo_eval.gates.axes.experts import innovation, margins_of
from robo_eval.log.evidence import Expert


def table(qualities: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    rows = [(family, q) for family, own in qualities.items() for q in own]
    return pd.DataFrame(rows, columns=["family", "quality"])


def expert(family: str = "pick", quality: float = 0.74, se: float = 0.025, **more: Any) -> Expert:
    given = {"n": 50, "source": "study", "line": 2, **more}
    return Expert(family=family, quality=quality, se=se, **given)


def spread(mean: float, se: float, n: int = 100) -> list[float]:
    """Qualities of exactly this mean and standard error."""
    step = se * math.sqrt(n - 1)
    return [mean - step, mean + step] * (n // 2)


def test_the_worked_margin_of_the_scale() -> None:
    found = margins_of(table({"pick": spread(0.82, 0.01, 100)}), [expert(se=0.025)]).families[0]
    assert found.quality == pytest.approx(0.82)
    assert found.quality_se == pytest.approx(0.01)
    found = margins_of(table({"pick": spread(0.82, 0.02, 80)}), [expert()]).families[0]
    assert found.z == pytest.approx(2.498780190, abs=1e-9)
    assert found.superhuman is True
    half = 1.959963985 * math.hypot(0.02, 0.025)
    assert found.difference.value == pytest.approx(0.08, abs=1e-9)
    assert found.difference.low == pytest.approx(0.08 - half, abs=1e-9)
    assert found.difference.high == pytest.approx(0.08 + half, abs=1e-9)
    assert (found.source, found.expert) == ("study", 0.74)


def test_a_lead_that_may_be_chance_does_not_count() -> None:
    close = table({"pick": spread(0.76, 0.02, 80)})
    found = margins_of(close, [expert()])
    assert found.families[0].difference.value == pytest.approx(0.02)
    assert (found.at_least_human.value, found.superhuman.value) == (0.0, 0.0)
    assert found.missing == ()


def test_families_without_an_expert_or_an_episode_count_as_not_reached() -> None:
    good = spread(0.9, 0.01)
    found = margins_of(
        table({"pick": good, "place": good}), [expert("pick"), expert("pour", quality=0.1)]
    )
    assert [one.family for one in found.families] == ["pick", "place", "pour"]
    assert found.missing == ("place", "pour")
    assert found.at_least_human.value == pytest.approx(1 / 3)
    assert found.at_least_human.reason == "not comparable: place, pour"
    assert found.families[1].difference.reason == "no human professional to compare with"
    assert found.families[2].difference.reason == "no scored episode"
    json.dumps(plain(found), allow_nan=False)


def test_the_families_of_the_battery_can_be_named() -> None:
    found = margins_of(
        table({"pick": spread(0.9, 0.01)}), [expert(), expert("pour")], families=["pick", "wipe"]
    )
    assert [one.family for one in found.families] == ["pick", "wipe"]
    assert found.superhuman.value == 0.5


def test_an_expert_without_episodes_is_none() -> None:
    found = margins_of(table({"pick": spread(0.9, 0.01)}), [expert(n=0)])
    assert found.missing == ("pick",)


def test_one_episode_shows_no_lead() -> None:
    found = margins_of(table({"pick": [1.0]}), [expert()])
    assert found.families[0].difference.reason == "1 episode; an interval needs 2"
    assert (found.families[0].z, found.superhuman.value) == (None, None)
    assert found.missing == ("pick",)


def test_episodes_that_all_ended_alike_are_not_beyond_doubt() -> None:
    """The standard error is that with one more episode at the other end."""
    few = margins_of(table({"pick": [1.0] * 3}), [expert(quality=0.9, se=0.0)]).families[0]
    expected = np.std([1.0, 1.0, 1.0, 0.0], ddof=1) / 2.0
    assert few.quality_se == pytest.approx(expected)
    assert few.superhuman is False
    assert few.quality == 1.0
    many = margins_of(table({"pick": [1.0] * 400}), [expert(quality=0.9, se=0.0)]).families[0]
    assert many.superhuman is True
    low = margins_of(table({"pick": [0.0] * 3}), [expert(quality=0.0, se=0.0)]).families[0]
    assert low.quality_se == pytest.approx(expected)


def test_no_family_is_no_share() -> None:
    found = margins_of(table({}), [])
    assert found.at_least_human.reason == "no task family"
    assert found.superhuman.value is None


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="'pick' is in line 2 already"):
        margins_of(table({}), [expert(), expert(line=3)])
    with pytest.raises(InputError, match="column 'quality' is missing"):
        margins_of(pd.DataFrame({"family": ["pick"]}), [])
    with pytest.raises(InputError, match=r"quality\[0\]"):
        margins_of(table({"pick": [float("nan")]}), [])


@given(
    quality=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=20),
    other=st.floats(0.0, 1.0),
    se=st.floats(0.0, 0.2),
)
def test_superhuman_is_at_least_human_and_agrees_with_the_interval(
    quality: list[float], other: float, se: float
) -> None:
    (found,) = margins_of(table({"pick": quality}), [expert(quality=other, se=se)]).families
    assert found.z is not None
    if found.superhuman:
        # 1.96 is a little more than the quantile of the interval.
        assert found.at_least_human
    assert (found.difference.low or 0.0) <= (found.difference.value or 0.0)


# Innovation --------------------------------------------------------------------------------------


def test_innovation_is_per_month_and_never_more_than_1() -> None:
    assert innovation(2, 2, months=1.0).value == pytest.approx(2 / 4 + 2 / 8)
    assert innovation(4, 4, months=2.0).value == pytest.approx(0.75)
    assert innovation(100, 0, months=1.0).value == 1.0
    assert innovation(0, 0, months=1.0).value == 0.0
    assert innovation(1, 1, months=1.0, tools_per_month=2.0, revisions_per_month=4.0).value == 0.75
    assert innovation(3, 5, months=1.0).n == 8


@pytest.mark.parametrize(
    ("tools", "revisions", "months"), [(-1, 0, 1.0), (0, 0.5, 1.0), (1, 1, 0.0), (1, 1, -2.0)]
)
def test_what_is_no_count_or_window_is_refused(tools: int, revisions: float, months: float) -> None:
    with pytest.raises(InputError):
        innovation(tools, revisions, months=months)  # type: ignore[arg-type]
