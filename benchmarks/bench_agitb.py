"""What the testbed of AGITB adds to each step of a model: compiled, in C, and plain Python.

Every model does the same: a number of 64 bits that each input is mixed into, `Chaotic` of the
examples. The bare cost of a step is that of a loop in the model's own language. Needs gcc.

Run: .venv/bin/python benchmarks/bench_agitb.py
"""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from examples.agitb.models import Chaotic
from robo_eval.analysis.agitb import Models
from robo_eval.analysis.agitb.compiled import compiled, shared_library
from robo_eval.analysis.agitb.streams import FULL, Streams
from robo_eval.analysis.agitb.testbed import TestTrial, run_trial

REPEATS = 5
STEPS = 200_000
TRIALS = 10
TESTS = ("2", "4", "5", "10", "6")
SOURCE = """
#include <stddef.h>
#include <stdint.h>
size_t agitb_size(void) { return 8; }
void agitb_begin(void *state) { *(uint64_t *)state = 1; }
int agitb_step(void *state, int input) {
    uint64_t *mark = state;
    *mark = *mark * 6364136223846793005u + 2u * (uint64_t)input + 1442695040888963407u;
    return (int)(*mark >> 40) & 1023 & ~input;
}
int bare(void *state, const uint16_t *inputs, int count) {
    int sum = 0;
    for (int at = 0; at < count; at++) sum += agitb_step(state, inputs[at]);
    return sum;
}
"""


@compiled(np.array([1], np.uint64))
def in_numba(state: NDArray[np.uint64], number: int) -> np.uint64:
    state[0] = (
        state[0] * np.uint64(6364136223846793005)
        + np.uint64(2 * number)
        + np.uint64(1442695040888963407)
    )
    return (state[0] >> np.uint64(40)) & np.uint64(FULL & ~number)


class Counting(Chaotic):
    """The same, and how many steps all of them took."""

    steps = 0

    def __call__(self, number: int) -> int:
        Counting.steps += 1
        return super().__call__(number)

    def copy(self) -> Counting:
        return Counting(self.mark)


def best_ns(run: Callable[[], object], steps: int, repeats: int = REPEATS) -> float:
    """Nanoseconds a step of the fastest of some runs."""
    found = []
    for _ in range(repeats):
        started = time.perf_counter_ns()
        run()
        found.append((time.perf_counter_ns() - started) / steps)
    return min(found)


def trials(models: Models, test: str, count: int) -> None:
    for trial in range(count):
        run_trial(models, TestTrial(test, trial, 1))


def bare_python(inputs: list[int]) -> None:
    model = Chaotic()
    for number in inputs:
        model(number)


def main() -> None:
    inputs = Streams(np.random.default_rng(0)).random(STEPS)
    array = np.array(inputs, np.uint16)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.c").write_text(SOURCE)
        built = Path(folder) / "model.so"
        # As a caller that links the model would: it is not inlined into the loop.
        subprocess.run(
            ["gcc", "-O2", "-fno-inline", "-shared", "-fPIC", "-o", built, f"{folder}/model.c"],
            check=True,
        )
        in_c = shared_library(built)
        library = ctypes.CDLL(str(built))
        state = np.ones(1, np.uint64).ctypes.data_as(ctypes.c_void_p)
        given = array.ctypes.data_as(ctypes.c_void_p)
        c_ns = best_ns(lambda: library.bare(state, given, STEPS), STEPS)
        python_ns = best_ns(lambda: bare_python(inputs), STEPS)
        plain = Models(Chaotic)
        print(f"Python {platform.python_version()}, {platform.machine()}")
        print(f"a bare step takes {c_ns:.1f} ns in C, {python_ns:.0f} ns in Python\n")
        print("ns that the testbed adds to a step; in brackets, as multiples of the bare step in C")
        print("| test | steps of a trial | C | numba | plain Python |")
        print("|---|---|---|---|---|")
        for test in TESTS:
            # Millions of steps of one kind: a trial is enough.
            count, repeats = (1, 1) if test == "6" else (TRIALS, REPEATS)
            Counting.steps = 0
            trials(Models(Counting), test, count)
            cells = [str(round(Counting.steps / count))]
            for models, bare in ((in_c, c_ns), (in_numba, c_ns), (plain, python_ns)):
                run = partial(trials, models, test, count)
                added = best_ns(run, Counting.steps, repeats) - bare
                cells.append(f"{added:.0f} ({added / c_ns:.0f})")
            print(f"| {test} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
