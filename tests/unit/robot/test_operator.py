"""What a person at a robot is asked, and what their answers make of an episode; without ROS."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.blinding import Blinding
from robo_eval.core.errors import InterruptedRunError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import JudgingPlan, TrialPlan
from robo_eval.core.schedule import count_unscored, remaining, schedule
from robo_eval.log.planned_row import row_for
from robo_eval_robot.attempt import Attempt, SkippedError
from robo_eval_robot.conductor import Starts
from robo_eval_robot.judging import BY_ITSELF, Judge
from robo_eval_robot.operator import Person
from robo_eval_robot.terminal import OpenTerminal, TerminalGoneError


class Script:
    """A terminal whose person answers from a list, each after some polls; then it is gone."""

    def __init__(self, *answers: str | type[BaseException], thinks: int = 2) -> None:
        self.answers = list(answers)
        self.thinks = thinks
        self.waited = 0
        self.shown = ""

    @contextmanager
    def asking(self) -> Iterator[None]:
        yield

    def say(self, text: str, end: str = "\n") -> None:
        self.shown += text + end

    def line(self) -> str | None:
        self.waited += 1
        if self.waited <= self.thinks:
            return None
        self.waited = 0
        if not self.answers:
            raise TerminalGoneError("the terminal was closed")
        answer = self.answers.pop(0)
        if isinstance(answer, type):
            raise InterruptedRunError("stopped by SIGINT")
        return answer


REASONS = ("operator_error", "hardware_fault", "hardware")


def person_at(script: Script, **keywords: object) -> Person:
    return Person(script, lambda: None, void_reasons=REASONS, **keywords)  # type: ignore[arg-type]


def plan_of(verdict: str = "operator", *milestones: str, **keywords: object) -> TrialPlan:
    return TrialPlan(
        name="x",
        tasks=[{"levels": [0]}],
        policies=["balancer", "random"],
        episodes=2,
        sides=["sim", "twin"],
        order="interleaved",
        void_reasons=REASONS,
        judging=JudgingPlan(verdict=verdict, milestones=milestones),  # type: ignore[arg-type]
        **keywords,
    )


PLAYED = Attempt(
    end_reason=EndReason.TIMEOUT, quality=0.25, success=False, episode_return=0.25, ticks=7
)


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., tuple[Attempt, list[dict[str, str]], str]]:
    def ask(
        *answers: str | type[BaseException],
        attempt: Attempt = PLAYED,
        plan: TrialPlan | None = None,
        nobody: bool = False,
    ) -> tuple[Attempt, list[dict[str, str]], str]:
        plan = plan or plan_of()
        script = Script(*answers)
        person = None if nobody else person_at(script)
        judge = Judge(tmp_path, plan, Side.TWIN, person, operator="Kim")
        found = judge.judge(schedule(plan, Side.TWIN)[0], attempt)
        file = tmp_path / "verdicts.csv"
        lines = list(csv.DictReader(file.open())) if file.exists() else []
        # What comes of it can be a row.
        row_for(
            schedule(plan, Side.TWIN)[0], plan, "0" * 64, policy_digest="p", start_ns=0,
            duration_s=1.0, ticks=found.ticks, episode_return=found.episode_return,
            quality=found.quality, success=found.success, end_reason=found.end_reason,
            software="x",
        )  # fmt: skip
        return found, lines, script.shown

    return ask


@pytest.mark.parametrize(
    ("answer", "end", "success", "quality", "written"),
    [
        ("yes", EndReason.SUCCESS, True, 0.25, "success"),
        ("N", EndReason.FAILURE, False, 0.25, "failure"),
        ("c", EndReason.NO_VERDICT, None, None, "cannot_say"),
    ],
)
def test_the_verdict_is_the_success_and_the_quality_stays_measured(
    judged, answer, end, success, quality, written
):
    found, (line,), _ = judged(answer)
    assert (found.end_reason, found.success, found.quality) == (end, success, quality)
    assert "the task says timeout" in (found.detail or "")
    assert (line["verdict"], line["operator"], line["side"]) == (written, "Kim", "twin")
    assert line["time"].endswith("+00:00")
    assert line["blind"] == "false"


@pytest.mark.parametrize("end", [end for end in EndReason if end not in BY_ITSELF])
def test_what_was_stopped_is_not_judged(judged, end):
    attempt = Attempt(end_reason=end, detail="why", ticks=3)
    if end in (EndReason.SAFETY_STOP, EndReason.OUT_OF_BOUNDS, EndReason.OPERATOR_STOP):
        attempt = Attempt(end_reason=end, quality=0.5, success=False, detail="why", ticks=3)
    found, lines, shown = judged("", attempt=attempt)
    assert found == attempt
    assert lines == []
    assert "succeed" not in shown


def test_without_a_terminal_a_verdict_is_missing_and_a_task_s_is_not(judged):
    found, lines, _ = judged(nobody=True)
    assert (found.end_reason, found.success) == (EndReason.NO_VERDICT, None)
    assert found.detail == "no verdict: nobody was asked; the task says timeout"
    assert lines == []
    assert judged(nobody=True, plan=plan_of("task"))[0] == PLAYED
    assert judged("", plan=plan_of("task"))[0] == PLAYED  # nor does Enter change it


@pytest.mark.parametrize("answers", [(), (InterruptedRunError,), ("maybe",), ("v",), ("v", "no")])
def test_an_aborted_question_is_a_missing_verdict(judged, answers):
    found, (line,), _ = judged(*answers)
    assert (found.end_reason, found.success, found.quality) == (EndReason.NO_VERDICT, None, None)
    assert line["verdict"] == ""
    assert ("SIGINT" if answers == (InterruptedRunError,) else "closed") in line["note"]


def test_milestones_are_ticked_after_the_verdict(judged):
    plan = plan_of("operator", "grasped", "lifted", "größer")
    _, (line,), _ = judged("y", "y", "no", "cannot say", plan=plan)
    expected = {"grasped": "yes", "lifted": "no", "größer": "cannot say"}
    assert json.loads(line["milestones"]) == expected
    # Cut short in the middle: what was said stays, the verdict too.
    found, (_, line), _ = judged("y", "y", plan=plan)
    assert found.success is True
    assert (line["verdict"], json.loads(line["milestones"])) == ("success", {"grasped": "yes"})


def test_a_void_needs_a_reason_of_the_plan(judged):
    found, (line,), shown = judged("void", "bad luck", "hardware_faults", "2: cable came off")
    assert (found.end_reason, found.success, found.quality) == (EndReason.VOID, None, None)
    assert (found.detail, found.void_by) == ("hardware_fault: cable came off", "Kim")
    assert shown.count("the plan has no such reason") == 2
    assert (line["verdict"], line["note"]) == ("void", found.detail)
    found, _, _ = judged("v", "back", "y")
    assert found.success is True
    found, _, _ = judged("v", "hardware", plan=plan_of("task"))
    assert found.detail == "hardware"
    assert found.ticks == 7  # its exposure counts


def test_a_stop_waits_for_the_verdict(judged, tmp_path):
    person = person_at(Script("stop", "yes"))
    judge = Judge(tmp_path, plan_of(), Side.TWIN, person)
    assert judge.judge(schedule(plan_of(), Side.TWIN)[0], PLAYED).success is True
    assert person.stopped_by == "the operator"


def test_ready_pause_void_and_stop_before_an_episode():
    pauses: list[tuple[int, float]] = []
    script = Script("what?", "p", "hm", "", "r")
    person = person_at(script, on_pause=lambda *cells: pauses.append(cells))
    assert person.ready("Set up.")
    assert "please answer one of: ready, void, pause, stop" in script.shown
    ((since, seconds),) = pauses
    assert since <= time.time_ns()
    assert 0.0 <= seconds < 5.0
    with pytest.raises(SkippedError, match=r"^operator_error: wrong pole$"):
        person_at(Script("v", "back", "v", "1 wrong pole")).ready("Set up.")
    person = person_at(Script("stop"))
    with pytest.raises(InterruptedRunError, match="the operator"):
        person.ready("Set up.")
    assert person.stopped_by == "the operator"
    with pytest.raises(InterruptedRunError, match="closed"):
        person_at(Script()).ready("Set up.")
    assert not person_at(Script("no")).confirm("Clear?")


def test_a_blind_person_reads_codes():
    script = Script("")
    person_at(script, blinding=Blinding({"balancer": "B", "random": "A"})).ready(
        "Set up t0-l00-easy-balancer-s1, not random-ly."
    )
    assert "t0-l00-easy-B-s1" in script.shown
    assert "balancer" not in script.shown


@given(st.text())
def test_any_answer_is_understood_or_asked_again(text):
    person = person_at(Script(text.replace("\n", " "), "yes", thinks=0))
    try:
        assert person.verdict("Did it succeed?") in ("yes", "no", "cannot say", "void")
    except InterruptedRunError:  # "pause" took the rest of the script
        assert text.strip().lower() in {"p", "pa", "pau", "paus", "pause"}


# A terminal of the operating system ----------------------------------------------------------


@pytest.fixture
def screen() -> Iterator[tuple[OpenTerminal, int, io.StringIO]]:
    primary, secondary = pty.openpty()
    out = io.StringIO()
    yield OpenTerminal(secondary, out), primary, out
    for fd in (primary, secondary):
        with suppress(OSError):
            os.close(fd)


def test_the_robot_is_polled_while_a_person_thinks(screen):
    terminal, primary, out = screen
    os.write(primary, b"no\n")  # too early: it answers nothing
    assert select.select([terminal.fd], [], [], 60.0)[0], "the system has passed it on"
    typed = {30: b"ye", 60: b"s\n"}
    polls = 0

    def poll() -> None:
        nonlocal polls
        assert "succeed" in out.getvalue()
        polls += 1
        if polls in typed:
            os.write(primary, typed[polls])
        assert polls < 60_000, "what is typed is read"
        time.sleep(0.001)

    assert Person(terminal, poll).verdict("Did it succeed?") == "yes"
    assert polls >= 60


def test_a_terminal_that_hangs_up_is_noticed(screen):
    terminal, primary, _ = screen
    os.close(primary)
    person = Person(terminal, lambda: None)
    with pytest.raises(InterruptedRunError, match="closed"):
        person.verdict("Did it succeed?")
    assert person.stopped_by == "the end of its terminal"


# What follows for the schedule -----------------------------------------------------------------


def test_a_missing_verdict_is_neither_scored_nor_played_again():
    plan = plan_of(retries=3)
    planned = schedule(plan, Side.TWIN)
    attempts = {planned[0].base_id: [EndReason.NO_VERDICT], planned[1].base_id: [EndReason.VOID]}
    todo = remaining(planned, attempts, retries=3)
    assert [episode.base_id for episode in todo] == [p.base_id for p in planned[1:]]
    assert todo[0].attempt == 2
    assert count_unscored(planned, attempts) == len(planned)


def test_policies_take_turns_from_one_start_also_after_a_resume():
    plan = plan_of()
    planned = schedule(plan, Side.TWIN)
    assert [(p.seed, p.policy) for p in planned] == [(1000, 0), (1000, 1), (1001, 0), (1001, 1)]

    def row(index: int, end: EndReason, x: float):
        score = {"quality": 1.0, "success": True} if end is EndReason.SUCCESS else {}
        return row_for(
            planned[index], plan, "0" * 64, policy_digest="p", start_ns=0, duration_s=1.0,
            ticks=1, episode_return=None, end_reason=end, initial_state={"x": x}, software="x",
            **{"quality": None, "success": None, **score},
        )  # fmt: skip

    logged = [
        row(0, EndReason.VOID, 9.0),
        row(0, EndReason.SUCCESS, 1.0),
        row(1, EndReason.SUCCESS, 1.1),
        row(2, EndReason.FAULT, 8.0),
    ]
    starts = Starts(planned, logged)
    assert starts.of(planned[0]) == starts.of(planned[1]) == {"x": 1.0}
    assert starts.of(planned[3]) is None
    starts.add(planned[2], row(2, EndReason.NO_VERDICT, 2.0))
    assert starts.of(planned[3]) == {"x": 2.0}
