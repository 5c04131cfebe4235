"""Results of lerobot-eval and Stable-Baselines3 become a trial; what they do not say stays open."""

import json

import numpy as np
import pytest

from robo_eval.core.errors import InputError
from robo_eval.log.eval_info import import_eval_info
from robo_eval.log.verify import verify_trial

MAP = "constants: {policy: act, side: sim, task: pusht}\n"
MANY = "constants: {policy: act, side: sim}\n"


def single(seeds=(1000, 1001, 1002)):
    cells = zip(seeds, (2.5, float("nan"), 0.0), (True, False, None), strict=True)
    return {
        "per_episode": [
            {"episode_ix": i, "sum_reward": total, "max_reward": 1.0, "success": done, "seed": seed}
            for i, (seed, total, done) in enumerate(cells)
        ],
        "aggregated": {"avg_sum_reward": float("nan"), "pc_success": 50.0, "eval_s": 3.0},
        "video_paths": ["videos/eval_episode_0.mp4"],
    }


def several():
    def metrics(*successes):
        return {
            "sum_rewards": [1.0] * len(successes), "max_rewards": [1.0] * len(successes),
            "successes": list(successes), "video_paths": [],
        }  # fmt: skip

    return {
        "per_task": [
            {"task_group": "spatial", "task_id": 0, "metrics": metrics(True, False)},
            {"task_group": "spatial", "task_id": 1, "metrics": metrics(True)},
        ],
        "per_group": {"spatial": {"pc_success": float("nan"), "n_episodes": 3}},
        "overall": {"pc_success": 66.6},
    }


def npz(path, **more):
    arrays = {
        "timesteps": np.array([100, 200, 300]),
        "results": np.array([[1.0, 2.0], [9.0, 8.0], [3.0, 4.0]]),
        "ep_lengths": np.array([[10, 11], [12, 13], [14, 15]]),
        "successes": np.array([[False, False], [True, True], [True, False]]),
    } | more
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.fixture
def imported(tmp_path):
    """Import results by a map: the table of their rows, and what was said."""

    def run(content, columns=MAP):
        (tmp_path / "map.yaml").write_text(columns)
        path = content
        if not hasattr(content, "suffix"):
            path = tmp_path / "eval_info.json"
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        notes: list[str] = []
        out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
        trial = import_eval_info(path, tmp_path / "map.yaml", out, warn=notes.append)
        assert verify_trial(trial.path).ok
        return trial.frame().set_index("episode_id"), notes

    return run


def test_one_task_becomes_rows_with_seeds(imported):
    rows, notes = imported(single())
    assert rows["end_reason"].tolist() == ["success", "failure", "no_verdict"]
    assert rows["seed"].tolist() == [1000, 1001, 1002]
    assert rows["episode_return"].tolist()[0] == 2.5
    assert rows["episode_return"].isna().tolist() == [False, True, False]
    assert set(rows["task"]) == {"pusht"}
    assert len(notes) == 1
    assert "1 episode without a score" in notes[0]


def test_several_tasks_become_rows_without_pairs(imported):
    rows, notes = imported(several(), MANY)
    assert rows.index.tolist() == [
        "spatial_0_episode_000000", "spatial_0_episode_000001", "spatial_1_episode_000000",
    ]  # fmt: skip
    assert rows["task"].tolist() == ["spatial_0", "spatial_0", "spatial_1"]
    assert set(rows["family"]) == {"spatial"}
    assert rows["success"].tolist() == [True, False, True]
    assert rows["seed"].isna().all()
    assert any("says no seeds" in note and "start_seed" in note for note in notes)
    rows, notes = imported(several(), f"{MANY}start_seed: 7\n")
    assert rows["seed"].tolist() == [7, 8, 7]
    assert notes == []


def test_a_start_seed_has_to_be_that_of_the_file(imported):
    assert imported(single(), f"{MAP}start_seed: 1000\n")[0]["seed"].tolist() == [1000, 1001, 1002]
    assert imported(single((None,) * 3), f"{MAP}start_seed: 0\n")[0]["seed"].tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"per_episode\[0\]: its seed is 1000.*start_seed"):
        imported(single(), f"{MAP}start_seed: 0\n")


def test_other_columns_are_taken_by_the_map(imported):
    told = "columns: {costs.best: max_reward, family: task}\n" + MANY
    rows, _ = imported(several(), told)
    assert rows["costs"].tolist() == [{"best": 1.0}] * 3
    assert rows["family"].tolist() == rows["task"].tolist()
    with pytest.raises(InputError, match=r"per_task\[0\], episode 0: unknown column 'max_rewrd'"):
        imported(several(), told.replace("max_reward", "max_rewrd"))


@pytest.mark.parametrize("form", ["sheet.csv", "{file: sheet.csv, columns: {success: success}}"])
def test_what_is_told_beside_the_results_goes_before_them(imported, tmp_path, form):
    (tmp_path / "sheet.csv").write_text("id,success\n0,0\n2,1\n")
    rows, notes = imported(single(), f"{MAP}outcomes: {form}\n")
    assert rows["end_reason"].tolist() == ["failure", "no_verdict", "success"]
    assert any("says nothing of 1 episode: episode_000001" in note for note in notes)


def test_the_task_of_a_single_layout_has_to_be_said(imported):
    with pytest.raises(InputError, match=r"per_episode\[0\]: task is missing; add it"):
        imported(single(), MANY)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is neither JSON nor evaluations.npz"),
        ("[]", "holds neither per_episode nor per_task"),
        ('{"per_episode": []}', "holds no episodes"),
        ('{"per_episode": [1]}', r"per_episode\[0\]"),
        ('{"per_task": [{"task_group": "a", "task_id": 0, "metrics": {"successes": 0.5}}]}',
         r"per_task\[0\]: needs .*successes"),
        ('{"per_task": [{"metrics": {"successes": [true], "sum_rewards": []}}]}', r"per_task\[0\]"),
        ('{"per_task": [3]}', r"per_task\[0\]"),
    ],
)  # fmt: skip
def test_other_files_are_refused(imported, content, reason):
    with pytest.raises(InputError, match=rf"eval_info\.json: {reason}"):
        imported(content)


def test_of_a_training_one_evaluation_counts(imported, tmp_path):
    path = npz(tmp_path / "evaluations.npz")
    rows, notes = imported(path)
    assert rows["success"].tolist() == [True, False]
    assert rows["ticks"].tolist() == [14, 15]
    assert rows["episode_return"].tolist() == [3.0, 4.0]
    assert any("last of 3 evaluations taken, at step 300" in note for note in notes)
    rows, notes = imported(path, f"{MAP}checkpoint: best\n")
    assert rows["ticks"].tolist() == [12, 13]
    assert any("best of 3" in note and "better than it is" in note for note in notes)
    assert imported(path, f"{MAP}checkpoint: 100\n")[0]["ticks"].tolist() == [10, 11]
    with pytest.raises(InputError, match=r"unknown checkpoint of the map '150'.*100, 200, 300"):
        imported(path, f"{MAP}checkpoint: 150\n")


def test_all_evaluations_are_policies_of_their_own(imported, tmp_path):
    path = npz(tmp_path / "evaluations.npz")
    with pytest.raises(InputError, match=r"map\.yaml: checkpoint: all.*policy: timesteps"):
        imported(path, f"{MAP}checkpoint: all\n")
    told = "columns: {policy: timesteps}\nconstants: {side: sim, task: t}\ncheckpoint: all\n"
    rows, _ = imported(path, told)
    assert rows["policy"].tolist() == ["100", "100", "200", "200", "300", "300"]


def test_a_training_without_successes_has_no_verdict(imported, tmp_path):
    rows, notes = imported(npz(tmp_path / "evaluations.npz", successes=None))
    assert set(rows["end_reason"]) == {"no_verdict"}
    assert any("2 episodes without a score" in note for note in notes)


@pytest.mark.parametrize(
    "more",
    [
        {"timesteps": None},
        {"results": np.array([[1.0], [2.0]])},
        {"results": np.array([None, 1], dtype=object)},
        {"timesteps": np.array(3)},
        {
            "timesteps": np.zeros(0),
            "results": np.zeros((0, 2)),
            "ep_lengths": None,
            "successes": None,
        },
    ],
)
def test_arrays_that_do_not_fit_are_refused(imported, tmp_path, more):
    with pytest.raises(InputError, match=r"evaluations\.npz: is no evaluations\.npz"):
        imported(npz(tmp_path / "evaluations.npz", **more))


def test_a_file_that_needs_another_reader_is_refused(imported, tmp_path):
    path = npz(tmp_path / "evaluations.npz")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 6] = 109  # the version of ZIP that is needed
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"evaluations\.npz: is no evaluations\.npz"):
        imported(path)


def test_a_seed_that_is_no_number_is_none(imported):
    frame, _ = imported(single((float("nan"), 1001, None)), MAP + "start_seed: 1000\n")
    assert list(frame["seed"]) == [1000, 1001, 1002]


def test_an_empty_list_beside_a_filled_one_says_nothing(imported):
    assert len(imported({"per_episode": [], **several()})[0]) == 3
