"""The mirrors of the hardware emergency stop: whether one is pressed, and whether all are heard."""

from __future__ import annotations

from collections.abc import Mapping

from robo_eval_robot.config import EStop
from robo_eval_robot.guard_checks import Code, Violation, counted, too_long


class EmergencyStops:
    """Remembers each source of the emergency stop's topic.

    A source that is pressed counts until it is released itself. If it is gone meanwhile, its node
    has to come back and say so. A node of the same name that was there beside it is another one.

    Args:
        config: What the robot file says of them.
    """

    def __init__(self, config: EStop) -> None:
        self._config = config
        self._pressed: dict[str, bool] = {}
        self._heard: dict[str, float] = {}
        self._nodes: dict[str, str] = {}
        self._since: dict[str, float] = {}
        """When each was first seen or heard."""
        self._gone: dict[str, float] = {}
        """When its end was seen."""
        self._count = 1

    def hear(self, source: str, now: float, *, pressed: bool) -> None:
        """Take a message.

        Args:
            source: Which publisher it is of.
            now: Monotonic time, s.
            pressed: What it says.
        """
        self._pressed[source], self._heard[source] = pressed, now
        self._since.setdefault(source, now)
        self._gone.pop(source, None)  # it is heard after all
        self._forget_followed()

    def see(self, count: int, nodes: Mapping[str, str] | None, now: float) -> None:
        """Look at who publishes the topic.

        Args:
            count: How many there are.
            nodes: Name of the node by publisher; None if that is not known.
            now: Monotonic time, s.
        """
        self._count = count
        if nodes is not None:
            self._nodes |= nodes
            self._since = dict.fromkeys(nodes, now) | self._since
            ended = self._nodes.keys() - nodes
            self._gone = {s: self._gone.get(s, now) for s in self._heard if s in ended}
            self._forget_followed()

    def _forget_followed(self) -> None:
        """Forget who is gone, where the node that was ended has been started again, and spoke."""
        for gone in list(self._gone):
            if any(self._follows(gone, each) for each in self._heard.keys() - self._gone.keys()):
                del self._gone[gone], self._pressed[gone], self._heard[gone]

    def _follows(self, gone: str, source: str) -> bool:
        if self._nodes.get(source) != self._nodes[gone]:
            return False
        since = self._since[source]
        # The graph may show the end long after it. But a release counts only after that.
        return since >= self._gone[gone] if self._pressed[gone] else since > self._heard[gone]

    def lost(self, now: float) -> tuple[Violation, ...]:
        """That one that has been heard could not be heard any more.

        Args:
            now: Monotonic time, s.
        """
        wrong = []
        if self._config.required and self._pressed and (self._gone or not self._count):
            text = "Nobody publishes the emergency stop's topic any more."
            if self._count:
                names = ", ".join(sorted({self._name(source) for source in self._gone}))
                text = f"A source of the emergency stop is gone: {names}."
            there = max(self._count + len(self._gone), 1)
            wrong.append(counted(Code.ESTOP_LOST, text, self._count, there, "publishers"))
        deadline_s = self._config.deadline_s
        for source, at in self._heard.items():
            if deadline_s is not None and now - at > deadline_s:
                who = self._name(source)
                text = f"{who} has said nothing of the emergency stop for {now - at:.3f} s."
                wrong.append(too_long(Code.ESTOP_LOST, text, now - at, deadline_s))
        return tuple(wrong)

    def persisting(self, now: float) -> tuple[Violation, ...]:
        """What keeps the robot from being enabled.

        Args:
            now: Monotonic time, s.
        """
        wrong = list(self.lost(now))
        pressed = [self._name(source) for source, is_so in self._pressed.items() if is_so]
        if pressed:
            text = f"The emergency stop is pressed: {', '.join(sorted(set(pressed)))}."
            wrong.append(Violation(code=Code.ESTOP, message=text))
        elif not self._pressed and self._config.required:
            text = "The emergency stop has not been seen released yet."
            wrong.append(Violation(code=Code.ESTOP, message=text))
        return tuple(wrong)

    def _name(self, source: str) -> str:
        return self._nodes.get(source, f"source {source or 'unknown'}")
