"""The interface for programs."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from robo_eval_incidents.record import content_digest
from robo_eval_incidents.web.app import API

REPORT: dict[str, Any] = {
    "happened_ns": 1_772_000_000 * 10**9,
    "robot": "ur5e",
    "side": "real",
    "severity": "near_miss",
    "category": "protective_stop",
    "description": "stopped before the fixture",
}


def post(web, who, path, body, code=201):
    answer = web.client.post(f"{API}{path}", json=body, headers=web.headers[who])
    assert answer.status_code == code, answer.text
    return answer.json()


def get(web, who, path, code=200, **query):
    answer = web.client.get(f"{API}{path}", params=query, headers=web.headers[who])
    assert answer.status_code == code, answer.text
    return answer.json()


def report(web, who="operator", **fields):
    return post(web, who, "/incidents", REPORT | fields)["record_id"]


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
    at = f"/incidents/{name}"
    detail = post(web, "reviewer", f"{at}/closures", {"note": "done"}, 409)["detail"]
    assert "it needs a review by somebody else than" in detail
    post(web, "reviewer", f"{at}/reviews", {"verdict": "confirmed", "note": "seen"})
    action = post(web, "second", f"{at}/actions", {"what": "lower it", "owner": "operator"})
    shown = get(web, "operator", at)
    assert shown["status"] == "acting"
    assert shown["reviewers"] == ["reviewer", "operator"]
    assert shown["actions"][0]["is_effective"] is None
    check = {"action_id": action["record_id"], "is_effective": True, "how": "50 trials"}
    post(web, "second", f"{at}/checks", check)
    post(web, "second", f"{at}/closures", {"note": "done"})
    shown = get(web, "operator", at)
    assert (shown["status"], shown["open_points"]) == ("closed", [])
    assert [record["via"] for record in shown["records"]] == ["api"] * 5
    assert {record["by"] for record in shown["records"]} == {"operator", "reviewer", "second"}


def test_operators_correct_and_attach_to_what_they_reported_themselves(web) -> None:
    name = report(web)
    at = f"/incidents/{name}"
    fix = {"fields": {"robot": "ur10e"}, "reason": "the other arm"}
    assert "themselves" in post(web, "colleague", f"{at}/corrections", fix, 403)["detail"]
    post(web, "operator", f"{at}/corrections", fix)
    post(web, "operator", f"{at}/attachments", {"evidence": [{"uri": "incidents/a.mcap"}]})
    shown = get(web, "operator", at)
    assert shown["report"]["robot"] == "ur10e"
    assert shown["evidence"][0]["uri"] == "incidents/a.mcap"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("reviews", {"verdict": "confirmed", "note": "seen"}),
        ("reclassifications", {"severity": "minor", "category": "collision", "reason": "contact"}),
        ("actions", {"what": "lower it", "owner": "operator"}),
        ("closures", {"note": "done"}),
        (
            "checks",
            {"action_id": str(uuid.UUID(int=1)), "is_effective": True, "how": "50 trials"},
        ),
    ],
)
def test_only_reviewers_judge(web, path: str, body: dict[str, Any]) -> None:
    name = report(web)
    for who in ("operator", "auditor"):
        before = web.log.heads()
        assert "role" in post(web, who, f"/incidents/{name}/{path}", body, 403)["detail"]
        assert web.log.heads() == before


@pytest.mark.parametrize("path", ["/incidents", "/nils"])
def test_auditors_change_nothing(web, path: str) -> None:
    nil = {"start_ns": 1, "end_ns": 2}
    post(web, "auditor", path, nil if path == "/nils" else REPORT, 403)


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
    given = REPORT | {"record_id": str(uuid.uuid4())}
    first = post(web, "operator", "/incidents", given)
    before = web.log.heads()
    assert post(web, "operator", "/incidents", given) == first
    other = post(web, "operator", "/incidents", given | {"robot": "ur10e"}, 409)
    assert "says something else" in other["detail"]
    assert "says something else" in post(web, "colleague", "/incidents", given, 409)["detail"]
    assert web.log.heads() == before


def test_a_record_cannot_take_the_place_of_another_incident(web) -> None:
    first, second = report(web), report(web)
    review = {"verdict": "confirmed", "note": "seen", "record_id": str(uuid.uuid4())}
    post(web, "reviewer", f"/incidents/{first}/reviews", review)
    post(web, "reviewer", f"/incidents/{second}/reviews", review, 409)
    assert get(web, "reviewer", f"/incidents/{second}")["status"] == "reported"


def test_people_cannot_report_as_a_rule(web) -> None:
    detail = post(web, "operator", "/incidents", REPORT | {"rule": "estop"}, 422)["detail"]
    assert "only a rule drafts" in detail


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
    assert get(web, "auditor", "/exposure")["hours"] == {"real": 0}
    real = get(web, "auditor", "/standing")["sides"]["real"]
    assert real["hours"] is None
    assert real["counts"]["near_miss"] > 0
    assert real["rates_per_1000_h"]["near_miss"]["value"] is None
    assert "robot" in get(web, "auditor", "/standing", 422, robot="no such robot")["detail"]
    get(web, "auditor", "/exposure", 422, since_ns=5, until_ns=5)


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
    head = get(web, "operator", "/heads")["cell-1"]
    assert (head["sequence"], head["sha256"]) == (len(found), found[-1]["sha256"])


def test_verification_is_for_reviewers_and_auditors(web) -> None:
    assert get(web, "auditor", "/verification")["ok"] is True
    get(web, "operator", "/verification", 403)
    assert get(web, "reviewer", "/checkpoints") == []
    get(web, "operator", "/checkpoints", 403)


# What it says of itself --------------------------------------------------------------------------


def test_the_description_is_published_and_names_every_call(web) -> None:
    found = web.client.get(f"{API}/openapi.json").json()
    assert all(path.startswith(API) for path in found["paths"])
    assert f"{API}/incidents/{{incident_id}}/reviews" in found["paths"]
    calls = [call for path in found["paths"].values() for call in path.values()]
    assert len({call["operationId"] for call in calls}) == len(calls) == 23
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
