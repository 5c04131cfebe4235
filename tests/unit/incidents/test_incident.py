"""How an incident stands, and what may follow: who has to look at it before it is settled."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval.log.chain import GENESIS
from robo_eval_incidents.facts import history
from robo_eval_incidents.kinds import (
    Action,
    Attachment,
    Closure,
    Correction,
    Effectiveness,
    Evidence,
    Reclassification,
    Report,
    Review,
    times_of,
)
from robo_eval_incidents.record import Instant, Record, new_id
from robo_eval_incidents.state import (
    RefusedError,
    check,
    incident_of,
    incidents_of,
    misfit,
    newest,
)
from robo_eval_incidents.text import name_of
from robo_eval_incidents.words import Category, Severity, Status, Via

CONFIRMED = Review(verdict="confirmed", note="seen")
DISMISSED = Review(verdict="dismissed", note="a test of the stop")


class Story:
    """One incident, told record by record, without a database."""

    def __init__(self, report, by="Operator A", via=Via.WEB):
        self.records = []
        self._add(report, by, via)

    def _add(self, body, by, via=Via.WEB, after=None):
        record_id = new_id()
        first = self.records[0].record_id if self.records else record_id
        sequence = len(self.records) + 1
        record = Record(
            station="cell-1",
            sequence=sequence,
            previous_sha256=GENESIS,
            record_id=record_id,
            incident_id=first,
            at=Instant(time_ns=sequence, monotonic_ns=sequence, boot_id="b"),
            clock_step_ns=0,
            by=by,
            via=via,
            body=body,
            after=newest(self.records) if after is None else after,
        )
        self.records.append(record)
        return record

    @property
    def now(self):
        return incident_of(self.records)

    def says(self, by, body):
        """Somebody records something, if they may."""
        check(self.now, body, by)
        return self._add(body, by)


def test_a_near_miss_needs_one_person(report):
    story = Story(report())
    assert (story.now.status, story.now.people_needed) == (Status.REPORTED, 1)
    story.says("Operator A", CONFIRMED)
    assert story.now.status == Status.CONFIRMED
    story.says("Operator A", Closure(note="done"))
    assert story.now.status == Status.CLOSED


@pytest.mark.parametrize("severity", ["major", "critical"])
def test_a_major_or_critical_one_needs_a_second_person(report, severity):
    story = Story(report(severity=severity))
    for name in ("Operator A", " operator  a ", "OPERATOR A"):
        with pytest.raises(RefusedError, match="another person has to review it"):
            story.says(name, CONFIRMED)
    story.says("Reviewer B", CONFIRMED)
    assert story.now.reviewers == ("Reviewer B", "Operator A")
    assert story.now.status == Status.CONFIRMED


def test_a_draft_of_a_rule_needs_two_people_who_looked(report):
    story = Story(report(severity="major", rule="stop"), by="robo-eval", via=Via.RULE)
    assert story.now.status == Status.DRAFT
    story.says("Reviewer B", CONFIRMED)
    assert story.now.status == Status.REPORTED
    with pytest.raises(RefusedError, match="a second person has to look"):
        story.says("reviewer b", CONFIRMED)
    story.says("Reviewer C", CONFIRMED)
    assert story.now.status == Status.CONFIRMED


def test_who_reported_it_does_not_stand_behind_its_being_none(report):
    story = Story(report(severity="major"))
    story.says("Reviewer B", DISMISSED)
    assert story.now.status == Status.REPORTED
    assert story.now.counts
    story.says("Reviewer C", DISMISSED)
    assert story.now.status == Status.DISMISSED
    assert not story.now.counts


def test_two_people_have_to_mean_the_same(report):
    story = Story(report(severity="major", rule="stop"), by="robo-eval", via=Via.RULE)
    story.says("Reviewer B", CONFIRMED)
    story.says("Reviewer C", DISMISSED)
    assert not story.now.is_reviewed
    story.says("Reviewer D", DISMISSED)
    assert story.now.status == Status.DISMISSED


def test_a_milder_severity_counts_once_it_is_reviewed(report):
    story = Story(report(severity="critical"))
    milder = Reclassification(severity="minor", category="collision", reason="no injury")
    story.says("Operator A", milder)
    now = story.now
    assert (now.severity, now.counted_severity) == (Severity.MINOR, Severity.CRITICAL)
    assert now.people_needed == 2, "what was critical once stays a matter of two"
    with pytest.raises(RefusedError, match="which was critical"):
        story.says("Operator A", CONFIRMED)
    story.says("Reviewer B", CONFIRMED)
    assert story.now.counted_severity == Severity.MINOR


def test_a_worse_severity_counts_at_once(report):
    story = Story(report())
    story.says("Operator A", CONFIRMED)
    worse = Reclassification(severity="major", category="collision", reason="it broke")
    story.says("Operator A", worse)
    now = story.now
    assert (now.counted_severity, now.category) == (Severity.MAJOR, Category.COLLISION)
    assert now.status == Status.REPORTED, "what was found before was about something else"
    assert now.report.severity == Severity.MAJOR
    with pytest.raises(RefusedError, match="already"):
        story.says("B", worse)


def test_a_correction_asks_for_a_new_review_and_keeps_what_was_said(report):
    story = Story(report())
    story.says("B", CONFIRMED)
    story.says("B", Correction(fields={"robot": "franka"}, reason="the other arm"))
    assert story.now.report.robot == "franka"
    assert story.records[0].body.robot == "ur5e"
    assert story.now.status == Status.REPORTED
    with pytest.raises(RefusedError, match="changes nothing"):
        story.says("B", Correction(fields={"robot": "franka"}, reason="again"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("happened_ns", -1), ("happened_ns", "never"), ("robot", ""), ("side", "mars"),
        ("quantities", [{"name": "force", "value": float("inf")}]), ("answers", {"x": "yes"}),
        ("description", 7), ("robot", None), ("robot", "a\u200bb"),
    ],
)  # fmt: skip
def test_a_value_no_report_takes_corrects_nothing(field, value):
    with pytest.raises(ValueError, match=rf"fields\.{field}: "):
        Correction(fields={field: value}, reason="because")


@pytest.mark.parametrize("field", ["severity", "category", "evidence", "rule", "nothing"])
def test_some_fields_are_not_for_correcting(field):
    with pytest.raises(ValueError, match=f"no field '{field}' can be corrected"):
        Correction(fields={field: "x"}, reason="because")


def test_evidence_adds_up(report):
    first, second = Evidence(uri="traces/a.mcap"), Evidence(uri="incidents/b.mcap")
    story = Story(report(evidence=(first,)))
    story.says("B", CONFIRMED)
    story.says("B", Attachment(evidence=(second, first)))
    assert story.now.evidence == [first, second]
    assert story.now.status == Status.CONFIRMED, "more evidence is no other finding"


def test_a_major_one_is_closed_when_its_action_was_found_effective(report):
    story = Story(report(severity="major"))
    assert story.now.open_points[0] == "it needs a review by somebody else than Operator A"
    story.says("B", CONFIRMED)
    with pytest.raises(RefusedError, match="needs a corrective action"):
        story.says("B", Closure(note="done"))
    action = story.says("B", Action(what="move the fixture", owner="C")).record_id
    assert story.now.status == Status.ACTING
    with pytest.raises(RefusedError, match="was not checked"):
        story.says("B", Closure(note="done"))
    with pytest.raises(RefusedError, match="c owns this action"):
        story.says("c", Effectiveness(action_id=action, is_effective=True, how="looked"))
    story.says("B", Effectiveness(action_id=action, is_effective=False, how="grazed again"))
    with pytest.raises(RefusedError, match="found not to be effective"):
        story.says("B", Closure(note="done"))
    story.says("B", Effectiveness(action_id=action, is_effective=True, how="50 runs"))
    story.says("B", Closure(note="done"))
    assert story.now.status == Status.CLOSED
    with pytest.raises(RefusedError, match="is closed already"):
        story.says("B", Closure(note="again"))


def test_a_closed_one_is_open_again_when_it_did_not_help(report):
    story = Story(report())
    story.says("B", CONFIRMED)
    action = story.says("B", Action(what="move the fixture", owner="C")).record_id
    story.says("B", Effectiveness(action_id=action, is_effective=True, how="looked"))
    story.says("B", Closure(note="done"))
    story.says("B", Effectiveness(action_id=action, is_effective=False, how="grazed again"))
    assert story.now.status == Status.ACTING


def test_what_is_refused(report):
    story = Story(report())
    with pytest.raises(RefusedError, match="has no action"):
        story.says("B", Effectiveness(action_id=new_id(), is_effective=True, how="looked"))
    own = story.now.incident_id
    with pytest.raises(RefusedError, match="duplicate of itself"):
        story.says("B", Review(verdict="dismissed", note="same", duplicate_of=own))
    story.says("B", DISMISSED)
    with pytest.raises(RefusedError, match="asks for no action"):
        story.says("B", Action(what="move the fixture", owner="C"))
    with pytest.raises(RefusedError, match="was dismissed; nothing is left to do"):
        story.says("B", Closure(note="done"))
    story.says("B", CONFIRMED)
    story.says("B", Closure(note="done"))
    with pytest.raises(RefusedError, match="is closed"):
        story.says("C", CONFIRMED)


# One person alone ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields", [{"side": "sim"}, {"happened_ns": 1}, {"robot": "other"}, {"episode_id": None}]
)
def test_nobody_alone_moves_a_critical_one_to_where_it_does_not_count(report, fields):
    story = Story(report(severity="critical", episode_id="e1"))
    before = story.now.report
    story.says("Operator A", Correction(fields=fields, reason="typo"))
    assert story.now.report != before
    assert story.now.counted == before
    story.says("Reviewer B", CONFIRMED)
    assert story.now.counted == story.now.report


def test_who_mends_a_word_does_not_stand_behind_the_severity(report):
    story = Story(report(severity="critical"))
    milder = Reclassification(severity="near_miss", category="collision", reason="no injury")
    story.says("X", milder)
    story.says("Typo", Correction(fields={"task": "pick"}, reason="typo"))
    for name in ("X", "Typo"):
        with pytest.raises(RefusedError, match="another person has to review it"):
            story.says(name, CONFIRMED)
    assert story.now.counted_severity == Severity.CRITICAL
    story.says("Y", CONFIRMED)
    assert story.now.reviewers == ("Y", "X")


def test_an_invisible_letter_makes_no_second_person():
    with pytest.raises(ValueError, match="cannot be seen"):
        name_of("X. Y\u200b", "by")


def test_a_duplicate_counts_no_less_than_the_other_one(log, report, say):
    a, b = (say(log, report()).record_id for _ in "ab")
    sim = say(log, report(side="sim")).record_id
    worse = say(log, report(severity="minor")).record_id
    same = lambda other: Review(verdict="dismissed", note="same", duplicate_of=other)  # noqa: E731
    with pytest.raises(RefusedError, match="on side sim"):
        say(log, same(sim), incident_id=a)
    with pytest.raises(RefusedError, match="reclassify"):
        say(log, same(a), incident_id=worse)
    say(log, same(b), incident_id=a)
    with pytest.raises(RefusedError, match="does not count itself"):
        say(log, same(a), incident_id=b)


# Stations that were apart ----------------------------------------------------------------------


def _apart(report, *here, there, severity="near_miss"):
    """A story told at two stations that knew only the report of each other's records."""
    story = Story(report(severity=severity))
    first = story.records[0]
    for by, body in here:
        story.says(by, body)
    other = Story(report(severity=severity))
    other.records = [first]
    for by, body in there:
        other.says(by, body)
    apart = [
        dataclasses.replace(record, station="cell-2") for record in other.records if record != first
    ]
    return incident_of([*story.records, *apart])


def _classified(severity):
    return Reclassification(severity=severity, category="collision", reason="looked again")


def test_a_review_of_the_worse_says_nothing_of_the_milder(report):
    found = _apart(
        report,
        ("Z", CONFIRMED),
        there=[("Mallory", _classified("near_miss"))],
        severity="critical",
    )
    assert found.counted_severity == Severity.CRITICAL
    assert not found.is_reviewed


@pytest.mark.parametrize("late", [False, True])
def test_a_closure_of_a_near_miss_closes_nothing_critical(report, late):
    here = [("X", CONFIRMED), ("X", Closure(note="done"))]
    there = [("Doctor", _classified("critical"))]
    found = _apart(report, *(there if late else here), there=here if late else there)
    assert found.highest_severity == Severity.CRITICAL
    assert found.status == Status.REPORTED
    assert not found.is_reviewed


def test_what_was_known_comes_first_whatever_the_clocks_say(report):
    """Two tablets at one database, one of them a minute slow."""
    story = Story(report())
    story.says("X", CONFIRMED)
    story.says("X", Closure(note="done"))
    late = story.says("Doctor", _classified("critical"))
    slow = dataclasses.replace(
        late, station="cell-2", at=Instant(time_ns=0, monotonic_ns=0, boot_id="c")
    )
    found = incident_of([*story.records[:-1], slow])
    assert found.records[-1] == slow
    assert found.status == Status.REPORTED


def test_a_check_that_arrives_before_its_action_counts(report):
    story = Story(report())
    action = story.says("B", Action(what="move it", owner="C"))
    check_of = story.says(
        "D", Effectiveness(action_id=action.record_id, is_effective=True, how="looked")
    )
    early = dataclasses.replace(
        check_of, station="cell-2", at=Instant(time_ns=0, monotonic_ns=0, boot_id="c")
    )
    found = incident_of([early, *story.records[:-1]])
    assert found.measures[action.record_id].is_effective


def test_what_a_rule_said_at_two_stations_was_said_once(report):
    story = Story(report(rule="stop"), by="robo-eval", via=Via.RULE)
    said = story._add(
        Correction(fields={"task": "pick"}, reason="more causes"), "robo-eval", Via.RULE
    )
    story.says("B", Correction(fields={"task": "place"}, reason="it was placing"))
    again = dataclasses.replace(
        said, station="cell-2", at=Instant(time_ns=10**6, monotonic_ns=0, boot_id="c")
    )
    found = incident_of([*story.records, again])
    assert found.report.task == "place"
    assert found.status == Status.REPORTED


def test_records_that_name_each_other_are_shown_all_the_same(report):
    story = Story(report())
    one = story.says("B", CONFIRMED)
    other = story.says("C", Attachment(evidence=(Evidence(uri="a.mcap"),)))
    circle = dataclasses.replace(one, after=(other.record_id,), station="cell-2")
    found = incident_of([story.records[0], circle, other])
    assert len(found.records) == 3


# Whatever people do ----------------------------------------------------------------------------

_NAMES = ("A", "B", "C")
_SEVERITIES = [severity.value for severity in Severity]
_STEPS = st.one_of(
    st.just(CONFIRMED),
    st.just(DISMISSED),
    st.builds(
        Reclassification,
        severity=st.sampled_from(_SEVERITIES),
        category=st.just("collision"),
        reason=st.just("looked again"),
    ),
    st.builds(Action, what=st.just("move it"), owner=st.sampled_from(_NAMES)),
    st.builds(
        Correction,
        fields=st.fixed_dictionaries({"robot": st.sampled_from(["ur5e", "franka"])}),
        reason=st.just("the other arm"),
    ),
    st.just(Closure(note="done")),
)


@settings(max_examples=60)
@given(
    severity=st.sampled_from(_SEVERITIES),
    steps=st.lists(st.tuples(st.sampled_from(_NAMES), _STEPS), max_size=8),
)
def test_nobody_alone_settles_what_was_ever_major(severity, steps):
    story = Story(
        Report(
            happened_ns=1, robot="ur5e", side="real", severity=severity, category="damage",
            description="broke",
        ),
        by="A",
    )  # fmt: skip
    for name, body in steps:
        try:
            story.says(name, body)
        except RefusedError:
            continue
    now = story.now
    ranks = [severity, *(r.body.severity for r in story.records if r.kind == "reclassification")]
    assert now.highest_severity.rank == max(Severity(one).rank for one in ranks)
    assert now.counted_severity.rank >= now.severity.rank
    if now.highest_severity.needs_two_people:
        settled = now.status in {Status.CONFIRMED, Status.ACTING, Status.CLOSED, Status.DISMISSED}
        assert not settled or len({name.casefold() for name in now.reviewers}) >= 2
        if now.counted_severity is not now.highest_severity:
            assert len({r.by for r in story.records}) >= 2
        if now.status == Status.DISMISSED:
            assert now.changed_by not in now.reviewers or len(now.reviewers) > 1


@settings(max_examples=40)
@given(st.permutations(range(5)))
def test_the_order_of_arrival_does_not_matter(order):
    story = Story(
        Report(
            happened_ns=1, robot="ur5e", side="real", severity="minor", category="damage",
            description="broke",
        )
    )  # fmt: skip
    story.says("B", CONFIRMED)
    story.says("B", Reclassification(severity="major", category="damage", reason="it is bent"))
    story.says("C", CONFIRMED)
    story.says("B", Action(what="replace it", owner="C"))
    shuffled = [story.records[place] for place in order]
    (found,) = incidents_of(shuffled)
    assert found == story.now
    without = [record for record in shuffled if record.kind != "report"]
    assert incident_of(without) is None


def test_every_status_is_reached():
    """No status is a word only."""
    seen = {
        incident_status(kind, answer)
        for kind, answer in itertools.product(["rule", "person"], range(5))
    }
    assert seen == set(Status)


def incident_status(kind, steps):
    via = Via.RULE if kind == "rule" else Via.WEB
    story = Story(
        Report(
            happened_ns=1, robot="r", side="real", severity="minor", category="damage",
            description="d", rule="stop" if kind == "rule" else None,
        ),
        by="A",
        via=via,
    )  # fmt: skip
    match steps:
        case 1:
            story.says("B", CONFIRMED)
        case 2:
            story.says("B", DISMISSED)
        case 3:
            story.says("B", CONFIRMED)
            story.says("B", Action(what="move it", owner="C"))
        case 4:
            story.says("B", CONFIRMED)
            story.says("B", Closure(note="done"))
        case _:
            pass
    return story.now.status


def test_of_what_became_bad_the_check_of_its_owner_is_none(report):
    story = Story(report(severity="minor"))
    action = story.says("Operator A", Action(what="a guard", owner="Owner C"))
    helped = Effectiveness(action_id=action.record_id, is_effective=True, how="20 cycles")
    story.says("owner c", helped)
    assert story.now.status == Status.REPORTED
    worse = Reclassification(severity="critical", category="collision", reason="a fracture")
    story.says("Reviewer B", worse)
    story.says("Reviewer D", CONFIRMED)
    assert story.now.status == Status.ACTING
    (step,) = story.now.steps()
    assert "was checked by its owner; somebody else than Owner C has to check it" in step.text
    with pytest.raises(RefusedError, match="was checked by its owner"):
        story.says("Reviewer B", Closure(note="done"))
    story.says("Reviewer B", helped)
    assert story.now.status == Status.CONFIRMED


@pytest.mark.parametrize(
    ("severity", "fields", "least"),
    [
        ("near_miss", {"answers": {"fatality": "yes"}}, "critical"),
        ("major", {"answers": {"hospital": "yes"}}, "critical"),
        ("minor", {"answers": {"medical_treatment": "yes"}}, "major"),
        ("near_miss", {"injuries": [{"treatment": "first_aid"}]}, "minor"),
        ("minor", {"injuries": [{"days_away": 3}]}, "major"),
        ("major", {"injuries": [{"treatment": "death"}]}, "critical"),
        ("near_miss", {"answers": {"fatality": "no", "work_related": "yes"}}, None),
        ("critical", {"answers": {"fatality": "yes"}}, None),
        ("minor", {"injuries": [{"treatment": "first_aid", "days_away": 0}]}, None),
        ("near_miss", {}, None),
    ],
)
def test_injuries_that_are_worse_than_their_incident_are_named(report, severity, fields, least):
    text = misfit(report(severity=severity, **fields))
    if least is None:
        assert text is None
    else:
        assert f"is {least} at least, and it is {severity.replace('_', ' ')}" in text


def test_corrections_of_two_stations_that_do_not_fit_together_are_shown(report):
    story = Story(report(**times_of("2025-11")))
    known = newest(story.records)
    early = Correction(fields={"until_ns": times_of("2025-11-10")["happened_ns"]}, reason="early")
    late = Correction(fields={"happened_ns": times_of("2025-11-20")["happened_ns"]}, reason="late")
    story._add(early, "A", after=known)
    other = story._add(late, "B", after=known)
    other.station = "cell-2"
    now = story.now
    assert now.report.happened_ns == times_of("2025-11")["happened_ns"]
    *_, last = history(now)
    assert last.facts[0][:2] == ("Not taken", "it does not fit what was corrected before")
