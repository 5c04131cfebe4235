"""How a node lives in a process of its own: started, spun, and stopped with its last word said."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, Protocol

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from robo_eval.core.errors import TRACEBACK, RoboEvalError, said
from robo_eval_robot.config import RobotConfig

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PARENT: Final = "ROBO_EVAL_PARENT"
"""Environment variable with the process id a node is not to outlive."""
_SPIN_S: Final = 0.05
"""Python handles signals between two waits of the executor, which runs in C."""


class Part(Protocol):
    """What a process runs: a node, and what it does last."""

    node: Node

    @property
    def is_over(self) -> bool:
        """Whether it has ended by itself."""

    def finish(self) -> None:
        """Say the last word: stop commands, closed files. The context is still valid."""


class Joined:
    """A node in somebody else's process, spun only while that waits for something.

    Args:
        name: Of the node.
        robot: The robot, whose namespace it is in.
        **options: Of `rclpy.node.Node`.
    """

    def __init__(self, name: str, robot: RobotConfig, **options: Any) -> None:
        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self.node = Node(name, context=self._context, namespace=robot.namespace, **options)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)

    def close(self) -> None:
        """Leave the graph; closing twice does nothing."""
        if self._context.ok():
            self._executor.shutdown(timeout_sec=0.5)
            self.node.destroy_node()
            rclpy.try_shutdown(context=self._context)


def choose_transport() -> None:
    """Let Fast DDS speak UDP alone, unless somebody has chosen otherwise.

    With its shared memory a publisher was seen to stand still for a third of a second whenever a
    process joined or was killed: far too long for what stops a robot.
    """
    os.environ.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")


def die_with(parent: int) -> None:
    """Ask the kernel for SIGTERM when the process that started this one dies, however it dies."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the kernel was asked
            os.kill(os.getpid(), signal.SIGTERM)


def take_precedence(priority: int) -> str:
    """Let all threads of this process run before ordinary ones, as those of a controller do.

    Args:
        priority: Real-time priority (SCHED_FIFO) of 1 to 99; 0 leaves everything as it is.

    Returns:
        How it is scheduled now, in words: without the right to it nothing changes.
    """
    if priority == 0 or not hasattr(os, "sched_setscheduler"):
        return "ordinary"
    try:
        # Each thread by itself: those of DDS have been there since ROS was initialised. Threads
        # that come later inherit it.
        for thread in Path("/proc/self/task").iterdir():
            os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(priority))
    except OSError as err:
        return f"ordinary, priority {priority} was refused: {err.strerror}"
    return f"real-time priority {priority}"


def run(make: Callable[[Context, Sequence[str]], Part], args: Sequence[str] | None = None) -> int:
    """Run a node until it ends or a signal asks it to.

    With rclpy's own handlers a signal invalidates the context at once, and the node could not send
    its stop command any more. Here a signal only sets a flag.

    Args:
        make: Builds the part from the context and the arguments that are not for ROS.
        args: Command line without the program; that of the process if none is given.

    Returns:
        Exit code: 0, or that of the error that ended it, which is printed in one line.
    """
    # A plain flag: setting an Event takes a lock, and a second signal that comes meanwhile would
    # wait for it for ever.
    asked = False
    given = list(sys.argv[1:] if args is None else args)

    def ask(_signal: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True

    for number in STOP_SIGNALS:
        signal.signal(number, ask)
    if PARENT in os.environ:
        die_with(int(os.environ[PARENT]))
    choose_transport()
    context = Context()
    rclpy.init(args=given, context=context, signal_handler_options=SignalHandlerOptions.NO)
    executor = SingleThreadedExecutor(context=context)
    part: Part | None = None
    try:
        part = make(context, rclpy.utilities.remove_ros_args(args=["", *given])[1:])
        executor.add_node(part.node)
        while not asked and not part.is_over:
            executor.spin_once(timeout_sec=_SPIN_S)
    except Exception as err:  # noqa: BLE001 - the edge of a process of its own
        if TRACEBACK in os.environ:
            traceback.print_exception(err)
        ours = err if isinstance(err, RoboEvalError) else None
        line = ours or f"{said(err)} ({TRACEBACK}=1 shows where)"
        print(f"error: {line}", file=sys.stderr)  # noqa: T201
        return (ours or RoboEvalError).exit_code
    finally:
        if part is not None:
            # Last words are said even after an error, and an error in them hides no other.
            with contextlib.suppress(Exception) if sys.exc_info()[0] else contextlib.nullcontext():
                part.finish()
        executor.shutdown(timeout_sec=0.5)
        if part is not None:
            part.node.destroy_node()
        rclpy.try_shutdown(context=context)
    return 0
