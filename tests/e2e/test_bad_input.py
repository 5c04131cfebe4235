"""Bad input gets one line that names file and field, exit code 2, and changes nothing."""

import hashlib
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval_sim.runner import run_simulated

PLAN_TASK = "RoboEval/CartPole3D-v0"
PLAN = """
name: tiny
tasks: [{levels: [0]}]
policies: [nothing]
episodes: 2
traces: all
"""


@pytest.fixture(scope="session")
def finished_trial(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "trial"
    trial = TrialDirectory.create(folder, parse_plan(PLAN, source="plan"))
    run_simulated(trial, jobs=1)
    return folder


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-wal", "-shm", ".lock"))
    }


def assert_refused(result, *words: str, code: int = 2) -> None:
    assert result.code == code, (result.out, result.err)
    assert "Traceback" not in result.err
    lines = [line for line in result.err.splitlines() if line.strip()]
    message = lines[-1]
    assert len(lines) == 1, result.err
    for word in words:
        assert word in result.err.replace("\n", " "), f"{word!r} is not in {message!r}"


# Lines of a plan, and what their refusal names; what a plan may say without a simulator is asked in
# unit/core/test_plan.py.
PLANS = [
    ("policies: [balancr]", "policies.0", "did you mean 'balancer'"),
    ("policies: [{name: a, factory: nowhere}]", "factory", "nowhere"),
    ("policies: [{name: a, factory: 'no_such_mod:x'}]", "no_such_mod"),
    ("policies: [{name: a, factory: 'json:nope'}]", "nope"),
    ("policies: [{name: a, factory: 'json:dumps'}]", "a"),
    ("policies: [{name: balancer, kwargs: {gian: 1}}]", "policies.0", "gian"),
    ("tasks: [{env: RoboEval/CartPol3D-v0}]", "CartPole3D"),
    ("tasks: [{env: NoSuchThing-v3, quality_range: [0, 1]}]", "NoSuchThing"),
    ("tasks: [{env: '::', quality_range: [0, 1]}]", "::"),
    ("tasks: [{env: CartPole-v1}]", "tasks.0.quality_range"),
    (
        "tasks: [{env: CartPole-v1, levels: [1], quality_range: [0, 500]}]",
        "tasks.0.levels: CartPole-v1 has no levels; remove `levels`",
    ),
    ("episods: 3", "episods", "did you mean 'episodes'"),
    ("sides: [sim, real]", "sides", "--robot"),
    ("sides: [twin, real]", "trials of their own"),
    ("injections: [{fault: flood, episode: 0}]", "injections.0.fault"),
    ("episodes: 1000000\ntraces: all", "free"),
    ("episodes: [", "not valid YAML"),
]
# The same of what differs between tasks; a word may hold the name of the task.
OF_EACH_TASK = [
    ("tasks: [{env: @, levels: [0, 99]}]", "plan.yaml: tasks.0.levels", "unknown level 99"),
    ("tasks: [{env: @, levels: [0], kwargs: {ball: 0}}]", "tasks.0.kwargs: @ has no key", "'ball'"),
    ("tasks: [{env: @, levels: [0], kwargs: {balls: 99}}]", "plan.yaml: tasks.0.kwargs: ", "balls"),
    ("tasks: [{env: @, levels: [0], max_ticks: 50}]", "tasks.0.max_ticks"),
    ("control: true", "control: no task has a level above 0"),
]


ARMS = {
    "unknown action mode": ("kwargs: {action_mode: joints}", "action_mode", "joint_position"),
    "unknown observation mode": ("kwargs: {obs_mode: pixels}", "obs_mode", "rgbd"),
    "unknown axis": ("kwargs: {novelty: {frction: 0.1}}", "did you mean 'friction'"),
    "magnitude out of range": ("axes: {delay: [40]}", "tasks.0.axes: novelty.delay", "s is needed"),
    "magnitude that is not a number": ("axes: {delay: [fast]}", "tasks.0.axes.delay.0"),
    "onset that ends before it begins": (
        "kwargs: {novelty: {delay: 0.1, gain: 0.5}, onset: [9, 3]}",
        "onset: a whole number of ticks from 1",
    ),
    "levels beside axes": ("levels: [1], axes: {delay: [0.1]}", "axes: stand for levels"),
}


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        # An agent of a task in which others act.
        ("[arm-still, balancer]", ("policies.1: 'balancer' cannot act on tasks.0", "8 numbers")),
        ("[{name: arm-still, action_mode: ee_delta}]", ("is 8 numbers", "7 numbers would do")),
        ("[{name: arm-still, action_mode: ee}]", ("policies.0.action_mode", "ee_delta")),
    ],
)
def test_a_policy_that_cannot_act_is_refused_before_the_first_tick(
    quick_cli, tmp_path, policies, words
):
    (tmp_path / "plan.yaml").write_text(
        f"name: x\ntasks: [{{env: RoboEval/Drawer-v0}}]\npolicies: {policies}\n"
    )
    assert_refused(quick_cli("run", "plan.yaml", "--out", "trial", "--json"), "plan.yaml", *words)
    assert not (tmp_path / "trial").exists()


TASKS = {
    "RoboEval/CartPole3D-v0": "nothing",
    "RoboEval/PickPlace-v0": "arm-still",
    "RoboEval/Drawer-v0": "arm-still",
}


@pytest.mark.parametrize("env", [env for env in TASKS if "Pole" not in env])
@pytest.mark.parametrize("name", ARMS)
def test_bad_plan_of_an_arm(quick_cli, tmp_path, env, name):
    change, *words = ARMS[name]
    (tmp_path / "plan.yaml").write_text(
        f"name: x\ntasks: [{{env: {env}, {change}}}]\npolicies: [arm-still]\n"
    )
    assert_refused(quick_cli("run", "plan.yaml", "--out", "trial"), *words)
    assert not (tmp_path / "trial").exists()


@pytest.mark.parametrize(
    ("env", "case"),
    [
        *((PLAN_TASK, case) for case in PLANS),
        *((env, case) for env in TASKS for case in OF_EACH_TASK),
    ],
    ids=lambda one: one if isinstance(one, str) else one[0],
)
def test_bad_plan(quick_cli, tmp_path, env, case):
    change, *words = (part.replace("@", env) for part in case)
    key = change.partition(":")[0]
    plan = PLAN.replace("[{levels", f"[{{env: {env}, levels").replace("nothing", TASKS[env])
    kept = [line for line in plan.strip().splitlines() if line.partition(":")[0] != key]
    if "traces:" in change:
        kept = [line for line in kept if not line.startswith("traces")]
    (tmp_path / "plan.yaml").write_text("\n".join([*kept, change]) + "\n")
    assert_refused(quick_cli("run", "plan.yaml", "--out", "trial"), *words)
    assert not (tmp_path / "trial").exists()


COMMANDS = {
    "missing plan": (["run", "nowhere.yaml", "--out", "x"], "nowhere.yaml", "no such plan"),
    "plan is a folder": (["run", ".", "--out", "x"], "cannot be read"),
    "no such trial": (["metrics", "nowhere"], "nowhere"),
    "trial is a file": (["verify", "plan.yaml"], "plan.yaml"),
    "trial is an empty folder": (["resume", "empty"], "empty", "plan.yaml"),
    "report of nothing": (["report", "nowhere"], "nowhere"),
    "export of nothing": (["export", "nowhere", "--out", "x.csv"], "nowhere"),
    "import of nothing": (["import", "csv", "no.csv", "--map", "m.yaml", "--out", "x"], "no.csv"),
    "unknown side": (["run", "plan.yaml", "--out", "x", "--sides", "sm"], "did you mean 'sim'"),
    "unknown profile": (["levels", "--profile", "papper"], "did you mean 'paper'"),
    "zero workers": (["run", "plan.yaml", "--out", "x", "--jobs", "0"], "jobs"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_bad_command(quick_cli, tmp_path, name):
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "empty").mkdir()
    arguments, *words = COMMANDS[name]
    assert_refused(quick_cli(*arguments), *words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "plan.yaml"]


def test_unknown_verb_and_option_name_the_nearest(quick_cli):
    assert_refused(quick_cli("verfy"), "verify")
    assert_refused(quick_cli("levels", "--jsn"), "--json")
    # An abbreviation is not an option.
    assert_refused(quick_cli("levels", "--js"), "--json")


def test_new_run_into_anything_else_is_refused(quick_cli, finished_trial, tmp_path):
    (tmp_path / "plan.yaml").write_text(PLAN)
    before = fingerprint(finished_trial)
    result = quick_cli("run", "plan.yaml", "--out", finished_trial)
    assert_refused(result, "robo-eval resume")
    assert fingerprint(finished_trial) == before
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter1.tex").write_text("precious")
    for out, named in (
        (other, "thesis"),
        (other / "chapter1.tex", "chapter1.tex"),
        (other / "chapter1.tex" / "x", "chapter1.tex"),
    ):
        assert_refused(quick_cli("run", "plan.yaml", "--out", out), named)
    assert fingerprint(other) == fingerprint(other)
    assert (other / "chapter1.tex").read_text() == "precious"


def test_two_runs_in_one_directory(cli, finished_trial, tmp_path):
    trial = tmp_path / "trial"
    shutil.copytree(finished_trial, trial)
    with TrialDirectory.open(trial).lock():
        result = cli("resume", trial)
    assert_refused(result, str(os.getpid()), "trial")


def damage(name: str) -> Callable[[Path], object]:
    def edit_row(trial: Path, statement: str) -> None:
        database = sqlite3.connect(trial / "episodes.db")
        database.execute(statement)
        database.commit()
        database.execute("pragma wal_checkpoint(truncate)")
        database.close()

    return {
        "plan gone": lambda t: (t / "plan.yaml").unlink(),
        "plan empty": lambda t: (t / "plan.yaml").write_text(""),
        "plan not text": lambda t: (t / "plan.yaml").write_bytes(b"\xff\x00"),
        "plan half": lambda t: (t / "plan.yaml").write_text("name: x\ntasks: ["),
        "database gone": lambda t: (t / "episodes.db").unlink(),
        "database empty": lambda t: (t / "episodes.db").write_bytes(b""),
        "database not one": lambda t: (t / "episodes.db").write_bytes(b"not a database" * 99),
        "database half": lambda t: os.truncate(t / "episodes.db", 6000),
        "table gone": lambda t: edit_row(t, "drop table episodes"),
        "manifest not json": lambda t: (t / "manifest.json").write_text("{"),
        "manifest not an object": lambda t: (t / "manifest.json").write_text("[]"),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "plan gone", "plan empty", "plan not text", "plan half", "database gone",
        "database empty", "database not one", "database half", "table gone",
        "manifest not json", "manifest not an object",
    ],
)  # fmt: skip
def test_damaged_trial_directory(quick_cli, finished_trial, tmp_path, name):
    trial = tmp_path / "trial"
    shutil.copytree(finished_trial, trial)
    with sqlite3.connect(trial / "episodes.db") as database:
        database.execute("pragma wal_checkpoint(truncate)")
    damage(name)(trial)
    before = fingerprint(trial)
    named = {"pl": "plan.yaml", "ma": "manifest.json"}.get(name[:2], "episodes.db")
    for verb in ("metrics", "resume", "report"):
        assert_refused(quick_cli(verb, trial), named)
        assert fingerprint(trial) == before, verb
    result = quick_cli("verify", trial)
    assert result.code in (1, 2)
    assert "Traceback" not in result.err
    assert named in result.out + result.err


def test_unwritable_output_is_refused_before_the_first_tick(quick_cli, tmp_path):
    (tmp_path / "plan.yaml").write_text(PLAN)
    result = quick_cli("run", "plan.yaml", "--out", "/proc/trial")
    assert_refused(result, "/proc/trial")


def _limited_file_size() -> None:
    # Stands in for a full disk: no file may grow beyond 100 kB.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


@pytest.mark.slow
def test_disk_that_fills_up_during_a_run_loses_nothing(tmp_path, cli, environment):
    (tmp_path / "plan.yaml").write_text(
        "name: full\ntasks: [{levels: [0]}]\npolicies: [nothing]\nepisodes: 60\ntraces: none\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "robo_eval", "run", "plan.yaml", "--out", "trial", "--no-report"],
        cwd=tmp_path,
        # Python would keep the byte code it was cut off in.
        env=environment() | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        preexec_fn=_limited_file_size,
        timeout=800,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "trial" in done.stderr
    resumed = cli("resume", "trial", "--no-report")
    assert resumed.code == 0, resumed.err
    verified = cli("verify", "trial")
    assert verified.code == 0, verified.err
    metrics = cli("metrics", "trial", "--json")
    assert '"attempted": 60' in metrics.out


def test_rates_between_which_there_is_no_difference_are_those_that_were_given(cli):
    done = cli("plan-size", "difference", "--first", "0.5", "--second", "0.5")
    assert_refused(done, "no difference", "given 0.5 and 0.5")


@pytest.mark.parametrize("place", ["a_file", "a_file/below"])
def test_a_demo_in_place_of_a_file_is_refused(cli, tmp_path, place):
    (tmp_path / "a_file").write_text("")
    assert_refused(cli("demo", "--out", place), "a_file", "not a directory")
    assert (tmp_path / "a_file").read_text() == ""
