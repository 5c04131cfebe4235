"""Writes a small LeRobot dataset of version 3.0, as a policy that pushes a block might record it.

python make_dataset.py FOLDER
"""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FPS = 10
LENGTHS = [40, 55, 60, 35, 60, 45, 50, 60]
SUCCEEDED = [True, True, False, True, False, True, True, False]


def main(folder: Path) -> None:
    """One file with the frames of all episodes, and the metadata that tell them apart."""
    ends = np.cumsum(LENGTHS)
    index = np.arange(ends[-1])
    episode = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    frame = index - (ends - LENGTHS)[episode]
    frames = {
        "action": pa.array(np.zeros((len(index), 2), np.float32).tolist()),
        "next.reward": np.where(np.isin(index, ends - 1), np.array(SUCCEEDED)[episode], 0.0),
        "next.success": np.isin(index, ends - 1) & np.array(SUCCEEDED)[episode],
        "timestamp": frame / FPS,
        "frame_index": frame,
        "episode_index": episode,
        "index": index,
        "task_index": np.zeros(len(index), np.int64),
    }
    episodes = {
        "episode_index": range(len(LENGTHS)),
        "tasks": [["push the block"]] * len(LENGTHS),
        "length": LENGTHS,
        "dataset_from_index": ends - LENGTHS,
        "dataset_to_index": ends,
    }
    info = {
        "codebase_version": "v3.0", "robot_type": "so101_follower", "fps": FPS,
        "total_episodes": len(LENGTHS), "total_frames": len(index), "video_path": None,
        "features": {name: {"dtype": "float32", "shape": [1]} for name in frames},
    }  # fmt: skip
    for name, columns in (("data", frames), ("meta/episodes", episodes)):
        (folder / name / "chunk-000").mkdir(parents=True)
        pq.write_table(pa.table(columns), folder / name / "chunk-000/file-000.parquet")
    (folder / "meta/info.json").write_text(json.dumps(info))
    print(f"{len(LENGTHS)} episodes written to {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
