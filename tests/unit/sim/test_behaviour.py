"""The digest of how a level behaves: it stays when code is moved, and changes with the level."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

import robo_eval_sim.tasks.cartpole3d.environment as module
from robo_eval.core.errors import InputError, InterruptedRunError
from robo_eval.core.kinds import Difficulty, Profile, Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval_sim import environment
from robo_eval_sim.novelty import Fixed, Range, base, levels, load_level
from robo_eval_sim.play import Stage, declared
from robo_eval_sim.runner import run_simulated
from robo_eval_sim.tasks.cartpole3d import levels as own_levels
from robo_eval_sim.tasks.cartpole3d.layout import PUSHES

LEVEL_1 = Path(own_levels.__file__).with_name("level_01_cart_mass.py")
OWN = LEVEL_1.read_text().replace("level=1,", "level=31,")
HEAVIER = OWN.replace("Fixed(5.0", "Fixed(6.0")
CHANGES = {
    "gravity": {"gravity_m_s2": 9.9},
    "cart": {"cart_mass_kg": 1.05},
    "pole": {"pole_mass_kg": 0.11},
    "length": {"pole_length_m": 1.1},
    "size of balls": {"ball_radius_m": 0.45},
    "weight of balls": {"balls_fall": True},
    "walls": {"wall_restitution": 0.9},
}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write a level into a folder of its own, look for levels there, and say how it behaves."""

    def write(text: str, file: str) -> str:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / file).write_text(text)
        monkeypatch.setenv("ROBO_EVAL_LEVELS", str(folder))
        return behaviour(31)

    return write


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    environment._behaviour.cache_clear()
    yield
    environment._behaviour.cache_clear()


def behaviour(level: int, difficulty: str = "easy", profile: str = "paper", **more: object) -> str:
    env = module.CartPole3DEnv(level=level, difficulty=difficulty, profile=profile, **more)
    env.close()
    return env.behaviour


def test_a_level_that_is_moved_and_written_otherwise_behaves_the_same(own) -> None:
    first = own(OWN, "level_31.py")
    moved = "# why\n" + OWN.replace("class CartMass", "class Heavier").replace('"""Level 1', '"""')
    assert own(moved, "level_elsewhere.py") == first
    assert behaviour(1) == first  # neither its number nor where it lies matters
    assert own(HEAVIER, "level_31.py") != first


def test_where_the_code_lies_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = behaviour(14)
    environment._behaviour.cache_clear()
    for part in (module, base):
        monkeypatch.setattr(part, "__file__", "/elsewhere/moved.py")
    assert behaviour(14) == before


@pytest.mark.parametrize("number", [n for n in levels() if n])
def test_every_number_of_a_level_counts(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    level = load_level(number)
    for profile in Profile:
        table = level.tables[profile][Difficulty.HARD]
        before = behaviour(number, "hard", profile)
        for name, entry in table.items():
            changed = {**level.tables[profile], Difficulty.HARD: {**table, name: more(entry)}}
            with monkeypatch.context() as patch:
                patch.setattr(type(level), "tables", {**level.tables, profile: changed})
                environment._behaviour.cache_clear()
                assert behaviour(number, "hard", profile) != before, f"{profile}: {name} {entry}"


def more(entry: Fixed | Range) -> Fixed | Range:
    if isinstance(entry, Range):
        return replace(entry, low=1.05 * entry.low, high=1.05 * entry.high)
    is_count = isinstance(entry.value, int)
    return replace(entry, value=entry.value + 1 if is_count else 1.05 * entry.value)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_all_levels_share_counts(name: str, monkeypatch) -> None:
    before = behaviour(0)
    environment._behaviour.cache_clear()
    monkeypatch.setattr(module, "LEVEL_0", replace(module.LEVEL_0, **CHANGES[name]))
    assert behaviour(0) != before


def test_a_reward_or_an_end_that_changes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {behaviour(0)}
    for name, value in (("_REWARD", 0.01), ("has_fallen", lambda *_: False)):
        environment._behaviour.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            found.add(behaviour(0))
    assert len(found) == 3


@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("number", list(levels()))
def test_the_last_bits_of_another_machine_do_not_count(number, profile, monkeypatch) -> None:
    before = behaviour(number, "medium", profile)
    environment._behaviour.cache_clear()
    pushes = tuple((x * (1 + 1e-10), y * (1 + 1e-10), 0.0) for x, y in PUSHES)
    monkeypatch.setattr(module, "_FORCES", pushes)
    assert behaviour(number, "medium", profile) == before


def test_balls_do_not_matter_and_level_0_has_no_difficulty() -> None:
    assert behaviour(3, balls=2) == behaviour(3) != behaviour(3, "hard")
    assert behaviour(0) == behaviour(0, "hard") != behaviour(0, profile="compat")


# Rows --------------------------------------------------------------------------------------------


def test_played_rows_carry_behaviour_version_engine_and_numerics(tmp_path: Path) -> None:
    tasks = [{"levels": [1], "difficulties": ["hard"]}, {"env": "CartPole-v1"}]
    plan = TrialPlan.model_validate(
        {"name": "x", "tasks": tasks, "policies": ["random"], "episodes": 1, "traces": "none"}
    )
    run_simulated(trial := TrialDirectory.create(tmp_path / "t", plan), jobs=1)
    ours, other = trial.frame().to_dict(orient="records")
    assert ours["behaviour"] == behaviour(1, "hard")
    assert (ours["task_version"], other["task_version"]) == ("v0", "v1")
    assert ours["engine"].startswith(("pybullet 3.", "pybullet-arm64 3."))
    assert ours["numerics"] == other["numerics"]
    assert ours["numerics"].startswith("numpy 2.")
    assert (other["behaviour"], other["engine"]) == (None, None)


def test_a_level_that_breaks_costs_no_run(own, tmp_path: Path) -> None:
    broken = "    def physics(self, drawn):\n        raise RuntimeError('torn')\n"
    with pytest.raises(RuntimeError, match="torn"):
        own(OWN[: OWN.index("    def physics")] + broken, "level_31.py")
    plan = TrialPlan.model_validate(
        {"name": "x", "tasks": [{"levels": [31]}], "policies": ["random"], "episodes": 1}
    )
    stage = Stage(plan, "", tmp_path)
    (first, *_) = schedule(plan, Side.SIM)
    row = stage.play(first)
    assert (row.end_reason, row.behaviour) == ("fault", None)
    assert declared(stage.environment(first)).keys() == {"engine"}
    stage.close()


def test_a_trial_is_not_continued_with_a_level_that_changed(own, tmp_path: Path) -> None:
    before = own(OWN, "level_31.py")
    plan = TrialPlan.model_validate(
        {"name": "x", "tasks": [{"levels": [31]}], "policies": ["random"], "episodes": 20,
         "traces": "none"}
    )  # fmt: skip
    trial = TrialDirectory.create(tmp_path / "t", plan)

    with pytest.raises(InterruptedRunError):
        run_simulated(trial, jobs=1, on_progress=lambda *_: signal.raise_signal(signal.SIGINT))
    kept = len(trial.frame())
    assert 0 < kept < len(schedule(plan, Side.SIM))
    after = own(HEAVIER, "level_31.py")
    said = rf"level 31 easy \(paper\) behaves otherwise .* {before[:12]}, now {after[:12]}; .*pyb"
    with pytest.raises(InputError, match=said):
        run_simulated(trial, jobs=1)
    assert len(trial.frame()) == kept
    assert own(OWN + "# only words\n", "level_31.py") == before
    assert run_simulated(trial, jobs=1).unscored == 0


def test_a_task_without_levels_that_changed_is_not_continued_either(tmp_path, monkeypatch) -> None:
    plan = TrialPlan.model_validate(
        {"name": "x", "tasks": [{"env": "CartPole-v1"}], "policies": ["random"], "episodes": 20,
         "traces": "none"}
    )  # fmt: skip
    trial = TrialDirectory.create(tmp_path / "t", plan)
    monkeypatch.setattr(CartPoleEnv, "behaviour", "one", raising=False)
    with pytest.raises(InterruptedRunError):
        run_simulated(trial, jobs=1, on_progress=lambda *_: signal.raise_signal(signal.SIGINT))
    assert set(trial.frame()["behaviour"]) == {"one"}
    monkeypatch.setattr(CartPoleEnv, "behaviour", "two")
    with pytest.raises(InputError, match=r"CartPole-v1 behaves otherwise .*: one, now two; start"):
        run_simulated(trial, jobs=1)
