"""Real clients play against a served competition: what they get, and what they are refused."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
import traceback
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from robo_eval.agents.wire import decode, encode
from robo_eval.compete.client import play
from robo_eval.compete.link import CompetitionError, SaidNoError
from robo_eval.compete.replay import unpacked
from robo_eval.core.errors import InputError
from tests.unit.compete.door.conftest import Served, tiny

PATIENCE_S = 60.0


class Raw:
    """A client that says whatever it is told to, and keeps every byte it is sent."""

    def __init__(self, url: str, token: str, path: str = "/v1/play", **headers: str) -> None:
        where = url.rstrip("/").replace("http", "ws") + path
        shown = {"Authorization": f"Bearer {token}", **headers}
        self.opened = contextlib.ExitStack()
        self.socket = self.opened.enter_context(
            connect(where, additional_headers=shown, proxy=None, max_size=None)
        )
        self.heard: list[bytes] = []
        self.number = -1

    def send(self, frame: str | bytes) -> dict[str, Any]:
        self.socket.send(frame)
        return self.hear()

    def hear(self) -> dict[str, Any]:
        answer = self.socket.recv(timeout=PATIENCE_S)
        self.heard.append(answer.encode() if isinstance(answer, str) else answer)
        return decode(answer)

    def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.number += 1
        return self.send(encode({"type": kind, "id": self.number, **fields}))

    def hello(self, **fields: Any) -> dict[str, Any]:
        return self.ask("hello", **{"protocol": 1, "trials": 1, "text": True, **fields})

    def close(self) -> None:
        self.opened.close()


@pytest.fixture
def raw() -> Iterator[Callable[..., Raw]]:
    made: list[Raw] = []

    def make(*given: Any, **fields: Any) -> Raw:
        made.append(Raw(*given, **fields))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that takes small messages alone."""
    limits = tiny(limits="connections: 4, message_bytes: 2000")
    served = Served(tmp_path_factory.mktemp("strict") / "cup", limits)
    yield served
    served.stop()


def made(served: Any, token: str, **fields: Any) -> Any:
    return gymnasium.make("RoboEval/Remote-v0", url=served.url, token=token, **fields)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Pusher:
    """An agent that says what it thinks."""

    def __init__(self) -> None:
        self.trials = 0

    def begin_trial(self) -> None:
        self.trials += 1

    def act(self, observation: Any) -> int:
        return int(observation[0] > 0)

    def declare(self) -> dict[str, Any]:
        levels = [{"level_number": 1, "probability": 0.5}]
        return {"probability": 0.5, "threshold": 0.25, "levels": levels}


def attempt_of(served: Any, name: str) -> Any:
    (team,) = [team for team in served.ledger.teams() if team.name == name]
    return [one for one in served.ledger.attempts() if one.team == team.number][-1]


def test_an_agent_plays_all_and_speaks_for_each_episode(shared: Any) -> None:
    env, agent = made(shared, shared.team("whole")), Pusher()
    assert env.unwrapped.left == 8
    assert play(env, agent) == 8
    assert (env.unwrapped.left, agent.trials) == (0, 4)
    links = list(shared.ledger.links(attempt_of(shared, "whole").number))
    assert [link.kind for link in links] == ["episode", "declare"] * 8
    assert not any(link.problem for link in links)
    assert links[1].content["probability"] == 0.5
    row = links[0].row
    assert row.policy == "whole"
    assert len(unpacked(links[0].actions)) == row.ticks
    observation, info = env.reset()
    assert info == {"over": True}
    assert not observation.any()
    env.close()


def test_a_stored_episode_leads_to_the_same_again(shared: Any) -> None:
    from gymnasium.wrappers import RecordEpisodeStatistics

    env = RecordEpisodeStatistics(made(shared, shared.team("again")))
    observation, info = env.reset()
    seen = [observation]
    ended = False
    while not ended:
        observation, _, terminated, truncated, info = env.step(env.action_space.sample())
        ended = terminated or truncated
        seen.append(observation)
    assert info["episode"]["l"] == len(seen) - 1
    link = next(iter(shared.ledger.links(attempt_of(shared, "again").number)))
    trial = shared.ledger.trials()[link.trial]
    local = gymnasium.make(trial.env, **trial.keywords_of(0))
    np.testing.assert_array_equal(local.reset(seed=trial.episodes[0].seed)[0], seen[0])
    for action, expected in zip(unpacked(link.actions), seen[1:], strict=True):
        np.testing.assert_array_equal(local.step(action)[0], expected)
    env.close()


def test_a_seed_changes_nothing_and_that_is_said_once(shared: Any) -> None:
    env = made(shared, shared.team())
    with pytest.warns(UserWarning, match="seed"):
        env.reset(seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.reset(seed=2)
    with pytest.raises(InputError, match="options"):
        env.reset(options={"state": {}})
    env.close()


@pytest.mark.parametrize("action", [5, -1, 1.0, "left", None, [0], True, 10**30])
def test_no_action_is_refused_and_the_episode_goes_on(shared: Any, raw: Any, action: Any) -> None:
    client = raw(shared.url, shared.team())
    client.hello()
    client.ask("reset", trials=[0])
    answer = client.ask("step", trials=[0], actions=[action])
    assert (answer["type"], answer["code"]) == ("error", "bad_action")
    assert client.ask("step", trials=[0], actions=[0])["type"] == "state"


def test_what_is_refused_is_kept(shared: Any, raw: Any) -> None:
    client = raw(shared.url, shared.team("refused"))
    client.hello()
    assert client.ask("step", trials=[0], actions=[0])["code"] == "not_reset"
    assert client.ask("reset", trials=[7])["code"] == "bad_message"
    assert client.ask("declare", trial=0, probability=1.0)["code"] == "no_episode"
    client.number += 3
    assert client.ask("reset", trials=[0])["code"] == "order"
    until(lambda: {"not_reset", "bad_message", "no_episode", "order"} <= kinds_of(shared))


def kinds_of(served: Any) -> set[str]:
    return {note["kind"] for note in served.notes()}


def test_an_episode_is_spoken_for_once_and_before_the_next(shared: Any) -> None:
    env = made(shared, shared.team())
    env.reset()
    while not any(env.step(0)[2:4]):
        pass
    env.unwrapped.declare(probability=0.75)
    with pytest.raises(SaidNoError, match="spoken"):
        env.unwrapped.declare(probability=0.5)
    env.reset()
    with pytest.raises(SaidNoError, match="no episode"):
        env.unwrapped.declare(probability=0.5)
    env.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"probability": 1.5}, {"probability": 0.5, "threshold": -1.0},
        {"probability": 0.5, "report": {"level": 3}},
        {"probability": 0.5, "report": {"levels": [{"level_number": 1, "probability": 0.7}] * 2}},
    ],
)  # fmt: skip
def test_declarations_that_say_nothing_are_refused(shared: Any, raw: Any, fields: Any) -> None:
    client = raw(shared.url, shared.team())
    client.hello()
    client.ask("reset", trials=[0])
    while not client.ask("step", trials=[0], actions=[0])["truncated"][0]:
        pass
    assert client.ask("declare", trial=0, **fields)["code"] == "bad_declaration"
    assert client.ask("declare", trial=0, probability=0.5)["type"] == "declared"


def test_a_newer_connection_of_a_team_closes_the_older(shared: Any, raw: Any) -> None:
    token = shared.team()
    older, newer = raw(shared.url, token), raw(shared.url, token)
    older.hello()
    older.ask("reset", trials=[0])
    assert newer.hello()["left"] == 8
    with pytest.raises(ConnectionClosed) as closed:
        older.hear()
    assert closed.value.rcvd.code == 4001
    # It is the same episode that goes on.
    assert newer.ask("reset", trials=[0])["info"] == [{"episode_index": 0}]
    env = made(shared, token)
    with pytest.raises(ConnectionClosed):
        newer.hear()
    env.close()


@pytest.mark.parametrize("action", [float("nan"), object(), {"a": 1}])
def test_an_action_that_cannot_be_sent_is_refused_and_the_episode_goes_on(
    shared: Any, action: Any
) -> None:
    env = made(shared, shared.team())
    env.reset()
    with pytest.raises(InputError, match="no action of Discrete"):
        env.step(action)
    assert env.step(0)[0].shape == (320,)
    env.close()


def test_a_client_goes_on_after_a_message_that_ended_its_connection(strict: Any) -> None:
    env = made(strict, strict.team())
    env.reset()
    with pytest.raises(SaidNoError) as refused:
        env.unwrapped._declare(999, probability=0.5)
    assert refused.value.code == "bad_message"
    assert env.step(0)[4] == {"episode_index": 0}
    with pytest.raises(SaidNoError, match="message_bytes"):
        env.unwrapped._link.ask("declare", trial=0, probability=1.0, report={"x": "x" * 3000})
    assert env.step(0)[4] == {"episode_index": 0}
    env.close()


def test_whose_trial_was_taken_is_told_so_and_does_not_take_it_back(shared: Any) -> None:
    token = shared.team()
    first = made(shared, token)
    first.reset()
    second = made(shared, token)
    second.reset()
    for _ in range(2):
        with pytest.raises(SaidNoError, match=r"another client.*stop one") as told:
            first.step(0)
        assert told.value.code == "replaced"
        assert "given_back" not in second.step(0)[4]
    second.close()
    first.reset()  # now it may
    first.close()


def test_who_asks_for_another_number_of_trials_takes_over_too(shared: Any, raw: Any) -> None:
    token = shared.team()
    older, newer = raw(shared.url, token), raw(shared.url, token)
    older.hello()
    assert newer.hello(trials=2)["trials"] == 2
    with pytest.raises(ConnectionClosed) as closed:
        older.hear()
    assert closed.value.rcvd.code == 4001
    assert newer.ask("reset", trials=[0, 1])["type"] == "state"


def test_more_connections_than_the_limit_are_refused(shared: Any, raw: Any) -> None:
    token = shared.team()
    for _ in range(4):
        raw(shared.url, token)
    with pytest.raises(InvalidStatus) as refused:
        raw(shared.url, token)
    assert refused.value.response.status_code == 429


@pytest.mark.parametrize(
    "headers", [{}, {"Origin": "http://evil.example"}], ids=["token", "origin"]
)
def test_strangers_and_web_pages_do_not_get_in(
    shared: Any, raw: Any, headers: dict[str, str]
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        raw(shared.url, shared.team() if headers else "0" * 32, **headers)
    assert refused.value.response.status_code == (403 if headers else 401)


def test_an_answer_that_was_lost_comes_again(shared: Any) -> None:
    env = made(shared, shared.team("lost"))
    env.reset()
    link = env.unwrapped._link
    env.step(0)
    for _ in range(3):
        link._socket.shutdown(2)
        assert not any(env.step(0)[2:4])
    n = 1
    while not any(env.step(0)[2:4]):
        n += 1
    (episode,) = shared.ledger.links(attempt_of(shared, "lost").number)
    assert len(unpacked(episode.actions)) == episode.row.ticks == n + 4
    env.close()


def test_the_same_number_again_gets_the_same_answer(shared: Any, raw: Any) -> None:
    client = raw(shared.url, shared.team())
    client.hello()
    client.ask("reset", trials=[0])
    first = client.ask("step", trials=[0], actions=[0])
    client.number -= 1
    assert client.ask("step", trials=[0], actions=[1]) == first


def test_who_does_not_wait_for_answers_gets_them_in_order(shared: Any, raw: Any) -> None:
    client = raw(shared.url, shared.team())
    client.hello()
    client.ask("reset", trials=[0])
    kinds = ["step", "step", "reset", "step", "declare", "step"]
    fields = {"declare": {"trial": 0, "probability": 0.5}}
    for number, kind in enumerate(kinds, start=2):
        given = fields.get(kind, {"trials": [0]})
        actions = {"actions": [0]} if kind == "step" else {}
        client.socket.send(encode({"type": kind, "id": number, **given, **actions}))
    answers = [client.hear() for _ in kinds]
    assert [answer["id"] for answer in answers] == list(range(2, 8))
    states = ["state", "state", "state", "state", "error", "state"]
    assert [answer["type"] for answer in answers] == states
    assert answers[2]["observation"] == answers[1]["observation"]  # it goes on where it was


def test_who_leaves_before_the_answer_disturbs_nobody(shared: Any, raw: Any) -> None:
    staying = raw(shared.url, shared.team())
    staying.hello()
    staying.ask("reset", trials=[0])
    for _ in range(5):
        leaving = raw(shared.url, shared.team())
        leaving.hello()
        leaving.ask("reset", trials=[0])
        step = {"type": "step", "id": 2, "trials": [0], "actions": [0]}
        with leaving.socket.protocol_mutex:  # both in one packet
            leaving.socket.protocol.send_text(encode(step).encode())
            leaving.socket.protocol.send_close(1000)
            data = b"".join(leaving.socket.protocol.data_to_send())
            leaving.socket.socket.sendall(data)
    answer = staying.ask("step", trials=[0], actions=[0])
    assert answer["type"] == "state"
    assert shared.serving.house.arena.lost == 0


def test_a_batch_begins_only_where_an_episode_has_ended(shared: Any) -> None:
    envs = gymnasium.make_vec(
        "RoboEval/Remote-v0", num_envs=2, vectorization_mode="vector_entry_point",
        url=shared.url, token=shared.team(),
    )  # fmt: skip
    envs.reset()
    asked: list[str] = []
    link = envs.unwrapped._link
    ask = link.ask
    link.ask = lambda kind, *given, **fields: asked.append(kind) or ask(kind, *given, **fields)
    envs.step(np.zeros(2, dtype=np.int64))
    envs.step(np.zeros(2, dtype=np.int64))
    assert asked == ["step", "step"]
    envs.close()


def test_several_trials_at_once(shared: Any) -> None:
    token = shared.team("batch")
    envs = gymnasium.make_vec(
        "RoboEval/Remote-v0", num_envs=3, vectorization_mode="vector_entry_point",
        url=shared.url, token=token,
    )  # fmt: skip
    observations, _ = envs.reset()
    assert observations.shape == (3, 320)
    for _ in range(200):
        if not envs.unwrapped.left:
            break
        _, _, terminated, truncated, _ = envs.step(np.zeros(3, dtype=np.int64))
        for place in np.flatnonzero(terminated | truncated):
            envs.unwrapped.declare(int(place), probability=0.25)
    assert envs.unwrapped.left == 0
    links = list(shared.ledger.links(attempt_of(shared, "batch").number))
    assert sum(link.kind == "declare" for link in links) == 8
    rows = [link.row for link in links if link.kind == "episode"]
    assert all(row.end_reason.is_scored and 1 <= row.ticks <= 8 for row in rows), rows
    envs.close()


def test_a_batch_does_not_ask_again_for_what_is_over(serve: Any) -> None:
    served = serve(count=1)
    envs = gymnasium.make_vec(
        "RoboEval/Remote-v0", num_envs=4, vectorization_mode="vector_entry_point",
        url=served.url, token=served.team("wide"),
    )  # fmt: skip
    _, infos = envs.reset()
    assert infos["over"].tolist() == [0, True, True, True]
    while envs.unwrapped.left:
        envs.step(np.zeros(4, dtype=np.int64))
    assert [note["detail"] for note in served.notes()] == [
        "trials [1, 2, 3]: no episode is left to be played there"
    ]
    envs.close()


def test_an_episode_that_ended_before_a_restart_is_spoken_for_after_it(serve: Any) -> None:
    from robo_eval.compete.ledger import Ledger
    from robo_eval.compete.serving import Serving

    served = serve(count=1, feedback=1, condition="given")
    token = served.team("thinks")
    for episode in range(2):
        env = made(served, token)
        env.reset()
        while not any(env.step(0)[2:4]):
            pass
        env.close()
        if episode == 1:
            break
        served.serving.stop()
        served.serving = Serving(Ledger.open(served.folder), port=0, workers=1)
        served.serving.start()
        served.url = served.serving.url
        env = made(served, token)
        for _ in range(2):  # the same again is no error
            env.unwrapped.declare(probability=0.75)
        with pytest.raises(SaidNoError, match="spoken"):
            env.unwrapped.declare(probability=0.5)
        assert env.unwrapped.feedback() == {"novel": False, "left": 0}
        env.close()
    kinds = [link.kind for link in served.ledger.links(1)]
    assert kinds == ["episode", "declare", "feedback", "episode"]


def test_play_goes_on_where_a_declaration_comes_too_late(shared: Any) -> None:
    env, agent = made(shared, shared.team()), Pusher()
    door = env.unwrapped
    spoken = door.declare

    def twice(**fields: Any) -> None:
        spoken(**fields)
        spoken(**{**fields, "probability": 0.125})

    door.declare = twice
    with pytest.warns(UserWarning, match="not taken"):
        assert play(env, agent) == 8
    env.close()


def test_a_rehearsal_costs_nothing(shared: Any) -> None:
    env = made(shared, shared.team("dry"), rehearsal=True)
    env.reset()
    while not any(env.step(0)[2:4]):
        pass
    assert env.unwrapped.left == 0
    env.close()
    assert "dry" not in {one.team for one in shared.ledger.attempts()}
    with pytest.raises(IndexError):
        attempt_of(shared, "dry")


def test_errors_name_the_url_and_the_remedy(shared: Any) -> None:
    with pytest.raises(SaidNoError, match=r"127\.0\.0\.1.*ROBO_EVAL_COMPETE_TOKEN"):
        made(shared, "0" * 32)
    with pytest.raises(InputError, match="ROBO_EVAL_COMPETE_TOKEN"):
        made(shared, None)
    with pytest.raises(CompetitionError, match=r"127\.0\.0\.1:9: no competition"):
        gymnasium.make("RoboEval/Remote-v0", url="http://127.0.0.1:9", token="0" * 32)
    with pytest.raises(InputError, match="http://host:port"):
        gymnasium.make("RoboEval/Remote-v0", url="somewhere", token="0" * 32)


def test_another_protocol_is_told_before_anything_is_played(
    shared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from robo_eval.compete import link

    rules = {**link.rules_of(shared.url), "protocol": 2, "version": "99.1"}
    monkeypatch.setattr(link, "rules_of", lambda _url: rules)
    with pytest.raises(CompetitionError, match=r"127\.0\.0\.1.*protocol 2.*99\.1.*speaks 1"):
        made(shared, shared.team())


def test_nothing_hidden_is_in_any_byte(serve: Any, raw: Any) -> None:
    served = serve(level=6, condition="given", episodes=3)
    token = served.team("spy")
    heard: list[bytes] = []
    for path, headers in (
        ("v1/competition", {}),
        ("v1/openapi.json", {}),
        ("v1/me", {"Authorization": f"Bearer {token}"}),
    ):
        request = urllib.request.Request(served.url + path, headers=headers)
        with urllib.request.urlopen(request) as answer:
            heard.append(bytes(str(answer.headers), "utf-8") + answer.read())
    clients = [raw(served.url, token), None]
    told = []
    for text in (True, False):
        client = clients[0] if text else raw(served.url, token)
        client.hello(text=text)
        for _ in range(3):
            reset = client.ask("reset", trials=[0])
            told.append(reset["info"][0])
            ended = False
            while not ended:
                step = client.ask("step", trials=[0], actions=[0])
                ended = step["terminated"][0] or step["truncated"][0]
                assert step["info"][0] == reset["info"][0]
            client.ask("declare", trial=0, probability=0.5)
        heard += client.heard
    # Only what the rules grant is told: the number of the episode, and that novelty has begun.
    assert told == [{"episode_index": n, "novel": n >= 1} for n in range(3)] * 2
    hidden = served.secrets() | {"onset", "difficulty", "profile", '"seed"', "reveal"}
    whole = b"\n".join(heard)
    assert not {word for word in hidden if word.encode() in whole}
    assert b'"level"' not in whole


def test_who_does_not_come_back_or_answers_too_late_forfeits_the_trial(
    serve: Any, raw: Any
) -> None:
    served = serve(limits="connections: 4, idle_s: 1.0, step_timeout_s: 1.0")
    clients = {name: raw(served.url, served.team(name)) for name in ("gone", "late")}
    for client in clients.values():
        client.hello()
        client.ask("reset", trials=[0])
    clients["gone"].close()
    for name in clients:
        number = attempt_of(served, name).number
        until(lambda number=number: len(list(served.ledger.links(number))) == 2)
        ends = {link.row.end_reason.value for link in served.ledger.links(number)}
        assert ends == {"fault"}, name
    assert clients["late"].ask("step", trials=[0], actions=[0])["code"] == "forfeited"
    assert clients["late"].ask("reset", trials=[0])["left"] == 2
    env = made(served, served.team("back"))
    assert env.unwrapped.left == 4
    env.close()


def test_refused_messages_and_other_trials_do_not_put_off_the_time_to_act(
    serve: Any, raw: Any
) -> None:
    served = serve(limits="connections: 4, step_timeout_s: 1.5", ticks=500)
    client = raw(served.url, served.team("stalls"))
    client.hello(trials=2)
    client.ask("reset", trials=[0, 1])
    codes = list[str]()

    def told() -> bool:
        codes.append(client.ask("step", trials=[0], actions=[99]).get("code", ""))
        client.ask("step", trials=[1], actions=[0])
        return codes[-1] == "forfeited"

    until(told)
    assert codes[0] == "bad_action"


def test_a_lost_simulator_gives_the_trial_back(serve: Any) -> None:
    served = serve(world_limit_s=3.0)
    env = made(served, served.team("unlucky"))
    env.reset()
    while not any(env.step(0)[2:4]):
        pass
    env.reset()
    env.step(0)
    os.kill(simulator_of(served), signal.SIGKILL)
    ended = env.step(0)
    assert (ended[3], list(ended[4])) == (True, ["given_back"])
    _, info = env.reset()
    assert (info["episode_index"], env.unwrapped.left) == (0, 4)
    # One that hangs is as good as dead.
    os.kill(simulator_of(served), signal.SIGSTOP)
    assert "given_back" in env.step(0)[4]
    assert play(env, Pusher()) == 4
    assert len(served.ledger.attempts()) == 1
    env.close()


def simulator_of(served: Any) -> int:
    return int(served.serving.house.arena.hands[0]._kill.__self__._process.pid)


def test_a_message_that_is_too_large_ends_its_connection_alone(strict: Any, raw: Any) -> None:
    token = strict.team()
    client, other = raw(strict.url, token), raw(strict.url, strict.team())
    other.hello()
    client.hello()
    with pytest.raises(ConnectionClosed):
        client.ask("step", trials=[0], actions=["x" * 3000])
    until(lambda: "too_large" in kinds_of(strict))
    assert other.ask("reset", trials=[0])["type"] == "state"


def test_answers_leave_on_the_grid(serve: Any, raw: Any) -> None:
    served = serve(grid=50)
    client = raw(served.url, served.team())
    client.hello()
    client.ask("reset", trials=[0])
    for _ in range(3):
        begin_s = time.monotonic()
        client.ask("step", trials=[0], actions=[0])
        assert time.monotonic() - begin_s >= 0.05


def test_openenv_clients_play_the_same(shared: Any, raw: Any) -> None:
    client = raw(shared.url, shared.team("openenv"), path="/ws")

    def say(frame: str) -> Any:
        client.socket.send(frame)
        return json.loads(client.socket.recv(timeout=PATIENCE_S))

    assert say("{")["data"]["code"] == "INVALID_JSON"
    assert say('{"type":"fly"}')["data"]["code"] == "UNKNOWN_TYPE"
    assert say('{"type":"reset","more":1}')["data"]["code"] == "VALIDATION_ERROR"
    assert say('{"type":"step","data":{"value":0}}')["data"]["code"] == "EXECUTION_ERROR"
    first = say('{"type":"reset","data":{"seed":3}}')
    assert (first["type"], first["data"]["done"]) == ("observation", False)
    assert len(first["data"]["observation"]["value"]) == 320
    assert say('{"type":"step","data":{"value":9}}')["data"]["code"] == "VALIDATION_ERROR"
    while not (last := say('{"type":"step","data":{"value":0}}'))["data"]["done"]:
        pass
    assert last["data"]["observation"]["left"] == 8
    assert say('{"type":"state"}')["data"]["step_count"] >= 3
    assert len(list(shared.ledger.links(attempt_of(shared, "openenv").number))) == 1


def test_standing_says_whose_move_it_is(shared: Any) -> None:
    from robo_eval.compete.link import rules_of

    token = shared.team("waits")
    found = rules_of(shared.url, path="/v1/me", token=token)
    assert (found["team"], found["owner"]) == ("waits", "team")
    with pytest.raises(SaidNoError):
        rules_of(shared.url, path="/v1/me", token="0" * 32)


def test_a_withdrawn_team_is_told_so(shared: Any) -> None:
    from robo_eval.compete.link import rules_of

    token = shared.team("gone")
    shared.ledger.revoke("gone")
    found = rules_of(shared.url, path="/v1/me", token=token)
    assert (found["team"], found["state"]) == ("gone", "withdrawn")
    for rehearsal in (False, True):
        with pytest.raises(SaidNoError, match="withdrawn") as refused:
            made(shared, token, rehearsal=rehearsal)
        assert refused.value.code == "withdrawn"


@pytest.mark.parametrize(
    ("headers", "reason"),
    [({"Authorization": f"Bearer {'0' * 32}"}, "no team has"), ({}, "is wanted")],
)
def test_a_wrong_token_is_told_from_none(shared: Any, headers: dict[str, str], reason: str) -> None:
    request = urllib.request.Request(f"{shared.url}v1/me", headers=headers)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code == 401
    assert reason in refused.value.read().decode()


def test_a_token_that_can_be_none_is_blamed_on_its_own_variable(shared: Any) -> None:
    with pytest.raises(SaidNoError, match="ROBO_EVAL_COMPETE_TOKEN") as refused:
        made(shared, "short")
    assert refused.value.code == "token"
    assert "POLICY" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"probability": "x"}, "probability: must be a number"),
        ({"probability": None}, "probability: must be a number"),
        ({"probability": 0.7, "report": {"levels": [1]}}, "levels.0.*level_number.*probability"),
        ({"probability": 0.7, "report": {"level": 1}}, "did you mean 'levels'"),
        ({"probability": 0.7, "report": [1]}, "report.*level_number"),
        ({"probability": 0.7, "threshold": float("nan")}, "threshold"),
    ],
    ids=str,
)
def test_what_cannot_be_declared_says_how_it_can(shared: Any, fields: Any, said: str) -> None:
    env = made(shared, shared.team())
    env.reset()
    while not any(env.step(0)[2:4]):
        pass
    with pytest.raises(InputError, match=said):
        env.unwrapped.declare(**fields)
    env.unwrapped.declare(probability=np.float32(0.5))
    env.close()


@pytest.mark.parametrize("actions", [[1], [1, 2, 3], 1, None, [1, float("nan")], [0, 9]], ids=str)
def test_a_batch_that_is_none_changes_nothing(shared: Any, actions: Any) -> None:
    envs = gymnasium.make_vec(
        "RoboEval/Remote-v0", num_envs=2, vectorization_mode="vector_entry_point",
        url=shared.url, token=shared.team(),
    )  # fmt: skip
    envs.reset()
    envs.step([0, 0])
    with pytest.raises(InputError, match="action"):
        envs.step(actions)
    _, _, terminated, truncated, infos = envs.step([0, 0])
    assert not (terminated | truncated).any()
    assert "given_back" not in infos
    envs.close()


def test_the_address_itself_says_what_it_is(shared: Any) -> None:
    with urllib.request.urlopen(shared.url) as answer:
        assert answer.headers["content-type"].startswith("text/plain")
        said = answer.read().decode()
    assert said.startswith("tiny: ")
    assert "/v1/competition" in said


def test_a_refused_connection_is_no_fault_of_the_server(shared: Any, raw: Any) -> None:
    import logging

    heard: list[str] = []
    listener = logging.Handler()
    listener.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(listener)
    try:
        with pytest.raises(InvalidStatus):
            raw(shared.url, "0" * 32)
        made(shared, shared.team()).close()
    finally:
        logger.removeHandler(listener)
    assert heard == []


def test_the_public_value_is_told_once_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from robo_eval.compete.link import rules_of
    from robo_eval.compete.scores import board
    from tests.unit.compete.door.conftest import Served, tiny

    monkeypatch.setattr("robo_eval.compete.house._BEAT_S", 0.05)
    served = Served(tmp_path / "c", tiny() + "beacon: the lottery\n")
    try:
        assert rules_of(served.url)["public_value"] is None
        served.ledger.mix_in("4 8 15")
        until(lambda: rules_of(served.url)["public_value"] == "4 8 15")
        assert any("4 8 15" in note for note in board(served.ledger).notes)
    finally:
        served.stop()


def test_a_client_is_told_what_the_rules_say_and_no_more(serve: Any, raw: Any) -> None:
    served = serve(count=1, episodes=3, condition="given", hints=0, feedback=1, ticks=3)
    env = made(served, served.team("asks"))
    with pytest.raises(SaidNoError, match="no episode has just ended"):
        env.unwrapped.feedback()
    hints, told = [], []
    for episode in range(3):
        _, info = env.reset()
        hints.append((info["novel"], info.get("hint")))
        ended = False
        while not ended:
            *_, terminated, truncated, info = env.step(0)
            ended = terminated or truncated
        if episode == 1:
            env.unwrapped.declare(probability=1.0)
            told = [env.unwrapped.feedback(), env.unwrapped.feedback()]
    assert hints == [(False, None), (True, {"level": 1}), (True, {"level": 1})]
    assert told == [{"novel": True, "left": 0}] * 2
    with pytest.raises(SaidNoError) as refused:
        env.unwrapped.feedback()
    assert refused.value.code == "no_feedback"
    env.close()
    envs = gymnasium.make_vec(
        "RoboEval/Remote-v0", num_envs=1, vectorization_mode="vector_entry_point",
        url=served.url, token=served.team("many"),
    )  # fmt: skip
    envs.reset()
    while not any(ends.any() for ends in envs.step(np.zeros(1, int))[2:4]):
        pass
    assert envs.unwrapped.feedback(0) == {"novel": False, "left": 0}
    envs.close()
    client = raw(served.url, served.team("dry"))
    client.hello(rehearsal=True)
    client.ask("reset", trials=[0])
    while not any((state := client.ask("step", trials=[0], actions=[0]))["terminated"]):
        if state["truncated"][0]:
            break
    assert client.ask("feedback", trial=0)["novel"] is False
    with urllib.request.urlopen(f"{served.url}v1/competition") as answer:
        rules = json.load(answer)
    assert (rules["hints"], rules["feedback"]) == (0, 1)


def test_a_team_makes_no_more_steps_a_second_than_it_may(serve: Any) -> None:
    served = serve(count=1, episodes=2, ticks=40, limits="steps_per_s: 40")
    env = made(served, served.team())
    steps, begin_s = 0, time.monotonic()
    while env.unwrapped.left:
        env.reset()
        steps += 1
        ended = False
        while not ended:
            *_, terminated, truncated, _ = env.step(0)
            steps += 1
            ended = terminated or truncated
    env.close()
    # What a second allows may come at once, and the last one need not be waited for.
    assert steps > 41
    assert time.monotonic() - begin_s >= (steps - 1 - 40) / 40


def test_on_a_full_disk_nothing_is_lost_and_play_goes_on_after_it(serve: Any) -> None:
    served = serve(count=1, episodes=2)
    env = made(served, served.team("filler"))
    env.reset()
    database = served.serving.house.ledger.database
    pages = "PRAGMA max_page_count"

    def limited(most: int) -> None:
        with database.lock:
            database.connected().exec_driver_sql(f"{pages} = {most}")

    def finish() -> None:
        while not any(env.step(0)[2:4]):
            pass

    limited(1)  # SQLite takes as many as there are already
    with pytest.raises(SaidNoError, match="organiser") as refused:
        finish()
    assert refused.value.code == "server"
    assert served.rows() == []
    with pytest.raises(SaidNoError) as refused:
        env.step(0)
    assert refused.value.code == "not_reset"
    limited(2**30)
    assert play(env, Pusher()) == 2
    env.close()
    assert [(link.run, link.episode) for link in served.rows()] == [(1, 0), (1, 1)]
