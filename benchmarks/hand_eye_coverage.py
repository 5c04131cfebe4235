"""How often the intervals of `calibrate offsets hand-eye` hold the truth, and how wide they are.

A hand turns by about 40 degrees about all axes, and the target is seen with errors of 1 mm and
2 mrad. Run by hand, three minutes: `python benchmarks/hand_eye_coverage.py`, or with the number of
calibrations.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from robo_eval_calibration.hand_eye import Poses, hand_eye

REPEATS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
RNG = np.random.default_rng(1)
COLUMNS = [
    f"{name}_{column}"
    for name in ("hand", "target")
    for column in ("x_m", "y_m", "z_m", "rx_rad", "ry_rad", "rz_rad")
]


def pose() -> Poses:
    """Somewhere, turned by at most a right angle."""
    turn = RNG.uniform(-0.9, 0.9, 3)
    return Poses(turn=Rotation.from_rotvec(turn), p=RNG.normal(0.0, 0.1, 3))


def one(path: Path, stations: int) -> tuple[list[bool], float, float, float]:
    """Which numbers are held, half-width (mm), error (mm) and scatter that is told (mm)."""
    camera, place = pose(), pose()
    turns = Rotation.from_rotvec(RNG.normal(0.0, 0.4, (stations, 3)))
    hand = Poses(turn=turns, p=RNG.normal(0.0, 0.3, (stations, 3)))
    seen = (hand @ camera).inverse() @ place
    turn = seen.turn * Rotation.from_rotvec(RNG.normal(0.0, 2e-3, (stations, 3)))
    p = seen.p + RNG.normal(0.0, 1e-3, (stations, 3))
    rows = np.hstack([hand.p, hand.turn.as_rotvec(), p, turn.as_rotvec()])
    np.savetxt(path, rows, delimiter=",", header=",".join(COLUMNS), comments="", fmt="%.12g")
    found = hand_eye(path)
    truth = np.concatenate([camera.p, camera.turn.as_rotvec()])
    ends = np.array([(x.low, x.value, x.high) for x in found.numbers.values()], dtype=float)
    held = [bool(low <= x <= high) for (low, _, high), x in zip(ends, truth, strict=True)]
    width = float(np.mean(ends[:3, 2] - ends[:3, 1]))
    error = float(np.linalg.norm(ends[:3, 1] - truth[:3]))
    return held, 1e3 * width, 1e3 * error, 1e3 * found.residuals["scatter_m"]


def main() -> None:
    """Print the table."""
    print("| stations | positions | rotations | half-width, mm | error, mm (rms) | scatter, mm |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for stations in (5, 8, 12, 20):
            found = [one(Path(folder) / "a.csv", stations) for _ in range(REPEATS)]
            held, width, error, scatter = (np.array(column) for column in zip(*found, strict=True))
            size = np.sqrt(np.mean(error**2))
            cells = (np.median(width), size, np.sqrt(np.mean(scatter**2)))
            told = " | ".join(f"{cell:.1f}" for cell in cells)
            of = f"{held[:, :3].mean():.3f} | {held[:, 3:].mean():.3f}"
            print(f"| {stations} | {of} | {told} |", flush=True)


if __name__ == "__main__":
    main()
