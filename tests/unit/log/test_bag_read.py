"""What the messages of a bag mean: truths, what holds, where episodes begin, late labels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from robo_eval.core.errors import InputError
from robo_eval.log.bag_importer import BagImport, import_bags
from robo_eval.log.store import EpisodeStore

STORE = get_typestore(Stores.ROS2_HUMBLE)
STORE.register(get_types_from_msg("uint8 mode\nfloat32 score\n", "lab_msgs/msg/Mode"))
STORE.register(get_types_from_msg("lab_msgs/Mode[] goals\n", "lab_msgs/msg/Goals"))
T = STORE.types
START = 1_772_361_000_000_000_000

Said = tuple[float, str, Any]
"""Seconds, topic, message."""

MAP = "constants: {task: t, side: real, policy: p, robot: r}\n"
SUCCEEDED = MAP.replace("r}", "r, success: 'true'}")
BY_SUCCESS = """
columns: {success: /success}
episodes: {field: /word, start: '1', end_field: /success, end: true}
"""
EVENTS = "episodes: {field: /event, start: begin, end: end}\n"
LABEL = "columns: {success: {field: /label, default: 'false'}}\n"
STOP = "columns: {success: /success}\nstops: {safety_stop: /estop}\n"


def boolean(value: bool) -> Any:
    return T["std_msgs/msg/Bool"](data=value)


def word(text: str) -> Any:
    return T["std_msgs/msg/String"](data=text)


def number(value: float, kind: str = "Int32") -> Any:
    return T[f"std_msgs/msg/{kind}"](data=value)


def empty() -> Any:
    return T["std_msgs/msg/Empty"](structure_needs_at_least_one_member=0)


def joy(value: int) -> Any:
    stamp = T["builtin_interfaces/msg/Time"](sec=0, nanosec=0)
    return T["sensor_msgs/msg/Joy"](
        header=T["std_msgs/msg/Header"](stamp=stamp, frame_id=""),
        axes=np.array([], np.float32),
        buttons=np.array([0, 0, value], np.int32),
    )


def floats(*values: float) -> Any:
    layout = T["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    return T["std_msgs/msg/Float32MultiArray"](layout=layout, data=np.array(values, np.float32))


def goals(*modes: int) -> Any:
    """A list that keeps old goals for some time, the newest last."""
    return T["lab_msgs/msg/Goals"](goals=[T["lab_msgs/msg/Mode"](mode=m, score=m) for m in modes])


def said(topic: str, make: Callable[[Any], Any], *values: tuple[float, Any]) -> list[Said]:
    return [(second, topic, make(value)) for second, value in values]


def state(topic: str, make: Callable[[Any], Any], *parts: tuple[float, float, Any]) -> list[Said]:
    """A state that is published at 10 Hz: from when, until when, what."""
    return [
        (tenth / 10.0, topic, make(value))
        for first, last, value in parts
        for tenth in range(round(first * 10), round(last * 10))
    ]


def events(*times: tuple[float, float]) -> list[Said]:
    return [
        (second, "/event", word(name))
        for begin, end in times
        for second, name in ((begin, "begin"), (end, "end"))
    ]


ALIVE = [(60.0, "/alive", boolean(True))]


@pytest.fixture
def bring(tmp_path: Path) -> Callable[[list[Said], str], BagImport]:
    """Import messages by a map."""

    def run(messages: list[Said], topics: str) -> BagImport:
        with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            connections: dict[str, Any] = {}
            for second, topic, message in sorted(messages, key=lambda item: item[0]):
                kind = message.__msgtype__
                if topic not in connections:
                    connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
                data = STORE.serialize_cdr(message, kind)
                writer.write(connections[topic], START + round(second * 1e9), data)
        (tmp_path / "map.yaml").write_text(topics)
        return import_bags([tmp_path / "bag"], tmp_path / "map.yaml", tmp_path / "out")

    return run


def rows_of(done: BagImport) -> list[Any]:
    with EpisodeStore(done.trial.path, durable=False, read_only=True) as store:
        return list(store.episodes())


# Where episodes begin and end ------------------------------------------------------------------

WORDS = [(0, 1, "idle"), (1, 4, "running"), (4, 6, "idle"), (6, 8, "running"), (8, 9, "idle")]
ON_STATE = "episodes: {field: /state, start: running, end: idle}\n"
TWO = [(1.0, 4.0), (6.0, 8.0)]


def parts(*values: Any) -> list[tuple[float, float, Any]]:
    return [(first, last, value) for (first, last, _), value in zip(WORDS, values, strict=True)]


CUTS: dict[str, tuple[list[Said], str, list[tuple[float, float]]]] = {
    "words": (state("/state", word, *WORDS), ON_STATE, TWO),
    "bools": (
        state("/state", boolean, *parts(False, True, False, True, False)),
        "episodes: {field: /state, start: True, end: 'false'}\n",
        TWO,
    ),
    "numbers": (
        state("/state", number, *parts(0, 2, 0, 2, 5)),
        "episodes: {field: /state, start: 2, end: [0, 5]}\n",
        TWO,
    ),
    "floats": (
        state("/state", lambda v: number(v, "Float32"), *parts(0.0, 0.7, 0.0, 0.7, 0.0)),
        "episodes: {field: /state, start: 0.7, end: 0}\n",
        TWO,
    ),
    "a counter": (
        state("/state", number, *parts(0, 1, 0, 2, 0)),
        "episodes: {field: /state, start: [1, 2], end: 0}\n",
        TWO,
    ),
    "a counter that goes on": (
        state("/state", number, (0, 2, 1), (2, 5, 2)),
        "episodes: {field: /state, start: [1, 2]}\n",
        [(0.0, 2.0), (2.0, 60.0)],
    ),
    "json": (
        state("/state", lambda v: word(json.dumps({"is": v})), *WORDS),
        ON_STATE.replace("/state", "/state.data.is"),
        TWO,
    ),
    "a change only": (said("/state", word, (1, "running"), (4, "idle")), ON_STATE, TWO[:1]),
    "running at first": (
        state("/state", word, (0, 3, "running"), (3, 4, "idle")), ON_STATE, [(0.0, 3.0)],
    ),
    "running at last": (
        state("/state", word, (0, 3, "idle"), (3, 4, "running")), ON_STATE, [(3.0, 60.0)],
    ),
    "without an end": (
        state("/state", word, *WORDS),
        ON_STATE.replace(", end: idle", ""),
        [(1.0, 6.0), (6.0, 60.0)],
    ),
    "said twice": (
        said("/event", word, (1, "begin"), (1.3, "begin"), (4, "end"), (6, "begin"), (8, "end")),
        EVENTS,
        TWO,
    ),
    "each message": (
        said("/event", word, (1, "begin"), (4, "begin"), (6, "begin"), (8, "end")),
        EVENTS.replace("}", ", each: message}"),
        [(1.0, 4.0), (4.0, 6.0), (6.0, 8.0)],
    ),
    "one state for good": (
        state("/state", word, (1, 9, "running")),
        "episodes: {field: /state, start: running, each: change}\n",
        [(1.0, 60.0)],
    ),
    "messages without content": (
        [(1, "/go", empty()), (6, "/go", empty()), (4, "/stop", empty()), (8, "/stop", empty())],
        "episodes: {field: /go, start: event, end_field: /stop, end: event}\n",
        TWO,
    ),
    "two states": (
        [
            *state("/go", boolean, *parts(False, True, False, True, False)),
            # Still true when the next episode begins.
            *state("/done", boolean, (0, 4, False), (4, 7, True), (7, 8, False), (8, 9, True)),
        ],
        "episodes: {field: /go, start: 'true', end_field: /done, end: 'true'}\n",
        TWO,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CUTS)
def test_an_episode_begins_at_a_change(bring, case):
    messages, text, expected = CUTS[case]
    found = rows_of(bring([(0.0, "/alive", boolean(True)), *messages, *ALIVE], SUCCEEDED + text))
    times = [(row.start_ns - START, row.duration_s) for row in found]
    assert [(first / 1e9, first / 1e9 + length) for first, length in times] == [
        pytest.approx(window, abs=1e-6) for window in expected
    ]


@pytest.mark.parametrize(
    ("messages", "text", "what"),
    [
        (said("/event", word, (1, "begin")), EVENTS, "the recording ended it"),
        (
            said("/event", word, (1, "begin"), (2, "note"), (3, "begin"), (4, "end")),
            EVENTS,
            "the next start ended it",
        ),
        (said("/event", word, (1, "begin"), (2, "begin"), (4, "end")), EVENTS, "each: message"),
    ],
)
def test_what_markers_leave_open_is_said(bring, messages, text, what):
    done = bring([*messages, *ALIVE], SUCCEEDED + text)
    (remark,) = done.remarks
    assert remark.episode_id == "bag-001"
    assert what in remark.what


def test_a_state_at_a_rate_leaves_nothing_open(bring):
    assert not bring(state("/state", word, *WORDS), SUCCEEDED + ON_STATE).remarks


# What was said before --------------------------------------------------------------------------


def outcomes(*times: float) -> list[Said]:
    return said("/success", boolean, *((second, True) for second in times))


def test_a_stop_that_was_pressed_before_holds_and_a_released_one_does_not(bring):
    messages = [
        *events((1, 6), (9, 11), (20, 22)),
        *outcomes(5, 10, 21),
        *said("/estop", boolean, (8, True), (12, False)),
    ]
    found = [row.end_reason for row in rows_of(bring(messages, MAP + STOP + EVENTS))]
    assert found == ["success", "safety_stop", "success"]


def test_a_person_who_has_the_robot_in_hand_counts(bring):
    messages = [
        *events((1, 6), (9, 11)),
        *outcomes(5, 10),
        *said("/teleop", boolean, (0, True), (3, False), (4, True), (7, False)),
    ]
    text = MAP + EVENTS + "columns: {success: /success, interventions: /teleop}\n"
    found = rows_of(bring(messages, text + "assisted_success: failure\n"))
    assert [(row.interventions, row.success) for row in found] == [(2, False), (0, True)]


def test_what_describes_an_episode_may_be_said_before_it(bring):
    messages = [
        *said("/policy", word, (0, "act"), (8, "pi0")),
        *said("/seed", number, (0, 3), (12, 4), (19, 5)),
        *said("/operator", word, (0.5, "kim"), (10, "lee")),
        *events((1, 6), (9, 11), (20, 22)),
        *outcomes(5, 10, 21),
    ]
    text = """
constants: {task: t, side: real, robot: r}
columns:
  success: /success
  policy: /policy
  seed: /seed
  operator: {field: /operator, take: first}
"""
    found = rows_of(bring(messages, text + EVENTS))
    assert [(row.policy, row.seed, row.operator) for row in found] == [
        ("act", 3, "kim"), ("pi0", 3, "kim"), ("pi0", 5, "lee"),
    ]  # fmt: skip


def test_the_outcome_of_one_episode_is_not_that_of_the_next(bring):
    messages = [*events((1, 6), (9, 11)), *said("/label", boolean, (5, True))]
    found = rows_of(bring(messages, MAP + LABEL + EVENTS))
    assert [row.success for row in found] == [True, False]


@pytest.mark.parametrize(("holds", "stopped"), [("True", True), ("no", False)])
def test_a_stop_that_is_never_false_may_be_an_event(bring, tmp_path, holds, stopped):
    messages = [*events((1, 6), (9, 11)), *outcomes(5, 10), (3, "/estop", boolean(True))]
    with pytest.raises(InputError, match=r"/estop.*in episode 1 and never false.*holds: false"):
        bring(messages, MAP + STOP + EVENTS)
    text = STOP.replace("/estop", f"{{field: /estop, holds: {holds}}}")
    (tmp_path / "map.yaml").write_text(MAP + text + EVENTS)
    done = import_bags([tmp_path / "bag"], tmp_path / "map.yaml", tmp_path / "out")
    assert [row.end_reason == "safety_stop" for row in rows_of(done)] == [True, stopped]


# What is said after the end --------------------------------------------------------------------


def test_a_label_after_the_end_belongs_to_the_episode_before(bring):
    messages = [
        *events((0, 10), (20, 30), (40, 50), (60, 61)),
        *said("/label", boolean, (11, True), (31, False), (50.5, True), (58, False), (90, True)),
    ]
    done = bring(messages, MAP + LABEL.replace("}}", ", take: first}}") + EVENTS)
    assert [row.success for row in rows_of(done)] == [True, False, True, False]
    assert done.outside == {"/label": 1}


def test_a_label_belongs_to_none_after_the_time_the_map_gives(bring):
    messages = [*events((0, 10), (20, 30)), *said("/label", boolean, (12, True), (30.5, True))]
    done = bring(messages, MAP + LABEL + EVENTS.replace("}", ", label_within_s: 1}"))
    assert [row.success for row in rows_of(done)] == [False, True]
    assert done.outside == {"/label": 1}


@pytest.mark.parametrize(("within", "expected"), [("5", True), ("0", False)])
def test_a_label_that_changes_after_the_end_is_refused_unless_the_map_says(
    bring, tmp_path, within, expected
):
    messages = [*events((0, 10)), *said("/label", boolean, (0, False), (11, True)), *ALIVE]
    with pytest.raises(InputError, match=r"'false' until the end.*'true' 1\.000 s after it"):
        bring(messages, MAP + LABEL + EVENTS)
    text = MAP + LABEL + EVENTS.replace("}", f", label_within_s: {within}}}")
    (tmp_path / "map.yaml").write_text(text)
    done = import_bags([tmp_path / "bag"], tmp_path / "map.yaml", tmp_path / "out")
    assert [row.success for row in rows_of(done)] == [expected]


def test_scores_and_notes_may_be_late_and_measurements_only_if_nothing_else_was_said(bring):
    messages = [
        *events((0, 10)),
        (11, "/score", number(0.9, "Float32")),
        (12, "/note", word("slipped")),
        *said("/battery", lambda v: number(v, "Float64"), (5, 7.0), (11, 3.0)),
        (11, "/energy", number(40.0, "Float64")),
    ]
    text = """
success_quality: 0.95
columns:
  quality: /score
  end_detail: /note
  costs.battery: /battery
  costs.energy_j: /energy
"""
    done = bring(messages, MAP + text + EVENTS)
    (row,) = rows_of(done)
    assert (row.quality, row.success, row.end_detail) == (0.9, False, "slipped")
    assert row.costs == {"battery": 7.0, "energy_j": 40.0}
    assert done.outside == {"/battery": 1}


@pytest.mark.parametrize(
    ("times", "within", "expected"),
    [((5,), "", None), ((4, 5), "", 0.25), ((4, 5), ", label_within_s: 5", 0.75), ((), "", 0.75)],
)
def test_a_score_that_is_repeated_is_a_measurement(bring, times, within, expected):
    scores = [*((second, 0.25) for second in times), (11, 0.75)]
    messages = [*events((0, 10)), *said("/score", lambda v: number(v, "Float64"), *scores), *ALIVE]
    text = "success_quality: 0.5\ncolumns: {quality: /score}\n" + EVENTS.replace("}", within + "}")
    if expected is None:
        with pytest.raises(InputError, match=r"'0\.25' until the end.*'0\.75' 1\.000 s after it"):
            bring(messages, MAP + text)
        return
    assert [row.quality for row in rows_of(bring(messages, MAP + text))] == [expected]


def test_what_is_stated_before_the_start_is_not_of_the_episode_before(bring):
    messages = [
        *events((1, 5), (7, 9)),
        *outcomes(2, 8),
        *said("/stated", lambda v: number(v, "Float64"), (0.5, 0.25), (6, 0.5)),
    ]
    text = "columns: {success: /success, stated_success_probability: {field: /stated%s}}\n"
    with pytest.raises(InputError, match=r"episode 1: /stated .* no message says it"):
        bring(messages, MAP + text % "" + EVENTS)


def test_the_state_that_ends_an_episode_is_its_outcome(bring):
    messages = state(
        "/state", word, (0, 1, "idle"), (1, 4, "running"), (4, 5, "done"), (5, 6, "idle")
    )
    text = """
episodes: {field: /state, start: running, end: [done, failed]}
columns: {success: {field: /state, values: {done: true, failed: false}}}
"""
    assert [row.success for row in rows_of(bring(messages, MAP + text))] == [True]


def test_a_label_that_is_cleared_after_the_end_stays(bring):
    messages = [*events((0, 10)), *said("/label", word, (9, "yes"), (11, "")), *ALIVE]
    done = bring(messages, MAP + LABEL + EVENTS)
    assert [row.success for row in rows_of(done)] == [True]
    assert done.outside == {"/label": 1}


def test_a_message_counts_once_for_all_its_fields(bring):
    messages = [
        *events((0, 10)),
        *[(second, "/result", word(json.dumps({"ok": True, "n": 1}))) for second in (11, 40)],
        (41, "/result", word(json.dumps({"other": 1}))),
    ]
    text = "columns: {success: /result.data.ok, costs.n: {field: /result.data.n, take: max%s}}\n"
    done = bring(messages, MAP + text % ", default: '0'" + EVENTS)
    assert done.outside == {"/result": 1}


def test_what_belongs_to_no_episode_is_counted(bring):
    messages = [
        *events((10, 20)),
        *outcomes(15, 40, 41),
        *said("/estop", boolean, (1, True), (2, False), (30, True)),
        *said("/teleop", boolean, (50, True)),
    ]
    text = STOP.replace("success}", "success, interventions: {field: /teleop, default: '0'}}")
    done = bring(messages, MAP + text + EVENTS)
    assert [row.success for row in rows_of(done)] == [True]
    assert done.outside == {"/estop": 2, "/success": 2, "/teleop": 1}


# Truths ----------------------------------------------------------------------------------------


def mode(value: int, score: float = 0.0) -> Any:
    return T["lab_msgs/msg/Mode"](mode=value, score=score)


def stopped(field: str) -> str:
    """A map of which a field says that the robot was stopped."""
    return STOP.replace("/estop", field)


MODES = [*said("/mode", mode, (0, 1), (1, 3), (2, 1)), *outcomes(3)]
PULSE = state("/joy", joy, (0, 8, 0), (8, 8.4, 1), (8.4, 10, 0))
BUTTON = "{field: '/joy.buttons[2]', values: {1: true, 0: false}%s}"


@pytest.mark.parametrize(
    ("values", "reason"),
    [("{1: false, 3: true}", "safety_stop"), ("{1: no, 3.0: No}", "success")],
)
def test_a_number_is_a_stop_if_the_map_says_so(bring, values, reason):
    text = stopped(f"{{field: /mode.mode, values: {values}}}")
    assert [row.end_reason for row in rows_of(bring(MODES, MAP + text))] == [reason]


# A part of the map, and which field and remedy its refusal names.
NO_TRUTHS = [
    (stopped("/mode.mode"), r"/mode\.mode.*at 0\.000 s: 1 is neither.*1: \.\.\., 3"),
    (
        stopped("{field: /mode.mode, values: {1: false}}"),
        r"at 1\.000 s: .*'3'; .* add it to values",
    ),
    (stopped("/parts"), r"stops\.safety_stop.*at 0\.000 s: is a list, .*; name a part"),
    (stopped("'/parts.data[7]'"), r"/parts\.data\[7\] \(stops\.safety_stop.*: lists .* most 1"),
    (stopped("/json.data.estpo"), r"/json\.data\.estpo.*; give it a default"),
    ("columns: {success: /mode.mode}", r"at 2\.000 s: 1 is neither true nor false"),
    ("columns: {success: /word}", r"'1' is neither true nor false; .*'/word', values: \{1:"),
    ("columns: {success: {field: /success, values: {1: perhaps}}}", "must be true or false"),
    ("columns: {success: {field: /success, take: max}}", "use last, first, any or all"),
    ("columns: {quality: {field: /mode.score, take: any}}", "quality is no truth"),
    (
        "columns: {end_reason: {field: /mode.mode, values: {3: success}}}",
        r"at 2\.000 s: .*'1'; .*3",
    ),
    (BY_SUCCESS, r"/word \(episodes of the topic map\): says '1' again after .* episode 1.*each"),
]
# The same, beside a success that is said.
NO_MARKERS = [
    (", interventions: /mode.mode}", r"interventions.*at 0\.000 s: 1 is neither"),
    (", interventions: /json.data.help}", r"/json\.data\.help.*no message of /json holds it"),
    ("}\nexposure: /mode.mode", r"exposure.*at 0\.000 s: 1 is neither"),
    ("}\nexposure: {field: /x, above: 1, values: {1: true}}", "choose one"),
    ("}\nexposure: /json.data.moves", r"exposure.*/json\.data\.moves says nothing in"),
    ("}\nexposure: {field: /json.data.speed, above: 0.1}", r"exposure.*\.speed says nothing in"),
    ("}\nstops: {timeout: {field: /x, holds: ever}}", "holds: must be true or false"),
    ("}\nepisodes: {field: /go, start: a, label_within_s: x}", "episodes.label_within_s: is not a"),
    ("}\nepisodes: {field: /go, start: a, end_field: /x}", "name the value that ends"),
    ("}\nepisodes: {field: /word, start: '1'}", r"'1', 2 times; set episodes\.each: message"),
]


@pytest.mark.parametrize(
    ("text", "message"),
    [*NO_TRUTHS, *((f"columns: {{success: /success{text}", said) for text, said in NO_MARKERS)],
)
def test_what_is_no_truth_and_no_marker_is_refused(bring, tmp_path, text, message):
    words = said("/word", word, (0, "1"), (3, "1"))
    words += [(0, "/parts", floats(1.0)), (0, "/json", word('{"estop": true}'))]
    with pytest.raises(InputError, match=message) as caught:
        bring([*MODES, *words], MAP + text + "\n")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_numbers_named_by_the_map_are_interventions_and_exposure(bring):
    text = """
columns:
  success: /success
  interventions: {field: /mode.mode, values: {1: false, 3: true}}
exposure: {field: /mode.mode, values: {1: true, 3: false}}
assisted_success: failure
"""
    (row,) = rows_of(bring(MODES, MAP + text))
    assert (row.interventions, row.success) == (1, False)
    assert row.exposure_s == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("text", "success"),
    [
        (stopped("{field: /json.data.estpo, default: 'false'}"), True),
        ("columns: {success: {field: /none, values: {4: true, 0: false}, default: 4}}\n", True),
        ("columns: {success: {field: /none, values: {4: true, 0: false}, default: 0}}\n", False),
        ("columns: {success: {field: /none, default: no}}\n", False),
    ],
)
def test_a_default_stands_for_what_is_not_said(bring, text, success):
    messages = [*outcomes(2), (0, "/json", word("{}"))]
    assert [row.success for row in rows_of(bring(messages, MAP + text))] == [success]


def test_exposure_before_anything_is_known_is_remarked(bring):
    moves = said("/moves", boolean, (8, True), (9, False))
    text = "columns: {success: /success}\nexposure: /moves\n"
    done = bring([*outcomes(0, 10), *moves], MAP + text)
    assert [row.exposure_s for row in rows_of(done)] == [pytest.approx(1.0)]
    assert [remark.what for remark in done.remarks] == [
        "exposure: /moves says nothing in the first 8.000 s, which count as standing still"
    ]


@pytest.mark.parametrize(
    ("take", "expected"), [("last", False), ("first", False), ("any", True), ("all", False)]
)
def test_a_pulse_counts_as_the_map_says(bring, take, expected):
    done = bring(PULSE, f"{MAP}columns: {{success: {BUTTON % f', take: {take}'}}}\n")
    assert [row.success for row in rows_of(done)] == [expected]
    # Whoever does not know of the button that was let go sees a failure.
    assert [remark.what.partition(";")[0] for remark in done.remarks] == (
        ["success: /joy.buttons[2] says true and then false"] if take == "last" else []
    )


def test_a_message_without_content_can_be_counted_and_named(bring):
    messages = [(1, "/ok", empty()), (2, "/help", empty()), (3, "/help", empty())]
    text = """
columns:
  success: {field: /ok, values: {event: true}, default: 'false'}
  interventions: {field: /help, take: count}
assisted_success: failure
"""
    (row,) = rows_of(bring(messages, MAP + text))
    assert (row.interventions, row.success) == (2, False)


# float32 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "field", "take"),
    [
        (number(0.9, "Float32"), "/score", "last"),
        (number(0.9, "Float32"), "/score", "mean"),
        (number(0.9, "Float32"), "/score", "max"),
        (floats(0.1, 0.9), "'/score.data[1]'", "first"),
        (mode(0, 0.9), "/score.score", "last"),
    ],
)
def test_a_float32_has_the_digits_it_was_given(bring, message, field, take):
    messages = [(0, "/score", message), (1, "/score", message)]
    text = f"columns: {{quality: {{field: {field}, take: {take}}}}}\nsuccess_quality: 0.9\n"
    (row,) = rows_of(bring(messages, MAP + text))
    assert (row.quality, row.success) == (0.9, True)


def test_a_mean_is_that_of_the_digits(bring):
    messages = said("/score", lambda v: number(v, "Float32"), (0, 0.7), (1, 0.1))
    text = "columns: {quality: {field: /score, take: mean}}\nsuccess_quality: 0.4\n"
    (row,) = rows_of(bring(messages, MAP + text))
    assert (row.quality, row.success) == (0.4, True)


@pytest.mark.parametrize("limit", [0.1, 0.7])
@pytest.mark.parametrize("make", [lambda v: floats(0.0, v), lambda v: number(v, "Float32")])
def test_a_float32_at_a_limit_is_not_above_it(bring, limit, make):
    messages = [*outcomes(2), *said("/speed", make, (0, limit), (1, limit + 0.01))]
    text = f"columns: {{success: /success}}\nexposure: {{field: /speed, above: {limit}}}\n"
    (row,) = rows_of(bring(messages, MAP + text))
    assert row.exposure_s == pytest.approx(1.0)


def test_a_float32_is_the_value_the_map_names(bring):
    messages = [(0, "/level", number(0.7, "Float32")), *outcomes(1)]
    text = "columns: {success: /success, family: {field: /level, values: {0.7: easy, 1: hard}}}\n"
    assert [row.family for row in rows_of(bring(messages, MAP + text))] == ["easy"]


def test_a_topic_that_no_bag_has_is_named_though_its_default_is_taken(bring):
    """A misspelt topic would make every episode a failure without a word."""
    done = bring(
        outcomes(3.0) + said("/stop", boolean, (0.0, False)),
        MAP + "columns: {success: {field: /succes, default: false}}\n"
        "stops: {safety_stop: {field: /estop, default: false}}\n",
    )
    assert [(one.episode_id, one.what) for one in done.remarks] == [
        (None, "no bag has topic /estop; did you mean /stop?"),
        (None, "no bag has topic /succes; did you mean /success?"),
    ]


def test_a_stop_says_how_an_episode_ended_that_has_no_label(bring):
    messages = [
        *events((1, 6), (9, 11)),
        *outcomes(5),
        *said("/estop", boolean, (0, False), (10, True), (12, False)),
    ]
    found = [(row.end_reason, row.success) for row in rows_of(bring(messages, MAP + STOP + EVENTS))]
    assert found == [("success", True), ("safety_stop", False)]


# Places in lists -------------------------------------------------------------------------------

GOALS = said("/goals", lambda modes: goals(*modes), (0, []), (1, [2]), (2, [6]), (3, [6, 2]))
GOAL_MODES = "{4: true, 2: false, 6: false}"
GOAL = "columns: {success: {field: '/goals.goals[%s].mode', values: " + GOAL_MODES + "%s}}\n"


@pytest.mark.parametrize(
    ("place", "success"), [("-1", True), ("1", True), ("0", False), ("-2", False)]
)
def test_a_place_in_a_list_counts_from_its_end_if_it_is_negative(bring, place, success):
    messages = [*GOALS, (5.0, "/goals", goals(6, 4))]
    (row,) = rows_of(bring(messages, MAP + GOAL % (place, "")))
    assert row.success is success


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("columns: {success: /label, costs.x: '/goals.goals[-1].score'}\n", ("costs", {"x": 2.0})),
        (
            (
                "columns: {success: /label}\n"
                "stops: {timeout: {field: '/goals.goals[-1].mode', values: {2: false, 6: true}}}\n"
            ),
            ("end_reason", "timeout"),
        ),
        (
            (
                "columns: {success: /label}\nexposure: {field: '/goals.goals[-1].mode', values:"
                " {2: true, 6: false}}\n"
            ),
            ("exposure_s", 3.0),
        ),
        (
            "columns: {success: /label}\nexposure: {field: '/goals.goals[-1].score', above: 3}\n",
            ("exposure_s", 1.0),
        ),
        (
            (
                "columns: {success: /label}\n"
                "episodes: {field: '/goals.goals[-1].mode', start: 6, end: 2}\n"
            ),
            ("duration_s", 1.0),
        ),
        (
            "columns: {success: /label, costs.x: '/json.data.list[-1]'}\n",
            ("costs", {"x": 3.0}),
        ),
    ],
)
def test_the_end_of_a_list_is_read_wherever_a_field_is(bring, text, read):
    messages = [*GOALS, (3.0, "/label", boolean(True)), (5.0, "/label", boolean(True))]
    messages.append((4.0, "/json", word('{"list": [1, 2, 3]}')))
    (row,) = rows_of(bring(messages, MAP + text))
    assert getattr(row, read[0]) == read[1]


@pytest.mark.parametrize("topic", ["wrench", "command"])
def test_a_signal_at_the_end_of_a_list_begins_with_its_first_number(bring, topic):
    more = ", joints: [j]" if topic == "command" else ""
    text = f"signals: {{{topic}: '/goals.goals[%s].score'{more}}}\n"
    (row,) = rows_of(bring([*GOALS, *ALIVE], SUCCEEDED + text % -1))
    assert row.ticks == (3 if topic == "command" else None)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (GOAL % ("17", ", default: '4'"), "columns.success"),
        (
            (
                "columns: {success: /alive}\nstops: {safety_stop: {field: '/goals.goals[17].mode',"
                " values: {4: true, 6: false}, default: false}}\n"
            ),
            "stops.safety_stop",
        ),
    ],
)
def test_a_place_that_no_message_holds_is_remarked_though_its_default_is_taken(bring, text, place):
    done = bring([*GOALS, *ALIVE], MAP + text)
    assert rows_of(done)[0].success is True
    (remark,) = done.remarks
    said = f"no message of /goals holds /goals.goals[17].mode ({place} of the topic map)"
    assert remark.what == f"{said}: lists have at most 2 entries; the default counts"


def test_a_place_that_no_list_reaches_is_refused_with_their_length(bring):
    with pytest.raises(InputError, match=r"no message says it: lists have at most 2 entries;"):
        bring([*GOALS, *ALIVE], MAP + GOAL % ("17", ""))
