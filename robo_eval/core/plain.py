"""Any result as JSON would have it: what a class is made of, told once for all classes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from datetime import date
from enum import Enum
from typing import Any, Final

UNSAID: Final = {"json": False}
"""Metadata of a field that is told to nobody: `field(metadata=UNSAID)`."""


def plain(value: object) -> Any:
    """A value in numbers, texts, lists and mappings alone.

    Of a dataclass each field is told by its name. The metadata `UNSAID` leave one out, such as
    draws, and `{"json": "other"}` tells it by another name. Properties that belong to it
    are those the class names in `SAID`; one that is a word of Python ends in `_` there (`pass_`).
    Models are told by pydantic, and arrays are lists. Dates are as ISO 8601 has them. What is not
    finite becomes None, as JSON has no such number.

    Raises:
        TypeError: If it is of a type that has no such form.

    Example:
        >>> import numpy as np
        >>> from robo_eval.core.estimate import Estimate
        >>> found = plain({"half_life": Estimate.missing(reason="none", unit="days")})
        >>> found["half_life"]["reason"], plain((1.0, float("inf"), np.arange(2)))
        ('none', [1.0, None, [0, 1]])
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, date):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _told(value)
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        parts = [plain(one) for one in value]
        return parts if isinstance(value, list | tuple) else sorted(parts)
    # Neither numpy nor pydantic is imported for this: who has no array needs none of them.
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def _told(value: Any) -> dict[str, Any]:
    found = {}
    for one in dataclasses.fields(value):
        name = one.metadata.get("json", one.name)
        if name is not False:
            found[name] = plain(getattr(value, one.name))
    for name in getattr(value, "SAID", ()):
        found[name.rstrip("_")] = plain(getattr(value, name))
    return found
