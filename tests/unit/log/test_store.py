"""Rows come back as they were given, once each, and nothing wrong gets in."""

import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from robo_eval.core.episode import COLUMNS
from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.core.kinds import Arm, EndReason
from robo_eval.log.chain import GENESIS
from robo_eval.log.store import EpisodeStore


@pytest.fixture
def store(trial):
    with EpisodeStore(trial.path, durable=True) as store:
        yield store


def test_episodes_come_back_in_order(store, make_episode):
    episodes = [make_episode(i) for i in range(20)]
    assert store.head() == GENESIS
    for first in range(0, 20, 8):
        store.append(episodes[first : first + 8])
    store.append([])
    assert list(store.episodes()) == episodes
    assert store.ids() == {f"e{i}" for i in range(20)}
    assert len(store) == 20


def test_more_rows_than_one_page_are_read(store, make_episode):
    episodes = [make_episode(i) for i in range(1100)]
    store.append(episodes)
    assert list(store.episodes()) == episodes


def test_a_reopened_store_goes_on_with_the_chain(trial, make_episode):
    with EpisodeStore(trial.path, durable=False) as store:
        store.append([make_episode(0)])
        head = store.head()
    with EpisodeStore(trial.path, durable=False) as store:
        assert (len(store), store.head()) == (1, head)
        store.append([make_episode(1)])
        assert store.head() != head
    with sqlite3.connect(trial.path / "episodes.db") as raw:
        previous = raw.execute("select previous_sha256 from episodes where sequence = 2").fetchone()
    assert previous == (head,)


def test_two_stores_take_turns(trial, make_episode):
    with (
        EpisodeStore(trial.path, durable=False) as one,
        EpisodeStore(trial.path, durable=False) as two,
    ):
        one.append([make_episode(0)])
        two.append([make_episode(1)])
        one.append([make_episode(2)])
        assert [episode.episode_id for episode in two.episodes()] == ["e0", "e1", "e2"]
        assert len(one) == 3


@pytest.mark.parametrize("durable", [True, False])
def test_durability_is_what_was_asked_for(trial, durable):
    with EpisodeStore(trial.path, durable=durable) as store:
        raw = store._connection
        assert raw.execute("pragma synchronous").fetchone() == (2 if durable else 1,)
        assert raw.execute("pragma journal_mode").fetchone() == ("wal",)


def test_an_id_is_logged_once(store, make_episode):
    store.append([make_episode(0), make_episode(1)])
    with pytest.raises(
        InputError, match=r"episodes\.db: row 4, column 'episode_id': 'e1' is row 2"
    ):
        store.append([make_episode(2), make_episode(1)])
    with pytest.raises(InputError, match="row 4, column 'episode_id': 'e5' is row 3 already"):
        store.append([make_episode(5), make_episode(5)])
    assert store.ids() == {"e0", "e1"}
    store.append([make_episode(2)])
    assert len(store) == 3


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("episode_return", float("nan"), "not a finite number"),
        ("episode_return", float("inf"), "not a finite number"),
        ("episode_return", "1.0", "is not a number"),
        ("duration_s", float("inf"), "not a finite number"),
        ("seed", 2**63, "64 bits"),
        ("seed", 1.5, "cannot be interpreted as an integer"),
        ("level", True, "not a whole number"),
        ("policy", None, "not a text"),
        ("policy", 7, "not a text"),
        ("task", "\ud800", "no bytes in UTF-8"),
        ("recovered", "no", "neither true nor false"),
        ("side", "sim", "value"),
        ("costs", {"energy_j": float("nan")}, "canonical"),
        ("costs", {1: 2.0}, "key that is not a text"),
        ("costs", None, "not a mapping"),
        ("novelty", {"parameters": object()}, "canonical"),
    ],
)
def test_what_a_column_cannot_hold_is_refused(store, make_episode, column, value, reason):
    bad = make_episode(1)
    object.__setattr__(bad, column, value)
    with pytest.raises(InputError, match=rf"row 2 \('e1'\), column '{column}'.*{reason}"):
        store.append([make_episode(0), bad])
    assert len(list(store.episodes())) == 0


def test_numpy_scalars_are_stored_as_numbers(store, make_episode):
    given = make_episode(
        0, seed=np.int64(7), episode_return=np.float32(0.5), recovered=np.bool_(True)
    )
    store.append([given])
    (read,) = store.episodes()
    assert (read.seed, read.episode_return, read.recovered) == (7, 0.5, True)
    assert (type(read.seed), type(read.recovered)) == (int, bool)


def test_negative_zero_keeps_its_digest(store, make_episode, trial):
    from robo_eval.log.verify import verify_trial

    store.append([make_episode(0, episode_return=-0.0, plan_digest=trial.plan_digest)])
    assert verify_trial(trial.path).ok


def test_frame_has_documented_types(store, make_episode):
    store.append(
        [
            make_episode(0, arm=Arm.CONTROL),
            make_episode(
                1, quality=None, success=None, end_reason=EndReason.LOST, level=None,
                difficulty=None, episode_return=None,
            ),
        ]
    )  # fmt: skip
    frame = store.frame()
    assert tuple(frame.columns) == COLUMNS
    types = {name: str(frame[name].dtype) for name in COLUMNS}
    assert types["episode_id"] == types["end_reason"] == types["costs"] == "object"
    assert (types["quality"], types["ticks"], types["level"]) == ("float64", "Int64", "Int64")
    assert (types["attempt"], types["start_ns"]) == ("int64", "Int64")
    assert (types["success"], types["recovered"]) == ("boolean", "bool")
    assert list(frame["end_reason"]) == ["success", "lost"]
    assert type(frame["end_reason"].iloc[0]) is str
    assert frame["arm"].iloc[0] == "control"
    assert frame["difficulty"].iloc[1] is None
    assert frame["success"].iloc[1] is pd.NA
    assert frame["novelty"].iloc[0]["parameters"] == {"friction": 0.1}


def test_an_empty_log_is_an_empty_frame_with_all_columns(store):
    assert tuple(store.frame().columns) == COLUMNS
    assert len(store.frame()) == 0


def test_metrics_take_the_frame(store, make_episode):
    from robo_eval.metrics.frame import episodes_frame

    store.append([make_episode(0), make_episode(1)])
    assert len(episodes_frame(store.frame())) == 2


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("end_reason", "sucess", "end_reason"),
        ("quality", "high", "finite number"),
        ("quality", 7.0, "must be in"),
        ("ticks", 1.5, "whole number"),
        ("success", 2, "neither 0 nor 1"),
        ("novelty", "[", "novelty"),
        ("novelty", "[]", "JSON object"),
        ("policy", b"\x00", "text"),
    ],
)
def test_a_wrong_cell_in_the_file_is_named(trial, make_episode, column, value, reason):
    with EpisodeStore(trial.path, durable=False) as store:
        store.append([make_episode(i) for i in range(3)])
    with sqlite3.connect(trial.path / "episodes.db") as raw:
        raw.execute(f"update episodes set {column} = ? where sequence = 2", (value,))
    with EpisodeStore(trial.path, durable=False) as store:
        with pytest.raises(InputError, match=rf"episodes\.db: row 2.*{reason}"):
            list(store.episodes())
        with pytest.raises(InputError, match=rf"episodes\.db: row 2.*{reason}"):
            store.frame()


def test_a_read_only_store_refuses_rows(trial, make_episode):
    with EpisodeStore(trial.path, durable=False, read_only=True) as store:
        with pytest.raises(TrialDirectoryError, match="read-only"):
            store.append([make_episode(0)])
        assert list(store.episodes()) == []


def test_replaced_fields_change_the_digest(trial, make_episode, tmp_path, plan):
    from robo_eval.log.directory import TrialDirectory

    heads = set()
    for number, changed in enumerate([{}, {"operator": "x"}, {"ticks": 199}, {"costs": {}}]):
        folder = TrialDirectory.create(tmp_path / f"t{number}", plan).path
        with EpisodeStore(folder, durable=False) as store:
            store.append([replace(make_episode(0), **changed)])
            heads.add(store.head())
    assert len(heads) == 4
