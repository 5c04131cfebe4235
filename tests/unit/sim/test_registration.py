"""`gymnasium.make` finds the environments although nobody imported us, and quickly."""

from __future__ import annotations

import subprocess
import sys


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_found_without_importing_us() -> None:
    assert "(320,)" in run(
        "import gymnasium\n"
        "env = gymnasium.make('RoboEval/CartPole3D-v0')\n"
        "print(env.reset(seed=1)[0].shape)\n"
    )


def test_importing_gymnasium_imports_no_simulator() -> None:
    assert run(
        "import sys, gymnasium\n"
        "print('RoboEval/CartPole3D-v0' in gymnasium.registry, 'pybullet' in sys.modules)"
    ).split() == ["True", "False"]


def test_starting_python_imports_neither() -> None:
    assert run("import sys\nprint('gymnasium' in sys.modules, 'numpy' in sys.modules)").split() == [
        "False",
        "False",
    ]


def test_registering_twice_does_no_harm() -> None:
    out = run(
        "from robo_eval_sim.registration import register_environments\n"
        "register_environments(); register_environments()\n"
        "from robo_eval_sim.plugin import install\n"
        "install(); install()\n"
        "import gymnasium\n"
        "print(gymnasium.spec('RoboEval/CartPole3D-v0').max_episode_steps)\n"
    )
    assert out.strip() == "None"


def test_the_engine_prints_nothing() -> None:
    assert run("import robo_eval_sim.tasks.cartpole3d.scene") == ""


def test_missing_engine_is_reported_with_the_command_that_adds_it() -> None:
    out = run(
        "import sys\n"
        "sys.modules['pybullet'] = None\n"
        "import gymnasium\n"
        "from robo_eval.core.errors import MissingExtraError\n"
        "try:\n"
        "    gymnasium.make('RoboEval/CartPole3D-v0')\n"
        "except MissingExtraError as err:\n"
        "    print(err)\n"
    )
    assert 'pip install "robo-eval-stack[sim]"' in out


def test_levels_are_listed_without_engine_and_gymnasium() -> None:
    out = run(
        "import sys\n"
        "from robo_eval_sim.novelty import levels\n"
        "print(len(levels()), 'pybullet' in sys.modules, 'gymnasium' in sys.modules)"
    )
    assert out.split() == ["17", "False", "False"]
