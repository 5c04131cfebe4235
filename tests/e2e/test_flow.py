"""From a plan to a report, with nothing but the command line."""

import csv
import json
import os
import pty
import re
import subprocess
import sys

import pytest

CRASHING = """
class Crashing:
    '''Balances for a while; crashes in the episodes with these seeds.'''

    name = "crashing"
    digest = "0" * 64

    def reset(self, *, seed=None):
        self.ticks = 0
        Crashing.episodes = getattr(Crashing, "episodes", 0)

    def act(self, observation):
        self.ticks += 1
        if abs(observation[0]) < {limit} and self.ticks > 3:
            raise RuntimeError("lost its nerve")
        return 0


def make():
    return Crashing()
"""


def test_run_metrics_verify_report_export(cli, small_plan, tmp_path):
    run = cli("run", small_plan, "--out", "trial")
    assert run.code == 0, run.err
    assert "12 episodes played" in run.out
    assert "next:" in run.out
    page = tmp_path / "trial/report/index.html"
    assert page.exists()
    assert str(page.relative_to(tmp_path)) in run.out

    metrics = cli("metrics", "trial", "--json")
    assert metrics.code == 0, metrics.err
    summary = json.loads(metrics.out)
    assert {row["policy"] for row in summary["policies"]} == {"random", "balancer"}

    verify = cli("verify", "trial", "--json")
    assert verify.code == 0, verify.err
    assert json.loads(verify.out)["ok"] is True

    table = cli("export", "trial", "--out", "episodes.csv")
    assert table.code == 0, table.err
    with (tmp_path / "episodes.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 12

    again = cli("resume", "trial", "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["played"] == 0


def test_a_changed_row_fails_verification(quick_cli, small_plan, tmp_path):
    assert quick_cli("run", small_plan, "--out", "trial", "--no-report").code == 0
    import sqlite3

    with sqlite3.connect(tmp_path / "trial/episodes.db") as database:
        database.execute("update episodes set quality = 0.5, ticks = 100 where sequence = 3")
    result = quick_cli("verify", "trial")
    assert result.code == 1
    assert "row 3" in result.out + result.err
    assert "Traceback" not in result.err


@pytest.mark.slow
def test_scores_are_the_same_with_and_without_a_terminal(cli, environment, small_plan, tmp_path):
    assert cli("run", small_plan, "--out", "piped", "--no-report").code == 0
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "robo_eval", "run", small_plan, "--out", "shown", "--no-report"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=tmp_path,
        env=environment(TERM="xterm"),
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            chunk = os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        shown += chunk
    assert process.wait(timeout=240) == 0, shown.decode(errors="replace")
    os.close(leader)
    piped, terminal = (cli("metrics", name, "--json").out for name in ("piped", "shown"))
    strip = re.compile(r'"(trial|created_utc|chain_head)": "[^"]*",?')
    assert strip.sub("", piped) == strip.sub("", terminal)


@pytest.mark.slow
def test_crashed_episodes_are_counted_not_averaged_away(quick_cli, tmp_path):
    (tmp_path / "crashing.py").write_text(CRASHING.format(limit=2.0))
    (tmp_path / "plan.yaml").write_text(
        "name: crashing\n"
        "tasks: [{levels: [0], kwargs: {balls: 0}}]\n"
        "policies: [{name: crashing, factory: 'crashing:make'}]\n"
        "episodes: 20\n"
        "traces: none\n"
    )
    run = quick_cli("run", "plan.yaml", "--out", "trial")
    assert run.code == 1, run.err
    rows = json.loads(quick_cli("metrics", "trial", "--json").out)
    policy = rows["policies"][0]
    scored = policy["coverage"]["scored"]
    assert policy["coverage"]["attempted"] == 20
    assert 0 < scored < 19
    assert f"{scored} of 20 scored" in run.out + run.err
    assert policy["headline"] is None
    metrics = quick_cli("metrics", "trial")
    assert metrics.code == 1
    assert f"{scored} of 20 scored" in metrics.out


def test_levels_and_agents_list_what_plans_can_name(cli, quick_cli):
    levels = json.loads(cli("levels", "--json").out)["levels"]
    assert [row["level"] for row in levels] == list(range(17))
    assert all(row["effect"] for row in levels)
    agents = json.loads(cli("agents", "--json").out)["agents"]
    assert {"random", "nothing", "balancer", "lookahead", "adaptive"} <= {a["name"] for a in agents}
    assert "cart" in quick_cli("levels").out


@pytest.mark.parametrize(
    "verb",
    ["", "run", "resume", "demo", "metrics", "acc", "report", "verify", "levels", "agents",
     "export", "film", "compare", "import", "import csv", "import bag",
     "import lerobot", "import eval-info",
     "plan-size", "plan-size width",
     "plan-size at-least", "plan-size difference", "plan-size hours"],
)  # fmt: skip
def test_every_verb_has_help_with_an_example(quick_cli, verb):
    result = quick_cli(*verb.split(), "--help")
    assert result.code == 0
    assert "robo-eval" in result.out
    if verb not in ("", "import", "plan-size"):
        assert "Example" in result.out
        assert "--json" in result.out


def test_any_gymnasium_task_can_be_run(quick_cli, tmp_path):
    (tmp_path / "steady.py").write_text(
        "class Steady:\n"
        "    name = 'steady'\n"
        "    digest = '1' * 64\n"
        "    def reset(self, *, seed=None): pass\n"
        "    def act(self, observation): return int(observation[2] > 0)\n"
        "def make(): return Steady()\n"
    )
    (tmp_path / "plan.yaml").write_text(
        "name: classic\n"
        "tasks: [{env: CartPole-v1, quality_range: [0, 500], success_quality: 0.9}]\n"
        "policies: [{name: steady, factory: 'steady:make'}]\n"
        "episodes: 4\n"
        "traces: all\n"
    )
    run = quick_cli("run", "plan.yaml", "--out", "trial")
    assert run.code == 0, run.err
    assert json.loads(quick_cli("verify", "trial", "--json").out)["ok"] is True
    assert len(list((tmp_path / "trial/traces").glob("*.mcap"))) == 4


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("width --rate 0.9 --to 0.2", {"episodes": 42}),
        ("width --to 0.1", {"episodes": 402}),
        ("at-least --rate 0.99", {"episodes": 299}),
        (
            "difference --first 0.9 --second 0.7 --both 0.65",
            {"pairs": 61, "episodes_per_arm": 60},
        ),
        ("width --to 0.2 --repeats 20", {"episodes": 104, "seeds": 104, "episodes_played": 2080}),
        ("width --to 0.2 --repeats 5 --alike 0.5", {"episodes": 104, "seeds": 63}),
        ("at-least --rate 0.95 --repeats 4 --alike 0", {"episodes": 59, "seeds": 15}),
        # Flipping the signs of five seeds decides nothing, however many episodes each has.
        (
            "difference --first 0.9 --second 0.7 --both 0.65 --repeats 51 --alike 0",
            {"pairs": 61, "seeds": 6},
        ),
        ("hours --per-100-h 10", {"hours": pytest.approx(29.957, abs=1e-3)}),
    ],
)
def test_plan_size_says_what_an_answer_needs(quick_cli, question, answer):
    found = quick_cli("plan-size", *question.split(), "--json")
    assert found.code == 0, found.err
    data = json.loads(found.out)
    assert {name: data[name] for name in answer} == answer
    told = quick_cli("plan-size", *question.split())
    assert str(data.get("episodes", data.get("pairs", ""))) in told.out


def test_plan_size_finds_its_imports(cli):
    assert "42" in cli("plan-size", "width", "--rate", "0.9", "--to", "0.2").out


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("width --to 3", "width must be between 0 and 1"),
        ("at-least --rate 1.5", "rate"),
        ("difference --first 0.9 --second 0.7 --both 0.1", "between 0.6 and 0.7"),
        ("hours --per-100-h 0", "rate"),
        ("width --to 0.2 --repeats 0", "--repeats"),
        ("width --to 0.2 --alike 1.5", "--alike"),
    ],
)
def test_plan_size_refuses_what_cannot_be(quick_cli, question, message):
    refused = quick_cli("plan-size", *question.split())
    assert refused.code == 2
    assert message in refused.err
    assert "Traceback" not in refused.err


def test_another_lab_s_pairs_become_sim_to_real_agreement(cli, quick_cli, tmp_path):
    lines = ["trial,where,ok,pair"]
    for i in range(20):
        # Both succeed in 14, simulation alone in 2, none in 4.
        lines += [f"r{i},real,{int(i < 14)},p{i}", f"s{i},sim,{int(i < 16)},p{i}"]
    (tmp_path / "lab.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "map.yaml").write_text(
        "columns: {episode_id: trial, side: where, success: ok, pair_id: pair}\n"
        "constants: {policy: ours, task: pick}\n"
    )
    imported = cli("import", "csv", "lab.csv", "--map", "map.yaml", "--out", "trial")
    assert imported.code == 0, imported.err
    told = quick_cli("metrics", "trial")
    assert told.code == 0, told.err
    found = json.loads(quick_cli("metrics", "trial", "--json").out)["numbers"]
    robot = {one["name"]: one for one in found if not (one["family"] or one["case"] or one["at"])}
    assert (robot["AR"]["value"], robot["AR"]["method"]) == (0.7, "clopper_pearson")
    assert (robot["S2R"]["value"], robot["S2R"]["rests_on"]) == (pytest.approx(0.9), "20 pairs")
    assert robot["McNemar_p"]["value"] == pytest.approx(0.5)
    for word in ("AR", "AR_sim", "S2R", "20 pairs"):
        assert word in told.out


TALKING = """
class Talking:
    name, digest = "talking", "3" * 64

    def reset(self, *, seed=None):
        self.ticks = 0

    def act(self, observation):
        print("hello")
        self.ticks += 1
        if self.ticks > 4:
            raise ValueError("boom:\\nsensor")
        return 0


def make():
    print("made")
    return Talking()
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_a_policy_prints_is_no_part_of_the_json(quick_cli, tmp_path, jobs):
    (tmp_path / "mine.py").write_text(TALKING)
    (tmp_path / "plan.yaml").write_text(
        "name: talking\ntasks: [{levels: [0]}]\nepisodes: 16\ntraces: none\n"
        "policies: [{name: mine, factory: 'mine:make'}]\n"
    )
    run = quick_cli("run", "plan.yaml", "--out", "trial", "--json", "--no-report", "--jobs", jobs)
    assert run.code == 1
    assert json.loads(run.out)["unscored"] == 16
    assert "hello" in run.err
    # What broke, where, and when: in one line.
    told = quick_cli("metrics", "trial").out
    assert "mine: 16 without a score: ValueError: boom: sensor (mine.py:12 in act, tick 4)" in told


@pytest.mark.slow
def test_resume_does_not_add_to_a_log_that_does_not_verify(quick_cli, small_plan, tmp_path):
    import sqlite3

    assert quick_cli("run", small_plan, "--out", "trial", "--no-report").code == 0
    with sqlite3.connect(tmp_path / "trial/episodes.db") as database:
        database.execute("delete from episodes where sequence > 9")
    refused = quick_cli("resume", "trial")
    assert refused.code == 1
    assert "nothing was played: the log does not verify" in refused.err
    with sqlite3.connect(tmp_path / "trial/episodes.db") as database:
        assert database.execute("select count(*) from episodes").fetchone() == (9,)
