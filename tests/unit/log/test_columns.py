"""Rows read all at once are the rows read one by one, or are refused like them."""

import json
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from robo_eval.core.episode import COLUMNS, Episode
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.log.columns import Column, episodes_table, table_of_columns
from robo_eval.log.rows import cells_of, episode_of
from robo_eval.log.schema import KINDS, OPTIONAL
from robo_eval.log.store import EpisodeStore

BAD = [None, "", "x", "success", "sim", "{}", "[]", "{", "{\"a\":[1]}", -1, 0, 1, 2, True, 2**40,
       -0.5, 0.5, 1.5, float("nan"), float("inf"), b"x"]  # fmt: skip


@pytest.fixture
def episodes(make_episode):
    return [
        make_episode(0, episode_return=1 / 3, novelty={"name": "mass", "p": {"s": [1, 2]}}),
        make_episode(1, quality=None, success=None, end_reason=EndReason.LOST, level=None),
        make_episode(2, quality=0.1, success=False, end_reason=EndReason.TIMEOUT, side=Side.REAL),
        make_episode(3, start_ns=None, duration_s=None, exposure_s=None, ticks=None, operator="J"),
    ]  # fmt: skip


def _cells(episodes):
    rows = [cells_of(episode, where="x") for episode in episodes]
    return {name: [row[name] for row in rows] for name in COLUMNS}


def _at_once(cells):
    columns = {name: Column(name) for name in COLUMNS}
    if not all(
        columns[name].add(part) for name in COLUMNS for part in (cells[name][:2], cells[name][2:])
    ):
        return None
    return table_of_columns(columns)


def _one_by_one(cells):
    rows = zip(*(cells[name] for name in COLUMNS), strict=True)
    return episodes_table([episode_of(row, where=lambda: "x") for row in rows])


def test_good_rows_are_read_at_once_and_as_one_by_one(episodes):
    found = _at_once(_cells(episodes))
    assert found is not None
    pd.testing.assert_frame_equal(found, episodes_table(episodes))


def test_mappings_are_not_shared_between_rows(episodes):
    found = _at_once(_cells(episodes))
    found["costs"][0]["energy_j"] = -1.0
    found["novelty"][0]["p"]["s"].append(3)
    assert found["costs"][1] == {"energy_j": 1.5}
    assert _at_once(_cells(episodes))["novelty"][0]["p"]["s"] == [1, 2]


@pytest.mark.parametrize("row", [0, pytest.param(-1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_bad_cell_is_never_read_at_once(episodes, column, row):
    """Every odd value in every column, first and last: left to the reader of rows, or read like it.

    The cells come in two parts: in one the odd value is the first, in the other the last.
    """
    left = read = 0
    for value in BAD:
        cells = _cells(episodes)
        cells[column][row] = value
        found = _at_once(cells)
        if found is None:
            left += 1
            continue
        read += 1
        pd.testing.assert_frame_equal(found, _one_by_one(cells))
    assert left
    # A text may be nearly anything; of the odd values each column can hold one or two.
    assert read or column in ("side", "arm", "end_reason", "quality", "success")


@pytest.mark.slow
def test_what_is_refused_at_once_is_mostly_refused_one_by_one(episodes):
    """The quick way is no stricter than it needs: good logs must not fall back to the slow one."""
    stricter = []
    for column in COLUMNS:
        for value in BAD:
            cells = _cells(episodes)
            cells[column][0] = value
            if _at_once(cells) is not None:
                continue
            try:
                _one_by_one(cells)
            except InputError:
                continue
            stricter.append((column, value))
    # Truths where whole numbers are stored, and 1 in place of 1.0, come from no log of ours.
    assert all(isinstance(value, bool) for _, value in stricter), stricter


def test_no_row_is_left_to_the_reader_of_rows(trial):
    assert _at_once({name: [] for name in COLUMNS}) is None
    assert tuple(trial.frame().columns) == COLUMNS


def test_a_store_of_several_pages_reads_as_its_episodes(trial, make_episode, monkeypatch):
    monkeypatch.setattr("robo_eval.log.store._BLOCK", 3)
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        store.append([make_episode(i, pair_id=f"p{i}" if i % 2 else None) for i in range(8)])
        expected = episodes_table(store.episodes())
        pd.testing.assert_frame_equal(store.frame(), expected)
    assert len(expected) == 8


def test_every_kind_of_column_is_known():
    assert {field.name for field in fields(Episode)} == set(KINDS)
    for name in COLUMNS:
        assert Column(name).add([None]) == (name in OPTIONAL)
    assert json.dumps(np.float64(1.0)) == "1.0"
