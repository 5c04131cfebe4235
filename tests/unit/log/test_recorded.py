"""A row says no more than its recording bears out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import SYNTHETIC, EndReason, FaultBy, Side
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.recorded import read_recorded
from robo_eval.log.store import EpisodeStore
from robo_eval.log.trace import write_trace
from robo_eval.log.trace_folder import trace_digest
from robo_eval.log.verify import VerificationReport, verify_trial

STORE = get_typestore(Stores.ROS2_HUMBLE)
S = 10**9
START = 1_772_361_000 * S


def bag(path: Path, times_s: Any, storage: str = "mcap", mode: str = "") -> Path:
    """A recording with a message of one topic at each time."""
    kind = "std_msgs/msg/Bool"
    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    writer = Writer(path, version=9, storage_plugin=plugin)
    if mode:
        writer.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with writer:
        topic = writer.add_connection("/moving", kind, typestore=STORE)
        data = STORE.serialize_cdr(STORE.types[kind](data=True), kind)
        for second in times_s:
            writer.write(topic, START + round(float(second) * S), data)
    return path


@pytest.fixture
def verified(trial: TrialDirectory, make_episode: Callable) -> Callable[..., VerificationReport]:
    """Log one episode whose trace has been put into its place, and verify the trial."""

    def log(uri: str, **said: Any) -> VerificationReport:
        episode = make_episode(
            0, plan_digest=trial.plan_digest, trace_uri=uri,
            trace_sha256=trace_digest(trial.path / uri), **said,
        )  # fmt: skip
        with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
            store.append([episode])
            trial.write_manifest(status="complete", store=store)
        return verify_trial(trial.path)

    return log


@pytest.fixture
def trace(trial: TrialDirectory, make_trajectory: Callable) -> tuple[str, dict[str, Any]]:
    """A trace of 8 actions, and what a true row says of it."""
    moves = make_trajectory()
    write_trace(trial.path / "traces/e0.mcap", moves)
    total = float(moves.rewards.sum())
    return "traces/e0.mcap", {"ticks": 8, "uninterrupted_actions": 8, "episode_return": total}


def test_a_true_row_passes(verified, trace):
    report = verified(trace[0], **trace[1])
    assert (report.problems, report.notes) == ((), ())


@pytest.mark.parametrize(
    ("column", "value"),
    [("ticks", 9), ("ticks", 7), ("uninterrupted_actions", 9), ("episode_return", 95.0)],
)
@pytest.mark.parametrize("side", [Side.SIM, Side.REAL])
def test_a_row_that_its_trace_denies_is_a_problem(verified, trace, column, value, side):
    row = {**trace[1], "side": side, "duration_s": 0.16, "robot": "arm" if side == "real" else None}
    (problem,) = verified(trace[0], **{**row, column: value}).problems
    assert problem.file == trace[0]
    assert f"{column!r} is {value:g}" in problem.what


def test_what_is_not_said_is_not_denied(verified, trace):
    assert verified(trace[0], ticks=None, uninterrupted_actions=None, episode_return=None).ok


@pytest.mark.parametrize("end", [EndReason.FAULT, EndReason.VOID, EndReason.LOST])
def test_an_attempt_that_broke_off_may_have_less(verified, trace, end):
    unscored = {"quality": None, "success": None, "episode_return": None}
    fault = {"fault_by": FaultBy.POLICY} if end is EndReason.FAULT else {}
    fault |= {"void_by": "operator", "end_detail": "x"} if end is EndReason.VOID else {}
    assert verified(trace[0], ticks=12, end_reason=end, **unscored, **fault).ok


def test_a_made_up_robot_may_have_a_made_up_trace(verified, trace):
    assert verified(trace[0], side=Side.REAL, robot=SYNTHETIC, ticks=12).ok


_PAUSED = [*np.arange(300) / 10, *(2430 + np.arange(300) / 10)]
"""Of 40 minutes nothing was recorded, which a map may call a pause."""
REAL = {"side": Side.REAL, "robot": "arm", "uninterrupted_actions": None, "episode_return": None}


@pytest.mark.parametrize(
    ("storage", "mode"), [("mcap", "FILE"), ("sqlite3", ""), ("sqlite3", "MESSAGE")]
)
def test_storage_makes_no_difference(trial, verified, storage, mode):
    bag(trial.path / "traces/e0", [0, 1, 25_200], storage, mode)
    (problem,) = verified("traces/e0", **REAL, duration_s=25_200.0, ticks=None).problems
    assert "holds 3 messages" in problem.what


@pytest.mark.parametrize(
    ("times_s", "said", "what"),
    [
        ([0, 25_200], {"duration_s": 25_200.0, "ticks": None}, "holds 2 messages"),
        ([0, 25_200], {"duration_s": 25_200.0, "ticks": 252_000}, "'ticks' is 252000"),
        ([0, 1.5], {"duration_s": None, "exposure_s": 25_200.0, "ticks": None}, "is shorter than"),
        (np.arange(600) / 10, {"duration_s": 25_200.0, "ticks": None}, "is shorter than"),
        (np.arange(600) / 10, {"duration_s": 60.0, "ticks": 6000}, "'ticks' is 6000"),
        ([*np.arange(700) / 100, 600], {"duration_s": 600.0, "ticks": None}, "is silent for 593"),
        (_PAUSED, {"duration_s": 60.0, "ticks": None}, None),
        (_PAUSED, {"duration_s": 90.0, "ticks": None}, "is silent for 30"),
        (np.arange(600) / 10, {"duration_s": 60.0, "ticks": 600}, None),
        ([0, 1.5], {"duration_s": 1.5, "ticks": None}, None),
    ],
)
def test_a_recording_that_is_too_thin_is_a_problem(trial, verified, times_s, said, what):
    bag(trial.path / "traces/e0", times_s)
    problems = verified("traces/e0", **{**REAL, **said}).problems
    assert all(one.file == "traces/e0" for one in problems)
    assert bool(problems) is (what is not None)
    assert what is None or any(what in one.what for one in problems)


def test_what_cannot_be_read_is_named(trial, verified):
    (trial.path / "traces/e0").mkdir()
    (trial.path / "traces/e0/e0.mcap").write_bytes(b"nothing that anybody recorded")
    (note,) = verified("traces/e0", **{**REAL, "ticks": None}).notes
    assert "traces/e0" in note


def test_an_episode_in_a_dataset_is_read_there(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    data = tmp_path / "set/data.parquet"
    data.parent.mkdir()
    times = np.arange(30) / 10
    frames = {"episode_index": np.repeat([0, 1], 30), "timestamp": np.tile(times, 2)}
    parquet.write_table(pa.table(frames), data)
    link = tmp_path / "link/recording.json"
    link.parent.mkdir()
    text = '{"dataset": "%s", "episode_index": %d, "data": [{"file": "data.parquet"}]}'
    link.write_text(text % (data.parent, 1))
    found = read_recorded(link.parent)
    assert found.span_s == pytest.approx(2.9)
    assert list(found.denies({"ticks": 30, "duration_s": 3.0}, is_physical=True)) == []
    assert len(list(found.denies({"ticks": 300, "duration_s": 30.0}, is_physical=True))) == 2
    data.rename(data.with_name("gone"))
    with pytest.raises(InputError, match=r"recording\.json: the dataset it leads to"):
        read_recorded(link.parent)


def test_every_byte_of_a_trace_is_read_whatever_its_index(trial, make_trajectory):
    moves = replace(make_trajectory(n=4000), robot_description="")
    write_trace(trial.path / "long.mcap", moves)
    found = read_recorded(trial.path / "long.mcap")
    assert (found.ticks, found.episode_return) == (3999, pytest.approx(moves.rewards.sum()))
    assert found.span_s == moves.stamp_ns[-1] / 1e9
