"""Models that are compiled, from Python by numba or from C: bytes of a state, and one function."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.analysis.agitb.models import ModelError, Models, raised
from robo_eval.analysis.agitb.streams import FULL, Inputs
from robo_eval.core.errors import InputError, MissingExtraError, RoboEvalError, pip_install, said

try:
    from numba import carray, njit, types
    from numba.core import cgutils
    from numba.extending import intrinsic
except ImportError as err:
    raise MissingExtraError(f"compiled models need numba: {pip_install('agitb')}") from err

Held = NDArray[np.uint8]
"""The state of a model, and in two more bytes what it predicted last; see `_step`."""
_STATE: Final = types.voidptr
_HELD: Final = types.Array(types.uint8, 1, "C")
_ONE: Final = types.Array(types.uint16, 1, "C")
_MANY: Final = types.Array(types.uint16, 2, "C")


class CompiledModels(Models):
    """Models whose state is an array of bytes, copied and compared as such.

    Args:
        name: What they are called.
        step: Takes the state, by its address, and an input; returns a prediction.
        fresh: Makes a model that has seen nothing.
        home: Module in which it is found by its name, or the file of a library.
    """

    trials = 5_000

    def __init__(
        self, name: str, step: Callable[..., Any], fresh: Callable[[], Held], home: str | Path
    ) -> None:
        self.name: Final = name
        try:
            made = njit(types.int64(_STATE, types.int32))(step)
        except Exception as err:
            raise InputError(f"{name}: numba cannot compile it: {said(err)}") from err
        (found,) = made.overloads.values()
        # Kept, with the code at its address.
        self._compiled, self._home = found, home
        self._address = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)
        self._fresh = fresh
        self.__module__ = str(home)

    def __reduce__(self) -> Any:
        return (shared_library, (self._home,)) if isinstance(self._home, Path) else self.name

    def fresh(self) -> Held:
        """A model that has seen nothing."""
        return self._fresh()

    __call__ = fresh

    def copied(self, held: Held) -> Held:
        """A copy that goes its own way."""
        return held.copy()

    def same(self, one: Held, other: Held) -> bool:
        """Whether two are in the same state and predict the same."""
        return one.tobytes() == other.tobytes()

    def key(self, held: Held) -> bytes:
        """What only models in the same state have, with what it predicted."""
        # Thousands of large states themselves would fill the memory.
        return hashlib.blake2b(held.data).digest()

    def ready(self, inputs: Sequence[int] | Inputs) -> Inputs:
        """Inputs in the form that `feed` takes fastest: an array."""
        return np.ascontiguousarray(inputs, np.uint16)

    def feed(self, held: Held, inputs: Sequence[int] | Inputs) -> Inputs:
        """Give it inputs; what it predicted after each."""
        found: Inputs = self._called(_feed, held, self.ready(inputs))
        return found

    def passes_to_learn(self, held: Held, sequence: Sequence[int], most: int) -> int | None:
        """After how many passes it first predicts a whole sequence; None if not within `most`."""
        return self._place(_passes_to_learn, held, self.ready(sequence), most)

    def are_same(self, held: Held, ones: Inputs, others: Inputs) -> list[bool]:
        """For each pair of sequences, whether copies that are fed them are the same then."""
        found = self._called(_are_same, held, self.ready(ones), self.ready(others))
        return [bool(one) for one in found]

    def first_unlearned(self, held: Held, sequences: Inputs, most: int) -> int | None:
        """The first sequence that a copy does not learn within `most` passes; None if none."""
        return self._place(_first_unlearned, held, self.ready(sequences), most)

    def _place(self, kernel: Callable[..., Any], *given: object) -> int | None:
        found = int(self._called(kernel, *given))
        return None if found < 0 else found

    def _called(self, kernel: Callable[..., Any], *given: object) -> Any:
        try:
            return kernel(self._address, *given)
        except RoboEvalError:
            raise
        except Exception as err:
            raise raised("raises", err) from err


def compiled(fresh: NDArray[Any]) -> Callable[[Callable[..., Any]], CompiledModels]:
    """A decorator that compiles `function(state, input)`, which returns a prediction, by numba.

    Args:
        fresh: State of a model that has seen nothing; each model changes a copy of it.

    Example:
        >>> @compiled(np.zeros(1, np.int64))
        ... def steps(state, number):
        ...     state[0] += 1
        ...     return state[0]
        >>> steps.feed(steps.fresh(), [5, 6, 7]).tolist()
        [1, 2, 3]
    """

    def decorated(function: Callable[..., Any]) -> CompiledModels:
        inner, kind, shape = njit(function), fresh.dtype, fresh.shape

        def step(state, number):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
            return inner(carray(state, shape, kind), number)

        start = np.frombuffer(fresh.tobytes() + bytes(2), np.uint8)
        made = CompiledModels(function.__name__, step, start.copy, function.__module__)
        (found,) = (signature.return_type for signature in inner.nopython_signatures)
        if not isinstance(found, types.Integer | types.Boolean):
            raise InputError(f"{made.name}: returns {found}; it must return a whole number")
        return made

    return decorated


def shared_library(path: Path) -> CompiledModels:
    """Models of a shared library with a small C interface.

    It has `size_t agitb_size(void)`, bytes of a state; `void agitb_begin(void *state)`, which fills
    one that has seen nothing; and `int agitb_step(void *state, int input)`, which changes it and
    returns a prediction. States are copied and compared as bytes: no pointers, no gaps.

    Raises:
        InputError: If it cannot be loaded, or has not all of them.
    """
    path = path.resolve()
    try:
        library = ctypes.CDLL(str(path))
        size, begin, step = (getattr(library, f"agitb_{one}") for one in ("size", "begin", "step"))
        size.restype = ctypes.c_size_t
        start = np.zeros(size() + 2, np.uint8)
    except (OSError, AttributeError, MemoryError, ValueError) as err:
        what = "it must be a shared library with agitb_size, agitb_begin and agitb_step"
        said = str(err).removeprefix(f"{path}: ")
        raise InputError(f"{path}: {said}; {what}") from err
    step.argtypes, step.restype = (ctypes.c_void_p, ctypes.c_int), ctypes.c_int
    begin.argtypes, begin.restype = (ctypes.c_void_p,), None

    def fresh() -> Held:
        held = start.copy()
        begin(held.ctypes.data)
        return held

    return CompiledModels(path.stem, lambda state, number: step(state, number), fresh, path)


# What is compiled ------------------------------------------------------------------------------


@intrinsic
def _call(_typing, _address, _held, _number):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    """Call a compiled step by its address: as an argument, a function takes ten times as long."""

    def code(context, builder, _signature, given):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        takes = (_STATE, types.int32)
        address, held, number = given
        state = context.make_array(_HELD)(context, builder, held).data
        kind = context.call_conv.get_function_type(types.int64, takes)
        step = builder.inttoptr(address, kind.as_pointer())
        call = context.call_conv.call_function
        status, found = call(builder, step, types.int64, takes, (state, number))
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return found

    return types.int64(types.int64, _HELD, types.int32), code


def _kernel(returned: object, *taken: object) -> Callable[..., Any]:
    made: Callable[..., Any] = njit(returned(types.int64, *taken), cache=True)  # type: ignore[operator]
    return made


@_kernel(types.uint16, _HELD, types.int32)
def _step(step, held, number):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    last = _call(step, held, number)
    if not 0 <= last <= FULL:
        raise ModelError("predicts what is no number from 0 to 1023")
    held[-2], held[-1] = last & 255, last >> 8
    return last


@_kernel(_ONE, _HELD, _ONE)
def _feed(step, held, inputs):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    found = np.empty_like(inputs)
    for place in range(len(inputs)):
        found[place] = _step(step, held, inputs[place])
    return found


@_kernel(types.int64, _HELD, _ONE, types.int64)
def _passes_to_learn(step, held, wanted, most):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    last = held[-2] | held[-1] << 8
    for passes in range(most):
        is_learned = True
        for place in range(len(wanted)):
            is_learned &= last == wanted[place]
            last = _step(step, held, wanted[place])
        if is_learned:
            return passes
    return -1


@_kernel(types.Array(types.boolean, 1, "C"), _HELD, _MANY, _MANY)
def _are_same(step, held, ones, others):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    found = np.empty(len(ones), np.bool_)
    one, other = held.copy(), held.copy()
    for row in range(len(ones)):
        one[:], other[:] = held, held
        _feed(step, one, ones[row])
        _feed(step, other, others[row])
        found[row] = np.array_equal(one, other)
    return found


@_kernel(types.int64, _HELD, _MANY, types.int64)
def _first_unlearned(step, held, sequences, most):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    copy = held.copy()
    for row in range(len(sequences)):
        copy[:] = held
        if _passes_to_learn(step, copy, sequences[row], most) < 0:
            return row
    return -1
