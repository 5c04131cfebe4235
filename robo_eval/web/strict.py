"""How a request of a program is read, and how it is told what was wrong: strictly, in one line."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final, NoReturn

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

from robo_eval.core.errors import InputError
from robo_eval.web.errors import LoggedOutError

MOST_DEPTH: Final = 20
"""How deeply lists and objects of a body are nested at most."""
_MOST_SHOWN: Final = 400


class BodyError(InputError):
    """The body of a request is not JSON, or not JSON that means one thing."""


def strict_json(data: bytes) -> Any:
    """What a JSON text says, if it can be read in one way only.

    Raises:
        BodyError: If it is not UTF-8 or no JSON, gives a key twice, or holds NaN or infinity, or
            is nested too deeply.
    """
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
    except BodyError:
        raise
    except (ValueError, RecursionError) as err:
        raise BodyError(f"the body is not JSON in UTF-8: {err!s:.120}") from err
    if _depth(found) > MOST_DEPTH:
        raise BodyError(f"the body is nested more than {MOST_DEPTH} deep")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BodyError(f"the body gives {twice!r:.60} twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise BodyError(f"the body holds {text}, which is not a number in JSON")


def _depth(value: Any) -> int:
    """How deeply something is nested; counted no further than is allowed."""
    level, depth = [value], 0
    while level and depth <= MOST_DEPTH:
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        is_nested = any(isinstance(one, dict | list) for one in level)
        level, depth = inner, depth + is_nested
    return depth


class StrictRequest(Request):
    """A request whose body is read strictly."""

    async def json(self) -> Any:
        """What the body says."""
        data = await self.body()
        try:
            return strict_json(data)
        except BodyError as err:
            raise HTTPException(400, str(err)) from err


class StrictRoute(APIRoute):
    """A call whose body is read strictly, and whose errors are one line of JSON.

    Attributes:
        body: What a body consists of, for messages.
    """

    body: ClassVar[str] = "JSON"

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """What answers a request."""
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handler(StrictRequest(request.scope, request.receive))
            except RequestValidationError as err:
                return problem(422, _first(err, self.body))
            except HTTPException as err:
                return problem(err.status_code, str(err.detail))
            except InputError as err:
                return problem(
                    err.http_status, str(err), is_logged_out=isinstance(err, LoggedOutError)
                )

        return answer


def problem(status: int, text: str, *, is_logged_out: bool = False) -> Response:
    """What says why nothing was done."""
    # Not `Basic`: a browser would ask for a password, keep it, and send it with every call.
    headers = {"www-authenticate": 'Bearer realm="robo-eval"'} if is_logged_out else None
    # Half of a character that is written in two has no bytes.
    line = " ".join(text.encode("utf-8", "backslashreplace").decode().split())
    return JSONResponse({"detail": line[:_MOST_SHOWN]}, status_code=status, headers=headers)


def _first(err: RequestValidationError, body: str) -> str:
    errors = err.errors()
    first = errors[0]
    cause = first.get("ctx", {})
    if isinstance(cause.get("error"), InputError):
        return str(cause["error"])
    tag = cause.get("discriminator", "").strip("'")
    if first["type"] == "union_tag_not_found":
        return f"{tag}: is missing; the body is {body}"
    if first["type"] == "union_tag_invalid":
        return f"{tag}: is {cause['tag']!r:.60}; there are {cause['expected_tags']}"
    place = [str(part) for part in first["loc"]]
    named = place[1:] if place[:1] in (["body"], ["query"], ["path"]) else place
    field = ".".join(named)[:80]
    text = str(first["msg"]).removeprefix("Value error, ")
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{field}: {text:.280}{more}" if field else f"{text:.280}{more}"
