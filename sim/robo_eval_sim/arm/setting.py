"""What novelty can change about the arm, its table and what it sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SHAPES: Final = ("box", "cylinder", "capsule")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Constants of an episode; the defaults are those of level 0.

    Directions are in the plane of the table, from the axis x, or about the vertical.

    Attributes:
        object_mass_kg: Mass of what is to be grasped.
        object_size_m: Its edge, or diameter.
        object_shape: Index in `SHAPES`; a cylinder stands upright, a capsule lies.
        mass_offset_m: How far its centre of mass is from its middle, horizontally.
        mass_direction_rad: In which direction.
        friction: Coefficient between it and what it touches.
        restitution: Share of its speed that it keeps when it bounces off the table.
        payload_kg: What the hand weighs more.
        tilt_rad: Angle between gravity and the vertical.
        tilt_direction_rad: Towards where it leans.
        delay_s: How much later a command acts.
        gain: How much of a commanded change of position is carried out.
        backlash_rad: Play of every joint of the arm.
        grip: Force of the gripper as a share of the usual one.
        joint_noise_rad: Standard deviation of what is read of each joint.
        joint_bias_rad: How far beside its position each joint is read.
        bias_seed: Decides to which side.
        object_noise_m: Standard deviation of each coordinate read of objects and goals.
        object_bias_m: How far beside their place objects are seen.
        bias_direction_rad: In which direction.
        noise_seed: Where noise comes from.
        camera_shift_m: How far the camera has moved.
        camera_turn_rad: How far it has turned about its axis of sight.
        light: Brightness of the light as a share of the usual one.
        light_turn_rad: How far its direction has turned about the vertical.
        texture: Contrast of squares on the table, 0 is none.
        distractors: Further things on the table.
        place_seed: Where they stand.
        fixture_shift_m: How far a fixture stands beside the place that is known of it.
        fixture_turn_rad: How far it is turned.
        fixture_direction_rad: In which direction it was moved.
        goal_shift_m: How far the goal moves.
        goal_direction_rad: In which direction.
        block_height_m: Height of the wall that stands in the way, 0 is none.
        block_x_m: Where its middle is.
        block_y_m: Where its middle is.
        block_turn_rad: How far it is turned about the vertical; at 0 it runs along y.
        slide_friction_n: Force that a sliding part needs to move.
    """

    object_mass_kg: float = 0.05
    object_size_m: float = 0.04
    object_shape: int = 0
    mass_offset_m: float = 0.0
    mass_direction_rad: float = 0.0
    friction: float = 1.0
    restitution: float = 0.0
    payload_kg: float = 0.0
    tilt_rad: float = 0.0
    tilt_direction_rad: float = 0.0
    delay_s: float = 0.0
    gain: float = 1.0
    backlash_rad: float = 0.0
    grip: float = 1.0
    joint_noise_rad: float = 0.0
    joint_bias_rad: float = 0.0
    bias_seed: int = 0
    object_noise_m: float = 0.0
    object_bias_m: float = 0.0
    bias_direction_rad: float = 0.0
    noise_seed: int = 0
    camera_shift_m: float = 0.0
    camera_turn_rad: float = 0.0
    light: float = 1.0
    light_turn_rad: float = 0.0
    texture: float = 0.0
    distractors: int = 0
    place_seed: int = 0
    fixture_shift_m: float = 0.0
    fixture_turn_rad: float = 0.0
    fixture_direction_rad: float = 0.0
    goal_shift_m: float = 0.0
    goal_direction_rad: float = 0.0
    block_height_m: float = 0.0
    block_x_m: float = 0.48
    block_y_m: float = 0.0
    block_turn_rad: float = 0.0
    slide_friction_n: float = 1.0

    @property
    def shapes(self) -> tuple[object, ...]:
        """What bodies are built from; other constants are set on those that are there."""
        return (
            self.object_size_m,
            self.object_shape,
            self.mass_offset_m,
            self.mass_direction_rad,
            self.distractors,
            self.place_seed,
            self.block_height_m,
            self.block_x_m,
            self.block_y_m,
            self.block_turn_rad,
        )


NOMINAL: Final = Setting()
