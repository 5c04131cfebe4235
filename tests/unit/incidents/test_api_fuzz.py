"""Drawn requests and records: whatever comes, an answer that was described, and never an error."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from robo_eval.core.errors import InputError
from robo_eval.web.strict import MOST_DEPTH, BodyError, strict_json
from robo_eval_incidents.kinds import KINDS, plain
from robo_eval_incidents.record import content_digest, record_of
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.web.app import API
from tests.unit.incidents.conftest import REPORT

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["real", "minor", "near_miss", "confirmed", "a.mcap", "2026-03-01"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)


# Calls as they are described ---------------------------------------------------------------------


def readable(value: Any) -> Any:
    """The same with texts that people could have written, so that more of it is taken."""
    if isinstance(value, dict):
        return {name: readable(one) for name, one in value.items() if name != "rule"}
    if isinstance(value, list):
        return [readable(one) for one in value]
    if isinstance(value, str):
        return "".join(letter for letter in value if letter.isprintable()).strip(" /.:\\") or "x"
    return value


@pytest.mark.slow
def test_every_call_answers_as_it_is_described(web) -> None:
    """Draws calls from the description, and looks at every answer."""
    schema = schemathesis.openapi.from_asgi(f"{API}/openapi.json", web.client.app)
    name = web.record("operator", "report", REPORT)["record_id"]

    def call(case: schemathesis.Case) -> None:
        # The session in use must not end, and an account that is guessed at locks itself.
        if case.path == f"{API}/session" and case.method != "GET":
            return
        if isinstance(case.path_parameters, dict) and "incident_id" in case.path_parameters:
            case.path_parameters["incident_id"] = name
        if isinstance(case.body, dict) and "about" in case.body:
            case.body["about"] = name
        size = len(str(case.body))
        if size % 4:
            case.body = readable(case.body)
        who = ("reviewer", "reviewer", "auditor", "operator")[size // 4 % 4]
        answer = case.call(headers=web.headers[who])
        case.validate_response(answer, checks=list(CHECKS))

    for result in schema.get_all_operations():
        draw = result.ok().as_strategy()
        run = hypothesis.settings(
            max_examples=150,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )(given(draw)(call))
        run()
    assert verify_log(web.site.target).ok


# Bodies and records ------------------------------------------------------------------------------


@given(kind=st.sampled_from(sorted(KINDS)), values=JSON)
def test_a_body_is_read_or_refused(kind: str, values: Any) -> None:
    with contextlib.suppress(ValueError):
        body = KINDS[kind].model_validate(values)
        again = KINDS[kind].model_validate(json.loads(json.dumps(plain(body))))
        assert plain(again) == plain(body)


@given(data=st.data())
def test_a_field_of_a_report_is_kept_or_refused(data: st.DataObject) -> None:
    report = KINDS["report"]
    name = data.draw(st.sampled_from(sorted(report.model_fields)))
    with contextlib.suppress(ValueError):
        body = report.model_validate(REPORT | {name: data.draw(JSON)})
        assert json.loads(json.dumps(plain(body), allow_nan=False)) == plain(body)


@given(text=st.text(max_size=300) | JSON.map(json.dumps))
def test_a_text_is_a_record_or_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"file: is (no record|of form)"):
        record_of(text, where="file")


def test_a_record_with_another_field_is_read_or_refused(web) -> None:
    record = web.log.find(web.record("operator", "report", REPORT)["record_id"])
    values = json.loads(record.content())

    @given(name=st.sampled_from(sorted(values)), value=JSON)
    def check(name: str, value: Any) -> None:
        content = json.dumps(values | {name: value})
        said = ["file"]
        try:
            found = record_of(content, where="file")
            said.append(content_digest(found.content()))
        except InputError as err:
            said = str(err).splitlines()
        assert said[0].startswith("file")
        assert len(said) == 1 or len(said[1]) == 64

    check()


@given(data=st.binary(max_size=200))
def test_bytes_are_json_or_refused(data: bytes) -> None:
    with contextlib.suppress(BodyError):
        assert json.dumps(strict_json(data), allow_nan=False)


@given(depth=st.integers(1, 3 * MOST_DEPTH), kind=st.sampled_from(["[]", "{}"]))
def test_what_is_nested_too_deeply_is_refused(depth: int, kind: str) -> None:
    text = "[" * depth + "]" * depth if kind == "[]" else '{"a":' * depth + "1" + "}" * depth
    if depth <= MOST_DEPTH:
        strict_json(text.encode())
    else:
        with pytest.raises(BodyError, match="nested"):
            strict_json(text.encode())
