"""Tests of what a report says of departures from the plan."""

from __future__ import annotations

from typing import Any

from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore
from robo_eval.metrics.deviation import KINDS, Deviation
from robo_eval.report.build import build_report
from robo_eval.report.conduct import deviation_lines

PLAN = """
name: played in simulation
tasks: [{levels: [0]}]
policies: [balancer, adaptive]
episodes: 4
"""


def trial_of(folder: Any, n: int, software: str = "robo-eval 1") -> str:
    """The page of a trial of which n episodes were played."""
    trial = TrialDirectory.create(folder, parse_plan(PLAN, source="plan"))
    rows = [
        row_for(
            planned, trial.plan, trial.plan_digest, policy_digest=f"{planned.policy}" * 64,
            start_ns=1_772_000_000 * 10**9 + i * 10**9, duration_s=4.0, ticks=200,
            episode_return=1.0, quality=1.0, success=True, end_reason=EndReason.SUCCESS,
            software=software if i else "robo-eval 1",
        )
        for i, planned in enumerate(schedule(trial.plan, Side.SIM)[:n])
    ]  # fmt: skip
    with EpisodeStore(trial.path, durable=False) as store:
        store.append(rows)
        trial.write_manifest(status="complete", store=store)
    return build_report(trial).read_text(encoding="utf-8")


def conduct_part(page: str) -> str:
    start = page.index('id="conduct"')
    return page[start : page.index("</section>", start)]


def test_a_trial_played_as_planned_says_so_in_one_line(tmp_path: Any) -> None:
    part = conduct_part(trial_of(tmp_path / "trial", 8))
    assert "Deviations from the plan: none." in part
    # What only people do is not told of a simulation.
    assert "declared void" not in part
    assert "No file of evidence" not in part


def test_what_departed_from_the_plan_is_a_table(tmp_path: Any) -> None:
    part = conduct_part(trial_of(tmp_path / "trial", 5, "robo-eval <2>"))
    assert "planned episodes never attempted" in part
    assert "changes of the software" in part
    assert "robo-eval &lt;2&gt; (4 attempts)" in part
    assert "Deviations from the plan: none" not in part
    assert part.count('scope="row"') == 2


def line_of(**fields: Any) -> Any:
    (line,) = deviation_lines([Deviation(**fields)], has_sides=True)
    return line


def test_a_line_names_the_first_few_and_counts_the_rest() -> None:
    day = 86_400 * 10**9
    line = line_of(
        kind="lost", side="twin", count=1200, reasons={"b": 700, "a": 499, "c_d": 1, "e": 0},
        episodes=tuple("vwxyz"), first_ns=0, last_ns=day,
    )  # fmt: skip
    assert (line.what, line.side, line.count) == (KINDS["lost"], "twin", "1\N{NO-BREAK SPACE}200")
    assert line.why == "700 b; 499 a; 1 c d; other reasons"
    assert line.which == ("v", "w", "x")
    assert line.more == "and 1\N{NO-BREAK SPACE}197 more"
    assert line.when == ["1970-01-01 00:00", "to 1970-01-02 00:00"]
    short = line_of(
        kind="lost", count=2, reasons={"why": 2}, episodes=("a", "b"), first_ns=0, last_ns=1
    )
    assert (short.why, short.more, short.when) == ("why", "", ["1970-01-01 00:00"])


def test_what_stands_elsewhere_on_the_page_is_not_repeated() -> None:
    assert line_of(kind="void", count=1, reasons={"operator_error": 1}).why == ""
    assert line_of(kind="fault", count=1, reasons={"ValueError: no": 1}).why == ""
    assert line_of(kind="void_unplanned", count=1, reasons={"the_cat": 1}).why == "the cat"
    change = line_of(kind="software", count=2, text="1, then 2", episodes=("a",) * 5)
    assert (change.why, change.more, change.when) == ("1, then 2", "", [])
