"""Every verb ends calmly where extras are missing, and names the one that it needs."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from robo_eval.cli.app import app

REPOSITORY = Path(__file__).parents[2]
SUITE = """
version: 1
name: two levels
tasks:
  - {env: RoboEval/CartPole3D-v0, name: "level {level}", each: {level: [0, 9]}, experts: [balancer]}
expert_episodes: 1
entropy_episodes: 1
pool: {policies: 4, examples: 50, steps: 5, episodes: 1}
learner: {examples: 50, steps: 5, episodes: 1, trainings: 1, alone: 1}
"""
PLAN = "name: x\ntasks: [{levels: [0]}]\npolicies: [nothing]\nepisodes: 2\n"
REMOTE = PLAN.replace(
    "[nothing]",
    "[{name: r, factory: 'robo_eval.agents.remote:RemotePolicy', kwargs: {url: 'ws://h:1'}}]",
)
DIGITS = SUITE.split("tasks:")[0] + "sets: [{set: digits}, {set: digits, name: two, copies: 2}]\n"
TOPICS = """
constants: {task: t, family: f, policy: p, side: real, robot: r}
columns: {success: /s.data}
"""
# Every verb once with something to do, in this order.
COMMANDS = """
run plan.yaml --out played --no-report
run remote.yaml --out remote
resume trial --no-report
doctor robot.yaml
partner trial
pause trial --off
recover trial
rate trial -r me
replay trial
calibrate check trial
calibrate fit trial --out snapshot.yaml
calibrate validate snapshot.yaml trial
calibrate loop trial --out loop --recordings 1 --jobs 1
calibrate export snapshot.yaml --json
calibrate watch snapshot.yaml
calibrate offsets joints table.csv
calibrate offsets hand-eye table.csv
calibrate offsets clock table.csv
metrics trial
assess trial
acc trial
agitb collections:Counter --trials 1
agitb model.so
compare trial
report trial
verify trial
levels
agents
serve-policy balancer --port 0
film --out film.gif
dose magnitudes.yaml --out magnitudes
export trial --out rows.parquet
export trial --out rows.csv
metrics rows.csv
metrics rows.parquet
aiq run suite.yaml --out study --workers 2
aiq run digits.yaml --out digits --estimate
aiq run suite.yaml --out other --ray auto
aiq show study
aiq report study --out page.html
aiq agree study
aiq rank study trial --baseline nothing
aiq handicap study --trainings 1
import csv table.csv --map map.yaml --out imported
import bag bag --map topics.yaml --out bags
import lerobot set --map topics.yaml --out set-read
import eval-info eval_info.json --map side.yaml --out eval-read
plan-size width --rate 0.5 --to 0.1
plan-size at-least --rate 0.5
plan-size difference --first 0.5 --second 0.6
plan-size hours --per-100-h 1
compete new competition.yaml
compete serve competition.yaml --out cup --port 0
compete team cup first
compete beacon cup 7
compete leaderboard cup
compete close cup
compete reveal cup
compete check cup
compete try http://127.0.0.1:9
compete practice competition.yaml --agent balancer
incidents init --log log.db --station a
incidents add bumped -r arm -s minor --side real -w 2026-01-01T00:00:00Z --by me --log log.db
incidents nil --since 2026-01-01T00:00:00Z --until now -r arm --side real --by me --log log.db
incidents list --log log.db
incidents list --log postgresql://h/db
incidents show a/2 --log log.db
incidents todo --log log.db
incidents test a/2 --log log.db
incidents correct a/2 --reason r --description d --by me --log log.db
incidents reclassify a/2 -s major --reason r --by me --log log.db
incidents attach a/2 plan.yaml --by me --log log.db
incidents review a/2 --confirm --by me --log log.db
incidents act a/2 look --owner me --due 2026-02-01 --by me --log log.db
incidents check a/2 --effective --how seen --by me --log log.db
incidents close a/2 --note n --by me --log log.db
incidents redact a/2 --field description --reason r --by me --log log.db
evidence new faults --out faults.csv
incidents told a/2 --to them --by me --log log.db
incidents capture trial --log log.db
incidents exposure trial --log log.db
incidents withdraw a/3 --reason r --by me --log log.db
incidents rates --log log.db
incidents trends --log log.db
incidents checkpoint -o kept.json --key key.pem --by me --log log.db
incidents checkpoint -o stamped.json --key key.pem --stamp http://h/ --by me --log log.db
incidents merge other.db --log log.db
incidents import table.csv --by me --log log.db
incidents import table.csv --map map.yaml --by me --log log.db
incidents export --out all.jsonl --log log.db
incidents export --out all.html --log log.db
incidents pack a/2 --out one.zip --key key.pem --by me --log log.db
incidents notify notify.toml --log log.db
incidents schema
incidents serve --log log.db
incidents user add me --role reviewer --by me --log log.db
incidents user list --log log.db
incidents user passwd me --by me --log log.db
incidents user roles me --role reviewer --by me --log log.db
incidents user remove me --by me --log log.db
""".strip().splitlines()
BLOCKER = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec

def found(cls, name, path=None, target=None):
    return None if name.partition(".")[0] in {blocked!r} else find(name, path, target)

PathFinder.find_spec = classmethod(found)
"""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    err: str


def modules_of_extras(*, but: str = "") -> dict[str, str]:
    """Modules that only an extra brings, by the extra."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    plain = re.compile(r"[\w.-]+")

    def named(requirements: list[str]) -> set[str]:
        found = (plain.match(text) for text in requirements)
        return {one[0].lower().replace("_", "-") for one in found if one}

    base = named(project["dependencies"])
    extras = {name: named(of) for name, of in project["optional-dependencies"].items()}
    mine = {
        dist: extra
        for extra, dists in extras.items()
        if extra not in ("dev", but)
        for dist in dists - base - extras.get(but, set())
    }
    return {
        module: mine[dist.lower().replace("_", "-")]
        for module, dists in packages_distributions().items()
        for dist in dists
        if dist.lower().replace("_", "-") in mine and not module.startswith("_")
    }


def leaves(command: Any, path: tuple[str, ...] = ()) -> list[str]:
    if not hasattr(command, "list_commands"):
        return [" ".join(path)]
    names = command.list_commands(typer.Context(command))
    return [
        leaf
        for name in names
        for leaf in leaves(command.get_command(typer.Context(command), name), (*path, name))
    ]


def test_every_verb_is_tried() -> None:
    for verb in set(leaves(typer.main.get_command(app))) - {"demo"}:  # which is run, played again
        assert any(command.startswith(f"{verb} ") or command == verb for command in COMMANDS), verb


def check_every_verb(bare: Callable[..., Ended], commands: Any, extra: str, folder: Path) -> None:
    """Give each command where only one extra is installed, or none.

    Args:
        bare: Runs a command there.
        commands: Runs one where nothing is missing.
        extra: What is installed.
        folder: Where to.
    """
    magnitudes = PLAN.replace("levels: [0]", "axes: {cart_mass: [2]}")
    assert magnitudes != PLAN
    (folder / "magnitudes.yaml").write_text(magnitudes)
    for name, text in (("plan", PLAN), ("suite", SUITE), ("remote", REMOTE), ("digits", DIGITS)):
        (folder / f"{name}.yaml").write_text(text)
    (folder / "bag").mkdir()
    (folder / "bag/a.bag").write_bytes(b"#ROSBAG V2.0\n")
    (folder / "topics.yaml").write_text(TOPICS)
    (folder / "robot.yaml").write_text("name: x\n")
    (folder / "table.csv").write_text("p,s\na,1\n")
    (folder / "eval_info.json").write_text('{"per_episode": [{"success": true}]}')
    (folder / "side.yaml").write_text("constants: {task: t, policy: p, side: sim}\n")
    (folder / "map.yaml").write_text(
        "columns: {policy: p, success: s}\nconstants: {task: t, family: f, side: real, robot: r}\n"
    )
    made = ["run plan.yaml --out trial --no-report", "incidents init --log other.db --station b"]
    made += [] if extra else ["aiq run suite.yaml --out study --workers 1"]
    for command in made:
        assert commands(*shlex.split(command), folder=folder).code == 0, command
    named = set()
    for command in COMMANDS:
        # It would go on for ever where nothing is missing.
        endless = command.startswith(("serve-policy", "compete serve", "compete practice"))
        done = bare(*shlex.split(command), folder=folder, endless=endless)
        assert done.code in ((0, 1, 2, -14) if endless else (0, 1, 2)), (command, done)
        assert "Traceback" not in done.err, (command, done)
        assert "ModuleNotFoundError" not in done.err, (command, done)
        assert "No module named" not in done.err, (command, done)
        if "pip install" in done.err:
            assert done.code == 2, (command, done)
            named |= set(re.findall(r"robo-eval-stack\[([\w,]+)\]", done.err))
    expected = {"agitb", "bags", "parquet", "postgres", "remote", "server", "stamp", "study"}
    assert expected | {"ray" if extra else "sim"} <= named


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["", "sim"])
def test_a_missing_extra_is_named_with_its_command(commands_with, commands, tmp_path, extra):
    blocked = modules_of_extras(but=extra)
    assert set(blocked) > {
        "sklearn", "fastapi", "numba", "pyarrow", "rosbags", "websockets", "psycopg", "ray",
        "rclpy",
    }  # fmt: skip
    assert ("pybullet" in blocked) == (not extra)
    (tmp_path / "sitecustomize.py").write_text(BLOCKER.format(blocked=set(blocked)))
    run = commands_with(PYTHONPATH=str(tmp_path))

    def bare(*command: str, folder: Path, endless: bool) -> Ended:
        done = run(*command, folder=folder, limit_s=2 if endless else 60)
        return Ended(done.code, done.err)

    try:
        check_every_verb(bare, commands, extra, tmp_path)
    finally:
        run.close()


@pytest.mark.slow
def test_every_verb_ends_calmly_in_a_real_environment(installed, commands, tmp_path):
    real = installed("")

    def bare(*command: str, folder: Path, endless: bool) -> Ended:
        done = real.ended(real.command, *command, folder=folder, limit_s=300)
        return Ended(done.returncode, done.stderr)

    check_every_verb(bare, commands, "", tmp_path)
