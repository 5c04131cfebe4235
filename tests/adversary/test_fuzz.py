"""Whatever bytes, cells and arguments a command is given, it ends by a known code, in one line."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

TOKENS = (
    b"&a ", b"*a", b"<<: *a", b"!!int ", b"!!timestamp ", b"!!bool ", b"? ", b"- ", b": ", b"[",
    b"}", b"{", b"]", b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\t", b"'", b'"',
    b",", b";", b".nan", b"1.0e-320", b"1.0e+308", b"-1", b"9" * 400, b"9" * 5000,
    b"0x" + b"f" * 3000, b"~", b"#", b"true", b"null", b"2026-13-99", b"---\n", b"%YAML 9\n",
    b"[" * 6000, b"{a: " * 6000, b"a" * 400_000, b"=", b"\n", b"\n\n", "\u202e".encode(),
    "é".encode(), b"1:" * 300, b"a." * 3000,
)  # fmt: skip
CELLS = (
    None, "", "\0", "a\0b", "../x", "/etc/passwd", "x" * 400_000, "[" * 6000 + "]" * 6000, "{",
    "{}", '{"a": ' * 6000, '{"a": NaN}', '{"a": 1e999}', '{"": {}}', '{"a": ' + "9" * 5000 + "}",
    b"\xff", b"", 0, 1, -1, 2**62, -(2**63), 1e308, -1e308, 1e-320, float("inf"), 0.5, "nan",
    "success", "sim", "\u202e", "a\nb",
)  # fmt: skip
WORDS = (
    "", " ", "-", "--", "x", "trial", "log.db", "plan.yaml", "map.yaml", "table.csv", ".", "/",
    "..", "nan", "inf", "-inf", "1e999", "1e-320", "-1", "0", "1", "0.5", "1.0", "9" * 400,
    "9" * 5000, "٣", "x" * 100_000, "a\nb", "\udcff", "\udcff/x", "é", "\u202e", "=", "~", "$HOME",
    "*", "a" * 300, "a/2", "2026-01-01T00:00:00Z", "now", "--json", "--out", "--log", "--by",
    "--level", "--rate", "--to", "postgresql://h:99999/d", "sqlite://", "ws://x", "/dev/full/x",
    "/proc/x",
)  # fmt: skip
VERBS = (
    "run", "resume", "doctor", "partner", "pause", "recover", "rate", "replay", "metrics",
    "assess", "acc", "compare", "report", "verify", "levels", "agents", "export",
    "aiq rank", "aiq run", "aiq show", "aiq report", "aiq agree", "import csv", "import bag",
    "import lerobot", "import eval-info",
    "plan-size width", "plan-size at-least", "plan-size difference", "plan-size hours",
    "incidents add", "incidents nil", "incidents list", "incidents show", "incidents todo",
    "incidents correct", "incidents reclassify", "incidents attach", "incidents review",
    "incidents act", "incidents check", "incidents close", "incidents capture",
    "incidents exposure", "incidents withdraw", "incidents rates", "incidents checkpoint",
    "incidents merge", "incidents import", "incidents export", "incidents schema",
    "incidents init", "incidents migrate", "incidents user list", "nothing", "",
)  # fmt: skip
TOPICS = """
constants: {task: t, family: f, policy: p, side: real, robot: r}
columns: {success: {field: /reward.data, values: {'0.0': no, '1.0': yes}}}
"""
COUNTS = [5, pytest.param(400, marks=pytest.mark.slow)]


def changed(data: bytes, rng: random.Random) -> bytes:
    """Bytes with a few changes: turned bits, cuts, doubled and moved parts, and tokens put in."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, other = sorted(rng.randrange(len(found) + 1) for _ in range(2))
        how = rng.randrange(6)
        if how == 0 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del found[at:other]
        elif how == 2:
            found[at:at] = found[at:other][:10_000]
        elif how == 3:
            del found[other:]
        else:
            found[at:at] = rng.choice(TOKENS)
    return bytes(found)


FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    # The trial is there, so that a plan is read and checked, and never played.
    "plan": ("plan.yaml", ("run plan.yaml --out trial",)),
    "settings": ("settings.yaml", ("metrics trial --config settings.yaml",)),
    "map": ("map.yaml", ("import csv table.csv --map map.yaml --out out",)),
    "table": ("table.csv", ("import csv table.csv --map map.yaml --out out",)),
    "evaluation": ("eval.json", ("import eval-info eval.json --map side.yaml --out out",)),
    "evaluations": ("eval.npz", ("import eval-info eval.npz --map side.yaml --out out",)),
    "outcomes": ("ends.json", ("import csv table.csv --map beside.yaml --out out",)),
    "texts of outcomes": ("ends.txt", ("import csv table.csv --map texts.yaml --out out",)),
    "dataset": ("set/meta/info.json", ("import lerobot set --map frames.yaml --out out",)),
    "episodes of a dataset": (
        "set/meta/episodes.jsonl", ("import lerobot set --map frames.yaml --out out",),
    ),
    "frames": ("set/data/a.parquet", ("import lerobot set --map frames.yaml --out out",)),
    "suite": ("suite.yaml", ("aiq run suite.yaml --out table.csv --estimate",)),
    "profile": ("own.toml", ("assess trial --profile own.toml",)),
    "export of incidents": ("log.jsonl", ("incidents merge log.jsonl --log other.db",)),
    "incidents": ("log.json", ("incidents import log.json --by me --log other.db",)),
    "table of incidents": ("log.csv", ("incidents import log.csv --by me --log other.db",)),
    "log": ("log.db", ("verify log.db", "incidents list --log log.db")),
    "database": ("trial/episodes.db", ("verify trial", "metrics trial", "acc trial")),
    "manifest": ("trial/manifest.json", ("verify trial", "metrics trial")),
    "locked plan": ("trial/plan.yaml", ("verify trial", "metrics trial")),
    "trace": ("trace", ("verify trial", "incidents capture trial --log other.db")),
    "bag": ("bag.mcap", ("import bag bag.mcap --map topics.yaml --out out",)),
    "faults": ("faults.csv", ("metrics trial --faults faults.csv",)),
}  # fmt: skip


def _first_column(lab: Path) -> str:
    return (lab / "table.csv").read_text().split(",")[0]


def _write_arrays(lab: Path) -> None:
    """Results of a training, and a dataset of one episode."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    ends = np.array([[True, False]])
    np.savez(lab / "eval.npz", timesteps=np.array([9]), results=ends * 1.0, successes=ends)
    for name in ("meta", "data"):
        (lab / "set" / name).mkdir(parents=True)
    (lab / "set/meta/info.json").write_text(
        '{"codebase_version": "v2.1", "fps": 10, "features": {"cam": {"dtype": "video"}},'
        ' "video_path": "videos/{video_key}/{episode_index:06d}.mp4", "total_episodes": 1}'
    )
    said = '{"episode_index": 0, "tasks": ["push"], "length": 2}\n'
    (lab / "set/meta/episodes.jsonl").write_text(said)
    frames = {"episode_index": [0, 0], "index": [0, 1], "next.success": [False, True]}
    pq.write_table(pa.table(frames), lab / "set/data/a.parquet")


@pytest.fixture
def full_lab(lab, commands) -> Path:
    """The laboratory with a file of each kind."""
    from robo_eval.gates.profile import source_of

    (lab / "settings.yaml").write_text("level: 0.9\nprice_card: {energy: 1.5}\nresamples: 100\n")
    (lab / "topics.yaml").write_text(TOPICS)
    (lab / "suite.yaml").write_text(
        "name: s\ntasks: [{env: RoboEval/CartPole3D-v0, name: a, experts: [balancer]}]\n"
        "pool: {policies: 4}\nlearner: {trainings: 1}\n"
    )
    shutil.copy(source_of("robotics"), lab / "own.toml")
    shutil.copy(next((lab / "trial/traces").glob("*.mcap")), lab / "bag.mcap")
    side = "constants: {task: t, policy: p, side: sim}\n"
    (lab / "side.yaml").write_text(side)
    (lab / "frames.yaml").write_text(f"columns: {{success: next.success}}\n{side}")
    for name, file in (("beside", "json"), ("texts", "txt")):
        told = f"columns: {{episode_id: {_first_column(lab)}}}\noutcomes: ends.{file}\n"
        (lab / f"{name}.yaml").write_text(told + side)
    (lab / "ends.json").write_text('{"episodes": [{"id": "a", "success": true, "x": {"y": 1.5}}]}')
    (lab / "ends.txt").write_text("a 1\nb: 0\n")
    (lab / "eval.json").write_text(
        '{"per_episode": [{"episode_ix": 0, "sum_reward": NaN, "success": true, "seed": 3}],'
        ' "per_task": []}'
    )
    _write_arrays(lab)
    (lab / "faults.csv").write_text("episode_id,kind,recovered,by\nx,estop,true,policy\n")
    done = commands("incidents", "init", "--log", "other.db", "--station", "b", folder=lab)
    assert done.code == 0, done
    return lab


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", FILES)
def test_changed_bytes(full_lab, calm, kind, count):
    rng = random.Random(f"bytes of {kind}")
    name, calls = FILES[kind]
    path = full_lab / name
    if kind == "trace":
        path = next((full_lab / "trial/traces").glob("*.mcap"))
    for _ in range(count):
        with kept(full_lab):
            path.write_bytes(changed(path.read_bytes(), rng))
            calm(*rng.choice(calls).split(), folder=full_lab)


@pytest.mark.parametrize("count", COUNTS)
def test_changed_cells(full_lab, calm, count):
    rng = random.Random("cells")
    for _ in range(count):
        with kept(full_lab), closing(sqlite3.connect(full_lab / "trial/episodes.db")) as raw:
            columns = [row[1] for row in raw.execute("pragma table_info(episodes)")]
            for _ in range(rng.choice((1, 1, 3))):
                column, cell = rng.choice(columns), rng.choice(CELLS)
                kept_as = rng.choice(("?", "cast(? as text)", "cast(? as blob)"))
                try:
                    raw.execute(
                        f"update episodes set {column} = {kept_as} where sequence = 2", (cell,)
                    )
                    raw.commit()
                except sqlite3.IntegrityError:
                    raw.rollback()
            raw.execute("pragma wal_checkpoint(truncate)")
            verbs = ("verify trial", "metrics trial", "export trial --out o.csv", "acc trial")
            calm(
                *rng.choice((*verbs, "compare trial", "verify trial --json")).split(),
                folder=full_lab,
            )


@pytest.mark.parametrize("count", COUNTS)
def test_any_arguments(full_lab, calm, count):
    rng = random.Random("arguments")
    for _ in range(4 * count):
        with kept(full_lab):
            words = rng.choices(WORDS, k=rng.randrange(6))
            calm(*rng.choice(VERBS).split(), *words, folder=full_lab, codes=(0, 1, 2, 3))


class kept:  # noqa: N801 - reads as a statement
    """A folder that is as it was afterwards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        self.copy = Path(shutil.copytree(self.folder, f"{self.folder}.copy", symlinks=True))

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder)
        self.copy.rename(self.folder)
