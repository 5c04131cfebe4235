"""The web page without a browser: roles, forms, what every answer carries, and what is refused."""

from __future__ import annotations

import html
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fastapi.testclient import TestClient
from sqlalchemy import make_url

from robo_eval.core.errors import InputError
from robo_eval.page.embed import static
from robo_eval.web.app import STATIC
from robo_eval.web.login import own_path
from robo_eval.web.security import HEADERS, MOST_BYTES
from robo_eval.web.serve import check_address
from robo_eval.web.sessions import COOKIE
from robo_eval_incidents import open_log
from robo_eval_incidents.accounts import Accounts
from robo_eval_incidents.checkpoint import make_checkpoint, write_checkpoint
from robo_eval_incidents.kinds import Evidence, View
from robo_eval_incidents.record import new_id
from robo_eval_incidents.text import ns_of, span_of
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.web import serve as serving
from robo_eval_incidents.web.app import API, make_app
from robo_eval_incidents.web.deps import Sessions
from robo_eval_incidents.web.pages.audit import verify_command
from robo_eval_incidents.words import Via

REPORT = {
    "description": "The gripper touched the fence.",
    "robot": "ur5e",
    "severity": "near_miss",
    "category": "collision",
    "happened": "2026-03-01T09:30:00",
}


def number_of_records(web: Any) -> int:
    return sum(head.sequence for head in web.log.heads().values())


# Roles -----------------------------------------------------------------------------------------

FORMS: dict[str, dict[str, str]] = {
    "review": {"verdict": "confirmed", "note": "seen"},
    "reclassify": {"severity": "minor", "category": "collision", "reason": "scratched"},
    "correct": {"robot": "ur10", "reason": "it was the other one"},
    "attach": {"uri": "photo.jpg"},
    "act": {"what": "move the fence", "owner": "R. Example"},
    "check": {"action_id": "x", "is_effective": "yes", "how": "seen"},
    "close": {"note": "done"},
}
REVIEWERS_ONLY = {"review", "reclassify", "act", "check", "close"}


@pytest.mark.parametrize("what", FORMS)
@pytest.mark.parametrize("who", ["operator", "colleague", "auditor"])
def test_a_forbidden_action_is_refused_and_changes_nothing(
    web, browse, who: str, what: str
) -> None:
    incident_id = browse("operator").report()
    before = number_of_records(web)
    is_allowed = who == "operator" and what not in REVIEWERS_ONLY
    answer = browse(who).post(f"/incidents/{incident_id}/{what}", FORMS[what])
    if is_allowed:
        assert answer.status_code != 403
        return
    assert answer.status_code == 403
    assert "This is not for your account" in answer.text
    assert number_of_records(web) == before
    page = browse(who).get(f"/incidents/{incident_id}").text
    assert f"/{incident_id}/{what}" not in page, "nobody is offered what they may not do"


PAGES = {
    "/incidents": {"operator", "reviewer", "auditor"},
    "/todo": {"operator", "reviewer", "auditor"},
    "/safety": {"operator", "reviewer", "auditor"},
    "/incidents/new": {"operator", "reviewer"},
    "/nil": {"operator", "reviewer"},
    "/export": {"reviewer", "auditor"},
    "/export/incidents.csv": {"reviewer", "auditor"},
    "/export/incidents.html": {"reviewer", "auditor"},
    "/verify": {"reviewer", "auditor"},
    "/audit": {"auditor"},
}


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_for_some_roles(web, browse, path: str) -> None:
    for who in ("operator", "reviewer", "auditor"):
        answer = browse(who).get(path)
        assert answer.status_code == (200 if who in PAGES[path] else 403)
    answer = web.client.get(path)
    assert (answer.status_code, answer.headers["location"].split("?")[0]) == (303, "/login")


def test_an_auditor_reports_nothing(web, browse) -> None:
    before = number_of_records(web)
    auditor = browse("auditor")
    assert auditor.post("/incidents", REPORT).status_code == 403
    nil = {"start": "2026-03-01T06:00:00", "end": "2026-03-01T14:00:00"}
    assert auditor.post("/nil", nil).status_code == 403
    assert number_of_records(web) == before


# Forms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [None, "", "0" * 43, "other"])
def test_a_form_without_the_token_of_its_session_is_refused(web, browse, token) -> None:
    before = number_of_records(web)
    mine, other = browse("reviewer"), browse("reviewer")
    fields = {**REPORT, "record_id": new_id()}
    if token is not None:
        fields["csrf"] = other.csrf if token == "other" else token
    answer = web.client.post("/incidents", data=fields, headers=mine.headers)
    assert answer.status_code == 403
    assert number_of_records(web) == before


def test_a_form_of_another_site_is_refused(web, browse) -> None:
    mine = browse("reviewer")
    mine.headers["sec-fetch-site"] = "cross-site"
    assert mine.post("/incidents", REPORT).status_code == 400


def test_a_form_that_is_sent_twice_adds_one_record(web, browse) -> None:
    operator, reviewer = browse("operator"), browse("reviewer")
    fields = REPORT | {"record_id": new_id()}
    places = {operator.post("/incidents", fields).headers["location"] for _ in range(3)}
    assert places == {f"/incidents/{fields['record_id']}?recorded=report"}
    path = f"/incidents/{fields['record_id']}"
    for what in ("correct", "review", "act", "reclassify"):
        before = number_of_records(web)
        form = FORMS[what] | {"record_id": new_id()}
        for _ in range(2):
            answer = reviewer.post(f"{path}/{what}", form)
            assert answer.status_code == 303, (what, answer.text)
        assert number_of_records(web) == before + 1


def test_forms_that_are_sent_at_once_add_one_record(web, browse) -> None:
    operator, fields = browse("operator"), REPORT | {"record_id": new_id()}
    before = number_of_records(web)
    answers: list[int] = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(operator.post("/incidents", fields).status_code)
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [303] * 4
    assert number_of_records(web) == before + 1


def test_the_same_form_with_other_words_is_refused(web, browse) -> None:
    operator, fields = browse("operator"), REPORT | {"record_id": new_id()}
    operator.post("/incidents", fields)
    before = number_of_records(web)
    answer = operator.post("/incidents", fields | {"description": "Something else."})
    assert answer.status_code == 422
    assert "says something else" in answer.text
    assert number_of_records(web) == before


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"description": " "}, "Description: is empty"),
        ({"description": "x" * 9_000}, "9000 characters; 8000 are the most"),
        ({"description": "a\x00b"}, "U+0000"),
        ({"robot": ""}, "Robot: say which robot"),
        ({"robot": "a\u202eb"}, "U+202E"),
        ({"severity": ""}, "Severity: choose one"),
        ({"severity": "mild"}, "Severity: "),
        ({"category": "'; DROP TABLE records; --"}, "Category: "),
        ({"happened": "yesterday"}, "is not a time such as"),
        ({"happened": "1900-01-01T00:00:00"}, "is not a time such as"),
        ({"happened": "9999-12-31T23:59:59"}, "is not a time such as"),
        ({"quantities": "hard"}, "is not a quantity"),
        ({"quantities": "force=1e999 N"}, "finite"),
        ({"answer_hospital": "perhaps"}, "Hospital: answers are"),
        ({"record_id": "../../etc/passwd"}, "The form has no id"),
        ({"record_id": ""}, "The form has no id"),
    ],
)
def test_a_bad_report_is_refused_in_words_and_keeps_what_was_typed(
    web, browse, fields: dict[str, str], message: str
) -> None:
    before = number_of_records(web)
    answer = browse("operator").post("/incidents", REPORT | {"task": "typed task"} | fields)
    assert answer.status_code == 422
    alert = re.search(r'role="alert"><strong>(.*?)</div>', answer.text, re.DOTALL)
    assert alert is not None
    assert message in alert[1].replace("&#39;", "'")
    assert 'value="typed task"' in answer.text
    assert number_of_records(web) == before


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{ 7 * 7 }}"


def test_what_people_type_is_shown_as_text(browse) -> None:
    reviewer = browse("reviewer")
    incident_id = reviewer.report(description=HOSTILE, robot=HOSTILE[:100], task=HOSTILE)
    path = f"/incidents/{incident_id}"
    reviewer.post(f"{path}/act", {"what": HOSTILE, "owner": HOSTILE})
    reviewer.post(f"{path}/correct", {"policy": HOSTILE, "reason": HOSTILE})
    pages = [path, "/incidents", "/todo", "/safety", "/incidents/new", f"/incidents?text={HOSTILE}"]
    pages.append(f"/todo?owner={HOSTILE}")
    for page in pages:
        text = reviewer.get(page).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
    refused = reviewer.post(f"{path}/review", {"verdict": HOSTILE, "note": HOSTILE})
    assert "<script>alert" not in refused.text


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"csrf=\xff\xfe", "application/x-www-form-urlencoded", 400),
        (b"csrf=%FF%FE", "application/x-www-form-urlencoded", 400),
        (b"csrf=a&csrf=b", "application/x-www-form-urlencoded", 400),
        (b"&".join(b"a%d=1" % n for n in range(300)), "application/x-www-form-urlencoded", 400),
        (b"{}", "application/json", 400),
        (b"", "multipart/form-data; boundary=x", 400),
        (b"x" * (MOST_BYTES + 1), "application/x-www-form-urlencoded", 413),
    ],
)
def test_what_is_no_form_is_refused(web, browse, content: bytes, kind: str, status: int) -> None:
    before = number_of_records(web)
    headers = browse("reviewer").headers | {"content-type": kind}
    answer = web.client.post("/incidents", content=content, headers=headers)
    assert answer.status_code == status
    assert number_of_records(web) == before


@pytest.mark.parametrize(
    "query",
    [
        "severity=mild", "status=%00", "since=yesterday", "until=0000-00-00", "robot=%00",
        "text=%E2%80%AE", "after=1~2", "after=' OR 1=1", "side=moon", "since=9999-12-31",
    ],
)  # fmt: skip
def test_a_bad_filter_is_said_and_not_ignored(browse, query: str) -> None:
    answer = browse("operator").get(f"/incidents?{query}")
    assert answer.status_code == 422
    assert "This cannot be shown." in answer.text


# Review ----------------------------------------------------------------------------------------


def test_a_critical_incident_needs_a_second_person(browse) -> None:
    first, second = browse("reviewer"), browse("second")
    path = f"/incidents/{first.report(severity='critical')}"
    assert "another person has to review it" in first.get(path).text
    answer = first.post(f"{path}/review", FORMS["review"])
    assert answer.status_code == 409
    assert "another person has to review it" in answer.text
    assert second.post(f"{path}/review", FORMS["review"]).status_code == 303
    answer = second.post(f"{path}/close", {"note": "done"})
    assert answer.status_code == 409
    assert "needs a corrective action" in answer.text
    second.post(f"{path}/act", {"what": "light curtain", "owner": "second", "due": "2026-04-01"})
    page = first.get(path).text
    action_id = re.search(r'name="action_id" value="([0-9a-f-]{36})"', page)
    assert action_id is not None
    check = {"action_id": action_id[1], "is_effective": "yes", "how": "tried it"}
    assert second.post(f"{path}/check", check).status_code == 409, "the owner does not check it"
    assert first.post(f"{path}/check", check).status_code == 303
    assert first.post(f"{path}/close", {"note": "done"}).status_code == 303
    assert "Nothing is left to do" in first.get(path).text


def test_a_milder_severity_says_in_words_that_the_worse_one_still_counts(browse) -> None:
    operator, reviewer, second = browse("operator"), browse("reviewer"), browse("second")
    incident_id = operator.report(severity="major", description="Made milder.", robot="milder")
    pages = (f"/incidents/{incident_id}", "/incidents?robot=milder")
    words = "counts as major until reviewed"
    assert not any(words in operator.get(page).text for page in pages)
    assert reviewer.post(f"{pages[0]}/reclassify", FORMS["reclassify"]).status_code == 303
    for page in pages:
        text = re.sub(r"<[^>]+>", "", operator.get(page).text)
        assert f"minor, {words}" in text, page
    assert second.post(f"{pages[0]}/review", FORMS["review"]).status_code == 303
    assert not any(words in operator.get(page).text for page in pages)


def test_what_was_corrected_says_what_it_still_counts_as(browse) -> None:
    operator, second = browse("operator"), browse("second")
    path = f"/incidents/{operator.report(severity='major', robot='arm_3')}"
    assert "Counts as" not in operator.get(path).text
    fields = {"robot": "arm_1", "happened": "2026-03-01T08:00:00", "reason": "wrong arm"}
    assert operator.post(f"{path}/correct", fields).status_code == 303
    text = " ".join(re.sub(r"<[^>]+>", " ", operator.get(path).text).split())
    assert "Counts as arm_3 (real), 2026-03-01 09:30:00 UTC, until it is reviewed" in text
    assert second.post(f"{path}/review", FORMS["review"]).status_code == 303
    assert "Counts as" not in operator.get(path).text


def test_what_was_dismissed_is_not_offered_to_be_closed(browse) -> None:
    reviewer = browse("reviewer")
    path = f"/incidents/{reviewer.report()}"
    assert reviewer.post(f"{path}/review", FORMS["review"]).status_code == 303
    assert f'action="{path}/close"' in reviewer.get(path).text
    dismissal = {"verdict": "dismissed", "note": "no incident after all"}
    assert browse("second").post(f"{path}/review", dismissal).status_code == 303
    page = reviewer.get(path).text
    assert f'action="{path}/close"' not in page
    assert "It can be closed" not in page


def test_a_refused_form_keeps_what_was_typed(browse) -> None:
    reviewer = browse("reviewer")
    path = f"/incidents/{reviewer.report(severity='major')}"
    fields = {"severity": "major", "category": "collision", "reason": "words to keep"}
    answer = reviewer.post(f"{path}/reclassify", fields)
    assert answer.status_code == 409
    assert "is major and collision already" in answer.text
    assert ">words to keep</textarea>" in answer.text


def test_refusals_are_in_words(browse) -> None:
    reviewer = browse("reviewer")
    same = {"severity": "near_miss", "category": "person_contact"}
    path = f"/incidents/{reviewer.report(**same)}"
    answer = reviewer.post(f"{path}/reclassify", same | {"reason": "none"})
    assert answer.status_code == 409
    assert "is near miss and person contact already" in answer.text
    quiet = {"start": "2026-03-01T09:00", "end": "2026-03-01T08:00"}
    answer = reviewer.post("/nil", quiet)
    assert answer.status_code == 422
    assert "Start is not before end" in answer.text


def test_a_due_day_is_a_day(browse) -> None:
    reviewer = browse("reviewer")
    path = f"/incidents/{reviewer.report()}"
    fields = {"what": "longer guard", "owner": "second", "due": "86400"}
    answer = reviewer.post(f"{path}/act", fields)
    assert answer.status_code == 422
    assert "is not a day; write it like 2026-04-01" in answer.text


def test_a_correction_shows_what_it_changed(browse) -> None:
    operator = browse("operator")
    path = f"/incidents/{operator.report()}"
    assert operator.post(f"{path}/correct", {"reason": "why not"}).status_code == 422
    assert operator.post(f"{path}/correct", FORMS["correct"]).status_code == 303
    page = operator.get(path).text
    assert "ur5e → ur10" in page
    assert page.count("it was the other one") == 1


# Times -----------------------------------------------------------------------------------------


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine is in another zone, which must not matter."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


MOMENT_NS = 1_772_357_400 * 10**9
"""2026-03-01 09:30:00 UTC."""


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize(
    "happened", ["2026-03-01T09:30", "2026-03-01T09:30:00.000Z", "2026-03-01T04:30:00-05:00"]
)
def test_times_are_utc_wherever_the_page_is_served(web, browse, happened: str) -> None:
    operator = browse("operator")
    incident_id = operator.report(happened=happened)
    assert web.log.incident(incident_id).report.happened_ns == MOMENT_NS
    page = operator.get(f"/incidents/{incident_id}").text
    assert '<time datetime="2026-03-01T09:30:00Z">2026-03-01 09:30:00 UTC</time>' in page
    assert 'name="happened" value="2026-03-01T09:30:00"' in page
    listed = operator.get("/incidents?since=2026-03-01&until=2026-03-01").text
    assert incident_id in listed
    assert "Times and days are in <span data-zone>UTC</span>" in listed
    refused = operator.post("/incidents", REPORT | {"happened": happened, "robot": ""})
    assert 'name="happened" value="2026-03-01T09:30:00"' in refused.text


def test_a_day_begins_where_the_browser_says(browse) -> None:
    reviewer = browse("reviewer")
    late = reviewer.report(happened="2026-07-01T22:30:00Z", robot="zoned")
    for begin, is_there in (("+02:00", True), ("", False), ("-05:00", False)):
        day = f"2026-07-02T00:00{begin}" if begin else "2026-07-02"
        for path in ("/incidents?robot=zoned&", "/export/incidents.csv?"):
            answer = reviewer.web.client.get(
                f"{path}since={quote(day)}&until={quote(day)}", headers=reviewer.headers
            )
            assert (late in answer.text) is is_there, (path, day)
    assert 'filename="incidents_2026-07-02_2026-07-02.csv"' in answer.headers["content-disposition"]
    assert reviewer.get("/incidents?since=2026-07-02T10:00").status_code == 422


def test_a_nil_report_is_a_record(web, browse) -> None:
    operator = browse("operator")
    nil = {"start": "2026-03-01T06:00:00", "end": "2026-03-01T14:00:00", "robot": "ur5e"}
    answer = operator.post("/nil", nil)
    assert answer.status_code == 303
    assert "cell-1/" in operator.get(answer.headers["location"]).text
    assert operator.post("/nil", nil | {"end": nil["start"]}).status_code == 422


def test_a_quiet_shift_with_incidents_names_those_that_count(browse) -> None:
    operator, reviewer = browse("operator"), browse("reviewer")
    at = {"robot": "contrary", "happened": "2026-05-01T09:00:00"}
    counting, dismissed = operator.report(**at), operator.report(**at)
    operator.report(**at | {"happened": "2026-05-01T16:00:00"})
    operator.report(**at | {"side": "twin"})
    nothing = {"verdict": "dismissed", "note": "no incident"}
    assert reviewer.post(f"/incidents/{dismissed}/review", nothing).status_code == 303
    nil = {"start": "2026-05-01T08:00:00", "end": "2026-05-01T16:00:00"}
    for robot in ({"robot": "contrary"}, {}):
        page = operator.get(operator.post("/nil", nil | robot).headers["location"]).text
        assert "The log has incidents in that time." in page
        assert re.findall(r'href="/incidents/([0-9a-f-]{36})"', page) == [counting]
    other = operator.post("/nil", nil | {"robot": "another"}).headers["location"]
    for address in (other, "/nil", "/nil?recorded=cell-1/0", "/nil?recorded=x", "/nil?recorded=/"):
        answer = operator.get(address)
        assert (answer.status_code, "incidents in that time" in answer.text) == (200, False)


def test_many_logged_times_are_folded_and_counted(web, browse, nil) -> None:
    reviewer = browse("reviewer")
    days = "since=2026-02-25&until=2026-02-25"
    for count in range(1, 7):
        last = web.log.file(nil(count), by="operator", via=Via.WEB)
        page = reviewer.get(f"/safety?{days}").text
        times = page[page.index("<h2>Logged times</h2>") :]
        assert ("<summary>6 entries</summary>" in times) is (count > 5), count
    answer = reviewer.post(f"/times/{last.record_id}/withdraw", {"reason": "wrong day"})
    assert answer.status_code == 303
    page = reviewer.get(answer.headers["location"]).text
    assert "<details open><summary>" in page, "what was just withdrawn is not folded"


def test_a_time_is_withdrawn_by_a_reviewer_and_said_to_be(web, browse, nil) -> None:
    record = web.log.file(nil(1), by="operator", via=Via.WEB)
    path, period = f"/times/{record.record_id}/withdraw", {"since": "2026-02-25", "until": ""}
    for who in ("operator", "auditor"):
        assert browse(who).post(path, {"reason": "wrong day"}).status_code == 403
    reviewer = browse("reviewer")
    refused = reviewer.post(path, {"reason": " ", **period})
    assert refused.status_code == 422
    assert "That was not withdrawn." in refused.text
    assert f"Number cell-1/{record.sequence}: reason: is empty" in refused.text
    assert 'name="since" value="2026-02-25"' in refused.text
    made_up = f"/safety?withdrawn=cell-1/{record.sequence}"
    assert "no longer counts" not in reviewer.get(made_up).text
    answer = reviewer.post(path, {"reason": "wrong day", **period})
    assert answer.headers["location"].startswith("/safety?since=2026-02-25&until=&robot=&withdrawn")
    page = reviewer.get(answer.headers["location"]).text
    assert f"cell-1/{record.sequence} no longer counts" in page
    assert "withdrawn</strong> by reviewer: wrong day" in page
    again = reviewer.post(path, {"reason": "wrong day"})
    assert again.status_code == 409
    assert "withdrew it already" in again.text
    assert reviewer.post(f"/times/{'0' * 8}/withdraw", {"reason": "x"}).status_code == 404


# Who looked ------------------------------------------------------------------------------------


def views_of(web: Any, incident_id: str) -> list[str]:
    records = web.log.incident(incident_id).records
    return [record.by for record in records if isinstance(record.body, View)]


def test_looking_at_a_critical_incident_is_recorded_once_for_a_session(web, browse) -> None:
    incident_id = browse("operator").report(severity="critical")
    path, colleague = f"/incidents/{incident_id}", browse("colleague")
    for _ in range(3):
        assert colleague.get(path).status_code == 200
    assert views_of(web, incident_id) == ["colleague"]
    browse("colleague").get(path)
    assert views_of(web, incident_id) == ["colleague"] * 2
    reviewer = browse("reviewer")
    reviewer.post(f"{path}/reclassify", FORMS["reclassify"])
    reviewer.get(path)
    assert views_of(web, incident_id)[2:] == ["reviewer"], "it was critical"
    assert incident_id in browse("auditor").get("/audit").text


def test_whoever_knows_a_session_cannot_file_its_views_beforehand(web, browse) -> None:
    """Only this process knows which ids its views get; nobody can take one first."""
    incident_id = browse("operator").report(severity="critical")
    session = web.site.sessions.find(next(iter(web.cookies("colleague")[0].values())))
    elsewhere = Sessions(web.log, web.site.accounts)
    mine = web.site.sessions.view_id(session, incident_id)
    assert mine == web.site.sessions.view_id(session, incident_id)
    assert mine != elsewhere.view_id(session, incident_id)


def test_looking_at_others_is_not_recorded(web, browse) -> None:
    incident_id = browse("operator").report(severity="major")
    browse("colleague").get(f"/incidents/{incident_id}")
    assert views_of(web, incident_id) == []


def test_an_export_is_a_view_of_the_critical_ones_in_it(web, browse) -> None:
    operator, auditor = browse("operator"), browse("auditor")
    inside = operator.report(severity="critical", happened="2026-05-05T10:00:00")
    outside = operator.report(severity="critical", happened="2026-05-06T00:00:00")
    answer = auditor.get("/export/incidents.csv?since=2026-05-05&until=2026-05-05")
    assert answer.status_code == 200
    assert inside in answer.text
    assert outside not in answer.text
    assert views_of(web, inside) == ["auditor"]
    assert views_of(web, outside) == []


@pytest.mark.parametrize("kind", ["csv", "json", "html"])
def test_an_export_of_a_bad_period_is_refused(browse, kind: str) -> None:
    for query in ("since=2026-05-06&until=2026-05-05", "since=soon"):
        answer = browse("reviewer").get(f"/export/incidents.{kind}?{query}")
        assert answer.status_code == 422
        assert "Nothing was exported." in answer.text


@pytest.fixture
def read_only(web: Any) -> Iterator[None]:
    """The database refuses every change, as one does on a file system that has failed."""

    def switch(word: str) -> None:
        with web.log.database.reading() as connection:
            connection.exec_driver_sql(f"PRAGMA query_only = {word}")

    switch("ON")
    yield
    switch("OFF")


@pytest.fixture
def critical(browse: Any) -> str:
    """The path of a critical incident."""
    return f"/incidents/{browse('operator').report(severity='critical')}"


def test_a_log_that_cannot_be_written_loses_nothing_that_was_typed(
    browse: Any, critical: str, request: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, colleague = browse("operator"), browse("colleague")
    operator.get("/incidents")
    request.getfixturevalue("read_only")
    answer = operator.post("/incidents", REPORT | {"description": "Words to keep."})
    assert answer.status_code == 503
    assert ">Words to keep.</textarea>" in answer.text
    # Looking at it cannot be recorded, so it is not shown.
    answer = colleague.get(critical)
    assert answer.status_code == 503
    assert "The log cannot be used just now" in answer.text
    later_ns = time.time_ns() + 120 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later_ns)
    assert operator.get("/incidents").status_code == 200


# Evidence --------------------------------------------------------------------------------------


def test_evidence_is_attached_with_its_digest_and_downloaded(web, browse) -> None:
    operator = browse("operator")
    path = f"/incidents/{operator.report()}"
    folder = web.site.evidence.root / "photos"
    folder.mkdir(parents=True, exist_ok=True)
    label = "Path of the file, which lies below incidents/ beside the log already"
    assert label in operator.get(path).text
    file = folder / "a b.jpg"
    file.write_bytes(b"picture")
    assert operator.post(f"{path}/attach", {"uri": "incidents/photos/a b.jpg"}).status_code == 303
    answer = operator.get(f"{path}/evidence/0")
    assert answer.content == b"picture"
    assert answer.headers["content-disposition"] == 'attachment; filename="a_b.jpg"'
    file.write_bytes(b"another")
    answer = operator.get(f"{path}/evidence/0")
    assert answer.status_code == 409
    assert "was changed since it was recorded" in answer.text
    file.unlink()
    assert operator.get(f"{path}/evidence/0").status_code == 404
    assert operator.get(f"{path}/evidence/1").status_code == 404
    assert operator.get(f"{path}/evidence/-1").status_code == 404
    assert operator.get(f"{path}/evidence/x").status_code == 422


@pytest.mark.parametrize(
    "uri",
    [
        "../secret.txt", "/etc/passwd", "a/../../secret.txt", "..\\secret.txt", "file:///etc/passwd",
        "incidents/incidents.db", "incidents/link.txt", "incidents/folder", "incidents/missing.txt",
        "incidents/a\x00.txt", "", "incidents/key.pem", "x" * 600, "incidents.db/x.txt",
        "incidents", "secret.txt", "./secret.txt", "incidents/../secret.txt", ".docker/config.json",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_folder_of_evidence(web, browse, uri: str) -> None:
    folder = web.site.evidence.root
    (folder / "folder").mkdir(parents=True, exist_ok=True)
    for name in ("incidents.db", "key.pem", "../secret.txt", "../.docker/config.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("secret")
    link = folder / "link.txt"
    if not link.is_symlink():
        link.symlink_to(folder.parent / "secret.txt")
    operator = browse("operator")
    path = f"/incidents/{operator.report()}"
    before = number_of_records(web)
    answer = operator.post(f"{path}/attach", {"uri": uri})
    assert answer.status_code in {404, 422}
    assert "That was not recorded." in answer.text
    assert number_of_records(web) == before


def test_evidence_that_others_recorded_is_checked_as_well(web, browse, report) -> None:
    folder = web.site.evidence.root
    folder.mkdir(exist_ok=True)
    (folder.parent / "secret.txt").write_text("secret")
    link = folder / "away.txt"
    link.symlink_to(folder.parent / "secret.txt")
    uris = ("incidents.db", "secret.txt", "incidents/away.txt")
    evidence = tuple(Evidence(uri=uri) for uri in uris)
    filed = web.log.file(report(evidence=evidence), by="robo-eval", via=Via.RULE)
    reviewer = browse("reviewer")
    for number in range(len(uris)):
        answer = reviewer.get(f"/incidents/{filed.record_id}/evidence/{number}")
        assert answer.status_code == 404
    page = reviewer.get(f"/incidents/{filed.record_id}").text
    assert "/evidence/" not in page


# Logging in ------------------------------------------------------------------------------------


def log_in(web: Any, name: str, password: str, **changed: str) -> Any:
    web.client.cookies.clear()
    page = web.client.get("/login").text
    token = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
    assert token is not None
    fields = {"csrf": token[1], "name": name, "password": password, "next": "/safety"} | changed
    return web.client.post("/login", data=fields)


def test_the_cookie_of_a_session_is_for_this_site_alone(web) -> None:
    answer = log_in(web, "reviewer", "reviewer has a password")
    assert (answer.status_code, answer.headers["location"]) == (303, "/safety")
    cookie = next(
        text
        for text in answer.headers.get_list("set-cookie")
        if text.startswith("robo_eval_session")
    )
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()
    assert "Secure" not in cookie
    assert web.client.get("/safety").status_code == 200
    web.client.cookies.clear()


def test_a_wrong_password_keeps_the_name_and_says_no_more(web) -> None:
    answer = log_in(web, "reviewer", "wrong")
    assert answer.status_code == 401
    assert 'value="reviewer"' in answer.text
    assert "wrong&" not in answer.text
    assert "robo_eval_session" not in str(answer.headers.get_list("set-cookie"))


def test_a_login_form_belongs_to_a_browser(web) -> None:
    answer = log_in(web, "reviewer", "reviewer has a password", csrf="0" * 64)
    assert answer.status_code == 403


def test_logging_out_ends_the_session(web, browse) -> None:
    reviewer = browse("reviewer")
    assert reviewer.get("/logout").status_code == 405
    assert reviewer.post("/logout", {}).headers["location"] == "/login"
    assert reviewer.get("/incidents").status_code == 303


def test_after_a_login_one_is_where_one_wanted_to_be(web, browse) -> None:
    answer = web.client.get("/incidents?severity=major")
    assert answer.headers["location"] == "/login?next=/incidents%3Fseverity%3Dmajor"
    gone = browse("operator")
    web.site.sessions.end(web.site.sessions.find(gone.headers["cookie"].split("=", 1)[1]))
    headers = {"referer": "http://testserver/incidents/new"}
    answer = web.client.post("/incidents", data=REPORT, headers=gone.headers | headers)
    assert answer.headers["location"] == "/login?next=/incidents/new"
    headers |= {"hx-request": "true"}
    answer = web.client.post("/incidents", data=REPORT, headers=gone.headers | headers)
    assert answer.status_code == 401
    assert answer.headers["hx-redirect"] == "/login?next=/incidents/new"


@pytest.mark.parametrize(
    "path",
    ["//elsewhere.example", "https://elsewhere.example", "/\\elsewhere.example", "javascript:1", "",
     "/../x", "/%2e%2e/x", "/a\nb"],
)  # fmt: skip
def test_a_login_leads_nowhere_else(path: str) -> None:
    assert own_path(path) == "/"


@pytest.mark.parametrize(
    "path",
    ["/incidents?text=it's (really) over; 40~60 mm..., [see]!",
     "/incidents/0190b6a0?recorded=report",
     "/incidents?text=" + "x" * 500],
)  # fmt: skip
def test_a_link_from_elsewhere_keeps_its_target(web, path: str) -> None:
    there = quote(path, safe="/?=~'();,.[]!")
    answer = web.client.get(there, headers={"sec-fetch-site": "cross-site"})
    target = parse_qs(urlsplit(answer.headers["location"]).query)["next"][0]
    assert own_path(target) == target
    assert unquote(target) == path


@pytest.mark.parametrize(
    "host",
    ["testserver", "TestServer:8500", "testserver.", "localhost:1", "127.0.0.1:8500", "[::1]:8500",
     "192.168.1.7"],
)  # fmt: skip
def test_a_page_is_at_its_own_names_and_at_addresses(web, host: str) -> None:
    assert web.client.get("/login", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["elsewhere.example", "testserver.elsewhere.example", "", "127.0.0.1.elsewhere.example:80",
     "testserver@elsewhere.example", "[::1]elsewhere", "testserver/x", "127.0.0.1:x"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/login", f"{API}/openapi.json", "/static/base.css"])
def test_a_page_is_nowhere_else(web, host: str, path: str) -> None:
    answer = web.client.get(path, headers={"host": host})
    assert answer.status_code == 421
    assert "--name" in answer.text


def test_refused_logins_are_shown_to_auditors(web, browse) -> None:
    for name, password in (("reviewer", "wrong"), ("nobody at all", "wrong")):
        log_in(web, name, password)
    web.site.accounts.record_refused()
    page = " ".join(browse("auditor").get("/audit").text.split())
    assert "refused, account <b>reviewer</b>" in page
    assert "refused, by names that have no account" in page
    assert "nobody at all" not in page


def test_under_tls_cookies_are_sent_no_other_way(path: Path, log: Any) -> None:
    Accounts(log).add("R. Example", "four words in a row", ["reviewer"], by="setup")
    app = make_app(path)
    with TestClient(app, base_url="https://localhost", follow_redirects=False) as client:
        page = client.get("/login")
        token = re.search(r'name="csrf" value="([0-9a-f]+)"', page.text)
        assert token is not None
        fields = {"csrf": token[1], "name": "R. Example", "password": "four words in a row"}
        answer = client.post("/login", data=fields)
    assert answer.status_code == 303
    cookies = page.headers.get_list("set-cookie") + answer.headers.get_list("set-cookie")
    assert all("Secure" in text for text in cookies if "Max-Age=0" not in text)


# Every answer ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/login", "/incidents", "/nowhere", "/static/base.css", "/api/v1/incidents", "/audit"]
)
def test_every_answer_carries_the_headers(web, browse, path: str) -> None:
    answer = browse("reviewer").get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "unsafe-inline" not in answer.headers["content-security-policy"]
    is_static = path.startswith("/static/")
    assert answer.headers["cache-control"] == ("private, max-age=3600" if is_static else "no-store")
    assert "server" not in answer.headers


class Tags(HTMLParser):
    """Every tag of a page with the names of its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, [name for name, _ in attrs]))


def test_the_colours_are_those_of_a_report(web) -> None:
    colours = re.compile(r"^\s*(--[\w-]+): #[0-9a-f]{6};$", re.MULTILINE)
    shared = set(colours.findall(static("shared.css")))
    assert len(shared) > 15
    for own in (static("page.css"), (STATIC / "base.css").read_text()):
        assert not shared & set(colours.findall(own)), "each colour is said once"
    assert "/static/shared.css" in web.client.get("/login").text


def test_no_page_has_script_or_style_in_it(browse) -> None:
    reviewer = browse("reviewer")
    incident_id = reviewer.report()
    pages = ["/incidents", f"/incidents/{incident_id}", "/safety", "/incidents/new", "/nil"]
    for path in [*pages, "/todo", "/export", "/verify", "/login"]:
        tags = Tags()
        tags.feed(reviewer.get(path).text)
        for tag, attributes in tags.found:
            names = set(attributes)
            assert tag != "style", path
            assert tag != "script" or "src" in names, path
            assert not any(name == "style" or name.startswith(("on", "hx-on")) for name in names)


def test_what_is_not_there_is_said_plainly(browse) -> None:
    reviewer = browse("reviewer")
    for path in ("/nowhere", f"/incidents/{new_id()}", "/incidents/zzz", "/export/incidents.exe"):
        answer = reviewer.get(path)
        assert answer.status_code == 404
        assert "There is nothing here" in answer.text


def test_verification_finds_what_was_changed(web, browse) -> None:
    reviewer = browse("reviewer")
    assert "Nothing is wrong" in reviewer.post("/verify", {}).text
    assert verify_log(web.site.target).ok


def test_the_page_names_the_command_that_compares_with_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "it's a lab" / "incidents.db"
    with open_log(path, station="cell-1", make=True) as log:
        kept = make_checkpoint(log, Ed25519PrivateKey.generate(), by="R. Example")
        write_checkpoint(kept, tmp_path / "kept.checkpoint")
        user = Accounts(log).add("R. Example", "four words in a row", ["reviewer"], by="setup")
        token = Sessions(log, Accounts(log)).begin(user)
    with TestClient(make_app(path, names=["testserver"]), cookies={COOKIE: token}) as client:
        found = re.search(r"<code>(robo-eval verify .*?)</code></pre>", client.get("/verify").text)
    assert found is not None
    words = shlex.split(html.unescape(found[1]).replace("FILE", str(tmp_path / "kept.checkpoint")))
    done = subprocess.run(
        [sys.executable, "-m", "robo_eval", *words[1:]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


SECRET = "secret"


@pytest.mark.parametrize(
    ("url", "named"),
    [
        (f"postgresql://lab:{SECRET}@db.example:5433/log", "postgresql://lab@db.example:5433/log"),
        ("postgresql://lab@db/log?password=secret&sslmode=require",
         "'postgresql://lab@db/log?sslmode=require'"),
        ("postgresql:///log?host=/run/pg&user=it's", None),
    ],
)  # fmt: skip
def test_the_command_for_a_server_shows_no_password(url: str, named: str | None) -> None:
    command = verify_command(url)
    assert "secret" not in command
    words = shlex.split(command)
    assert make_url(words[2]) == (make_url(url) if named is None else make_url(named.strip("'")))
    assert named is None or command == f"robo-eval verify {named} --checkpoint FILE"


def test_older_incidents_come_a_page_at_a_time(web, browse) -> None:
    operator = browse("operator")
    for number in range(60):
        operator.report(robot="paged", description=f"number {number}")
    names: list[str] = []
    path = "/incidents?robot=paged"
    while path:
        text = operator.get(path, **({"hx-request": "true"} if names else {})).text
        assert ("<html" in text) is (not names), "htmx gets rows alone"
        names += re.findall(r">(number \d+)</a>", text)
        older = re.search(r'class="button" href="([^"]+)"', text)
        path = older[1].replace("&amp;", "&") if older else ""
    assert sorted(names) == sorted(f"number {number}" for number in range(60))


def test_what_is_left_to_do_names_who_and_since_when(browse) -> None:
    reviewer = browse("reviewer")
    incident_id = reviewer.report(robot="left", severity="major", description="Hit the fence.")
    due = (datetime.now(UTC).date() - timedelta(days=3)).isoformat()
    action = {"what": "move the fence", "owner": "Operator B", "due": due}
    assert reviewer.post(f"/incidents/{incident_id}/act", action).status_code == 303
    for who in ("operator", "reviewer", "auditor"):
        text = browse(who).get("/todo?robot=left").text
        assert f'<a href="/incidents/{incident_id}">Hit the fence.</a>' in text
        assert ">3 days overdue</span> Action &#39;move the fence&#39; of Operator B, due" in text
        assert "It needs a review by somebody else than reviewer." in text
        assert text.index("overdue</span>") < text.index("It needs a review"), "overdue comes first"
    assert "It needs a review" not in reviewer.get("/todo?robot=left&overdue=yes").text
    assert incident_id in reviewer.get("/todo?owner=operator+b").text
    page = reviewer.get(f"/incidents/{incident_id}").text
    assert "3 days overdue</span>" in page
    assert "<h1>Hit the fence.</h1>" in page
    assert "<title>Hit the fence. · cell-1/" in page
    unknown = reviewer.get("/todo?owner=Operator+Z")
    assert unknown.status_code == 422
    assert "unknown owner" in unknown.text.lower()
    browse("second").post(f"/incidents/{incident_id}/review", FORMS["review"])
    assert "It needs a review" not in reviewer.get("/todo?robot=left").text


@pytest.mark.parametrize(
    ("query", "message"),
    [("robot=nobody", "Unknown robot"), ("owner=%E2%80%AE", "Owner: "), ("after=-1", "after")],
)
def test_a_bad_question_for_what_is_left_is_said(browse, query: str, message: str) -> None:
    answer = browse("operator").get(f"/todo?{query}")
    assert answer.status_code == 422
    assert message in answer.text
    assert "Nothing is left to do" not in answer.text


def test_what_is_left_comes_a_page_at_a_time(browse) -> None:
    operator = browse("operator")
    ids = {operator.report(robot="much") for _ in range(55)}
    first = operator.get("/todo?robot=much").text
    further = re.search(r'class="button" href="(/todo[^"]+)">Further', first)
    assert further is not None
    second = operator.get(further[1].replace("&amp;", "&")).text
    shown = [re.findall(r'<a href="/incidents/([0-9a-f-]{36})"', text) for text in (first, second)]
    assert [len(part) for part in shown] == [50, 5]
    assert {*shown[0], *shown[1]} == ids
    assert "Further" not in second


# Serving ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "::", "robot.example"])
def test_others_are_let_in_by_tls_or_an_explicit_word_only(tmp_path: Path, host: str) -> None:
    with pytest.raises(InputError, match="--cert and --key for TLS, or --allow-plain-http"):
        serving.serve(tmp_path / "incidents.db", host=host)
    check_address(host, is_tls=True, allow_plain=False)
    check_address(host, is_tls=False, allow_plain=True)
    for own in ("127.0.0.1", "::1", "localhost", "127.0.0.2"):
        check_address(own, is_tls=False, allow_plain=False)


def test_a_page_without_accounts_says_how_to_make_one(path: Path, log: Any) -> None:
    with pytest.raises(InputError, match="robo-eval incidents user add NAME --role reviewer"):
        serving.serve(path)


def test_files_and_ports_that_cannot_be_used_are_named(path: Path, log: Any) -> None:
    Accounts(log).add("R. Example", "four words in a row", ["reviewer"], by="setup")
    with pytest.raises(InputError, match="both given or both left out"):
        serving.serve(path, cert=path)
    with pytest.raises(InputError, match="certificate and key cannot be used"):
        serving.serve(path, cert=path, key=path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"--port {port}: cannot be listened on: Address"):
            serving.serve(path, port=port)
    with pytest.raises(InputError, match="no such incident log"):
        serving.serve(path.parent / "other.db")


def test_the_page_of_one_log_does_not_open_another(web, tmp_path: Path) -> None:
    with open_log(tmp_path / "other.db", station="other", make=True) as other:
        token = web.cookies("reviewer")[0]
        assert Sessions(other, Accounts(other)).find(next(iter(token.values()))) is None


def test_a_report_says_a_day_or_a_month_where_no_more_is_known(web, browse):
    operator = browse("operator")
    incident_id = operator.report(roughly="2025-11 Europe/Berlin")
    report = web.log.incident(incident_id).report
    assert (report.happened_ns, report.until_ns) == span_of("2025-11 Europe/Berlin")
    path = f"/incidents/{incident_id}"
    time = report.time
    page = operator.get(path).text
    assert "2025-11 UTC+01:00" in page
    assert f'name="roughly" value="{time}"' in page
    assert time in operator.get("/incidents?since=2025-11-01&until=2025-11-02").text
    # What was not touched is no correction of it; emptied, the time beside it counts.
    reason = {"reason": "x", "roughly": time}
    assert operator.post(f"{path}/correct", reason).status_code == 422
    assert operator.post(f"{path}/correct", reason | {"roughly": "2025-11-07"}).status_code == 303
    assert web.log.incident(incident_id).report.time == "2025-11-07"
    exact = {"reason": "x", "roughly": "", "happened": "2025-11-07T10:00:00"}
    assert operator.post(f"{path}/correct", exact).status_code == 303
    assert web.log.incident(incident_id).report.time == "2025-11-07T10:00:00Z"
    refused = operator.post("/incidents", REPORT | {"roughly": "in the fall"})
    assert refused.status_code == 422
    assert "is not a time" in refused.text
    assert 'value="in the fall"' in refused.text


def test_an_export_is_a_view_of_what_counts_in_it(web, browse) -> None:
    made = browse("operator").report(severity="critical", happened="2026-05-05T10:00:00")
    moved = {"happened_ns": ns_of("2026-03-10T00:00:00Z")}
    web.record("operator", "correction", {"fields": moved, "reason": "typo"}, about=made)
    answer = browse("auditor").get("/export/incidents.csv?since=2026-05-05&until=2026-05-05")
    assert made in answer.text
    assert views_of(web, made) == ["auditor"]


def test_an_incident_that_doubles_another_is_named_by_its_number(web, browse) -> None:
    first, second = (browse("operator").report() for _ in range(2))
    name = web.log.incident(first).name
    sent = {"verdict": "dismissed", "note": "the same"}
    reviewer = browse("reviewer")
    answer = reviewer.post(f"/incidents/{second}/review", sent | {"duplicate_of": "cell-9/9"})
    assert answer.status_code == 422
    assert "no incident" in answer.text
    assert reviewer.post(f"/incidents/{second}/review", sent | {"duplicate_of": name}).is_redirect
    (review,) = web.log.incident(second).reviews
    assert review.body.duplicate_of == first
