"""The physics engine: the one file that calls PyBullet. It knows no task."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import MissingExtraError, pip_install


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


try:
    with _silence():  # it prints its build time
        import pybullet as bullet
except ImportError as err:
    raise MissingExtraError(
        f"the simulator needs PyBullet, which is not installed: {pip_install('sim')}"
    ) from err

Vector3 = tuple[float, float, float]
UPRIGHT: Final = (0.0, 0.0, 0.0, 1.0)
STILL: Final = (0.0, 0.0, 0.0)
WORLD: Final = bullet.WORLD_FRAME
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


class Engine:
    """One world of the engine, connected and empty.

    Attributes:
        client: Its number.
        is_visible: Whether bodies have shapes to look at.
    """

    def __init__(self) -> None:
        self.client: int = bullet.connect(bullet.DIRECT)
        self.is_visible = False

    def close(self) -> None:
        """Free the engine; closing twice does nothing."""
        if self.client >= 0:
            bullet.disconnect(self.client)
            self.client = -1

    def clear(
        self,
        *,
        tick_s: float,
        gravity_m_s2: float,
        is_visible: bool,
        **parameters: Any,  # noqa: ANN401 - of the engine
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
        bullet.setGravity(0.0, 0.0, -gravity_m_s2, physicsClientId=self.client)

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
        """
        client, (touched, seen) = self.client, shapes
        if rail is None:
            made = bullet.createMultiBody(mass_kg, touched, seen, position, physicsClientId=client)
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

    def let_go(self, body: int, joint: int, *, is_ball_joint: bool = False) -> None:
        """Switch off the motor that the engine gives every joint."""
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
                body, joint, bullet.VELOCITY_CONTROL, force=0.0, physicsClientId=self.client
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
        self, eye: Vector3, target: Vector3, *, width: int = 480, height: int = 360
    ) -> NDArray[np.uint8]:
        """The world seen from a point in the direction of another as RGB, shape (H, W, 3)."""
        view = bullet.computeViewMatrix(eye, target, (0.0, 0.0, 1.0))
        lens = bullet.computeProjectionMatrixFOV(70.0, width / height, 0.1, 30.0)
        _, _, rgba, _, _ = bullet.getCameraImage(
            width,
            height,
            view,
            lens,
            renderer=bullet.ER_TINY_RENDERER,
            physicsClientId=self.client,
        )
        picture = np.asarray(rgba, dtype=np.uint8).reshape(height, width, 4)
        return np.ascontiguousarray(picture[:, :, :3])
