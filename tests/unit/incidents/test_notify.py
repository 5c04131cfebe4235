"""Who has to know is told once, over real connections: a webhook and a mail server here."""

from __future__ import annotations

import email
import hashlib
import hmac
import json
import socketserver
import threading
from collections.abc import Iterator
from datetime import date
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from robo_eval.core.errors import InputError
from robo_eval_incidents.kinds import Action, Effectiveness, Notice, Reclassification, Review
from robo_eval_incidents.notify import SIGNATURE, NotSentError, Settings, notify, untold
from robo_eval_incidents.verify import verify_log

TODAY = date(2026, 3, 15)


class Hook:
    """A program that is told."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.status = 204
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                hook.headers.append(self.headers)
                self.send_response(hook.status)
                self.send_header("location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?token=secret"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [one for body in self.bodies for one in json.loads(body)["events"]]


class Post:
    """A mail server, as far as sending needs one."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.refuses = False
        post = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 here\r\n")
                while line := self.rfile.readline():
                    verb = line[:4].upper()
                    if verb == b"DATA":
                        self.wfile.write(b"354 go\r\n")
                        data = b""
                        while (line := self.rfile.readline()) != b".\r\n":
                            data += line
                        post.mails.append(email.message_from_bytes(data, policy=default))
                    if verb == b"QUIT":
                        self.wfile.write(b"221 bye\r\n")
                        return
                    no = verb == b"RCPT" and post.refuses
                    self.wfile.write(b"550 no\r\n" if no else b"250 ok\r\n")

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.place = f"127.0.0.1:{self.server.server_address[1]}"


def _served(what: Any) -> Iterator[Any]:
    thread = threading.Thread(target=what.server.serve_forever, daemon=True)
    thread.start()
    yield what
    what.server.shutdown()
    what.server.server_close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    yield from _served(Hook())


@pytest.fixture
def post() -> Iterator[Post]:
    yield from _served(Post())


@pytest.fixture
def settings(hook, post) -> Settings:
    return Settings.model_validate({
        "webhook": [{"url": hook.url}], "page": "https://log.example/",
        "mail": {"server": post.place, "sender": "log@lab.example", "to": ["a@lab.example"],
                 "starttls": False},
    })  # fmt: skip


@pytest.fixture
def lab(log, say, report) -> Any:
    """A critical incident, and a minor one with an action that is overdue."""
    critical = say(log, report(severity="critical", description="R. Example was hurt."))
    minor = say(log, report(severity="minor"))
    for due in ("2026-03-14", "2026-03-15"):
        action = Action(what="a longer guard", owner="Operator C", due=due)
        say(log, action, incident_id=minor.record_id, by="B")
    return log, critical, minor


def test_everybody_is_told_once_and_it_is_a_record(lab, settings, hook, post):
    log, critical, minor = lab
    told = notify(log, settings, today=TODAY)
    assert {way: len(new) for way, new in told.items()} == {
        settings.webhook[0].name: 2, "mail to a@lab.example": 2,
    }  # fmt: skip
    assert [(one["what"], one["incident"]) for one in hook.events] == [
        ("critical", critical.name), ("overdue", minor.name),
    ]  # fmt: skip
    assert hook.events[0]["link"] == f"https://log.example/incidents/{critical.record_id}"
    (mail,) = post.mails
    assert mail["subject"] == "Incident log: 1 critical, 1 overdue"
    text = mail.get_content()
    assert f"overdue: action of Operator C, due 2026-03-14, on {minor.name}" in text
    for said in (text, hook.bodies[0].decode()):
        assert "R. Example" not in said, "what happened may name persons"
    again = notify(log, settings, today=TODAY)
    assert {way: len(new) for way, new in again.items()} == dict.fromkeys(told, 0)
    assert (len(hook.bodies), len(post.mails)) == (1, 1)
    notices = [one for one in log.records() if isinstance(one.body, Notice)]
    assert len(notices) == 4
    assert "secret" not in "".join(one.content() for one in notices)
    assert verify_log(log.database.path).ok
    assert log.incident(critical.name).status == "reported", "being told judges nothing"


def test_what_is_new_is_told_and_what_was_settled_is_not(lab, settings, hook, say, report):
    log, _, minor = lab
    notify(log, settings, today=TODAY)
    assert len(notify(log, settings, today=date(2026, 3, 16))[settings.webhook[0].name]) == 1
    actions = log.incident(minor.name).measures
    for action_id in actions:
        body = Effectiveness(action_id=action_id, is_effective=True, how="seen")
        say(log, body, incident_id=minor.record_id, by="B")
    drill = say(log, report(severity="critical"))
    for by in ("Operator B", "Operator C"):
        say(log, Review(verdict="dismissed", note="a drill"), incident_id=drill.record_id, by=by)
    assert notify(log, settings, today=date(2026, 9, 1))[settings.webhook[0].name] == []
    assert len(hook.events) == 3


@pytest.mark.parametrize("status", [500, 404, 302])
def test_one_way_that_fails_keeps_no_other_from_being_told(lab, settings, hook, post, status):
    log, *_ = lab
    hook.status = status
    with pytest.raises(
        NotSentError, match=rf"webhook 127\.0\.0\.1 \(\w{{8}}\): cannot be told: .*{status}"
    ):
        notify(log, settings, today=TODAY)
    assert len(post.mails) == 1
    hook.status = 200
    told = notify(log, settings, today=TODAY)
    assert [len(new) for new in told.values()] == [2, 0], "told the next time"


def test_a_mail_that_nobody_takes_is_told_the_next_time(lab, settings, post):
    log, *_ = lab
    post.refuses = True
    with pytest.raises(NotSentError, match="cannot be told"):
        notify(log, settings, today=TODAY)
    post.refuses = False
    assert [len(new) for new in notify(log, settings, today=TODAY).values()] == [0, 2]


def test_a_dry_run_sends_and_records_nothing(lab, settings, hook, post):
    log, *_ = lab
    before = log.heads()
    assert [len(new) for new in notify(log, settings, today=TODAY, dry_run=True).values()] == [2, 2]
    assert (hook.bodies, post.mails) == ([], [])
    assert log.heads() == before


def test_a_secret_signs_what_a_program_is_told(lab, hook, monkeypatch):
    log, *_ = lab
    settings = Settings.model_validate({"webhook": [{"url": hook.url, "secret_env": "HOOK"}]})
    with pytest.raises(NotSentError, match="variable 'HOOK' is not set"):
        notify(log, settings, today=TODAY)
    monkeypatch.setenv("HOOK", "key")
    notify(log, settings, today=TODAY)
    digest = hmac.new(b"key", hook.bodies[0], hashlib.sha256).hexdigest()
    assert hook.headers[0][SIGNATURE] == f"sha256={digest}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "names nobody to tell"),
        ("[[webhook]]\nurl = 'file:///etc/passwd'", "must be a URL like https://host/path"),
        ("[mail]\nserver = 'x'\nsender = 'a'\nto = []", "mail.to"),
        ("[mal]\n", "unknown key 'mal'; did you mean 'mail'"),
        ("x = ", "is not TOML"),
    ],
)
def test_settings_that_are_none_are_refused_with_their_place(tmp_path, text, problem):
    path = tmp_path / "notify.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=problem) as caught:
        Settings.read(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_two_webhooks_of_one_host_are_told_each(lab, hook):
    log, *_ = lab
    urls = [f"{hook.url}&team=a", f"{hook.url}&team=b"]
    settings = Settings.model_validate({"webhook": [{"url": one} for one in urls]})
    told = notify(log, settings, today=TODAY)
    assert [len(new) for new in told.values()] == [2, 2]
    assert len(hook.bodies) == 2
    assert not any("team" in name or "secret" in name for name in told)


def test_an_overdue_action_is_told_once_whatever_becomes_of_its_incident(lab, hook, say):
    log, _, minor = lab
    settings = Settings.model_validate({"webhook": [{"url": hook.url}]})
    notify(log, settings, today=TODAY)
    (action, _) = log.incident(minor.name).measures.values()
    failed = Effectiveness(
        action_id=action.record.record_id, is_effective=False, how="it was bent again"
    )
    say(log, failed, incident_id=minor.record_id, by="B")
    worse = Reclassification(severity="major", category="collision", reason="it was an injury")
    say(log, worse, incident_id=minor.record_id, by="B")
    assert not any(notify(log, settings, today=TODAY).values())


def test_actions_of_one_beginning_are_told_each(log, say, report, hook):
    made = say(log, report(severity="minor"))
    for end in ("left", "right"):
        action = Action(what=f"{'guard ' * 20}{end}", owner="C", due="2026-03-14")
        say(log, action, incident_id=made.record_id, by="B")
    assert len(untold(log, "x", TODAY)) == 2


def test_without_its_secret_nothing_is_told_in_a_trial_run_either(lab, hook, monkeypatch):
    log, *_ = lab
    monkeypatch.delenv("HOOK", raising=False)
    settings = Settings.model_validate({"webhook": [{"url": hook.url, "secret_env": "HOOK"}]})
    with pytest.raises(NotSentError, match="variable 'HOOK' is not set"):
        notify(log, settings, today=TODAY, dry_run=True)
