"""What a second rater is asked to judge, what is kept of it, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from robo_eval.conduct.judging import Cases, second_sample
from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import TrialPlan, parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.evidence import Rating
from robo_eval.log.evidence_read import read_evidence
from robo_eval.log.planned_row import row_for
from robo_eval.log.ratings import COLUMNS, append_rating, blind_links

DIGEST = "0" * 64


def plan_of(share: float = 0.5) -> TrialPlan:
    return parse_plan(
        "name: x\ntasks: [{levels: [0, 9]}]\npolicies: [balancer, adaptive]\nepisodes: 4\n"
        f"sides: [twin]\njudging: {{second_share: {share}, milestones: [upright]}}",
        source="plan",
    )


def rows_of(plan: TrialPlan, *, operator: str | None = "Ada") -> list[Episode]:
    return [
        row_for(
            planned, plan, DIGEST, policy_digest="1" * 64, start_ns=i + 1, duration_s=1.0, ticks=1,
            episode_return=1.0, quality=1.0, success=True, end_reason=EndReason.SUCCESS,
            operator=operator, software="robo-eval 1",
            trace_uri=f"traces/{planned.episode_id}",
        )
        for i, planned in enumerate(schedule(plan, Side.TWIN))
    ]  # fmt: skip


def cases_of(plan: TrialPlan, rows: list[Episode], *, every: bool = False) -> Cases:
    return Cases(plan, DIGEST, rows, every=every)


def test_the_sample_is_asked_for_in_an_order_that_tells_nothing() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    due = cases_of(plan, rows).due((), "Eve")
    assert {case.episode_id for case in due} == second_sample(plan, DIGEST)
    assert [case.code for case in due] == sorted(case.code for case in due)
    assert len({case.code for case in due}) == 8
    # The rows come in another order, and one more of them, and the codes stay.
    again = cases_of(plan, rows[::-1]).due((), "Eve")
    assert again == due
    shown = str([case.as_dict(blind=True) for case in due]) + "".join(c.condition for c in due)
    assert "balancer" not in shown
    assert "adaptive" not in shown
    assert "balancer" in str([case.as_dict(blind=False) for case in due])
    assert due[0].condition.startswith("RoboEval/CartPole3D-v0, level ")


def test_what_a_rater_has_judged_is_not_asked_again() -> None:
    plan = plan_of()
    cases = cases_of(plan, rows_of(plan))
    first = cases.due((), "Eve")[0]
    given = [
        Rating(line=2, episode_id=first.episode_id, rater="eve ", success=None),
        Rating(line=3, episode_id=cases.due((), "Eve")[1].episode_id, rater="Bob", success=True),
    ]
    assert cases.due(given, "Eve") == cases.due((), "Eve")[1:]
    assert len(cases_of(plan, rows_of(plan), every=True).due((), "Eve")) == 16


def test_nobody_rates_an_own_run() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    with pytest.raises(InputError, match="'ADA' ran every episode"):
        cases_of(plan, rows).due((), "ADA")
    mixed = [*rows[:8], *rows_of(plan, operator=None)[8:]]
    cases = cases_of(plan, mixed)
    assert len(cases.due((), "ada")) + cases.own("ada") == 8
    own = next(case for case in cases_of(plan, mixed, every=True).all if case.operator == "Ada")
    with pytest.raises(InputError, match="run by 'Ada'"):
        cases_of(plan, mixed, every=True).named(own.code, "ada")


def test_what_cannot_be_judged_is_refused_by_name() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    cases = cases_of(plan, rows)
    inside = cases.due((), "Eve")[0]
    assert cases.named(inside.code.lower(), "Eve") == inside
    assert cases.named(inside.episode_id, "Eve") == inside
    with pytest.raises(InputError, match="unknown episode 'XYZ'"):
        cases.named("XYZ", "Eve")
    outside = next(row for row in rows if row.episode_id not in second_sample(plan, DIGEST))
    with pytest.raises(InputError, match="--all takes it"):
        cases.named(outside.episode_id, "Eve")
    lost = rows_of(plan)[0]
    unplayed = row_for(
        schedule(plan, Side.TWIN)[0], plan, DIGEST, policy_digest="1" * 64, start_ns=1,
        duration_s=0.0, ticks=0, episode_return=None, quality=None, success=None,
        end_reason=EndReason.LOST, software="robo-eval 1",
    )  # fmt: skip
    with pytest.raises(InputError, match="ended by lost"):
        cases_of(plan, [unplayed, *rows[1:]]).named(lost.episode_id, "Eve")
    with pytest.raises(InputError, match="nothing was played to an end"):
        cases_of(plan, [unplayed])
    with pytest.raises(InputError, match="second_share is 0"):
        cases_of(plan_of(0.0), rows)
    assert cases_of(plan_of(0.0), rows, every=True).due((), "Eve")


def add(folder: Path, episode_id: str, **more: object) -> None:
    cells: dict[str, object] = {
        "rater": "Eve", "success": True, "side": "twin", "blind": True,
        "time": "2026-03-01T09:30:00+00:00", "milestones": {"upright": True, "still": None},
    }  # fmt: skip
    append_rating(folder, episode_id=episode_id, **{**cells, **more})  # type: ignore[arg-type]


def test_a_verdict_is_kept_with_who_and_when(tmp_path: Path) -> None:
    add(tmp_path, "e1")
    add(tmp_path, "e2", success=None, milestones={}, blind=False)
    assert (tmp_path / "ratings.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    one, two = read_evidence(tmp_path).ratings or ()
    assert (one.success, one.blind, one.side) == (True, True, "twin")
    assert one.time_ns == 1_772_357_400 * 10**9
    assert one.milestones == {"upright": True, "still": None}
    assert (two.success, two.blind, two.milestones) == (None, False, {})


def test_an_older_file_gains_the_columns_and_keeps_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_bytes('\ufeffrater, episode_id,success,description\nBob,e1,yes,"a, b"'.encode())
    add(tmp_path, "e2")
    rows = list(csv.reader(file.open(encoding="utf-8")))
    assert rows[0][:4] == ["rater", "episode_id", "success", "description"]
    assert rows[1][:4] == ["Bob", "e1", "yes", "a, b"]
    first, second = read_evidence(tmp_path).ratings or ()
    assert (first.rater, first.time_ns, first.milestones) == ("Bob", None, {})
    assert (second.rater, second.episode_id) == ("Eve", "e2")
    file.write_text("episode_id,rater,success\ne1,Bob,no")
    add(tmp_path, "e3", side="", blind=None, time="", milestones={})
    assert file.read_text() == "episode_id,rater,success\ne1,Bob,no\ne3,Eve,true\n"


def test_links_to_recordings_do_not_name_the_policy(tmp_path: Path) -> None:
    bag = tmp_path / "traces" / "t0-balancer"
    bag.mkdir(parents=True)
    (bag / "metadata.yaml").write_text("")
    for name in ("t0-balancer_0.mcap", "t0-balancer_1.mcap"):
        (bag / name).write_text(name)
    links = blind_links(tmp_path, "traces/t0-balancer", "C0DE")
    assert [link.name for link in links] == ["C0DE.mcap", "C0DE_1.mcap"]
    assert [link.read_text() for link in links] == ["t0-balancer_0.mcap", "t0-balancer_1.mcap"]
    assert blind_links(tmp_path, "traces/t0-balancer", "C0DE") == links
    assert blind_links(tmp_path, "traces/gone", "C1") == []
    # A trial that was copied elsewhere still finds them.
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    assert (moved / "judging" / "C0DE.mcap").read_text() == "t0-balancer_0.mcap"
