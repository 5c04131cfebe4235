"""Results as JSON has them: each field once, without what only computing needs."""

import json
import math
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import numpy as np
import pytest

from robo_eval.core.plain import plain


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    colour: Colour
    share: float
    draws: np.ndarray | None = field(default=None, metadata={"json": False})


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    SAID: ClassVar = ("n", "pass_")
    name: str = field(metadata={"json": "axis"})
    parts: tuple[Part, ...]
    by_colour: dict[Colour, float]
    by_level: dict[int, frozenset[str]]

    @property
    def n(self) -> int:
        return len(self.parts)

    @property
    def pass_(self) -> bool:
        return not self.parts


def test_a_class_is_told_by_its_fields_and_what_it_says() -> None:
    whole = Whole(
        name="A",
        parts=(Part(colour=Colour.RED, share=math.nan, draws=np.zeros(2)),),
        by_colour={Colour.RED: 0.5},
        by_level={1: frozenset("ba")},
    )
    assert plain(whole) == {
        "axis": "A",
        "parts": [{"colour": "red", "share": None}],
        "by_colour": {"red": 0.5},
        "by_level": {"1": ["a", "b"]},
        "n": 1,
        "pass": False,
    }


def test_arrays_are_lists_and_nothing_is_infinite() -> None:
    found = plain({"x": np.array([[1.0, math.inf], [-math.inf, 2.0]]), "n": np.int64(3)})
    assert json.dumps(found, allow_nan=False) == '{"x": [[1.0, null], [null, 2.0]], "n": 3}'


@pytest.mark.parametrize("value", [object(), Part, b"bytes"])
def test_what_has_no_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="no form in JSON"):
        plain(value)
