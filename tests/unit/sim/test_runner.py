"""The runner logs every attempt: what broke is a row, never an exception or a score."""

import builtins
import re
import time
from typing import ClassVar

import gymnasium
import numpy as np
import pytest

from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval_sim.runner import check_plan, run_simulated


class Patched(gymnasium.Env):
    """Counts to five; does what its keywords say on the way."""

    metadata: ClassVar = {"render_modes": [], "render_fps": 10}
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, reward=0.2, info=None, shared_buffer=False, breaks=None):
        self._reward, self._info, self._breaks = reward, info or {}, breaks
        self._buffer = np.zeros(2) if shared_buffer else None
        self._tick = 0

    def _observation(self):
        if self._buffer is None:
            return np.full(2, self._tick / 10)
        self._buffer[:] = self._tick / 10
        return self._buffer

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._tick = 0
        return self._observation(), {}

    def step(self, action):
        self._tick += 1
        if self._breaks == "hangs" and self._tick == 3:
            time.sleep(1e6)
        elif self._breaks and self._tick == 3:
            raise getattr(builtins, self._breaks)("no more")
        return self._observation(), self._reward, self._tick == 5, False, self._info


@pytest.fixture(autouse=True)
def patched_environment():
    gymnasium.register("test/Patched-v0", entry_point=Patched, disable_env_checker=True)
    yield
    del gymnasium.registry["test/Patched-v0"]


def run(folder, *, kwargs="{}", more="", episodes=3, traces="none"):
    plan = parse_plan(
        f"name: x\ntasks: [{{env: test/Patched-v0, kwargs: {kwargs}}}]\n"
        "policies: [nothing]\n"
        f"episodes: {episodes}\ntraces: {traces}\n{more}",
        source="plan",
    )
    trial = TrialDirectory.create(folder, plan)
    result = run_simulated(trial, jobs=1)
    with EpisodeStore(folder, durable=False) as store:
        return result, list(store.episodes())


def test_a_finished_episode_is_scored_by_its_return(tmp_path):
    result, rows = run(tmp_path / "t")
    assert (result.planned, result.unscored) == (3, 0)
    assert [row.quality for row in rows] == [1.0, 1.0, 1.0]
    assert all(row.success and row.ticks == 5 and row.duration_s == 0.5 for row in rows)


@pytest.mark.parametrize("reward", [".nan", ".inf"])
def test_a_reward_that_is_no_number_is_a_fault(tmp_path, reward):
    result, rows = run(tmp_path / "t", kwargs=f"{{reward: {reward}}}")
    assert result.unscored == 3
    assert {row.end_reason for row in rows} == {"fault"}
    assert all(row.quality is None and row.episode_return is None for row in rows)
    assert all("finite" in row.end_detail for row in rows)


@pytest.mark.parametrize(
    ("breaks", "by"),
    [
        ("RuntimeError", "setup"),
        ("ConnectionResetError", "setup"),
        ("SystemExit", "setup"),
        ("TimeoutError", "time"),
    ],
)
def test_a_world_that_breaks_is_no_fault_of_the_policy(tmp_path, breaks, by):
    _, rows = run(tmp_path / "t", kwargs=f"{{breaks: {breaks}}}")
    assert [(row.end_reason, row.fault_by, row.ticks) for row in rows] == [("fault", by, 2)] * 3
    assert all(breaks in row.end_detail for row in rows)


def test_a_world_that_hangs_is_a_fault_by_time(tmp_path, monkeypatch):
    from robo_eval.agents import confined
    from robo_eval_sim import worker

    monkeypatch.setattr(worker, "WORLD_LIMIT_S", 0.5)
    monkeypatch.setattr(confined, "_MAKING", (0.5, 0.0))
    _, rows = run(tmp_path / "t", kwargs="{breaks: hangs}", episodes=2)
    assert [(row.end_reason, row.fault_by, row.ticks) for row in rows] == [("fault", "time", 2)] * 2
    assert rows[0].end_detail == "the environment did not go on within 0.5 s (tick 2)"


def test_a_fault_in_scoring_is_by_the_setup(tmp_path):
    _, rows = run(tmp_path / "t", kwargs="{info: {end_reason: nonsense}}")
    assert {row.fault_by for row in rows} == {"setup"}


def test_a_safety_stop_named_by_the_environment_is_no_success(tmp_path):
    _, rows = run(tmp_path / "t", kwargs="{info: {end_reason: safety_stop}}")
    assert {row.end_reason for row in rows} == {"safety_stop"}
    assert not any(row.success for row in rows)


def test_an_unknown_end_reason_is_a_fault_that_names_it(tmp_path):
    _, rows = run(tmp_path / "t", kwargs="{info: {end_reason: saftey_stop}}")
    assert {row.end_reason for row in rows} == {"fault"}
    assert "did you mean 'safety_stop'" in rows[0].end_detail


def test_faults_are_tried_again_as_rows_of_their_own(tmp_path):
    result, rows = run(
        tmp_path / "t", kwargs="{info: {end_reason: nonsense}}", more="retries: 2", episodes=2
    )
    assert (result.planned, result.played, result.unscored) == (2, 6, 2)
    assert sorted(row.attempt for row in rows) == [1, 1, 2, 2, 3, 3]
    assert len({row.episode_id for row in rows}) == 6


def test_an_environment_that_reuses_its_buffer_is_recorded_right(tmp_path):
    from robo_eval.log.trace import read_trace

    _, rows = run(tmp_path / "t", kwargs="{shared_buffer: true}", traces="all", episodes=1)
    trace = read_trace(tmp_path / "t" / rows[0].trace_uri)
    recorded = trace.trajectory.observations if hasattr(trace, "trajectory") else trace.observations
    assert recorded[:, 0].tolist() == [tick / 10 for tick in range(6)]


def test_a_time_limit_of_the_plan_ends_an_episode(tmp_path):
    plan = parse_plan(
        "name: x\ntasks: [{env: test/Patched-v0, max_ticks: 3}]\n"
        "policies: [nothing]\nepisodes: 1\ntraces: none\n",
        source="plan",
    )
    run_simulated(TrialDirectory.create(tmp_path / "t", plan), jobs=1)
    with EpisodeStore(tmp_path / "t", durable=False) as store:
        (row,) = store.episodes()
    assert (row.ticks, row.end_reason, row.success) == (3, "timeout", False)


class Quits:
    """A policy that ends the interpreter instead of acting."""

    name, digest = "quits", "4" * 64

    def reset(self, *, seed=None):
        pass

    def act(self, observation):
        raise SystemExit(0)


def test_a_policy_that_exits_is_a_fault(tmp_path, monkeypatch):
    import robo_eval.agents

    monkeypatch.setattr(robo_eval.agents, "quits", Quits, raising=False)
    plan = parse_plan(
        "name: x\ntasks: [{env: test/Patched-v0}]\n"
        "policies: [{name: quits, factory: 'robo_eval.agents:quits'}]\nepisodes: 2\n",
        source="plan",
    )
    result = run_simulated(TrialDirectory.create(tmp_path / "t", plan), jobs=1)
    assert result.unscored == 2
    with EpisodeStore(tmp_path / "t", durable=False) as store:
        assert {(row.end_reason, row.fault_by) for row in store.episodes()} == {("fault", "policy")}


def test_a_policy_that_changed_is_refused_on_resume(tmp_path, monkeypatch):
    import robo_eval.agents

    monkeypatch.setattr(robo_eval.agents, "changing", Quits, raising=False)
    plan = parse_plan(
        "name: x\ntasks: [{env: test/Patched-v0}]\n"
        "policies: [{name: quits, factory: 'robo_eval.agents:changing'}]\nepisodes: 2\n",
        source="plan",
    )
    trial = TrialDirectory.create(tmp_path / "t", plan)
    run_simulated(trial, jobs=1)
    monkeypatch.setattr(Quits, "digest", "5" * 64)
    with pytest.raises(ValueError, match="policy 'quits' is not the one of the logged episodes"):
        run_simulated(trial, jobs=1)


WORLDS = """
import os
import sys
import time

import gymnasium


class exits(gymnasium.Env):
    def __init__(self):
        os._exit(0)


class ends_the_program(gymnasium.Env):
    def __init__(self):
        sys.exit(0)


class raises(gymnasium.Env):
    def __init__(self):
        raise RuntimeError("no licence")


class never_comes(gymnasium.Env):
    def __init__(self):
        time.sleep(1e6)


for world in (exits, ends_the_program, raises, never_comes):
    gymnasium.register(f"Lab/{world.__name__}-v0", entry_point=world)
"""


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ("worlds:Lab/exits-v0", "the process that made it ended"),
        ("worlds:Lab/ends_the_program-v0", "cannot be made with {}: SystemExit: 0"),
        ("worlds:Lab/raises-v0", "cannot be made with {}: RuntimeError: no licence"),
        ("worlds:Lab/never_comes-v0", "was not made within 2 s"),
        ("exits_when_imported:Lab/x-v0", "the process that made it ended"),
        ("ends_when_imported:Lab/x-v0", "cannot be made with {}: SystemExit: 0"),
    ],
)
def test_a_world_of_somebody_else_does_not_end_the_check(tmp_path, monkeypatch, env, said):
    import robo_eval_sim.runner as runner

    (tmp_path / "worlds.py").write_text(WORLDS)
    (tmp_path / "exits_when_imported.py").write_text("import os\nos._exit(0)\n")
    (tmp_path / "ends_when_imported.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    if "never" in env:
        monkeypatch.setattr(runner, "WORLD_LIMIT_S", 2.0)
    text = f"name: x\ntasks: [{{levels: [0]}}, {{env: {env}, quality_range: [0, 1]}}]\n"
    plan = parse_plan(text + "policies: [nothing]\n", source="plan")
    with pytest.raises(ValueError, match=re.escape(said)) as raised:
        check_plan(plan)
    assert str(raised.value).startswith("tasks.1")


def test_check_plan_refuses_what_cannot_be_made(tmp_path):
    plan = parse_plan(
        "name: x\ntasks: [{env: test/Patched-v0, kwargs: {rewrad: 1}}]\npolicies: [nothing]\n",
        source="plan",
    )
    with pytest.raises(Exception, match="rewrad"):
        check_plan(plan)
