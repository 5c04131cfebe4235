"""What records take and refuse: texts, paths and bodies, whatever somebody sends."""

from __future__ import annotations

import math
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import person_key
from robo_eval.log.chain import GENESIS
from robo_eval_incidents import kinds
from robo_eval_incidents.kinds import KINDS, Report, plain, section_of
from robo_eval_incidents.record import Instant, Record, content_digest, record_of, salted
from robo_eval_incidents.text import (
    LATEST_NS,
    Line,
    Name,
    Prose,
    Uri,
    name_of,
    same_person,
)
from robo_eval_incidents.words import Answer, Category, Engagement, Question, Severity, Via

STEERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"
ANYTHING = st.text(st.characters() | st.sampled_from(STEERING + "\0\x1b\r\n\t./\\:"))
ADAPTERS = {name: TypeAdapter(kind) for name, kind in
            {"Line": Line, "Name": Name, "Prose": Prose, "Uri": Uri}.items()}  # fmt: skip


# Texts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ADAPTERS)
@given(text=ANYTHING)
def test_what_is_kept_can_be_read_and_hides_nothing(kind, text):
    try:
        kept = ADAPTERS[kind].validate_python(text)
    except ValidationError:
        return
    breaks = "\n\t" if kind == "Prose" else ""
    for letter in kept:
        assert letter not in STEERING
        assert letter in breaks or unicodedata.category(letter) not in {"Cc", "Cs"}
    assert kept.encode().decode() == kept
    assert ADAPTERS[kind].validate_python(kept) == kept
    assert kept.strip() == kept
    assert kept or kind == "Line"


@given(ANYTHING)
def test_no_path_of_evidence_leads_out_of_its_folder(text):
    try:
        uri = ADAPTERS["Uri"].validate_python(text)
    except ValidationError:
        return
    folder = Path("/evidence")
    assert Path(folder, uri).resolve().is_relative_to(folder)
    assert "://" not in uri


@pytest.mark.parametrize(
    "uri",
    [
        "/etc/passwd", "../x", "a/../../x", "..", "a\\b", "C:/x", "file:///x", "https://x/y", "",
        "a\0b", "a\nb/../..", "\u202egnp.exe", "x" * 501, "..\\x", " ",
    ],
)  # fmt: skip
def test_paths_that_lead_elsewhere_are_refused(uri):
    with pytest.raises(ValidationError):
        ADAPTERS["Uri"].validate_python(uri)


@pytest.mark.parametrize("uri", ["traces/e1.mcap", "incidents/a b (1).jpg", "..a/b..", "ö.png"])
def test_paths_below_the_folder_are_kept(uri):
    assert ADAPTERS["Uri"].validate_python(uri) == uri


@given(ANYTHING)
def test_markup_and_sql_are_plain_text(text):
    hostile = f"<script>{text}</script>'; DROP TABLE records; --"
    try:
        kept = ADAPTERS["Prose"].validate_python(hostile)
    except ValidationError:
        return
    assert kept.startswith("<script>")
    assert kept.endswith("DROP TABLE records; --")


@given(st.text(st.characters(categories=("L", "Zs")), min_size=1))
def test_a_person_is_the_same_however_the_name_is_typed(name):
    assert same_person(name, f"  {name} ")
    assert same_person(name, unicodedata.normalize("NFC", name))
    assert person_key(person_key(name)) == person_key(name)


def test_two_people_are_two():
    assert not same_person("R. Example", "S. Example")
    assert same_person("JOS\u00c9", "jose\u0301")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 121, "a\u202eb", 7, None, "\udcff"])
def test_what_is_no_name_is_refused_in_one_line(name):
    with pytest.raises(InputError, match=r"^by: ") as caught:
        name_of(name, "by")
    assert len(str(caught.value).splitlines()) == 1


# Bodies ----------------------------------------------------------------------------------------

LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs"))
NAMES = st.text(LETTERS, max_size=40).map(lambda text: " ".join(text.split())).filter(bool)
PROSE = st.text(LETTERS | st.sampled_from("\n\t"), max_size=80).map(str.strip).filter(bool)
LINES = NAMES | st.just("")
TIMES = st.integers(0, LATEST_NS)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
IDS = st.uuids().map(str)
SHAS = st.binary(min_size=32, max_size=32).map(bytes.hex)
WINDOWS = st.tuples(TIMES, TIMES).map(sorted)
EVIDENCE = st.one_of(
    st.builds(lambda name, sha256: {"uri": f"traces/{sha256}", "sha256": sha256}, NAMES, SHAS),
    WINDOWS.map(lambda ends: {"uri": "a.mcap", "start_ns": ends[0], "end_ns": ends[1]}),
)
QUANTITIES = st.fixed_dictionaries({"name": NAMES, "value": NUMBERS}, optional={"limit": NUMBERS})
REPORTS = st.fixed_dictionaries(
    {
        "happened_ns": TIMES,
        "robot": NAMES,
        "side": st.sampled_from(Side),
        "severity": st.sampled_from(Severity),
        "category": st.sampled_from(Category),
        "description": PROSE,
    },
    optional={
        "engagement": st.sampled_from(Engagement),
        "episode_id": LINES,
        "policy": LINES,
        "task": LINES,
        "quantities": st.lists(QUANTITIES, max_size=3),
        "evidence": st.lists(EVIDENCE, max_size=3),
        "answers": st.dictionaries(st.sampled_from(list(Question)), st.sampled_from(Answer)),
        "rule": LINES,
        "source_id": LINES,
    },
)
VALUES: dict[str, st.SearchStrategy[dict[str, object]]] = {
    "opened": st.fixed_dictionaries({"software": LINES}, optional={"note": LINES}),
    "report": REPORTS,
    "correction": st.fixed_dictionaries(
        {"fields": st.fixed_dictionaries({"robot": NAMES}, optional={"policy": st.none() | LINES}),
         "reason": PROSE}
    ),
    "reclassification": st.fixed_dictionaries(
        {"severity": st.sampled_from(Severity), "category": st.sampled_from(Category),
         "reason": PROSE}
    ),
    "attachment": st.fixed_dictionaries({"evidence": st.lists(EVIDENCE, min_size=1, max_size=3)}),
    "review": st.one_of(
        st.fixed_dictionaries({"verdict": st.just("confirmed"), "note": PROSE}),
        st.fixed_dictionaries(
            {"verdict": st.just("dismissed"), "note": PROSE}, optional={"duplicate_of": IDS}
        ),
    ),
    "action": st.fixed_dictionaries({"what": PROSE, "owner": NAMES}, optional={"due": st.dates()}),
    "effectiveness": st.fixed_dictionaries(
        {"action_id": IDS, "is_effective": st.booleans(), "how": PROSE}
    ),
    "closure": st.fixed_dictionaries({"note": PROSE}),
    "nil": st.tuples(TIMES, TIMES).filter(lambda ends: ends[0] != ends[1]).map(sorted).map(
        lambda ends: {"start_ns": ends[0], "end_ns": ends[1]}
    ),
    "exposure": st.fixed_dictionaries(
        {"robot": NAMES, "side": st.sampled_from(Side), "mode": st.sampled_from(Engagement),
         "start_ns": st.integers(0, LATEST_NS - 31_622_400 * 10**9),
         "seconds": st.floats(0.0, 31_622_400.0)},
        optional={"task": LINES, "trial": SHAS},
    ),
    "withdrawal": st.fixed_dictionaries({"withdrawn_id": IDS, "reason": PROSE}),
    "redaction": st.fixed_dictionaries(
        {"redacted_id": IDS, "subject_id": IDS, "field": NAMES, "reason": PROSE}
    ),
    "view": st.just({}),
    "notice": st.fixed_dictionaries(
        {"what": st.sampled_from(["critical", "overdue"]), "to": LINES, "text": LINES}
    ),
    "refusal": st.fixed_dictionaries(
        {"attempts": st.integers(1, 10**6), "since_ns": TIMES}, optional={"user": NAMES}
    ),
    "account": st.fixed_dictionaries(
        {"user": NAMES, "roles": st.lists(st.sampled_from(["operator", "auditor"]), unique=True)}
    ),
}  # fmt: skip


def test_every_kind_of_record_is_drawn():
    assert set(VALUES) == set(KINDS)


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_a_record_is_read_back_as_it_was_written(kind, data):
    body = KINDS[kind].model_validate(data.draw(VALUES[kind]))
    record_id = data.draw(IDS)
    incident_id = data.draw(IDS) if body.about_incident else None
    record = Record(
        station="cell-1",
        sequence=data.draw(st.integers(1, 2**53)),
        previous_sha256=data.draw(SHAS),
        record_id=record_id,
        incident_id=record_id if kind == "report" else incident_id,
        at=Instant(time_ns=data.draw(TIMES), monotonic_ns=data.draw(TIMES), boot_id="b"),
        clock_step_ns=data.draw(st.integers(-(2**62), 2**62)),
        by=data.draw(NAMES),
        via=data.draw(st.sampled_from(Via)),
        body=body,
        salts=salted(kind, body),
    )
    content = record.content()
    again = record_of(content, record.forms()[1], where="here")
    assert plain(again.body) == plain(body)
    assert again.content() == content
    assert content_digest(again.content()) == content_digest(content)


REPORT = {
    "happened_ns": 0,
    "robot": "arm_1",
    "side": "real",
    "severity": "minor",
    "category": "other",
    "description": "a scratch",
}
REFUSED = {
    "severity": ({"severity": "minr"}, r"^severity: unknown severity 'minr'.*'minor'"),
    "category": ({"category": "colision"}, "^category: .*did you mean 'collision'"),
    "side": ({"side": "moon"}, "^side: unknown side 'moon'"),
    "unknown key": ({"sevrity": "minor"}, "^sevrity: .*did you mean 'severity'"),
    "before 1970": ({"happened_ns": -1}, "^happened_ns: "),
    "after 2262": ({"happened_ns": 2**63}, "^happened_ns: "),
    "a float time": ({"happened_ns": 1.5}, "^happened_ns: must be a whole number"),
    "a text time": ({"happened_ns": "0"}, "^happened_ns: must be a whole number"),
    "a true time": ({"happened_ns": True}, "^happened_ns: must be a whole number"),
    "empty": ({"description": " \n"}, "^description: is empty"),
    "too long": ({"description": "x" * 8_001}, "^description: has 8001 characters; 8000"),
    "escape": ({"robot": "\x1b[31m"}, r"^robot: holds the character U\+001B"),
    "half a letter": ({"robot": "\ud800"}, "^robot: "),
    "no number": (
        {"quantities": [{"name": "f", "value": math.nan}]},
        "^quantities.0.value: must be a finite number",
    ),
    "many": ({"quantities": [{"name": "f", "value": 1.0}] * 51}, "^quantities: "),
    "window": (
        {"evidence": [{"uri": "a", "start_ns": 2, "end_ns": 1}]},
        "^evidence.0: start_ns is after end_ns",
    ),
    "half a window": (
        {"evidence": [{"uri": "a", "start_ns": 2}]},
        "^evidence.0: start_ns and end_ns are both given",
    ),
    "digest": ({"evidence": [{"uri": "a", "sha256": "x"}]}, "^evidence.0.sha256: "),
    "question": ({"answers": {"x": "no"}}, "^answers: no question 'x'; there are work_related"),
    "answer": ({"answers": {"hospital": "maybe"}}, "^answers.hospital: unknown word 'maybe'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_report_names_field_and_remedy_in_one_line(name):
    change, message = REFUSED[name]
    with pytest.raises(InputError, match=message) as caught:
        section_of(Report, REPORT | change)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("correction", {"fields": {}, "reason": "x"}, "fields: "),
        ("correction", {"fields": {"severity": "minor"}, "reason": "x"}, "reclassify it instead"),
        ("correction", {"fields": {"rule": "x"}, "reason": "x"}, "no field 'rule' can be"),
        ("attachment", {"evidence": []}, "evidence: must name at least one"),
        ("review", {"verdict": "maybe", "note": "x"}, "verdict: unknown verdict 'maybe'"),
        ("review", {"verdict": "confirmed", "note": "x", "duplicate_of": str(0)}, "duplicate_of"),
        ("action", {"what": "x", "owner": "", "due": None}, "owner: is empty"),
        ("action", {"what": "x", "owner": "a", "due": "2026-02-30"}, "due: "),
        ("effectiveness", {"action_id": "x", "is_effective": True, "how": "x"}, "action_id: "),
        ("nil", {"start_ns": 2, "end_ns": 2}, "start_ns is not before end_ns"),
        ("exposure", {"robot": "a", "side": "real", "mode": "autonomous", "start_ns": 0,
                      "seconds": -1.0}, "seconds: "),
        ("account", {"user": "a", "roles": ["root"]}, "roles.0: "),
    ],
)  # fmt: skip
def test_a_refused_body_says_why(kind, values, message):
    with pytest.raises(InputError, match=message) as caught:
        section_of(KINDS[kind], values)
    assert len(str(caught.value).splitlines()) == 1


@given(st.dictionaries(st.sampled_from([*REPORT, "evidence", "answers", "x"]), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANYTHING,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANYTHING, inner, max_size=3),
    max_leaves=5,
)))  # fmt: skip
def test_whatever_is_sent_is_a_report_or_one_clear_line(values):
    try:
        body = section_of(Report, REPORT | values)
    except InputError as err:
        assert len(str(err).splitlines()) == 1  # noqa: PT017 - either is fine
    else:
        assert Report.model_validate(plain(body)) == body


@pytest.mark.parametrize("content", ["", "x", "[]", "{}", "7", '{"kind":"report"}', "[" * 9999])
def test_a_text_that_is_no_record_is_named(content):
    with pytest.raises(InputError, match=r"^here: is (no record|of form None)"):
        record_of(content, where="here")


def test_the_first_record_of_a_station_follows_nothing():
    assert set(GENESIS) == {"0"}
    assert len(GENESIS) == 64
    assert not kinds.Opened.about_incident
