"""What is read of incidents, faults, repairs and ratings, and what is refused."""

import pytest

from robo_eval.core.errors import InputError
from robo_eval.log.evidence_read import read_evidence

INCIDENTS = "incident_id,severity,time,side,episode_id,policy,description\n"


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


def test_a_trial_without_files_has_no_evidence(tmp_path):
    found = read_evidence(tmp_path)
    assert (found.incidents, found.faults, found.repairs, found.ratings) == (None,) * 4
    assert found.sources == {}


def test_every_kind_is_read(tmp_path):
    write(
        tmp_path,
        "incidents.csv",
        INCIDENTS
        + "i1,near_miss,2026-03-01T09:30:00+00:00,real,,ours,too near\n"
        + "i2,minor,2026-03-01T11:30:00.5+02:00,twin,e1,,\n\n",
    )
    write(tmp_path, "faults.csv", "fault,recovered,injected\ngrasp_slip,true,no\nocclusion,0,yes\n")
    write(tmp_path, "repairs.csv", "hours,description\n1.5,gripper\n")
    write(
        tmp_path, "ratings.csv", "episode_id,rater,success,blind\ne1,second,yes,true\ne2,second,,\n"
    )
    found = read_evidence(tmp_path)
    first, second = found.incidents
    assert (first.severity, first.policy, first.line) == ("near_miss", "ours", 2)
    assert first.time_ns == 1_772_357_400 * 10**9
    assert second.time_ns == first.time_ns + 5 * 10**8
    assert (second.side, second.episode_id) == ("twin", "e1")
    assert [(fault.fault, fault.recovered, fault.injected) for fault in found.faults] == [
        ("grasp_slip", True, False),
        ("occlusion", False, True),
    ]
    assert found.repairs[0].hours == 1.5
    assert [(rating.success, rating.blind) for rating in found.ratings] == [
        (True, True),
        (None, False),
    ]
    assert set(found.sources) == {"incidents.csv", "faults.csv", "repairs.csv", "ratings.csv"}
    assert all(len(digest) == 64 for digest in found.sources.values())


def test_an_empty_record_says_that_nothing_happened(tmp_path):
    write(tmp_path, "incidents.csv", INCIDENTS)
    assert read_evidence(tmp_path).incidents == ()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("incidents", "incident_id,severty\n", "did you mean 'severity'"),
        ("incidents", "incident_id\n", "column 'severity' is missing"),
        ("incidents", "incident_id,severity,severity\n", "appears twice"),
        ("incidents", "incident_id,severity\ni1,severe\n", "line 2, column 'severity'"),
        ("incidents", "incident_id,severity\ni1,\n", "line 2, column 'severity'"),
        ("incidents", "incident_id,severity\n,minor\n", "line 2, column 'incident_id'"),
        (
            "incidents",
            "incident_id,severity\ni1,minor\ni1,major\n",
            "line 3, .*'i1' is in line 2",
        ),
        ("incidents", "incident_id,severity\ni1,minor,more\n", "line 2: has 3 cells"),
        ("incidents", INCIDENTS + "i1,minor,2026-03-01 09:30,,,,\n", "time with its zone"),
        ("incidents", INCIDENTS + "i1,minor,yesterday,,,,\n", "line 2, column 'time'"),
        ("incidents", INCIDENTS + "i1,minor,,sim,,,\n", "line 2, column 'side'"),
        ("faults", "fault,recovered\ngrasp_slip,perhaps\n", "write true or false"),
        ("faults", "fault,recovered\ngrasp_slip,\n", "column 'recovered'"),
        ("faults", "fault,recovered,duration_s\ngrasp_slip,true,-1\n", "column 'duration_s'"),
        ("faults", "fault,recovered,duration_s\ngrasp_slip,true,nan\n", "column 'duration_s'"),
        ("repairs", "hours\nlong\n", "line 2, column 'hours': 'long' is not a number"),
        ("repairs", "hours,description\n,new gripper\n", "column 'hours'"),
        (
            "ratings",
            "episode_id,rater,success\ne1,a,true\ne1,a,false\n",
            "line 3, column 'rater': 'a' is in line 2 .* same episode_id",
        ),
        ("ratings", "episode_id,rater,success\ne1,,true\n", "column 'rater'"),
        ("ratings", 'episode_id,rater,success\ne1,"a,true\n', "line 2: is not CSV"),
        ("repairs", 'hours,description\n1,"a\nb"\nlong,"c\nd"\n', "line 4, column 'hours'"),
        ("repairs", "hours,description\n1,a,b\n", "line 2: has 3 cells, the header has 2"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path, name, text, message):
    write(tmp_path, f"{name}.csv", text)
    with pytest.raises(InputError, match=message) as refused:
        read_evidence(tmp_path)
    assert str(tmp_path / f"{name}.csv") in str(refused.value)
    assert "\n" not in str(refused.value)


def test_blank_cells_that_a_spreadsheet_adds_harm_nothing(tmp_path):
    write(tmp_path, "repairs.csv", "hours,description,,\n1,a,,\n2,b,,,,\n3,\n")
    assert [repair.hours for repair in read_evidence(tmp_path).repairs] == [1.0, 2.0, 3.0]


def test_a_file_that_is_named_must_be_there(tmp_path):
    with pytest.raises(InputError, match=r"other\.csv: no such file of incidents"):
        read_evidence(tmp_path, {"incidents": tmp_path / "other.csv"})


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "faults.csv").write_bytes(b"fault,recovered\n\xff\xfe,true\n")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_evidence(tmp_path)
