"""`robo-eval agitb`: verdicts, one trial again, what a class lacks, signals of a robot, a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MODELS = """
class Counts:
    '''Counts its inputs, and learns none.'''

    def __init__(self):
        self.count = 0

    def __call__(self, number):
        self.count += 1
        return 0

    def __eq__(self, other):
        return self.count == other.count

    def key(self):
        return self.count


class Bare:
    def __call__(self, number):
        return number
"""
PLAN = """
name: recorded
tasks: [{env: RoboEval/CartPole3D-v0, kwargs: {balls: 0}, levels: [0]}]
policies: [balancer]
episodes: 3
traces: all
"""


@pytest.fixture
def agitb(tmp_path: Path, cli: Callable[..., Any]) -> Callable[..., Any]:
    (tmp_path / "mine.py").write_text(MODELS)

    def call(*args: object) -> Any:
        return cli("agitb", *args)

    return call


def test_the_first_failure_ends_it_and_can_be_seen_again(agitb: Callable[..., Any]) -> None:
    found = agitb("mine:Counts", "--trials", 2, "--seed", 3)
    assert found.code == 1
    assert "3   trace" in found.out
    assert "test 3, trial 0, 3-first: its first input leaves no trace" in found.out
    again = "robo-eval agitb mine:Counts --seed 3 --only 3:0"
    assert f"that trial again: {again}" in found.err
    once = agitb(*again.split()[2:], "--json")
    assert once.code == 1
    (test,) = json.loads(once.out)["tests"]
    assert (test["test"], test["trials"], test["failure"]["clause"]) == ("3", 1, "3-first")


def test_what_a_class_lacks_is_said(agitb: Callable[..., Any]) -> None:
    found = agitb("mine:Bare", "--check")
    assert found.code == 1
    assert found.err.startswith("robo-eval: mine:Bare: == is not defined: write `__eq__`")
    once = agitb("mine:Bare", "--only", "0:0")
    assert once.code == 1
    assert "test 0, semantic integrity: fail" in once.err
    told = agitb("mine:Counts", "--check", "--json")
    assert (told.code, json.loads(told.out)) == (0, {"model": "mine:Counts", "missing": None})


def test_signals_of_a_trial_are_fed_and_shown(
    agitb: Callable[..., Any], cli: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert cli("run", "plan.yaml", "--out", "trial", "--no-report").code == 0
    found = agitb(
        "mine:Counts", "--trials", 2, "--seed", 3, "--recorded", "trial", "--period", 0.05,
        "--profile", "--limit", 0.3, "--json", "--page", "page.html",
    )  # fmt: skip
    assert found.code == 1, found.err
    told = json.loads(found.out)
    assert told["source"] == "trial"
    facts = told["facts"]
    assert facts["Recorded"] == "trial: 3 episodes of side sim with a trace"
    assert facts["Bit 0"].startswith("cart_x position rises above")
    assert len([name for name in facts if name.startswith("Bit ")]) == 10
    by_number = {test["test"]: test for test in told["tests"]}
    assert by_number["1"]["pass_rate"]["n"] == 2
    assert by_number["7"]["failure"]["clause"] == "7-first"
    page = (tmp_path / "page.html").read_text()
    for text in ("AGITB-R, fed trial", facts["Bit 9"].split(" (")[0], "7-first", "never ends"):
        assert text in page
    assert "--recorded trial --period 0.05 --limit 0.3 --only 3:0" in found.err


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("mine:Nobody",), "Nobody"),
        (("gone.so",), "must be a shared library with agitb_size, agitb_begin and agitb_step"),
        (("mine:Counts", "--only", "3"), "--only: is '3'; write TEST:TRIAL, such as 6:0"),
        (("mine:Counts", "--only", "13:0"), "test '13'"),
        (("mine:Counts", "--recorded", "nowhere"), "nowhere"),
        (("mine:Counts", "--page", "."), "--page: . is a folder"),
        (("mine:Counts", "--workers", 0), "workers is 0"),
        (
            ("mine:Counts", "--trials", 1, "--seed", 1, "--page", "no/page.html"),
            "no/page.html: there is no folder",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    agitb: Callable[..., Any], args: tuple[object, ...], problem: str
) -> None:
    found = agitb(*args)
    assert found.code != 0
    last = found.err.strip().splitlines()[-1]
    assert last.startswith("robo-eval: ")
    assert problem in last
    assert "Traceback" not in found.err
