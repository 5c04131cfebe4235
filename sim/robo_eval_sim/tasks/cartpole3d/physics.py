"""What the bodies of a CartPole3D world are made of, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL

BallKind = Literal["free", "fixed", "rail"]
_CYLINDER_MARGIN_M = 0.006
"""The reference's engine takes a cylinder's inertia as that of a box this much larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Physics:
    """Constants of one episode; the defaults are level 0.

    Attributes:
        cart_mass_kg: Mass of the cart; its inertia scales with it.
        pole_mass_kg: Mass of the pole.
        pole_length_m: Length of the pole's shape, which starts 0.05 m above the pivot.
        pole_com_height_m: Centre of mass above the pivot.
        ball_radius_m: Radius of every ball.
        ball_mass_kg: Mass of a ball that can move.
        ball_kind: `free` balls fly, `fixed` ones never move, `rail` ones slide without friction
            on a horizontal line.
        pool: Most balls there can be in the episode.
        gravity_m_s2: Downward acceleration.
        balls_fall: Whether gravity acts on balls; if not, on the robot alone.
        wall_restitution: Of the walls; that of a contact is the product of both bodies'.
        ball_restitution: Of the balls.
        slide_friction_n_s_m: Force against the cart's velocity, viscous, of its two slides.
        push_gain: Force on the cart as a share of what it is told.
        delay_s: How much later the push of an action acts. Of a part of a tick that much of the
            push before is blended in.
        position_noise_m: Standard deviation of what is seen of the cart's position.
        velocity_noise_m_s: Of its velocity.
        tilt_noise_rad: Of the pole's roll and pitch.
        tilt_rate_noise_rad_s: Of its angular velocity.
        force_noise_n: Standard deviation of a force on the cart, along each slide, that nobody
            models: first-order Gauss-Markov, stationary.
        force_memory_s: Time after which 1/e of its correlation is left; 0 if none is.
    """

    cart_mass_kg: float = NOMINAL.cart_mass_kg
    pole_mass_kg: float = NOMINAL.pole_mass_kg
    pole_length_m: float = NOMINAL.pole_length_m
    pole_com_height_m: float = NOMINAL.pole_com_height_m
    ball_radius_m: float = NOMINAL.ball_radius_m
    ball_mass_kg: float = NOMINAL.ball_mass_kg
    ball_kind: BallKind = "free"
    pool: int = 4
    gravity_m_s2: float = NOMINAL.gravity_m_s2
    balls_fall: bool = False
    wall_restitution: float = 1.0
    ball_restitution: float = 1.0
    slide_friction_n_s_m: float = 0.0
    push_gain: float = 1.0
    delay_s: float = 0.0
    position_noise_m: float = 0.0
    velocity_noise_m_s: float = 0.0
    tilt_noise_rad: float = 0.0
    tilt_rate_noise_rad_s: float = 0.0
    force_noise_n: float = 0.0
    force_memory_s: float = 0.0

    @property
    def is_late(self) -> bool:
        """Whether the push of an action is not what acts in its tick."""
        return self.delay_s > 0.0 or self.push_gain != 1.0

    @property
    def is_hindered(self) -> bool:
        """Whether something acts on the cart beside pole, drive and balls."""
        return self.slide_friction_n_s_m > 0.0 or self.force_noise_n > 0.0

    @property
    def is_seen_noisy(self) -> bool:
        """Whether sensors of the robot are."""
        return bool(
            self.position_noise_m
            or self.velocity_noise_m_s
            or self.tilt_noise_rad
            or self.tilt_rate_noise_rad_s
        )

    @property
    def bodies(self) -> Physics:
        """These, with all as usual that needs no bodies built anew."""
        return replace(self, **_LATER)

    @property
    def pole_tip_height_m(self) -> float:
        """Upper end of the pole's shape above the pivot."""
        return POLE_FOOT_M + self.pole_length_m


POLE_FOOT_M = 0.05
"""Lower end of the pole's shape above the pivot."""
CART_HEIGHT_M = 0.2
CART_SHAPE_Z_M = 0.2
"""Centre of the cart's shape above the cart's frame, whose origin is the centre of mass."""
CORRECT, REFERENCE = LINES = ("correct", "reference")
"""Where the lines of level 10 lie: as drawn, or as the public reference program has them."""
LEVEL_0 = Physics()
_LATER: Final[dict[str, Any]] = {
    name: getattr(LEVEL_0, name)
    for name in (
        *("wall_restitution", "ball_restitution", "slide_friction_n_s_m", "push_gain", "delay_s"),
        *("position_noise_m", "velocity_noise_m_s", "tilt_noise_rad", "tilt_rate_noise_rad_s"),
        *("force_noise_n", "force_memory_s"),
    )
}


def cylinder_inertia(
    mass_kg: float, radius_m: float, length_m: float
) -> tuple[float, float, float]:
    """Principal moments about the centre of a cylinder along z, as the reference has them.

    Its engine takes the box around the shape, a little enlarged, instead of the cylinder.

    Example:
        >>> [round(moment, 7) for moment in cylinder_inertia(1.0, 0.5, 0.2)]
        [0.0878727, 0.0878727, 0.1686727]
    """
    width = 2.0 * radius_m + _CYLINDER_MARGIN_M
    height = length_m + _CYLINDER_MARGIN_M
    lying = mass_kg / 12.0 * (width * width + height * height)
    return lying, lying, mass_kg / 6.0 * width * width
