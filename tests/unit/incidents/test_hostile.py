"""Malformed and hostile input: a clean refusal that changes nothing, or text that stays text."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from robo_eval.core.errors import InputError
from robo_eval_incidents import open_log
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.kinds import KINDS, Attachment
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.web.app import API
from robo_eval_incidents.words import Via
from tests.unit.incidents.conftest import HAPPENED_NS, REPORT

NOBODY = "0190b6a0-0000-7000-8000-000000000000"

SCRIPTS = (
    "<script>window.harmed = 1</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' autofocus onfocus='alert(1)",
    "javascript:alert(1)",
    "</textarea><script>alert(1)</script>",
    "{{ 7 * 7 }}{% for x in ().__class__.__bases__ %}{% endfor %}",
    "${7*7} #{7*7} <%= 7*7 %>",
)
SQL = (
    "'; DROP TABLE records; --",
    "' OR '1'='1",
    "1) UNION SELECT password_hash FROM users --",
    "%' ESCAPE '!' OR 1=1 --",
    "\\'; DELETE FROM stations WHERE ''='",
)
OTHER = (
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "%s%n%x %(name)s {0.__class__}",
    "$(touch /tmp/harmed) `id` ; rm -rf /",
    "e\u0301\u0301\u0301 ﷽ 🤖 中文",
    "&lt;b&gt; &amp;amp; &#60;",
    "../../../../etc/passwd",
    "a\nb\n\nc",
)
UNPRINTABLE = {
    "null": "a\x00b",
    "escape": "a\x1b[31mb",
    "bell": "a\x07b",
    "delete": "a\x7fb",
    "c1": "a\x9bb",
    "override": "a\u202eb",
    "embedding": "a\u202ab",
    "isolate": "a\u2066b",
    "mark": "a\u200fb",
    "surrogate": "a\ud800b",
}
PATHS = (
    "../incidents.db", "../../etc/passwd", "/etc/passwd", "a/../../b.mcap", "..", ".",
    "..\\..\\windows\\win.ini", "C:\\boot.ini", "file:///etc/passwd", "https://evil.example/a.mcap",
    "//evil.example/a.mcap", "a\x00.mcap", "a/\u202e/b.mcap", "", " ", "a" * 501, "\\\\host\\share",
    "incidents/../../../root/.ssh/id_rsa",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request that has to be refused."""

    name: str
    path: str = "/records"
    content: bytes = b""
    method: str = "POST"
    who: str | None = "operator"
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    codes: tuple[int, ...] = (422,)


def case(name: str, body: Any, kind: str = "report", **more: Any) -> Case:
    sent = {"kind": kind, "fields": body}
    if KINDS[kind].about_incident:
        sent["about"] = "{id}"
    return Case(name=name, content=json.dumps(sent).encode(), **more)


def raw(name: str, content: bytes, **more: Any) -> Case:
    return Case(name=name, content=content, **({"codes": (400,)} | more))


def fields() -> list[Case]:
    """Reports with one field that cannot be."""
    cases = []
    lengths = {"description": 8_001, "robot": 121, "episode_id": 201, "policy": 201, "task": 201}
    for name, length in lengths.items():
        cases.append(case(f"{name} of {length}", REPORT | {name: "x" * length}))
        cases += [case(f"{name} {k}", REPORT | {name: v}) for k, v in UNPRINTABLE.items()]
        cases += [case(f"{name} {v!r}", REPORT | {name: v}) for v in (7, ["x"], {"x": 1}, True)]
    for name in ("description", "robot"):
        cases += [case(f"{name} {v!r}", REPORT | {name: v}) for v in ("", "   ", None)]
    for name in ("side", "severity", "category", "engagement"):
        wrong = ("", "CRITICAL", "critical ", *SQL[:2], *SCRIPTS[:1], None, 0, ["real"])
        cases += [case(f"{name} {v!r}", REPORT | {name: v}) for v in wrong]
    times = (
        -1,
        2**63,
        2**64,
        10**300,
        1.5,
        "now",
        "2026-03-01",
        True,
        None,
        [HAPPENED_NS],
        "\x00",
        -(10**30),
    )
    cases += [case(f"happened_ns {str(v)[:30]}", REPORT | {"happened_ns": v}) for v in times]
    for name in ("happened_ns", "robot", "severity", "description"):
        left = {key: value for key, value in REPORT.items() if key != name}
        cases.append(case(f"no {name}", left))
    more = {
        "extra": 1, "by": "R. Example", "via": "rule", "station": "other", "sequence": 1,
        "status": "closed", "rule": "estop", "__proto__": {"polluted": True}, "kind": "view",
    }  # fmt: skip
    cases += [case(f"with {name}", REPORT | {name: value}) for name, value in more.items()]
    ids = ("1", "../x", NOBODY.upper() + "A", NOBODY[:-1], NOBODY + "'", "\x00" * 36, 7, "")
    for one in ids:
        sent = {"kind": "report", "fields": REPORT, "record_id": one}
        cases.append(Case(name=f"record_id {one!r:.20}", content=json.dumps(sent).encode()))
    return cases


def parts() -> list[Case]:
    """Reports with quantities, evidence or answers that cannot be."""
    one = {"name": "force", "value": 1.0, "unit": "N"}
    quantities: dict[str, Any] = {
        "51": [one] * 51, "no list": one, "a word": "force", "no name": [one | {"name": ""}],
        "text": [one | {"value": "1 N"}], "none": [one | {"value": None}],
        "a huge number": [one | {"value": 10**400}], "more": [one | {"more": 1}],
    }  # fmt: skip
    cases = [case(f"quantities {k}", REPORT | {"quantities": v}) for k, v in quantities.items()]
    cases += [case(f"uri {uri!r:.40}", REPORT | {"evidence": [{"uri": uri}]}) for uri in PATHS]
    uri = {"uri": "incidents/a.mcap"}
    evidence: dict[str, Any] = {
        "51": [uri] * 51, "backwards": [uri | {"start_ns": 2, "end_ns": 1}],
        "half": [uri | {"start_ns": 2}], "negative": [uri | {"start_ns": -2, "end_ns": -1}],
        "digest": [uri | {"sha256": "AB" * 32}], "short digest": [uri | {"sha256": "ab"}],
    }  # fmt: skip
    cases += [case(f"evidence {k}", REPORT | {"evidence": v}) for k, v in evidence.items()]
    answers: dict[str, Any] = {
        "unknown": {"no_such": "yes"}, "word": {"fatality": "maybe"}, "list": ["fatality"],
        "script": {SCRIPTS[0]: "yes"},
    }  # fmt: skip
    return cases + [case(f"answers {k}", REPORT | {"answers": v}) for k, v in answers.items()]


def texts() -> list[Case]:
    """Bodies that are not JSON, or JSON that can be read in two ways."""
    text = json.dumps({"kind": "report", "fields": REPORT})
    deep = b'{"robot": ' + b"[" * 60 + b"1" + b"]" * 60 + b"}"
    deeper = b"[" * 100_000 + b"]" * 100_000
    form = {"content-type": "application/x-www-form-urlencoded"}
    typed = {
        "form": form, "text": {"content-type": "text/plain"}, "xml": {"content-type": "text/xml"},
        "none": {}, "multipart": {"content-type": "multipart/form-data; boundary=x"},
        "odd": {"content-type": "application/json-patch"}, "broken": {"content-type": "\xff/\xfe"},
    }  # fmt: skip
    return [
        raw("nothing", b"", codes=(422,)),
        raw("a word", b"report"),
        raw("half", text[:-1].encode()),
        raw("a comma too much", text.replace("}", ",}").encode()),
        raw("two", (text + text).encode()),
        raw("single quotes", text.replace('"', "'").encode()),
        raw("a byte order mark", b"\xef\xbb\xbf" + text.encode()),
        raw("UTF-16", text.encode("utf-16")),
        raw("Latin-1", text.replace("fixture", "Stra\u00dfe").encode("latin-1")),
        raw("bytes of no text", text.encode().replace(b"fixture", b"\xff\xfe\xc0\x80")),
        raw("half a character", text.encode().replace(b"fixture", b"\xe4\xb8")),
        raw("NaN", text.replace(str(HAPPENED_NS), "NaN").encode()),
        raw("infinity", text.replace(str(HAPPENED_NS), "Infinity").encode()),
        raw("minus infinity", text.replace(str(HAPPENED_NS), "-Infinity").encode()),
        raw("1e999", text.replace(str(HAPPENED_NS), "1e999").encode(), codes=(400, 422)),
        raw(
            "10,000 digits", text.replace(str(HAPPENED_NS), "1" * 10_000).encode(), codes=(400, 422)
        ),
        raw("a key twice", text.replace("}}", ', "severity": "critical"}}').encode()),
        raw("a key twice within", b'{"quantities": [{"name": "a", "name": "b"}]}'),
        raw("60 deep", deep),
        raw("100,000 deep", deeper),
        raw("a list", b"[" + text.encode() + b"]", codes=(422,)),
        raw("a string", json.dumps(text).encode(), codes=(422,)),
        raw("null", b"null", codes=(422,)),
        raw("a number", b"7", codes=(422,)),
        raw("too long", b'{"description": "' + b"x" * 300_000 + b'"}', codes=(413,)),
        raw("too long in blanks", b" " * 300_000 + text.encode(), codes=(413,)),
        *(
            Case(name=f"as {k}", content=text.encode(), headers=v, codes=(400, 415, 422))
            for k, v in typed.items()
        ),
    ]


def others() -> list[Case]:
    """What is about an incident, in a role that may."""
    deep: Any = 1
    for _ in range(15):
        deep = [deep]
    wrong: dict[str, list[Any]] = {
        "correction": [
            {"fields": {}, "reason": "x"}, {"fields": {"severity": "minor"}, "reason": "x"},
            {"fields": {"rule": "x"}, "reason": "x"}, {"fields": {"robot": ""}, "reason": "x"},
            {"fields": {"robot": "a\u202eb"}, "reason": "x"}, {"fields": {"robot": "ur10e"}},
            {"fields": {"happened_ns": 2**63}, "reason": "x"},
            {"fields": {"robot": deep}, "reason": "x"},
            {"fields": {"quantities": [{"name": "f", "value": "NaN"}]}, "reason": "x"},
            {"fields": {"robot": "ur10e"}, "reason": "x" * 8_001},
            {"fields": {"__class__": "x"}, "reason": "x"}, {"fields": [], "reason": "x"},
        ],
        "reclassification": [
            {"severity": "near_miss", "category": "protective_stop", "reason": "the same"},
            {"severity": "worse", "category": "fire", "reason": "x"},
            {"severity": "minor", "category": "fire"},
        ],
        "attachment": [{"evidence": []}, *({"evidence": [{"uri": uri}]} for uri in PATHS)],
        "review": [
            {"verdict": "fine", "note": "x"}, {"verdict": "confirmed", "note": ""},
            {"verdict": "confirmed", "note": "x", "duplicate_of": NOBODY},
            {"verdict": "dismissed", "note": "x", "duplicate_of": NOBODY},
            {"verdict": "dismissed", "note": "x", "duplicate_of": "../x"},
        ],
        "action": [
            {"what": "x", "owner": ""}, {"what": "x", "owner": "y", "due": "2026-13-45"},
            {"what": "x", "owner": "y", "due": "soon"}, {"what": "\x00", "owner": "y"},
        ],
        "effectiveness": [
            {"action_id": NOBODY, "is_effective": True, "how": "x"},
            {"action_id": "x", "is_effective": True, "how": "x"},
            {"action_id": NOBODY, "is_effective": "perhaps", "how": "x"},
        ],
        "closure": [{"note": "x"}, {"note": "\u2067x"}],
    }  # fmt: skip
    cases = [
        case(f"{what} {n}", body, what, who="reviewer", codes=(404, 409, 422))
        for what, bodies in wrong.items()
        for n, body in enumerate(bodies)
    ]
    nils: list[Any] = [
        {"start_ns": 5, "end_ns": 5}, {"start_ns": 5, "end_ns": 1}, {"start_ns": -5, "end_ns": 1},
        {"start_ns": 0, "end_ns": 2**63}, {"start_ns": "0", "end_ns": 1}, {"start_ns": 0},
        {"start_ns": 0, "end_ns": 1, "note": "x" * 201},
        {"start_ns": 0, "end_ns": 1, "side": "moon"}, {"start_ns": 0, "end_ns": 1, "robot": "\x00"},
    ]  # fmt: skip
    return cases + [case(f"nil {n}", body, "nil") for n, body in enumerate(nils)]


def places() -> list[Case]:
    """Ids, filters and cursors that are none."""
    names = (
        "x", "' OR 1=1", "..%2f..%2fetc%2fpasswd", "%00", "%ff%fe", NOBODY, "a" * 5_000, "0190b6a0",
        "%E2%80%AE", "cell-1%2F1", "{id}x", "-" * 12,
    )  # fmt: skip
    cases = []
    for name in names:
        path = f"/incidents/{name}"
        cases.append(Case(name=f"GET {name:.20}", path=path, method="GET", codes=(404, 422)))
        fields = {"verdict": "confirmed", "note": "x"}
        sent = {"kind": "review", "fields": fields, "about": unquote(name, errors="replace")}
        content = json.dumps(sent).encode()
        cases.append(
            Case(name=f"review {name:.20}", content=content, who="reviewer", codes=(404, 422))
        )
    queries = (
        "side=moon", "severity=' OR 1=1", "since_ns=-1", "since_ns=99999999999999999999",
        "since_ns=NaN", "limit=0", "limit=100000", "limit=-1", "limit=x", "text=%00", "text=%ff",
        "text=%E2%80%AE", f"text={'x' * 300}", "robot=%1b", "after=x", "after=' OR 1=1",
        f"after=9999999999999999999~{NOBODY}", f"after=-1~{NOBODY}", f"after={'9' * 200}",
    )  # fmt: skip
    for query in queries:
        # Bytes of no text come as the character that stands for them, which is a text.
        codes = (200, 422) if query == "text=%ff" else (422,)
        cases.append(
            Case(name=f"?{query:.30}", path=f"/incidents?{query}", method="GET", codes=codes)
        )
    cases += [
        Case(name=f"records?{query}", path=f"/records?{query}", method="GET", who="auditor")
        for query in ("station=../x", "station=%00", "after=-1", "after=1e9", "limit=1000")
    ]
    others = ("/hours?since_ns=5&until_ns=5", "/standing?robot=%00", "/standing?robot=none")
    cases += [Case(name=path, path=path, method="GET") for path in others]
    return cases


def strangers() -> list[Case]:
    """Calls of people who may not."""
    report = json.dumps({"kind": "report", "fields": REPORT}).encode()
    json_type = {"content-type": "application/json"}
    credentials = (
        "Bearer", "Bearer ", "Bearer x", "Bearer " + "x" * 5_000, "Bearer ' OR 1=1 --", "Basic",
        "Basic x", "Basic ====", "Basic eDp5", "Basic /////w==", "Negotiate x", "bearer null",
    )  # fmt: skip
    cases = [
        Case(
            name=f"as {value:.20}", content=report, who=None, codes=(401,),
            headers=json_type | {"authorization": value},
        )
        for value in credentials
    ]  # fmt: skip
    cases.append(Case(name="as nobody", content=report, who=None, codes=(401,)))
    reads = ("/incidents", "/incidents/{id}", "/records", "/hours", "/standing", "/verification")
    cases += [
        Case(name=f"nobody reads {path}", path=path, method="GET", who=None, codes=(401,))
        for path in reads
    ]
    logins: list[Any] = [
        {"name": "operator"}, {"name": "", "password": "x"}, {"name": "a\x00", "password": "x"},
        {"name": "\ud800", "password": "x"}, {"name": "operator", "password": ""},
        {"name": "operator", "password": "x" * 600}, {"name": ["operator"], "password": "x"},
        {"name": "operator", "password": {"$ne": None}},
    ]  # fmt: skip
    cases += [
        Case(name=f"login {n}", path="/session", content=json.dumps(one).encode(), who=None)
        for n, one in enumerate(logins)
    ]
    forbidden = {
        "operator": ("review", "reclassification", "action", "effectiveness", "closure"),
        "auditor": ("review", "correction", "attachment", "action", "closure"),
        "colleague": ("correction", "attachment"),
    }
    bodies = {
        "review": {"verdict": "confirmed", "note": "x"},
        "reclassification": {"severity": "minor", "category": "fire", "reason": "x"},
        "action": {"what": "x", "owner": "y"},
        "effectiveness": {"action_id": NOBODY, "is_effective": True, "how": "x"},
        "closure": {"note": "x"},
        "correction": {"fields": {"robot": "ur10e"}, "reason": "x"},
        "attachment": {"evidence": [{"uri": "a.mcap"}]},
    }
    cases += [
        case(f"{who} {what}", bodies[what], what, who=who, codes=(403,))
        for who, kinds in forbidden.items()
        for what in kinds
    ]
    for who, path in (
        ("operator", "/records"),
        ("reviewer", "/records"),
        ("operator", "/verification"),
    ):
        cases.append(Case(name=f"{who} {path}", path=path, method="GET", who=who, codes=(403,)))
    for method in ("PUT", "DELETE", "PATCH"):
        cases.append(
            Case(name=f"{method} an incident", path="/incidents/{id}", method=method, codes=(405,))
        )
    return cases


CASES = [*fields(), *parts(), *texts(), *others(), *places(), *strangers()]


def test_there_are_enough_of_them() -> None:
    assert len(CASES) > 300
    assert len({one.name for one in CASES}) == len(CASES)


@pytest.fixture(scope="module")
def known(web) -> str:
    """An incident that `operator` reported."""
    return str(web.record("operator", "report", REPORT)["record_id"])


@pytest.mark.parametrize("given", CASES, ids=lambda one: one.name)
def test_a_program_is_refused_and_nothing_changes(web, known: str, given: Case) -> None:
    before = web.log.heads()["cell-1"].sequence
    headers = dict(given.headers) | (web.headers[given.who] if given.who else {})
    answer = web.client.request(
        given.method,
        f"{API}{given.path.replace('{id}', known)}",
        content=given.content.replace(b"{id}", known.encode()),
        headers={name: value.encode("latin-1") for name, value in headers.items()},
    )
    assert answer.status_code in given.codes, answer.text[:300]
    # That somebody could not log in is recorded, and nothing else.
    new = web.log.records(station="cell-1", after=before)
    assert {record.kind for record in new} <= {"refusal"}
    if answer.status_code not in {200, 413}:
        said = answer.json()
        assert list(said) == ["detail"]
        assert said["detail"]
        assert "\n" not in said["detail"]
        assert len(said["detail"]) <= 400
        assert "Traceback" not in said["detail"]


# Text that stays text ----------------------------------------------------------------------------


@pytest.mark.parametrize("said", [*SCRIPTS, *SQL, *OTHER])
def test_what_looks_dangerous_is_kept_as_it_is_and_shown_as_text(web, browse, said: str) -> None:
    given = REPORT | {"description": said, "task": said.replace("\n", " ")}
    name = web.record("operator", "report", given)["record_id"]
    assert web.log.incident(name).report.description == said
    found = web.client.get(
        f"{API}/incidents", params={"text": said.split("\n")[0]}, headers=web.headers["operator"]
    )
    assert name in {row["incident_id"] for row in found.json()["rows"]}
    for path in (f"/incidents/{name}", "/incidents"):
        page = browse("operator").get(path)
        assert page.status_code == 200
        assert said.split("\n")[0] in unescape(page.text)
        if "<" in said or "'" in said or '"' in said:
            assert said not in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
    assert verify_log(web.site.target).ok


# Forms -------------------------------------------------------------------------------------------


def form_cases() -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Fields of the form of a report, as a mapping or as bytes, and how they are answered."""
    cases: dict[str, tuple[Any, tuple[int, ...]]] = {
        "no token": ({"csrf": ""}, (403,)),
        "a foreign token": ({"csrf": "x" * 43}, (403,)),
        "a token of no letters": ({"csrf": "\u202e\x00"}, (403,)),
        "no id": ({"record_id": ""}, (422,)),
        "an odd id": ({"record_id": "../../x"}, (422,)),
        "no time": ({"happened": ""}, (422,)),
        "an odd time": ({"happened": "yesterday"}, (422,)),
        "a time before time": ({"happened": "1969-12-31T23:59"}, (422,)),
        "a time after time": ({"happened": "9999-12-31T23:59"}, (422,)),
        "an odd side": ({"side": "moon"}, (422,)),
        "an odd severity": ({"severity": "<script>"}, (422,)),
        "no severity": ({"severity": ""}, (422,)),
        "an odd category": ({"category": "' OR 1=1"}, (422,)),
        "no robot": ({"robot": " "}, (422,)),
        "a long robot": ({"robot": "x" * 121}, (422,)),
        "a long text": ({"description": "x" * 8_001}, (422,)),
        "no text": ({"description": "\n\n"}, (422,)),
        "an odd quantity": ({"quantities": "force = much"}, (422,)),
        "a quantity that is none": ({"quantities": "force = nan N"}, (422,)),
        "an odd answer": ({"answer_fatality": "perhaps"}, (422,)),
        "bytes of no text": (b"robot=%ff%fe", (400,)),
        "a field twice": (b"robot=a&robot=b", (400,)),
        "many fields": (b"&".join(b"f%d=x" % n for n in range(500)), (400,)),
        "too long": (b"description=" + b"x" * 300_000, (413,)),
        "nothing": (b"", (403,)),
    }
    for name, text in UNPRINTABLE.items():
        if name != "surrogate":  # there are no bytes for it
            cases[f"text with {name}"] = ({"description": text}, (422,))
            cases[f"robot with {name}"] = ({"robot": text}, (422,))
    return cases


FORMS = form_cases()


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_refused_and_nothing_changes(web, browse, name: str) -> None:
    given, codes = FORMS[name]
    operator = browse("operator")
    before = web.log.heads()
    sent = given if isinstance(given, bytes) else operator.REPORT | given
    answer = operator.post("/incidents", sent)
    assert answer.status_code in codes, answer.text[-500:]
    assert web.log.heads() == before
    assert "Traceback" not in answer.text
    assert "<script>window" not in answer.text


def test_a_form_that_is_sent_again_makes_one_record(web, browse) -> None:
    operator = browse("operator")
    sent = operator.REPORT | {"record_id": str(uuid.uuid4())}
    first = operator.post("/incidents", sent)
    assert first.status_code == 303
    before = web.log.heads()
    again = operator.post("/incidents", sent)
    assert again.headers["location"] == first.headers["location"]
    assert operator.post("/incidents", sent | {"robot": "ur10e"}).status_code == 422
    assert web.log.heads() == before


def test_a_form_of_another_session_is_refused(web, browse) -> None:
    one, other = browse("operator"), browse("operator")
    before = web.log.heads()
    assert one.post("/incidents", one.REPORT | {"csrf": other.csrf}).status_code == 403
    assert web.log.heads() == before


@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "cross-site"}, {"content-type": "text/plain"}]
)
def test_a_form_from_elsewhere_is_refused(web, browse, headers: dict[str, str]) -> None:
    operator = browse("operator")
    before = web.log.heads()
    assert operator.post("/incidents", operator.REPORT, headers).status_code == 400
    assert web.log.heads() == before


@pytest.mark.parametrize("what", ["review", "reclassify", "act", "check", "close", "no_such"])
def test_a_form_of_another_role_is_refused(web, browse, known: str, what: str) -> None:
    for who in ("operator", "auditor"):
        somebody = browse(who)
        before = web.log.heads()
        answer = somebody.post(f"/incidents/{known}/{what}", {"note": "x"})
        assert answer.status_code in {403, 404}
        assert web.log.heads() == before


@pytest.mark.parametrize(
    "path",
    [
        "/incidents/new", "/nil", "/safety", "/verify", "/audit", "/export", "/incidents?side=moon",
        f"/incidents?after=9999999999999999999~{NOBODY}", "/incidents?since=never",
        "/incidents/%00", "/incidents/..%2f..", "/safety?since=x", "/safety?robot=%00",
        "/export/incidents.exe", "/export/incidents.html?since=x", "/audit?before=-1",
        "/export/incidents.csv?since=2026-02-30", "/audit?before=99999999999999999999999",
        "/static/../app.py", "/static/%2e%2e/app.py", "/login?next=//evil.example",
        "/nil?recorded=%00", "/incidents?text=%ff%00", "/todo?owner=%00", "/todo?robot=%ff",
        f"/todo?after={'9' * 30}",
    ],
)  # fmt: skip
def test_no_address_is_an_error_of_the_server(web, browse, path: str) -> None:
    before = web.log.heads()
    for who in (None, "operator", "auditor"):
        answer = browse(who).get(path) if who else web.client.get(path)
        assert answer.status_code < 500, answer.text[-300:]
        assert "evil.example" not in answer.headers.get("location", "")
        assert "def make_app" not in answer.text
    assert web.log.heads() == before


# Evidence ----------------------------------------------------------------------------------------


def test_no_file_outside_the_folder_of_evidence_is_handed_out(web, browse, tmp_path: Path) -> None:
    folder = web.site.evidence.root
    folder.mkdir(exist_ok=True)
    (tmp_path / "secret.mcap").write_text("secret")
    (folder / "link.mcap").symlink_to(tmp_path / "secret.mcap")
    (folder / "dir.mcap").mkdir()
    (folder / "loop.mcap").symlink_to(folder / "loop.mcap")
    (folder.parent / "beside.json").write_text("secret")
    names = ("link.mcap", "dir.mcap", "loop.mcap", "none.mcap")
    uris = (
        *(f"incidents/{name}" for name in names),
        "incidents.db",
        "incidents.db-wal",
        "beside.json",
    )
    name = web.record("operator", "report", REPORT)["record_id"]
    body = Attachment.model_validate({"evidence": [{"uri": uri} for uri in uris]})
    web.log.file(body, by="operator", via=Via.CLI, incident_id=name)
    operator = browse("operator")
    for number in (*range(len(uris)), -1, len(uris), 10**30):
        answer = operator.get(f"/incidents/{name}/evidence/{number}")
        assert answer.status_code in {404, 409, 422}
        assert "secret" not in answer.text.replace("secret.mcap", "")
        assert "SQLite" not in answer.text
    assert operator.get(f"/incidents/{name}").status_code == 200


@pytest.mark.parametrize("uri", PATHS)
def test_a_path_that_leads_elsewhere_is_not_recorded(web, browse, known: str, uri: str) -> None:
    before = web.log.heads()
    answer = browse("operator").post(f"/incidents/{known}/attach", {"uri": uri})
    assert answer.status_code in {404, 422}
    assert web.log.heads() == before
    with pytest.raises((InputError, ValueError)):
        Attachment.model_validate({"evidence": [{"uri": uri}]})


# Clocks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump_s", [-400_000_000, -3_600, 3_600, 400_000_000])
def test_a_clock_that_jumps_is_written_down_and_breaks_nothing(
    web, monkeypatch: pytest.MonkeyPatch, jump_s: int
) -> None:
    real = time.time_ns
    password = ("operator", "operator has a password")
    web.record("operator", "report", REPORT)
    with monkeypatch.context() as patched:
        patched.setattr(time, "time_ns", lambda: real() + jump_s * 10**9)
        sent = {"kind": "report", "fields": REPORT}
        answer = web.client.post(f"{API}/records", json=sent, auth=password)
        # A session whose age cannot be known opens nothing, and comes to no harm.
        listed = web.client.get(f"{API}/incidents", headers=web.headers["operator"])
    assert listed.status_code == 401
    record = web.log.find(answer.json()["record_id"])
    assert abs(record.clock_step_ns - jump_s * 10**9) < 10**9
    web.record("operator", "report", REPORT)
    assert verify_log(web.site.target).ok


def test_the_log_still_is_what_was_recorded(web, known: str) -> None:
    report = verify_log(web.site.target)
    assert report.ok, list(report.lines())


def test_a_database_whose_words_are_no_text_is_named_as_damaged(new_log: bytes, tmp_path: Path):
    path = tmp_path / "incidents.db"
    # SQLite repeats the word in its message, which then is no text.
    path.write_bytes(new_log.replace(b"CREATE TABLE users", b"CREATE TABL\xe3 users"))
    with pytest.raises(IncidentLogError, match=r"incidents\.db: is damaged"):
        open_log(path, read_only=True)
