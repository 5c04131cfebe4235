"""What a step over the network costs: a competition on this machine beside an echo and beside the
local environment.

The echo is of the same bytes, through the same kind of WebSocket of the same server, so that the
ratio does not depend on the machine. `--teams N --seconds S` plays with many teams at once.
`--board N` measures nothing but the leaderboard: of N teams with 1,000 episodes each, all that they
did computed again, everything kept, and one new entry.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sqlite3
import statistics
import tempfile
import threading
import time
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
from starlette.websockets import WebSocket
from websockets.sync.client import connect

from robo_eval.agents.wire import encode
from robo_eval.compete.competition import parse_competition
from robo_eval.compete.ledger import Ledger
from robo_eval.compete.scores import _contents, _Job, board
from robo_eval.compete.serving import Serving
from robo_eval.core.canonical import canonical_json
from robo_eval.core.kinds import EndReason
from robo_eval.log.chain import GENESIS
from robo_eval.log.provenance import cores
from robo_eval.log.rows import row_digest

ENV = "RoboEval/CartPole3D-v0"
TEXT = f"""
name: bench
tasks: [{{env: {ENV}, levels: [1]}}]
trials: {{count: 64, episodes: 50, onset: 10}}
attempts: 1
closes: 2099-01-01T00:00:00Z
"""
BOARD = f"""
name: bench of the leaderboard
tasks: [{{env: {ENV}, levels: [1, 2, 5, 6], difficulties: [easy, hard]}}]
trials: {{count: 2, episodes: 50, onset: [10, 20], controls: 4, frozen: t0}}
attempts: 1
closes: 2099-01-01T00:00:00Z
"""
STEPS = 1500
BATCH = 16


def percentile(values: list[float], share: float) -> float:
    return float(np.quantile(values, share))


def stepped(env: gymnasium.Env, steps: int) -> list[float]:
    """Seconds of each step; resets do not count."""
    took: list[float] = []
    env.reset()
    while len(took) < steps:
        begin = time.perf_counter()
        step = env.step(len(took) % 5)
        took.append(time.perf_counter() - begin)
        if step[2] or step[3]:
            env.reset()
    return took


def echoed(url: str, asked: str, answer: bytes, count: int) -> list[float]:
    """Seconds of each exchange of bytes of these lengths with the same server."""
    took = []
    where = url.replace("http", "ws") + "echo"
    with connect(where, compression=None, proxy=None, max_size=None) as socket:
        socket.send(answer)
        socket.recv()
        for _ in range(count):
            begin = time.perf_counter()
            socket.send(asked)
            socket.recv()
            took.append(time.perf_counter() - begin)
    return took


def served(folder: str, url: multiprocessing.Queue) -> None:
    """A process that serves the competition and, in the same way, an echo."""
    serving = Serving(Ledger.open(Path(folder)), port=0)

    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        answer = await socket.receive_bytes()
        await socket.send_bytes(answer)
        while (await socket.receive())["type"] != "websocket.disconnect":
            await socket.send_bytes(answer)

    serving._server.config.app.add_api_websocket_route("/echo", echo)
    serving.start()
    while "yet" in str(serving.house.rules["answer_times"]):  # it measures that by itself
        time.sleep(0.05)
    url.put(serving.url)
    threading.Event().wait()


def crowd(address: str, ledger: Ledger, teams: int, seconds: float) -> None:
    took: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + seconds

    def play(name: str) -> None:
        try:
            token = ledger.add_team(name)
            env = gymnasium.make("RoboEval/Remote-v0", url=address, token=token)
            while time.monotonic() < end:
                took.extend(stepped(env, 50))
            env.close()
        except Exception as err:  # noqa: BLE001 - counted
            errors.append(repr(err))

    threads = [threading.Thread(target=play, args=(f"crowd{n}",)) for n in range(teams)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    print(
        f"{teams} teams, {seconds:g} s: {len(took):,} steps, p50 {1e3 * percentile(took, 0.5):.2f}"
        f" ms, p99 {1e3 * percentile(took, 0.99):.2f} ms, {len(errors)} errors {errors[:2]}"
    )


def filled(ledger: Ledger, entries: int) -> None:
    """Write what so many teams would have left behind: rows and declarations, chained as others."""
    scripted = ledger.team_of(ledger.add_team("t0"))
    turns = [
        replace(turn, episode=index)
        for turn in ledger.claim(scripted, "bench")
        for index in range(len(turn.trial.episodes))
    ]
    made = []
    for turn in turns:
        row = ledger.row(
            turn, start_ns=1, duration_s=4.0, ticks=200, episode_return=0.5, quality=0.5,
            success=False, end_reason=EndReason.TIMEOUT, uninterrupted_actions=200,
            novelty={"name": "cart_mass", "parameters": {"cart_mass": 5.0}},
            initial_state={"cart": [0.1] * 6, "pole": [0.1] * 7},
        )  # fmt: skip
        made.append(ledger._cells(row, b""))
    packed = zlib.compress(b"")
    drawn = np.random.default_rng(1)
    with closing(sqlite3.connect(ledger.folder / "competition.db")) as database:
        for number in range(1, entries + 1):
            links, name, last = [], f"t{number - 1}", GENESIS
            skill, qualities = drawn.uniform(0.3, 0.7), drawn.uniform(-0.3, 0.3, len(turns))
            for turn, cells, noise in zip(turns, made, qualities.tolist(), strict=True):
                quality = round(skill + noise, 6)
                own = {**cells, "policy": name, "quality": quality, "episode_return": quality}
                said = {"probability": quality, "threshold": 0.98}
                for kind, told, actions in (("episode", own, packed), ("declare", said, None)):
                    place = {"trial": turn.trial.number, "run": 1, "episode": turn.episode}
                    at = {"sequence": len(links) + 1, "previous_sha256": last}
                    last = row_digest({**told, "kind": kind, **place}, **at)
                    text = canonical_json(told).decode()
                    links.append(
                        (number, at["sequence"], kind, *place.values(), text, actions, last)
                    )
            if number > 1:
                database.execute(
                    "INSERT INTO teams (number, name, token_sha256, added_ns) VALUES (?, ?, ?, 1)",
                    (number, name, name),
                )
                database.execute(
                    "INSERT INTO attempts (number, team, attempt, started_ns, sha256)"
                    " VALUES (?, ?, 1, 1, '')",
                    (number, number),
                )
            database.execute(
                "UPDATE attempts SET ended_ns = ?, sequence = ?, sha256 = ? WHERE number = ?",
                (number, len(links), last, number),
            )
            database.execute("DELETE FROM trials WHERE attempt = ?", (number,))
            database.executemany(
                "INSERT INTO trials (attempt, trial, episode, state) VALUES (?, ?, 50, 'done')",
                [(number, trial) for trial in {turn.trial.number for turn in turns}],
            )
            database.executemany(f"INSERT INTO links VALUES ({', '.join('?' * 9)})", links)
        database.commit()


def leaderboards(entries: int) -> None:
    """How long a leaderboard takes of which all is new, nothing, and one entry."""
    with tempfile.TemporaryDirectory() as name:
        ledger = Ledger.create(Path(name) / "bench", parse_competition(BOARD, source="bench"))
        filled(ledger, entries)
        for what in ("all of them computed again", "all of them kept", "one of them new"):
            if what.startswith("one"):
                with closing(sqlite3.connect(ledger.folder / "competition.db")) as database:
                    database.execute("DELETE FROM scores WHERE attempt = ?", (entries,))
                    database.commit()
            begin, used = time.perf_counter(), sum(os.times()[:4])
            found = board(ledger, workers=cores())
            took, used = time.perf_counter() - begin, sum(os.times()[:4]) - used
            assert sum(one.place is not None for one in found.entries) == entries
            print(f"leaderboard of {entries:,} entries, {what}: {took:.2f} s ({used:.2f} s of CPU)")
            if what.startswith("one"):
                attempt = ledger.attempts()[-1]
                begin = time.perf_counter()
                _contents(ledger, [_Job(attempt, "t", (("t0", ledger.attempts()[0]),))])
                print(f"the entry alone: {time.perf_counter() - begin:.2f} s (goal: 1 s at most)")
        ledger.close_connection()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--board", type=int, metavar="N")
    parser.add_argument("--teams", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    if given.board is not None:
        leaderboards(given.board)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "bench"
        ledger = Ledger.create(folder, parse_competition(TEXT, source="bench"))
        spawned = multiprocessing.get_context("spawn")
        urls = spawned.Queue()
        server = spawned.Process(target=served, args=(str(folder), urls))
        server.start()
        address = urls.get()
        remote = gymnasium.make(
            "RoboEval/Remote-v0",
            url=address,
            token=ledger.add_team("one"),
            disable_env_checker=True,
        )
        local = gymnasium.make(ENV)
        asked = encode({"type": "step", "id": 1000, "trials": [0], "actions": [0]})
        head = {
            "type": "state", "id": 1000, "trials": [0], "left": 3200, "reward": [0.005],
            "terminated": [False], "truncated": [False], "info": [{"episode_index": 0}],
        }  # fmt: skip
        answer = encode(head, np.zeros((1, 320), np.float32))
        stepped(local, 200), stepped(remote, 200)
        over, here, echo = [], [], []
        for _ in range(3):  # in turns, so that a busy machine does not favour one of them
            over += stepped(remote, STEPS // 3)
            here += stepped(local, STEPS // 3)
            echo += echoed(address, str(asked), bytes(answer), STEPS // 3)
        added = percentile(over, 0.5) - percentile(here, 0.5)
        print(f"local step p50 {1e3 * percentile(here, 0.5):.3f} ms")
        print(
            f"remote step p50 {1e3 * percentile(over, 0.5):.3f} ms,"
            f" p99 {1e3 * percentile(over, 0.99):.3f} ms"
        )
        print(f"echo p50 {1e3 * percentile(echo, 0.5):.3f} ms")
        print(
            f"added by the network / echo, p50: {added / percentile(echo, 0.5):.2f}"
            " (goal: 1.5 at most)"
        )
        remote.close()
        envs = gymnasium.make_vec(
            "RoboEval/Remote-v0", num_envs=BATCH, vectorization_mode="vector_entry_point",
            url=address, token=ledger.add_team("many"),
        )  # fmt: skip
        envs.reset()
        shares = []
        for _ in range(3):
            begin = time.perf_counter()
            for number in range(100):
                envs.step(np.full(BATCH, number % 5))
            rate = 100 * BATCH / (time.perf_counter() - begin)
            shares.append(rate * statistics.fmean(stepped(local, 300)))
        print(
            f"steps/s of {BATCH} trials at once, with resets and what is kept / local steps/s:"
            f" {statistics.median(shares):.2f} (goal: 0.5 at least)"
        )
        envs.close()
        crowd(address, ledger, given.teams, given.seconds)
        server.kill()
        ledger.close_connection()


if __name__ == "__main__":
    main()
