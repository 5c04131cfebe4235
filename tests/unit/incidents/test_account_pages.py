"""One's own password, accounts of others, and hours, on the page."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from robo_eval.web.errors import LoginError
from robo_eval.web.sessions import COOKIE
from robo_eval_incidents.hours import hours
from robo_eval_incidents.web import deps
from robo_eval_incidents.web.templating import field_of

NEW = "some other words in a row"


@pytest.fixture
def admin(web, browse) -> Any:
    if web.site.accounts.find("chief") is None:
        web.site.accounts.add("chief", "chief has a password", ["admin"], by="Operator A")
    return browse("chief")


def test_every_page_of_a_log_whose_lists_were_edited_says_so(web, browse, monkeypatch):
    monkeypatch.setattr(deps, "_PATIENCE_S", 60.0)
    browser = browse("operator")
    path = browser.get(f"/incidents/{browser.report()}").url.path
    pages = ("/incidents", "/todo", "/safety", "/trends", path)
    assert not [page for page in pages if "not what was recorded" in browser.get(page).text]
    with closing(sqlite3.connect(web.site.target)) as database, database:
        database.execute("UPDATE incidents SET severity = 'minor', counted_severity = 'minor'")
    assert "not what was recorded" not in browser.get("/todo").text, "it is not read for each page"
    monkeypatch.setattr(web.site, "watch", deps.Watch(web.site.target))
    for page in pages:
        assert "the lists show another severity" in browser.get(page).text, page
    with closing(sqlite3.connect(web.site.target)) as database, database:
        database.execute(
            "UPDATE incidents SET severity = 'near_miss', counted_severity = 'near_miss'"
        )


def test_everybody_changes_their_own_password(web, browse):
    web.site.accounts.add("T. Example", "first words in a row", ["operator"], by="x")
    mine, other = browse("T. Example"), browse("T. Example")
    given = {"old": "first words in a row", "new": NEW, "again": NEW}
    wrong = [
        (given | {"old": "none of it at all"}, "ame or password is wrong"),
        (given | {"again": "x"}, "typed in two ways"),
        (given | {"new": "short", "again": "short"}, "has 5 characters"),
    ]
    for fields, problem in wrong:
        refused = mine.post("/account/password", fields)
        assert refused.status_code in (401, 403, 422), problem
        assert problem in refused.text
        assert NEW not in refused.text
    done = mine.post("/account/password", given)
    assert done.status_code == 303
    assert other.get("/account").status_code == 303, "other devices were logged out"
    mine.headers = {"cookie": f"{COOKIE}={done.cookies[COOKIE]}"}
    assert "password is another one" in mine.get("/account?done=password").text
    assert web.site.accounts.log_in("T. Example", NEW).name == "T. Example"
    with pytest.raises(LoginError):
        web.site.accounts.log_in("T. Example", "first words in a row")


def test_an_admin_makes_and_changes_accounts_and_each_change_is_a_record(web, admin):
    before = sum(head.sequence for head in web.log.heads().values())
    made = {"name": "N. Example", "password": NEW, "role_operator": "yes", "role_auditor": "yes"}
    assert admin.post("/accounts/add", made).status_code == 303
    assert web.site.accounts.log_in("N. Example", NEW).roles == {"operator", "auditor"}
    name = {"name": "N. Example"}
    roles = admin.post("/accounts/roles", name | {"role_reviewer": "yes"})
    assert roles.status_code == 303
    assert admin.post("/accounts/passwd", name | {"password": NEW[::-1]}).status_code == 303
    user = web.site.accounts.log_in("N. Example", NEW[::-1])
    assert user.roles == {"reviewer"}
    assert admin.post("/accounts/remove", name).status_code == 303
    with pytest.raises(LoginError):
        web.site.accounts.log_in("N. Example", NEW[::-1])
    records = list(web.log.records())[before:]
    assert [(one.kind, one.by, one.via) for one in records if one.kind == "account"] == [
        ("account", "chief", "web")
    ] * 4
    page = admin.get("/account").text
    assert "N. Example" in page
    assert "closed" in page


@pytest.mark.parametrize(
    ("what", "fields", "problem"),
    [
        ("add", {"name": "X", "password": "short", "role_operator": "yes"}, "has 5 characters"),
        ("add", {"name": "X", "password": NEW}, "give one or more of operator"),
        ("roles", {"name": "nobody", "role_operator": "yes"}, "there is no account"),
        ("else", {"name": "X"}, "here is no form else"),
    ],
)
def test_what_is_no_account_is_refused(web, admin, what, fields, problem):
    answer = admin.post(f"/accounts/{what}", fields)
    assert answer.status_code == 422
    assert problem in answer.text.replace("&#39;", "'")
    assert web.site.accounts.find("X") is None


@pytest.mark.parametrize("who", ["operator", "reviewer", "auditor"])
def test_accounts_are_for_admins_alone_and_an_admin_judges_nothing(web, admin, browse, who):
    browser = browse(who)
    assert "Everybody" not in browser.get("/account").text
    made = {"name": "X", "password": NEW, "role_admin": "yes"}
    assert browser.post("/accounts/add", made).status_code == 403
    assert web.site.accounts.find("X") is None
    assert admin.post("/times", {"robot": "ur5e"}).status_code == 403
    assert admin.get("/export").status_code == 403
    assert "Report an incident" not in admin.get("/incidents").text


# Hours -----------------------------------------------------------------------------------------


def test_hours_are_logged_by_the_clock_or_for_a_month(web, browse):
    reviewer, before = browse("reviewer"), hours(web.log).total()
    clock = {"robot": "ur5e", "mode": "autonomous", "start": "2026-03-01T09:00:00Z"}
    done = reviewer.post("/times", clock | {"end": "2026-03-01T11:30:00Z"})
    assert done.status_code == 303, done.text
    assert "are in the log as cell-1/" in reviewer.get(done.headers["location"]).text
    month = {"robot": "ur5e", "mode": "manual", "period": "2026-01", "hours": "40", "km": "120.5"}
    assert reviewer.post("/times", month).status_code == 303
    assert hours(web.log).total() - before == pytest.approx(42.5)
    page = reviewer.get("/safety").text
    assert "120.5" in page
    assert "Kilometres" in page


def test_kilometres_of_a_quarter_alone_leave_hours_unknown_and_rates_say_so(web, browse):
    reviewer = browse("reviewer")
    browse("operator").report(robot="no meter", happened="2026-02-01T09:30:00")
    quarter = {"robot": "no meter", "mode": "autonomous", "period": "2026-Q1", "km": "50"}
    # Without hours of any robot there is no rate that could be without an incident.
    other = {"robot": "metered", "mode": "autonomous", "period": "2026-02", "hours": "10"}
    for given in (quarter, other):
        assert reviewer.post("/times", given).status_code == 303
    assert [row.hours for row in hours(web.log).rows if row.robot == "no meter"] == [None]
    page = reviewer.get("/safety").text
    assert "Rates per h are without 1 incident of no meter while no hours of it are known." in page
    assert "without 1 incident of no meter while no hours were known" in page, "beside the score"
    assert "hours not known, 50 km" in page
    counted, listed = re.search(r"count</dt>\s*<dd>(\d+)", page), page.split("per 1,000 h", 1)[1]
    sums = map(int, re.findall(r'data-label="Incidents">(\d+)<', listed.split("</table>")[0]))
    assert counted is not None
    assert int(counted[1]) == sum(sums)
    trends = reviewer.get("/trends?months=36&zone=Europe/Berlin")
    assert trends.status_code == 200
    assert "Sum not counted" in trends.text
    assert reviewer.get("/trends?zone=Mars").status_code == 422


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"end": "2026-03-01T08:00:00Z"}, "End: is not after the begin"),
        ({"period": "January", "hours": "3"}, "is no period; write it like"),
        ({"period": "2026-01"}, "Hours: say how many hours or kilometres"),
        ({"period": "2026-01", "hours": "3,5"}, "'3,5' is not a number"),
        ({"period": "2026-01", "hours": "900"}, "are more than the 744 h"),
        ({"mode": ""}, "choose one"),
    ],
)
def test_hours_that_cannot_be_are_refused_and_what_was_typed_stays(web, browse, fields, problem):
    before = web.log.heads()
    given = {"robot": "typed arm", "mode": "autonomous", "start": "2026-03-01T09:00:00Z"}
    answer = browse("reviewer").post("/times", given | {"end": "2026-03-01T10:00:00Z"} | fields)
    assert answer.status_code == 422
    assert problem in answer.text.replace("&#39;", "'")
    assert 'value="typed arm"' in answer.text
    assert web.log.heads() == before


@pytest.mark.parametrize(
    ("problem", "field"),
    [
        ("robot: say which robot it was", "robot"),
        ("start_ns: is not before end_ns", "start"),
        ("when: 'x' is not a time", "happened"),
        ("injuries.1.days_away: must be", "injury_1_days_away"),
        ("hospital: answers are yes, no", "answer_hospital"),
        ("incident lab/2 cannot be closed: it is open", ""),
    ],
)
def test_a_refusal_names_the_field_it_stands_beside(problem, field):
    assert field_of(problem) == field
