"""RoboEval/RosRobot-v0: a robot behind ROS 2 as a Gymnasium environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Final

import gymnasium

from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval.core.names import unknown_name
from robo_eval_robot.adapter import load_adapter
from robo_eval_robot.config import RobotConfig, read_robot
from robo_eval_robot.link import RUNNING, STOPPED, RobotLink, RobotLostError
from robo_eval_robot.snapshot import Snapshot
from robo_eval_robot.stagehand import Scene, Stagehand, TwinStagehand
from robo_eval_robot.timing import Pace, Timing

_GUARD_S: Final = 0.5
"""The guard speaks ten times a second."""


class RosRobotEnv(gymnasium.Env[Any, Any]):
    """Plays a task on a robot: a step publishes the command and waits for the next control tick.

    Observations, actions and rewards are those of the task in the simulator, so policies need not
    know where they play. Every command passes the guard; when it stops the robot the episode is
    terminated with `info["end_reason"] = "safety_stop"`.

    Args:
        robot: Robot file, or what was read from it.
        task: Gymnasium id of the task, of those that the robot file lists; by default the first.
        link: A connection that is there already; else one is made, which wants a running guard.
        stagehand: Who sets episodes up; by default the twin itself.
        render_mode: None; a robot is watched, not drawn.
        **keywords: Of the task, such as level and difficulty.

    Raises:
        InputError: If the file cannot be used, robot or guard are not there, or the robot cannot
            play the task.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(
        self,
        *,
        robot: str | Path | RobotConfig,
        task: str = "",
        link: RobotLink | None = None,
        stagehand: Stagehand | None = None,
        render_mode: str | None = None,
        **keywords: Any,
    ) -> None:
        if render_mode is not None:
            raise unknown_name("render_mode", render_mode, ["None"])
        config = robot if isinstance(robot, RobotConfig) else read_robot(Path(robot))
        self.config: Final = config
        self.task: Final = task or next(iter(config.tasks), "")
        self.keywords: Final = keywords
        self._adapter = load_adapter(config, self.task, keywords)
        self.observation_space = self._adapter.observation_space
        self.action_space = self._adapter.action_space
        self._owns_link = link is None
        self._link = link or RobotLink(config, "policy")
        if link is None:
            try:
                self._link.connect()
            except BaseException:
                self._link.close()
                raise
        if stagehand is None:
            if config.body != "twin":
                raise InputError(
                    f"robot {config.name!r}: somebody must set its episodes up; give a `stagehand`"
                )
            stagehand = TwinStagehand(self._link)
        self._stagehand = stagehand
        self._tick = 0
        self._last: Snapshot | None = None
        self._is_running = False
        self._episodes = 0
        self.initial_state: dict[str, Any] = {}
        """Physical state the episode really started in."""
        self.timing = Timing(self._adapter.tick_s, config)
        """Of the episode, so far."""
        self._pace = Pace(self._adapter.tick_s, config.state.rate_hz)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Set an episode up and start it.

        Args:
            seed: Seed of the episode.
            options: `{"state": ...}`: where it should start, for a robot that can be put there.

        Raises:
            RobotLostError: If robot or guard do not answer.
            CheckFailedError: If the episode cannot be set up, or the guard refuses motion.
        """
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(2**31 - 1))
        self.finish()
        self._episodes += 1
        self.prepare(seed=seed, episode_id=f"episode-{self._episodes}", options=options)
        return self.start(), {}

    def prepare(
        self, *, seed: int, episode_id: str, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Have an episode set up; nothing moves yet.

        Returns:
            The measured state it would start from.

        Raises:
            RobotLostError: If the robot does not answer.
            CheckFailedError: If the robot is not where an episode can start, or the guard cannot be
                reset.
        """
        for name in options or {}:
            if name != "state":
                raise unknown_name("option", name, ["state"])
        scene = Scene(
            task=self.task,
            keywords=self.keywords,
            seed=seed,
            episode_id=episode_id,
            state=(options or {}).get("state"),
            within_s=self.config.tasks[self.task].settle_s,
        )
        since_ns = self._stagehand.arrange(scene)
        self._link.forget_before(since_ns)
        # Afterwards: what stopped it may be gone only now, such as a cart beyond its limits.
        if self._link.guard.state in STOPPED:
            self._stagehand.may_reset(self._link.guard.cause)
            self._link.reset()
        state = self._adapter.state(self._link.fresh(since_ns), 0)
        problem = self._adapter.check_start(state)
        if problem is not None:
            raise CheckFailedError(f"robot {self.config.name!r}: cannot start: {problem}")
        return state

    def deviation_problem(self, state: dict[str, Any], planned: dict[str, Any]) -> str | None:
        """How a start differs from the planned one by more than the robot file allows."""
        found = self._adapter.deviation(state, planned)
        for name, limit in self.config.tasks[self.task].initial_state.tolerance.items():
            if name not in found:
                raise unknown_name(f"tasks.{self.task}.initial_state.tolerance", name, found)
            if found[name] > limit:
                return f"{name} is {found[name]:.4g} from the planned start, {limit:g} is allowed"
        return None

    def observe(self) -> Any:
        """What the policy would see now, without starting anything."""
        return self._adapter.observation(self._adapter.state(self._link.fresh(), 0))

    def start(self) -> Any:
        """Open the guard and give the first observation, which has just been measured.

        Raises:
            RobotLostError: If robot or guard do not answer.
            CheckFailedError: If the guard refuses motion.
        """
        self._stagehand.let_go()
        self._link.enable()
        self.timing = Timing(self._adapter.tick_s, self.config)
        self._tick = 0
        # The newest state may be almost a period old; an action must meet the tick it is for.
        self._last = self._link.fresh()
        self._is_running = True
        self.initial_state = self._adapter.state(self._last, 0)
        self.timing.observed(self._last)
        return self._adapter.observation(self.initial_state)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Ask for a command and wait for the next control tick.

        Raises:
            InputError: If the action is not one of the task, or no episode runs.
            RobotLostError: If states stop coming, or the guard is gone.
        """
        if not self._is_running or self._last is None:
            raise InputError("step: no episode runs; call reset() first")
        command = self._adapter.command(action)
        self._link.request(command)
        self.timing.requested(command)
        snapshot = self._next_tick(self._last)
        self._tick += 1
        arrived = self._link.snapshots_after(self._last.stamp_ns)
        self.timing.answered(arrived)
        if snapshot is None:
            return self._stopped()
        self.timing.observed(snapshot, arrived)
        self._last = snapshot
        state = self._adapter.state(snapshot, self._tick)
        terminated, truncated = self._adapter.is_over(state, self._tick)
        if terminated or truncated:
            # What the guard says of this state may still be on its way; a fall after its stop is
            # its stop.
            self._link.wait(lambda: self._link.has_judged(snapshot), _GUARD_S)
        if self._link.guard.state != RUNNING:
            return self._stopped()
        if terminated or truncated:
            self.finish()
        reward = self._adapter.reward(state)
        return self._adapter.observation(state), reward, terminated, truncated, {}

    def finish(self) -> None:
        """Close the guard, which stops the robot; nothing if no episode runs."""
        if self._is_running:
            self._is_running = False
            self._link.disable()

    def close(self) -> None:
        """Stop the robot and leave; closing twice does nothing."""
        try:
            self.finish()
        finally:
            if self._owns_link:
                self._link.close()

    def _next_tick(self, last: Snapshot) -> Snapshot | None:
        """The state at the next control tick; None if the guard stopped the robot first."""
        due_ns = self._pace.next(last.stamp_ns)
        deadline = self._link.listened_s + self._link.state_patience_s
        while self._link.listened_s < deadline:
            snapshot = self._link.next_snapshot(due_ns, self._adapter.tick_s)
            if snapshot is not None:
                return snapshot
            if self._link.guard.state != RUNNING:
                return None
        raise RobotLostError(f"robot {self.config.name!r}: states stopped coming")

    def _stopped(self) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The guard stopped the robot: the episode is over, whatever the policy wants."""
        self._is_running = False
        assert self._last is not None
        state = self._adapter.state(self._last, self._tick)
        info = {"end_reason": "safety_stop", "cause": self._link.guard.cause}
        return self._adapter.observation(state), 0.0, True, False, info
