"""tools.csv and checkpoints.csv: what is in them, and one line for each thing that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_eval.core.errors import InputError
from robo_eval.log.evidence import Checkpoint, Retention, Retrieval, ToolUse
from robo_eval.log.evidence_read import read_evidence

TOOLS = "category,episodes,successes,drift\ngripper,20,18,mild\ncamera,10,10,mild\n"
CHECKPOINTS = """time,family,capability,resources,drift,human_patches
2026-03-01T12:00:00+00:00,pick,0.50,1,,0
2026-03-02T12:00:00+00:00,pick,0.52,2,payload,0
2026-03-03T12:00:00+00:00,pick,0.55,4,,1
"""
HEAD = "family,lag_days,trials,recalled"
RETENTION = "family,lag_days,trials,recalled\nplaces,1,40,38\nplaces,7,40,30\n"
RETRIEVAL = "family,k,queries,relevant,found,returned,verified\nplaces,5,20,60,54,90,81\n"
REVISIONS = """\
revision,time,diff,holdout,resources_equal,proposed_by,edits,edits_by_policy,checks,\
checks_without_labels,episodes,before,after,control_before,control_after,ablated
r1,2026-03-02T12:00:00+00:00,git:1a2b,seeds:77,true,policy,10,9,5,4,200,124,140,122,126,125
r2,2026-03-04T12:00:00+00:00,git:3c4d,seeds:77,yes,operator,4,1,2,0,200,140,138,126,126,
"""
ANCHORS = "axis,baseline,expert,source,scale\n$,1,9,price study,log\nA,0.2,1,pilot,\n"
EXPERTS = "family,quality,se,n,source\npick,0.74,0.025,120,timed professionals\n"
PROBES = (
    "probe,ability,n,mean,sd,human_median,human_n,assisted\n"
    "working_memory_span,Gwm,30,7.5,1.1,7,50,false\nworking_memory_span,Gwm,30,9,1,7,50,true\n"
)
CHECKLIST = "item,answer,by,document\nrecomputation,by hand,Institute,report.pdf\n"
GOOD = {
    "tools": TOOLS, "checkpoints": CHECKPOINTS, "retention": RETENTION, "retrieval": RETRIEVAL,
    "revisions": REVISIONS, "anchors": ANCHORS, "experts": EXPERTS, "probes": PROBES,
    "checklist": CHECKLIST,
}  # fmt: skip


def refused(folder: Path, name: str, text: str | bytes) -> str:
    """What is said of a file that cannot be used."""
    path = folder / f"{name}.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        read_evidence(folder)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert len(said.splitlines()) == 1
    return said.removeprefix(f"{path}: ")


def test_good_files_are_read(tmp_path):
    for name, text in GOOD.items():
        (tmp_path / f"{name}.csv").write_text(text)
    found = read_evidence(tmp_path)
    assert found.tools is not None
    assert found.tools[0] == ToolUse(
        line=2, category="gripper", episodes=20, successes=18, drift="mild"
    )
    assert found.checkpoints is not None
    assert found.checkpoints[2] == Checkpoint(
        line=4, time_ns=1_772_539_200 * 10**9, family="pick", capability=0.55, resources=4.0,
        human_patches=1,
    )  # fmt: skip
    assert set(found.sources) == {f"{name}.csv" for name in GOOD}
    assert found.retention is not None
    assert found.retention[1] == Retention(
        line=3, family="places", lag_days=7.0, trials=40, recalled=30
    )
    assert found.retrieval == (
        Retrieval(
            line=2, family="places", k=5, queries=20, relevant=60, found=54, returned=90,
            verified=81,
        ),
    )  # fmt: skip
    first, second = found.revisions or ()
    assert (first.proposed_by, first.edits_by_policy, first.ablated) == ("policy", 9, 125)
    assert (second.resources_equal, second.ablated) == (True, None)
    assert [(one.axis, one.scale) for one in found.anchors or ()] == [("$", "log"), ("A", "linear")]
    assert [one.assisted for one in found.probes or ()] == [False, True]


def test_times_of_other_zones_are_the_same_moment(tmp_path):
    (tmp_path / "checkpoints.csv").write_text(
        "time,family,capability,resources\n"
        "2026-03-01T21:00:00+09:00,pick,0.5,1\n2026-03-01T12:00:00Z,place,0.5,1\n"
    )
    first, second = read_evidence(tmp_path).checkpoints or ()
    assert first.time_ns == second.time_ns


@pytest.mark.parametrize(
    ("name", "column", "value", "said"),
    [
        ("tools", "category", "", "is empty; it needs a text"),
        ("tools", "episodes", "", "is empty; it needs a whole number"),
        ("tools", "episodes", "-1", "must be a whole number of at least 0"),
        ("tools", "episodes", "20.5", "is not a whole number"),
        ("tools", "episodes", "²", "is not a number"),
        ("tools", "episodes", "nan", "is not a finite number"),
        ("tools", "successes", "many", "is not a number"),
        ("tools", "successes", "21", "is more than the 20 episodes"),
        ("checkpoints", "time", "", "is empty; it needs a time"),
        ("checkpoints", "time", "2026-03-01", "is not a time with its zone"),
        ("checkpoints", "time", "2026-03-01T12:00:00", "is not a time with its zone"),
        ("checkpoints", "time", "yesterday", "is not a time with its zone"),
        ("checkpoints", "time", "0001-01-01T00:00:00+14:00", "is outside the years"),
        ("checkpoints", "family", "", "is empty; it needs a text"),
        ("checkpoints", "capability", "", "is empty; it needs a number"),
        ("checkpoints", "capability", "1.2", "gives 1.2, which is outside [0, 1]"),
        ("checkpoints", "capability", "-0.1", "is outside [0, 1]"),
        ("checkpoints", "capability", "nan", "is not a finite number"),
        ("checkpoints", "capability", "inf", "is not a finite number"),
        ("checkpoints", "capability", "half", "is not a number"),
        ("checkpoints", "resources", "", "is empty; it needs a number"),
        ("checkpoints", "resources", "-1", "must be a number of at least 0"),
        ("checkpoints", "resources", "1e999", "is not a finite number"),
        ("checkpoints", "human_patches", "one", "is not a number"),
        ("checkpoints", "human_patches", "0.5", "is not a whole number"),
        ("retention", "lag_days", "-1", "must be a number of at least 0"),
        ("retention", "recalled", "41", "is more than the 40 trials"),
        ("retrieval", "k", "0", "must be at least 1"),
        ("retrieval", "found", "61", "is more than the 60 relevant items"),
        ("retrieval", "returned", "101", "is more than the 100 items that so many queries"),
        ("retrieval", "verified", "91", "is more than the 90 returned items"),
        ("revisions", "time", "", "is empty; it needs a time"),
        ("revisions", "diff", "", "is empty; it needs a text"),
        ("revisions", "holdout", "", "is empty; it needs a text"),
        ("revisions", "resources_equal", "", "write true or false"),
        ("revisions", "resources_equal", "about", "write true or false"),
        ("revisions", "episodes", "0", "must be at least 1"),
        ("revisions", "after", "201", "is more than the 200 episodes"),
        ("revisions", "ablated", "201", "is more than the 200 episodes"),
        ("revisions", "edits_by_policy", "11", "is more than the 10 edits"),
        ("revisions", "checks_without_labels", "6", "is more than the 5 checks"),
        ("anchors", "axis", "Q", "unknown axis 'Q'"),
        ("anchors", "axis", "E", "unknown axis 'E'"),
        ("anchors", "expert", "0.5", "is below the baseline; of every axis more is better"),
        ("anchors", "expert", "1e300", "must be 0 or between 1e-15 and 1e+15"),
        ("probes", "human_median", "1e-300", "must be 0 or between 1e-15 and 1e+15"),
        ("tools", "episodes", "1" * 16, "must have at most 15 digits"),
        ("anchors", "expert", "1", "equals the baseline; two different anchors are needed"),
        ("anchors", "baseline", "0", "must be above 0 on a log scale"),
        ("anchors", "scale", "cubic", "unknown scale 'cubic'"),
        ("anchors", "source", "", "is empty; it needs a text"),
        ("experts", "quality", "1.2", "gives 1.2, which is outside [0, 1]"),
        ("experts", "se", "", "is empty; it needs a number"),
        ("probes", "sd", "-1", "must be a number of at least 0"),
        ("probes", "human_median", "", "is empty; it needs a number"),
        ("checklist", "item", "recomputed", "unknown item 'recomputed'; did you mean"),
        ("checklist", "answer", "", "is empty; it needs a text"),
    ],
)
def test_a_bad_cell_is_named_with_file_line_and_column(tmp_path, name, column, value, said):
    header, first, *rest = GOOD[name].splitlines()
    cells = first.split(",")
    cells[header.split(",").index(column)] = value
    found = refused(tmp_path, name, "\n".join([header, ",".join(cells), *rest]) + "\n")
    assert found.startswith(f"line 2, column '{column}': ")
    assert said in found


@pytest.mark.parametrize("name", GOOD)
def test_a_side_that_is_none_is_named(tmp_path, name):
    header, *rows = GOOD[name].splitlines()
    text = "\n".join([f"{header},side", *(f"{row},bench" for row in rows)])
    found = refused(tmp_path, name, text)
    assert found.startswith("line 2, column 'side': unknown side 'bench'")


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("tools", "category", "catgory", "unknown column 'catgory'; did you mean 'category'"),
        ("tools", ",drift", ",category", "column 'category' appears twice"),
        ("tools", "category,", "", "column 'category' is missing; tools need"),
        ("tools", ",18", ",18,4", "line 2: has 5 cells, the header has 4"),
        ("tools", "gripper", '"gripper', "is not CSV"),
        ("checkpoints", "capability", "capabilty", "did you mean 'capability'"),
        ("checkpoints", ",pick,0.52,2,", ",pick,0.52,0.5,",
         "line 3, column 'resources': 0.5 is less than the 1 of line 2; it is a running total"),
        ("checkpoints", "2026-03-02T12", "2026-03-01T12",
         "line 3, column 'time': family 'pick' has a checkpoint at that time already, in line 2"),
        ("retention", ",7,", ",1,", "line 3, column 'family': 'places' is in line 2 already"),
        ("revisions", "r2", "r1", "line 3, column 'revision': 'r1' is in line 2 already"),
        ("anchors", "\nA,", "\n$,", "line 3, column 'axis': '$' is in line 2 already"),
        ("anchors", "A,0.2,1,", "A,0.2,50,", "must be at most 1; the raw value of A is a share"),
        ("retention", HEAD, HEAD.replace(",", ";"), "divided by ';'; save it with commas"),
        ("probes", "true", "false", "line 3, column 'probe': 'working_memory_span' is in line 2"),
    ],
)  # fmt: skip
def test_a_bad_table_is_named(tmp_path, name, old, new, said):
    assert said in refused(tmp_path, name, GOOD[name].replace(old, new, 1))


@pytest.mark.parametrize("name", GOOD)
def test_what_is_no_text_is_refused(tmp_path, name):
    assert "is not UTF-8 text" in refused(tmp_path, name, GOOD[name].encode() + b"\xff\xfe")
    assert "is empty; it needs a header line" in refused(tmp_path, name, "")


def test_a_day_is_that_of_the_clock_of_the_place(tmp_path: Path) -> None:
    """At nine hours from UTC a morning and the next straddle three days of UTC."""
    (tmp_path / "checkpoints.csv").write_text(
        "time,family,capability,resources\n"
        "2026-03-01T08:30:00+09:00,pick,0.5,0\n"
        "2026-03-02T09:30:00+09:00,pick,0.5,1\n"
        "2026-03-02T23:30:00-05:00,pick,0.5,2\n"
    )
    points = read_evidence(tmp_path).checkpoints or ()
    first, second, third = (point.day for point in points)
    assert (second - first, third - second) == (1, 0)
    assert points[1].time_ns // 10**9 // 86_400 - points[0].time_ns // 10**9 // 86_400 == 2


def test_notes_on_a_policy_may_be_of_simulation_and_notes_on_a_body_not(tmp_path: Path) -> None:
    (tmp_path / "tools.csv").write_text("category,episodes,successes,side\ncamera,9,8,sim\n")
    assert [use.side for use in read_evidence(tmp_path).tools or ()] == ["sim"]
    said = refused(tmp_path, "incidents", "incident_id,severity,side\ni1,minor,sim\n")
    assert said.startswith("line 2, column 'side': unknown side 'sim'")


def test_a_line_for_every_policy_and_one_for_a_policy_contradict_each_other(tmp_path: Path) -> None:
    """Which of them counts must not depend on their order."""
    header = "probe,n,mean,sd,human_median,human_n,policy\n"
    lines = ["working_memory_span,30,3,1,7,50,", "working_memory_span,30,9,1,7,50,arm"]
    for order in (lines, lines[::-1]):
        said = refused(tmp_path, "probes", header + "\n".join(order) + "\n")
        assert said.startswith("line 3, column 'probe': 'working_memory_span' is in line 2 already")
    others = [lines[1], lines[1].replace("arm", "leg")]
    (tmp_path / "probes.csv").write_text(header + "\n".join(others) + "\n")
    assert len(read_evidence(tmp_path).probes or ()) == 2


def test_yes_and_no_have_no_interval(tmp_path: Path) -> None:
    header = "what,value,low,high,n,by,time,document\n"
    line = "delivery,0,1,1,3,lab,2026-03-01T12:00:00+00:00,report.pdf\n"
    said = refused(tmp_path, "declarations", header + line)
    assert said.startswith("line 2, column 'low': '1' goes with a number; yes and no have no")


def test_a_link_that_leads_nowhere_is_no_absent_file(tmp_path: Path) -> None:
    (tmp_path / "tools.csv").symlink_to(tmp_path / "none.csv")
    with pytest.raises(InputError, match=r"tools\.csv: no such file of tools"):
        read_evidence(tmp_path)


def test_drift_and_policy_may_be_written_with_capitals(tmp_path: Path) -> None:
    (tmp_path / "tools.csv").write_text(TOOLS.replace("mild", "Mild"))
    (tmp_path / "revisions.csv").write_text(REVISIONS.replace(",policy,", ",Policy,"))
    found = read_evidence(tmp_path)
    assert {use.drift for use in found.tools or ()} == {"mild"}
    assert [one.proposed_by for one in found.revisions or ()] == ["policy", "operator"]
