"""What checks found as JUnit XML, which the pages of pipelines show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from robo_eval.cli.output import check_folder_of
from robo_eval.core.errors import CheckFailedError, InputError, RoboEvalError, said

JunitOption = Annotated[
    Path | None,
    typer.Option(
        "--junit", metavar="FILE", help="Also write the checks as JUnit XML, for a pipeline's page."
    ),
]
_BEGIN: Final = b"<?xml version='1.0' encoding='utf-8'?>\n<testsuites name=\"robo-eval "
"""What a report of ours begins with; a file that holds anything else is never overwritten."""
_TAGS: Final = {"fail": "failure", "undecided": "failure", "missing": "skipped", "error": "error"}
_COUNTS: Final = {
    "tests": "testcase",
    "failures": "failure",
    "errors": "error",
    "skipped": "skipped",
}
_PLACE: Final = re.compile(r"[./\\]")
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Checks:
    """The checks of one command.

    Args:
        verb: Its name.
    """

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._cases: dict[str, list[tuple[str, str, str]]] = {}

    def add(self, suite: str, name: str, text: str, status: str = "pass") -> None:
        """Note a check.

        Args:
            suite: What it is one of.
            name: What is checked; the same whether it passes or not.
            text: What was found; of a check that does not pass, what the command says of it.
            status: How it went: `pass`, `fail`, `undecided`; `missing` is shown as skipped.
        """
        self._cases.setdefault(suite, []).append((name, text, status))

    def add_problem(self, suite: str, name: str, problem: str | None) -> None:
        """Note a check that fails if there is a problem."""
        self.add(suite, name, problem or "", "fail" if problem else "pass")

    def end(self, err: BaseException) -> None:
        """Note why the command ended with an error, unless a check says so."""
        failed = any(status == "fail" for cases in self._cases.values() for *_, status in cases)
        if not isinstance(err, CheckFailedError):
            text = str(err) if isinstance(err, RoboEvalError) else said(err)
            self.add("command", self._verb, text, "error")
        elif not failed:
            self.add("command", self._verb, str(err), "fail")

    def xml(self) -> bytes:
        """All of it as one document."""
        from xml.etree import ElementTree as ET

        root = ET.Element("testsuites", {"name": f"robo-eval {self._verb}"})
        for suite, cases in self._cases.items():
            part = ET.SubElement(root, "testsuite", {"name": _xml_text(suite)})
            # Readers take what stands before the last dot for a package, and a slash for a folder.
            place = _xml_text(f"robo-eval.{self._verb}.{_PLACE.sub('_', suite)}")
            for name, found, status in cases:
                own = {"name": _xml_text(name), "classname": place, "time": "0"}
                case, text = ET.SubElement(part, "testcase", own), _xml_text(found)
                if status in _TAGS:
                    ET.SubElement(case, _TAGS[status], {"message": text}).text = text
                elif text:
                    ET.SubElement(case, "system-out").text = text
        for element in (root, *root):
            for name, tag in _COUNTS.items():
                element.set(name, str(len(element.findall(f".//{tag}"))))
            element.set("time", "0")
        ET.indent(root)
        written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
        return written + b"\n"


def _xml_text(text: str) -> str:
    """A text as XML can hold it: without control characters, and halves of letters."""
    return _NOT_XML.sub(lambda found: repr(found[0])[1:-1], text)


@contextmanager
def reported(file: Path | None, verb: str) -> Iterator[Checks]:
    """Write the checks that the body notes when it ends, also by an error.

    Args:
        file: Where to; None for nowhere.
        verb: Name of the command.

    Raises:
        InputError: Before the body, if the file holds anything but a report of ours, or there is
            no folder for it.
    """
    if file is not None:
        from robo_eval.core import door

        check_folder_of(file)
        held = door.bytes_of(file) if file.exists() else b""
        if held and not held.startswith(_BEGIN):
            raise InputError(f"--junit: {file} holds no report of robo-eval; name another file")
    checks = Checks(verb)
    try:
        yield checks
    except BaseException as err:
        checks.end(err)
        raise
    finally:
        if file is not None:
            from robo_eval.log.files import write_atomically

            write_atomically(file, checks.xml())
