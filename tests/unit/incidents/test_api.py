"""The interface for programs."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from robo_eval_incidents.kinds import KINDS
from robo_eval_incidents.record import content_digest
from robo_eval_incidents.web.app import API
from tests.unit.incidents.conftest import REPORT


def post(web, who, kind, fields, about=None, code=201, **more):
    more |= {"about": about} if about else {}
    return web.record(who, kind, fields, code=code, **more)


def get(web, who, path, code=200, **query):
    answer = web.client.get(f"{API}{path}", params=query, headers=web.headers[who])
    assert answer.status_code == code, answer.text
    return answer.json()


def report(web, who="operator", **fields):
    return post(web, who, "report", REPORT | fields)["record_id"]


# Sessions --------------------------------------------------------------------------------------


def test_a_session_begins_is_used_and_ends(web) -> None:
    sent = {"name": "operator", "password": "operator has a password"}
    token = web.client.post(f"{API}/session", json=sent).json()
    assert token["roles"] == ["operator"]
    headers = {"authorization": f"Bearer {token['token']}"}
    assert web.client.get(f"{API}/session", headers=headers).json()["user"] == "operator"
    assert web.client.delete(f"{API}/session", headers=headers).status_code == 204
    answer = web.client.get(f"{API}/session", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("name", ["operator", "nobody"])
def test_a_wrong_password_opens_nothing(web, name: str) -> None:
    answer = web.client.post(f"{API}/session", json={"name": name, "password": "wrong"})
    assert answer.status_code == 401
    assert "name or password" in answer.json()["detail"]


def test_a_cookie_opens_nothing_here_and_a_token_no_page(web) -> None:
    cookies, _ = web.cookies("reviewer")
    header = {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
    assert web.client.get(f"{API}/incidents", headers=header).status_code == 401
    token = web.headers["reviewer"]["authorization"].partition(" ")[2]
    answer = web.client.get("/incidents", headers={"cookie": f"{next(iter(cookies))}={token}"})
    assert answer.status_code == 303
    assert "/login" in answer.headers["location"]


def test_name_and_password_can_come_with_a_call(web) -> None:
    answer = web.client.get(f"{API}/session", auth=("auditor", "auditor has a password"))
    assert answer.json() == {"user": "auditor", "roles": ["auditor"]}


# From report to closure --------------------------------------------------------------------------


def test_a_major_incident_goes_its_way(web) -> None:
    name = report(web, severity="major", category="force_limit")
    detail = post(web, "reviewer", "closure", {"note": "done"}, name, 409)["detail"]
    assert "it needs a review by somebody else than" in detail
    post(web, "reviewer", "review", {"verdict": "confirmed", "note": "seen"}, name)
    action = post(web, "second", "action", {"what": "lower it", "owner": "operator"}, name)
    shown = get(web, "operator", f"/incidents/{name}")
    assert shown["status"] == "acting"
    assert shown["reviewed_by"] == ["reviewer"]
    assert shown["open_actions"] == [{"what": "lower it", "owner": "operator", "due": None}]
    assert shown["open"]
    check = {"action_id": action["record_id"], "is_effective": True, "how": "50 trials"}
    post(web, "second", "effectiveness", check, name)
    post(web, "second", "closure", {"note": "done"}, name[:8])
    shown = get(web, "operator", f"/incidents/{name}")
    assert (shown["status"], shown["open"], shown["open_actions"]) == ("closed", [], [])
    assert [record["via"] for record in shown["records"]] == ["api"] * 5
    assert {record["by"] for record in shown["records"]} == {"operator", "reviewer", "second"}
    assert [record["body"].get("note") for record in shown["records"]][1] == "seen"


def test_operators_correct_and_attach_to_what_they_reported_themselves(web) -> None:
    name = report(web)
    fix = {"fields": {"robot": "ur10e"}, "reason": "the other arm"}
    assert "themselves" in post(web, "colleague", "correction", fix, name, 403)["detail"]
    post(web, "operator", "correction", fix, name)
    post(web, "operator", "attachment", {"evidence": [{"uri": "incidents/a.mcap"}]}, name)
    shown = get(web, "reviewer", f"/incidents/{name}")
    assert [record["kind"] for record in shown["records"]] == ["report", "correction", "attachment"]
    assert shown["evidence"][0]["uri"] == "incidents/a.mcap"


FIELDS: dict[str, dict[str, Any]] = {
    "report": REPORT,
    "correction": {"fields": {"robot": "ur10e"}, "reason": "the other arm"},
    "reclassification": {"severity": "minor", "category": "collision", "reason": "contact"},
    "attachment": {"evidence": [{"uri": "incidents/a.mcap"}]},
    "review": {"verdict": "confirmed", "note": "seen"},
    "action": {"what": "lower it", "owner": "operator"},
    "effectiveness": {
        "action_id": str(uuid.UUID(int=1)),
        "is_effective": True,
        "how": "50 trials",
    },
    "closure": {"note": "done"},
    "nil": {"start_ns": 1, "end_ns": 2},
    "exposure": {
        "robot": "ur5e",
        "side": "real",
        "mode": "autonomous",
        "start_ns": 1,
        "seconds": 60.0,
    },
    "withdrawal": {"withdrawn_id": str(uuid.UUID(int=1)), "reason": "typed twice"},
    "opened": {"software": "mine"},
    "redaction": {
        "redacted_id": str(uuid.UUID(int=1)),
        "subject_id": str(uuid.UUID(int=1)),
        "field": "description",
        "reason": "a name",
    },
    "view": {},
    "refusal": {"attempts": 1, "since_ns": 1},
    "notice": {"what": "critical", "to": "webhook h", "text": "x"},
    "account": {"user": "mallory", "roles": ["auditor"]},
}


def test_there_is_a_case_of_every_kind() -> None:
    assert FIELDS.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_a_kind_is_for_its_role(web, kind: str) -> None:
    about = report(web, "colleague") if KINDS[kind].about_incident else None
    role = KINDS[kind].role
    before = web.log.heads()
    if role is None:
        detail = post(web, "reviewer", kind, FIELDS[kind], about, 422)["detail"]
        assert detail.startswith(f"kind: is '{kind}'; there are 'report', ")
    elif role == "reviewer":
        detail = post(web, "operator", kind, FIELDS[kind], about, 403)["detail"]
        assert "needs the role reviewer" in detail
    if role is not None:
        assert "role" in post(web, "auditor", kind, FIELDS[kind], about, 403)["detail"]
    assert web.log.heads() == before


def test_hours_are_recorded_by_a_reviewers_program(web) -> None:
    name = post(web, "reviewer", "exposure", FIELDS["exposure"])["record_id"]
    assert get(web, "operator", "/hours")["hours"]["real"] == pytest.approx(1 / 60)
    post(web, "reviewer", "withdrawal", {"withdrawn_id": name, "reason": "typed twice"})
    assert get(web, "operator", "/hours")["hours"]["real"] == 0
    assert get(web, "operator", "/times")["times"][0]["withdrawn_by"] == "reviewer"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"fields": REPORT}, "kind: is missing"),
        ({"kind": "closing", "fields": {}}, "kind: is 'closing'; there are 'report'"),
        ({"kind": "report", "fields": REPORT | {"severity": "bad"}}, "severity: "),
        ({"kind": "report", "fields": REPORT | {"rule": "estop"}}, "rule: only a rule drafts"),
        ({"kind": "report", "fields": REPORT, "about": "12345678"}, "report.about: "),
        ({"kind": "closure", "fields": {"note": "done"}}, "closure.about: "),
        ({"kind": "nil", "fields": {"start_ns": 2, "end_ns": 1}}, "start_ns is not before"),
        ([], ""),
    ],
)
def test_what_is_wrong_is_said_in_one_line(web, body: object, said: str) -> None:
    before = web.log.heads()
    answer = web.client.post(f"{API}/records", json=body, headers=web.headers["reviewer"])
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(said)
    assert web.log.heads() == before


def test_auditors_see_who_looked_at_critical_incidents(web) -> None:
    name = report(web, severity="critical")
    for _ in range(2):
        get(web, "colleague", f"/incidents/{name}")
    assert "view" not in {r["kind"] for r in get(web, "operator", f"/incidents/{name}")["records"]}
    views = [
        record["by"]
        for record in get(web, "auditor", f"/incidents/{name}")["records"]
        if record["kind"] == "view"
    ]
    assert views.count("colleague") == 1
    get(web, "operator", "/records", 403)
    kinds = {json.loads(r["content"])["kind"] for r in get(web, "auditor", "/records")["records"]}
    assert {"view", "account", "report"} <= kinds


def test_reading_records_of_a_critical_incident_is_a_view_of_it(web) -> None:
    after = web.log.heads()["cell-1"].sequence
    name = report(web, severity="critical")
    for _ in range(2):
        get(web, "auditor", "/records", station="cell-1", after=after)
    views = [record for record in web.log.incident(name).records if record.kind == "view"]
    assert [(view.by, view.via) for view in views] == [("auditor", "api")]


# Sending twice -----------------------------------------------------------------------------------


def test_the_same_id_twice_is_one_record(web) -> None:
    same = {"record_id": str(uuid.uuid4())}
    first = post(web, "operator", "report", REPORT, **same)
    before = web.log.heads()
    assert post(web, "operator", "report", REPORT, **same) == first
    other = post(web, "operator", "report", REPORT | {"robot": "ur10e"}, None, 409, **same)
    assert "says something else" in other["detail"]
    again = post(web, "colleague", "report", REPORT, None, 409, **same)
    assert "says something else" in again["detail"]
    assert web.log.heads() == before


def test_a_record_cannot_take_the_place_of_another_incident(web) -> None:
    first, second = report(web), report(web)
    same = {"record_id": str(uuid.uuid4())}
    post(web, "reviewer", "review", FIELDS["review"], first, **same)
    post(web, "reviewer", "review", FIELDS["review"], second, 409, **same)
    assert get(web, "reviewer", f"/incidents/{second}")["status"] == "reported"


# Lists -------------------------------------------------------------------------------------------


def test_lists_are_filtered_and_go_on(web) -> None:
    for number in range(5):
        report(web, robot="lister", happened_ns=REPORT["happened_ns"] + number)
    page = get(web, "operator", "/incidents", robot="lister", limit=2)
    found = [row["happened_ns"] for row in page["rows"]]
    while page["next"] is not None:
        page = get(web, "operator", "/incidents", robot="lister", limit=2, after=page["next"])
        found += [row["happened_ns"] for row in page["rows"]]
    assert found == [REPORT["happened_ns"] + number for number in (4, 3, 2, 1, 0)]
    since = get(web, "operator", "/incidents", robot="lister", since_ns=found[1])
    assert len(since["rows"]) == 2
    assert get(web, "operator", "/incidents", robot="lister", severity="critical")["rows"] == []


def test_hours_and_standing_are_those_of_the_log(web) -> None:
    assert get(web, "auditor", "/hours")["hours"] == {"real": 0}
    real = get(web, "auditor", "/standing")["sides"]["real"]
    assert real["hours"] is None
    assert real["counts"]["near_miss"] > 0
    assert real["rates_per_1000_h"]["near_miss"]["value"] is None
    assert "robot" in get(web, "auditor", "/standing", 422, robot="no such robot")["detail"]
    get(web, "auditor", "/hours", 422, since_ns=5, until_ns=5)


def test_what_is_left_to_do_goes_on(web) -> None:
    ids = {report(web, robot="left", severity=one) for one in ("major", "minor", "minor")}
    found = get(web, "auditor", "/todo", robot="left", limit=2)
    assert (found["count"], found["next"]) == (3, 2)
    assert [one["counted_severity"] for one in found["rows"]] == ["major", "minor"]
    assert found["rows"][0]["steps"][0]["not_by"] == ["operator"]
    rest = get(web, "auditor", "/todo", robot="left", limit=2, after=found["next"])
    assert rest["next"] is None
    assert {one["incident_id"] for one in found["rows"] + rest["rows"]} == ids
    assert get(web, "operator", "/todo", robot="left", overdue=True)["rows"] == []
    assert "unknown robot" in get(web, "operator", "/todo", 422, robot="no robot")["detail"]


def test_records_are_what_the_chain_is_made_of(web) -> None:
    report(web)
    found, after = [], 0
    while after is not None:
        page = get(web, "auditor", "/records", station="cell-1", after=after, limit=17)
        found += page["records"]
        after = page["next"]
    assert [one["number"] for one in found] == list(range(1, len(found) + 1))
    assert all(one["sha256"] == content_digest(one["content"]) for one in found)
    head = web.log.heads()["cell-1"]
    assert (head.sequence, head.sha256) == (len(found), found[-1]["sha256"])


def test_verification_is_for_reviewers_and_auditors(web) -> None:
    assert get(web, "auditor", "/verification")["ok"] is True
    get(web, "operator", "/verification", 403)
    assert get(web, "reviewer", "/checkpoints") == []
    get(web, "operator", "/checkpoints", 403)


# What it says of itself --------------------------------------------------------------------------


def test_the_description_is_published_and_names_every_call(web) -> None:
    found = web.client.get(f"{API}/openapi.json").json()
    assert all(path.startswith(API) for path in found["paths"])
    assert f"{API}/records" in found["paths"]
    calls = [call for path in found["paths"].values() for call in path.values()]
    assert len({call["operationId"] for call in calls}) == len(calls) == 13
    open_calls = [call["summary"] for call in calls if not call.get("security")]
    assert open_calls == ["Log In"]
    assert "HTTPValidationError" not in json.dumps(found)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "/no-such", 404), ("PUT", "/incidents", 405), ("GET", "/incidents/abcdef0123", 404)],
)
def test_what_is_not_there_is_said_in_json(web, method: str, path: str, code: int) -> None:
    answer = web.client.request(method, f"{API}{path}", headers=web.headers["operator"])
    assert answer.status_code == code
    assert list(answer.json()) == ["detail"]
