"""RoboEval/CartPole3D-v0: a pole on a cart in a room full of balls."""

from __future__ import annotations

import copy
import functools
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Difficulty, Profile
from robo_eval.core.names import unknown_name
from robo_eval.core.trajectory import Trajectory
from robo_eval_sim.environment import TaskEnv
from robo_eval_sim.novelty import Effect, Later, Level, Novelty
from robo_eval_sim.novelty.mixed import changed
from robo_eval_sim.spare import take
from robo_eval_sim.tasks.cartpole3d.draws import Drawn, Starts
from robo_eval_sim.tasks.cartpole3d.hindrance import Hindrance, late_push, noisy
from robo_eval_sim.tasks.cartpole3d.layout import (
    BALL_COUNT,
    BALL_SLOTS,
    EPISODE_TICKS,
    POLE_LIMIT_RAD,
    PUSHES,
    TICK_S,
    action_index,
    ball_mask,
    has_fallen,
    observation_size,
)
from robo_eval_sim.tasks.cartpole3d.physics import CORRECT, LEVEL_0, LINES, Physics
from robo_eval_sim.tasks.cartpole3d.scene import World
from robo_eval_sim.tasks.cartpole3d.spec import SPEC
from robo_eval_sim.tasks.cartpole3d.start import Row, Start, Vector3
from robo_eval_sim.tasks.cartpole3d.state import (
    GivenState,
    physical_fields,
    read_state,
    write_history,
)

Observation = NDArray[np.float32]
_Origin = tuple[Row, tuple[float, float] | None, int]
"""Where an episode began: numbers, force in the hidden tick if there was one, ticks passed."""
_Frame = tuple[Vector3, Vector3]

MAX_BALLS: Final = 20
"""Most balls the keyword `balls` asks for."""
_REWARD: Final = 1.0 / EPISODE_TICKS
_FORCES: Final = tuple((x, y, 0.0) for x, y in PUSHES)
_INTEGERS: Final = frozenset({int, np.int64, np.int32})
_SURELY_UP: Final = (1.0 - math.cos(POLE_LIMIT_RAD)) / 2.0
"""Below this sum of squares of a quaternion's x and y its tilt is small, and so roll and pitch."""
_PACK: Final[list[Callable[..., None]]] = [
    struct.Struct(f"{size}f").pack_into for size in range(observation_size("compat") + 1)
]
_CROWD: Final = 4
"""With more balls than a start draws, groups of them may touch at once."""
_FAR_M: Final = 100.0
_FAST: Final = 200.0


class CartPole3DEnv(TaskEnv[Observation, np.int64]):
    """Balance a pole on a cart that is pushed in four directions while balls fly around.

    Units are SI. World axes: x forward, y left, z up, right-handed.

    ## Action

    `Discrete(5)`. A push is a force on the cart's centre of mass for one tick of 0.02 s.

    | action | name | force |
    |---|---|---|
    | 0 | nothing | none |
    | 1 | right | +x, 10 N |
    | 2 | left | −x, 10 N |
    | 3 | forward | +y, 10 N |
    | 4 | backward | −y, 10 N |

    ## Observation

    A flat `Box` of float32 with 12 numbers, then 6 for each ball there can be, then a mask of the
    balls: 44 balls, 320 numbers (`paper`), or 204 balls, 1440 numbers (`compat`). The names of the
    slices are in `robo_eval_sim.tasks.cartpole3d.layout`. States and traces hold the engine's own
    float64 numbers. The bounds of the space are wide on purpose; what occurs is in the table.

    | index | what | unit | occurs |
    |---|---|---|---|
    | 0, 1 | cart x, y | m | ±4.45: the walls stop it |
    | 2, 3 | cart velocity x, y | m/s | about ±10 |
    | 4 to 7 | orientation of the pole in world, quaternion x, y, z, w | | length 1 |
    | 8 to 10 | angular velocity of the pole, world axes | rad/s | about ±100 after a hit |
    | 11 | number of balls n | | 0 to 44 (204) |
    | 12 + 6 i to 14 + 6 i | position of ball i < n | m | x, y ±4.45, z 0.45 to 9.45 |
    | 15 + 6 i to 17 + 6 i | velocity of ball i < n | m/s | ±100 in each axis, the engine's limit |
    | 276 + i (1236 + i) | mask: 1 if slot i holds a ball, else 0 | | 0 or 1 |

    Slots of balls that are not there are 0. A ball keeps its slot for the whole episode; new ones
    take the next. A fast ball may be seen a little deeper in a wall.

    ## Start

    All draws are independent and uniform. The same seed draws the same start whatever the level,
    which then changes what its line says, so an episode of level 0 with the same seed is a matched
    control; what a level draws comes from a generator of its own.

    | quantity | distribution |
    |---|---|
    | cart x, y | [−3, 3] m |
    | force on the cart during a hidden first tick | [−1, 1] N along x and y |
    | pole | quaternion along (a, b, c, 1), a, b, c in [−0.01, 0.01]; x, y rates ±0.01 rad/s |
    | number of balls | 2, 3 or 4 |
    | ball position | x, y in [−4, 4] m, z in [1, 9] m, horizontally at least 1 m from the cart |
    | ball velocity | 6 to 10 m/s along each axis, either way |

    The first observation comes after the hidden tick, in which the level's forces act, too. In
    `paper` no ball starts inside another.

    ## Reward and end

    Each tick survived earns 1/200, the last one included, so the return of an episode is its
    performance: a fall at tick k scores k/200. `terminated`: roll or pitch of the pole
    (R = Rz Ry Rx) beyond 10 degrees, each axis by itself. `truncated`: tick 200. Where the cart is
    ends nothing.

    Args:
        balls: Number of balls; none lets each episode draw it (and its level change it).
        lines: Where the lines of level 10 lie in profile `paper`: `correct`, or `reference`, as
            the public reference program misplaces them: they come nearer to the cart.
        level: This and the following are keywords of every task, see
            `robo_eval_sim.environment.TaskEnv`.
        difficulty: How strong the novelty is.
        profile: Whose description of the level is followed: the paper's or the reference code's.
        novelty: Instead of a level, magnitude by axis, such as `{"cart_mass": 20.0}`.
        onset: Ticks that pass before the novelty begins, or two between which they are drawn.
        constants: What calibration found, such as `{"cart_mass_kg": 1.3}`.
        reveal: Whether `info["novelty"]` says what was drawn.
        render_mode: `rgb_array` or none.

    Raises:
        UnknownNameError: If a name is not known; the message names the nearest.
        InputError: If `balls` or a constant is out of range, or `lines` are asked for in profile
            `compat`.

    Version history:
        v0: first version.
    """

    task = SPEC
    probes = (1137, 1100, 1593)
    """Of the first 2000 the seeds whose pole stays up longest under their pushes: 64 to 76 ticks at
    level 0, long enough for balls to meet walls, cart and each other."""
    level_start: ClassVar = {"balls": 4}
    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["rgb_array"],
        "render_fps": round(1.0 / TICK_S),
    }

    def __init__(
        self,
        *,
        balls: int | None = None,
        lines: str = CORRECT,
        level: int = 0,
        difficulty: str = Difficulty.EASY,
        profile: str = Profile.PAPER,
        novelty: Mapping[str, float] | None = None,
        onset: int | Sequence[int] | None = None,
        constants: Mapping[str, float] | None = None,
        reveal: bool = False,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            balls=balls,
            lines=lines,
            level=level,
            difficulty=difficulty,
            profile=profile,
            novelty=novelty,
            onset=onset,
            constants=constants,
            reveal=reveal,
            render_mode=render_mode,
        )
        self._balls = _checked_balls(balls)
        self._level = _with_lines(self._level, lines, self._profile)
        self.observation_space: spaces.Box = _observation_space(self._profile)  # type: ignore[assignment]
        self.action_space = spaces.Discrete(len(PUSHES))
        self._blanks = _blank_observations(self._profile)
        self._world: World | None = None
        self._effect: Effect[World] | None = None
        self._effects = self._level.effect
        self._is_visible = self.render_mode is not None
        self._slots = BALL_SLOTS[self._profile]
        self._starts = Starts(self._balls, self._profile)
        self._origin: _Origin | None = None
        self._actions: list[int | np.int64] = []
        self._rows: list[Row] | None = None
        self._usual = replace(LEVEL_0, **self._constants) if self._constants else LEVEL_0
        self._late: Physics | None = None
        self._senses: Physics | None = None
        self._noise_seed = 0

    # Gymnasium ---------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Seed of everything drawn from now on.
            options: `{"state": ...}` starts from a state as `get_state` gives it. One with its
                history is restored bit for bit; one with physical fields only starts there, and
                what is missing has its nominal value.

        Raises:
            InputError: If the options or the state cannot be used.
        """
        state = self._state_in(options)
        given = None if state is None else read_state(state, self._profile)
        if seed is not None:
            super().reset(seed=seed)
        self._is_running = False
        if given is not None and given.actions is not None:
            row = self._restore(given)
        else:
            # Drawn in any case, so that what follows does not depend on a given state.
            drawn = self._starts.take(self.np_random, seed is not None)
            if self._is_level_0 and given is None:
                begin, force, self._noise_seed, frame = drawn
                row = self._begin((begin, force, 0), self._no_novelty, frame)
            else:
                row = self._begin(*self._adapt(drawn, given))
        x, y = row[4], row[5]
        # A wind may fell the pole in the hidden tick: the episode then ends with its first step.
        self._is_running = self._tick < EPISODE_TICKS and (
            given is None or x * x + y * y < _SURELY_UP or not has_fallen(x, y, row[6], row[7])
        )
        self._rows = [row] if self.records_motion else None
        return self._observe(row), self._info()

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Push the cart (or not) and let one tick pass.

        Raises:
            InputError: If the action is none of 0 to 4, or the episode has not begun or is over.
        """
        if type(action) not in _INTEGERS or not 0 <= action < 5:
            action = action_index(action)
        if not self._is_running:
            raise self._not_running()
        row = self._advance(action)
        x, y = row[4], row[5]
        # Most poles lean so little that the exact angles need not be known.
        fallen = x * x + y * y > _SURELY_UP and has_fallen(x, y, row[6], row[7])
        truncated = self._tick >= EPISODE_TICKS
        if fallen or truncated:
            self._is_running = False
        if self._rows is not None:
            self._rows.append(row)
        info = self._info() if self._reveal else {}
        return self._observe(row), _REWARD, fallen, truncated, info

    def render(self) -> NDArray[np.uint8] | None:
        """The room from above one corner as an RGB picture, shape (360, 480, 3)."""
        if self.render_mode is None:
            return None
        if self._world is None or self._origin is None:
            raise InputError("render: the episode has not begun; call reset() first")
        return self._world.picture()

    # Harness -----------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """The state now, as plain data that `reset(options={"state": ...})` accepts.

        Beside the physical fields it holds `novelty` (what was drawn) and `history`: where the
        episode started and which actions followed. Contacts depend on how they came about, so an
        exact restore plays the history again.
        """
        if self._world is None or self._origin is None or self._drawn is None:
            raise InputError("get_state: the episode has not begun; call reset() first")
        physics = self._physics(self._drawn)
        return physical_fields(self._world.row, self._tick) | {
            "novelty": self._drawn.as_dict(),
            "history": write_history(
                Start.from_row(*self._origin),
                list(map(int, self._actions)),
                self._noise_seed if physics.is_seen_noisy or physics.force_noise_n else None,
            ),
        }

    def physical_state(self) -> dict[str, Any]:
        """The physical fields of `get_state` alone, for where a seed says the rest."""
        if self._world is None or self._origin is None:
            raise InputError("physical_state: the episode has not begun; call reset() first")
        return physical_fields(self._world.row, self._tick)

    def advance(self, force: tuple[float, float]) -> Row:
        """Let one tick pass under any horizontal force on the cart, fallen pole or not.

        For whoever stands behind a controller instead of choosing among actions: a stand-in robot,
        or the replay of what a robot's controller applied. Of the constants all act but the delay:
        what was applied was late already.

        Args:
            force: x and y in world axes, newtons.

        Returns:
            The state in full precision, laid out as an observation without its padding.
        """
        world = self._world
        if world is None or self._origin is None:
            raise InputError("advance: the episode has not begun; call reset() first")
        if force[0] or force[1]:
            gain = world.physics.push_gain
            world.push_cart((gain * force[0], gain * force[1], 0.0))
        return self._tick_on(world)

    @staticmethod
    def channels(rows: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """What recordings hold of states: `task.channels`, shape (T, 8).

        Args:
            rows: Shape (T, 11) or wider, laid out as observations.
        """
        from robo_eval_sim.tasks.cartpole3d.steps import channels_of

        return channels_of(rows)

    @staticmethod
    def predict(
        states: NDArray[np.floating[Any]],
        forces: NDArray[np.floating[Any]],
        constants: Mapping[str, float],
    ) -> NDArray[np.float64]:
        """What one tick makes of each of these states, without balls, as `advance` would.

        Neither delay nor noise nor the hidden force act. Constants may lie beyond their bounds, as
        the steps of a search do.

        Args:
            states: As `channels` gives them, shape (T, 8); one that is not finite gives NaN.
            forces: What the drive was told in the tick after each, x and y, newtons, shape (T, 2).
            constants: By name; others are nominal.

        Returns:
            Shape (T, 8).

        Raises:
            UnknownNameError: If the task has no such constant.
            ShapeError: If the arrays do not fit.
        """
        from robo_eval_sim.tasks.cartpole3d.steps import predicted

        return predicted(states, forces, constants)

    def trajectory(
        self,
        observations: NDArray[np.floating[Any]],
        actions: NDArray[np.floating[Any]],
        rewards: NDArray[np.floating[Any]],
    ) -> Trajectory:
        """The motion of the episode just played for a trace, in full precision.

        Args:
            observations: Shape (T, D), what the policy saw.
            actions: Shape (T - 1,) or (T - 1, 1).
            rewards: Shape (T - 1,).

        Raises:
            InputError: If `records_motion` was not set before the episode began.
            ShapeError: If the arrays are not of the episode just played.
        """
        from robo_eval_sim.tasks.cartpole3d.motion import trajectory_of

        rows = self._recorded()
        physics = None if self._drawn is None else self._physics(self._drawn)
        return trajectory_of(rows, observations, actions, rewards, physics)

    # Inside ------------------------------------------------------------------------------------

    def _adapt(self, drawn: Drawn, given: GivenState | None) -> tuple[_Origin, Novelty]:
        """What an episode that was drawn at level 0 is at this level or from a given state."""
        row, force, level_seed, _ = drawn
        self._noise_seed = level_seed
        origin: _Origin = (row, force, 0)
        if given is not None:
            origin = given.start.row, None, given.start.tick
            if given.novelty is not None:
                return origin, self._read_novelty(given)
            if self._is_level_0:
                return origin, self._no_novelty
        # A generator of its own, so that a level that draws more does not shift the starts.
        rng = np.random.default_rng(level_seed)
        start = Start.from_row(*origin)
        novelty = self._novelty(
            self._level.sample(self._difficulty, self._profile, rng, balls=len(start.balls)), rng
        )
        if given is None and self._onset is None:
            self._level.arrange(start, novelty, rng, balls=self._balls)
        return (start.row, start.cart_force, start.tick), novelty

    def _read_novelty(self, given: GivenState) -> Novelty:
        assert given.novelty is not None
        return self._level.read(given.novelty, self._no_novelty, balls=len(given.start.balls))

    def _physics(self, drawn: Novelty) -> Physics:
        """Constants of an episode."""
        physics: Physics | None = None
        if drawn is not self._no_novelty:
            physics = self._level.physics(drawn)
        if physics is None:
            return self._usual
        if not self._constants:
            return physics
        return replace(self._usual, **dict(changed(physics)))

    def _begin(self, origin: _Origin, drawn: Novelty, frame: _Frame | None = None) -> Row:
        """Bring the world to the start of an episode."""
        world = self._world
        if world is None:
            world = self._world = take(World)
        self._origin, self._drawn = origin, drawn
        row, force, self._tick = origin
        self._actions = []
        is_later = drawn.onset is not None and self._tick < drawn.onset
        physics = self._physics(drawn)
        self._set_up(world, row, self._usual if is_later else physics, frame)
        if is_later:
            effect: Effect[Any] | None = Later(drawn, self._begin_novelty)
        else:
            effect = None if self._effects is None else self._effects(drawn, world)
        if physics is not LEVEL_0 and physics.is_hindered:
            effect = Hindrance(drawn, world, physics, self._noise_seed, effect)
        self._effect = effect
        if force is None:
            return world.row
        # The reference lets one tick pass before the first observation.
        world.push_cart((force[0], force[1], 0.0))
        if effect is not None:
            effect.push(-1)
        return world.tick()

    def _set_up(
        self, world: World, row: Row, physics: Physics, frame: _Frame | None = None
    ) -> None:
        """Give the world its constants and room for balls that may come, and put all there."""
        count = row[BALL_COUNT]
        capacity = min(int(count) + physics.pool - LEVEL_0.pool, self._slots)
        world.prepare(physics, capacity, self._is_visible, count > _CROWD)
        world.place(row, frame)
        is_usual = physics is LEVEL_0
        self._late = None if is_usual or not physics.is_late else physics
        self._senses = None if is_usual or not physics.is_seen_noisy else physics

    def _begin_novelty(self) -> Effect[World] | None:
        """Change the world in the middle of an episode; everything stays where it is."""
        world, drawn = self._world, self._drawn
        assert world is not None
        assert drawn is not None
        self._set_up(world, world.row, self._physics(drawn))
        return None if self._effects is None else self._effects(drawn, world)

    def _advance(self, action: int | np.int64) -> Row:
        """Take the push of an action, let a tick pass, and let the level do its part."""
        world = self._world
        assert world is not None
        self._actions.append(action)
        if self._late is not None:
            world.push_cart(late_push(self._actions, self._late))
        elif action:
            world.push_cart(_FORCES[action])
        return self._tick_on(world)

    def _tick_on(self, world: World) -> Row:
        self._tick += 1
        effect = self._effect
        if effect is None:
            return world.tick()
        effect.push(self._tick - 1)
        world.tick()
        effect.after(self._tick)
        return world.row

    def _restore(self, given: GivenState) -> Row:
        """Play the history of a state again, which must lead to the state bit for bit."""
        if given.novelty is None:
            raise InputError("state.novelty: is missing, and state.history needs it")
        assert given.actions is not None
        start, drawn = given.start, self._read_novelty(given)
        self._noise_seed = given.noise_seed
        row = self._begin((start.row, start.cart_force, start.tick), drawn)
        for action in given.actions:
            row = self._advance(action)
        reached = physical_fields(row, self._tick)
        for name, value in given.fields.items():
            if reached[name] != value:
                self._origin = None
                raise InputError(
                    f"state.{name}: differs from what state.history leads to here; remove"
                    " `history` to start from the physical fields alone"
                )
        return row

    def _observe(self, row: Row) -> Observation:
        if self._senses is not None:
            row = noisy(row, self._senses, self._noise_seed, self._tick)
        observation = self._blanks[int(row[BALL_COUNT])].copy()
        # Three times as fast as assigning a slice.
        _PACK[len(row)](observation, 0, *row)
        return observation


def _checked_balls(balls: Any) -> int | None:
    if balls is None:
        return None
    is_integer = isinstance(balls, int | np.integer) and not isinstance(balls, bool)
    if not is_integer or not 0 <= balls <= MAX_BALLS:
        raise InputError(f"balls: a whole number from 0 to {MAX_BALLS} is needed, given {balls!r}")
    return int(balls)


def _observation_space(profile: str) -> spaces.Box:
    """Bounds no episode reaches; usual ranges are in docs/environments/cartpole3d.md."""
    slots = BALL_SLOTS[profile]
    cart, quat, turn = [_FAR_M] * 2 + [_FAST] * 2, [1.0 + 1e-6] * 4, [_FAST] * 3
    balls = ([_FAR_M] * 3 + [_FAST] * 3) * slots
    high = np.array([*cart, *quat, *turn, slots, *balls, *[1.0] * slots], dtype=np.float32)
    low = -high
    low[BALL_COUNT] = 0.0
    low[ball_mask(profile)] = 0.0
    return spaces.Box(low, high, dtype=np.float32)


@functools.cache
def _blank_observations(profile: str) -> list[Observation]:
    """Observations by number of balls with the mask filled in, and nothing else."""
    slots, first = BALL_SLOTS[profile], ball_mask(profile).start
    blanks = np.zeros((slots + 1, observation_size(profile)), dtype=np.float32)
    for count in range(slots + 1):
        blanks[count, first : first + count] = 1.0
    return list(blanks)


def _with_lines(level: Level, lines: str, profile: Profile) -> Level:
    """The level with its lines, if it has any, where they are asked for."""
    if lines not in LINES:
        raise unknown_name("lines", lines, LINES)
    if lines == CORRECT:
        return level
    if profile is not Profile.PAPER:
        raise InputError("lines: is a keyword of profile paper; leave it out of profile compat")
    found: Any = copy.copy(level)
    if hasattr(found, "parts"):
        found.parts = [_with_lines(part, lines, profile) for part in found.parts]
    elif hasattr(found, "lines"):
        found.lines = lines
    return found  # type: ignore[no-any-return]
