"""How the bytes of a topic become messages: by a definition of the bag, or the standard one."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.log.bag_field import WIDE_TEXT, Definitions, Message
from robo_eval.log.bag_storage import FileTopic

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

CDR: Final = "cdr"
_SEPARATOR: Final = "=" * 80 + "\n"
_IDL: Final = frozenset({"ros2idl", "omgidl"})
_TEXT: Final = frozenset({"ros2msg", "ros1msg", ""})
_BASE, _NAME, _SEQUENCE = 1, 2, 4
_TYPE: Final = re.compile(r"[A-Za-z]\w*(/\w+)*", re.ASCII)
_WIDE_FIELD: Final = re.compile(r"^([ \t]*)wstring(?:<=\d+)?(?=[\s\[])", re.MULTILINE)
_WIDE_IDL: Final = re.compile(r"\bwstring\b(?:\s*<\s*\d+\s*>)?")
_WIDE_UNITS: Final = ("uint16", "uint32", "uint8")
"""What a wstring is a sequence of: each middleware has its own way."""


class MessageTypes:
    """The type of a topic's messages with those it needs, and how they are read.

    Args:
        channel: The topic.

    Raises:
        InputError: If its messages cannot be read; says why, and what would do.
        MissingExtraError: If the library that reads definitions is not installed.
    """

    def __init__(self, channel: FileTopic) -> None:
        self._type: Final = channel.type
        # A writer that knows nothing of ROS may leave it empty.
        if channel.encoding not in (CDR, ""):
            raise InputError(
                f"its messages are {channel.encoding}, and only {CDR} is read;"
                " write it into the bag as a ROS 2 message too, and map that topic"
            )
        if not channel.type:
            raise InputError("no schema says what its messages are; map another topic")
        self._stores: Final = _stores(channel.type, channel.format, channel.definition)

    @property
    def fields(self) -> Definitions:
        """Fields of each type by its name; where it was defined in several ways, of all of them."""
        merged: dict[str, Any] = {}
        for store in reversed(self._stores):
            for name, (constants, fields) in store.fielddefs.items():
                others = dict(merged[name][1]) if name in merged else {}
                merged[name] = (constants, [*{**others, **dict(fields)}.items()])
        return merged

    def text(self, data: bytes) -> str:
        """The definition of the type that fits a message, as MCAP's encoding `ros2msg` wants it.

        Raises:
            InputError: If none does.
            ValueError: If the one there is does not.
        """
        _, store = self._read(data)
        return store.generate_msgdef(self._type, ros_version=2)[0]

    def message(self, data: bytes) -> Message:
        """A message from its bytes.

        Raises:
            InputError: If they are in another encoding, or the bag has no definition and no
                standard one fits; says what would do.
            ValueError: If they are no message of this type.
        """
        return self._read(data)[0]

    def _read(self, data: bytes) -> tuple[Message, Typestore]:
        """A message, and what reads it."""
        if len(self._stores) == 1:
            return _read(self._stores[0], self._type, data)[0], self._stores[0]
        readings = []
        for store in self._stores:
            try:
                readings.append((*_read(store, self._type, data), store))
            except InputError:
                raise
            except ValueError:
                continue
        if not readings and WIDE_TEXT not in self._stores[0].fielddefs:
            raise InputError(
                f"fits none of the definitions that {self._type} has had, and the bag carries none;"
                " convert it to MCAP with ros2 bag convert where that type is installed, or map"
                " another topic"
            )
        if not readings:
            raise ValueError("it ends too early")
        # Behind a message at most three bytes are filled up.
        message, _, store = min(readings, key=lambda reading: len(data) - reading[1])
        return message, store


def library() -> Any:
    """The library that reads definitions.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        from rosbags import typesys
    except ImportError as err:
        raise MissingExtraError(
            f"bags are read with the rosbags library; run: {pip_install('bags')}"
        ) from err
    return typesys


def _read(store: Typestore, name: str, data: bytes) -> tuple[Message, int]:
    from rosbags.serde import SerdeError

    if len(data) < 4 or data[0] or data[1] not in (0, 1):
        raise InputError(
            f"begins with {data[:4].hex()}, which is not the plain CDR of ROS 2; convert the bag"
            " with ros2 bag convert where that type is installed, or map another topic"
        )
    known = store.get_msgdef(name)
    read = known.deserialize_cdr_le if data[1] else known.deserialize_cdr_be
    try:
        message, end = read(data[4:], 0, known.cls, store)
    except (SerdeError, struct.error, ValueError, IndexError, OverflowError, MemoryError) as err:
        raise ValueError(str(err) or type(err).__name__) from err
    end += 4
    if not 0 <= len(data) - end < 4:
        raise ValueError(f"it has {len(data)} bytes, and the definition says {end}")
    return message, end


@cache
def _stores(name: str, form: str, text: str) -> list[Typestore]:
    """What reads messages of a type; several if there is more than one way to write them."""
    known, problem = _parsed(name, form, text)
    if name not in known or (not known[name][1] and any(name in one for one in _standards())):
        # Written without a definition, or with the bare name of the type.
        known.pop(name, None)
    wide = WIDE_TEXT in {part for fields in known.values() for part in _needs(fields)}
    ways: list[dict[str, Any]] = []
    for units in _WIDE_UNITS if wide else _WIDE_UNITS[:1]:
        known[WIDE_TEXT] = ([], [("data", (_SEQUENCE, ((_BASE, (units, 0)), 0)))])
        ways += _definitions(name, known, problem)
    return [_store(name, used) for used in ways]


def _definitions(name: str, known: dict[str, Any], problem: str) -> list[dict[str, Any]]:
    """The parts of a type by their names, in each way in which releases of ROS 2 define them."""
    found: dict[str, dict[str, Any]] = {}
    missing = []
    for standard in _standards():
        used: dict[str, Any] = {}
        needed = [name]
        while needed and (needed[-1] in known or needed[-1] in standard):
            part = needed.pop()
            used[part] = known.get(part) or standard[part]
            needed += [other for other in _needs(used[part]) if other not in used]
        if needed:
            missing.append(needed[-1])
        else:
            found.setdefault(repr({part: used[part][1] for part in sorted(used)}), used)
            if used.keys() <= known.keys():
                break
    if not found:
        raise InputError(_missing(name, missing[0], problem))
    return [*found.values()]


def _store(name: str, used: dict[str, Any]) -> Typestore:
    typesys = library()
    store = typesys.get_typestore(typesys.Stores.EMPTY)
    try:
        store.register(used)
        store.get_msgdef(name)
    except (ValueError, KeyError, TypeError, SyntaxError, AssertionError, RecursionError) as err:
        raise InputError(_missing(name, name, f"{err}")) from err
    found: Typestore = store
    return found


def _missing(name: str, part: str, problem: str) -> str:
    of = f" of {part}, which {name} needs" if part != name else f" of {name}"
    why = f"carries no definition{of}"
    if problem and part == name:
        why = f"has a definition{of} that cannot be read ({problem})"
    return (
        f"the bag {why}; convert it to MCAP with ros2 bag convert where that type is installed, or"
        " map another topic"
    )


def _standards() -> Iterator[dict[str, Any]]:
    """The definitions of the standard messages: of Humble, then what others have had."""
    typesys = library()
    for store in sorted(typesys.Stores, key=lambda one: one is not typesys.Stores.ROS2_HUMBLE):
        if store.name.startswith("ROS2_"):
            yield _standard(store)


@cache
def _standard(release: Any) -> dict[str, Any]:
    found: dict[str, Any] = library().get_typestore(release).fielddefs
    return found


def _parsed(name: str, form: str, text: str) -> tuple[dict[str, Any], str]:
    """The types in a definition, and why there are none if it cannot be read."""
    typesys = library()
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    if not text.strip():
        return {}, ""
    if form not in _IDL | _TEXT:
        return {}, f"it is {form}"
    # The library makes Python code of it.
    if not _TYPE.fullmatch(name):
        return {}, "its name is none"
    found: dict[str, Any] = {}
    try:
        if form in _IDL:
            for part in text.split(_SEPARATOR):
                head, _, body = part.partition("\n")
                found.update(_from_idl(body if head.startswith("IDL: ") else part))
        else:
            wide = _WIDE_FIELD.sub(rf"\1{WIDE_TEXT.replace('/msg/', '/')}", text)
            first, *others = typesys.get_types_from_msg(wide, name).items()
            # Which the library may call by another name than the bag does.
            found = {name: first[1], **dict(others)}
    except Exception as err:  # noqa: BLE001 - a parser of texts that anybody may have written
        return {}, f"{' '.join(str(err).split()) or type(err).__name__:.80}"
    return found, ""


def _from_idl(text: str) -> dict[str, Any]:
    # What a compiler of C would resolve: includes, whose content follows as a part of its own.
    lines = [line for line in text.split("\n") if not line.lstrip().startswith("#")]
    idl = _WIDE_IDL.sub(WIDE_TEXT.replace("/", "::"), "\n".join(lines))
    found: dict[str, Any] = library().get_types_from_idl(idl) if idl.strip() else {}
    return found


def _needs(fields: Any) -> list[str]:
    """The types that the fields of a type are of."""
    found = []
    for _, (kind, what) in fields[1]:
        inner = (int(kind), what) if int(kind) in (_BASE, _NAME) else what[0]
        if int(inner[0]) == _NAME:
            found.append(str(inner[1]))
    return found
