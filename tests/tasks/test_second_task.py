"""A task of another package, from its folder to the report, with nothing of ours changed."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys

import pytest

PLAN = """
name: pucks
tasks: [{env: Lab/SlidePuck-v0, levels: [0, 1], difficulties: [hard]}]
policies:
  - {name: pusher, factory: "slide_puck.agent:Pusher"}
  - {name: still, factory: "still:Still"}
episodes: 3
control: true
traces: all
"""
STILL = (
    "from slide_puck.agent import Pusher\nclass Still(Pusher):\n    def act(self, o): return 0\n"
)


@pytest.fixture(scope="module")
def lab(installed: dict[str, str], tmp_path_factory: pytest.TempPathFactory):
    """A folder with a plan that was played; calls the command line there."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "plan.yaml").write_text(PLAN)
    (folder / "still.py").write_text(STILL)

    def call(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "robo_eval", *arguments],
            cwd=folder,
            env=installed,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    call("run", "plan.yaml", "--out", "trial")
    call.folder = folder
    return call


def test_its_episodes_are_scored_by_what_it_pays(lab) -> None:
    lab("export", "trial", "--out", "rows.csv")
    rows = list(csv.DictReader((lab.folder / "rows.csv").open()))
    assert {row["task"] for row in rows} == {"Lab/SlidePuck-v0"}
    by_policy = {name: [r for r in rows if r["policy"] == name] for name in ("pusher", "still")}
    assert all(float(row["quality"]) == 1.0 for row in by_policy["pusher"] if row["level"] == "0")
    assert all(0.0 < float(row["quality"]) < 1.0 for row in by_policy["still"])
    heavy = next(row for row in rows if row["level"] == "1")
    assert json.loads(heavy["novelty"])["parameters"] == {"mass": 8.0}
    assert heavy["control_id"]


def test_the_report_speaks_in_its_words_and_draws_it(lab) -> None:
    page = (lab.folder / "trial/report/index.html").read_text()
    assert "SlidePuck: It ends when the puck is in its corner, or after 60 ticks of 0.02 s." in page
    assert "SlidePuck: The puck came to its corner." in page
    assert "clip-0" in page
    texts = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(pole|cart|balls?|survived)\b", texts, re.IGNORECASE)
    assert json.loads(lab("verify", "trial", "--json"))["ok"]


def test_it_is_listed_and_filmed(lab) -> None:
    told = json.loads(lab("levels", "--task", "Lab/SlidePuck-v0", "--json"))
    assert [level["name"] for level in told["levels"]] == ["none", "puck_mass"]
    said = lab(
        "film", "--task", "Lab/SlidePuck-v0", "--agent", "pusher",
        "--factory", "slide_puck.agent:Pusher", "--out", "puck.gif", "--json",
    )  # fmt: skip
    assert json.loads(said)["survived"] is True
    assert (lab.folder / "puck.gif").read_bytes().startswith(b"GIF89a")


def test_what_was_applied_is_replayed(lab, installed: dict[str, str]) -> None:
    code = (
        "from robo_eval.log.trace import read_trace\n"
        "from robo_eval_sim.replay import replay\n"
        "from slide_puck.spec import ENV, SPEC\n"
        "import json, sqlite3\n"
        "from pathlib import Path\n"
        "db = sqlite3.connect('trial/episodes.db')\n"
        'seed, start, uri = db.execute("select seed, initial_state, trace_uri from episodes where'
        " policy = 'pusher' and level = 1 and arm = 'main'\").fetchone()\n"
        "trace = read_trace(Path('trial') / uri)\n"
        "applied = [SPEC.pushes[int(a)] for a in trace.actions[:, 0]]\n"
        "states = replay(ENV, json.loads(start), applied, seed=seed, level=1, difficulty='hard')\n"
        "far = max(abs(s['puck_position'][0] - p) for s, p in"
        " zip(states, trace.pose_world_frame[:, 0, 0]))\n"
        "print(far)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=lab.folder,
        env=installed,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1e-9
