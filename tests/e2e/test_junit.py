"""JUnit XML of checks: what pipelines read of it, and what is never overwritten."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from robo_eval.cli.junit import Checks, reported
from robo_eval.core.errors import CheckFailedError, InputError

COLUMNS = """
columns: {episode_id: trial, side: where, success: ok, pair_id: pair, policy: who, task: kind,
          exposure_s: seconds, duration_s: seconds}
"""
TAGS = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
VERBS = {
    "verify": ("verify", "trial"),
    "metrics": ("metrics", "trial"),
    "compare": ("compare", "trial"),
    "assess": ("assess", "trial", "--no-write"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, commands: Any) -> Path:
    """An imported trial of two policies."""
    folder = tmp_path_factory.mktemp("lab")
    lines = ["trial,where,ok,pair,who,kind,seconds"]
    for who in ("ours", "theirs"):
        for i in range(6):
            for side, every in (("real", 3), ("sim", 5)):
                ok = int(i % every > 0)
                lines.append(f"{side}-{who[:3]}-{i},{side},{ok},{who[:3]}-{i},{who},pick,{30 + i}")
    (folder / "lab.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "map.yaml").write_text(COLUMNS, encoding="utf-8")
    done = commands(
        "import", "csv", "lab.csv", "--map", "map.yaml", "--out", "trial", folder=folder
    )
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def lab(made: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    shutil.copytree(made / "trial", tmp_path / "trial")
    return tmp_path


def read(file: Path) -> ET.Element:
    """The report, in the form that Jenkins, GitLab and GitHub's reporters read."""
    root = ET.parse(file).getroot()
    assert root.tag == "testsuites"
    assert str(root.get("name")).startswith("robo-eval ")
    for element in (root, *root):
        for name, tag in TAGS.items():
            assert int(element.attrib[name]) == len(element.findall(f".//{tag}"))
        float(element.attrib["time"])
    for suite in root:
        assert suite.tag == "testsuite"
        assert suite.get("name")
        for case in suite:
            assert case.tag == "testcase"
            assert {"name", "classname", "time"} == set(case.attrib)
            assert len(case) <= 1
            for found in case:
                assert found.tag in {"failure", "error", "skipped", "system-out"}
                assert found.text
                assert found.tag == "system-out" or found.get("message")
    return root


def found_in(root: ET.Element, tag: str) -> dict[str, str]:
    return {
        str(case.get("name")): str(part.text)
        for case in root.iter("testcase")
        for part in case.findall(tag)
    }


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_writes_its_checks_and_ends_as_without(
    commands: Any, lab: Path, verb: str
) -> None:
    plain = commands(*VERBS[verb], folder=lab)
    told = commands(*VERBS[verb], "--junit", "found.xml", folder=lab)
    assert (told.code, told.out, told.err) == (plain.code, plain.out, plain.err)
    root = read(lab / "found.xml")
    assert root.get("name") == f"robo-eval {verb}"
    assert (int(root.attrib["failures"]) > 0) == (told.code == 1)
    # Written again, as a pipeline does that runs again.
    assert commands(*VERBS[verb], "--junit", "found.xml", folder=lab).code == plain.code


def test_a_changed_row_is_a_failure_with_the_sentence_that_is_printed(
    commands: Any, lab: Path
) -> None:
    with sqlite3.connect(lab / "trial" / "episodes.db") as connection:
        connection.execute("UPDATE episodes SET duration_s = 1.5 WHERE sequence = 3")
    told = commands("verify", "trial", "--junit", "found.xml", folder=lab)
    assert told.code == 1
    failures = found_in(read(lab / "found.xml"), "failure")
    assert list(failures) == ["episodes.db"]
    for sentence in failures["episodes.db"].splitlines():
        assert f"PROBLEM {sentence}" in told.out
    for verb in ("metrics", "compare"):
        told = commands(*VERBS[verb], "--junit", "found.xml", folder=lab)
        failures = found_in(read(lab / "found.xml"), "failure")
        assert told.code == 1
        assert f"robo-eval: {next(iter(failures.values()))}" in told.err


def test_numbers_are_passed_with_their_value_and_skipped_with_their_reason(
    commands: Any, lab: Path
) -> None:
    commands("metrics", "trial", "--junit", "found.xml", folder=lab)
    root = read(lab / "found.xml")
    assert "no record of incidents" in found_in(root, "skipped")["SS"]
    assert "6 episodes" in found_in(root, "system-out")["AR"]


def test_every_requirement_of_a_level_is_a_check(commands: Any, lab: Path) -> None:
    told = commands(*VERBS["assess"], "--level", "2", "--junit", "found.xml", folder=lab)
    root = read(lab / "found.xml")
    suites = [str(suite.get("name")) for suite in root]
    assert "ours, AAI-2" in suites
    assert not [name for name in suites if name.endswith(("AAI-1", "AAI-3"))]
    assert found_in(root, "failure")["has a level"] in told.err
    commands(*VERBS["assess"], "--junit", "found.xml", folder=lab)
    assert "ours, AAI-4" in [suite.get("name") for suite in read(lab / "found.xml")]


def test_a_level_that_is_required_and_not_reached_ends_with_1(commands: Any, lab: Path) -> None:
    told = commands(*VERBS["assess"], "--require", "3", "--junit", "found.xml", folder=lab)
    assert told.code == 1
    failures = found_in(read(lab / "found.xml"), "failure")
    assert failures["is at AAI-3 or above"] in told.err


def test_no_level_is_reported_of_rows_that_were_changed(commands: Any, lab: Path) -> None:
    with sqlite3.connect(lab / "trial" / "episodes.db") as connection:
        connection.execute("UPDATE episodes SET duration_s = 1.5 WHERE sequence = 3")
    told = commands(*VERBS["assess"], "--junit", "found.xml", folder=lab)
    assert "does not verify" in found_in(read(lab / "found.xml"), "failure")["has a level"]
    assert told.code == 1


def test_names_of_classes_hold_no_path_that_readers_would_split(commands: Any, lab: Path) -> None:
    commands("verify", "./trial", "--junit", "found.xml", folder=lab)
    names = {str(case.get("classname")) for case in read(lab / "found.xml").iter("testcase")}
    assert names == {"robo-eval.verify.__trial"} or names == {"robo-eval.verify.trial"}


def test_an_error_stands_in_the_place_of_an_older_report(commands: Any, lab: Path) -> None:
    assert commands("verify", "trial", "--junit", "found.xml", folder=lab).code == 0
    told = commands("verify", "lost", "--junit", "found.xml", folder=lab)
    assert told.code == 2
    (sentence,) = found_in(read(lab / "found.xml"), "error").values()
    assert sentence == told.err.strip().removeprefix("robo-eval: ")


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_that_is_no_report_of_ours_is_left_as_it_is(
    commands: Any, lab: Path, verb: str
) -> None:
    text = "<testsuites name='other'/>"
    (lab / "notes.xml").write_text(text)
    told = commands(*VERBS[verb], "--junit", "notes.xml", folder=lab)
    assert told.code == 2
    assert told.out == ""
    assert "--junit: notes.xml holds no report of robo-eval; name another file" in told.err
    assert (lab / "notes.xml").read_text() == text


def test_an_empty_file_holds_nothing_to_lose(commands: Any, lab: Path) -> None:
    (lab / "empty.xml").touch()
    commands("verify", "trial", "--junit", "empty.xml", folder=lab)
    assert (lab / "empty.xml").read_bytes().startswith(b"<?xml")


def test_a_folder_that_is_not_there_is_refused_before_any_work(commands: Any, lab: Path) -> None:
    told = commands("metrics", "trial", "--junit", "lost/found.xml", folder=lab)
    assert told.code == 2
    assert told.out == ""
    assert "lost" in told.err
    assert commands("metrics", "--list", "--junit", "found.xml", folder=lab).code == 2
    assert not (lab / "found.xml").exists()


def test_a_check_that_failed_is_written_and_nothing_else_is_left(tmp_path: Path) -> None:
    def check() -> None:
        with reported(tmp_path / "found.xml", "verify") as checks:
            checks.add("suite", "name", "text", "pass")
            raise CheckFailedError("a \x00 sentence \udc80")

    with pytest.raises(CheckFailedError):
        check()
    assert found_in(read(tmp_path / "found.xml"), "failure") == {
        "verify": r"a \x00 sentence \udc80"
    }
    assert [file.name for file in tmp_path.iterdir()] == ["found.xml"]


def test_an_undecided_gate_does_not_pass() -> None:
    checks = Checks("assess")
    checks.add("suite", "name", "hours are too few", "undecided")
    assert b'failures="1"' in checks.xml()


@pytest.mark.parametrize("text", ["our notes\n", None])
def test_nothing_is_looked_at_where_the_report_could_not_be_written(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "found.xml"
    if text is None:
        file.mkdir()
    else:
        file.write_text(text)
    with pytest.raises((InputError, OSError)), reported(file, "verify"):
        pytest.fail("it was looked at")
    assert file.is_dir() if text is None else file.read_text() == text
