"""How a file that somebody gives is read: a plain file, of a size and depth that can be handled."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.errors import InputError, PlanError

if TYPE_CHECKING:
    import yaml

UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
"""What a text in UTF-16 begins with."""
LARGEST_FILE: Final = 10**9
"""Bytes of a file that is read as a whole."""
LARGEST: Final = 2_000_000
"""Characters of a text that people write, aliases written out; each value counts ten more."""
_OF_A_VALUE: Final = 10
_DEEPEST: Final = 100
"""How deep such a text may be nested."""
_LONGEST_NUMBER: Final = 100
_DIGITS: Final = re.compile(r"[-+]?[.\d][\da-fA-FxXob_:.]*")
_MANY_DOTS: Final = re.compile(rf"(?:\.[^.,=\n]*){{{_DEEPEST}}}")
_KINDS: Final[tuple[tuple[Callable[[int], bool], str], ...]] = (
    (stat.S_ISDIR, "is a folder, not a file"),
    (stat.S_ISFIFO, "is a named pipe, not a file; save what comes out of it in a file"),
    (stat.S_ISSOCK, "is a socket, not a file"),
    (lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode), "is a device, not a file"),
)
# What PyYAML's constructors raise when a tag does not fit its value.
_BROKEN: Final = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError)


def check_plain(path: Path, *, most: int | None = None) -> None:
    """Refuse a path that is no plain file, before something waits for its end.

    Args:
        path: The file.
        most: Bytes it may have; None sets no limit.

    Raises:
        OSError: If it is missing, larger, or a folder, pipe, socket or device.
    """
    _check(path, path.stat(), most)


def _check(path: Path, found: os.stat_result, most: int | None = None) -> None:
    for is_kind, what in _KINDS:
        if is_kind(found.st_mode):
            raise OSError(errno.EINVAL, what, str(path))
    if most is not None and found.st_size > most:
        what = f"is too large: such a file has at most {most / 1e6:g} MB"
        raise OSError(errno.EFBIG, what, str(path))


def opened(path: Path) -> BufferedReader:
    """A file somebody names, open for reading; never waits.

    Raises:
        OSError: If it cannot be opened, or is a folder, pipe, socket or device.
    """
    check_plain(path)
    # A pipe that took its place meanwhile would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    file = os.fdopen(descriptor, "rb")
    try:
        _check(path, os.fstat(descriptor))
    except OSError:
        file.close()
        raise
    return file


def decoded(data: bytes, path: Path) -> str:
    """The text of a file: UTF-8, or UTF-16 with its byte order mark.

    Args:
        data: What the file holds.
        path: The file, for messages.

    Raises:
        InputError: If it is neither; the message names the line.
    """
    is_wide = data[:2] in UTF_16
    try:
        return data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as err:
        if is_wide:
            what = "is cut short or no UTF-16; save it as UTF-8"
            raise InputError(f"{path}: {what}") from err
        line = data.count(b"\n", 0, err.start) + 1
        raise InputError(
            f"{path}: line {line}: is not UTF-8 text: byte 0x{data[err.start]:02x}; save it as"
            " UTF-8 (in Excel: CSV UTF-8)"
        ) from err


def bytes_of(path: Path, *, most: int = LARGEST_FILE) -> bytes:
    """The bytes of a file somebody names.

    Args:
        path: The file.
        most: Size beyond which it is not read.

    Raises:
        OSError: If it cannot be read, is not a plain file, or is larger.
    """
    with opened(path) as file:
        _check(path, os.fstat(file.fileno()), most)
        return file.read()


def written(path: Path) -> bytes:
    """The bytes of a file that people write: a plan, a map, a profile.

    Raises:
        OSError: If it cannot be read, is not a plain file, or is larger than anybody writes.
    """
    return bytes_of(path, most=LARGEST)


def json_of(text: str | bytes) -> Any:
    """What a JSON text holds.

    Raises:
        ValueError: If it is not JSON, or nested too deep to be read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("is nested too deep") from None


def object_of(text: str) -> dict[str, Any]:
    """The JSON object that a message holds; it can be written again as UTF-8.

    Raises:
        ValueError: If it is none, is nested too deep, or holds half of a character.
    """
    data = json_of(text)
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("is nested too deep") from None
    if not isinstance(data, dict):
        raise ValueError("is no JSON object")
    return data


def toml_of(text: str) -> dict[str, Any]:
    """What a TOML text holds.

    Raises:
        ValueError: If it is not TOML, or nested too deep to be read.
    """
    import tomllib

    if len(text) > LARGEST:
        raise ValueError(f"is too large: more than {LARGEST:,} characters")
    # The reader copies the names before each dot of a key: many dots would take it hours.
    if _MANY_DOTS.search(text):
        raise ValueError(f"a key is nested more than {_DEEPEST} deep")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("is nested too deep") from None


def yaml_of(text: str, source: object, *, as_texts: bool = False) -> Any:
    """What a YAML text holds.

    Args:
        text: YAML.
        source: What error messages call it.
        as_texts: Every scalar stays the text that was written.

    Raises:
        PlanError: If it is not YAML, holds a key twice, refers to itself, is nested too deep or,
            with its aliases written out, too large.
    """
    import yaml

    # libyaml, where PyYAML was built with it, reads ten times as fast.
    name = "BaseLoader" if as_texts else "SafeLoader"
    loader = getattr(yaml, f"C{name}", None) or getattr(yaml, name)
    try:
        outline = _Outline(loader(text))
        outline.check()
        return yaml.load(text, Loader=loader)  # noqa: S506 - one of the safe ones
    except (yaml.YAMLError, RecursionError, *_BROKEN) as err:
        mark = getattr(err, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        problem = getattr(err, "problem", None) or getattr(err, "reason", None)
        problem = problem or "a value does not fit its tag"
        raise PlanError(f"{source}: not valid YAML{where}: {problem}") from err


class _Open:
    """A list or mapping that has not ended yet."""

    def __init__(self, anchor: str | None, *, has_keys: bool) -> None:
        self.anchor: Final = anchor
        self.keys: Final[set[str] | None] = set() if has_keys else None
        self.parts = 0
        self.size = _OF_A_VALUE


class _Outline:
    """One pass over a YAML text that makes nothing of it, so that nothing in it can grow."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._inside = [_Open(None, has_keys=False)]
        self._has_aliases = False
        self._sizes: dict[str, int | None] = {}
        """What each anchor stands for is so large; None while it has not ended."""

    def check(self) -> None:
        """Read it to its end.

        Raises:
            yaml.YAMLError: If it should not be loaded.
        """
        import yaml

        take: dict[type[yaml.Event], Callable[[Any], None]] = {
            yaml.SequenceStartEvent: self._begin,
            yaml.MappingStartEvent: self._begin,
            yaml.SequenceEndEvent: self._end,
            yaml.MappingEndEvent: self._end,
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
        }
        try:
            while self._loader.check_event():
                event = self._loader.get_event()
                if type(event) in take:
                    take[type(event)](event)
        finally:
            self._loader.dispose()

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        self._inside[-1].parts += 1
        if len(self._inside) > _DEEPEST:
            raise _refused(event, f"is nested more than {_DEEPEST} deep")
        if event.anchor:
            self._sizes[event.anchor] = None
        has_keys = type(event).__name__ == "MappingStartEvent"
        self._inside.append(_Open(event.anchor, has_keys=has_keys))

    def _end(self, event: yaml.Event) -> None:
        ended = self._inside.pop()
        self._add(event, ended.anchor, ended.size)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        import yaml

        text, within = event.value, self._inside[-1]
        if len(text) > _LONGEST_NUMBER and _DIGITS.fullmatch(text):
            tag = event.tag or self._loader.resolve(yaml.ScalarNode, text, event.implicit)
            if tag.endswith((":int", ":float")):
                raise _refused(event, f"a number of {len(text)} digits")
        # Every other part of a mapping is a key.
        if within.keys is not None and within.parts % 2 == 0:
            if text in within.keys:
                raise _refused(event, f"key {text!r:.60} is there twice")
            within.keys.add(text)
        within.parts += 1
        self._add(event, event.anchor, _OF_A_VALUE + len(text))

    def _alias(self, event: yaml.AliasEvent) -> None:
        self._has_aliases = True
        # Of an anchor that is not there the loader speaks.
        size = self._sizes.get(str(event.anchor), 0)
        if size is None:
            raise _refused(event, "an alias refers to what it is part of")
        self._inside[-1].parts += 1
        self._add(event, None, _OF_A_VALUE + size)

    def _add(self, event: yaml.Event, anchor: str | None, size: int) -> None:
        if anchor:
            self._sizes[anchor] = size
        within = self._inside[-1]
        within.size += size
        if within.size > LARGEST:
            grown = ", with its aliases written out" if self._has_aliases else ""
            raise _refused(event, f"is too large{grown}")


def _refused(event: Any, problem: str) -> yaml.YAMLError:
    import yaml

    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
