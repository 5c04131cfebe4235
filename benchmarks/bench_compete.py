"""What a step over the network costs: a competition on this machine beside an echo and beside the
local environment.

The echo is of the same bytes, through the same kind of WebSocket of the same server, so that the
ratio does not depend on the machine. `--teams N --seconds S` plays with many teams at once.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import threading
import time
from pathlib import Path

import gymnasium
import numpy as np
from starlette.websockets import WebSocket
from websockets.sync.client import connect

from robo_eval.agents.wire import encode
from robo_eval.compete.competition import parse_competition
from robo_eval.compete.ledger import Ledger
from robo_eval.compete.serving import Serving

ENV = "RoboEval/CartPole3D-v0"
TEXT = f"""
name: bench
tasks: [{{env: {ENV}, levels: [1]}}]
trials: {{count: 64, episodes: 50, onset: 10}}
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--teams", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
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
