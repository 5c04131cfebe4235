"""A level is one file: a new one is found, listed and played without any other change."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from robo_eval.core.errors import InputError, UnknownNameError
from robo_eval_sim.novelty import levels, load_level

LEVEL_17 = '''
"""Level 17: the pole is lighter, and balls are blown upwards."""

from typing import ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty import Effect, Fixed, Level, Range, both, novelty
from robo_eval_sim.tasks.cartpole3d.physics import Physics


class _Lift(Effect):
    def push(self, tick):
        for index in range(self.world.n_balls):
            self.world.push_ball(index, (0.0, 0.0, self.drawn.parameters["lift"]))


@novelty("light_pole", level=17)
class LightPole(Level):
    effects: ClassVar = dict.fromkeys(Profile, "the pole is lighter, and balls are blown upwards")
    tables: ClassVar = both(
        {
            difficulty: {"pole_mass": Range(0.04, 0.06, "kg"), "lift": Fixed(lift, "N")}
            for difficulty, lift in zip(Difficulty, (1.0, 2.0, 4.0), strict=True)
        }
    )
    effect: ClassVar = _Lift

    def physics(self, drawn):
        return Physics(pole_mass_kg=drawn.parameters["pole_mass"])
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROBO_EVAL_LEVELS", str(tmp_path))
    return tmp_path


def test_an_18th_level_from_one_file(folder: Path, begin: Callable) -> None:
    (folder / "level_17_light_pole.py").write_text(LEVEL_17)
    assert list(levels()) == list(range(18))
    assert levels()[17].as_dict("paper")["ranges"]["hard"] == "pole_mass 0.04 to 0.06 kg; lift 4 N"
    env = begin(((0.0, 3.0, 5.0), (0.0, 0.0, 0.0)), level=17, difficulty="hard", reveal=True)
    assert 0.04 <= env.unwrapped.novelty["parameters"]["pole_mass"] < 0.06
    observation, _, _, _, info = env.step(1)
    assert info["novelty"]["name"] == "light_pole"
    assert observation[17] == pytest.approx(4.0 * 0.02)
    mass = info["novelty"]["parameters"]["pole_mass"]
    inertia = mass / 12 * (0.066**2 + 1.006**2)
    expected = 0.2 / (1.0 + mass - mass**2 / (mass + inertia))
    assert observation[2] == pytest.approx(expected, rel=1e-5)


def test_an_18th_level_is_restored_and_repeated(folder: Path) -> None:
    (folder / "level_17_light_pole.py").write_text(LEVEL_17)
    env = gymnasium.make("RoboEval/CartPole3D-v0", level=17)
    first, _ = env.reset(seed=4)
    env.step(1)
    state = env.unwrapped.get_state()
    expected = env.step(2)[0]
    env.reset(options={"state": state})
    np.testing.assert_array_equal(env.step(2)[0], expected)
    np.testing.assert_array_equal(env.reset(seed=4)[0], first)
    env.close()


def test_the_command_line_lists_an_18th_level(folder: Path) -> None:
    (folder / "level_17_light_pole.py").write_text(LEVEL_17)
    done = subprocess.run(
        [sys.executable, "-m", "robo_eval", "levels", "--json"],
        capture_output=True,
        text=True,
        env=os.environ | {"ROBO_EVAL_LEVELS": str(folder)},
        timeout=240,
    )
    assert "light_pole" in done.stdout, done.stderr


def test_without_the_variable_it_is_unknown() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown level 17; .*0, 1, 2"):
        load_level(17)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("level_17.py", "x = 1 +", "level_17.py: SyntaxError"),
        ("level_17.py", "import nothing_of_this_name", "level_17.py: ModuleNotFoundError"),
        ("level_17.py", "x = 1", "level_17.py: holds no level"),
        ("level_17.py", LEVEL_17.replace("level=17", "level=3"), "level 3 is already 'common_tar"),
        ("level_17.py", LEVEL_17.replace("level=17", "level='x'"), "level 'light_pole': a number"),
        ("level_17.py", LEVEL_17.replace("tables:", "table:"), "level 'light_pole': tables must"),
        ("level_17.py", LEVEL_17.replace("(Level)", "(Effect)"), "a subclass of Level is needed"),
    ],
)
def test_broken_level_files_are_named(folder: Path, name: str, text: str, message: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(InputError, match=message):
        levels()


def test_a_folder_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBO_EVAL_LEVELS", "/nowhere/at/all")
    with pytest.raises(InputError, match="ROBO_EVAL_LEVELS: '/nowhere/at/all' is not a folder"):
        levels()


def test_several_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (17, 18):
        folder = tmp_path / f"folder {number}"
        folder.mkdir()
        text = LEVEL_17.replace("level=17", f"level={number}")
        (folder / f"level_{number}.py").write_text(text)
        (folder / "notes.py").write_text("raise RuntimeError")
    paths = os.pathsep.join(str(path) for path in sorted(tmp_path.iterdir()))
    monkeypatch.setenv("ROBO_EVAL_LEVELS", paths)
    assert list(levels())[-2:] == [17, 18]


def test_draws_are_the_same_for_the_same_generator() -> None:
    for level in levels().values():
        for profile in level.tables:
            for difficulty in level.tables[profile]:
                one, two, other = (
                    level.sample(difficulty, profile, np.random.default_rng(seed), balls=3)
                    for seed in (1, 1, 2)
                )
                assert one == two
                has_ranges = any(
                    hasattr(entry, "low") for entry in level.tables[profile][difficulty].values()
                )
                assert not has_ranges or one != other
