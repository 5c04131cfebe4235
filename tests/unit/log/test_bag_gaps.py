"""No hour counts that nobody worked: gaps in a recording, clocks that were set or never were."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from robo_eval.core.errors import InputError
from robo_eval.log.bag_gaps import gaps
from robo_eval.log.bag_importer import BagImport, import_bags
from robo_eval.log.store import EpisodeStore
from robo_eval.metrics.bag_measures import measure

STORE = get_typestore(Stores.ROS2_HUMBLE)
T = STORE.types
S = 10**9
DAY = 86_400 * S
START = 1_772_361_000 * S

Rows = list[tuple[str, int, Any]]
"""Topic, time (ns), message."""

MAP = "constants: {task: push, side: real, robot: arm, policy: p}\ncolumns: {success: /success}\n"
MOVING = "exposure: {field: /joint_states.velocity, above: 0.01}\n"
SPEEDY = "exposure: /moving\n"


def truth(value: bool) -> Any:
    return T["std_msgs/msg/Bool"](data=value)


def word(text: str) -> Any:
    return T["std_msgs/msg/String"](data=text)


def state(stamp: int, position: float, velocity: float = 0.1) -> Any:
    time = T["builtin_interfaces/msg/Time"](sec=stamp // S, nanosec=stamp % S)
    return T["sensor_msgs/msg/JointState"](
        header=T["std_msgs/msg/Header"](stamp=time, frame_id=""),
        name=["a"],
        position=np.array([position]),
        velocity=np.array([velocity]),
        effort=np.array([]),
    )


def clock(*jumps: tuple[float, int]) -> Callable[[float], int]:
    """What a clock shows after some seconds that is set forward at some of them."""
    return lambda t: START + round(t * S) + sum(by for when, by in jumps if t >= when)


def every(period: float, until: float, since: float = 0.0) -> Iterable[float]:
    return np.arange(since, until, period).tolist()


def attempt(shows: Callable[[float], int], header: Callable[[float], int] | None = None) -> Rows:
    """Ten seconds in which a joint moves and is told to be 0.1 rad farther, at 10 Hz."""
    rows: Rows = []
    for t in every(0.1, 10.0):
        stamp = (header or shows)(t)
        rows.append(("/command", shows(t), state(stamp, 0.1 * t + 0.1)))
        rows.append(("/joint_states", shows(t) + S // 100, state(stamp + S // 100, 0.1 * t)))
    return [*rows, ("/success", shows(9.95), truth(True))]


def topic(name: str, times: Iterable[float], message: Any = None) -> Rows:
    return [(name, START + round(t * S), message or word("fine")) for t in times]


def success(at: float) -> Rows:
    return topic("/success", [at], truth(True))


@pytest.fixture
def bring(tmp_path: Path) -> Callable[..., BagImport]:
    def run(rows: Rows, text: str = MAP) -> BagImport:
        rows = sorted(rows, key=lambda row: row[1])
        folder = tmp_path / "bag"
        with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            connections: dict[str, Any] = {}
            for name, stamp, message in rows:
                kind = message.__msgtype__
                if name not in connections:
                    connections[name] = writer.add_connection(name, kind, typestore=STORE)
                writer.write(connections[name], stamp, STORE.serialize_cdr(message, kind))
        (tmp_path / "map.yaml").write_text(text)
        return import_bags([folder], tmp_path / "map.yaml", tmp_path / "out", measure=measure)

    return run


def episodes(done: BagImport) -> list[Any]:
    with EpisodeStore(done.trial.path, durable=False, read_only=True) as store:
        return list(store.episodes())


SET = {
    "from the last shutdown": (clock((0.0, -90 * DAY), (2.0, 90 * DAY)), r"90\.0 days"),
    "from 1970": (clock((0.0, 2 * DAY - START), (2.0, START - 2 * DAY)), r"205\d\d\.\d days"),
    "paused for a night": (clock((2.0, 8 * 3600 * S)), r"8\.0 h"),
    "paused for a minute": (clock((2.0, 60 * S)), r"60\.1 s"),
}


@pytest.mark.parametrize("case", SET)
@pytest.mark.parametrize("exposure", ["", MOVING])
def test_a_gap_is_refused_with_place_and_length_until_the_map_says_what_it_is(
    bring, tmp_path, case, exposure
):
    shows, length = SET[case]
    with pytest.raises(InputError) as caught:
        bring(attempt(shows), MAP + exposure)
    said = str(caught.value)
    assert said.startswith(
        f"{tmp_path / 'bag'}: after a message of /joint_states all topics are silent"
    )
    assert " from 1.910 s after the start on" in said
    assert "gaps: pause" in said
    assert "gaps: count" in said
    assert caught.match(length)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("case", SET)
@pytest.mark.parametrize("exposure", ["", MOVING])
@pytest.mark.parametrize("signals", ["received", "header"])
def test_a_pause_counts_nowhere_and_is_said(bring, case, exposure, signals):
    text = f"signals: {{joint_state: /joint_states, command: /command, clock: {signals}}}\n"
    done = bring(attempt(SET[case][0]), MAP + exposure + text + "gaps: pause\n")
    (row,) = episodes(done)
    # One period is missing, in which the clock was set.
    assert row.duration_s == pytest.approx(9.86)
    assert row.exposure_s == pytest.approx(9.86, abs=0.02)
    assert row.control_quality["tracking_rmse_rad"] == pytest.approx(0.1)
    assert row.control_quality["jerk_rms_rad_s3"] == pytest.approx(0.0, abs=1e-2)
    assert any("which does not count" in one.what for one in done.remarks)


@pytest.mark.parametrize("exposure", ["", MOVING])
def test_a_gap_counts_if_the_map_says_so_and_is_said(bring, exposure):
    done = bring(attempt(SET["paused for a minute"][0]), MAP + exposure + "gaps: count\n")
    (row,) = episodes(done)
    assert row.duration_s == pytest.approx(69.95)
    assert row.exposure_s == pytest.approx(69.95, abs=0.02)
    assert [one.what.rpartition(",")[2] for one in done.remarks] == [" which counts"]


def test_a_clock_that_was_set_for_the_first_time_never_counts(bring):
    done = bring(attempt(SET["from 1970"][0]), MAP + "gaps: count\n")
    (row,) = episodes(done)
    assert row.exposure_s == pytest.approx(9.86)


def test_the_part_in_which_a_field_is_true_goes_round_a_gap(bring):
    shows = SET["paused for a night"][0]
    moving = [("/moving", shows(t), truth(is_true)) for t, is_true in ((1, True), (6, False))]
    done = bring([*attempt(shows), *moving], MAP + SPEEDY + "gaps: pause\n")
    assert episodes(done)[0].exposure_s == pytest.approx(4.9, abs=0.02)


def test_no_command_holds_beyond_a_pause(bring):
    """The joint goes elsewhere while nothing is recorded, and is told where to be later."""
    rows: Rows = []
    for t in every(0.1, 4.0):
        at = START + round(t * S) + 600 * S * (t >= 2.0)
        rows.append(("/joint_states", at + 1, state(at + 1, 0.0 if t < 2.0 else 5.0)))
        if not 2.0 <= t < 3.0:
            rows.append(("/command", at, state(at, 0.1 if t < 2.0 else 5.3)))
    text = (
        "signals: {joint_state: /joint_states, command: /command}\nmeasures: {settling_band: 1}\n"
    )
    rows.append(("/success", at, truth(True)))
    (row,) = episodes(bring(rows, MAP + text + "gaps: pause\n"))
    found = row.control_quality["tracking_rmse_rad"]
    # Two seconds at 0.1 rad, one at 0.3 rad.
    assert found == pytest.approx(np.sqrt((1.9 * 0.01 + 0.9 * 0.09) / 2.8))


def test_what_settles_only_behind_a_pause_has_no_settling_time(bring):
    rows: Rows = []
    for t in every(0.1, 4.0):
        at = START + round(t * S) + 600 * S * (t >= 2.0)
        rows.append(("/joint_states", at + 1, state(at + 1, float(t >= 2.0))))
        rows.append(("/command", at, state(at, float(t >= 1.0))))
    text = "signals: {joint_state: /joint_states, command: /command}\n"
    text += "measures: {settling_band: 0.1}\ngaps: pause\n"
    done = bring([*rows, ("/success", at, truth(True))], MAP + text)
    assert "settling_time_s" not in episodes(done)[0].control_quality
    assert [one.reason for one in done.left_out if one.measure == "settling_time_s"] == [
        "the recording was interrupted before the joints had settled"
    ]


HEADERS = "signals: {joint_state: /joint_states, command: /command, clock: header}\n"


def test_a_gap_in_the_clock_of_headers_is_refused_and_may_be_a_pause(bring, tmp_path):
    """The robot's clock was set, and that of the recorder was right."""
    rows = attempt(clock(), SET["from the last shutdown"][0])
    with pytest.raises(
        InputError, match=r"bag: by the headers of .*/joint_states.*90\.0 days.*gaps:"
    ):
        bring(rows, MAP + HEADERS)
    (tmp_path / "bag").rename(tmp_path / "other")
    (row,) = episodes(bring(rows, MAP + HEADERS + "gaps: pause\n"))
    assert row.duration_s == row.exposure_s == pytest.approx(9.95)
    assert row.control_quality["tracking_rmse_rad"] == pytest.approx(0.1)


EVENTS = "episodes: {field: /event, start: begin, end: end}\n"


def cut_rows(gap_at: float) -> Rows:
    shows = clock((gap_at, 600 * S))
    rows: Rows = []
    for begin, end in ((1.0, 4.0), (6.0, 9.0)):
        rows += [("/event", shows(begin), word("begin")), ("/event", shows(end), word("end"))]
        rows.append(("/success", shows(end - 0.05), truth(True)))
    return [*rows, *(("/state", shows(t), word("on")) for t in every(0.1, 10.0))]


def test_a_gap_between_episodes_is_of_none(bring):
    done = bring(cut_rows(5.0), MAP + EVENTS)
    assert [row.exposure_s for row in episodes(done)] == pytest.approx([3.0, 3.0])
    assert not done.remarks


def test_a_gap_in_an_episode_is_named_with_it(bring, tmp_path):
    with pytest.raises(InputError, match=r"bag: episode 2: .*/state .* 600\.1 s, from 0\.9"):
        bring(cut_rows(7.0), MAP + EVENTS)
    (tmp_path / "bag").rename(tmp_path / "other")
    done = bring(cut_rows(7.0), MAP + EVENTS + "gaps: pause\n")
    assert [row.exposure_s for row in episodes(done)] == pytest.approx([3.0, 2.9], abs=0.05)
    assert [one.episode_id for one in done.remarks] == ["bag-002"]


@pytest.mark.parametrize(("side", "known"), [("real", False), ("twin", True), ("sim", True)])
def test_the_start_of_a_real_robot_whose_clock_was_never_set_is_unknown(bring, side, known):
    done = bring(attempt(clock((0.0, 2 * DAY - START))), MAP.replace("real", side))
    (row,) = episodes(done)
    assert row.start_ns == (2 * DAY if known else None)
    assert row.duration_s == pytest.approx(9.95)
    assert ["1970-01-03" in one.what for one in done.remarks] == [True] * (not known)


HONEST: dict[str, Rows] = {
    "one message": success(0.0),
    "two messages": [*topic("/event", [0.0]), *success(1500.0)],
    "a slow state": [*topic("/state", every(10.0, 600.0)), *success(600.0)],
    "a slow state that lost some": [
        *topic("/state", [t for t in every(10.0, 600.0) if not 200.0 < t < 250.0]), *success(600.0),
    ],
    "a state once in ten minutes": [*topic("/state", every(600.0, 20_000.0)), *success(20_000.0)],
    "latched topics at the start": [
        *topic("/robot_description", [0.0]), *topic("/tf_static", [0.1]),
        *topic("/joint_states", every(0.02, 60.0, 45.0)), *success(60.0),
    ],
    "a label after the end": [*topic("/joint_states", every(0.02, 10.0)), *success(55.0)],
    "a camera for a moment beside a slow state": [
        *topic("/camera", every(0.03, 5.0)), *topic("/state", every(60.0, 900.0)), *success(900.0),
    ],
    "joints while they move beside a slow state": [
        *(row for t in every(60.0, 900.0) for row in topic("/joint_states", every(0.02, t + 5, t))),
        *topic("/state", every(20.0, 900.0)), *success(900.0),
    ],
    "events": [
        *topic("/event", [0, 0.1, 0.2, 40, 41, 130, 131, 131.5, 600, 601, 900, 1500]),
        *success(1800.0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", HONEST)
def test_an_honest_recording_is_not_refused_however_sparse(bring, case):
    rows = HONEST[case]
    (row,) = episodes(bring(rows))
    stamps = [stamp for _, stamp, _ in rows]
    assert row.exposure_s == pytest.approx((max(stamps) - min(stamps)) / S)


def paused(name: str, times: Iterable[float], at: float, by: float) -> Rows:
    return topic(name, [t + by * (t >= at) for t in times])


INTERRUPTED: dict[str, Rows] = {
    "two publishers of one topic": [
        *paused("/joint_states", sorted([*every(0.1, 10.0), *every(0.1, 10.0, 1e-4)]), 2.0, 2700.0),
        *success(2709.9),
    ],
    "bursts": [
        *paused("/odom", [t + k / 100 for t in every(0.6, 60.0) for k in range(20)], 30.0, 3000.0),
        *success(3059.0),
    ],
    "bursts with two pauses": [
        *topic("/odom", [t + k / 100 for t in every(0.6, 20.0) for k in range(20)]),
        *topic("/odom", [t + k / 100 for t in every(0.6, 120.0, 100.0) for k in range(20)]),
        *topic("/odom", [t + k / 100 for t in every(0.6, 420.0, 400.0) for k in range(20)]),
        *success(420.0),
    ],
    "latched topics of another day": [
        *topic("/robot_description", [-86_400.0]), *topic("/state", every(0.1, 10.0)), *success(10),
    ],
    "a label hours later": [*topic("/state", every(0.1, 10.0)), *success(7_000.0)],
    "two messages hours apart": [*topic("/event", [0.0]), *success(7_200.0)],
    "one of many pauses": [
        *(row for t in every(600.0, 6_000.0) for row in topic("/state", every(0.1, t + 9, t))),
        *success(6_000.0),
    ],
    "a slow state beside a fast one": [
        *topic("/slow", every(600.0, 6_000.0)), *topic("/slow", every(600.0, 16_000.0, 10_000.0)),
        *topic("/fast", every(1.0, 6_000.0)), *topic("/fast", every(1.0, 16_000.0, 10_000.0)),
        *success(15_999.0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", INTERRUPTED)
def test_an_interrupted_recording_is_refused(bring, case):
    with pytest.raises(InputError, match=r"all topics are silent for .* gaps: pause"):
        bring(INTERRUPTED[case])


@given(
    periods=st.lists(st.floats(0.002, 20.0), min_size=1, max_size=4),
    jitter=st.floats(0.0, 0.3),
    silent=st.floats(25.0, 1e6),
    seed=st.integers(0, 2**16),
)
def test_a_gap_is_found_where_it_is_and_nowhere_else(periods, jitter, silent, seed):
    rng = np.random.default_rng(seed)
    topics = []
    for period in periods:
        count = 40
        noise = rng.uniform(-jitter / 2, jitter / 2, count)
        topics.append(np.sort((period * (np.arange(count) + noise + 1.0) * S).astype(np.int64)))
    # From when all topics speak until one ends: there no silence is a gap.
    assert not gaps([times[times <= min(t[-1] for t in topics)] for times in topics][:1])
    slowest = max(periods)
    at = min(times[len(times) // 2] for times in topics)
    gap = round((silent + 20.0 * slowest) * S)
    shifted = [np.where(times > at, times + gap, times) for times in topics]
    found = gaps(shifted)
    assert any(low <= at and high > at + gap - 3 * slowest * S for low, high in found)


@given(
    publishers=st.lists(
        st.tuples(st.floats(0.002, 2.0), st.floats(0.0, 1.0)), min_size=1, max_size=4
    ),
    bursts=st.integers(1, 30),
    silent=st.floats(60.0, 1e6),
)
def test_whatever_publishes_a_topic_a_pause_far_beyond_it_is_found(publishers, bursts, silent):
    """Several publishers, each in bursts of its own, one pause in the middle."""
    times = np.sort(
        np.concatenate(
            [
                (phase * period + np.arange(200 * bursts) // bursts * period) * S
                + np.arange(200 * bursts) % bursts * S / 1000
                for period, phase in publishers
            ]
        ).astype(np.int64)
    )
    slowest = max(period for period, _ in publishers)
    assert not gaps([times[times <= 150 * min(period for period, _ in publishers) * S]])
    at = int(times[len(times) // 2])
    gap = round((silent + 50.0 * slowest) * S)
    found = gaps([np.where(times > at, times + gap, times)])
    assert any(low <= at and high > at + gap - S for low, high in found)
