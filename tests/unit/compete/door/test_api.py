"""Drawn requests: whatever comes over HTTP, an answer that was described, and never an error."""

from __future__ import annotations

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

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)


@pytest.mark.slow
def test_every_call_answers_as_it_is_described(serve: Any) -> None:
    served = serve()
    token = served.team("drawn")
    tokens = st.sampled_from([token, token[:-1], ""]) | PRINTABLE
    shown = st.none() | st.builds(
        "{} {}".format, st.sampled_from(["Bearer", "bearer", "Basic", ""]), tokens
    )
    seen = set()

    def call(case: schemathesis.Case, header: str | None) -> None:
        headers = {} if header is None else {"Authorization": header.strip()}
        answer = case.call(headers=headers)
        seen.add((case.path, answer.status_code))
        case.validate_response(answer, checks=CHECKS)

    def all_calls() -> None:
        schema = schemathesis.openapi.from_url(f"{served.url}v1/openapi.json")
        for result in schema.get_all_operations():
            hypothesis.settings(
                max_examples=60, deadline=None, database=None,
                suppress_health_check=list(HealthCheck),
            )(given(result.ok().as_strategy(), shown)(call))()  # fmt: skip

    all_calls()
    served.ledger.close()
    served.ledger.reveal()
    all_calls()
    assert seen >= {
        ("/v1/competition", 200), ("/v1/me", 200), ("/v1/me", 401), ("/v1/record", 409),
        ("/v1/record", 200),
    }  # fmt: skip
