"""What a server shows once its seeds are revealed: all that `check` needs, and no secret."""

from __future__ import annotations

import http.server
import json
import sqlite3
import threading
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from robo_eval.cli.compete_keep import check
from robo_eval.compete.client import play
from robo_eval.compete.ledger import Ledger
from robo_eval.compete.link import SaidNoError
from robo_eval.compete.shown import fetched, lines
from robo_eval.core.errors import CheckFailedError, InputError


class Still:
    def act(self, observation: Any) -> int:
        return 0

    def declare(self) -> float:
        return 0.5


def test_a_revealed_competition_is_checked_by_its_address(
    serve: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = serve()
    token = served.team("alice")
    with pytest.raises(SaidNoError, match="revealed"):
        fetched(served.url, tmp_path / "early")
    assert not (tmp_path / "early").exists()
    env = gymnasium.make("RoboEval/Remote-v0", url=served.url, token=token)
    receipts = []

    class Collecting(Still):
        def reset(self) -> None:
            receipts.append(env.unwrapped.receipt)

    play(env, Collecting())
    receipts.append(env.unwrapped.receipt)
    env.close()
    assert len({*receipts}) == 5  # before each of four episodes, and after the last
    served.ledger.note(None, "refused", "a private word")
    served.ledger.close()
    with pytest.raises(SaidNoError, match="revealed"):
        fetched(served.url, tmp_path / "early")
    served.ledger.reveal()

    check(served.url, replays=2)
    by_url = capsys.readouterr().out
    check(str(served.folder), replays=2)
    assert by_url == capsys.readouterr().out
    check(served.url, replays=0, receipt=receipts[1:])
    commitment = served.ledger.meta()["commitment"]
    assert f"commitment {commitment}" in capsys.readouterr().out
    with pytest.raises(CheckFailedError, match="receipt"):
        check(served.url, replays=0, receipt=["cd" * 32])
    with pytest.raises(CheckFailedError, match="published"):
        check(served.url, replays=0, commitment="ab" * 32)
    capsys.readouterr()
    assert "4 episodes scored again, 2 played again" in by_url
    shown = b"".join(lines(served.ledger)).decode()
    for secret in (token, "a private word", str(served.folder)):
        assert secret not in shown
    with closing(sqlite3.connect(served.folder / "competition.db")) as database:
        (digest,) = database.execute("SELECT token_sha256 FROM teams").fetchone()
        assert digest not in shown
        database.execute("UPDATE attempts SET is_cut = 1")
        database.commit()
    with pytest.raises(CheckFailedError, match="is_cut"):
        check(served.url, replays=0)


@contextmanager
def telling(body: bytes) -> Iterator[str]:
    """A server that shows this and nothing else."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def told(contest: Any, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What a server shows, as it is sent."""
    with Ledger.create(tmp_path_factory.mktemp("shown") / "c", contest.parse()) as ledger:
        contest.play(ledger, contest.team(ledger, "alice"))
        ledger.close()
        ledger.reveal()
        return [json.loads(line) for line in lines(ledger)]


def _another(told: list[dict[str, Any]], change: str) -> list[Any]:
    head, *rest = told
    link = next(one for one in rest if one.get("table") == "links")
    bomb = b64encode(zlib.compress(bytes(65 * 2**20))).decode()
    return {
        "nothing": [],
        "a list": [[1]],
        "no files": [{**head, "files": {}}],
        "another version": [{**head, "version": "9"}],
        "cut off": told[:-1],
        "a row is gone": [head, *rest[1:]],
        "an unknown table": [head, {"table": "servers", "row": {}}],
        "an unknown column": [head, {"table": "links", "row": {**link["row"], "x": 1}}],
        "no base64": [head, {"table": "links", "row": {**link["row"], "actions": "*"}}],
        "a bomb": [head, {"table": "links", "row": {**link["row"], "actions": bomb}}],
        "a huge number": [head, {"table": "teams", "row": {"number": 2**70}}],
        "twice the same": [*told[:3], told[2]],
        "no meta": [{**head, "meta": None}],
    }[change]  # type: ignore[return-value]


@pytest.mark.parametrize(
    "change",
    ["nothing", "a list", "no files", "another version", "cut off", "a row is gone",
     "an unknown table", "an unknown column", "no base64", "a bomb", "a huge number",
     "twice the same", "no meta"],
)  # fmt: skip
def test_whatever_else_is_shown_is_one_line(
    told: list[dict[str, Any]], change: str, tmp_path: Path
) -> None:
    body = "".join(json.dumps(one) + "\n" for one in _another(told, change)).encode()
    with telling(body) as url, pytest.raises(InputError, match=url) as refused:
        fetched(url, tmp_path / "c")
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 400


def test_what_is_nested_too_deeply_is_one_line(tmp_path: Path) -> None:
    with telling(b"[" * 200_000 + b"\n") as url, pytest.raises(InputError, match=url) as refused:
        fetched(url, tmp_path / "c")
    assert "nested too deeply" in str(refused.value)


@pytest.mark.parametrize("broken", ["meta", "reveal"])
def test_what_cannot_be_checked_names_the_server(told: list[dict[str, Any]], broken: str) -> None:
    head, *rest = told
    if broken == "meta":
        head = {**head, "meta": {"code_version": "1"}}
    else:
        head = {**head, "files": {**head["files"], "reveal.json": "[" * 200_000}}
    body = "".join(json.dumps(one) + "\n" for one in [head, *rest]).encode()
    with telling(body) as url, pytest.raises(InputError, match=f"^{url}"):
        check(url, replays=0)


def test_who_sends_a_byte_now_and_then_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robo_eval.compete.shown._START_S", 0.0)
    monkeypatch.setattr("robo_eval.compete.shown._SLOWEST", 1e12)
    with telling(b" " * 100) as url, pytest.raises(InputError, match="too slowly"):
        fetched(url, tmp_path / "c")


def test_no_more_is_taken_than_is_wanted(told: list[dict[str, Any]], tmp_path: Path) -> None:
    body = "".join(json.dumps(one) + "\n" for one in told).encode()
    with telling(body) as url:
        fetched(url, tmp_path / "c", most_bytes=len(body))
        with pytest.raises(InputError, match="larger"):
            fetched(url, tmp_path / "d", most_bytes=len(body) - 1)
