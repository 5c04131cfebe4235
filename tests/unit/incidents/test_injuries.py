"""People who were hurt: several in one incident, each with region, treatment and days away."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import InputError
from robo_eval_incidents.facts import history, of_incident
from robo_eval_incidents.kinds import Correction, Injury, Report, form_of, plain, section_of
from robo_eval_incidents.tables import export
from robo_eval_incidents.tables_read import import_reports
from robo_eval_incidents.text import section_text, sections_of
from robo_eval_incidents.words import BodyRegion, Contact, Treatment, Via

NAMES = tuple(Injury.model_fields)
TWO = (
    "who=operator, region=hand fingers, nature=a cut\\, deep, treatment=medical, days away=2,"
    " contact=quasi_static, force_n=181.5; who=visitor, region=face, treatment=first_aid"
)


def injuries(text: str) -> Any:
    return form_of(Report.model_fields["injuries"]).read(text, 0)


def test_each_person_has_region_treatment_days_and_contact(report):
    made = report(injuries=injuries(TWO))
    first, second = made.injuries
    assert (first.who, first.region, first.treatment) == (
        "operator", BodyRegion.HAND_FINGERS, Treatment.MEDICAL,
    )  # fmt: skip
    assert (first.nature, first.days_away, first.force_n) == ("a cut, deep", 2, 181.5)
    assert (first.contact, second.contact) == (Contact.QUASI_STATIC, Contact.UNKNOWN)
    assert second.days_away is None, "nobody said, which is not none"


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(NAMES),
            st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1),
        ).filter(bool),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_written_is_read_again(sections):
    cell = "; ".join(section_text(one) for one in sections)
    assert sections_of(cell, NAMES) == sections


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("operator", "'operator' says none of who, region"),
        ("hand=left", "'hand=left' says none of"),
        (
            "who=a, region=hands",
            r"injuries.0.region: unknown region 'hands'; did you mean 'hand_fingers'",
        ),
        ("who=a; days_away=-1", r"injuries.1.days_away"),
        ("days_away=soon", "injuries.0.days_away: must be a valid integer"),
        ("force_n=NaN", "injuries.0.force_n"),
        ("; ".join(["who=a"] * 21), "injuries: are 21; 20 are the most"),
    ],
)
def test_what_cannot_be_is_named(report, text, problem):
    with pytest.raises((InputError, ValueError), match=problem):
        section_of(Report, {**plain(report()), "injuries": injuries(text)})


def test_a_record_without_injuries_is_as_it_was(report):
    assert "injuries" not in plain(report())
    assert "place" not in plain(report())


def test_a_table_takes_them_out_and_in(log, say, report, tmp_path):
    made = say(log, report(injuries=injuries(TWO), place="cell 3"))
    for name in ("out.csv", "out.json"):
        export(log, tmp_path / name)
        assert import_reports(log, tmp_path / name, by="Operator B").known == 1
    text = (tmp_path / "out.csv").read_text("utf-8-sig")
    assert "who=visitor, region=face, treatment=first_aid" in text
    copied = tmp_path / "copy.csv"
    copied.write_text(text.replace(f"{made.record_id},,", ",copied,"))
    (added,) = import_reports(log, copied, by="Operator B", source="x").added
    again = log.incident(added).report
    assert (again.injuries, again.place) == (made.body.injuries, "cell 3")


def test_they_are_corrected_and_the_history_says_so(log, say, report):
    made = say(log, report(injuries=injuries("who=operator, region=face")))
    fields = {"injuries": injuries(TWO)}
    say(log, Correction(fields=fields, reason="the doctor"), incident_id=made.record_id)
    incident = log.incident(made.name)
    (fact,) = [one for one in of_incident(incident) if one.label == "Injured"]
    assert fact.text.startswith("operator: hand and fingers, injury a cut, deep, treatment medical")
    told = [one.text for step in history(incident) for one in step.facts]
    assert any(one.startswith("operator: face → operator: hand and fingers") for one in told)


def test_what_an_injury_was_can_be_taken_out_and_the_rest_stays(log, say, report):
    made = say(log, report(injuries=injuries(TWO)))
    for by in ("Operator A", "Operator B"):
        _, is_out = log.redact(made.name, "injuries.0.nature", "x", by=by, via=Via.CLI)
    assert is_out
    first = log.incident(made.name).report.injuries[0]
    assert "deep" not in first.nature
    assert first.region is BodyRegion.HAND_FINGERS


def test_the_form_has_a_row_for_each_person(web, browse):
    operator = browse("operator")
    hurt = {
        "place": "cell 3", "injury_0_who": "operator", "injury_0_region": "hand_fingers",
        "injury_0_days_away": "2", "injury_1_who": "visitor", "injury_1_region": "",
    }  # fmt: skip
    incident_id = operator.report(**hurt)
    report = web.log.incident(incident_id).report
    told = [(one.who, one.days_away) for one in report.injuries]
    assert told == [("operator", 2), ("visitor", None)]
    page = operator.get(f"/incidents/{incident_id}").text
    assert 'name="injury_2_who"' in page, "there is room for another one"
    assert "visitor: region not known" in page
    change = {"reason": "x", "injury_1_region": "face"}
    assert operator.post(f"/incidents/{incident_id}/correct", change).status_code == 303
    report = web.log.incident(incident_id).report
    assert [one.region for one in report.injuries] == ["hand_fingers", "face"]
    wrong = operator.REPORT | hurt | {"injury_0_days_away": "soon"}
    refused = operator.post("/incidents", wrong)
    assert refused.status_code == 422
    assert 'value="soon"' in refused.text
