"""Which curves a robot's live view has, and in which plots."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from robo_eval_robot.config import Limits, RobotConfig

_SLUGS: Final = {
    "m": "m",
    "rad": "rad",
    "m/s": "m_s",
    "rad/s": "rad_s",
    "N": "n",
    "N m": "nm",
}


class Group(StrEnum):
    """What the curves of a plot are about; the first part of their paths."""

    JOINTS = "joints"
    COMMANDS = "commands"
    TOOL = "tool"


class Source(StrEnum):
    """Where a command is seen."""

    REQUESTED = "requested"
    """By the policy, of the guard."""
    APPLIED = "applied"
    """By the guard, of the controller."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Limits of one joint or axis in a plot, drawn as two lines."""

    name: str
    low: float
    high: float


@dataclass(slots=True)
class Plot:
    """One plot: curves of one quantity in one unit.

    Attributes:
        group: What they are about.
        quantity: `position`, `velocity`, `effort`, `force`, `torque`.
        unit: Of the vertical axis.
        names: Joints or axes, in the order of their colours.
        bounds: Their limits.
    """

    group: Group
    quantity: str
    unit: str
    names: list[str] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)

    @property
    def lines(self) -> list[Bound]:
        """The limits that are drawn: once, as `all`, where they are the same for all."""
        if (
            len(self.bounds) == len(self.names) > 1
            and len({(b.low, b.high) for b in self.bounds}) == 1
        ):
            return [Bound("all", self.bounds[0].low, self.bounds[0].high)]
        return self.bounds

    @property
    def title(self) -> str:
        """`position of joints (m)`."""
        of = {Group.JOINTS: "", Group.COMMANDS: "command: ", Group.TOOL: "tool: "}[self.group]
        return f"{of}{self.quantity} ({self.unit})"

    @property
    def path(self) -> tuple[str, ...]:
        """Where its curves are: `joints`, `position_m`."""
        return (str(self.group), f"{self.quantity}_{_SLUGS[self.unit]}")


class Layout:
    """Every plot of a robot.

    Args:
        config: The robot.
    """

    def __init__(self, config: RobotConfig) -> None:
        self._config: Final = config
        self._plots: Final[dict[tuple[Group, str, str], Plot]] = {}
        for quantity in ("position", "velocity", "effort"):
            for joint in config.joints:
                self._add(Group.JOINTS, quantity, joint)
        for joint in config.commanded:
            self._add(Group.COMMANDS, config.controller.interface, joint)
        self._add_tool()

    @property
    def plots(self) -> list[Plot]:
        """All, in the order they are shown: what is asked for first."""
        return sorted(self._plots.values(), key=lambda plot: plot.group is not Group.COMMANDS)

    def curve(self, quantity: str, joint: str) -> tuple[str, ...]:
        """Path of what is measured of a joint."""
        plot = self._plots[Group.JOINTS, quantity, self._unit(quantity, joint)]
        return (*plot.path, joint)

    def command(self, source: Source, joint: str) -> tuple[str, ...]:
        """Path of what is asked of a joint."""
        quantity = self._config.controller.interface
        plot = self._plots[Group.COMMANDS, quantity, self._unit(quantity, joint)]
        return (*plot.path, str(source), joint)

    def tool(self, quantity: str, name: str) -> tuple[str, ...]:
        """Path of what is measured at the tool: a coordinate, a force, a torque."""
        unit = {"position": "m", "force": "N", "torque": "N m"}[quantity]
        return (*self._plots[Group.TOOL, quantity, unit].path, name)

    def _unit(self, quantity: str, joint: str) -> str:
        is_slider = self._config.joints[joint].type == "prismatic"
        if quantity == "effort":
            return "N" if is_slider else "N m"
        unit = "m" if is_slider else "rad"
        return unit if quantity == "position" else f"{unit}/s"

    def _plot(self, group: Group, quantity: str, unit: str) -> Plot:
        return self._plots.setdefault((group, quantity, unit), Plot(group, quantity, unit))

    def _add(self, group: Group, quantity: str, joint: str) -> None:
        plot = self._plot(group, quantity, self._unit(quantity, joint))
        plot.names.append(joint)
        limits = self._config.limits(joint)
        if limits is not None:
            plot.bounds.append(Bound(joint, *_range(limits, quantity)))

    def _add_tool(self) -> None:
        state = self._config.state
        if state.workspace is not None:
            box = state.workspace
            plot = self._plot(Group.TOOL, "position", "m")
            for axis, (low, high) in (("x", box.x_m), ("y", box.y_m), ("z", box.z_m)):
                plot.names.append(axis)
                plot.bounds.append(Bound(axis, low, high))
        if state.wrench is not None:
            for quantity, unit, most in (
                ("force", "N", state.wrench.force_n),
                ("torque", "N m", state.wrench.torque_nm),
            ):
                plot = self._plot(Group.TOOL, quantity, unit)
                plot.names.append("norm")
                plot.bounds.append(Bound("norm", 0.0, most))


def _range(limits: Limits, quantity: str) -> tuple[float, float]:
    if quantity == "position":
        return limits.low, limits.high
    most = limits.velocity if quantity == "velocity" else limits.effort
    return -most, most
