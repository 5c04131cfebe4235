"""The chart of what was recorded around an incident."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.writer import Writer
from rosbags.typesys import Stores, get_typestore

from robo_eval_incidents.kinds import Quantity
from robo_eval_incidents.web.excerpt import read_excerpt
from robo_eval_incidents.web.plot import event_plot

EVENT_NS = 1_770_000_000_000_000_000
STORE = get_typestore(Stores.ROS2_HUMBLE)
TYPES = STORE.types


class Recording:
    """A file of ROS 2 messages, encoded by the rosbags library."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb")
        self._writer = Writer(self._file, chunk_size=20_000)
        self._writer.start(profile="ros2", library="test")
        self._channels: dict[str, int] = {}

    def add(self, topic: str, kind: str, time_s: float, message: object) -> None:
        data = bytes(STORE.serialize_cdr(message, kind))
        self.raw(topic, kind, time_s, data)

    def raw(self, topic: str, kind: str, time_s: float, data: bytes) -> None:
        if topic not in self._channels:
            text, _ = (
                STORE.generate_msgdef(kind, ros_version=2)
                if kind in TYPES
                else ("string data\n", "")
            )
            schema = self._writer.register_schema(kind, "ros2msg", text.encode())
            self._channels[topic] = self._writer.register_channel(topic, "cdr", schema)
        time_ns = EVENT_NS + round(time_s * 1e9)
        self._writer.add_message(self._channels[topic], time_ns, data, time_ns)

    def close(self) -> Path:
        self._writer.finish()
        self._file.close()
        return self.path


def header(time_s: float) -> object:
    time_ns = EVENT_NS + round(time_s * 1e9)
    stamp = TYPES["builtin_interfaces/msg/Time"](sec=time_ns // 10**9, nanosec=time_ns % 10**9)
    return TYPES["std_msgs/msg/Header"](stamp=stamp, frame_id="base_link")


def joints(time_s: float, names: list[str], position: list[float], velocity: list[float]) -> object:
    return TYPES["sensor_msgs/msg/JointState"](
        header=header(time_s),
        name=names,
        position=np.array(position),
        velocity=np.array(velocity),
        effort=np.zeros(len(names)),
    )


def wrench(time_s: float, force_n: float) -> object:
    vector = TYPES["geometry_msgs/msg/Vector3"]
    return TYPES["geometry_msgs/msg/WrenchStamped"](
        header=header(time_s),
        wrench=TYPES["geometry_msgs/msg/Wrench"](
            force=vector(x=0.0, y=0.0, z=force_n), torque=vector(x=0.0, y=0.0, z=0.1 * force_n)
        ),
    )


def guard(time_s: float, state: str, limits: dict[str, tuple[str, str]]) -> object:
    status, pair = (
        TYPES["diagnostic_msgs/msg/DiagnosticStatus"],
        TYPES["diagnostic_msgs/msg/KeyValue"],
    )

    def one(name: str, values: dict[str, str]) -> object:
        return status(
            level=0,
            name=name,
            message="",
            hardware_id="arm_1",
            values=[pair(key=key, value=value) for key, value in values.items()],
        )

    return TYPES["diagnostic_msgs/msg/DiagnosticArray"](
        header=header(time_s),
        status=[
            one("guard", {"state": state}),
            *(one(n, {"value": "0", "limit": lim, "unit": u}) for n, (lim, u) in limits.items()),
        ],
    )


NAMES = ["shoulder_pan", "shoulder_lift", "elbow"]
LIMITS = {"shoulder_pan velocity": ("1.5", "rad/s"), "force": ("60", "N")}


def fill(recording: Recording, rate_hz: int = 50) -> None:
    """A robot that swings, hits something at 0 s and is stopped by its guard."""
    for tick in range(-10 * rate_hz, 10 * rate_hz):
        time_s = tick / rate_hz
        fade = 1.0 if time_s < 0.0 else float(np.exp(-4.0 * time_s))
        phases = [0.6 * time_s, 0.9 * time_s + 1.0, 0.4 * time_s + 2.0]
        speeds = [fade * 1.1 * float(np.cos(phase)) for phase in phases]
        places = [float(np.sin(min(phase, i + 0.3))) for i, phase in enumerate(phases)]
        recording.add(
            "/arm_1/joint_states",
            "sensor_msgs/msg/JointState",
            time_s,
            joints(time_s, NAMES, places, speeds),
        )
        push = 4.0 + 110.0 * float(np.exp(-20.0 * time_s)) if time_s >= 0.0 else 4.0
        recording.add(
            "/arm_1/wrench", "geometry_msgs/msg/WrenchStamped", time_s, wrench(time_s, push)
        )
        if tick % 5 == 0:
            state = "RUNNING" if time_s < 0.02 else "PROTECTIVE_STOP" if time_s < 7.0 else "READY"
            recording.add(
                "/arm_1/safety/state",
                "diagnostic_msgs/msg/DiagnosticArray",
                time_s,
                guard(time_s, state, LIMITS),
            )


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recording = Recording(tmp_path_factory.mktemp("recording") / "stopped.mcap")
    fill(recording)
    return recording.close()


def parsed(html: str) -> ET.Element:
    """The markup as a tree: it has to be well formed, and harmless."""
    root = ET.fromstring(f"<div>{html}</div>")
    for element in root.iter():
        assert element.tag not in {"script", "style", "image", "a", "foreignObject"}
        assert not any(name.startswith("on") or name == "style" for name in element.attrib)
    return root


def charts(root: ET.Element) -> dict[str, ET.Element]:
    return {str(svg.findtext("title")): svg for svg in root.iter("svg") if svg.get("role") == "img"}


def test_each_quantity_has_a_chart_with_title_and_words(stopped: Path) -> None:
    html = event_plot(stopped, EVENT_NS)
    assert "plot-note" not in html
    found = charts(parsed(html))
    assert list(found) == [
        "State of the guard", "Joint velocity", "Joint position", "Force", "Torque",
    ]  # fmt: skip
    for svg in found.values():
        ids = str(svg.get("aria-labelledby")).split()
        assert [child.get("id") for child in list(svg)[:2]] == ids
    assert "114 at the event" in str(found["Force"].findtext("desc"))
    assert "PROTECTIVE_STOP from 0.1 s to 7 s" in str(found["State of the guard"].findtext("desc"))


def test_limits_that_the_guard_states_are_drawn(stopped: Path) -> None:
    found = charts(parsed(event_plot(stopped, EVENT_NS)))
    assert "limits \u22121.5, 1.5" in str(found["Joint velocity"].findtext("desc"))
    assert "limits 60" in str(found["Force"].findtext("desc"))
    assert len(list(found["Force"].iterfind(".//path[@class='plot-limit']"))) == 1


def test_limits_of_a_report_are_drawn_where_the_recording_states_none(stopped: Path) -> None:
    measured = [Quantity(name="contact torque", value=11.4, unit="N m", limit=10.0)]
    found = charts(parsed(event_plot(stopped, EVENT_NS, quantities=measured)))
    assert "limits 10" in str(found["Torque"].findtext("desc"))


def test_the_event_is_where_it_happened(stopped: Path) -> None:
    for seconds, share in ((0.0, "50"), (5.0, "66")):
        root = parsed(event_plot(stopped, EVENT_NS + round(seconds * 1e9)))
        places = {line.get("x1") for line in root.iterfind(".//line[@class='plot-event']")}
        (place,) = places
        assert str(place).startswith(share)


def test_a_short_peak_is_not_thinned_away(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "peak.mcap")
    for i in range(-9_000, 9_000):
        force = 250.0 if i == 1_234 else 1.0
        recording.add(
            "/wrench", "geometry_msgs/msg/WrenchStamped", i / 1_000, wrench(i / 1_000, force)
        )
    html = event_plot(recording.close(), EVENT_NS)
    path = charts(parsed(html))["Force"].find(".//path[@class='plot-series']")
    heights = [float(h) for h in re.findall(r"[ML][\d.]+ ([\d.]+)", str(path.get("d")))]
    assert min(heights) < 25.0 < 110.0 < np.median(heights)
    assert len(html) < 60_000


def test_a_gap_is_not_drawn_over(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "gap.mcap")
    for i in [*range(-500, -100), *range(200, 500)]:
        recording.add("/wrench", "geometry_msgs/msg/WrenchStamped", i / 100, wrench(i / 100, 5.0))
    path = charts(parsed(event_plot(recording.close(), EVENT_NS)))["Force"]
    line = path.find(".//path[@class='plot-series']")
    assert str(line.get("d")).count("M") == 2


def test_one_message_is_a_dot(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "one.mcap")
    recording.add("/wrench", "geometry_msgs/msg/WrenchStamped", 0.0, wrench(0.0, 5.0))
    force = charts(parsed(event_plot(recording.close(), EVENT_NS)))["Force"]
    assert "5 at the event" in str(force.findtext("desc"))
    assert str(force.find(".//path[@class='plot-series']").get("d")).startswith("M500.0")


def test_of_many_joints_those_that_moved_most_are_drawn(tmp_path: Path) -> None:
    names = [f"joint_{i:02}" for i in range(23)]
    recording = Recording(tmp_path / "many.mcap")
    for i in range(100):
        values = [k * i / 100.0 for k in range(23)]
        recording.add(
            "/joint_states",
            "sensor_msgs/msg/JointState",
            i / 50.0 - 1.0,
            joints(i / 50.0 - 1.0, names, values, [float("nan")] * 23),
        )
    html = event_plot(recording.close(), EVENT_NS)
    (chart,) = charts(parsed(html)).values()
    drawn = [path.findtext("title") for path in chart.iterfind(".//path[@class='plot-series']")]
    assert drawn == names[15:]
    assert "the 8 of 23 that moved most" in html


def test_names_in_a_recording_are_text(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "evil.mcap")
    name = "</svg><script>alert(1)</script>"
    for i in range(3):
        recording.add(
            "/joint_states",
            "sensor_msgs/msg/JointState",
            i / 10.0,
            joints(i / 10.0, [name], [float(i)], [1e308 * (-1) ** i]),
        )
    html = event_plot(recording.close(), EVENT_NS)
    parsed(html)
    assert "<script" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "missing"),
        (lambda path: path.write_bytes(b""), "not an MCAP file"),
        (lambda path: path.write_bytes(b"\x00" * 5_000), "not an MCAP file"),
        (lambda path: path.write_bytes(b"\x89MCAP0\r\n"), "nothing that can be drawn"),
        (lambda path: path.mkdir(), "not an MCAP file"),
        (lambda path: Recording(path).close(), "nothing that can be drawn"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_said_in_a_sentence(
    tmp_path: Path, make: Callable[[Path], object], says: str
) -> None:
    path = tmp_path / "x.mcap"
    make(path)
    html = event_plot(path, EVENT_NS)
    assert html.startswith('<p class="plot-note">')
    assert says in html
    assert str(tmp_path) not in html


def test_other_messages_and_other_times_draw_nothing(tmp_path: Path, stopped: Path) -> None:
    recording = Recording(tmp_path / "other.mcap")
    recording.raw("/camera", "maker_msgs/msg/Frame", 0.0, b"\x00\x01\x00\x00rest")
    assert "nothing that can be drawn" in event_plot(recording.close(), EVENT_NS)
    assert "nothing that can be drawn" in event_plot(stopped, EVENT_NS + 3_600 * 10**9)
    assert "nothing that can be drawn" in event_plot(stopped, 0)


def test_messages_that_cannot_be_decoded_are_counted(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "broken.mcap")
    kind = "sensor_msgs/msg/JointState"
    for i in range(10):
        recording.add("/joint_states", kind, i / 10.0, joints(i / 10.0, ["a"], [i], [0.0]))
        recording.raw("/joint_states", kind, i / 10.0, b"\x00\x01\x00\x00\xff\xff")
    html = event_plot(recording.close(), EVENT_NS)
    assert "10 messages could not be read." in html
    assert "Joint position" in html


def test_what_was_cut_short_is_drawn_as_far_as_it_goes(tmp_path: Path, stopped: Path) -> None:
    data = stopped.read_bytes()
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(data[: int(0.8 * len(data))])
    html = event_plot(cut, EVENT_NS)
    assert "damaged or cut short" in html
    assert "Joint velocity" in charts(parsed(html))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_no_damage_of_a_file_is_an_error(
    tmp_path: Path, stopped: Path, data: st.DataObject
) -> None:
    whole = bytearray(stopped.read_bytes()[:60_000])
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(8, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.mcap"
    path.write_bytes(bytes(whole[: data.draw(st.integers(8, len(whole)))]))
    parsed(event_plot(path, EVENT_NS))


def test_a_name_that_no_page_may_hold_is_drawn_with_a_sign_for_it(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "named.mcap")
    for i in range(50):
        message = joints(0.01 * i, ["a\x08\x1b"], [0.1 * i], [0.1])
        recording.add("/joint_states", "sensor_msgs/msg/JointState", 0.01 * i, message)
    drawn = event_plot(recording.close(), EVENT_NS)
    parsed(drawn)
    assert "a\N{REPLACEMENT CHARACTER}" in drawn


def test_a_tool_whose_speed_was_not_measured_has_one(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "tool.mcap")
    kind = "geometry_msgs/msg/PoseStamped"
    for i in range(100):
        pose = TYPES["geometry_msgs/msg/Pose"](
            position=TYPES["geometry_msgs/msg/Point"](x=0.005 * i, y=0.0, z=1.0),
            orientation=TYPES["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0),
        )
        message = TYPES[kind](header=header(i / 50.0), pose=pose)
        recording.add("/tool_pose", kind, i / 50.0, message)
    excerpt = read_excerpt(recording.close(), EVENT_NS)
    (panel,) = excerpt.panels
    assert (panel.key, panel.unit) == ("speed", "m/s")
    assert panel.series[0].values == pytest.approx(0.25)
