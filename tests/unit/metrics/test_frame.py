import numpy as np
import pandas as pd
import pytest

from robo_eval.core.episode import COLUMNS
from robo_eval.core.errors import InputError
from robo_eval.metrics.frame import REQUIRED, episodes_frame


def test_words_and_truths_take_one_form(frame, episode):
    table = episodes_frame(frame(episode("a"), episode("b", 0.5), episode("c", None)))
    assert table["success"].tolist() == [True, False, None]
    assert table["end_reason"].tolist() == ["success", "failure", "fault"]
    assert type(table["end_reason"].iloc[0]) is str
    assert np.isnan(table["quality"].iloc[2])
    assert set(COLUMNS) <= set(table.columns)


def test_a_table_read_back_from_csv_is_understood(frame, episode, tmp_path):
    log = frame(
        episode("a", 1.0), episode("b", 0.5), episode("c", None), episode("d-a2", attempt=2)
    )
    log.to_csv(tmp_path / "episodes.csv", index=False)
    back = episodes_frame(pd.read_csv(tmp_path / "episodes.csv"))
    direct = episodes_frame(log)
    for column in ("quality", "success", "end_reason", "level", "difficulty", "base_id"):
        assert back[column].map(str).tolist() == direct[column].map(str).tolist()


def test_the_required_columns_are_enough(frame, episode):
    table = episodes_frame(frame(episode("a"), episode("b", None))[list(REQUIRED)])
    assert table["arm"].tolist() == ["main", "main"]
    assert table["attempt"].tolist() == [1, 1]
    assert table["level"].tolist() == [None, None]


def test_the_table_given_is_left_alone(frame, episode):
    log = frame(episode("a"), episode("b", None))
    before = log.copy(deep=True)
    episodes_frame(log)
    assert log.equals(before)


def test_attempts_share_the_id_of_the_episode(frame, episode):
    table = episodes_frame(
        frame(episode("x", None), episode("x-a2", attempt=2), episode("y-a2", 0.5))
    )
    # The last is an episode whose own name ends so.
    assert table["base_id"].tolist() == ["x", "x", "y-a2"]


@pytest.mark.parametrize(
    ("column", "value", "match"),
    [
        ("quality", float("nan"), r"row 1 \(b\), column 'quality' is nan; success is False"),
        ("quality", float("inf"), r"column 'quality' is inf"),
        ("quality", 1.2, r"column 'quality' is 1.2; it must be in \[0, 1\]"),
        ("quality", "good", r"column 'quality' is 'good', not a number"),
        ("success", None, r"column 'quality' is 0.5; success is None"),
        ("success", True, r"column 'success' is True; it contradicts end_reason 'failure'"),
        ("success", "maybe", r"column 'success' is 'maybe'; it must be true, false or empty"),
        ("end_reason", "faliure", r"column 'end_reason': .*did you mean 'failure'"),
        ("end_reason", "success", r"'success' is False; it contradicts end_reason 'success'"),
        ("end_reason", "lost", r"an episode that ended by lost has no score"),
        ("difficulty", "hrad", r"column 'difficulty': .*did you mean 'hard'"),
        ("side", "simulator", r"column 'side': unknown side"),
        ("arm", None, r"column 'arm' is empty"),
        ("policy", "", r"column 'policy' is empty"),
        ("episode_id", "a", r"row 1 \(a\), column 'episode_id' appears twice"),
        ("episode_id", float("nan"), r"column 'episode_id' is empty"),
        ("level", 1.5, r"column 'level' is 1.5; it must be a whole number"),
        ("level", -1, r"column 'level' is -1"),
        ("ticks", -3, r"column 'ticks' is -3; it must be a whole number of at least 0"),
        ("attempt", float("nan"), r"column 'attempt' is nan; it must be a whole number"),
        ("duration_s", -0.1, r"column 'duration_s' is -0.1; it must be a number of at least 0"),
        ("episode_return", float("-inf"), r"column 'episode_return' is -inf"),
        ("stated_success_probability", 3.0, r"it must be in \[0, 1\]"),
    ],
)
def test_a_bad_cell_is_refused_by_row_and_column(frame, episode, column, value, match):
    log = frame(episode("a"), episode("b", 0.5))
    log[column] = log[column].astype(object)
    log.loc[1, column] = value
    with pytest.raises(InputError, match=match) as caught:
        episodes_frame(log)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("column", ["ticks", "level", "attempt", "interventions"])
@pytest.mark.parametrize("value", [2**53, 2**53 + 1, 2**63 - 1, 2.0**60])
@pytest.mark.parametrize("other", [1, None])
def test_a_count_that_a_float_cannot_hold_is_refused(frame, episode, column, value, other):
    log = frame(episode("a", 0.5), episode("b", 0.5))
    if other is None and column in ("attempt", "interventions"):
        other = 1
    log[column] = pd.Series([other, value], dtype=object)
    expected = rf"row 1 \(b\), column '{column}' is .*; it must be less than 9007199254740992"
    for kind in ("object", "float64" if isinstance(value, float) else "Int64"):
        with pytest.raises(InputError, match=expected):
            episodes_frame(log.astype({column: kind}))


def test_counts_below_that_stay_exact(frame, episode):
    log = frame(episode("a", 0.5), episode("b", 0.5))
    for column in ("ticks", "level"):
        log[column] = [2**53 - 1, 2**53 - 2]
    table = episodes_frame(log)
    assert table["ticks"].tolist() == table["level"].tolist() == [2**53 - 1, 2**53 - 2]


@pytest.mark.parametrize("column", ["duration_s", "exposure_s"])
def test_a_time_whose_sum_could_be_infinite_is_refused(frame, episode, column):
    log = frame(episode("a", 0.5), episode("b", 0.5))
    log[column] = [1e12, 1e308]
    expected = rf"row 1 \(b\), column '{column}' is 1e\+308; no episode is longer than 1e\+12 s"
    with pytest.raises(InputError, match=expected):
        episodes_frame(log)
    log[column] = [1e12, 1e12]
    assert episodes_frame(log)[column].tolist() == [1e12, 1e12]


def test_an_assisted_success_is_refused(frame, episode):
    with pytest.raises(InputError, match="an assisted episode is never a success"):
        episodes_frame(frame(episode("a", interventions=1)))


def test_an_episode_scored_twice_is_refused(frame, episode):
    with pytest.raises(InputError, match=r"row 1 \(x-a2\), column 'episode_id' is scored twice"):
        episodes_frame(frame(episode("x"), episode("x-a2", attempt=2)))


def test_missing_and_doubled_columns_are_refused(frame, episode):
    log = frame(episode("a"))
    with pytest.raises(InputError, match="column 'success' is missing"):
        episodes_frame(log.drop(columns="success"))
    doubled = pd.concat([log, log[["quality"]]], axis=1)
    with pytest.raises(InputError, match="column 'quality' appears twice"):
        episodes_frame(doubled)


@pytest.mark.parametrize("unknown", [None, float("nan"), pd.NA])
def test_a_length_that_nobody_recorded_is_missing_and_not_zero(frame, episode, unknown):
    log = frame(episode("a"), episode("b", 0.5))
    for column in ("ticks", "duration_s", "exposure_s", "start_ns"):
        log[column] = log[column].astype(object)
        log.loc[1, column] = unknown
    table = episodes_frame(log)
    assert table["ticks"].isna().tolist() == [False, True]
    assert table["ticks"].iloc[0] == 200
    assert table["duration_s"].isna().tolist() == [False, True]
    assert table["exposure_s"].isna().tolist() == [False, True]
    # Checked a second time, as by callers that hand a checked table on.
    again = episodes_frame(table)
    assert again["ticks"].isna().tolist() == [False, True]
    assert again["quality"].tolist() == [1.0, 0.5]


def test_columns_of_lengths_may_be_missing_altogether(frame, episode):
    log = frame(episode("a")).drop(columns=["ticks", "duration_s", "start_ns"])
    table = episodes_frame(log)
    assert table[["ticks", "duration_s"]].isna().all(axis=None)
    assert episodes_frame(frame(episode("a")))["ticks"].dtype == np.int64
