"""Tests of what a report says of autonomy levels."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from robo_eval.analysis.trial import analyse_trial
from robo_eval.cli.app import app
from robo_eval.core.estimate import Estimate
from robo_eval.formulas.composite import AXES
from robo_eval.gates import Audit, GateResult, Readings, assess
from robo_eval.gates.axes.anchors import Axis
from robo_eval.gates.axes.frontier import Frontier, frontier_of
from robo_eval.gates.axes.improvement import Streak
from robo_eval.gates.axes.index import index_of
from robo_eval.gates.axes.progress import progress_of
from robo_eval.gates.axes.settings import FrontierSettings, IndexSettings, ProgressSettings
from robo_eval.gates.checklist import Checklist, Item
from robo_eval.gates.profile import AUDITS, load_profile
from robo_eval.gates.quantity import about
from robo_eval.gates.trial import TrialFindings
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.evidence import Checkpoint
from robo_eval.log.importer import import_csv
from robo_eval.metrics.config import MetricConfig
from robo_eval.report.build import build_report
from robo_eval.report.level_words import Shown
from robo_eval.report.levels import Autonomy, autonomy_of
from robo_eval.report.model import Report
from robo_eval.report.page import render

FAST = MetricConfig(resamples=100)
GAP = "\N{NO-BREAK SPACE}"
Make = Callable[..., Report]


def ratio(value: float, half: float = 0.01, n: int = 500) -> Estimate:
    return Estimate(
        value=value, low=max(0.0, value - half), high=min(1.0, value + half), n=n,
        method="clopper_pearson", unit="ratio",
    )  # fmt: skip


def counted(value: float, unit: str = "h") -> Estimate:
    return Estimate(value=value, low=value, high=value, n=1, method="counted", unit=unit)


def evidence(side: str = "real", **changed: Estimate | None) -> Readings:
    """Evidence for level 2, but for what is changed: two families, of which one reaches 0.90."""
    slope = Estimate(
        value=0.007, low=0.004, high=0.01, n=12, method="moving_block_bootstrap", unit="1"
    )
    values: dict[str, Estimate | None] = {
        "AR_new_task": ratio(0.86),
        "S2R_new_task": ratio(0.9),
        "SS": ratio(0.9),
        "E": ratio(0.88),
        "RA": ratio(0.7),
        "QC_worst": ratio(0.7),
        "minor_per_100_h": Estimate(
            value=0.0, low=0.0, high=0.8, n=0, method="garwood", unit="incidents/100 h"
        ),
        "major_incidents": counted(0.0, "incidents"),
        "critical_incidents": counted(0.0, "incidents"),
        "exposure_hours": counted(4800.0),
        "MTBSI": Estimate(
            value=None, low=1600.0, n=0, method="garwood", unit="h", reason="none happened"
        ),
        "kappa": slope,
        "maintenance_days": counted(8.0, "days"),
    }
    values.update(changed)
    return Readings(
        policy="arm",
        side=side,
        values={name: found for name, found in values.items() if found is not None},
        families={
            "AR": {"pick": ratio(0.95), "place": ratio(0.85)},
            "S2R": {"pick": ratio(0.9), "place": ratio(0.6)},
        },
        streaks={"pick": Streak(kappa=slope, days=8, of_days=12)},
        events={"near_miss": 0, "minor": 0, "major": 0, "critical": 0},
        audits=tuple(Audit(id=name, title=name, status="pass", reason="") for name in AUDITS),
    )


def helped(*policies: tuple[str, float, int]) -> Frontier:
    """The frontier of policies with a mean quality and so many interventions in each episode."""
    lines = [
        {"policy": name, "family": "pick", "quality": quality + more, "interventions": often}
        for name, quality, often in policies
        for more in (-0.02, 0.0, 0.0, 0.02)
    ]
    table = pd.DataFrame(lines, columns=["policy", "family", "quality", "interventions"])
    return frontier_of(table, FrontierSettings(resamples=100))


FORM = Checklist(
    items=(
        Item(id="software", question="Software", answer="robo-eval 1", source="manifest.json"),
        Item(id="items", question="Who <b>asked</b>", answer="", source="checklist.csv"),
    )
)


def findings(*readings: Readings, frontier: Frontier | None = None) -> TrialFindings:
    profile = load_profile("robotics")
    return TrialFindings(
        policies=tuple(assess(one, profile) for one in readings),
        checklist=FORM,
        frontier=frontier or helped(),
        profile=profile,
        config=FAST,
    )


def shown(
    *readings: Readings, places: dict[str, str] | None = None, frontier: Frontier | None = None
) -> Autonomy:
    found = autonomy_of(findings(*readings, frontier=frontier), places=places)
    assert found is not None
    return found


def gates_of(readings: Readings, title: str) -> tuple[dict[int, GateResult], Shown, str]:
    """A gate by level, the evidence it read, and why it passes or not, as the page has them."""
    autonomy = shown(readings)
    (one,) = autonomy.policies
    (by_level,) = [
        gates
        for gates in autonomy.gates(one, counts=True)
        if next(iter(gates.values())).title.startswith(title)
    ]
    return by_level, autonomy.found(next(iter(by_level.values()))), autonomy.why(one, by_level)


def asked(by_level: dict[int, GateResult]) -> list[tuple[str, str]]:
    return [(Autonomy.asked(gate), gate.status) for gate in by_level.values()]


def page_of(make_report: Make, autonomy: Autonomy | None) -> str:
    return render(replace(make_report(), autonomy=autonomy), [])


def section_of(page: str) -> str:
    return page.split('<section id="autonomy"')[1].split("</section>")[0]


def test_a_level_its_evidence_and_the_way_to_the_next_are_shown(make_report: Make) -> None:
    autonomy = shown(evidence())
    (found,) = autonomy.policies
    assert autonomy.verdict(found) == ["Gates and audits of level 2 pass."]
    page = section_of(page_of(make_report, autonomy))
    assert '<span class="aai">AAI-2</span>' in page
    assert "evidence: real" in page
    assert "What is missing for AAI-3" in page
    later = autonomy.lines(found.missing[4])
    assert f"Missing for AAI-4: {len(later)} things</summary>" in page
    assert f"Audits of arm: {len(AUDITS)} of {len(AUDITS)} pass" in page
    assert "found on the robot" in page
    assert "AR_twin" not in page


def test_the_capped_level_of_a_twin_says_what_it_would_be_on_a_robot(make_report: Make) -> None:
    autonomy = shown(evidence("twin"))
    (found,) = autonomy.policies
    assert autonomy.verdict(found) == [
        "Without a physical robot no level above 1 is issued.",
        "Would be AAI-2 on a robot.",
    ]
    assert "Run: episodes on a physical robot." in autonomy.lines(found.lacking)
    page = section_of(page_of(make_report, autonomy))
    assert "AAI-1</span>" in page
    assert "evidence: twin" in page
    assert "found on the twin" in page
    assert "AR_twin and S2S stand where gates ask for AR and S2R" in page


def test_point_estimates_are_told_where_they_say_another_level() -> None:
    (found,) = shown(evidence(AR_new_task=ratio(0.86, half=0.07))).policies
    told = "AAI-0, nothing higher is shown at 95 %; AAI-2 by point values."
    assert Autonomy.headline(found) == told


def test_a_window_that_does_not_count_has_no_level_and_no_next_one(make_report: Make) -> None:
    reason = "a critical incident: the window does not count"
    page = section_of(page_of(make_report, shown(replace(evidence(), invalid=reason))))
    assert '<span class="aai bad">no level</span>' in page
    assert "A critical incident: the window does not count." in page
    assert "issing for" not in page


def test_simulation_alone_has_no_section(make_report: Make) -> None:
    assert autonomy_of(findings(evidence("sim"))) is None
    assert autonomy_of(None) is None
    page = page_of(make_report, None)
    assert 'id="autonomy"' not in page
    assert ">Autonomy level<" not in page
    mixed = section_of(page_of(make_report, shown(evidence("sim"), evidence("twin"))))
    assert re.findall(r"evidence: ([a-z ]+)</span>", mixed) == ["simulation only", "twin"]


def test_a_gate_has_its_evidence_and_a_light_for_each_level_that_asks() -> None:
    ar, found, why = gates_of(evidence(), "AR,")
    assert found == ("0.860", "0.850 to 0.870", "500 tasks")
    assert list(ar) == [2, 3, 4]  # level 1 does not ask
    assert asked(ar) == [("≥ 0.8", "pass"), ("≥ 0.9", "fail"), ("≥ 0.97", "fail")]
    assert why == "AAI-3: lower end 0.85 < 0.9"
    minor, found, _ = gates_of(evidence(), "minor")
    assert found[1:] == ("0 to 0.8, each one-sided", "0 incidents")
    assert [threshold for threshold, _ in asked(minor)] == ["≤ 1", "≤ 0.5", "≤ 0.2"]
    _, found, why = gates_of(evidence(), "MTBSI")
    assert found.value == f"at least 1{GAP}600"
    assert why == f"AAI-4: one-sided lower end 1{GAP}600 ≥ 200"
    assert gates_of(evidence(), "exposure")[1] == (f"4{GAP}800", "", "")
    major, _, _ = gates_of(evidence(), "major")
    assert [threshold for threshold, _ in asked(major)] == ["none"] * 3


def test_families_are_counted_anew_at_each_level(make_report: Make) -> None:
    families, found, why = gates_of(evidence(), "families that reach AR")
    assert found == ("2 families", "", "")
    assert [gate.status for gate in families.values()] == ["pass", "fail", "fail"]
    assert why.startswith("AAI-3: 1 of 2 families reach at least 0.9, 3 needed")
    # 0.84, the lower end of `place`, reaches 0.80 only; 0.94, that of `pick`, 0.80 and 0.90.
    (line,) = [
        line
        for line in section_of(page_of(make_report, shown(evidence()))).splitlines()
        if ">families that reach AR" in line
    ]
    assert re.findall(r"\d of \d(?=</span>)", line) == ["2 of 2", "1 of 2", "0 of 2"]


def test_what_was_not_measured_is_missing_with_its_remedy_once() -> None:
    readings = evidence(QC_worst=None)
    control, found, why = gates_of(readings, "QC")
    assert found == ("", "", "")
    assert {gate.status for gate in control.values()} == {"missing"}
    assert why == about("QC_worst").remedy
    autonomy = shown(readings)
    lists = [autonomy.lines(lacking) for lacking in autonomy.policies[0].missing.values()]
    assert all(len(set(lines)) == len(lines) for lines in lists)


def test_a_number_without_interval_says_why() -> None:
    bare = Estimate(value=0.99, n=3, method="none", unit="ratio", reason="one value")
    control, found, _ = gates_of(evidence(QC_worst=bare), "QC")
    assert found[:2] == ("0.990", "no interval: one value")
    assert {gate.status for gate in control.values()} == {"missing"}


@given(
    left_out=st.sets(st.sampled_from(sorted(evidence().values))),
    side=st.sampled_from(["real", "twin"]),
)
def test_every_gate_of_the_assessment_has_its_place(left_out: set[str], side: str) -> None:
    (one,) = shown(evidence(side, **dict.fromkeys(left_out))).policies
    for counts in (True, False):
        rows = Autonomy.gates(one, counts=counts)
        own = [gate for gate in one.gates if gate.counts == counts]
        assert sorted((gate for row in rows for gate in row.values()), key=id) == sorted(
            own, key=id
        )
        assert len(rows) == len({gate.id for gate in own})
        assert all(list(row) == sorted(row) for row in rows)


def test_lights_are_a_sign_and_a_word(make_report: Make) -> None:
    autonomy = shown(evidence(QC_worst=None))
    page = section_of(page_of(make_report, autonomy))
    words = re.findall(r'<span class="light (\w+)"><svg .*?</svg>(\w+)</span>', page)
    (found,) = autonomy.policies
    assert len(words) == len(found.gates) + 5 * len(found.steps) + len(found.audits)
    assert all(kind == word for kind, word in words)
    assert {word for _, word in words} == {"pass", "fail", "missing", "undecided"}
    signs = {word: re.search(rf'light {word}"><svg .*?</svg>', page) for _, word in words}
    assert len({sign[0].split(">", 1)[1] for sign in signs.values() if sign}) == 4


def test_folders_are_left_out_and_markup_stays_text(make_report: Make) -> None:
    readings = evidence()
    text = "/home/me/lab/incidents.csv: line 3: no episode <b>nowhere</b>, and 1,234 more"
    broken = Audit(id="evidence", title="the evidence fits", status="fail", reason=text)
    audits = tuple(broken if it.id == "evidence" else it for it in readings.audits)
    autonomy = shown(replace(readings, audits=audits), places={"/home/me/lab/": ""})
    page = section_of(page_of(make_report, autonomy))
    short = "incidents.csv: line 3: no episode &lt;b&gt;nowhere&lt;/b&gt;"
    assert f">{short}, and 1{GAP}234 more</td>" in page
    assert "/home/me" not in page
    assert "<b>nowhere" not in page


def test_many_policies_have_their_tables_folded(make_report: Make) -> None:
    few = [replace(evidence(), policy=f"p{i}") for i in range(2)]
    assert section_of(page_of(make_report, shown(*few))).count('class="printed" open') == 2
    many = [*few, replace(evidence(), policy="p2")]
    page = section_of(page_of(make_report, shown(*many)))
    assert page.count('class="printed" open') == 0
    assert len(set(re.findall(r'id="(autonomy-\d)"', page))) == 3


# How the level was found -------------------------------------------------------------------------


def test_gates_that_only_report_stand_in_a_table_of_their_own(make_report: Make) -> None:
    autonomy = shown(evidence(generality=ratio(0.4), world_model=ratio(0.7)))
    tables = section_of(page_of(make_report, autonomy)).split("<table")
    (reported,) = [it for it in tables if "reported, does not decide" in it]
    (deciding,) = [it for it in tables if 'class="long stack gates"' in it and it != reported]
    assert "G, generality" in reported
    assert "G, generality" not in deciding
    # The same quantity may decide at one level and be reported at another.
    assert "W, world model" in deciding
    assert "AR, actuation reliability" not in reported
    # Levels of a table are those its gates have.
    columns = [re.findall(r'columnheader">AAI-(\d)', it) for it in (deciding, reported)]
    assert columns[0] == ["1", "2", "3", "4"]
    assert "1" not in columns[1]


def test_the_way_to_the_verdict_is_told_from_the_highest_level_down(make_report: Make) -> None:
    page = section_of(page_of(make_report, shown(evidence())))
    (table,) = [it for it in page.split("<table") if "from the highest level down" in it]
    rows = {
        level: [*re.findall(r"</svg>(\w+)", cells), *re.findall(r"<b>passes</b>", cells)]
        for level, cells in re.findall(r'rowheader">AAI-(\d)</th>(.*?)</tr>', table)
    }
    assert list(rows) == ["4", "3", "2", "1"]
    assert rows["2"] == ["pass"] * 5 + ["<b>passes</b>"]
    assert rows["3"][0] == "fail"
    assert rows["1"][0] == "missing"
    assert page.count("<b>passes</b>") == 1


def test_tasks_that_are_not_fit_leave_no_level_and_say_what_it_would_be(make_report: Make) -> None:
    unfit = Audit(id="family_size", title="episodes", status="fail", reason="pick has 3 of 30")
    fit = Audit(id="proper_scoring", title="rules", status="pass", reason="brier")
    page = section_of(page_of(make_report, shown(replace(evidence(), battery=(fit, unfit)))))
    assert '<span class="aai bad">no level</span>' in page
    assert "Would be AAI-2 with tasks that are fit to show a level." in page
    assert "Checks of the tasks of arm: 1 of 2 pass" in page
    assert "pick has 3 of 30" in page
    autonomy = shown(replace(evidence("twin"), battery=(unfit,)))
    would_be = "Would be AAI-2 on a robot and with tasks that are fit to show a level."
    assert would_be in autonomy.verdict(autonomy.policies[0])


# Axes, index and progress ------------------------------------------------------------------------


def axes(**changed: float | None) -> tuple[Axis, ...]:
    """Ten axes of 0.5, but for what is changed, without draws."""
    found = []
    for name in AXES:
        value = changed.get(name, 0.5)
        estimate = (
            Estimate.missing(reason=f"add {name}.csv: at least 1,000 lines", unit="ratio")
            if value is None
            else ratio(value, n=1200)
        )
        found.append(Axis(name=name, raw=estimate, baseline=0.0, expert=1.0, value=estimate))
    return tuple(found)


def with_axes(**changed: float | None) -> Readings:
    own = axes(**changed)
    index = index_of(own, IndexSettings(weights="robotics"))
    return replace(evidence(), axes=own, index=index)


def axes_rows(page: str) -> dict[str, str]:
    (table,) = [it for it in page.split("<table") if 'class="long stack axes"' in it]
    return dict(re.findall(r'rowheader">([^<]*)</th>(.*?)</tr>', table))


def test_axes_have_value_interval_and_weight_or_a_remedy(make_report: Make) -> None:
    page = section_of(page_of(make_report, shown(with_axes(M=None))))
    assert "Axes of arm: 9 of 10 have a value" in page
    rows = axes_rows(page)
    assert len(rows) == len(AXES)
    number = '<span class="whole">0.500</span> <span class="interval wraps">0.490 to 0.510</span>'
    assert rows["A autonomy"].count(number) == 2  # the axis is what was measured
    assert 'data-label="anchors">0 to 1</td>' in rows["A autonomy"]
    assert f'data-label="n">1{GAP}200</td>' in rows["A autonomy"]
    assert f"not measured: add M.csv: at least 1{GAP}000 lines" in rows["M memory"]
    assert "No index with the weights “robotics”: no value of M (memory)." in page
    assert "with other weights" not in page  # all lack the same


def test_an_index_is_told_with_its_adjusted_form_and_with_other_weights(make_report: Make) -> None:
    page = section_of(page_of(make_report, shown(with_axes())))
    assert "Index 0.500 (no interval: no interval of A," in page
    assert "uniformity 1.000: 0.500" in page
    table = page.split("Index of arm with other weights")[1].split("</table>")[0]
    for label in ("equal weights", "general weights", "without embodiment", "with embodiment"):
        assert f'rowheader">{label}</th>' in table
    shares = {
        share
        for cells in axes_rows(page).values()
        for share in re.findall(r'data-label="weight"><span class="whole">([^<]*)', cells)
    }
    assert shares == {f"{share}{GAP}%" for share in ("5", "7.5", "10", "20")}


def test_readings_without_axes_say_nothing_of_them(make_report: Make) -> None:
    page = section_of(page_of(make_report, shown(evidence())))
    assert "Axes of arm" not in page
    assert "data-figure" not in page


def checkpoints(days: int) -> list[Checkpoint]:
    return [
        Checkpoint(
            line=day + 2,
            policy=None,
            side="real",
            time_ns=(20_000 + day) * 86_400 * 10**9,
            family="pick",
            capability=0.4 + 0.02 * day,
            resources=3.0 * day,
        )
        for day in range(days)
    ]


@pytest.mark.parametrize("days", [2, 9])
def test_progress_is_a_row_of_numbers_alike_for_all_families(make_report: Make, days: int) -> None:
    progress = progress_of(checkpoints(days), ProgressSettings(resamples=100))
    told = Autonomy.progress(progress)
    assert told["kappa"].value == "0.00667"
    if days == 2:
        assert told["kappa"].note == "no interval: 2 checkpoints; an interval needs 5"
        assert told["slope"] == Shown("", "2 checkpoints; a fit needs 5")
        assert told["speeds up"].value == "not known"
        assert told["next step"].value == "nothing bounds it"
    else:
        assert told["speeds up"].value in ("yes", "not shown")
        assert told["next step"].note.startswith("at most, to reach 0.")
    autonomy = shown(replace(evidence(), progress={"pick": progress, "place": progress}))
    page = section_of(page_of(make_report, autonomy))
    table = page.split("Progress of arm by task family")[1].split("</table>")[0]
    assert re.findall(r'rowheader">(\w+)<', table) == ["pick", "place"]
    assert re.findall(r'columnheader">([^<]+)<', table) == ["family", *told]


# Delegation and form -----------------------------------------------------------------------------


def test_a_frontier_that_falls_is_told_with_its_area_and_share(make_report: Make) -> None:
    autonomy = shown(evidence(), frontier=helped(("alone", 0.5, 0), ("helped", 0.9, 4)))
    # 4 interventions are within the budget of 5 up to autonomy 0.2, in 2 of the 10 degrees.
    area, share = autonomy.frontier_text[:2]
    assert "frontier (AUF): 0.580 (95" in area
    assert share.startswith(f"At 20{GAP}% (95{GAP}% interval 20{GAP}% to 20{GAP}%) of the degrees")
    assert 'data-figure="frontier"' in section_of(page_of(make_report, autonomy))


def test_a_policy_without_help_has_words_and_no_picture(make_report: Make) -> None:
    autonomy = shown(evidence(), frontier=helped(("arm", 0.5, 0)))
    (text,) = autonomy.frontier_text
    assert text.startswith("The policy needs so little help")
    assert "is not shown to reach the 0.75" in text
    page = section_of(page_of(make_report, autonomy))
    assert "How much can be delegated" in page
    assert 'data-figure="frontier"' not in page


def test_degrees_without_a_policy_are_said_to_be_left_out() -> None:
    text = shown(evidence(), frontier=helped(("helped", 0.9, 4))).frontier_text
    assert "From autonomy 0.25 on no policy stays within" in text[-1]


def test_a_trial_without_scored_episodes_has_no_frontier(make_report: Make) -> None:
    autonomy = shown(evidence(), frontier=helped())
    assert autonomy.frontier_text == []
    assert "delegated" not in section_of(page_of(make_report, autonomy))


def test_open_questions_of_the_form_are_listed_and_the_form_is_whole(make_report: Make) -> None:
    page = section_of(page_of(make_report, shown(evidence())))
    assert "1 of 2 questions are answered. Open:" in page
    assert page.count("Who &lt;b&gt;asked&lt;/b&gt;") == 2  # in the list and in the form
    assert page.count("checklist.csv") == 2
    assert "robo-eval 1" in page


# The bundle --------------------------------------------------------------------------------------


def make_trial(folder: Path, side: str = "real") -> TrialDirectory:
    """Ten pairs of two policies; incidents are on record where there is a robot."""
    lines = ["trial,where,ok,pair,who,kind,seconds"]
    for who in ("ours", "theirs"):
        for i in range(10):
            key = f"{who}-{i}"
            if side != "sim":
                lines.append(f"r-{key},{side},{int(i < 7)},{key},{who},pick,225")
            lines.append(f"s-{key},sim,{int(i < 8)},{key},{who},pick,")
    (folder / "lab.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "map.yaml").write_text(
        "columns: {episode_id: trial, side: where, success: ok, pair_id: pair, policy: who,"
        " task: kind, exposure_s: {column: seconds, unit: s}}",
        encoding="utf-8",
    )
    trial = import_csv(folder / "lab.csv", folder / "map.yaml", folder / "trial")
    if side != "sim":
        (trial.path / "incidents.csv").write_text(
            "incident_id,severity,episode_id\ni1,near_miss,nowhere\n", encoding="utf-8"
        )
    return trial


def test_the_bundle_has_the_assessment_that_the_command_prints(tmp_path: Path) -> None:
    trial = make_trial(tmp_path)
    page = build_report(trial)
    data = (page.parent / "assessment.json").read_bytes()
    printed = CliRunner().invoke(app, ["assess", str(trial.path), "--json"])
    assert json.loads(data) == json.loads(printed.stdout)
    names = [one["policy"] for one in json.loads(data)["assessments"]]
    assert names == ["ours", "theirs"]
    manifest = json.loads((page.parent / "manifest.json").read_text())
    assert manifest["files"]["assessment.json"] == {
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    text = page.read_text()
    assert '<a href="#autonomy">Autonomy level</a>' in text
    assert 'download="assessment.json" type="application/json"' in text
    section = section_of(text)
    assert section.count('<article class="autonomy"') == 2
    assert "incidents.csv: line 2:" in section  # the incident of an episode that is not there
    assert str(tmp_path) not in section


def test_a_trial_in_simulation_has_neither_section_nor_assessment(tmp_path: Path) -> None:
    page = build_report(make_trial(tmp_path, "sim"), config=FAST)
    assert not (page.parent / "assessment.json").exists()
    assert "assessment.json" not in (page.parent / "manifest.json").read_text()
    assert 'id="autonomy"' not in page.read_text()


def test_a_ready_summary_is_assessed_without_a_second_analysis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = make_trial(tmp_path)
    summary = analyse_trial(trial, config=FAST)
    monkeypatch.setattr(
        "robo_eval.analysis.trial.analyse_trial", lambda *_a, **_k: pytest.fail("computed again")
    )
    assert 'id="autonomy"' in build_report(trial, summary=summary).read_text()


def test_gates_read_no_other_evidence_than_the_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial = make_trial(tmp_path)
    other = tmp_path / "other.csv"
    other.write_text("incident_id,severity,episode_id\n", encoding="utf-8")
    summary = analyse_trial(trial, config=FAST, evidence={"incidents": other})
    page = build_report(trial, summary=summary)
    assert 'id="autonomy"' not in page.read_text()
    assert "made with other files of evidence" in caplog.text
    page = build_report(trial, summary=summary, evidence={"incidents": other})
    assert "0 incidents on record" in section_of(page.read_text())
