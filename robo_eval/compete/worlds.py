"""What a simulator process of a competition does with the worlds of many teams."""

from __future__ import annotations

import pickle
import select
import socket
import struct
import time
from collections import defaultdict, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import zip_longest
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple, TypeVar

import gymnasium
import numpy as np

from robo_eval.agents.wire import encode, json_text
from robo_eval.compete.replay import packed
from robo_eval.compete.spaces import as_json
from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import said
from robo_eval.core.kinds import EndReason
from robo_eval.core.plan import TaskPlan
from robo_eval.log.planned_row import declared, measured, novelty_of, physical_state, tick_s_of
from robo_eval.metrics.scoring import reward_of, score_played

TOLD: Final[Mapping[str, type]] = {"is_success": bool, "stage": int}
"""What of `info` leaves the server, by its kind; all else could tell what is hidden."""
HINTS: Final = ("level", "entity", "attribute", "change")
"""What a hint tells of a novelty, in the order of the levels of hint."""
_TICK_CAP: Final = 100_000
_LENGTH: Final = struct.Struct("<I")
_READ: Final = 2**16
_CONNECT_S: Final = 30.0
_ACTIVE_S: Final = 0.2
"""Whoever has asked for nothing for so long is not slowed down by what others have done."""
_PART_S: Final = 0.0001
"""How long a team's job is gone on with before others have their turn; a step may take longer."""
BATCH_SHARE: Final = 1.0
"""How many times as long others have their turn after a part of a long message."""
OPENING_SHARE: Final = 4.0
"""The same where worlds are made, of which each part takes longer than their steps by far."""


class AskTimes(dict[int, float]):
    """When teams have asked a process for something, by `time.perf_counter`."""

    def beside(self, room: int) -> bool:
        """Whether another than this one has a moment ago."""
        since_s = time.perf_counter() - _ACTIVE_S
        for one in [one for one, at in self.items() if at <= since_s]:
            del self[one]
        return bool(self.keys() - {room})


class TrialSetting(NamedTuple):
    """What one trial is played with.

    Attributes:
        task: The environment and how it is scored.
        keywords: Those of `gymnasium.make`, for each kind of episode that the trial may have.
    """

    task: TaskPlan
    keywords: Sequence[Mapping[str, Any]]


class Start(NamedTuple):
    """An episode that is to begin.

    Attributes:
        seed: Its seed.
        kind: Index of its keywords in the setting.
        told: What its client is told by `info` in each tick.
        hints: How many words on the trial's novelty it is told as well.
    """

    seed: int
    kind: int
    told: Mapping[str, Any]
    hints: int = 0


class Job(NamedTuple):
    """What a team asks of its worlds at once.

    Attributes:
        number: By which its answer is known.
        room: Whose it is.
        kind: `open`, `reset`, `step`, `close` or `spaces`.
        places: Which of the team's worlds.
        given: For each of them a Setting, a Start, None for one that goes on, or an action.
        head: Fields of the message that answers.
        is_text: Whether that is JSON alone.
    """

    number: int
    room: int
    kind: str
    places: Sequence[int] = ()
    given: Sequence[Any] = ()
    head: Mapping[str, Any] = {}
    is_text: bool = False


class Ended(NamedTuple):
    """An episode that has come to its end: what was measured for its row, and its actions."""

    place: int
    measured: Mapping[str, Any]
    actions: bytes


class JobResult(NamedTuple):
    """What came of a job.

    Attributes:
        number: The number of the job.
        frame: The message that is to be sent.
        ended: Episodes that have ended by it.
        broken: Worlds that broke, and how; it is not the team's fault.
        found: What was asked for, if it was no message.
    """

    number: int
    frame: str | bytes = b""
    ended: Sequence[Ended] = ()
    broken: Mapping[int, str] = {}
    found: Any = None


_Part = JobResult | float
"""What a job has come to: its answer, or how many times as long as it took others have their
turn."""
_Message = TypeVar("_Message", Job, JobResult)


def enclosed(message: Job | JobResult) -> bytes:
    """A message between the server and its own workers: a length, and pickled bytes."""
    # A plain tuple is pickled in a fifth of the time of a named one.
    body = pickle.dumps(tuple(message), protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


def opened(buffer: bytearray, kind: type[_Message]) -> Iterator[_Message]:
    """The messages of a kind that are complete in a buffer; they are taken out of it."""
    while len(buffer) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(buffer)
        end = _LENGTH.size + length
        if len(buffer) < end:
            return
        # What our own processes say to each other; nothing of a client's gets here undecoded.
        yield kind(*pickle.loads(bytes(buffer[_LENGTH.size : end])))  # noqa: S301
        del buffer[:end]


class World:
    """The environments of one trial, and the episode that is played in them.

    All are made and tried by `make`, before the first episode, so that no later answer takes longer
    because an environment is new. Those that a trial does not use are made as well.
    """

    def __init__(self, setting: TrialSetting) -> None:
        self._setting = setting
        self._task = setting.task
        self._envs: list[gymnasium.Env[Any, Any]] = []

    def make(self) -> Iterator[float]:
        """Make the environments, in parts between which others may have their turn."""
        for keywords in self._setting.keywords:
            env = gymnasium.make(self._task.env, disable_env_checker=True, **dict(keywords))
            self._envs.append(env)
            yield OPENING_SHARE
            env.reset(seed=0)
            yield OPENING_SHARE
        novelty = novelty_of(self._envs[-1])
        self._words = {**novelty, **novelty.get("truth", {})}
        self.env = self._envs[0]
        self.last: tuple[Any, ...] | None = None
        self._start: Start | None = None

    def reset(self, start: Start | None) -> tuple[Any, ...]:
        """Begin an episode; without a start, what the one under way has come to."""
        if start is None:
            assert self.last is not None
            return self.last
        if start.hints:
            hint = {name: self._words.get(name) for name in HINTS[: start.hints]}
            start = start._replace(told={**start.told, "hint": hint})
        self._start, self.env = start, self._envs[start.kind]
        self._start_ns = time.time_ns()
        observation, info = self.env.reset(seed=start.seed)
        self._rewards: list[float] = []
        self._actions: list[Any] = []
        self._initial_state = physical_state(self.env)
        self._novelty = novelty_of(self.env)
        for value in (self._initial_state, self._novelty):
            canonical_json(value)  # raises if a row cannot hold it
        self.last = (observation, 0.0, False, False, self._told(info))
        return self.last

    def step(self, action: Any, place: int) -> tuple[tuple[Any, ...], Ended | None]:
        """One tick, and the episode's row where it has ended."""
        self._actions.append(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._rewards.append(reward_of(reward))
        # An environment may end by itself never; nobody is to wait for it.
        truncated = bool(truncated) or len(self._rewards) >= _TICK_CAP
        is_over = bool(terminated) or truncated
        told = self._told(info)
        self.last = (observation, self._rewards[-1], bool(terminated), truncated, told)
        if not is_over:
            return self.last, None
        found = self._measured(terminated=bool(terminated), truncated=truncated, info=info)
        self._start = None
        return self.last, Ended(place=place, measured=found, actions=packed(self._actions))

    def cut(self) -> tuple[Any, ...]:
        """How an episode ends for its client whose world broke: nobody scores it."""
        observation, _, _, _, told = self.last or (self.env.observation_space.sample(),) * 5
        self._start = None
        self.last = (observation, 0.0, False, True, {**dict(told), "given_back": True})
        return self.last

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()

    def _told(self, info: Mapping[str, Any]) -> Mapping[str, Any]:
        assert self._start is not None
        if not info:
            return self._start.told
        told = dict(self._start.told)
        for name, kind in TOLD.items():
            if name in info and isinstance(info[name], kind | np.generic):
                told[name] = kind(info[name])
        return told

    def _measured(
        self, *, terminated: bool, truncated: bool, info: Mapping[str, Any]
    ) -> dict[str, Any]:
        ticks, tick_s = len(self._rewards), tick_s_of(self.env)
        end_reason, quality, episode_return = score_played(
            self._task, self._rewards, terminated=terminated, truncated=truncated, info=info
        )
        passed_s = (time.time_ns() - self._start_ns) / 1e9
        return {
            "start_ns": self._start_ns,
            "duration_s": passed_s if tick_s is None else ticks * tick_s,
            "ticks": ticks,
            "episode_return": episode_return,
            "quality": quality,
            "success": end_reason is EndReason.SUCCESS,
            "end_reason": end_reason,
            "uninterrupted_actions": ticks,
            **measured(self.env, info),
            "novelty": self._novelty,
            "initial_state": self._initial_state,
            **declared(self.env),
        }


class Stand:
    """The worlds of the teams that were sent to this process."""

    def __init__(self) -> None:
        self._worlds: dict[tuple[int, int], World] = {}

    def done(self, job: Job) -> Iterator[_Part]:
        """Do a job world by world, and give its answer.

        Between worlds others have their turn.
        """
        seen, ended, broken = list[Any](), list[Ended](), dict[int, str]()
        end_s = time.perf_counter() + _PART_S
        for place, given in zip_longest(job.places, job.given):
            if (seen or broken) and time.perf_counter() > end_s:
                yield BATCH_SHARE
                end_s = time.perf_counter() + _PART_S
            try:
                if job.kind == "open":
                    yield from self._open((job.room, place), given)
                else:
                    seen += self._do(job, place, given, ended)
            except Exception as err:  # noqa: BLE001 - a world that breaks is told, and the next goes on
                broken[place] = said(err)
                if job.kind in ("reset", "step"):
                    seen.append(self._worlds[job.room, place].cut())
        frame: str | bytes = b""
        if job.kind in ("reset", "step"):
            try:
                frame = yield from self._answered(job, seen)
            except Exception as err:  # noqa: BLE001 - of what an environment gave; others go on
                broken = dict.fromkeys(job.places, said(err))
        yield JobResult(job.number, frame, ended, broken, seen if job.kind == "spaces" else None)

    def _do(self, job: Job, place: int, given: Any, ended: list[Ended]) -> list[Any]:
        """Do a job in one world; what came of it."""
        key = (job.room, place)
        if job.kind == "spaces":
            return [_spaces_of(given)]
        if job.kind == "reset":
            return [self._worlds[key].reset(given)]
        if job.kind == "step":
            seen, end = self._worlds[key].step(given, place)
            ended += [] if end is None else [end]
            return [seen]
        self._close(key)
        return []

    def _open(self, key: tuple[int, int], setting: TrialSetting) -> Iterator[float]:
        self._close(key)
        self._worlds[key] = world = World(setting)
        yield from world.make()

    def _close(self, key: tuple[int, int]) -> None:
        if key in self._worlds:
            self._worlds.pop(key).close()

    def _answered(
        self, job: Job, seen: Sequence[tuple[Any, ...]]
    ) -> Generator[float, None, str | bytes]:
        head = {
            **job.head,
            "reward": [one[1] for one in seen],
            "terminated": [one[2] for one in seen],
            "truncated": [one[3] for one in seen],
            "info": [one[4] for one in seen],
        }
        observations: Any = [one[0] for one in seen]
        if not job.is_text:
            space = self._worlds[job.room, job.places[0]].env.observation_space
            is_box = isinstance(space, gymnasium.spaces.Box)
            return encode(head, np.array(observations) if is_box else observations)
        texts: list[str] = []
        for one in observations:  # to write one takes as long as a step
            if texts:
                yield BATCH_SHARE
            texts.append(json_text(_lists(one)))
        return f'{json_text(head)[:-1]},"observation":[{",".join(texts)}]}}'


def _spaces_of(task: TaskPlan) -> dict[str, Any]:
    env = gymnasium.make(task.env, **task.kwargs)
    try:
        limit = env.spec.max_episode_steps if env.spec else None
        return {
            "env": task.env,
            "observation_space": as_json(env.observation_space),
            "action_space": as_json(env.action_space),
            "tick_s": tick_s_of(env),
            "max_ticks": task.max_ticks or limit,
        }
    finally:
        env.close()


def _lists(value: Any) -> Any:
    """An observation as JSON has it; `core.plain` would look at each number."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _lists(one) for name, one in value.items()}
    return [_lists(one) for one in value] if isinstance(value, list | tuple) else value


class _Queue:
    """Jobs of many teams, of which the one that has had least is served next.

    A team that comes back begins where the others are: having been away earns nothing. One whose
    job takes long leaves the process to the others after each part, for they wait for its answers
    one by one, and would find a part of it under way at each step.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, deque[Iterator[_Part]]] = {}
        self._had_s: defaultdict[int, float] = defaultdict(float)
        self._asked = AskTimes()
        self._rests_s: dict[int, float] = {}  # until when a room leaves the process to the others
        self._now_s = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, room: int, job: Iterator[_Part]) -> None:
        self._asked[room] = time.perf_counter()
        if room not in self._waiting:
            self._waiting[room] = deque()
            self._had_s[room] = max(self._had_s[room], self._now_s)
        self._waiting[room].append(job)

    def next(self) -> tuple[int, Iterator[_Part]] | float:
        """Whose job is gone on with; where all rest who wait, for how long they do, seconds."""
        now_s = time.perf_counter()
        rests_s = {room: self._rests_s.get(room, 0.0) for room in self._waiting}
        free = [room for room, at in rests_s.items() if at <= now_s or not self._asked.beside(room)]
        if not free:
            return min(rests_s.values()) - now_s
        room = min(free, key=self._had_s.__getitem__)
        self._now_s = self._had_s[room]
        return room, self._waiting[room][0]

    def count(self, room: int, took_s: float, part: _Part) -> None:
        """Note that so much time has led to this."""
        self._had_s[room] += took_s
        if not isinstance(part, JobResult):
            self._rests_s[room] = time.perf_counter() + part * took_s
            return
        self._rests_s.pop(room, None)
        self._waiting[room].popleft()
        if not self._waiting[room]:
            del self._waiting[room]


def work(_hears: Connection, _speaks: Connection, line: socket.socket) -> None:
    """Serve jobs from a socket until it closes; the process of an `arena.Hand`."""
    _work(line)


def _work(line: socket.socket) -> None:
    stand, queue, buffer = Stand(), _Queue(), bytearray()
    poll = select.poll()
    poll.register(line, select.POLLIN)
    line.sendall(enclosed(JobResult(number=0)))  # ready
    while True:
        while not queue or poll.poll(0):
            data = line.recv(_READ)
            if not data:
                return
            buffer += data
            for job in opened(buffer, Job):
                queue.add(job.room, stand.done(job))
        found = queue.next()
        if isinstance(found, float):
            select.select([line], [], [], found)  # `poll` waits for whole milliseconds
            continue
        room, todo = found
        begin_s = time.perf_counter()
        part = next(todo)
        queue.count(room, time.perf_counter() - begin_s, part)
        if isinstance(part, JobResult):
            line.sendall(enclosed(part))


def work_far(host: str, port: int, key: bytes) -> None:
    """Serve jobs from a server on another machine, which knows by a key who comes."""
    with socket.create_connection((host, port), timeout=_CONNECT_S) as line:
        line.settimeout(None)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.sendall(key)
        _work(line)
