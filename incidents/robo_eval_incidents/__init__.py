"""The incident log: what went wrong around a robot, who looked at it, and for how many hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robo_eval_incidents.log import IncidentLog as IncidentLog
    from robo_eval_incidents.log import open_log as open_log

__all__ = ["IncidentLog", "open_log"]


def __getattr__(name: str) -> object:
    # Late, so that the command line can print its help without SQLAlchemy and pydantic.
    if name in __all__:
        from robo_eval_incidents import log

        return getattr(log, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
