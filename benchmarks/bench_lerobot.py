"""What importing a LeRobot dataset costs, beside reading its columns with pyarrow alone.

Goals for 1,000 episodes and 500,000 frames: at most 10 s of processor time, and 500 MB.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from robo_eval.log.provenance import machine

EPISODES = 1000
FRAMES = 500
PER_FILE = 250
WIDTH = 14
COLUMNS = ["index", "episode_index", "next.success", "next.reward", "intervention"]
MAP = """
columns: {success: next.success, episode_return: next.reward, interventions: intervention}
constants: {policy: act, side: sim}
assisted_success: failure
"""


def frames_of(first: int, episodes: int) -> pa.Table:
    """The frames of some episodes, with states that do not compress."""
    rng = np.random.default_rng(first)
    n = episodes * FRAMES
    index = np.arange(first * FRAMES, first * FRAMES + n)
    is_last = index % FRAMES == FRAMES - 1
    success = is_last & (index // FRAMES % 3 > 0)
    state = rng.normal(size=n * WIDTH).astype(np.float32)
    return pa.table(
        {
            "observation.state": pa.FixedSizeListArray.from_arrays(state, WIDTH),
            "action": pa.FixedSizeListArray.from_arrays(state, WIDTH),
            "next.success": success,
            "next.reward": success.astype(np.float32),
            "intervention": (index % FRAMES > 100) & (index % FRAMES < 120) & (index % 7000 < 500),
            "timestamp": (index % FRAMES / 30).astype(np.float32),
            "frame_index": index % FRAMES,
            "episode_index": index // FRAMES,
            "index": index,
            "task_index": np.zeros(n, np.int64),
        }
    )


def write_set(folder: Path, *, version: str) -> None:
    """A dataset: many episodes to a file in version 3.0, one file each in version 2.1."""
    (folder / "data/chunk-000").mkdir(parents=True)
    (folder / "meta/episodes/chunk-000").mkdir(parents=True)
    size = PER_FILE if version == "v3.0" else 1
    name = "file-{:03d}.parquet" if version == "v3.0" else "episode_{:06d}.parquet"
    for place, first in enumerate(range(0, EPISODES, size)):
        path = folder / "data/chunk-000" / name.format(place)
        pq.write_table(frames_of(first, size), path, row_group_size=FRAMES)
    numbers = np.arange(EPISODES)
    episodes = {
        "episode_index": numbers, "tasks": [["push"]] * EPISODES, "length": [FRAMES] * EPISODES,
        "dataset_from_index": numbers * FRAMES, "dataset_to_index": (numbers + 1) * FRAMES,
        **{f"stats/{key}": [[0.5] * WIDTH] * EPISODES for key in ("min", "max", "mean", "std")},
    }  # fmt: skip
    if version == "v3.0":
        path = folder / "meta/episodes/chunk-000/file-000.parquet"
        pq.write_table(pa.table(episodes), path)
    else:
        lines = [{"episode_index": i, "tasks": ["push"], "length": FRAMES} for i in range(EPISODES)]
        (folder / "meta/episodes.jsonl").write_text("\n".join(map(json.dumps, lines)))
    info = {"codebase_version": version, "fps": 30, "features": {}, "total_episodes": EPISODES}
    (folder / "meta/info.json").write_text(json.dumps(info))


def measured(command: str, folder: Path) -> tuple[float, float, float]:
    """Seconds of processor time, seconds, and MB at most, of one piece of work in a process."""
    done = subprocess.run(
        [sys.executable, __file__, command, folder], check=True, capture_output=True, text=True
    )
    cpu, wall, peak = map(float, done.stdout.split()[-3:])
    return cpu, wall, peak


def work(command: str, folder: Path) -> None:
    """Do it here, and print what it took beyond the start of Python and its imports."""
    from robo_eval.log.lerobot_importer import import_lerobot

    map_path = folder.parent / "map.yaml"
    map_path.write_text(MAP)
    started, cpu = time.perf_counter(), time.process_time()
    if command == "import":
        with tempfile.TemporaryDirectory(dir=folder.parent) as out:
            import_lerobot(folder, map_path, Path(out) / "trial")
    else:
        for path in sorted((folder / "data").rglob("*.parquet")):
            with pq.ParquetFile(path) as file:
                file.read(columns=COLUMNS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(time.process_time() - cpu, time.perf_counter() - started, peak)


def main() -> None:
    where = machine()
    print(f"{where['cpu']}, {where['cores']} cores, {where['system']}")
    print(f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    print(f"{EPISODES} episodes, {EPISODES * FRAMES} frames")
    with tempfile.TemporaryDirectory() as name:
        for version in ("v3.0", "v2.1"):
            folder = Path(name) / version
            write_set(folder, version=version)
            bare, *_ = measured("read", folder)
            cpu, wall, peak = measured("import", folder)
            size = sum(path.stat().st_size for path in folder.rglob("*.parquet")) / 1e6
            print(
                f"  {version} of {size:.0f} MB: {cpu:.2f} s of processor time, {wall:.2f} s,"
                f" {peak:.0f} MB; {cpu / bare:.1f} x pyarrow alone ({bare:.2f} s)"
            )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        work(sys.argv[1], Path(sys.argv[2]))
    else:
        main()
