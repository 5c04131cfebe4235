"""The physics engine: the one file that calls PyBullet. It knows no task."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.installed import need_pybullet


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what C code prints off the standard error, which belongs to our user."""
    sys.stderr.flush()
    kept = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


need_pybullet("the simulator")
with _silence():  # it prints its build time
    import pybullet as bullet

Vector3 = tuple[float, float, float]
UPRIGHT: Final = (0.0, 0.0, 0.0, 1.0)
STILL: Final = (0.0, 0.0, 0.0)
WORLD: Final = bullet.WORLD_FRAME
FOV_DEG: Final = 70.0
_NEAR_M, _FAR_M = 0.1, 30.0
"""Between which distances things are seen."""
BASE: Final = -1
"""The link that stands for a body without links."""

# What is called in every tick or at every reset, as it is: a method around it would cost more than
# many of them take. Each takes the number of the engine (`Engine.client`) last.
restore: Final = bullet.restoreState
push: Final = bullet.applyExternalForce
put: Final = bullet.resetBasePositionAndOrientation
throw: Final = bullet.resetBaseVelocity
set_joint: Final = bullet.resetJointState
set_joints: Final = bullet.resetJointStateMultiDof
step: Final = bullet.stepSimulation
link_state: Final = bullet.getLinkState
link_states: Final = bullet.getLinkStates
velocity_of: Final = bullet.getBaseVelocity
place_of: Final = bullet.getBasePositionAndOrientation
drive: Final = bullet.setJointMotorControlArray
BY_VELOCITY: Final = bullet.VELOCITY_CONTROL
torques_of: Final = bullet.calculateInverseDynamics
joint_states: Final = bullet.getJointStates
contacts: Final = bullet.getContactPoints
set_dynamics: Final = bullet.changeDynamics
find_contacts: Final = bullet.performCollisionDetection


class Engine:
    """One world of the engine, connected and empty; freed when nobody holds it any more.

    Attributes:
        client: Its number.
        is_visible: Whether bodies have shapes to look at.
    """

    def __init__(self) -> None:
        self.client: int = bullet.connect(bullet.DIRECT)
        self.is_visible = False
        # PyBullet would keep some 30 MB of a world that somebody forgot to close.
        self._free = weakref.finalize(self, bullet.disconnect, self.client)
        self._free.atexit = False

    def close(self) -> None:
        """Free the engine; closing twice does nothing."""
        self._free()
        self.client = -1

    def clear(
        self,
        *,
        tick_s: float,
        gravity_m_s2: float,
        is_visible: bool,
        **parameters: Any,
    ) -> None:
        """Throw everything away and set how the world works.

        Args:
            tick_s: Physics period, seconds.
            gravity_m_s2: Downward acceleration of all that has a mass.
            is_visible: Whether `picture` will be called: only then bodies get shapes to look at.
            **parameters: Further ones of `setPhysicsEngineParameter`.
        """
        self.is_visible = is_visible
        bullet.resetSimulation(physicsClientId=self.client)
        bullet.setPhysicsEngineParameter(
            fixedTimeStep=tick_s,
            numSubSteps=0,
            # Contacts are solved in an order that does not depend on what was played before.
            deterministicOverlappingPairs=1,
            physicsClientId=self.client,
            **parameters,
        )
        self.set_gravity((0.0, 0.0, -gravity_m_s2))

    def set_gravity(self, acceleration: Vector3) -> None:
        """Set the acceleration of free fall in world axes, m/s2."""
        bullet.setGravity(*acceleration, physicsClientId=self.client)

    def snapshot(self) -> int:
        """Keep the state of everything; `restore` goes back to it."""
        return int(bullet.saveState(physicsClientId=self.client))

    # Bodies ------------------------------------------------------------------------------------

    def box(self, half_extents_m: Vector3, rgba: Sequence[float]) -> tuple[int, int]:
        """A shape to touch and a shape to look at, for `body`."""
        return self._shapes(bullet.GEOM_BOX, rgba, halfExtents=half_extents_m)

    def sphere(self, radius_m: float, rgba: Sequence[float]) -> tuple[int, int]:
        """A shape to touch and a shape to look at, for `body`."""
        return self._shapes(bullet.GEOM_SPHERE, rgba, radius=radius_m)

    def cylinder(self, radius_m: float, height_m: float, rgba: Sequence[float]) -> tuple[int, int]:
        """A shape to touch and a shape to look at, for `body`; its axis is z."""
        return self._round(bullet.GEOM_CYLINDER, radius_m, height_m, rgba)

    def capsule(
        self,
        radius_m: float,
        height_m: float,
        rgba: Sequence[float],
        *,
        turn: Sequence[float] = UPRIGHT,
    ) -> tuple[int, int]:
        """As `cylinder`, with half a sphere at each end of its height; turned by a quaternion."""
        return self._round(bullet.GEOM_CAPSULE, radius_m, height_m, rgba, turn)

    def _round(
        self,
        kind: int,
        radius_m: float,
        height_m: float,
        rgba: Sequence[float],
        turn: Sequence[float] = UPRIGHT,
    ) -> tuple[int, int]:
        client = self.client
        touched = bullet.createCollisionShape(
            kind,
            radius=radius_m,
            height=height_m,
            collisionFrameOrientation=turn,
            physicsClientId=client,
        )
        seen = -1
        if self.is_visible:  # the same numbers are called otherwise there
            seen = bullet.createVisualShape(
                kind,
                radius=radius_m,
                length=height_m,
                visualFrameOrientation=turn,
                rgbaColor=rgba,
                physicsClientId=client,
            )
        return touched, seen

    def disc(self, radius_m: float, rgba: Sequence[float]) -> tuple[int, int]:
        """A mark to look at, which nothing touches, for `body`."""
        if not self.is_visible:
            return BASE, BASE
        seen = bullet.createVisualShape(
            bullet.GEOM_CYLINDER,
            radius=radius_m,
            length=0.002,
            rgbaColor=rgba,
            physicsClientId=self.client,
        )
        return BASE, seen

    def boxes(
        self, boxes_m: Sequence[tuple[Vector3, Vector3]], rgba: Sequence[float]
    ) -> tuple[int, int]:
        """Boxes, by half extents and centre, as one shape to touch and one to look at."""
        half_extents_m, centres = zip(*boxes_m, strict=True)
        given: dict[str, Any] = {
            "shapeTypes": [bullet.GEOM_BOX] * len(centres),
            "halfExtents": list(half_extents_m),
            "physicsClientId": self.client,
        }
        touched = bullet.createCollisionShapeArray(collisionFramePositions=list(centres), **given)
        seen = -1
        if self.is_visible:
            seen = bullet.createVisualShapeArray(
                visualFramePositions=list(centres), rgbaColors=[rgba] * len(centres), **given
            )
        return touched, seen

    def _shapes(self, kind: int, rgba: Sequence[float], **size: object) -> tuple[int, int]:
        client = self.client
        touched = bullet.createCollisionShape(kind, physicsClientId=client, **size)
        seen = -1
        if self.is_visible:
            seen = bullet.createVisualShape(kind, rgbaColor=rgba, physicsClientId=client, **size)
        return touched, seen

    def body(
        self,
        shapes: tuple[int, int],
        position: Vector3,
        *,
        mass_kg: float = 0.0,
        rail: Vector3 | None = None,
        restitution: float = 0.0,
        friction: float = 0.0,
        centre_of_mass: Vector3 = STILL,
    ) -> int:
        """A rigid body.

        Args:
            shapes: Of `box` or `sphere`.
            position: Of its centre in world, metres.
            mass_kg: Its mass; one of 0 never moves.
            rail: Axis it can only slide along, without friction: then it is link 0 of a body whose
                base stands still.
            restitution: That of a contact is the product of both bodies'.
            friction: Lateral.
            centre_of_mass: Of a body without a rail, in the frame of its shape.
        """
        client, (touched, seen) = self.client, shapes
        if rail is None:
            made = bullet.createMultiBody(
                mass_kg,
                touched,
                seen,
                position,
                baseInertialFramePosition=centre_of_mass,
                physicsClientId=client,
            )
        else:
            made = bullet.createMultiBody(
                0.0,
                -1,
                -1,
                position,
                linkMasses=[mass_kg],
                linkCollisionShapeIndices=[touched],
                linkVisualShapeIndices=[seen],
                linkPositions=[STILL],
                linkOrientations=[UPRIGHT],
                linkInertialFramePositions=[STILL],
                linkInertialFrameOrientations=[UPRIGHT],
                linkParentIndices=[0],
                linkJointTypes=[bullet.JOINT_PRISMATIC],
                linkJointAxis=[rail],
                physicsClientId=client,
            )
            self.let_go(made, 0)
        link = BASE if rail is None else 0
        self.set_contact(made, link, restitution=restitution, friction=friction)
        return int(made)

    def slider(
        self,
        fixed: tuple[int, int],
        moving: tuple[int, int],
        position: Vector3,
        *,
        mass_kg: float,
        axis: Vector3,
    ) -> int:
        """A body that stands still, and a link 0 in its frame that slides along an axis of it."""
        return int(
            bullet.createMultiBody(
                0.0,
                *fixed,
                position,
                linkMasses=[mass_kg],
                linkCollisionShapeIndices=[moving[0]],
                linkVisualShapeIndices=[moving[1]],
                linkPositions=[STILL],
                linkOrientations=[UPRIGHT],
                linkInertialFramePositions=[STILL],
                linkInertialFrameOrientations=[UPRIGHT],
                linkParentIndices=[0],
                linkJointTypes=[bullet.JOINT_PRISMATIC],
                linkJointAxis=[axis],
                physicsClientId=self.client,
            )
        )

    def robot(self, urdf: str) -> int:
        """A robot whose base stands still, from its description."""
        # PyBullet reads a robot from a file only.
        with tempfile.TemporaryDirectory(prefix="robo-eval-") as folder:
            path = Path(folder) / "robot.urdf"
            path.write_text(urdf, encoding="utf-8")
            return int(
                bullet.loadURDF(
                    str(path),
                    useFixedBase=True,
                    flags=bullet.URDF_USE_INERTIA_FROM_FILE,
                    physicsClientId=self.client,
                )
            )

    def links(self, body: int) -> dict[str, int]:
        """Numbers of the links of a robot, by name."""
        return {info[12].decode(): info[0] for info in self._infos(body)}

    def joints(self, body: int) -> dict[str, int]:
        """Numbers of the joints of a robot, by name."""
        return {info[1].decode(): info[0] for info in self._infos(body)}

    def _infos(self, body: int) -> list[tuple[Any, ...]]:
        count = bullet.getNumJoints(body, physicsClientId=self.client)
        return [
            bullet.getJointInfo(body, joint, physicsClientId=self.client) for joint in range(count)
        ]

    def gear(self, body: int, one: int, other: int) -> None:
        """Have two joints that slide against each other always be equally far out."""
        gear = bullet.createConstraint(
            body,
            one,
            body,
            other,
            jointType=bullet.JOINT_GEAR,
            jointAxis=(1.0, 0.0, 0.0),
            parentFramePosition=STILL,
            childFramePosition=STILL,
            physicsClientId=self.client,
        )
        bullet.changeConstraint(
            gear, gearRatio=-1.0, erp=0.1, maxForce=50.0, physicsClientId=self.client
        )

    def feel(self, body: int, joint: int) -> None:
        """Have forces and torques at a joint measured; `joint_states` gives them."""
        bullet.enableJointForceTorqueSensor(
            body, joint, enableSensor=True, physicsClientId=self.client
        )

    def limit(self, body: int, joint: int, low: float, high: float) -> None:
        """Keep a joint between two positions, radians or metres."""
        bullet.changeDynamics(
            body, joint, jointLowerLimit=low, jointUpperLimit=high, physicsClientId=self.client
        )

    def let_go(
        self, body: int, joint: int, *, is_ball_joint: bool = False, friction_n: float = 0.0
    ) -> None:
        """Switch off the motor that the engine gives every joint, but for dry friction."""
        if is_ball_joint:
            bullet.setJointMotorControlMultiDof(
                body,
                joint,
                bullet.POSITION_CONTROL,
                targetPosition=UPRIGHT,
                positionGain=0.0,
                velocityGain=0.0,
                force=STILL,
                physicsClientId=self.client,
            )
        else:
            bullet.setJointMotorControl2(
                body, joint, bullet.VELOCITY_CONTROL, force=friction_n, physicsClientId=self.client
            )

    def set_contact(
        self, body: int, link: int, *, restitution: float, friction: float | None = None
    ) -> None:
        """How a body bounces and, if given, rubs."""
        rubs = {} if friction is None else {"lateralFriction": friction}
        bullet.changeDynamics(
            body, link, restitution=restitution, physicsClientId=self.client, **rubs
        )

    # Looking -----------------------------------------------------------------------------------

    def picture(
        self,
        eye: Vector3,
        target: Vector3,
        *,
        width: int = 480,
        height: int = 360,
        fov_deg: float = FOV_DEG,
    ) -> NDArray[np.uint8]:
        """The world seen from a point in the direction of another as RGB, shape (H, W, 3)."""
        return self.depth_picture(eye, target, width=width, height=height, fov_deg=fov_deg)[0]

    def depth_picture(
        self,
        eye: Vector3,
        target: Vector3,
        *,
        width: int,
        height: int,
        fov_deg: float = FOV_DEG,
        up: Vector3 = (0.0, 0.0, 1.0),
        **light: Any,
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """As `picture`, and the distance of what is seen along the line of sight.

        Returns:
            RGB of shape (H, W, 3), and metres of shape (H, W, 1).
        """
        view = bullet.computeViewMatrix(eye, target, up)
        lens = bullet.computeProjectionMatrixFOV(fov_deg, width / height, _NEAR_M, _FAR_M)
        _, _, rgba, depth, _ = bullet.getCameraImage(
            width,
            height,
            view,
            lens,
            renderer=bullet.ER_TINY_RENDERER,
            physicsClientId=self.client,
            **light,
        )
        # A PyBullet that was built without NumPy gives tuples, of which bytes are made faster.
        picture = np.frombuffer(bytes(rgba), dtype=np.uint8).reshape(height, width, 4)
        buffer = np.asarray(depth, dtype=np.float64).reshape(height, width, 1)
        metres = _FAR_M * _NEAR_M / (_FAR_M - (_FAR_M - _NEAR_M) * buffer)
        return np.ascontiguousarray(picture[:, :, :3]), metres.astype(np.float32)


def places_seen(
    depth_m: NDArray[np.floating[Any]],
    eye: Vector3,
    target: Vector3,
    up: Vector3,
    *,
    fov_deg: float = FOV_DEG,
) -> NDArray[np.float64]:
    """Where in the world each pixel of `Engine.depth_picture` is.

    Args:
        depth_m: Distance along the line of sight, shape (H, W, 1).
        eye: Where the camera was, metres.
        target: At what it looked.
        up: What was above.
        fov_deg: Angle of its view, vertically.

    Returns:
        x, y, z of shape (H, W, 3), metres.
    """
    height, width = depth_m.shape[:2]
    ahead = np.subtract(target, eye)
    ahead = ahead / np.linalg.norm(ahead)
    right = np.cross(ahead, up)
    right = right / np.linalg.norm(right)
    above = np.cross(right, ahead)
    half = np.tan(np.radians(fov_deg) / 2.0)
    # The renderer looks through the lower left corner of each pixel.
    across = (np.arange(width) / width * 2.0 - 1.0) * half * width / height
    down = (1.0 - (np.arange(height) + 1.0) / height * 2.0) * half
    rays = ahead + across[None, :, None] * right + down[:, None, None] * above
    places: NDArray[np.float64] = eye + depth_m * rays
    return places
