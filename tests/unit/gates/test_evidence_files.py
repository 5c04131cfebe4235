"""tools.csv and checkpoints.csv: what is in them, and one line for each thing that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_eval.core.errors import InputError
from robo_eval.log.evidence import Checkpoint, ToolUse
from robo_eval.log.evidence_read import read_evidence

TOOLS = "category,episodes,successes,drift\ngripper,20,18,mild\ncamera,10,10,mild\n"
CHECKPOINTS = """time,family,capability,resources,drift,human_patches
2026-03-01T12:00:00+00:00,pick,0.50,1,,0
2026-03-02T12:00:00+00:00,pick,0.52,2,payload,0
2026-03-03T12:00:00+00:00,pick,0.55,4,,1
"""
GOOD = {"tools": TOOLS, "checkpoints": CHECKPOINTS}


def refused(folder: Path, name: str, text: str | bytes) -> str:
    """What is said of a file that cannot be used."""
    path = folder / f"{name}.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        read_evidence(folder)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert len(said.splitlines()) == 1
    return said.removeprefix(f"{path}: ")


def test_good_files_are_read(tmp_path):
    for name, text in GOOD.items():
        (tmp_path / f"{name}.csv").write_text(text)
    found = read_evidence(tmp_path)
    assert found.tools is not None
    assert found.tools[0] == ToolUse(
        line=2, category="gripper", episodes=20, successes=18, drift="mild"
    )
    assert found.checkpoints is not None
    assert found.checkpoints[2] == Checkpoint(
        line=4, time_ns=1_772_539_200 * 10**9, family="pick", capability=0.55, resources=4.0,
        human_patches=1,
    )  # fmt: skip
    assert set(found.sources) == {"tools.csv", "checkpoints.csv"}


def test_times_of_other_zones_are_the_same_moment(tmp_path):
    (tmp_path / "checkpoints.csv").write_text(
        "time,family,capability,resources\n"
        "2026-03-01T21:00:00+09:00,pick,0.5,1\n2026-03-01T12:00:00Z,place,0.5,1\n"
    )
    first, second = read_evidence(tmp_path).checkpoints or ()
    assert first.time_ns == second.time_ns


@pytest.mark.parametrize(
    ("name", "column", "value", "said"),
    [
        ("tools", "category", "", "is empty; it needs a text"),
        ("tools", "episodes", "", "must be a whole number of at least 0"),
        ("tools", "episodes", "-1", "must be a whole number of at least 0"),
        ("tools", "episodes", "20.5", "must be a whole number of at least 0"),
        ("tools", "episodes", "²", "must be a whole number of at least 0"),
        ("tools", "episodes", "nan", "must be a whole number of at least 0"),
        ("tools", "successes", "many", "must be a whole number of at least 0"),
        ("tools", "successes", "21", "is more than the 20 episodes"),
        ("checkpoints", "time", "", "is empty; a checkpoint has a time"),
        ("checkpoints", "time", "2026-03-01", "is no time with its zone"),
        ("checkpoints", "time", "2026-03-01T12:00:00", "is no time with its zone"),
        ("checkpoints", "time", "yesterday", "is no time with its zone"),
        ("checkpoints", "time", "0001-01-01T00:00:00+14:00", "is no time with its zone"),
        ("checkpoints", "family", "", "is empty; it needs a text"),
        ("checkpoints", "capability", "", "is empty; it needs a number"),
        ("checkpoints", "capability", "1.2", "must be at most 1"),
        ("checkpoints", "capability", "-0.1", "must be a number of at least 0"),
        ("checkpoints", "capability", "nan", "must be a number of at least 0"),
        ("checkpoints", "capability", "inf", "must be a number of at least 0"),
        ("checkpoints", "capability", "half", "is not a number"),
        ("checkpoints", "resources", "", "is empty; it needs a number"),
        ("checkpoints", "resources", "-1", "must be a number of at least 0"),
        ("checkpoints", "resources", "1e999", "must be a number of at least 0"),
        ("checkpoints", "human_patches", "one", "must be a whole number of at least 0"),
        ("checkpoints", "human_patches", "0.5", "must be a whole number of at least 0"),
    ],
)
def test_a_bad_cell_is_named_with_file_line_and_column(tmp_path, name, column, value, said):
    header, first, *rest = GOOD[name].splitlines()
    cells = first.split(",")
    cells[header.split(",").index(column)] = value
    found = refused(tmp_path, name, "\n".join([header, ",".join(cells), *rest]) + "\n")
    assert found.startswith(f"line 2, column '{column}': ")
    assert said in found


@pytest.mark.parametrize("name", GOOD)
def test_a_side_that_is_none_is_named(tmp_path, name):
    header, *rows = GOOD[name].splitlines()
    text = "\n".join([f"{header},side", *(f"{row},sim" for row in rows)])
    found = refused(tmp_path, name, text)
    assert found.startswith("line 2, column 'side': unknown side 'sim'")


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("tools", "category", "catgory", "unknown column 'catgory'; did you mean 'category'"),
        ("tools", ",drift", ",category", "column 'category' appears twice"),
        ("tools", "category,", "", "column 'category' is missing; tools need"),
        ("tools", ",18", ",18,4", "line 2 has 5 cells; the header names 4"),
        ("tools", "gripper", '"gripper', "no CSV"),
        ("checkpoints", "capability", "capabilty", "did you mean 'capability'"),
        ("checkpoints", ",pick,0.52,2,", ",pick,0.52,0.5,",
         "line 3, column 'resources': 0.5 is less than the 1 of line 2; it is a running total"),
        ("checkpoints", "2026-03-02T12", "2026-03-01T12",
         "line 3, column 'time': family 'pick' has a checkpoint at that time already, in line 2"),
    ],
)  # fmt: skip
def test_a_bad_table_is_named(tmp_path, name, old, new, said):
    assert said in refused(tmp_path, name, GOOD[name].replace(old, new, 1))


@pytest.mark.parametrize("name", GOOD)
def test_what_is_no_text_is_refused(tmp_path, name):
    assert "is not UTF-8 text" in refused(tmp_path, name, GOOD[name].encode() + b"\xff\xfe")
    assert "is missing" in refused(tmp_path, name, "")


def test_a_day_is_that_of_the_clock_of_the_place(tmp_path: Path) -> None:
    """At nine hours from UTC a morning and the next straddle three days of UTC."""
    (tmp_path / "checkpoints.csv").write_text(
        "time,family,capability,resources\n"
        "2026-03-01T08:30:00+09:00,pick,0.5,0\n"
        "2026-03-02T09:30:00+09:00,pick,0.5,1\n"
        "2026-03-02T23:30:00-05:00,pick,0.5,2\n"
    )
    points = read_evidence(tmp_path).checkpoints or ()
    first, second, third = (point.day for point in points)
    assert (second - first, third - second) == (1, 0)
    assert points[1].time_ns // 10**9 // 86_400 - points[0].time_ns // 10**9 // 86_400 == 2
