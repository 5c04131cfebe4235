"""What the tasks of the arm have in common: actions, observations, stages, states, novelty."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from robo_eval.agents.kinematics import rotation_vector
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Difficulty
from robo_eval.core.names import unknown_name
from robo_eval.core.trajectory import Trajectory
from robo_eval_sim.arm import layout
from robo_eval_sim.arm.chain import CHAIN
from robo_eval_sim.arm.footprint import Footprint
from robo_eval_sim.arm.layout import JOINTS, SPEED_RAD_S, SUBSTEPS, TICK_S, WIDTH_M
from robo_eval_sim.arm.ramp import Wish
from robo_eval_sim.arm.setting import Setting
from robo_eval_sim.arm.world import TORQUE, Row, World, is_on_table
from robo_eval_sim.engine import places_seen
from robo_eval_sim.environment import TaskEnv
from robo_eval_sim.novelty import Later, Novelty
from robo_eval_sim.novelty.mixed import changed
from robo_eval_sim.spare import take

Observation: TypeAlias = Any
Array: TypeAlias = NDArray[np.float64]
ACTION_MODES: Final = ("joint_position", "joint_velocity", "ee_delta")
OBS_MODES: Final = ("state", "state+wrench", "rgbd")
IMAGE_PX: Final = 84
_LOWER, _UPPER = np.array(layout.LOWER_RAD), np.array(layout.UPPER_RAD)
_STEP_RAD: Final = np.array(SPEED_RAD_S) * TICK_S
_SQUARE_M: Final = 0.05
"""Edge of the squares of a textured table."""
_FLAT_M: Final = 0.001
"""What is seen so near to its top is the table, or lies flat on it."""
_LIGHT: Final = (-50.0, 30.0, 100.0)
"""Where the light comes from, which is the engine's own choice."""
_SLACK: Final = 1e-3
"""How far beyond its bounds an action may be: rounding, and what learners add."""
_MEASURED: Final = 0.05
"""Share by which the measured speed of a joint may be beyond its limit."""
_FAR: Final = 100.0
_JERK_TICKS: Final = 6
"""Jerk is taken over so many ticks: at 20 Hz the usual window holds too few."""
_DRAWS: Final = 20_000
"""So many draws of a novelty are looked through for one that an episode can be played with."""
_MOVED: Final = "goal_has_moved"
"""Field of a start whose goal is where the novelty has moved it to."""
_NOISE: Final = "noise_seed"
"""Field of a start whose sensors are noisy by a constant."""


class ArmEnv(TaskEnv[Observation, NDArray[np.float32]]):
    """A task of the arm; a subclass says what lies there and what is to be done with it.

    Args:
        action_mode: What an action is: positions of 7 joints (rad) and width of the gripper (m);
            velocities of the joints (rad/s) and width; or changes of the tip's position (m) and
            orientation (rotation vector, rad) in the base, and width.
        obs_mode: What is seen: numbers; numbers with force (N) and torque (N m) at the wrist; or
            a picture with depth and the numbers of the arm alone.
        **keywords: As `TaskEnv` takes them.
    """

    world_class: ClassVar[type[World]]
    setting_class: ClassVar[type[Setting]] = Setting
    own_size: ClassVar[int]
    """Numbers that the task adds to the observation."""
    keywords: ClassVar[frozenset[str]] = frozenset({"profile"})
    """Further keywords that the task takes."""
    probes = (0, 1)
    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["rgb_array"],
        "render_fps": round(1.0 / TICK_S),
    }

    def __init__(
        self,
        *,
        action_mode: str = "joint_position",
        obs_mode: str = "state",
        level: int = 0,
        difficulty: str = Difficulty.EASY,
        novelty: Mapping[str, float] | None = None,
        onset: int | Sequence[int] | None = None,
        constants: Mapping[str, float] | None = None,
        reveal: bool = False,
        render_mode: str | None = None,
        **own: Any,
    ) -> None:
        for name in own.keys() - self.keywords:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}"
            )
        super().__init__(
            action_mode=action_mode,
            obs_mode=obs_mode,
            level=level,
            difficulty=difficulty,
            novelty=novelty,
            onset=onset,
            constants=constants,
            reveal=reveal,
            render_mode=render_mode,
            **own,
        )
        for name, given, valid in (
            ("action_mode", action_mode, ACTION_MODES),
            ("obs_mode", obs_mode, OBS_MODES),
        ):
            if given not in valid:
                raise unknown_name(name, given, valid)
        self._action_mode, self._obs_mode = action_mode, obs_mode
        self._low, self._high, self._units = _bounds(action_mode)
        self.action_space = spaces.Box(
            self._low.astype(np.float32), self._high.astype(np.float32), dtype=np.float32
        )
        self.observation_space = self._observation_space()
        self._is_visible = render_mode is not None or obs_mode == "rgbd"
        self._world: World | None = None
        self._row: Row = ()
        self._tip: tuple[float, ...] = ()
        self._goal: tuple[float, ...] = ()
        self._origin: dict[str, Any] | None = None
        self._actions: list[list[float]] = []
        self._setting = self._usual = self.setting_class(**self._constants)
        self._later: Later | None = None
        self._rows: list[tuple[Row, tuple[float, ...]]] | None = None
        self._joints: list[tuple[float, ...]] = []
        self._stage = self._deepest = 0
        self._best = self._paid = self._energy_j = self._peak_n = 0.0

    # Of the task -------------------------------------------------------------------------------

    @abstractmethod
    def _start(self, rng: np.random.Generator) -> dict[str, Any]:
        """Physical fields of the things of the task and of the goal, as an episode begins."""

    @abstractmethod
    def _progress(self) -> tuple[int, float]:
        """Stages that are done now, and the share of the next one in [0, 1)."""

    @abstractmethod
    def _own(self, bias: tuple[float, float]) -> list[float]:
        """What the task adds to the observation, seen with a bias (x, y), metres."""

    @abstractmethod
    def _own_fields(self) -> dict[str, Any]:
        """Physical fields the task adds to a state, with the goal."""

    @abstractmethod
    def _given(self, fields: Mapping[str, Any]) -> tuple[list[float], list[float]]:
        """Things, as the world's row has them after the arm, and goal, from physical fields.

        Raises:
            InputError: If a field is missing or cannot be.
        """

    @abstractmethod
    def _is_possible(
        self, things: Sequence[float], goal: Sequence[float], moved: Sequence[float]
    ) -> bool:
        """Whether what the setting changes leaves something to do, and the arm able to do it.

        Args:
            things: As `_given` returns them.
            goal: As `_given` returns it.
            moved: Where the setting moves it to.
        """

    def _further(
        self, things: Sequence[float], goal: Sequence[float]
    ) -> tuple[Sequence[Footprint], int]:
        """Where further things stand, and how many places for them were turned down."""
        del things, goal
        return (), 0

    # Gymnasium ---------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Seed of everything drawn from now on.
            options: `{"state": ...}` starts from a state as `get_state` gives it. One with its
                history is restored bit for bit, by playing it again. One of measured positions
                starts there; `info["start_error"]` says how far the engine moved things that
                overlapped, in rad and m.

        Raises:
            InputError: If the options or the state cannot be used.
        """
        state = self._state_in(options)
        self._is_running = False
        super().reset(seed=seed)
        rng = self.np_random
        arm = np.array(layout.HOME_RAD) + rng.uniform(-0.02, 0.02, 7)
        start: Mapping[str, Any] = {"joint_position": arm.tolist(), **self._start(rng)}
        level_seed = int(rng.integers(2**32))
        actions: list[list[float]] = []
        if state is not None:
            start, actions = self._history_of(state)
        drawn = self._no_novelty
        if state is not None and "novelty" in state:
            drawn = self._level.read(_mapping(state, "novelty"), self._no_novelty)
            if "history" not in state and self._arm_of(start)[2] >= (drawn.onset or 0):
                start = {**start, _MOVED: True}
        elif not self._is_level_0:
            drawn = self._draw(start, np.random.default_rng(level_seed))
        if self._usual.joint_noise_rad or self._usual.object_noise_m:
            start = {_NOISE: level_seed, **start}
        self._begin(start, drawn)
        for action in actions:
            self._advance(action)
            self._paid = self._best
        self._is_running = self._stage < len(self.task.stages) and self._tick < self.task.max_ticks
        self._rows = [(self._row, self._tip)] if self.records_motion else None
        info = self._info()
        if state is not None:
            if "history" in state:
                self._check_reached(state)
            info = info | {"start_error": self._start_error(state)}
        return self._observe(), info

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Give the motors a command and let a tick pass.

        The reward is what the best progress so far grew by, so that the return is the quality: the
        share of stages done, 1 at success.

        Raises:
            InputError: If the action has another size, is not finite or beyond the bounds, or the
                episode has not begun or is over.
        """
        command = self._checked(action)
        if not self._is_running:
            raise self._not_running()
        self._advance(command)
        is_success = self._stage == len(self.task.stages)
        is_over = self._tick >= self.task.max_ticks
        self._is_running = not (is_success or is_over)
        if self._rows is not None:
            self._rows.append((self._row, self._tip))
        info = {**self._info(), "is_success": is_success, "stage": self._deepest}
        reward, self._paid = self._best - self._paid, self._best
        return self._observe(), reward, is_success, is_over and not is_success, info

    def render(self) -> NDArray[np.uint8] | None:
        """The table seen from the front as an RGB picture, shape (360, 480, 3)."""
        if self.render_mode is None:
            return None
        if self._world is None or self._origin is None:
            raise InputError("render: the episode has not begun; call reset() first")
        return self._world.engine.picture((1.35, -0.75, 0.85), (0.35, 0.0, 0.15), fov_deg=45.0)

    # Harness -----------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """The state now, as plain data that `reset(options={"state": ...})` accepts.

        Contacts depend on how they came about, so an exact restore plays the history again.
        """
        state = self.physical_state()
        history = {"start": self._origin, "actions": [list(one) for one in self._actions]}
        return state | {"novelty": self.novelty, "history": history}

    def physical_state(self) -> dict[str, Any]:
        """The physical fields of `get_state` alone, for where a seed says the rest."""
        if self._world is None or self._origin is None:
            raise InputError("get_state: the episode has not begun; call reset() first")
        return self._fields()

    def _fields(self) -> dict[str, Any]:
        row = self._row
        return {
            "joint_position": list(row[:7]),
            "joint_velocity": list(row[9:16]),
            "gripper_width": [row[7] + row[8]],
            "finger_position": list(row[7:9]),
            "finger_velocity": list(row[16:18]),
            "tip_position": list(self._tip[:3]),
            "tip_quat_xyzw": list(self._tip[3:]),
            **self._own_fields(),
            "tick": self._tick,
        }

    @staticmethod
    def channels(rows: NDArray[np.floating[Any]]) -> Array:
        """What recordings hold of states: `task.channels`, shape (T, 8).

        Args:
            rows: Observations, or states in their order, shape (T, 22) or wider.
        """
        seen = np.asarray(rows, dtype=np.float64)
        return seen[:, [*range(7), layout.GRIPPER_WIDTH]]

    def replayed(
        self,
        start: Mapping[str, Any],
        commands: NDArray[np.floating[Any]],
        constants: Mapping[str, float],
    ) -> dict[str, Array]:
        """What would be recorded of commands that are played from a state, by exact sensors.

        Args:
            start: As `reset` takes it.
            commands: Actions of T ticks, shape (T, A).
            constants: Those that are not as this environment was made with.

        Returns:
            `states` (T + 1, 8), `efforts` (T, 9), N m and N, `wrench` (T + 1, 6) and `things`
            (T + 1, K, 7), as `Recording` of the calibration calls them.

        Raises:
            InputError: If it cannot start there, or a command cannot be.
        """
        usual, asked = self._usual, dict[str, Any](self.task.checked(constants))
        self._usual = replace(usual, **asked)
        try:
            self.reset(seed=0, options={"state": dict(start)})
            assert self._world is not None
            rows, felt = [self._row], [self._world.wrench()]
            for command in commands:
                self._advance(self._checked(command))
                rows.append(self._row)
                felt.append(self._world.wrench())
        finally:
            self._usual = usual
        names, poses = self._things_seen(rows)
        table = np.array([row[: TORQUE.stop] for row in rows])
        return {
            "states": np.column_stack([table[:, :7], table[:, 7:9].sum(axis=1)]),
            "efforts": table[1:, TORQUE],
            "wrench": np.array(felt),
            "things": poses[:, [at for at, name in enumerate(names) if self.task.is_thing(name)]],
        }

    def measures(self) -> dict[str, float]:
        """Measures of the control of the episode so far: energy, and what touched how hard.

        Energy and the greatest force count every step of the engine; jerk is that of positions once
        a tick.
        """
        return {
            "energy_J": self._energy_j,
            "contact_force_peak_N": self._peak_n,
            **self._jerk(),
        }

    def _jerk(self) -> dict[str, float]:
        from robo_eval.metrics.control_measures import jerk_rms

        joints = np.array(self._joints)
        if len(joints) <= _JERK_TICKS:  # a window has a sample at both ends
            return {}
        stamps = np.arange(len(joints)) * TICK_S
        return {"jerk_rms_rad_s3": jerk_rms(stamps, joints, window_s=_JERK_TICKS * TICK_S)}

    def trajectory(
        self,
        observations: NDArray[np.floating[Any]],
        actions: NDArray[np.floating[Any]],
        rewards: NDArray[np.floating[Any]],
    ) -> Trajectory:
        """The motion of the episode just played for a trace, in full precision.

        Raises:
            InputError: If `records_motion` was not set before the episode began.
        """
        from robo_eval_sim.arm.motion import trajectory_of

        rows = self._recorded()
        names, poses = self._things_seen([row for row, _ in rows])
        return trajectory_of(
            rows,
            names,
            poses,
            observations=np.asarray(observations, dtype=np.float64),
            actions=np.asarray(actions, dtype=np.float64),
            rewards=np.asarray(rewards, dtype=np.float64),
            things=self._things_described(),
        )

    @abstractmethod
    def _things_seen(self, rows: Sequence[Row]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Names of the things of the task, and their poses, shape (T, F, 7)."""

    @abstractmethod
    def _things_described(self) -> str:
        """Links of the things, URDF."""

    # Inside ------------------------------------------------------------------------------------

    def _begin(self, start: Mapping[str, Any], drawn: Novelty) -> None:
        """Bring the world to where physical fields say."""
        arm, speeds, self._tick = self._arm_of(start)
        if self._world is None:
            self._world = take(self.world_class)
        self._drawn, self._actions = drawn, []
        setting, usual = self._physics(drawn), self._usual
        if _NOISE in start:
            noise_seed = start[_NOISE]
            if type(noise_seed) is not int or not 0 <= noise_seed < 2**32:
                raise InputError(
                    f"state.history.start.{_NOISE}: a whole number from 0 to 2^32 - 1 is needed,"
                    f" given {noise_seed!r:.80}"
                )
            usual = replace(usual, noise_seed=noise_seed)
            if setting.noise_seed == self._usual.noise_seed:  # a level that has noise draws its own
                setting = replace(setting, noise_seed=noise_seed)
        is_later = drawn.onset is not None and self._tick < drawn.onset
        self._later = Later(drawn, lambda: self._switch(setting)) if is_later else None
        self._setting = usual if is_later else setting
        things, goal = self._given(start)
        self._goal = tuple(goal) if start.get(_MOVED) else self._shifted(goal)
        world = self._world
        further, _ = self._further(things, self._goal)
        world.prepare(self._setting, is_visible=self._is_visible, further=further)
        world.place((*arm, *speeds), things)
        world.mark(self._goal)
        self._going: Wish = (np.array(arm), None)
        self._queue: list[Wish] = []
        self._gap = np.zeros(7)
        world.felt = []
        self._energy_j = self._peak_n = self._best = self._paid = 0.0
        self._deepest = self._stage = 0
        self._joints = []
        self._row, self._tip = world.row, world.tip_pose()
        # As it was given: what the engine reads back may differ in its last bits.
        self._origin = {
            name: start[name] for name in (*self._fields(), _MOVED, _NOISE) if name in start
        }
        self._look()

    def _switch(self, setting: Setting) -> None:
        """Change the world in the middle of an episode; everything stays where it is."""
        world, row = self._world, self._row
        assert world is not None
        self._setting = setting
        world.prepare(setting, is_visible=self._is_visible)
        world.place((*row[:9], *row[9:18]), row[27:])
        self._goal = self._shifted(self._goal)
        world.mark(self._goal)

    def _draw(self, start: Mapping[str, Any], rng: np.random.Generator) -> Novelty:
        """What the level draws for a start: the first draw that an episode can be played with."""
        for turned_down in range(_DRAWS):
            sample = self._level.sample(self._difficulty, self._profile, rng)
            self._setting = self._physics(replace(self._no_novelty, parameters=sample))
            things, goal = self._given(start)
            moved = self._shifted(goal)
            if self._is_possible(things, goal, moved):
                count = turned_down + self._further(things, moved)[1]
                return replace(self._novelty(sample, rng), turned_down=count)
        raise InputError(
            f"reset: of {_DRAWS:,} draws of {self._level.name} none leaves the arm a way from this"
            " start; give a state with more room"
        )

    def _physics(self, drawn: Novelty) -> Setting:
        """Constants of the world under what was drawn."""
        made = None if drawn is self._no_novelty else self._level.physics(drawn)
        if made is None or (isinstance(made, self.setting_class) and not self._constants):
            return made or self._usual
        # A level wins over constants; one from elsewhere may speak of the arm alone.
        return replace(self._usual, **dict(changed(made)))

    def _shifted(self, goal: Sequence[float]) -> tuple[float, ...]:
        """A goal where the setting moves it to."""
        by = self._setting.goal_shift_m
        return self._moved_goal(goal, by) if by else tuple(goal)

    @abstractmethod
    def _moved_goal(self, goal: Sequence[float], by: float) -> tuple[float, ...]:
        """The goal, moved so far (m) in the direction of the setting."""

    def _advance(self, action: Sequence[float]) -> None:
        """Carry out a checked action."""
        self._actions.append(list(action))
        world = self._world
        assert world is not None
        self._command(world, self._wanted(action))
        self._tick += 1
        self._look()
        if self._later is not None:
            self._later.after(self._tick)

    def _wanted(self, action: Sequence[float]) -> Wish:
        """Positions of joints and fingers that an action asks for, and speeds not to exceed."""
        setting, now, asked = self._setting, np.array(self._row[:7]), np.array(action[:-1])
        play, most = setting.backlash_rad / 2.0, None
        if self._action_mode == "joint_position":
            wanted = now + setting.gain * (asked - now)
            wanted = np.minimum(np.maximum(now, wanted - play), wanted + play)
        else:
            speed = asked if self._action_mode == "joint_velocity" else self._by_tip(asked)
            turned = self._gap + setting.gain * speed * TICK_S
            self._gap = np.clip(turned, -play, play)
            turned -= self._gap
            wanted = np.where(turned > 0.0, _UPPER, _LOWER)
            most = abs(turned) / TICK_S
        half = min(max(action[-1], 0.0), WIDTH_M) / 2.0
        targets = np.empty(9)
        targets[:7], targets[7:] = np.minimum(np.maximum(wanted, _LOWER), _UPPER), half
        return targets, most

    def _by_tip(self, change: Array) -> Array:
        """Speeds of the joints that move the tip by what is asked for, as far as the arm allows."""
        jacobian, _, _ = CHAIN.jacobian(self._row[:7])
        damped = jacobian @ jacobian.T + 1e-3 * np.eye(6)
        return jacobian.T @ np.linalg.solve(damped, change) / TICK_S

    def _command(self, world: World, wish: Wish) -> None:
        """Have carried out what is wanted, as late as the setting says."""
        late = round(self._setting.delay_s / TICK_S * SUBSTEPS)
        ticks, rest = divmod(late, SUBSTEPS)
        self._queue.append(wish)
        before = self._going
        if len(self._queue) > ticks:
            self._going = self._queue.pop(0)
        parts = ((before, rest), (self._going, SUBSTEPS - rest))
        world.tick(*(part for part in parts if part[1]))
        self._energy_j += world.energy_j
        self._peak_n = max(self._peak_n, world.peak_n)

    def _look(self) -> None:
        """Take note of where everything is, and of what has been achieved."""
        world = self._world
        assert world is not None
        self._row, self._tip = world.row, world.tip_pose()
        self._joints.append(self._row[:7])
        stage, share = self._progress()
        self._stage = stage
        self._deepest = max(self._deepest, stage)
        count = len(self.task.stages)
        self._best = max(self._best, 1.0 if stage == count else (stage + min(share, 0.999)) / count)

    # Seeing ------------------------------------------------------------------------------------

    def _observation_space(self) -> spaces.Space[Any]:
        size = layout.ARM_SIZE + self.own_size
        if self._obs_mode == "rgbd":
            shape = (IMAGE_PX, IMAGE_PX)
            return spaces.Dict(
                {
                    "image": spaces.Box(0, 255, (*shape, 3), dtype=np.uint8),
                    "depth": spaces.Box(0.0, _FAR, (*shape, 1), dtype=np.float32),
                    "state": spaces.Box(-_FAR, _FAR, (layout.ARM_SIZE,), dtype=np.float32),
                }
            )
        high = np.full(size + (6 if self._obs_mode == "state+wrench" else 0), _FAR, np.float32)
        high[size:] = 1e5
        return spaces.Box(-high, high, dtype=np.float32)

    def _observe(self) -> Observation:
        row, tip, setting = self._row, self._tip, self._setting
        arm = [*row[:7], *row[9:16], row[7] + row[8], *tip]
        if self._obs_mode == "rgbd":
            return self._picture(setting) | {"state": self._noisy(arm, [])}
        bias = (
            setting.object_bias_m * math.cos(setting.bias_direction_rad),
            setting.object_bias_m * math.sin(setting.bias_direction_rad),
        )
        seen = self._noisy(arm, self._own(bias))
        if self._obs_mode == "state":
            return seen
        assert self._world is not None
        return np.concatenate([seen, np.array(self._world.wrench(), dtype=np.float32)])

    def _noisy(self, arm: list[float], own: list[float]) -> NDArray[np.float32]:
        setting = self._setting
        seen = np.array([*arm, *own], dtype=np.float64)
        if setting.joint_bias_rad:
            sides = np.random.default_rng(setting.bias_seed).integers(0, 2, 7) * 2 - 1
            seen[:7] += setting.joint_bias_rad * sides
        if setting.joint_noise_rad or setting.object_noise_m:
            # Of the tick, so that a restored episode goes on with the same noise.
            rng = np.random.default_rng((setting.noise_seed, self._tick))
            noise = rng.standard_normal(len(seen))
            seen[:7] += setting.joint_noise_rad * noise[:7]
            places = self._places if own else []
            seen[places] += setting.object_noise_m * noise[places]
        if setting.joint_bias_rad or setting.joint_noise_rad:
            seen[layout.TIP_POSITION.start : layout.ARM_SIZE] = self._tip_by(seen[:7])
        return np.clip(seen, -_FAR, _FAR).astype(np.float32)

    def _tip_by(self, joints: NDArray[np.float64]) -> NDArray[np.float64]:
        """Position (m) and quaternion xyzw of a tip whose joints are where they are read."""
        place, turn = CHAIN.forward(joints)
        by = rotation_vector(turn @ CHAIN.forward(self._row[:7])[1].T)
        # From the true one, so that both quaternions have one sign.
        half = np.linalg.norm(by) / 2.0
        part, whole = by / 2.0 * np.sinc(half / np.pi), math.cos(half)
        axis, cosine = np.array(self._tip[3:6]), self._tip[6]
        turned = whole * axis + cosine * part + np.cross(part, axis)
        return np.array([*place, *turned, whole * cosine - part @ axis])

    @property
    def _places(self) -> list[int]:
        """Indices of the observation that are coordinates of things."""
        return []

    def _picture(self, setting: Setting) -> dict[str, Any]:
        assert self._world is not None
        shift, turn = setting.camera_shift_m, setting.camera_turn_rad
        view = (1.2, shift, 0.75), (0.4, shift, 0.05), (0.0, math.sin(turn), math.cos(turn))
        eye, target, up = view
        image, depth = self._world.engine.depth_picture(
            eye, target, width=IMAGE_PX, height=IMAGE_PX, up=up, **_lights(setting)
        )
        if setting.texture:
            x, y, z = np.moveaxis(places_seen(depth, *view), -1, 0)
            is_dark = (np.floor(x / _SQUARE_M) + np.floor(y / _SQUARE_M)) % 2 > 0
            is_dark &= (abs(z) < _FLAT_M) & is_on_table(x, y)
            image[is_dark] = image[is_dark] * (1.0 - setting.texture)
        return {"image": image, "depth": depth}

    # Bad input ---------------------------------------------------------------------------------

    def _checked(self, action: Any) -> list[float]:
        try:
            given = np.asarray(action, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"action: numbers are needed, given {action!r:.80}") from None
        if given.shape != self._low.shape:
            raise InputError(
                f"action: {len(self._low)} numbers are needed in mode {self._action_mode!r}, given"
                f" shape {given.shape}"
            )
        if ((given >= self._low - _SLACK) & (given <= self._high + _SLACK)).all():
            return np.clip(given, self._low, self._high).tolist()  # type: ignore[no-any-return]
        index = int(np.argmin((given >= self._low - _SLACK) & (given <= self._high + _SLACK)))
        name, unit = self._units[index]
        value = float(given[index])
        hint = ""
        most = max(abs(self._low[index]), abs(self._high[index]))
        if math.isfinite(value) and abs(value) <= 180.0 * most and abs(value) > 3.0 * most:
            other = {"rad": "degrees", "rad/s": "degrees per second", "m": "millimetres"}[unit]
            hint = f"; is it in {other}?"
        raise InputError(
            f"action[{index}] ({name}): {self._low[index]:g} to {self._high[index]:g} {unit} is"
            f" possible, given {value:g}{hint}"
        )

    def _history_of(self, state: Any) -> tuple[Mapping[str, Any], list[list[float]]]:
        """Physical fields an episode begins with by a state, and the actions from there to it."""
        if not isinstance(state, Mapping):
            raise InputError(f"state: a mapping is needed, given {state!r:.80}")
        if "history" not in state:
            return state, []
        if "novelty" not in state:
            raise InputError("state.novelty: is missing, and state.history needs it")
        history = _mapping(state, "history")
        actions = history.get("actions")
        if not isinstance(actions, list) or len(actions) > self.task.max_ticks:
            raise InputError(
                f"state.history.actions: a list of at most {self.task.max_ticks} is needed"
            )
        return _mapping(history, "start"), [self._checked(one) for one in actions]

    def _arm_of(self, fields: Mapping[str, Any]) -> tuple[list[float], list[float], int]:
        """Positions of joints and fingers, their velocities, and the tick, from physical fields."""
        tick = fields.get("tick", 0)
        if type(tick) is not int or not 0 <= tick <= self.task.max_ticks:
            raise InputError(
                f"state.tick: a whole number from 0 to {self.task.max_ticks} is needed, given"
                f" {tick!r:.80}"
            )
        joints = numbers(fields, "joint_position", 7)
        for index, value in enumerate(joints):
            if not _LOW[index] - _SLACK <= value <= _HIGH[index] + _SLACK:
                hint = "; is it in degrees?" if abs(value) > 2 * math.pi else ""
                raise InputError(
                    f"state.joint_position[{index}]: {_LOW[index]:g} to {_HIGH[index]:g} rad is"
                    f" possible, given {value:g}{hint}"
                )
        speeds = numbers(fields, "joint_velocity", 7, default=[0.0] * 7)
        for index, (value, most) in enumerate(zip(speeds, SPEED_RAD_S, strict=True)):
            if abs(value) > most * (1.0 + _MEASURED):
                hint = "; is it in degrees per second?" if abs(value) > 2 * math.pi else ""
                raise InputError(
                    f"state.joint_velocity[{index}]: {-most:g} to {most:g} rad/s is possible, given"
                    f" {value:g}{hint}"
                )
        (width,) = numbers(fields, "gripper_width", 1, default=[WIDTH_M])
        fingers = numbers(fields, "finger_position", 2, default=[width / 2.0] * 2)
        for value in (width / 2.0, *fingers):
            if not -0.01 <= value <= WIDTH_M / 2 + 0.01:
                hint = "; is it in millimetres?" if value > 0.5 else ""
                raise InputError(
                    f"state.gripper_width: 0 to {WIDTH_M:g} m is possible, given {width:g}{hint}"
                )
        moving = numbers(fields, "finger_velocity", 2, default=[0.0] * 2)
        return [*joints, *fingers], [*speeds, *moving], tick

    def _check_reached(self, state: Mapping[str, Any]) -> None:
        reached = self.physical_state()
        for name, value in reached.items():
            if name in state and state[name] != value:
                self._origin, self._is_running = None, False
                raise InputError(
                    f"state.{name}: differs from what state.history leads to here; remove"
                    " `history` to start from the physical fields alone"
                )

    def _start_error(self, state: Mapping[str, Any]) -> dict[str, float]:
        """How far joints (rad) and places (m) are from those of a state."""
        reached = self.physical_state()
        errors = {"rad": 0.0, "m": 0.0}
        for name, value in reached.items():
            unit = "rad" if name == "joint_position" else "m"
            if name in state and name.endswith(("_position", "_width")):
                errors[unit] = max(errors[unit], math.dist(value, state[name]))
        return errors


_STEPS: Final = _STEP_RAD.tolist()
_LOW: Final = _LOWER.tolist()
_HIGH: Final = _UPPER.tolist()


@functools.cache
def _bounds(
    mode: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[tuple[str, str]]]:
    """Bounds of an action, and name and unit of each of its numbers."""
    if mode == "joint_position":
        low, high, unit = _LOWER, _UPPER, "rad"
        names = list(JOINTS)
    elif mode == "joint_velocity":
        high = np.array(SPEED_RAD_S)
        low, unit, names = -high, "rad/s", list(JOINTS)
    else:
        metres, radians = (most * TICK_S for most in layout.HAND_SPEED)
        high = np.array([metres] * 3 + [radians] * 3)
        low, unit = -high, ""
        names = ["x", "y", "z", "about x", "about y", "about z"]
    units = [(name, unit or ("m" if index < 3 else "rad")) for index, name in enumerate(names)]
    return (
        np.append(low, 0.0),
        np.append(high, WIDTH_M),
        [*units, ("width of the gripper", "m")],
    )


def _lights(setting: Setting) -> dict[str, Any]:
    """How bright it is and where the light comes from, as the engine takes it."""
    x, y, z = _LIGHT
    cosine, sine = math.cos(setting.light_turn_rad), math.sin(setting.light_turn_rad)
    return {
        "lightDirection": (cosine * x - sine * y, sine * x + cosine * y, z),
        "lightAmbientCoeff": 0.6 * setting.light,
        "lightDiffuseCoeff": 0.35 * setting.light,
    }


def numbers(
    state: Mapping[str, Any], name: str, count: int, *, default: list[float] | None = None
) -> list[float]:
    """A field of finite numbers.

    Raises:
        InputError: If it is missing without a default, or something else.
    """
    given = state.get(name, default)
    is_list = isinstance(given, list | tuple | np.ndarray) and len(given) == count
    if is_list:
        assert given is not None
        is_list = all(
            isinstance(one, int | float | np.number)
            and not isinstance(one, bool)
            and math.isfinite(one)
            for one in given
        )
    if not is_list:
        raise InputError(
            f"state.{name}: a list of {count} finite numbers is needed, given {given!r:.80}"
        )
    assert given is not None
    return [float(one) for one in given]


def _mapping(state: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    given = state.get(name)
    if not isinstance(given, Mapping):
        raise InputError(f"state.{name}: a mapping is needed, given {given!r:.80}")
    return given
