"""A policy served by another process plays as if it were here, and a broken link breaks cleanly."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import serve as websocket_server

from robo_eval.agents import make_agent
from robo_eval.agents.remote import LinkLostError, RemotePolicy, RemotePolicyError
from robo_eval.agents.serve import PolicyServer
from robo_eval.agents.wire import MAX_FRAME_BYTES, TOKEN_VARIABLE, decode, encode
from robo_eval.cli.serve_policy import serve_policy
from robo_eval.core.errors import InputError
from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval_sim.runner import check_plan, run_simulated

TOKEN = "0123456789abcdef"
DIGEST = "d" * 64
OBSERVATION = np.zeros(4, np.float32)
PATIENCE_S = 60.0
"""For whatever comes in time on a machine that is not broken."""
POLICIES = """
import sys
import time
from pathlib import Path

def wait_for(gate):
    while not Path(gate).exists():
        time.sleep(0.01)

class Plain:
    name = "plain"
    digest = "d" * 64

    def __init__(self, *, digest="d" * 64, gate=""):
        self.digest = digest
        self.gate = gate

    def reset(self, *, seed=None):
        print("policies may print")
        self.seed = seed
        self.ticks = 0

    def act(self, observation):
        self.ticks += 1
        if self.gate and self.ticks == 2:
            wait_for(self.gate)
        return {"seed": self.seed, "tick": self.ticks, "sum": observation.sum()}

class Breaks(Plain):
    def act(self, observation):
        return 1 / 0

class Heavy(Plain):
    def __init__(self, *, gate):
        super().__init__()
        print("loading", file=sys.stderr, flush=True)
        wait_for(gate)

class Chunks(Plain):
    chunk_length = 3

    def act_chunk(self, observation):
        self.ticks += 1
        return [(self.ticks, part) for part in range(3)]
"""


@dataclass
class Served:
    """A server process."""

    process: subprocess.Popen[str]
    url: str
    digest: str
    log: Path

    @property
    def port(self) -> str:
        return self.url.rpartition(":")[2]

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)


class Servers:
    """Starts `robo-eval serve-policy` as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "served.py").write_text(POLICIES)
        self.processes: list[subprocess.Popen[str]] = []

    def __call__(self, name: str, *options: str, port: str = "0", **extra: str) -> Served:
        log = self.folder / f"server-{len(self.processes)}.log"
        command = [sys.executable, "-m", "robo_eval", "serve-policy", name, "--port", port]
        with log.open("w") as err:
            process = subprocess.Popen(
                [*command, *options],
                cwd=self.folder,
                env={**os.environ, **extra},
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            )
        self.processes.append(process)
        assert process.stdout is not None
        first, second = process.stdout.readline(), process.stdout.readline()
        url = re.search(r"ws://\S+:\d+", first)
        assert url, log.read_text()
        return Served(process, url[0], second.split()[1], log)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(timeout=PATIENCE_S)
            process.stdout.close()  # type: ignore[union-attr]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Servers]:
    with closing(Servers(tmp_path)) as servers:
        yield servers


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the tests that leave it as it is."""
    with closing(Servers(tmp_path_factory.mktemp("plain"))) as servers:
        server = servers("plain", *factory("Plain"))
        yield server
        assert server.end() == 0
        assert "Traceback" not in server.log.read_text()


def factory(name: str, **keywords: object) -> tuple[str, ...]:
    return ("--factory", f"served:{name}", "--kwargs", json.dumps(keywords))


def remote(url: str, **times: float) -> RemotePolicy:
    return RemotePolicy(url, **{"timeout_s": PATIENCE_S, "start_timeout_s": PATIENCE_S, **times})


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_trial_has_the_rows_of_a_local_policy(serving, cli, tmp_path):
    server = serving("balancer")
    (tmp_path / "plan.yaml").write_text(
        "name: remote\n"
        "tasks: [{levels: [0, 11], difficulties: [hard]}]\n"
        "policies:\n"
        "  - balancer\n"
        "  - name: far\n"
        '    factory: "robo_eval.agents.remote:RemotePolicy"\n'
        f'    kwargs: {{url: "{server.url}"}}\n'
        "episodes: 2\n"
        "traces: none\n"
    )
    run = cli("run", "plan.yaml", "--out", "trial", "--no-report", "--jobs", "2")
    assert run.code == 0, run.err
    with closing(sqlite3.connect(tmp_path / "trial/episodes.db")) as database:
        rows = database.execute(
            "SELECT policy, level, seed, quality, ticks, end_reason, policy_digest, episode_return"
            " FROM episodes ORDER BY level, seed"
        ).fetchall()
    here, far = ([row[1:] for row in rows if row[0] == name] for name in ("balancer", "far"))
    assert here == far
    assert len(here) == 4
    assert len({row[2] for row in here}) > 1
    assert {row[5] for row in far} == {make_agent("balancer").digest} == {server.digest}
    assert server.end(signal.SIGTERM) == 0
    log = server.log.read_text()
    assert "Traceback" not in log
    # Looking at the plan takes a connection, and each worker one of its own.
    assert log.count("connected") == log.count("left after") >= 2


def test_a_plan_names_the_url_where_nobody_listens(cli, tmp_path):
    (tmp_path / "plan.yaml").write_text(
        "name: nobody\ntasks: [{levels: [0]}]\nepisodes: 1\npolicies: [{name: far,"
        ' factory: "robo_eval.agents.remote:RemotePolicy", kwargs: {url: "ws://127.0.0.1:9"}}]\n'
    )
    run = cli("run", "plan.yaml", "--out", "trial")
    assert run.code == 2
    (line,) = run.err.splitlines()
    assert "policies.0.factory: ws://127.0.0.1:9: no policy is served there" in line
    assert not (tmp_path / "trial").exists()


def test_values_and_seeds_arrive_and_latency_is_measured(plain):
    policy = remote(plain.url)
    assert policy.digest == DIGEST
    assert policy.measures() == {}
    for seed in (2**62, np.int64(5), None):
        policy.reset(seed=seed)
        answer = policy.act(np.ones(3, np.float32))
        assert answer == {"seed": seed, "tick": 1, "sum": 3.0}
        assert type(answer["sum"]) is np.float32
    policy.act(np.ones((3, 480, 640), np.uint8))
    found = policy.measures()
    assert found["remote_requests"] == 2.0
    assert found["remote_chunk_actions"] == 1.0
    for name in ("remote_round_trip", "remote_inference"):
        assert 0.0 <= found[f"{name}_p50_s"] <= found[f"{name}_p99_s"] <= found[f"{name}_max_s"]
    assert found["remote_inference_max_s"] < found["remote_round_trip_max_s"]


def test_a_chunk_is_played_before_the_next_is_asked_for(serving):
    policy = remote(serving("chunks", *factory("Chunks")).url)
    policy.reset(seed=1)
    assert [policy.act(OBSERVATION) for _ in range(4)] == [(1, 0), (1, 1), (1, 2), (2, 0)]
    assert policy.measures()["remote_requests"] == 2.0
    assert policy.measures()["remote_chunk_actions"] == 3.0
    policy.reset(seed=2)
    assert policy.measures() == {}
    assert policy.act(OBSERVATION) == (1, 0)


def test_each_connection_has_a_policy_of_its_own(plain):
    one, other = remote(plain.url), remote(plain.url)
    one.reset(seed=1)
    other.reset(seed=2)
    assert [one.act(OBSERVATION)["tick"] for _ in range(3)] == [1, 2, 3]
    assert other.act(OBSERVATION) == {"seed": 2, "tick": 1, "sum": 0.0}


def test_a_policy_that_was_only_tried_is_not_loaded_again():
    made = []

    def make():
        made.append(make_agent("balancer"))
        return made[-1]

    server = PolicyServer(make, port=0)
    server.start()
    try:
        kind = f"factory: 'robo_eval.agents.remote:RemotePolicy', kwargs: {{url: '{server.url}'}}"
        text = f"name: x\ntasks: [{{levels: [0]}}]\npolicies: [{{name: far, {kind}}}]\n"
        assert check_plan(parse_plan(text, source="plan")) == []
        wait_until(lambda: not server._connections)
        first, second = RemotePolicy(server.url), RemotePolicy(server.url)
        first.reset(seed=1)
        assert len(made) == 1
        second.reset(seed=1)
        assert len(made) == 2
        other = text.replace("{levels: [0]}", "{env: RoboEval/PickPlace-v0}")
        with pytest.raises(ValueError, match=r"^policies\.0: 'far' cannot act on tasks\.0"):
            check_plan(parse_plan(other, source="plan"))
    finally:
        server.stop()


def test_a_policy_that_fails_ends_the_episode_and_not_the_server(serving):
    policy = remote(serving("bad", *factory("Breaks")).url)
    for _ in range(2):
        policy.reset(seed=1)
        with pytest.raises(RemotePolicyError, match="the policy failed: ZeroDivisionError"):
            policy.act(OBSERVATION)


def test_loading_a_policy_delays_nobody_who_plays(serving, tmp_path):
    gate = tmp_path / "gate"
    gate.touch()
    server = serving("heavy", *factory("Heavy", gate=str(gate)))
    first, second = remote(server.url), remote(server.url)
    first.reset(seed=1)
    gate.unlink()
    before = server.log.read_text().count("loading")
    loading = threading.Thread(target=second.reset)
    loading.start()
    wait_until(lambda: server.log.read_text().count("loading") > before)
    for _ in range(20):
        first.act(OBSERVATION)
    assert loading.is_alive()
    gate.touch()
    loading.join()


def test_an_observation_that_cannot_be_sent_is_named(plain):
    policy = remote(plain.url)
    policy.reset(seed=1)
    with pytest.raises(InputError, match=r"builtins\.object cannot be sent"):
        policy.act({"camera": object()})
    assert policy.act(OBSERVATION)["tick"] == 1


def test_a_late_answer_ends_the_episode_and_is_not_taken_for_another(serving, tmp_path):
    gate = tmp_path / "gate"
    policy = remote(serving("slow", *factory("Plain", gate=str(gate))).url, timeout_s=0.3)
    policy.reset(seed=1)
    policy.act(OBSERVATION)
    with pytest.raises(RemotePolicyError, match=r"no answer within 0\.3 s"):
        policy.act(OBSERVATION)
    with pytest.raises(LinkLostError, match="the next episode's reset opens it again"):
        policy.act(OBSERVATION)
    gate.touch()
    policy.reset(seed=2)
    assert policy.act(OBSERVATION) == {"seed": 2, "tick": 1, "sum": 0.0}


def test_a_server_that_comes_back_is_found_at_the_next_reset(serving):
    server = serving("plain", *factory("Plain"))
    policy = remote(server.url)
    policy.reset(seed=1)
    policy.act(OBSERVATION)
    server.process.kill()
    server.process.wait()
    with pytest.raises(LinkLostError, match="the connection is lost"):
        policy.act(OBSERVATION)
    with pytest.raises(InputError, match="no policy is served there"):
        policy.reset(seed=2)
    other = serving("plain", *factory("Plain", digest="e" * 64), port=server.port)
    with pytest.raises(InputError, match=f"digest is {'e' * 64}, and {DIGEST} began"):
        policy.reset(seed=2)
    assert other.end() == 0
    same = serving("plain", *factory("Plain"), port=server.port)
    policy.reset(seed=3)
    assert policy.act(OBSERVATION)["seed"] == 3
    assert policy.digest == DIGEST
    assert same.end() == 0


def test_a_server_that_is_busy_ends_when_asked(serving):
    server = serving("slow", *factory("Plain", gate="never"))
    policy = remote(server.url, timeout_s=0.2)
    policy.reset(seed=1)
    policy.act(OBSERVATION)
    with pytest.raises(RemotePolicyError, match="no answer"):
        policy.act(OBSERVATION)
    assert server.end() == 0


def test_a_server_that_takes_no_bytes_is_given_up(serving):
    server = serving("plain", *factory("Plain"))
    policy = remote(server.url, timeout_s=0.3)
    policy.reset(seed=1)
    policy.act(OBSERVATION)
    server.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(LinkLostError, match="the connection is lost"):
            policy.act(np.zeros(60 * 2**20, np.uint8))
    finally:
        server.process.send_signal(signal.SIGCONT)
    policy.reset(seed=2)
    assert policy.act(OBSERVATION)["tick"] == 1


def test_only_who_knows_the_token_is_let_in(serving, monkeypatch):
    server = serving("nothing", **{TOKEN_VARIABLE: TOKEN})
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    for wrong in (None, TOKEN[::-1]):
        if wrong:
            monkeypatch.setenv(TOKEN_VARIABLE, wrong)
        with pytest.raises(InputError, match=f"wants another token; set {TOKEN_VARIABLE}"):
            remote(server.url)
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    policy = remote(server.url)
    policy.reset()
    assert policy.act(OBSERVATION) == 0
    # A web page in a browser names its origin; none may talk to a server on this machine.
    header = {"Authorization": f"Bearer {TOKEN}"}
    with pytest.raises(InvalidStatus, match="403"):
        connect(server.url, origin="https://example.org", additional_headers=header)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("balancr",), "did you mean 'balancer'"),
        (("balancer", "--host", "0.0.0.0"), "a token is needed"),
    ],
)
def test_bad_options_are_refused_in_one_line(cli, options, words):
    done = cli("serve-policy", *options, "--port", "0")
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert words in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kwargs": "{"}, "--kwargs is not JSON"),
        ({"kwargs": "[1]"}, "--kwargs must be a JSON object"),
        ({"token": "short"}, "16 to 256 ASCII"),
    ],
)
def test_bad_values_of_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        serve_policy("balancer", **options)


def test_a_server_that_cannot_be_is_refused(plain):
    def never() -> Any:
        raise AssertionError("the address is looked at first")

    for host, port, words in (
        ("127.0.0.1", int(plain.port), "cannot listen at 127.0.0.1, port .*in use"),
        ("nowhere.invalid", 0, "cannot listen at nowhere.invalid"),
        ("0.0.0.0", 0, "a token is needed"),
        ("::", 0, "a token is needed"),
    ):
        with pytest.raises(InputError, match=words):
            PolicyServer(never, host=host, port=port)


# Broken servers ---------------------------------------------------------------------------------


@contextlib.contextmanager
def broken_server(respond: Callable[[dict[str, Any]], Any]) -> Iterator[str]:
    """A server whose answers are up to the test; None is not an answer at all."""

    def handle(connection: Any) -> None:
        with contextlib.suppress(ConnectionClosed):
            for frame in connection:
                answer = respond(decode(frame))
                if answer is not None:
                    connection.send(answer)

    server = websocket_server(handle, "127.0.0.1", 0, max_size=None, compression=None)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
    finally:
        server.shutdown()
        thread.join()


def hello(message: dict[str, Any], **changes: object) -> str | bytes:
    fields = {"protocol": 1, "name": "broken", "digest": DIGEST, "chunk": 2, **changes}
    return encode({"type": "hello", "id": message["id"], **fields})


@pytest.mark.parametrize(
    ("answer", "words", "limit_s"),
    [
        (lambda m: "garbage", "answered with garbage: a message is not JSON", PATIENCE_S),
        (lambda m: b"\0", "answered with garbage", PATIENCE_S),
        (
            lambda m: hello(m, protocol=2),
            "speaks protocol 2, and this robo-eval speaks 1",
            PATIENCE_S,
        ),
        (lambda m: hello(m, digest=""), "its hello has digest", PATIENCE_S),
        (lambda m: hello(m, chunk=0), "its hello has chunk", PATIENCE_S),
        (lambda m: '{"type":"ready","id":1}', "answered hello 1 with 'ready' '1'", PATIENCE_S),
        (lambda m: '{"type":"error","id":1,"message":"no\\nway"}', "no way", PATIENCE_S),
        (lambda m: None, r"no answer within 0\.3 s", 0.3),
    ],
)
def test_a_server_that_introduces_itself_badly_is_refused(answer, words, limit_s):
    with broken_server(answer) as url, pytest.raises(InputError, match=words) as caught:
        remote(url, start_timeout_s=limit_s)
    assert str(caught.value).startswith(url)
    assert "\n" not in str(caught.value)


def actions(message: dict[str, Any], value: object, **changes: object) -> str | bytes:
    fields = {"id": message["id"], "inference_s": 0.0, **changes}
    return encode({"type": "actions", **fields}, value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda m: "{", "answered with garbage"),
        (lambda m: actions(m, [np.zeros(3)])[:-1], "needs 24 bytes; 23 are there"),
        (lambda m: actions(m, [np.zeros(3)]) + b"0", "1 bytes that belong to no array"),
        (lambda m: actions(m, [float("nan")]), "an action that is not finite"),
        (lambda m: actions(m, []), "no list of 1 to 2 actions"),
        (lambda m: actions(m, [1, 2, 3]), "no list of 1 to 2 actions"),
        (lambda m: actions(m, 1), "no list of 1 to 2 actions"),
        (lambda m: actions(m, [1], inference_s=-1), "inference_s -1"),
        (lambda m: actions(m, [1], inference_s="x"), "inference_s x"),
        (lambda m: actions(m, [1], id=99), "answered act 3 with 'actions' '99'"),
        (lambda m: b"0" * (MAX_FRAME_BYTES + 1), "the connection is lost: .*1009"),
    ],
)
def test_a_server_that_answers_garbage_ends_the_episode(answer, words):
    def respond(message: dict[str, Any]) -> Any:
        if message["type"] == "hello":
            return hello(message)
        if message["type"] == "reset":
            return encode({"type": "ready", "id": message["id"]})
        return answer(message)

    with broken_server(respond) as url:
        policy = remote(url)
        policy.reset(seed=1)
        with pytest.raises(RemotePolicyError, match=words) as caught:
            policy.act(OBSERVATION)
        assert str(caught.value).startswith(url)
        assert "\n" not in str(caught.value)
        with pytest.raises(LinkLostError):
            policy.act(OBSERVATION)
        policy.reset(seed=1)


@pytest.mark.parametrize(
    ("answer", "by"),
    [(b"0" * (MAX_FRAME_BYTES + 1), "setup"), ("{", "policy")],
    ids=["the connection is lost", "the policy answers garbage"],
)
def test_a_lost_connection_is_a_fault_of_the_setup(tmp_path, answer, by):
    def respond(message: dict[str, Any]) -> Any:
        if message["type"] == "hello":
            return hello(message)
        if message["type"] == "reset":
            return encode({"type": "ready", "id": message["id"]})
        return answer

    with broken_server(respond) as url:
        plan = (
            "name: x\ntasks: [{levels: [0]}]\nepisodes: 1\npolicies: [{name: far, factory:"
            f" 'robo_eval.agents.remote:RemotePolicy', kwargs: {{url: '{url}'}}}}]\n"
        )
        trial = TrialDirectory.create(tmp_path / "t", parse_plan(plan, source="plan"))
        run_simulated(trial, jobs=1)
    with EpisodeStore(trial.path, durable=False) as store:
        (row,) = store.episodes()
    assert (row.end_reason, row.fault_by) == ("fault", by)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "wss://127.0.0.1:1", "ws://", "ws://host:port", "127.0.0.1", 7]
)
def test_an_url_that_is_none_is_refused(url):
    with pytest.raises(InputError, match="ws://"):
        RemotePolicy(url)
    with pytest.raises(InputError, match="timeout_s must be a number of seconds"):
        RemotePolicy(url, timeout_s=float("nan"))


# Broken clients ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        (["garbage"], "not JSON"),
        ([b"\0\0"], "no length at its start"),
        (['{"type":"reset","id":1,"seed":1}'], "reset came before hello"),
        (['{"type":"hello","id":1,"protocol":9}'], "the client speaks protocol 9"),
        (['{"type":"hello","id":1,"protocol":1}', '{"type":"fly","id":2}'], "unknown message"),
    ],
)
def test_a_client_that_breaks_the_protocol_gets_a_line_and_is_closed(plain, frames, words):
    with connect(plain.url, max_size=None) as connection:
        for frame in frames:
            connection.send(frame)
            answer = decode(connection.recv(timeout=PATIENCE_S))
        assert answer["type"] == "error"
        assert words in answer["message"]
        with pytest.raises(ConnectionClosed) as caught:
            connection.recv(timeout=PATIENCE_S)
        assert caught.value.rcvd.code == 1002


def test_a_frame_that_is_too_large_is_not_read(plain):
    with connect(plain.url) as connection:
        # The head of a frame that promises too much is enough.
        connection.socket.sendall(struct.pack(">BBQ", 0x82, 0xFF, MAX_FRAME_BYTES + 1) + b"mask")
        with pytest.raises(ConnectionClosed) as caught:
            connection.recv(timeout=PATIENCE_S)
    assert caught.value.rcvd.code == 1009
    policy = remote(plain.url)
    policy.reset()
    assert policy.act(OBSERVATION)["tick"] == 1


def test_a_policy_that_is_not_used_any_more_is_let_go(plain):
    before = plain.log.read_text().count("left after")
    remote(plain.url)  # nothing keeps it
    wait_until(lambda: plain.log.read_text().count("left after") > before)
