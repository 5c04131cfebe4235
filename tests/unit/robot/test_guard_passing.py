"""What a stop waits for: for no request that blocks on its way to the controller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from robo_eval_robot.guard_passing import Passing

LONG_S = 30.0


class Wire:
    """Takes commands; motion blocks while the gate is closed."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.taken: list[Sequence[float]] = []

    def send(self, command: Sequence[float]) -> None:
        if any(command):
            self.entered.set()
            assert self.gate.wait(LONG_S)
        self.taken.append(command)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_requests_go_out_in_their_order() -> None:
    wire = Wire()
    wire.gate.set()
    passing = Passing(wire.send, age_s=LONG_S)
    asked = [(float(number),) for number in range(1, 8)]
    for command in asked:
        passing.put(command, time.monotonic())
    until(lambda: len(wire.taken) == len(asked))
    assert wire.taken == asked
    until(lambda: passing.blocked_s(time.monotonic()) == 0.0)


def test_a_stop_waits_for_no_request_that_blocks() -> None:
    wire = Wire()
    passing = Passing(wire.send, age_s=LONG_S)
    for speed in (1.0, 2.0, 3.0):
        passing.put((speed,), time.monotonic())
    assert wire.entered.wait(LONG_S)
    with passing.overtaken():
        wire.send((0.0,))
    assert wire.taken == [(0.0,)]
    assert passing.blocked_s(time.monotonic() + 1.0) >= 1.0
    # What waited is forgotten; only what was on its way comes late, and the next cycle corrects it.
    wire.gate.set()
    until(lambda: len(wire.taken) == 2)
    with passing.overtaken():
        wire.send((0.0,))
    assert wire.taken == [(0.0,), (1.0,), (0.0,)]


def test_what_has_become_too_old_is_not_sent() -> None:
    wire = Wire()
    passing = Passing(wire.send, age_s=5.0)
    passing.put((1.0,), time.monotonic())
    assert wire.entered.wait(LONG_S)
    passing.put((2.0,), time.monotonic() - 5.1)
    passing.put((3.0,), time.monotonic())
    wire.gate.set()
    until(lambda: len(wire.taken) == 2)
    assert wire.taken == [(1.0,), (3.0,)]


@pytest.mark.parametrize("number", range(20))
def test_no_request_comes_after_a_stop_if_nothing_blocks(number: int) -> None:
    wire = Wire()
    wire.gate.set()
    passing = Passing(wire.send, age_s=LONG_S)
    for speed in range(1, 2 + number % 5):
        passing.put((float(speed),), time.monotonic())
    with passing.overtaken():
        wire.send((0.0,))
        time.sleep(0.001)
        assert wire.taken[-1] == (0.0,)
    time.sleep(0.001)
    assert wire.taken[-1] == (0.0,)
