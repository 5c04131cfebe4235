"""The mirrors of the hardware emergency stop: whether one is pressed, and whether all are heard."""

from __future__ import annotations

from collections.abc import Mapping

from robo_eval_robot.config import EStop
from robo_eval_robot.guard_checks import Code, Violation, counted, too_long


class EmergencyStops:
    """Remembers each source of the emergency stop's topic.

    A source that is pressed counts until it is released itself. If it is gone meanwhile, the same
    node has to come back and say so.

    Args:
        config: What the robot file says of them.
    """

    def __init__(self, config: EStop) -> None:
        self._config = config
        self._pressed: dict[str, bool] = {}
        self._heard: dict[str, float] = {}
        self._nodes: dict[str, str] = {}
        self._gone: list[str] = []
        self._count = 1

    def hear(self, source: str, now: float, *, pressed: bool) -> None:
        """Take a message.

        Args:
            source: Which publisher it is of.
            now: Monotonic time, s.
            pressed: What it says.
        """
        self._pressed[source], self._heard[source] = pressed, now
        for gone in list(self._gone):
            # The node that was ended has been started again, or is heard after all.
            is_same = source in self._nodes and self._nodes.get(gone) == self._nodes[source]
            if is_same or gone == source:
                self._gone.remove(gone)
            if is_same and gone != source:
                del self._pressed[gone], self._heard[gone]

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
            self._gone = [s for s, at in self._heard.items() if s not in nodes and at < now]
            for gone in [source for source in self._gone if self._is_followed(source, nodes)]:
                self._gone.remove(gone)
                del self._pressed[gone], self._heard[gone]

    def _is_followed(self, gone: str, nodes: Mapping[str, str]) -> bool:
        """Whether its node, started again, spoke before it was known that it had been ended.

        One that was pressed has to be released after that.
        """
        node, at = self._nodes.get(gone), self._heard[gone]
        return not self._pressed[gone] and any(
            nodes.get(source) == node and heard > at for source, heard in self._heard.items()
        )

    def lost(self, now: float) -> tuple[Violation, ...]:
        """That one that has been heard could not be heard any more.

        Args:
            now: Monotonic time, s.
        """
        wrong = []
        if self._config.required and self._pressed and (self._gone or not self._count):
            text = "Nobody publishes the emergency stop's topic any more."
            if self._count:
                text = f"A source of the emergency stop is gone: {self._name(self._gone[0])}."
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
