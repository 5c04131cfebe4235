"""Accounts: passwords, roles, and what happens after wrong passwords."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select

from robo_eval.core.errors import InputError
from robo_eval.web import accounts
from robo_eval.web.errors import BusyError, LoginError
from robo_eval.web.sessions import IDLE_NS, WHOLE_NS
from robo_eval_incidents import IncidentLog, open_log
from robo_eval_incidents.accounts import Accounts, Role
from robo_eval_incidents.kinds import Account, Refusal
from robo_eval_incidents.schema import SESSIONS, USERS
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.web.deps import Sessions

PASSWORD = "four words in a row"


@pytest.fixture
def known(log: IncidentLog, monkeypatch: pytest.MonkeyPatch) -> Iterator[Accounts]:
    """Accounts whose hashes are made with less work; `R. Example` is a reviewer."""
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(accounts, "_hasher", lambda: quick)
    accounts._no_hash.cache_clear()
    made = Accounts(log, floor_s=0.0)
    made.add("R. Example", PASSWORD, ["reviewer"], by="setup")
    yield made
    accounts._no_hash.cache_clear()


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounts]:
    """Accounts of a log that no test changes; `R. Example` is a reviewer."""
    path = tmp_path_factory.mktemp("settled") / "incidents.db"
    with open_log(path, station="cell-1", make=True) as log:
        made = Accounts(log, floor_s=0.0)
        made.add("R. Example", PASSWORD, ["reviewer"], by="setup")
        yield made


def row_of(log: IncidentLog):
    with log.database.reading() as connection:
        return connection.execute(select(USERS)).one()


def test_a_password_is_kept_as_argon2id_with_the_defaults_of_its_library(log: IncidentLog) -> None:
    Accounts(log).add("R. Example", PASSWORD, ["reviewer"], by="setup")
    row = row_of(log)
    assert row.password_hash.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert PASSWORD not in str(row)


def test_name_and_password_open_an_account(known: Accounts) -> None:
    user = known.log_in("  r.  EXAMPLE ", PASSWORD)
    assert (user.name, user.roles) == ("R. Example", {Role.REVIEWER})
    # The same letters in another encoding, as another keyboard types them.
    known.add("Zoë", "pässwörter sind lang", ["operator"], by="setup")
    assert known.log_in("Zoe\u0308", "pa\u0308sswo\u0308rter sind lang").name == "Zoë"


def test_all_refusals_read_the_same(known: Accounts) -> None:
    tries = [("R. Example", wrong) for wrong in ("four words in a Row", "", "x" * 100_000)]
    for name, password in [*tries, ("R. Example", "\udcff"), ("' OR 1=1 --", PASSWORD)]:
        with pytest.raises(LoginError, match="name or password is wrong, or the account is locked"):
            known.log_in(name, password)


def refusals(log: IncidentLog) -> list[tuple[str | None, int]]:
    bodies = [record.body for record in log.records()]
    return [(body.user, body.attempts) for body in bodies if isinstance(body, Refusal)]


def test_refused_logins_are_recorded_those_of_ten_minutes_together(
    known: Accounts, log: IncidentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str, times: int) -> None:
        for _ in range(times):
            with pytest.raises(LoginError):
                known.log_in(name, "wrong")

    fail("r. example", 3)
    assert refusals(log) == [("R. Example", 1)]
    known.log_in("R. Example", PASSWORD)
    found = [("R. Example", 1), ("R. Example", 2)]
    assert refusals(log) == found
    # A name without account might be a password: it is not kept.
    fail("hunter2 hunter2", 2)
    fail("R. Example", 1)
    found.append((None, 1))
    assert refusals(log) == found
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + 601)
    fail("someone", 1)
    found.append((None, 2))
    assert refusals(log) == found
    known.record_refused()
    found.append(("R. Example", 1))
    known.record_refused()
    assert refusals(log) == found
    assert "hunter2" not in "".join(one.content for one in log.stored())
    assert verify_log(log.name).ok


def test_guessing_leaves_room_for_others(known: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on, came = threading.Event(), threading.Semaphore(0)

    def checked(_name: str, _password: str) -> None:
        came.release()
        assert may_go_on.wait(60)

    with ThreadPoolExecutor(8) as pool, monkeypatch.context() as patched:
        patched.setattr(known, "_checked", checked)
        tries = [pool.submit(known.log_in, "x", "y", "10.0.0.1") for _ in range(4)]
        for _ in tries:
            assert came.acquire(timeout=60)
        with pytest.raises(BusyError, match="try again"):
            known.log_in("x", "y", "10.0.0.1")
        tries += [pool.submit(known.log_in, "x", "y", f"10.0.1.{n}") for n in range(4)]
        for _ in range(4):
            assert came.acquire(timeout=60)
        with pytest.raises(BusyError):
            known.log_in("R. Example", PASSWORD, "10.0.2.1")
        may_go_on.set()
        for one in tries:
            assert isinstance(one.exception(), LoginError)
    assert known.log_in("R. Example", PASSWORD, "10.0.0.1").name == "R. Example"


def test_refusals_take_the_same_time_at_least(known: Accounts, log: IncidentLog) -> None:
    slow = Accounts(log, floor_s=0.2)
    for name in ("R. Example", "Nobody"):
        started = time.monotonic()
        with pytest.raises(LoginError):
            slow.log_in(name, "wrong")
        assert time.monotonic() - started >= 0.2


def test_wrong_passwords_lock_an_account_for_a_while(
    known: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns = time.time_ns()
    for _ in range(5):
        with pytest.raises(LoginError):
            known.log_in("R. Example", "wrong")
    with pytest.raises(LoginError):
        known.log_in("R. Example", PASSWORD)
    monkeypatch.setattr(accounts.time, "time_ns", lambda: now_ns + 120 * 10**9)
    assert known.log_in("R. Example", PASSWORD).name == "R. Example"
    with pytest.raises(LoginError):
        known.log_in("R. Example", "wrong")
    assert known.log_in("R. Example", PASSWORD), "one wrong password after a right one is one"


def test_a_clock_that_is_set_back_locks_nobody_out(
    known: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        with pytest.raises(LoginError):
            known.log_in("R. Example", "wrong")
    monkeypatch.setattr(accounts.time, "time_ns", lambda: 1)
    assert known.log_in("R. Example", PASSWORD)


@pytest.mark.parametrize(
    ("name", "password", "roles", "message"),
    [
        ("A", "short", ["operator"], "password: has 5 characters; a password has 10 to 512"),
        ("A", "aaaaaaaaaaaaaaa", ["operator"], "too easy to guess"),
        ("A long name", "a LONG name", ["operator"], "too easy to guess"),
        ("A", "\udcff" + PASSWORD, ["operator"], "bytes that are not text"),
        ("A", PASSWORD, [], "roles: give one or more of operator, reviewer, auditor"),
        ("A", PASSWORD, ["root"], "role 'root': roles are operator, reviewer, auditor, admin"),
        (" ", PASSWORD, ["operator"], "name: is empty"),
        ("A\u202eB", PASSWORD, ["operator"], "U\\+202E"),
        ("r. example", PASSWORD, ["operator"], "'R. Example' is there already"),
    ],
)
def test_what_is_no_account_is_refused_and_changes_nothing(
    settled: Accounts, name: str, password: str, roles: list[str], message: str
) -> None:
    before = settled._log.heads()
    with pytest.raises(InputError, match=message):
        settled.add(name, password, roles, by="setup")
    assert [user.name for user in settled.list()] == ["R. Example"]
    assert settled._log.heads() == before


def test_every_change_of_an_account_is_a_record(
    known: Accounts, log: IncidentLog, path: Path
) -> None:
    known.set_roles("R. Example", ["auditor", "reviewer"], by="S. Example")
    known.set_password("R. Example", "other words in a row", by="S. Example")
    known.remove("R. Example", by="S. Example")
    said = [
        (record.by, record.body.roles)
        for record in log.records()
        if isinstance(record.body, Account)
    ]
    assert said == [
        ("setup", ("reviewer",)),
        ("S. Example", ("reviewer", "auditor")),
        ("S. Example", ("reviewer", "auditor")),
        ("S. Example", ()),
    ]
    assert verify_log(path).ok


def test_an_account_that_was_removed_opens_nothing_until_it_is_made_again(known: Accounts) -> None:
    known.remove("R. Example", by="setup")
    with pytest.raises(LoginError):
        known.log_in("R. Example", PASSWORD)
    with pytest.raises(InputError, match="closed was the account"):
        known.set_password("R. Example", PASSWORD, by="setup")
    known.add("R. Example", "other words in a row", ["auditor"], by="setup")
    assert known.log_in("R. Example", "other words in a row").may_audit


# Sessions --------------------------------------------------------------------------------------


@pytest.fixture
def sessions(known: Accounts, log: IncidentLog) -> Sessions:
    return Sessions(log, known)


def test_of_a_token_only_its_digest_is_kept(
    known: Accounts, sessions: Sessions, log: IncidentLog, path: Path
) -> None:
    token = sessions.begin(known.log_in("R. Example", PASSWORD))
    with log.database.reading() as connection:
        row = connection.execute(select(SESSIONS)).one()
    assert len(row.token_sha256) == 32
    log.close()
    for file in path.parent.iterdir():
        assert token.encode() not in file.read_bytes()
        assert PASSWORD.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("after_ns", "is_over"),
    [
        (IDLE_NS - 10**9, False),
        (IDLE_NS + 10**9, True),
        (-30 * 10**9, False),
        (-90 * 10**9, True),
    ],
)
def test_a_session_ends(
    known: Accounts,
    sessions: Sessions,
    monkeypatch: pytest.MonkeyPatch,
    after_ns: int,
    is_over: bool,
) -> None:
    token = sessions.begin(known.log_in("R. Example", PASSWORD))
    now_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns + after_ns)
    assert (sessions.find(token) is None) is is_over


def test_a_session_that_is_used_ends_after_a_shift(
    known: Accounts, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = sessions.begin(known.log_in("R. Example", PASSWORD))
    start_ns = time.time_ns()
    for minutes in range(0, WHOLE_NS // 10**9 // 60, 45):
        monkeypatch.setattr(time, "time_ns", lambda m=minutes: start_ns + m * 60 * 10**9)
        assert sessions.find(token) is not None
    monkeypatch.setattr(time, "time_ns", lambda: start_ns + WHOLE_NS + 10**9)
    assert sessions.find(token) is None


def test_a_new_password_or_removal_ends_all_sessions(known: Accounts, sessions: Sessions) -> None:
    token = sessions.begin(known.log_in("R. Example", PASSWORD))
    known.set_password("R. Example", "other words in a row", by="setup")
    assert sessions.find(token) is None
    token = sessions.begin(known.log_in("R. Example", "other words in a row"))
    known.remove("R. Example", by="setup")
    assert sessions.find(token) is None


def test_roles_change_from_the_next_click_on(known: Accounts, sessions: Sessions) -> None:
    token = sessions.begin(known.log_in("R. Example", PASSWORD))
    known.set_roles("R. Example", ["operator"], by="setup")
    found = sessions.find(token)
    assert found is not None
    assert not found.user.may_review


@pytest.mark.parametrize("token", ["", "x", "x" * 10_000, "\udcff", None])
def test_what_is_no_token_opens_nothing(settled: Accounts, token: str | None) -> None:
    assert Sessions(settled._log, settled).find(token) is None


def test_two_processes_share_accounts_and_sessions(
    known: Accounts, sessions: Sessions, path: Path
) -> None:
    token = sessions.begin(known.log_in("R. Example", PASSWORD))
    with open_log(path) as other:
        elsewhere = Sessions(other, Accounts(other, floor_s=0.0))
        found = elsewhere.find(token)
        assert found is not None
        elsewhere.end(found)
    assert sessions.find(token) is None
