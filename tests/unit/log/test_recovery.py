"""Episodes whose conductor died: their bags are made sound, and nothing stands in the way."""

from __future__ import annotations

import struct
from contextlib import nullcontext
from pathlib import Path

import pytest

from robo_eval.core.episode import Episode
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.bag_metadata import BagTopic
from robo_eval.log.bag_writer import BagWriter
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.recovery import Recovered, recover_trial
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial

PLAN = "{name: cut off, tasks: [{levels: [0]}], policies: [balancer], episodes: 2, sides: [twin]}"
TOPIC = BagTopic(name="/joint_states", type="std_msgs/msg/String", text="string data\n")
REQUESTS = BagTopic(
    name="/lab/policy/joint_command", type="sensor_msgs/msg/JointState", text="string[] name\n"
)


@pytest.fixture
def trial(tmp_path: Path) -> TrialDirectory:
    return TrialDirectory.create(tmp_path / "trial", parse_plan(PLAN, source="plan"))


def ids(trial: TrialDirectory) -> list[str]:
    return [planned.episode_id for planned in schedule(trial.plan, Side.TWIN)]


def bag(trial: TrialDirectory, name: str, *topics: BagTopic) -> BagWriter:
    start = {"event": "start", "episode_id": name, "policy_digest": "1" * 64, "start_ns": 5}
    return BagWriter(trial.traces_dir / name, topics or [TOPIC], chunk_bytes=1024, start=start)


def recover(trial: TrialDirectory) -> Recovered:
    with EpisodeStore(trial.path, durable=False) as store:
        found = recover_trial(trial, store)
        trial.write_manifest(status="interrupted", store=store)
    return found


def test_an_episode_with_a_bag_and_no_row_is_lost_once(trial: TrialDirectory) -> None:
    name = ids(trial)[0]
    with bag(trial, name) as written:
        written.write(TOPIC.name, b"\0" * 12, received_ns=7, published_ns=7, sequence=1)
    assert recover(trial).rows == (name,)
    assert recover(trial) == Recovered(bags=(), rows=(), failed=())
    with EpisodeStore(trial.path, durable=False, read_only=True) as store:
        (row,) = store.episodes()
    assert (row.end_reason, row.success, row.recovered) == (EndReason.LOST, None, True)
    assert verify_trial(trial.path).ok


def rows(trial: TrialDirectory) -> list[Episode]:
    with EpisodeStore(trial.path, durable=False, read_only=True) as store:
        return list(store.episodes())


def request() -> bytes:
    """A request of no joint, as CDR: stamp, frame, and four empty lists."""
    return b"\0\1\0\0" + struct.pack("<iII4sIIII", 1, 0, 1, b"\0\0\0\0", 0, 0, 0, 0)


@pytest.mark.parametrize("is_cut", [True, False])
@pytest.mark.parametrize(
    ("requests", "ticks", "seconds"), [(151, 151, 3.02), (1, 1, None), (0, None, None)]
)
def test_what_a_lost_episode_was_played_is_told_by_its_requests(
    trial: TrialDirectory, requests: int, ticks: int | None, seconds: float | None, is_cut: bool
) -> None:
    cut = pytest.raises(KeyboardInterrupt) if is_cut else nullcontext()
    with cut, bag(trial, ids(trial)[0], TOPIC, REQUESTS) as written:
        written.write(TOPIC.name, b"\0" * 12, received_ns=7, published_ns=7, sequence=1)
        for tick in range(requests):
            at_ns = 10**9 + tick * 20_000_000
            written.write(
                REQUESTS.name, request(), received_ns=at_ns, published_ns=at_ns, sequence=tick
            )
        if is_cut:
            written.close_chunk()
            raise KeyboardInterrupt
    assert recover(trial).failed == ()
    (row,) = rows(trial)
    if not requests and not is_cut:  # a whole bag says that there was none
        ticks, seconds = 0, 0.0
    assert (row.ticks, row.uninterrupted_actions) == (ticks, ticks)
    assert row.duration_s == row.exposure_s == (seconds and pytest.approx(seconds))
    assert verify_trial(trial.path).ok


def test_what_no_bag_tells_is_missing_and_not_zero(trial: TrialDirectory) -> None:
    with bag(trial, ids(trial)[0]) as written:
        written.write(TOPIC.name, b"\0" * 12, received_ns=7, published_ns=7, sequence=1)
    recover(trial)
    (row,) = rows(trial)
    assert (row.ticks, row.duration_s, row.exposure_s) == (None, None, None)


def test_a_bag_of_which_nothing_can_be_read_makes_room(trial: TrialDirectory) -> None:
    name = ids(trial)[0]
    for number in (1, 2):
        folder = trial.traces_dir / name
        folder.mkdir()
        (folder / f"{name}_0.mcap").write_bytes(b"")
        found = recover(trial)
        assert found.rows == ()
        assert "its attempt can be played again" in found.failed[0]
        assert not folder.exists()
        assert len(list((trial.path / "logs" / "unreadable").iterdir())) == number
        assert verify_trial(trial.path).ok
    bag(trial, name).abandon()  # there is room


def test_a_bag_that_is_being_written_stays(trial: TrialDirectory) -> None:
    name = ids(trial)[0]
    with bag(trial, name):
        found = recover(trial)
        assert "still being written" in found.failed[0]
    assert (trial.traces_dir / name).is_dir()
