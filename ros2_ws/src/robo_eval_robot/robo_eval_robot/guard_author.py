"""Whose messages count on a topic of the policy: those of one publisher, each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from robo_eval_robot.guard_checks import Code, Violation, counted


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message is from, as far as the middleware says."""

    source: str = ""
    """Its publisher; the same as on the graph."""
    sequence: int | None = None
    """Its number among those of its publisher."""


class Author:
    """The publisher that is listened to while motion is enabled.

    Args:
        topic: Full name of the topic.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._source: str | None = None
        self._sequence: int | None = None
        self.missed = 0
        """Messages of the author that did not come, by the numbers of those that did."""
        self.nodes: Mapping[str, str] = {}
        """Name of the node by publisher of the topic, as the graph has it."""

    def begin(self) -> None:
        """Motion is enabled: from now on the author is who is there alone, else who comes first."""
        self._source = next(iter(self.nodes)) if len(self.nodes) == 1 else None
        self._sequence = None

    def foreign(self, origin: Origin) -> tuple[Violation, ...]:
        """That a message is of somebody else.

        Args:
            origin: Where it is from.
        """
        if self._source is None:
            self._source = origin.source
        if origin.source == self._source:
            return ()
        stranger = self.nodes.get(origin.source, f"publisher {origin.source or 'unknown'}")
        text = f"{stranger} published on {self._topic}, and is not the policy that was enabled."
        return (counted(Code.OTHER_AUTHOR, text, 2, 1, "authors"),)

    def is_next(self, origin: Origin) -> bool:
        """Whether a message of the author came for the first time, and was not overtaken.

        Args:
            origin: Where it is from.
        """
        last = self._sequence
        if origin.sequence is None:
            return True
        if last is not None and origin.sequence <= last:
            return False
        self.missed += 0 if last is None else origin.sequence - last - 1
        self._sequence = origin.sequence
        return True

    def several(self) -> tuple[Violation, ...]:
        """That several nodes are there, of which nobody can say which is the policy.

        Not those of one name: a process that was killed stays on the graph for a while.
        """
        names = sorted(set(self.nodes.values()))
        if len(names) <= 1:
            return ()
        text = f"{' and '.join(names)} publish on {self._topic}; end all but the policy."
        return (counted(Code.OTHER_AUTHOR, text, len(names), 1, "authors"),)
