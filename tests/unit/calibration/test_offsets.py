"""Zeros of joints, clocks of machines and cameras on hands, with truths that are known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from robo_eval.cli.calibrate import app
from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval_calibration.hand_eye import Poses, hand_eye
from robo_eval_calibration.offsets import Offset, clock_offset, joint_offsets

Array = NDArray[np.float64]


def written(folder: Path, header: str, rows: Any) -> Path:
    path = folder / "readings.csv"
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all examples of a property."""
    return tmp_path_factory.mktemp("offsets")


# Joints -----------------------------------------------------------------------------------------

JOINTS = "joint,reference_deg,measured_deg"


def test_zero_offsets_are_means_of_differences_with_their_t_interval(tmp_path: Path) -> None:
    rows = [("elbow", a, a + 2.0 + e) for a, e in [(0, 0.1), (30, -0.1), (60, -0.1), (90, 0.1)]]
    rows += [("wrist", a, a + e) for a, e in [(0, 0.1), (30, -0.1), (60, -0.1), (90, 0.1)]]
    elbow, wrist = joint_offsets(written(tmp_path, JOINTS, rows))
    found = elbow.numbers["offset"]
    assert (elbow.of, elbow.verdict, wrist.verdict) == ("elbow", "offset", "none shown")
    assert math.degrees(found.value or 0.0) == pytest.approx(2.0)
    # t(3) = 3.182446, sd = 0.2 / sqrt(3), four readings.
    half = 3.182446 * 0.2 / math.sqrt(3.0) / 2.0
    assert math.degrees(found.high or 0.0) == pytest.approx(2.0 + half, rel=1e-5)
    assert math.degrees(elbow.residuals["root_mean_square_rad"]) == pytest.approx(0.1)


@given(
    offset=st.floats(-179.0, 179.0),
    angles=st.lists(st.floats(-720.0, 720.0), min_size=4, max_size=8),
    turns=st.integers(-2, 2),
)
def test_an_offset_without_noise_is_found_whatever_turn_was_read(
    folder: Path, offset: float, angles: list[float], turns: int
) -> None:
    rows = [("j", a, a + offset + 360.0 * turns * (i % 2)) for i, a in enumerate(angles)]
    (found,) = joint_offsets(written(folder, JOINTS, rows))
    value = found.numbers["offset"].value or 0.0
    assert math.remainder(value - math.radians(offset), 2.0 * math.pi) == pytest.approx(0, abs=1e-9)
    assert found.verdict in ("offset", "none shown")


def test_units_are_those_of_the_columns(tmp_path: Path) -> None:
    rows = [("lift", a, 0.001 * a + 0.005) for a in (0, 100, 200)]
    (found,) = joint_offsets(written(tmp_path, "joint,reference_mm,measured_m", rows))
    assert found.numbers["offset"].value == pytest.approx(0.005)
    assert found.numbers["offset"].unit == "m"


def test_a_difference_that_grows_with_the_angle_is_no_offset(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).normal(0.0, 0.05, 8)
    rows = [("j", a, 1.01 * a + e) for a, e in zip(range(0, 160, 20), noise, strict=True)]
    (found,) = joint_offsets(written(tmp_path, JOINTS, rows))
    assert found.verdict == "grows"
    assert "scale" in str(found.reason)


def test_two_readings_are_too_few_and_the_worst_of_many_is_named(tmp_path: Path) -> None:
    rows = [("a", 0, 1), ("a", 10, 11), *(("b", 5, x) for x in (6.0, 6.1, 9.0, 5.9))]
    few, many = joint_offsets(written(tmp_path, JOINTS, rows))
    assert (few.verdict, few.numbers["offset"].value) == ("too few", None)
    assert many.lines == (6,)
    assert "one position" in str(many.reason)


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("joint,reference_deg,measured_rad", [(0, 0.1), (5, 5), (4, 4.1), (1, 1), (3, 3)]),
        ("joint,reference_deg,measured_deg", [(10, 11), (20, 21), (30, 210)]),
        ("joint,reference_deg,measured_deg", [(45, 46), (45, 100), (45, 10), (45, 46)]),
        ("joint,reference_m,measured_m", [(0.1, 0.2), (0.2, 0.1), (0.3, 0.4), (0.1, 0.1)]),
    ],
)
def test_differences_that_scatter_far_too_much_are_no_offset(
    tmp_path: Path, header: str, rows: list[tuple[float, float]]
) -> None:
    (found,) = joint_offsets(written(tmp_path, header, [("j", *row) for row in rows]))
    assert (found.verdict, found.numbers["offset"].value) == ("does not fit", None)
    assert "check units" in str(found.reason)


@pytest.mark.parametrize(
    ("header", "row", "words"),
    [
        (JOINTS, "j,0,nan", ("line 2", "measured_deg", "nan")),
        (JOINTS, "j,,1", ("line 2", "reference_deg", "not a number")),
        (
            "joint,reference,measured_deg",
            "j,0,1",
            ("reference_rad", "is missing", "unit at the end"),
        ),
        ("joint,reference_deg,measured_mm", "j,0,1", ("measured_mm", "both must be angles")),
        (JOINTS, "", ("holds no reading",)),
        (
            "joint,reference_deg,measured_rad",
            "j,30,30.5",
            ("line 2", "'measured_rad'", "30.5 rad", "'_deg'"),
        ),
        ("joint,reference_rad,measured_rad", "j,-135,1", ("line 2", "'reference_rad'", "'_deg'")),
        ("joint,reference_m,measured_m", "j,0.3,300.1", ("line 2", "'measured_m'", "'_mm'")),
    ],
)
def test_a_table_that_will_not_do_is_refused(
    tmp_path: Path, header: str, row: str, words: tuple[str, ...]
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"{header}\n{row}\n")
    with pytest.raises(InputError) as raised:
        joint_offsets(path)
    for word in ("bad.csv", *words):
        assert word in str(raised.value)


# Clocks -----------------------------------------------------------------------------------------

CLOCK = "a_send_ns,b_receive_ns,b_send_ns,a_receive_ns"
BEGIN = 1_764_412_345_123_456_789


def trips(
    offset_ns: int, drift: float = 0.0, *, n: int = 60, seed: int = 1, least_ns: int = 100_000
) -> list[list[int]]:
    """Round trips of a minute: each way takes its least time and often far more."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n):
        there, back = (least_ns + int(x) for x in rng.exponential(200_000, 2))
        start = number * 1_000_000_000
        times = (start, start + there, start + there + 50_000, start + there + 50_000 + back)
        # The middle of the record is where the offset is told.
        shift = [
            offset_ns + round(drift * (t - (n - 1) * 500_000_000)) if i in (1, 2) else 0
            for i, t in enumerate(times)
        ]
        found.append([BEGIN + t + s for t, s in zip(times, shift, strict=True)])
    return found


@pytest.mark.parametrize("offset_ns", [3_000_000, -7_200_000_000_000, 0])
def test_bounds_hold_offset_and_drift_of_clocks(tmp_path: Path, offset_ns: int) -> None:
    found = clock_offset(written(tmp_path, CLOCK, trips(offset_ns, 20e-6)))
    offset, drift = found.numbers["offset"], found.numbers["drift"]
    assert (offset.low or 0.0) <= offset_ns / 1e9 <= (offset.high or 0.0)
    assert (drift.low or 0.0) <= 20e-6 <= (drift.high or 0.0)
    assert (offset.high or 0.0) - (offset.low or 0.0) < 0.3e-3
    assert offset.value == pytest.approx(offset_ns / 1e9, abs=3e-5)
    wanted = {3_000_000: "ahead", -7_200_000_000_000: "behind", 0: "none shown"}
    assert found.verdict == wanted[offset_ns]


@settings(max_examples=10)
@given(st.integers(-(10**12), 10**12), st.floats(-1e-4, 1e-4), st.integers(0, 1000))
def test_no_truth_is_ever_outside_the_bounds(
    folder: Path, offset_ns: int, drift: float, seed: int
) -> None:
    rows = trips(offset_ns, drift, n=12, seed=seed)
    found = clock_offset(written(folder, CLOCK, rows))
    offset = found.numbers["offset"]
    assert (offset.low or 0.0) - 1e-8 <= offset_ns / 1e9 <= (offset.high or 0.0) + 1e-8
    assert not found.lines


@pytest.mark.parametrize(
    ("drift", "word"), [(0.0, "none shown"), (1e-4, "gains"), (-1e-4, "loses")]
)
def test_a_drift_has_a_verdict_of_its_own(tmp_path: Path, drift: float, word: str) -> None:
    path = written(tmp_path, CLOCK, trips(3_000_000, drift))
    done = CliRunner().invoke(app, ["offsets", "clock", str(path)])
    said = {line.split()[7]: line for line in done.output.splitlines() if " of a " in line}
    assert said["offset"].rstrip().endswith("ahead")
    assert said["drift"].rstrip().endswith(word)


def test_slow_answers_change_nothing(tmp_path: Path) -> None:
    rows = trips(3_000_000)
    calm = clock_offset(written(tmp_path, CLOCK, rows)).numbers["offset"]
    slowest = max(rows, key=lambda row: row[3] - row[0])
    slowest[3] += 5_000_000_000
    slow = clock_offset(written(tmp_path, CLOCK, rows)).numbers["offset"]
    assert (slow.low, slow.high) == pytest.approx((calm.low, calm.high), abs=1e-8)


def test_a_wrong_stamp_is_named(tmp_path: Path) -> None:
    rows = trips(3_000_000)
    rows[20][1] -= 50_000_000
    found = clock_offset(written(tmp_path, CLOCK, rows))
    assert (found.verdict, found.numbers["offset"].value) == ("not steady", None)
    assert "line 22" in str(found.reason)


def test_a_clock_that_was_set_has_no_offset_and_the_line_is_named(tmp_path: Path) -> None:
    rows = trips(3_000_000)
    for row in rows[40:]:
        row[1] += 10_000_000
        row[2] += 10_000_000
    found = clock_offset(written(tmp_path, CLOCK, rows))
    assert (found.verdict, found.numbers["offset"].value) == ("not steady", None)
    assert "line 42" in str(found.reason)


def test_two_round_trips_are_too_few(tmp_path: Path) -> None:
    found = clock_offset(written(tmp_path, CLOCK, trips(0, n=2)))
    assert found.verdict == "too few"
    assert "2 round trips" in str(found.reason)


# Hand and eye -----------------------------------------------------------------------------------

HAND = [f"hand_{x}_m" for x in "xyz"] + [f"hand_q{x}" for x in "xyzw"]
TARGET = [f"target_{x}_mm" for x in "xyz"] + [f"target_r{x}_deg" for x in "xyz"]
CAMERA = Poses(turn=Rotation.from_euler("xyz", [-90, 0, -80], degrees=True),
               p=np.array([0.03, -0.05, 0.12]))  # fmt: skip
PLACE = Poses(turn=Rotation.from_euler("xyz", [170, 10, 30], degrees=True),
              p=np.array([0.5, 0.2, 0.0]))  # fmt: skip


def stations(
    n: int = 12, *, seed: int = 1, spread: float = 0.5, noise: float = 0.0, axis: Any = None
) -> tuple[Poses, Poses]:
    """Poses of a hand, and of the target as its camera sees it."""
    rng = np.random.default_rng(seed)
    turns = rng.normal(0.0, spread, (n, 3))
    if axis is not None:
        turns = turns[:, :1] * np.asarray(axis)
    hand = Poses(turn=Rotation.from_rotvec(turns), p=rng.normal(0.0, 0.2, (n, 3)))
    target = (hand @ CAMERA).inverse() @ PLACE
    wrong = Rotation.from_rotvec(rng.normal(0.0, 2.0 * noise, (n, 3)))
    return hand, Poses(turn=target.turn * wrong, p=target.p + rng.normal(0.0, noise, (n, 3)))


def station_file(folder: Path, hand: Poses, target: Poses) -> Path:
    rows = np.hstack([hand.p, hand.turn.as_quat(), 1e3 * target.p,
                      np.degrees(target.turn.as_rotvec())])  # fmt: skip
    return written(folder, ",".join(HAND + TARGET), rows.tolist())


def apart(found: Offset, truth: Poses) -> tuple[float, float]:
    """Distance (m) and angle (rad) of what was found from the truth."""
    x = np.array([one.value for one in found.numbers.values()], dtype=float)
    turn = Rotation.from_rotvec(x[3:]).inv() * truth.turn
    return float(np.linalg.norm(x[:3] - truth.p)), float(turn.magnitude())


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(4, 6), st.sampled_from([0.5, 1.0, 3.0]))
def test_poses_without_noise_give_the_camera_on_the_hand(
    folder: Path, seed: int, n: int, spread: float
) -> None:
    hand, target = stations(n, seed=seed, spread=spread)
    found = hand_eye(station_file(folder, hand, target))
    assume(found.verdict != "parallel")  # one draw of four in a thousand nearly is
    assert found.verdict == "found"
    assert apart(found, CAMERA) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_a_fixed_camera_is_found_in_the_base(tmp_path: Path) -> None:
    hand, _ = stations()
    on_hand = Poses(turn=PLACE.turn, p=np.array([0.0, 0.02, 0.1]))
    seen = CAMERA.inverse() @ hand @ on_hand
    path = station_file(tmp_path, hand, seen)
    found = hand_eye(path, fixed=True)
    assert apart(found, CAMERA) == pytest.approx((0.0, 0.0), abs=1e-6)
    wrong = hand_eye(path)
    assert (wrong.verdict, wrong.numbers["x_m"].value) == ("does not fit", None)
    assert "--fixed" in str(wrong.reason)


def test_poses_the_other_way_round_are_noticed(tmp_path: Path) -> None:
    hand, target = stations(noise=1e-3)
    found = hand_eye(station_file(tmp_path, hand, target.inverse()))
    assert found.verdict == "does not fit"
    assert "whose frame" in str(found.reason)


def test_intervals_hold_the_camera_and_scatter_is_told(tmp_path: Path) -> None:
    held = []
    for seed in range(4):
        hand, target = stations(6, seed=seed, noise=1e-3)
        found = hand_eye(station_file(tmp_path, hand, target))
        truth = np.concatenate([CAMERA.p, CAMERA.turn.as_rotvec()])
        ends = [(one.low or 0.0, one.high or 0.0) for one in found.numbers.values()]
        held += [low <= x <= high for (low, high), x in zip(ends, truth, strict=True)]
        assert 2e-4 < found.residuals["root_mean_square_m"] < 5e-3
        assert 2e-4 < found.residuals["scatter_m"] < 1e-2
    assert np.mean(held) > 0.9


def test_half_a_turn_between_stations_does_no_harm(tmp_path: Path) -> None:
    hand, _ = stations()
    half = Rotation.from_rotvec([(0.0, 0.0, math.pi * (i % 2)) for i in range(12)])
    hand = Poses(turn=half * hand.turn, p=hand.p)
    seen = (hand @ CAMERA).inverse() @ PLACE
    assert apart(hand_eye(station_file(tmp_path, hand, seen)), CAMERA)[0] < 1e-6


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.0, 0.0, 0.0)])
def test_rotations_about_one_axis_or_none_have_no_answer(tmp_path: Path, axis: Any) -> None:
    found = hand_eye(station_file(tmp_path, *stations(axis=axis)))
    assert (found.verdict, found.numbers["z_m"].value) == ("parallel", None)
    assert "two axes" in str(found.reason)


def test_three_stations_are_too_few(tmp_path: Path) -> None:
    found = hand_eye(station_file(tmp_path, *stations(3)))
    assert found.verdict == "too few"
    assert "3 stations" in str(found.reason)


def test_the_station_that_pulls_most_is_named(tmp_path: Path) -> None:
    hand, target = stations(noise=2e-4)
    target.p[7] += 0.05
    assert hand_eye(station_file(tmp_path, hand, target)).lines == (9,)


def test_a_quaternion_of_another_length_is_refused(tmp_path: Path) -> None:
    path = station_file(tmp_path, *stations(4))
    lines = path.read_text().splitlines()
    cells = lines[2].split(",")
    cells[3:7] = ["0", "0", "0", "0.5"]
    path.write_text("\n".join([*lines[:2], ",".join(cells), *lines[3:]]))
    with pytest.raises(InputError, match=r"line 3, columns 'hand_qx'.*length 0\.5"):
        hand_eye(path)


def test_rotation_vectors_in_degrees_under_rad_are_refused(tmp_path: Path) -> None:
    hand, target = stations(5)
    for angle in (8.0, 40.0):
        turn = Rotation.from_rotvec([np.radians(angle) * np.array([0.6, 0.0, 0.8])] * 5)
        path = station_file(tmp_path, hand, Poses(turn=turn, p=target.p))
        path.write_text(path.read_text().replace("_deg", "_rad"))
        with pytest.raises(InputError) as raised:
            hand_eye(path)
        for word in ("readings.csv", "line 2", "target_r", "_rad'", "_deg'"):
            assert word in str(raised.value)


WRONG = {
    "radians called degrees": lambda hand, target: (
        hand, Poses(turn=Rotation.from_rotvec(target.turn.as_rotvec() / 57.3), p=target.p)
    ),
    "metres called centimetres, of the target": lambda hand, target: (
        hand, Poses(turn=target.turn, p=target.p / 100.0)
    ),
    "lines in another order": lambda hand, target: (hand, target.take(np.arange(12) - 1)),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))]
)
def test_poses_that_do_not_fit_have_no_answer(tmp_path: Path, kind: str, seed: int) -> None:
    path = station_file(tmp_path, *WRONG[kind](*stations(noise=1e-3, seed=seed)))
    found = hand_eye(path)
    assert (found.verdict, found.numbers["x_m"].value) == ("does not fit", None)
    assert "check units" in str(found.reason)
    assert found.lines


@pytest.mark.parametrize("factor", [0.01, 0.001, 100.0])
def test_a_unit_that_is_wrong_everywhere_is_seen_by_the_distance(
    tmp_path: Path, factor: float
) -> None:
    hand, target = (Poses(turn=one.turn, p=factor * one.p) for one in stations(noise=1e-3))
    found = hand_eye(station_file(tmp_path, hand, target))
    assert (found.verdict, found.numbers["x_m"].value) == ("does not fit", None)
    assert "from the camera" in str(found.reason)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(4, 12))
def test_errors_of_a_centimetre_and_a_degree_still_fit(folder: Path, seed: int, n: int) -> None:
    hand, target = stations(n, seed=seed, noise=0.01)
    assert hand_eye(station_file(folder, hand, target)).verdict == "found"


# The verbs --------------------------------------------------------------------------------------


def test_each_verb_prints_a_table_or_one_document(tmp_path: Path) -> None:
    joints = written(tmp_path, JOINTS, [("j", a, a + 1.0) for a in (0, 20, 40, 60)])
    done = CliRunner().invoke(app, ["offsets", "joints", str(joints)])
    assert done.exit_code == 0, done.exception
    assert "0.01745" in done.output
    clock = written(tmp_path, CLOCK, trips(3_000_000))
    done = CliRunner().invoke(app, ["offsets", "clock", str(clock), "--json"])
    assert json.loads(done.output)["offsets"][0]["verdict"] == "ahead"
    eye = station_file(tmp_path, *stations(5))
    done = CliRunner().invoke(app, ["offsets", "hand-eye", str(eye), "--json"])
    assert json.loads(done.output)["offsets"][0]["numbers"]["x_m"]["unit"] == "m"


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        ((11, 21, 210), "does not fit"),
        ((11, 21), "too few"),
        ((10, 20.5, 31, 41.5, 52), "grows"),
    ],
)
def test_what_cannot_be_used_ends_with_1(
    tmp_path: Path, measured: tuple[float, ...], verdict: str, is_json: bool
) -> None:
    rows = [("good", a, a + 1.0) for a in (0, 20, 40, 60)]
    rows += [("bad", 10 * (i + 1), x) for i, x in enumerate(measured)]
    path = written(tmp_path, JOINTS, rows)
    done = CliRunner().invoke(app, ["offsets", "joints", str(path), *["--json"] * is_json])
    assert isinstance(done.exception, CheckFailedError)
    assert str(done.exception).endswith(f"readings.csv: no offset to use: bad: {verdict}")
    assert "good" in done.output
