"""The registry is the test plan: each task that is installed keeps the contract, level by level."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from robo_eval.core.errors import PlanError
from robo_eval.core.plan import parse_plan
from robo_eval.core.task import tasks
from robo_eval_sim.runner import check_plan

CONTRACT = Path(__file__).with_name("contract.py")
ENVS = [*tasks(), "Lab/SlidePuck-v0"]


def lines_of(env: str, installed: dict[str, str], *how: str) -> list[str]:
    """What a fresh process says of a task."""
    done = subprocess.run(
        [sys.executable, CONTRACT, env, *how], capture_output=True, text=True, env=installed
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("env", "how"),
    [
        # The drawer stands for both tasks of the arm.
        *((env, ("quick",)) for env in ENVS if "PickPlace" not in env),
        *(pytest.param(env, (), marks=pytest.mark.slow) for env in ENVS),
    ],
)
def test_it_keeps_the_contract_and_repeats_in_another_process(
    env: str, installed: dict[str, str], how: tuple[str, ...]
) -> None:
    first = lines_of(env, installed, *how)
    assert first
    assert len(set(first)) == len(first)
    assert lines_of(env, installed, *how) == first


OTHER = """
class Other:
    name, digest = "other", "0" * 64

    def reset(self, *, seed=None):
        pass

    def act(self, observation):
        return [0.0] * 50


def make():
    return Other()
"""


@pytest.mark.parametrize("env", tasks())
def test_a_policy_of_another_task_is_refused_before_the_first_tick(
    env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other_task.py").write_text(OTHER)
    monkeypatch.syspath_prepend(tmp_path)
    text = f"name: x\ntasks: [{{env: {env}}}]\npolicies: [{{name: p, factory: 'other_task:make'}}]"
    with pytest.raises(PlanError, match=r"^policies\.0: 'p' cannot act on tasks\.0") as raised:
        check_plan(parse_plan(text, source="plan"))
    assert "50 numbers" in str(raised.value)
    assert "would do" in str(raised.value)


@pytest.mark.parametrize("env", tasks())
def test_it_says_what_it_is(env: str) -> None:
    spec = tasks()[env]
    assert spec.tick_s > 0.0
    assert spec.max_ticks > 0
    for text in (spec.end, spec.success, spec.quality or "."):
        assert text.endswith(".")
    assert len(spec.pushes) in (0, len(spec.actions))
    for number, level in spec.levels().items():
        assert level.number == number
        row = level.as_dict("paper")
        assert row["effect"]
        assert set(row["ranges"]) == {"easy", "medium", "hard"}
