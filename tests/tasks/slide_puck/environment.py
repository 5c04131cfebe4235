"""Lab/SlidePuck-v0."""

from typing import ClassVar

import numpy as np
from gymnasium import spaces

from robo_eval.core.errors import InputError
from robo_eval.core.trajectory import Trajectory
from robo_eval_sim import engine
from robo_eval_sim.engine import Engine
from robo_eval_sim.environment import TaskEnv
from slide_puck.spec import SPEC

CORNER = np.array([0.3, 0.2])
URDF = """<robot name="puck">
  <link name="world"/>
  <link name="slide"><inertial><mass value="0.001"/><inertia ixx="1e-5" iyy="1e-5" izz="1e-5"
    ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="puck">
    <inertial><mass value="{mass}"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0"
      iyz="0"/></inertial>
    <visual><geometry><cylinder radius="0.05" length="0.04"/></geometry></visual>
  </link>
  <joint name="x" type="prismatic"><parent link="world"/><child link="slide"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="10"/></joint>
  <joint name="y" type="prismatic"><parent link="slide"/><child link="puck"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="10"/></joint>
</robot>"""
STATE = ("puck_position", "puck_velocity")


class SlidePuckEnv(TaskEnv):
    """Push a puck to a corner."""

    task = SPEC
    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 50}

    def __init__(self, **keywords):
        super().__init__(**keywords)
        self.observation_space = spaces.Box(-9.0, 9.0, (4,), dtype=np.float32)
        self.action_space = spaces.Discrete(len(SPEC.pushes))
        self._engine = Engine()
        self._state = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        state = self._state_in(options)
        at = self.np_random.uniform(-0.2, 0.2, 2)
        drawn = self._level.sample(self._difficulty, self._profile, self.np_random)
        self._drawn = self._novelty(drawn, self.np_random)
        self._tick, speed, actions = 0, np.zeros(2), []
        if state is not None and "history" in state:
            self._drawn = self._level.read(state["novelty"], self._no_novelty)
            at, actions = np.array(state["history"]["start"]), state["history"]["actions"]
        elif state is not None:
            at, speed = (np.array(state[name]) for name in STATE)
        self._build(1.0 if self._onset else self._mass(), at, speed)
        self._start, self._actions = at.tolist(), []
        self._poses = [self._row()]
        for action in actions:
            self._act(action)
        return self._observation(), self._info()

    def _mass(self):
        return self._level.physics(self._drawn) or 1.0

    def _build(self, mass, at, speed):
        client = self._engine.client
        is_visible = self.render_mode is not None
        self._engine.clear(tick_s=SPEC.tick_s, gravity_m_s2=0.0, is_visible=is_visible)
        self._robot = self._engine.robot(URDF.format(mass=mass))
        for joint in (0, 1):
            self._engine.let_go(self._robot, joint)
            engine.set_joint(self._robot, joint, at[joint], speed[joint], client)
        self._read()

    def _read(self):
        place = engine.link_state(self._robot, 1, 1, 1, self._engine.client)
        self._state = np.array([*place[0][:2], *place[6][:2]])

    def _row(self):
        return np.array([*self._state[:2], 0.0, 0.0, 0.0, 0.0, 1.0])

    def advance(self, force):
        at = (*self._state[:2], 0.0)
        push = (force[0], force[1], 0.0)
        engine.push(self._robot, 1, push, at, engine.WORLD, self._engine.client)
        engine.step(self._engine.client)
        self._read()
        self._tick += 1
        self._poses.append(self._row())

    def _act(self, action):
        self._actions.append(int(action))
        self.advance(SPEC.pushes[int(action)])
        if self._tick == self._drawn.onset:
            self._build(self._mass(), self._state[:2], self._state[2:])

    def step(self, action):
        if self._state is None or not self.action_space.contains(action):
            raise InputError(f"action: 0 to 4 after a reset is needed, given {action!r:.80}")
        before = self._quality()
        self._act(action)
        is_there = self._quality() == 1.0
        info = self._info() | ({"is_success": True} if is_there else {})
        is_over = self._tick >= SPEC.max_ticks
        first = before if self._tick == 1 else 0.0
        reward = self._quality() - before + first
        return self._observation(), reward, is_there, is_over and not is_there, info

    def _quality(self):
        away = float(np.linalg.norm(self._state[:2] - CORNER))
        return 1.0 if away < 0.08 else max(0.0, 0.9 - away)

    def _observation(self):
        return self._state.astype(np.float32)

    def physical_state(self):
        return {STATE[0]: self._state[:2].tolist(), STATE[1]: self._state[2:].tolist()}

    def get_state(self):
        history = {"start": self._start, "actions": list(self._actions)}
        return self.physical_state() | {"novelty": self.novelty, "history": history}

    def trajectory(self, observations, actions, rewards):
        poses = np.array(self._poses)
        return Trajectory(
            stamp_ns=np.arange(len(poses)) * 20_000_000,
            joint_names=("x", "y"),
            joint_position=poses[:, :2],
            joint_velocity=np.asarray(observations, dtype=float)[:, 2:],
            frames=("puck",),
            pose_world_frame=poses[:, None, :],
            actions=np.asarray(actions, dtype=float).reshape(-1, 1),
            rewards=np.asarray(rewards, dtype=float),
            observations=np.asarray(observations, dtype=float),
            robot_description=URDF.format(mass=1.0),
        )

    def render(self):
        return self._engine.picture((0.6, -0.6, 0.8), (0.0, 0.0, 0.0))

    def close(self):
        self._engine.close()
