"""Draws what is heard of a robot with Rerun: in its window, in a file, or on another machine."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import numpy as np
import rerun as rr
import rerun.blueprint as rrb

from robo_eval_robot.guard import GuardState
from robo_eval_robot.view_layout import Group, Layout, Plot, Source

APPLICATION: Final = "robo-eval"
RUN: Final = "run"
"""Timeline: seconds since the run began."""
WALL: Final = "wall_time"
"""Timeline: wall clock."""
WINDOW: Final = "window"
"""Target that opens Rerun's own window."""
LOG: Final = ("log",)
LIMITS: Final = "limits"
STATES: Final = "states"
_OWN_VIEWER: Final = "rerun+http://127.0.0.1:9876/proxy"
_SHOWN_S: Final = 30.0
_LIVE_S: Final = 0.2
_KEPT_S: Final = 2.0
"""How often samples are handed over: what goes to a file alone may wait, and takes less space."""
_LAST_S: Final = 1.5
_MEMORY: Final = "25%"
"""Of the machine's, for the window; it forgets the oldest first."""
_ENDS: Final = ("lowest", "highest")
_LIMIT_COLOUR: Final = (150, 150, 150)
_COLOURS: Final = (
    (78, 121, 167),
    (242, 142, 43),
    (89, 161, 79),
    (176, 122, 161),
    (118, 183, 178),
    (237, 201, 72),
    (255, 157, 167),
    (156, 117, 95),
)
_STATE_COLOURS: Final = {
    GuardState.INIT: (150, 150, 150),
    GuardState.READY: (78, 121, 167),
    GuardState.RUNNING: (89, 161, 79),
    GuardState.WITHHELD: (237, 201, 72),
    GuardState.PROTECTIVE_STOP: (225, 87, 89),
    GuardState.ESTOP: (180, 40, 60),
}

Parts = tuple[str, ...]
"""Parts of where a curve is."""


@dataclass(slots=True)
class _Curve:
    """Samples that wait to be drawn."""

    times_ns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


def _open_viewer() -> None:
    """Start a viewer that only this machine can reach; one that is open already is used.

    Rerun's own way to start one lets it listen on every network.
    """
    address = urlsplit(_OWN_VIEWER)
    subprocess.Popen(  # noqa: S603 - Rerun's own module
        [
            *(sys.executable, "-m", "rerun", "--bind", str(address.hostname)),
            *("--port", str(address.port), "--memory-limit", _MEMORY, "--hide-welcome-screen"),
        ],
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # the window stays open after the run
    )


class Picture:
    """Everything that is shown of one run.

    Samples are collected and handed to Rerun in columns, which costs far less than one by one.

    Args:
        layout: The plots.
        began_ns: When the run began, ns since 1970.
        title: Name of the recording.
    """

    def __init__(self, layout: Layout, *, began_ns: int, title: str) -> None:
        self._layout: Final = layout
        self._began_ns: Final = began_ns
        self._curves: defaultdict[Parts, _Curve] = defaultdict(_Curve)
        self._states: dict[str, str] = {}
        self._every_s = _LIVE_S
        self._due_s = 0.0
        self._stream: Final = rr.RecordingStream(APPLICATION)
        self._stream.send_recording_name(title)

    def show(self, target: str) -> None:
        """Say where it is shown.

        Args:
            target: `window`, an address such as `rerun+http://host:9876/proxy`, or a file.
        """
        blueprint = _blueprint(self._layout.plots)
        if target == WINDOW:
            _open_viewer()
            self._stream.connect_grpc(_OWN_VIEWER, default_blueprint=blueprint)
        elif "://" in target:
            self._stream.connect_grpc(target, default_blueprint=blueprint)
        else:
            self._stream.save(Path(target), default_blueprint=blueprint)
            self._every_s = _KEPT_S
        self._style()

    def sample(self, path: Parts, time_ns: int, value: float) -> None:
        """One more point of a curve."""
        curve = self._curves[path]
        curve.times_ns.append(time_ns)
        curve.values.append(value)

    def state(self, lane: str, time_ns: int, value: str) -> bool:
        """Something has a state, shown as a lane; returns whether it is another than before."""
        if self._states.get(lane) == value:
            return False
        self._states[lane] = value
        self._stream.send_columns(
            _text((STATES, lane)), self._times([time_ns]), rr.StateChange.columns(state=[value])
        )
        return True

    def say(self, time_ns: int, text: str, *, is_bad: bool = False) -> None:
        """A line in the log."""
        level = rr.TextLogLevel.ERROR if is_bad else rr.TextLogLevel.INFO
        self._stream.send_columns(
            _text(LOG), self._times([time_ns]), rr.TextLog.columns(text=[text], level=[level])
        )

    def limits(self, time_ns: int) -> None:
        """Draw the lines of the limits up to a time."""
        for plot in self._layout.plots:
            for bound in plot.lines:
                for end, value in zip(_ENDS, (bound.low, bound.high), strict=True):
                    self.sample((LIMITS, *plot.path, bound.name, end), time_ns, value)

    def tick(self, now: float) -> None:
        """Hand over what was collected, now and then.

        Args:
            now: Monotonic time, s.
        """
        if now >= self._due_s:
            self._due_s = now + self._every_s
            self._flush()

    def _flush(self) -> None:
        for path, curve in self._curves.items():
            if curve.times_ns:
                self._stream.send_columns(
                    _text(path),
                    self._times(curve.times_ns),
                    rr.Scalars.columns(scalars=np.asarray(curve.values)),
                )
        self._curves.clear()

    def close(self) -> None:
        """Hand over what is left, and wait a moment until it is written."""
        self._flush()
        self._stream.flush(timeout_sec=_LAST_S)
        self._stream.disconnect()

    def _times(self, times_ns: Sequence[int]) -> list[rr.TimeColumn]:
        stamps = np.asarray(times_ns, np.int64)
        return [
            rr.TimeColumn(RUN, duration=(stamps - self._began_ns).astype("timedelta64[ns]")),
            rr.TimeColumn(WALL, timestamp=stamps.astype("datetime64[ns]")),
        ]

    def _style(self) -> None:
        """Names, colours and widths: of a joint always the same colour."""
        for plot in self._layout.plots:
            for number, name in enumerate(plot.names):
                colour = _COLOURS[number % len(_COLOURS)]
                for path, label, shade, width in _lines(plot, name, colour):
                    self._stream.log(
                        list(path),
                        rr.SeriesLines(names=label, colors=shade, widths=width),
                        static=True,
                    )
            for bound in plot.lines:
                for end in _ENDS:
                    self._stream.log(
                        [LIMITS, *plot.path, bound.name, end],
                        rr.SeriesLines(
                            names=f"{bound.name} {end}", colors=_LIMIT_COLOUR, widths=1.0
                        ),
                        static=True,
                    )
        self._stream.log(
            [STATES, "guard"],
            rr.StateConfiguration(
                values=[str(state) for state in _STATE_COLOURS],
                colors=list(_STATE_COLOURS.values()),
            ),
            static=True,
        )


def _lines(
    plot: Plot, name: str, colour: tuple[int, int, int]
) -> list[tuple[Parts, str, tuple[int, int, int], float]]:
    """Path, label, colour and width of a joint's curves in a plot."""
    if plot.group is not Group.COMMANDS:
        return [((*plot.path, name), name, colour, 1.5)]
    red, green, blue = ((255 + part) // 2 for part in colour)
    return [
        ((*plot.path, str(Source.REQUESTED), name), f"{name} requested", (red, green, blue), 3.0),
        ((*plot.path, str(Source.APPLIED), name), f"{name} applied", colour, 1.5),
    ]


def _blueprint(plots: Sequence[Plot]) -> rrb.Blueprint:
    """How the window is divided: plots above, states and log below, the newest half minute."""
    newest = rrb.VisibleTimeRange(
        RUN,
        start=rrb.TimeRangeBoundary.cursor_relative(seconds=-_SHOWN_S),
        end=rrb.TimeRangeBoundary.cursor_relative(),
    )
    views = [
        rrb.TimeSeriesView(
            origin="/",
            contents=[f"/{'/'.join(plot.path)}/**", f"/{LIMITS}/{'/'.join(plot.path)}/**"],
            name=plot.title,
            time_ranges=newest,
        )
        for plot in plots
    ]
    return rrb.Blueprint(
        rrb.Vertical(
            rrb.Grid(*views, name="joints and commands"),
            rrb.Horizontal(
                rrb.StateTimelineView(origin=f"/{STATES}", name="guard and episodes"),
                rrb.TextLogView(origin="/log", name="what happened"),
                column_shares=[3, 2],
            ),
            row_shares=[3, 1],
        ),
        rrb.BlueprintPanel(state="collapsed"),
        rrb.SelectionPanel(state="collapsed"),
        rrb.TimePanel(state="collapsed", timeline=RUN, play_state="following"),
    )


def _text(path: Parts) -> str:
    return str(rr.new_entity_path(list(path)))
