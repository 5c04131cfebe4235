"""How cart and pole are described as URDF: for the engine, and for whoever looks at a trace."""

from __future__ import annotations

from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL
from robo_eval_sim.tasks.cartpole3d.physics import (
    CART_HEIGHT_M,
    CART_SHAPE_Z_M,
    LEVEL_0,
    POLE_FOOT_M,
    Physics,
    cylinder_inertia,
)

JOINTS = ("cart_x", "cart_y", "pole_roll", "pole_pitch")
"""Joints of the description in traces: two sliders, then roll and pitch of the pole."""
_NO_LIMIT = (1.0, -1.0)
"""An upper limit below the lower one tells the engine that there is none."""
_REACH = NOMINAL.arena_half_width_m - NOMINAL.cart_radius_m


def engine_urdf(physics: Physics) -> str:
    """Two sliders carry the cart, a ball joint on the cart carries the pole.

    The reference has a planar joint with a yaw axis, which nothing can turn: every contact is
    frictionless and every body is round about that axis. PyBullet cannot set the speed of a
    planar joint, so sliders are used.
    """
    return _robot(
        _link("ground", None, ""),
        _link("slider", None, ""),
        _cart(physics),
        _pole(physics),
        _slider("cart_x", "ground", "slider", "1 0 0"),
        _slider("cart_y", "slider", "cart", "0 1 0"),
        _joint("pivot", "spherical", "cart", "pole", "1 0 0", z_m=NOMINAL.pivot_height_m),
    )


def display_urdf(physics: Physics = LEVEL_0, balls: int = 0) -> str:
    """The same robot with the four joints of `JOINTS`, balls, and shapes to look at."""
    radius = physics.ball_radius_m
    return _robot(
        _link("world", None, ""),
        _link("slider", None, ""),
        _cart(physics),
        _link("tilt", None, ""),
        _pole(physics),
        _slider("cart_x", "world", "slider", "1 0 0", (-_REACH, _REACH)),
        _slider("cart_y", "slider", "cart", "0 1 0", (-_REACH, _REACH)),
        # R = Ry(pitch) Rx(roll): the joint nearer to the cart turns last.
        _joint("pole_pitch", "continuous", "cart", "tilt", "0 1 0", z_m=NOMINAL.pivot_height_m),
        _joint("pole_roll", "continuous", "tilt", "pole", "1 0 0"),
        *(
            _link(f"ball_{i}", None, _visual(_sphere(radius), "0.6 0.6 0.6 1"))
            for i in range(balls)
        ),
        *(_joint(f"free_{i}", "floating", "world", f"ball_{i}", "1 0 0") for i in range(balls)),
    )


def _robot(*parts: str) -> str:
    return '<?xml version="1.0"?>\n<robot name="cartpole3d">\n' + "\n".join(parts) + "\n</robot>\n"


def _cart(physics: Physics) -> str:
    mass = physics.cart_mass_kg
    inertia = cylinder_inertia(mass, NOMINAL.cart_radius_m, CART_HEIGHT_M)
    shape = _cylinder(NOMINAL.cart_radius_m, CART_HEIGHT_M, CART_SHAPE_Z_M, "0.2 0.35 0.6 1")
    return _link("cart", (mass, 0.0, inertia), shape)


def _pole(physics: Physics) -> str:
    mass, length = physics.pole_mass_kg, physics.pole_length_m
    inertia = cylinder_inertia(mass, NOMINAL.pole_radius_m, length)
    shape = _cylinder(NOMINAL.pole_radius_m, length, POLE_FOOT_M + length / 2.0, "0.85 0.55 0.15 1")
    return _link("pole", (mass, physics.pole_com_height_m, inertia), shape)


def _link(
    name: str, body: tuple[float, float, tuple[float, float, float]] | None, shape: str
) -> str:
    mass, com_z, (ixx, iyy, izz) = body or (0.0, 0.0, (0.0, 0.0, 0.0))
    return (
        f'  <link name="{name}">\n    <inertial><origin xyz="0 0 {com_z!r}"/>'
        f'<mass value="{mass!r}"/><inertia ixx="{ixx!r}" iyy="{iyy!r}" izz="{izz!r}"'
        f' ixy="0" ixz="0" iyz="0"/></inertial>\n{shape}  </link>'
    )


def _cylinder(radius: float, length: float, z: float, rgba: str) -> str:
    geometry = (
        f'<origin xyz="0 0 {z!r}"/>'
        f'<geometry><cylinder radius="{radius!r}" length="{length!r}"/></geometry>'
    )
    return _visual(geometry, rgba) + f"    <collision>{geometry}</collision>\n"


def _sphere(radius: float) -> str:
    return f'<geometry><sphere radius="{radius!r}"/></geometry>'


def _visual(geometry: str, rgba: str) -> str:
    material = f'<material name="{rgba.replace(" ", "_")}"><color rgba="{rgba}"/></material>'
    return f"    <visual>{geometry}{material}</visual>\n"


def _slider(
    name: str, parent: str, child: str, axis: str, limits: tuple[float, float] = _NO_LIMIT
) -> str:
    limit = f'<limit lower="{limits[0]!r}" upper="{limits[1]!r}" effort="0" velocity="100"/>'
    return _joint(name, "prismatic", parent, child, axis, extra=limit)


def _joint(
    name: str,
    kind: str,
    parent: str,
    child: str,
    axis: str,
    *,
    z_m: float = 0.0,
    extra: str = "",
) -> str:
    return (
        f'  <joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0 0 {z_m!r}"/><axis xyz="{axis}"/>{extra}</joint>'
    )
