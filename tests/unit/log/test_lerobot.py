"""A LeRobot dataset becomes a trial: episodes by its metadata, outcomes by a map, none invented."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError
from robo_eval.log.lerobot_importer import import_lerobot
from robo_eval.log.verify import verify_trial

FPS = 10
LENGTHS = (4, 6, 5, 3)
CAMERA = "observation.images.top"


def frames_of(
    lengths: Sequence[int], columns: Mapping[str, Sequence[Sequence[Any]]]
) -> dict[str, list[Any]]:
    """The frames of episodes: what each has, and columns given by episode."""
    frames: dict[str, list[Any]] = {
        "observation.state": [], "timestamp": [], "frame_index": [], "episode_index": [],
        "index": [], "task_index": [],
    }  # fmt: skip
    for number, length in enumerate(lengths):
        for place in range(length):
            frames["observation.state"].append([0.0, float(place)])
            frames["timestamp"].append(place / FPS)
            frames["frame_index"].append(place)
            frames["episode_index"].append(number)
            frames["index"].append(len(frames["index"]))
            frames["task_index"].append(0)
    for name, values in columns.items():
        frames[name] = [cell for of_episode in values for cell in of_episode]
    return frames


def last_frame(outcomes: Sequence[Any], lengths: Sequence[int] = LENGTHS, *, off: Any = False):
    """A column by episode that says something in its last frame only."""
    return [[off] * (n - 1) + [one] for one, n in zip(outcomes, lengths, strict=True)]


def write_info(folder: Path, version: str, lengths: Sequence[int], names: Any, **more: Any) -> None:
    (folder / "meta").mkdir(parents=True, exist_ok=True)
    features = {name: {"dtype": "float32", "shape": [1]} for name in names}
    features[CAMERA] = {"dtype": "video", "shape": [3, 2, 2]}
    data = {
        "codebase_version": version, "fps": FPS, "robot_type": "so101", "features": features,
        "total_episodes": len(lengths), "total_frames": sum(lengths), "chunks_size": 1000, **more,
    }  # fmt: skip
    (folder / "meta/info.json").write_text(json.dumps(data))


def write_v3(
    folder: Path,
    columns: Mapping[str, Sequence[Sequence[Any]]] | None = None,
    *,
    lengths: Sequence[int] = LENGTHS,
    files: int = 1,
    tasks: Sequence[str] = ("push",),
    said: Mapping[str, Sequence[Any]] | None = None,
    video: bool = False,
    **info: Any,
) -> Path:
    """A set of version 3.0, its frames in some files, which need not end with an episode."""
    frames = frames_of(lengths, columns or {})
    path = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
    write_info(folder, "v3.0", lengths, frames, **{"video_path": path if video else None, **info})
    (folder / "data/chunk-000").mkdir(parents=True)
    table = pa.table(frames)
    size = -(-table.num_rows // files)
    for number in range(files):
        part = table.slice(number * size, size)
        pq.write_table(part, folder / f"data/chunk-000/file-{number:03d}.parquet", row_group_size=4)
    ends = [sum(lengths[: number + 1]) for number in range(len(lengths))]
    episodes: dict[str, list[Any]] = {
        "episode_index": list(range(len(lengths))),
        "tasks": [[tasks[number % len(tasks)]] for number in range(len(lengths))],
        "length": list(lengths),
        "data/chunk_index": [7] * len(lengths),  # stale, as conversions leave it
        "data/file_index": [7] * len(lengths),
        "dataset_from_index": [end - n for end, n in zip(ends, lengths, strict=True)],
        "dataset_to_index": ends,
        "stats/action/max": [[1.0]] * len(lengths),
        **{name: list(cells) for name, cells in (said or {}).items()},
    }
    if video:
        place = folder / f"videos/{CAMERA}/chunk-000"
        place.mkdir(parents=True)
        (place / "file-000.mp4").write_bytes(b"film")
        for name, cells in {
            "chunk_index": [0] * len(ends),
            "file_index": [0] * len(ends),
            "from_timestamp": [(end - n) / FPS for end, n in zip(ends, lengths, strict=True)],
            "to_timestamp": [end / FPS for end in ends],
        }.items():
            episodes[f"videos/{CAMERA}/{name}"] = cells
    (folder / "meta/episodes/chunk-000").mkdir(parents=True)
    pq.write_table(pa.table(episodes), folder / "meta/episodes/chunk-000/file-000.parquet")
    rows = pa.table({"task_index": list(range(len(tasks))), "__index_level_0__": list(tasks)})
    pq.write_table(rows, folder / "meta/tasks.parquet")
    return folder


def write_v2(
    folder: Path,
    columns: Mapping[str, Sequence[Sequence[Any]]] | None = None,
    *,
    version: str = "v2.1",
    lengths: Sequence[int] = LENGTHS,
    said: Mapping[str, Sequence[Any]] | None = None,
    shards: int = 0,
    **info: Any,
) -> Path:
    """A set of version 2, one file for each episode, or frames in `shards` files."""
    frames = frames_of(lengths, columns or {})
    write_info(folder, version, lengths, frames, **info)
    table, first = pa.table(frames), 0
    (folder / "data/chunk-000").mkdir(parents=True)
    lines = []
    for number, n in enumerate(lengths):
        if not shards:
            name = f"data/chunk-000/episode_{number:06d}.parquet"
            pq.write_table(table.slice(first, n), folder / name)
        more = {name: cells[number] for name, cells in (said or {}).items()}
        lines.append({"episode_index": number, "tasks": ["push"], "length": n, **more})
        first += n
    for number in range(shards):
        size = -(-table.num_rows // shards)
        name = f"data/train-{number:05d}-of-{shards:05d}.parquet"
        pq.write_table(table.slice(number * size, size), folder / name)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "meta/episodes.jsonl").write_text(text)
    return folder


SUCCESS = {"next.success": last_frame([True, False, True, False])}
MAP = "columns: {success: next.success}\nconstants: {policy: act, side: sim}\n"
DEMONSTRATION = "constants: {policy: teleoperated, side: real, robot: arm_1}\n"


@pytest.fixture
def imported(tmp_path):
    """Import a dataset by a map: the table of its rows, and what was said."""

    def run(folder: Path, columns: str = MAP, **more: str):
        (tmp_path / "map.yaml").write_text(columns)
        notes: list[str] = []
        out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
        trial = import_lerobot(folder, tmp_path / "map.yaml", out, warn=notes.append, **more)
        report = verify_trial(trial.path)
        assert report.ok, report.problems
        return trial.frame().set_index("episode_id"), notes, trial

    return run


def sets(folder: Path, columns):
    yield write_v3(folder / "v3", columns)
    yield write_v3(folder / "cut", columns, files=3)
    yield write_v2(folder / "v21", columns)
    yield write_v2(folder / "v20", columns, version="v2.0", shards=2)


def test_sets_of_all_versions_become_the_same_rows(imported, tmp_path):
    for folder in sets(tmp_path / "sets", SUCCESS):
        rows, notes, _ = imported(folder)
        assert notes == []
        assert list(rows.index) == [f"episode_{number:06d}" for number in range(4)]
        assert rows["success"].tolist() == [True, False, True, False]
        assert rows["ticks"].tolist() == list(LENGTHS)
        assert rows["duration_s"].tolist() == [0.4, 0.6, 0.5, 0.3]
        assert set(rows["task"]) == {"push"}
        assert set(rows["exposure_s"]) == {0.0}


def test_the_task_of_the_map_goes_before_that_of_the_dataset(imported, tmp_path):
    folder = write_v3(tmp_path / "set", SUCCESS, tasks=("push", "pull"))
    assert imported(folder)[0]["task"].tolist() == ["push", "pull", "push", "pull"]
    assert set(imported(folder, MAP.replace("side", "task: all, side"))[0]["task"]) == {"all"}


def test_a_trace_names_data_and_videos_with_their_digests(imported, tmp_path):
    folder = write_v3(tmp_path / "set", SUCCESS, video=True)
    _, notes, trial = imported(folder)
    link = json.loads((trial.traces_dir / "episode_000001/recording.json").read_text())
    data, video = "data/chunk-000/file-000.parquet", f"videos/{CAMERA}/chunk-000/file-000.mp4"
    assert link["data"] == [{"file": data, "sha256": file_digest(folder / data)}]
    assert (link["first_frame"], link["frames"]) == (4, 6)
    [shown] = link["videos"]
    assert shown == {
        "camera": CAMERA, "file": video, "sha256": file_digest(folder / video),
        "from_s": 0.4, "to_s": 1.0,
    }  # fmt: skip
    (folder / video).unlink()
    _, notes, trial = imported(folder)
    link = json.loads((trial.traces_dir / "episode_000001/recording.json").read_text())
    assert link["videos"][0]["sha256"] is None
    assert any("1 video missing" in note and video in note for note in notes)


def test_a_demonstration_has_no_outcome(imported, tmp_path):
    rows, notes, _ = imported(write_v3(tmp_path / "set"), DEMONSTRATION)
    assert set(rows["end_reason"]) == {"no_verdict"}
    assert rows["success"].isna().all()
    assert rows["exposure_s"].tolist() == rows["duration_s"].tolist()
    assert any("4 episodes without a score" in note for note in notes)


# What cannot be read ------------------------------------------------------------------------------


def test_a_file_that_was_never_finalised_loses_its_episodes_only(imported, tmp_path):
    folder = write_v3(tmp_path / "set", SUCCESS, files=3)
    path = folder / "data/chunk-000/file-001.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    rows, notes, _ = imported(folder)
    assert rows["end_reason"].tolist() == ["success", "lost", "lost", "failure"]
    assert rows["ticks"].isna().tolist() == [False, True, True, False]
    assert any("file-001.parquet" in note and "finalised" in note for note in notes)
    assert any("2 of 4 episodes cannot be read" in note for note in notes)
    assert "2 of its 6 frames" in rows["end_detail"].iloc[1]


def test_a_file_that_is_missing_loses_its_episodes_only(imported, tmp_path):
    folder = write_v2(tmp_path / "set", SUCCESS)
    (folder / "data/chunk-000/episode_000002.parquet").unlink()
    rows, _, _ = imported(folder)
    assert rows["end_reason"].tolist() == ["success", "failure", "lost", "failure"]


def test_metadata_that_cannot_be_read_are_counted(imported, tmp_path):
    folder = write_v3(tmp_path / "set", SUCCESS, total_episodes=6)
    (folder / "meta/episodes/chunk-000/file-001.parquet").write_bytes(b"PAR1")
    rows, notes, _ = imported(folder)
    assert len(rows) == 4
    assert any("file-001.parquet" in note for note in notes)
    assert any("2 of 6 episodes left out" in note for note in notes)


def test_offsets_are_checked_against_the_rows(imported, tmp_path):
    folder = write_v3(tmp_path / "set", SUCCESS)
    path = folder / "meta/episodes/chunk-000/file-000.parquet"
    table = pq.read_table(path)
    moved = {"dataset_from_index": [0, 5, 10, 15], "dataset_to_index": [4, 11, 15, 18]}
    for name, values in moved.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(values))
    pq.write_table(table, path)
    rows, _, _ = imported(folder)
    assert rows["end_reason"].tolist() == ["success", "lost", "success", "failure"]


def test_frames_without_numbers_are_counted(imported, tmp_path):
    folder = write_v3(tmp_path / "set", SUCCESS, files=2)
    for path in (folder / "data").rglob("*.parquet"):
        pq.write_table(pq.read_table(path).drop(["index"]), path)
    rows, notes, _ = imported(folder)
    assert (rows["success"].tolist(), notes) == ([True, False, True, False], [])


def test_interventions_of_the_metadata_are_a_count(imported, tmp_path):
    folder = write_v3(tmp_path / "set", SUCCESS, said={"corrections": [0, 3, 0, 1]})
    rows, _, _ = imported(folder, MAP.replace("{success", "{interventions: corrections, success"))
    assert rows["interventions"].tolist() == [0, 3, 0, 1]


def test_a_set_of_which_nothing_can_be_read_is_refused(imported, tmp_path):
    folder = write_v3(tmp_path / "set", SUCCESS)
    path = folder / "data/chunk-000/file-000.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"file-000\.parquet: cannot be read.*never finalised"):
        imported(folder)
    shutil.rmtree(folder / "meta/episodes")
    with pytest.raises(InputError, match="meta"):
        imported(folder)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"storage_format": "lance"}, "storage_format is 'lance', and only Parquet is read"),
        ({"codebase_version": "v1.6"}, "codebase_version is 'v1.6'.*convert"),
        ({"fps": 0}, "fps is 0"),
        ({"features": [1]}, "features"),
    ],
)
def test_other_layouts_are_refused_in_a_sentence(imported, tmp_path, more, reason):
    with pytest.raises(InputError, match=rf"info\.json: {reason}"):
        imported(write_v3(tmp_path / "set", SUCCESS, **more))


def test_videos_lead_nowhere_out_of_the_dataset(imported, tmp_path):
    folder = write_v2(tmp_path / "set", SUCCESS, video_path="../../{video_key}/{episode_index}.mp4")
    with pytest.raises(InputError, match=r"info\.json: video_path"):
        imported(folder)


# Which episodes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "numbers"), [("0-1", [0, 1]), ("3, 0", [0, 3]), ("2", [2])])
def test_episodes_are_chosen_by_number(imported, tmp_path, text, numbers):
    for folder in sets(tmp_path / "sets", SUCCESS):
        rows, _, _ = imported(folder, episodes=text)
        assert list(rows.index) == [f"episode_{number:06d}" for number in numbers]


@pytest.mark.parametrize("text", ["4", "0-4", "2-1", "a", "-1", "1-", "9" * 99])
def test_episodes_that_are_not_there_are_refused(imported, tmp_path, text):
    with pytest.raises(InputError, match=r"--episodes.*0 to 3"):
        imported(write_v3(tmp_path / "set", SUCCESS), episodes=text)


# Outcomes -----------------------------------------------------------------------------------------


def test_an_outcome_that_is_false_everywhere_asks_whether_it_was_labelled(imported, tmp_path):
    folder = write_v3(
        tmp_path / "set",
        {"next.success": last_frame([False] * 4), "next.reward": last_frame([0.0] * 4, off=0.0)},
        said={"success": [False] * 4},
    )
    for column in ("next.success", "next.reward", "success"):
        with pytest.raises(InputError, match=rf"columns\.success: {column} is false.*labelled"):
            imported(folder, MAP.replace("next.success", column))
        told = MAP.replace("next.success", f"{{column: {column}, labelled: LABELLED}}")
        rows, _, _ = imported(folder, told.replace("LABELLED", "true"))
        assert set(rows["end_reason"]) == {"failure"}
        rows, _, _ = imported(folder, told.replace("LABELLED", "false"))
        assert set(rows["end_reason"]) == {"no_verdict"}


def test_a_column_with_a_success_was_labelled(imported, tmp_path):
    told = MAP.replace("next.success", "{column: next.success, labelled: false}")
    with pytest.raises(InputError, match=r"next\.success is not false everywhere"):
        imported(write_v3(tmp_path / "set", SUCCESS), told)


def test_the_end_is_no_success(imported, tmp_path):
    folder = write_v3(tmp_path / "set", {"next.done": last_frame([True] * 4)})
    with pytest.raises(
        InputError, match=r"columns\.success: next\.done says that an episode ended"
    ):
        imported(folder, MAP.replace("next.success", "next.done"))


def test_a_success_that_does_not_last_asks_which_frame_counts(imported, tmp_path):
    early = [
        [True, False, False, False],
        [False] * 6,
        [False, False, True, True, True],
        [False] * 3,
    ]
    folder = write_v3(tmp_path / "set", {"next.success": early})
    with pytest.raises(InputError, match=r"episode 0, column 'next.success'.*take"):
        imported(folder)
    for take, first in (("any", True), ("last", False), ("first", True), ("all", False)):
        told = MAP.replace("next.success", f"{{column: next.success, take: {take}}}")
        if take == "all":
            told = told.replace("take", "labelled: true, take")
        rows, _, _ = imported(folder, told)
        assert rows["success"].tolist()[:2] == [first, False]


def test_rewards_are_outcomes_by_the_map(imported, tmp_path):
    rewards = [[0.0, 0.0, 0.0, 1.0], [0.0] * 6, [0.25] * 5, [0.0, 0.5, 0.5]]
    folder = write_v3(tmp_path / "set", {"next.reward": rewards})
    told = "{column: next.reward, take: TAKE}"
    columns = f"columns: {{quality: {told}, episode_return: next.reward}}\nsuccess_quality: 0.5\n"
    told = columns + "constants: {policy: act, side: sim}\n"
    rows, _, _ = imported(folder, told.replace("TAKE", "max"))
    assert rows["quality"].tolist() == [1.0, 0.0, 0.25, 0.5]
    assert rows["success"].tolist() == [True, False, False, True]
    assert rows["episode_return"].tolist() == [1.0, 0.0, 1.25, 1.0]
    with pytest.raises(InputError, match=r"column 'next\.reward'.*take"):
        imported(folder, told.replace(", take: TAKE", ""))
    simple = write_v3(
        tmp_path / "simple", {"next.reward": last_frame([1.0, 0.0, 1.0, 0.0], off=0.0)}
    )
    rows, _, _ = imported(simple, MAP.replace("next.success", "next.reward"))
    assert rows["success"].tolist() == [True, False, True, False]


def test_outcomes_of_whole_episodes_are_read(imported, tmp_path):
    constant = [[one] * n for one, n in zip([True, False, True, True], LENGTHS, strict=True)]
    folder = write_v3(tmp_path / "set", {"is_episode_successful": constant})
    rows, _, _ = imported(folder, MAP.replace("next.success", "is_episode_successful"))
    assert rows["success"].tolist() == [True, False, True, True]
    words = ["successful", "failed", "suboptimal", None]
    told = (
        "columns: {end_reason: {column: quality_label, values: {successful: success, failed:"
        " failure, suboptimal: failure}}}\nconstants: {policy: act, side: sim}\n"
    )
    for number, write in enumerate((write_v2, write_v3)):
        folder = write(tmp_path / f"words-{number}", said={"quality_label": words})
        rows, _, _ = imported(folder, told)
        assert rows["end_reason"].tolist() == ["success", "failure", "failure", "no_verdict"]


def test_lists_of_one_are_numbers(imported, tmp_path):
    columns = {"next.success": [[[one] for one in of] for of in SUCCESS["next.success"]]}
    rows, _, _ = imported(write_v2(tmp_path / "set", columns))
    assert rows["success"].tolist() == [True, False, True, False]


def test_interventions_are_counted_as_often_as_they_begin(imported, tmp_path):
    hands = [[True, False, True, True], [False] * 6, [True] * 5, [False, True, False]]
    folder = write_v3(tmp_path / "set", {"intervention": hands, **SUCCESS})
    told = MAP.replace("{success", "{interventions: intervention, success")
    with pytest.raises(InputError, match=r"episode 0.*assisted_success"):
        imported(folder, told)
    rows, _, _ = imported(folder, f"{told}assisted_success: failure\n")
    assert rows["interventions"].tolist() == [2, 0, 1, 1]
    assert not rows["success"].any()


def test_a_column_that_is_nowhere_is_named(imported, tmp_path):
    with pytest.raises(
        InputError, match=r"unknown column 'next\.sucess'; did you mean 'next\.success'"
    ):
        imported(write_v3(tmp_path / "set", SUCCESS), MAP.replace("next.success", "next.sucess"))


# The library itself -------------------------------------------------------------------------------

WRITER = """
import sys
import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

one = {"dtype": "float32", "shape": (1,), "names": None}
features = {"action": {**one, "shape": (2,)}, "next.success": {**one, "dtype": "bool"}}
made = LeRobotDataset.create(
    "lab/push", fps=10, features=features, root=sys.argv[1], robot_type="arm", use_videos=False
)
for number in range(3):
    for place in range(4 + number):
        done = number != 1 and place == 3 + number
        made.add_frame(
            {"action": np.zeros(2, np.float32), "next.success": np.array([done]), "task": "push"}
        )
    made.save_episode()
made.finalize()
"""


def test_a_set_of_the_library_itself_is_read(imported, tmp_path):
    python = os.environ.get("ROBO_EVAL_LEROBOT", sys.executable)
    found = subprocess.run([python, "-c", "import lerobot"], check=False, capture_output=True)
    if found.returncode:
        pytest.skip("lerobot is not installed; name a Python that has it in ROBO_EVAL_LEROBOT")
    done = subprocess.run(
        [python, "-c", WRITER, tmp_path / "set"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows, notes, _ = imported(tmp_path / "set")
    assert notes == []
    assert rows["success"].tolist() == [True, False, True]
    assert rows["ticks"].tolist() == [4, 5, 6]


def test_texts_that_are_false_everywhere_are_asked_about_too(imported, tmp_path):
    folder = write_v3(tmp_path / "set", said={"verdict": ["False", "false", "0", ""]})
    with pytest.raises(InputError, match="was it ever labelled"):
        imported(folder, MAP.replace("next.success", "verdict"))
    folder = write_v3(tmp_path / "words", said={"verdict": ["nope"] * 4})
    words = "{column: verdict, values: {nope: false, yep: true}}"
    with pytest.raises(InputError, match="was it ever labelled"):
        imported(folder, MAP.replace("next.success", words))


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("write", [write_v2, write_v3])
def test_tasks_of_frames_are_those_of_the_list(imported, tmp_path, write, form):
    numbers = {"task_index": [[number % 2] * n for number, n in enumerate(LENGTHS)]}
    folder = write(tmp_path / "set", {**SUCCESS, **numbers}, said={"tasks": [None] * 4})
    if form == "jsonl":
        lines = [{"task_index": 0, "task": "push"}, {"task_index": 1, "task": "lift"}]
        (folder / "meta/tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    else:
        table = pa.table({"task_index": [0, 1], "__index_level_0__": ["push", "lift"]})
        pq.write_table(table, folder / "meta/tasks.parquet")
    assert list(imported(folder)[0]["task"]) == ["push", "lift"] * 2


def test_a_line_that_is_cut_loses_its_episode_only(imported, tmp_path):
    folder = write_v2(tmp_path / "set", SUCCESS)
    path = folder / "meta/episodes.jsonl"
    path.write_bytes(path.read_bytes()[:-9] + b"\xc3")
    frame, notes, _ = imported(folder)
    assert len(frame) == 3
    assert "line 4: is not JSON, or cut short" in notes[0]
    assert "1 of 4 episodes left out" in notes[1]


def test_lines_about_episodes_that_were_not_asked_for_are_told_apart(imported, tmp_path):
    folder = write_v3(tmp_path / "set")
    sheet = "id,success\nepisode_000000.parquet,1\n2,0\n3,1\n9,1\n"
    (tmp_path / "s.csv").write_text(sheet)
    rows, notes, _ = imported(folder, DEMONSTRATION + "outcomes: s.csv\n", episodes="0-1")
    assert rows["end_reason"].tolist() == ["success", "no_verdict"]
    assert any(note.endswith("s.csv: 1 line of 4 without an episode: 9") for note in notes)
    assert any("2 lines of 4 about episodes not among --episodes: 2, 3" in note for note in notes)
    (tmp_path / "s.csv").write_text("id,success\n2,0\n3,1\n")
    with pytest.raises(InputError, match=r"s\.csv: .*--episodes"):
        imported(folder, DEMONSTRATION + "outcomes: s.csv\n", episodes="0-1")


@pytest.mark.parametrize("cut", [4, -40, -9, 40])
def test_a_damaged_file_is_told_in_whole_sentences(imported, tmp_path, cut):
    folder = write_v3(tmp_path / "set", SUCCESS, files=3)
    path = folder / "data/chunk-000/file-001.parquet"
    path.write_bytes(path.read_bytes()[:cut])
    [note] = [one for one in imported(folder)[1] if "file-001" in one]
    assert note.startswith(f"{path}: cannot be read: ")
    assert note.endswith("copy it again, or leave its episodes out")
    assert note.count("(") == note.count(")")


@pytest.mark.parametrize("part", ["meta", "data", "data/chunk-000", "meta/info.json"])
def test_a_part_of_a_dataset_leads_to_the_folder_above(imported, tmp_path, part):
    folder = write_v3(tmp_path / "set", SUCCESS)
    with pytest.raises(InputError, match=rf"{part}: is a part of the dataset {folder}; give that"):
        imported(folder / part)


def test_a_folder_that_is_no_dataset_says_what_to_name(imported, tmp_path):
    (tmp_path / "none").mkdir()
    for name in ("none", "missing", "map.yaml"):
        with pytest.raises(InputError, match=rf"{name}: is no LeRobot dataset.*meta/info\.json"):
            imported(tmp_path / name)
