"""Whatever can be logged comes back as it was; whatever is read never crashes."""

import math
import string
import tempfile
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from robo_eval.core.episode import COLUMNS, Episode
from robo_eval.core.errors import RoboEvalError
from robo_eval.core.kinds import Arm, EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.trajectory import Trajectory
from robo_eval.log.cells import Reading, number_of
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.export import export_episodes, read_episodes
from robo_eval.log.importer import import_csv
from robo_eval.log.rows import cells_of, row_digest
from robo_eval.log.store import EpisodeStore
from robo_eval.log.trace import read_trace, write_trace
from robo_eval.log.verify import verify_trial

PLAN = parse_plan("name: p\ntasks: [{levels: [0]}]\npolicies: [nothing]\n", source="plan")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = texts.filter(bool)
floats = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**53 - 1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | floats | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def episodes(draw):
    end = draw(st.sampled_from(EndReason))
    quality = draw(st.floats(0, 1)) if end.is_scored else None
    return Episode(
        episode_id=draw(names),
        attempt=draw(counts),
        pair_id=draw(st.none() | texts),
        arm=draw(st.sampled_from(Arm)),
        plan_digest=draw(texts),
        side=draw(st.sampled_from(Side)),
        task=draw(texts),
        level=draw(st.none() | st.integers(0, 20)),
        difficulty=draw(st.none() | texts),
        seed=draw(st.none() | st.integers(-(2**63), 2**63 - 1)),
        policy=draw(texts),
        policy_digest=draw(texts),
        start_ns=draw(st.none() | st.integers(-(2**63), 2**63 - 1)),
        duration_s=draw(st.none() | st.floats(0, 1e12)),
        exposure_s=draw(st.none() | st.floats(0, 1e12)),
        ticks=draw(st.none() | counts),
        episode_return=draw(st.none() | floats),
        quality=quality,
        success=None if quality is None else end is EndReason.SUCCESS,
        end_reason=end,
        end_detail=draw(st.none() | texts),
        recovered=draw(st.booleans()),
        stated_success_probability=draw(st.none() | st.floats(0, 1)),
        costs=draw(st.dictionaries(texts, floats, max_size=3)),
        initial_state=draw(st.dictionaries(texts, json_values, max_size=3)),
        software=draw(texts),
    )


def no_empty(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two tables are equal but for empty texts."""
    texts = one.columns[[str(kind) == "object" for kind in one.dtypes]]
    one, other = one.copy(), other.copy()
    for frame in (one, other):
        frame[texts] = frame[texts].map(lambda value: None if value == "" else value)
    return one.equals(other)


def refusal(call: Callable[[], object]) -> str | None:
    """Why something was refused; None if it was not."""
    try:
        call()
    except RoboEvalError as err:
        return str(err)
    return None


@given(st.lists(episodes(), max_size=6, unique_by=lambda episode: episode.episode_id))
def test_rows_come_back_and_verify(given_episodes):
    with tempfile.TemporaryDirectory() as folder:
        trial = TrialDirectory.create(Path(folder) / "t", PLAN)
        rows = [replace(e, plan_digest=trial.plan_digest) for e in given_episodes]
        with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
            store.append(rows[:2])
            store.append(rows[2:])
            assert list(store.episodes()) == rows
            frame = store.frame()
            trial.write_manifest(status="complete", store=store)
        report = verify_trial(trial.path)
        assert report.ok, report.problems
        for name in ("a.csv", "a.parquet"):
            export_episodes(trial.path, Path(folder) / name)
            again = read_episodes(Path(folder) / name)
            # CSV cannot tell an empty text from a missing one.
            same = again.equals(frame) if name == "a.parquet" else no_empty(again, frame)
            assert same
            assert list(again.dtypes) == list(frame.dtypes)


@given(episodes(), st.data())
def test_every_column_is_in_the_digest(episode, data):
    cells = cells_of(episode, where="row")
    before = row_digest(cells, sequence=1, previous_sha256="0" * 64)
    column = data.draw(st.sampled_from(COLUMNS))
    other = data.draw((st.integers(-9, 9) | floats | texts | st.none()).filter(
        lambda value: repr(value) != repr(cells[column])
    ))  # fmt: skip
    changed = {**cells, column: other}
    after = row_digest(changed, sequence=1, previous_sha256="0" * 64)
    assert before != after


@st.composite
def trajectories(draw):
    n, joints, frames, width, actions = (
        draw(st.integers(low, high)) for low, high in ((1, 6), (0, 3), (0, 3), (0, 4), (0, 2))
    )
    anything = st.floats(width=64)
    finite = st.floats(allow_nan=False, allow_infinity=False)
    steps = draw(arrays(np.int64, n, elements=st.integers(1, 10**12)))
    poses = draw(arrays(np.float64, (n, frames, 7), elements=finite))
    poses[draw(arrays(np.bool_, (n, frames)))] = math.nan
    return Trajectory(
        stamp_ns=np.cumsum(steps) - steps[0],
        joint_names=tuple(f"j{i}" for i in range(joints)),
        joint_position=draw(arrays(np.float64, (n, joints), elements=anything)),
        joint_velocity=draw(arrays(np.float64, (n, joints), elements=anything)),
        frames=tuple(
            draw(
                st.lists(
                    texts.filter(lambda text: text and "\0" not in text),
                    min_size=frames, max_size=frames, unique=True,
                )
            )
        ),
        pose_world_frame=poses,
        actions=draw(arrays(np.float64, (n - 1, actions), elements=anything)),
        rewards=draw(arrays(np.float64, n - 1, elements=anything)),
        observations=draw(arrays(np.float64, (n, width), elements=anything)),
        robot_description=draw(texts.filter(lambda text: not text.endswith("\0"))),
    )  # fmt: skip


@given(
    trajectories(),
    st.lists(st.tuples(st.integers(0, 10**13), st.dictionaries(texts, json_values)), max_size=4),
    st.dictionaries(texts, texts, max_size=3),
)
def test_traces_come_back(trajectory, events, metadata):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.mcap"
        write_trace(path, trajectory, events=events, metadata=metadata)
        trace = read_trace(path)
    for name in ("stamp_ns", "joint_position", "joint_velocity", "pose_world_frame", "actions",
                 "rewards", "observations"):  # fmt: skip
        assert getattr(trace, name).tobytes() == getattr(trajectory, name).tobytes(), name
    assert trace.frames == trajectory.frames
    assert trace.robot_description == trajectory.robot_description
    assert list(trace.events) == sorted(events, key=lambda event: event[0])
    assert trace.metadata == metadata


MAP = """
columns: {policy: who, success: won, duration_s: took, start_ns: {column: when, unit: ms}}
constants: {task: t, side: real}
"""
cell = st.text(string.printable, max_size=8)


@given(st.binary(max_size=200) | st.lists(st.tuples(cell, cell, cell, cell), max_size=4).map(
    lambda rows: "\n".join(["who,won,took,when", *map(",".join, rows)]).encode()
))  # fmt: skip
def test_any_csv_is_imported_or_refused(content):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "lab.csv").write_bytes(content)
        (folder / "map.yaml").write_text(MAP)
        reason = refusal(
            lambda: import_csv(folder / "lab.csv", folder / "map.yaml", folder / "out")
        )
        if reason is None:
            assert verify_trial(folder / "out").ok
        else:
            assert "lab.csv" in reason
            assert sorted(p.name for p in folder.iterdir()) == ["lab.csv", "map.yaml"]


@given(
    st.integers(-(2**63), 2**63 - 1), st.sampled_from([("s", 9), ("ms", 6), ("us", 3), ("ns", 0)])
)
def test_a_start_keeps_its_nanoseconds_in_any_unit(start_ns, unit):
    name, places = unit
    text = f"{Decimal(start_ns).scaleb(-places):f}"
    assert Reading().instant(text, name) == start_ns


@given(floats)
def test_any_finite_float_is_read_as_it_was_written(value):
    assert float(Reading().number(repr(value))) == value


@given(st.text("0123456789.eE+-_naif ", max_size=10))
def test_a_number_is_what_python_reads_without_underscores(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    readable = math.isfinite(value) and "_" not in text and text == text.strip()
    found = number_of(text)
    assert (found is not None) == readable
    if found is not None:
        assert float(found) == value


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_any_column_map_is_read_or_refused(content):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "lab.csv").write_text("who,won,took\na,yes,1\n")
        (folder / "map.yaml").write_bytes(content)
        reason = refusal(
            lambda: import_csv(folder / "lab.csv", folder / "map.yaml", folder / "out")
        )
        assert reason is None or "map.yaml" in reason or "lab.csv" in reason
