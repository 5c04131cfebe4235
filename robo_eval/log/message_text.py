"""The definition of a ROS 2 message type with all it needs, from an installation of ROS 2."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.log.files import explained
from robo_eval.log.ros_schemas import SEPARATOR

_TYPE: Final = re.compile(r"([a-z][a-z0-9_]*)/msg/([A-Z][A-Za-z0-9]*)")
_BASIC: Final = frozenset({
    "bool", "byte", "char", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32",
    "uint32", "int64", "uint64", "string", "wstring",
})  # fmt: skip


class MessageTexts:
    """Definitions by type, each read once.

    Args:
        prefixes: Folders whose `share/PACKAGE/msg/` hold definitions; those of
            `AMENT_PREFIX_PATH`, and this Python's, if none are given.
    """

    def __init__(self, prefixes: Sequence[Path] | None = None) -> None:
        self._prefixes: Final = _default_prefixes() if prefixes is None else list(prefixes)
        self._texts: dict[str, str] = {}

    def text(self, kind: str) -> str:
        """A definition with those it needs behind it, as MCAP's encoding `ros2msg` wants it.

        Args:
            kind: Type such as `sensor_msgs/msg/JointState`.

        Raises:
            InputError: If it is not a message type, or it or one that it needs is not installed.
        """
        if kind not in self._texts:
            package, name = _parts(kind)
            own = self._definition(package, name)
            texts = [own]
            seen = {(package, name)}
            waiting = list(_needs(package, own))
            while waiting:
                needed = waiting.pop(0)
                if needed in seen:
                    continue
                seen.add(needed)
                text = self._definition(*needed)
                texts.append(f"{SEPARATOR}\nMSG: {needed[0]}/{needed[1]}\n{text}")
                waiting += _needs(needed[0], text)
            self._texts[kind] = "".join(texts)
        return self._texts[kind]

    def type_hash(self, kind: str) -> str:
        """The hash that tells versions of a type apart; empty where ROS 2 is too old to have it."""
        package, name = _parts(kind)
        path = self._find(package, f"{name}.json")
        if path is None:
            return ""
        try:
            hashes = door.json_of(path.read_bytes())["type_hashes"]
            return next(str(h["hash_string"]) for h in hashes if h["type_name"] == kind)
        except (OSError, ValueError, KeyError, TypeError, StopIteration):
            return ""

    def _definition(self, package: str, name: str) -> str:
        path = self._find(package, f"{name}.msg")
        if path is None:
            where = ", ".join(map(str, self._prefixes))
            raise InputError(
                f"message type {package}/msg/{name} is not installed below {where}; correct the"
                f" type, or install the package {package.replace('_', '-')} of ROS 2"
            )
        with explained(path, "cannot be read"):
            text = path.read_text("utf-8", errors="replace")
        return text if text.endswith("\n") else f"{text}\n"

    def _find(self, package: str, file: str) -> Path | None:
        paths = (prefix / "share" / package / "msg" / file for prefix in self._prefixes)
        return next((path for path in paths if path.is_file()), None)


def _default_prefixes() -> list[Path]:
    named = [part for part in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if part]
    # Wheels put the same files below the environment, and set no variable.
    return [Path(part) for part in [*named, sys.prefix]]


def _parts(kind: str) -> tuple[str, str]:
    match = _TYPE.fullmatch(kind)
    if match is None:
        raise InputError(
            f"{kind!r} is not a message type; write it like sensor_msgs/msg/CompressedImage"
        )
    return match[1], match[2]


def _needs(package: str, text: str) -> Iterator[tuple[str, str]]:
    """Types of the fields of a definition that are messages themselves."""
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) < 2:
            continue
        kind = re.split(r"[\[<]", words[0])[0]
        if kind in _BASIC:
            continue
        *path, name = kind.split("/")
        yield (path[0] if path else package), name
