"""What tests of the incident log share: an empty log, and ways to put something into it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from fastapi.testclient import TestClient

from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import PlannedEpisode, schedule
from robo_eval.log.bag_metadata import BagTopic
from robo_eval.log.bag_writer import BagWriter
from robo_eval.log.cdr import Template
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore
from robo_eval.web.sessions import COOKIE
from robo_eval_incidents import IncidentLog, open_log
from robo_eval_incidents.kinds import Body, Nil, Report
from robo_eval_incidents.log import make_log
from robo_eval_incidents.record import Record, new_id
from robo_eval_incidents.state import Incident
from robo_eval_incidents.web.app import API, make_app
from robo_eval_incidents.web.deps import Site
from robo_eval_incidents.words import Via

HAPPENED_NS = 1_772_000_000 * 10**9
HOUR_NS = 3_600 * 10**9
PLAN = """
name: lab
tasks: [{levels: [0], env: RoboEval/CartPole3D-v0}]
policies: [balancer]
episodes: 3
sides: [sim, twin, real]
metrics: {resamples: 200}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log is."""
    return tmp_path / "lab" / "incidents.db"


@pytest.fixture(scope="session")
def new_log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of an empty log of the station `cell-1`: making one takes longer than most tests."""
    path = tmp_path_factory.mktemp("new") / "incidents.db"
    make_log(path, station="cell-1")
    return path.read_bytes()


@pytest.fixture
def log(path: Path, new_log: bytes) -> Iterator[IncidentLog]:
    """An empty log of the station `cell-1`."""
    path.parent.mkdir()
    path.write_bytes(new_log)
    with open_log(path, station="cell-1") as opened:
        yield opened


REPORT: Final[dict[str, Any]] = {
    "happened_ns": HAPPENED_NS,
    "robot": "ur5e",
    "side": "real",
    "severity": "near_miss",
    "category": "protective_stop",
    "description": "stopped before the fixture",
}
"""A near miss on a real robot."""


@pytest.fixture
def report() -> Callable[..., Report]:
    """Makes a report of a near miss on a real robot; arguments are fields that differ."""
    return lambda **fields: Report.model_validate(REPORT | fields)


@pytest.fixture
def say() -> Callable[..., Record]:
    """Files a record as somebody who is logged in."""

    def file(log: IncidentLog, body: Body, by: str = "Operator A", **more: Any) -> Record:
        return log.file(body, **({"by": by, "via": Via.WEB} | more))

    return file


@pytest.fixture
def nil() -> Callable[[int], Nil]:
    """Makes the report of an hour in which nothing happened; the argument numbers it."""

    def make(number: int) -> Nil:
        start_ns = HAPPENED_NS + number * 3_600 * 10**9
        return Nil(start_ns=start_ns, end_ns=start_ns + 3_600 * 10**9)

    return make


@pytest.fixture
def tamper(path: Path) -> Callable[..., None]:
    """Changes the file behind the log's back."""

    def run(*statements: str, parameters: tuple[object, ...] = ()) -> None:
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement, parameters)
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    return run


@pytest.fixture
def played(tmp_path: Path) -> Callable[..., Path]:
    """Makes a trial with an hour of exposure for each physical episode, one every two hours."""

    def make(name: str = "trial", **changed: Any) -> Path:
        trial = TrialDirectory.create(tmp_path / name, parse_plan(PLAN, source="plan"))
        rows = []
        for side in trial.plan.sides:
            for number, planned in enumerate(schedule(trial.plan, side)):
                is_sim = side is Side.SIM
                fields: dict[str, Any] = {
                    "policy_digest": "1" * 64,
                    "start_ns": HAPPENED_NS + 2 * number * HOUR_NS,
                    "duration_s": 4.0 if is_sim else 3600.0,
                    "exposure_s": 0.0 if is_sim else 3600.0,
                    "ticks": 200,
                    "episode_return": 1.0,
                    "quality": 1.0,
                    "success": True,
                    "end_reason": EndReason.SUCCESS,
                    "software": "robo-eval 1",
                    "robot": None if is_sim else f"gantry-{side}",
                }
                own = {} if is_sim else changed
                rows.append(row_for(planned, trial.plan, trial.plan_digest, **(fields | own)))
        with EpisodeStore(trial.path, durable=False) as store:
            store.append(rows)
            trial.write_manifest(status="complete", store=store)
        return trial.path

    return make


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """The web page of a log, asked without a network.

    Attributes:
        client: Asks it; an error of the page is an answer 500.
        site: What it works with.
        headers: What programs of each person send, by their first name.
    """

    client: TestClient
    site: Site
    headers: dict[str, dict[str, str]]

    @property
    def log(self) -> IncidentLog:
        """The log."""
        return self.site.log

    def record(
        self, who: str, kind: str, fields: dict[str, Any], *, code: int = 201, **more: Any
    ) -> Any:
        """What a program of a person is answered that records something."""
        sent = {"kind": kind, "fields": fields, **more}
        answer = self.client.post(f"{API}/records", json=sent, headers=self.headers[who])
        assert answer.status_code == code, answer.text
        return answer.json()

    def cookies(self, who: str) -> tuple[dict[str, str], str]:
        """Cookies of a person who has logged in, and the token of their forms."""
        user = self.site.accounts.find(who)
        assert user is not None
        token = self.site.sessions.begin(user)
        session = self.site.sessions.find(token)
        assert session is not None
        return {COOKIE: token}, session.csrf


PEOPLE: Final = {
    "operator": "operator",
    "colleague": "operator",
    "reviewer": "reviewer",
    "second": "reviewer",
    "auditor": "auditor",
}
"""Accounts by name, each with its role."""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """The web page of a log of the station `cell-1`, with an account for each of `PEOPLE`."""
    folder = tmp_path_factory.mktemp("web")
    open_log(folder / "incidents.db", station="cell-1", make=True).close()
    app = make_app(folder / "incidents.db", names=["testserver"])
    site: Site = app.state.site
    headers = {}
    for name, role in PEOPLE.items():
        user = site.accounts.add(name, f"{name} has a password", [role], by="Operator A")
        token = site.sessions.begin(user, for_program=True)
        headers[name] = {"authorization": f"Bearer {token}"}
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as client:
        yield Web(client=client, site=site, headers=headers)


class Browser:
    """Somebody with a cookie, who sends forms as a page does."""

    REPORT: ClassVar = {
        "description": "The gripper touched the fence.", "robot": "ur5e", "severity": "near_miss",
        "category": "collision", "happened": "2026-03-01T09:30:00",
    }  # fmt: skip

    def __init__(self, web: Web, who: str) -> None:
        self.web = web
        cookies, self.csrf = web.cookies(who)
        self.headers = {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}

    def get(self, path: str, **headers: str) -> Any:
        return self.web.client.get(path, headers=self.headers | headers)

    def post(
        self, path: str, fields: dict[str, str] | bytes, headers: Any = None, **changed: Any
    ) -> Any:
        if isinstance(fields, bytes):
            own = {"content": fields}
            headers = {"content-type": "application/x-www-form-urlencoded"} | (headers or {})
        else:
            own = {"data": {"csrf": self.csrf, "record_id": new_id()} | fields}
        sent = self.headers | (headers or {})
        return self.web.client.post(path, headers=sent, **own, **changed)

    def report(self, **fields: str) -> str:
        """Id of an incident that was reported by the form."""
        answer = self.post("/incidents", self.REPORT | fields)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"].split("/")[2].split("?")[0]


@pytest.fixture
def browse(web: Web) -> Callable[[str], Browser]:
    """Logs somebody in."""
    return lambda who: Browser(web, who)


NEVER = {"sec": 0, "nsec": 0}
LATCHED = {
    "history": "keep_last", "depth": 1, "reliability": "reliable",
    "durability": "transient_local", "deadline": NEVER, "lifespan": NEVER,
    "liveliness": "automatic", "liveliness_lease_duration": NEVER,
    "avoid_ros_namespace_conventions": False,
}  # fmt: skip
BAG = (
    ("/tf_static", "tf2_msgs/msg/TFMessage", (LATCHED,)),
    ("/robot_description", "std_msgs/msg/String", (LATCHED,)),
    ("/arm/safety/state", "diagnostic_msgs/msg/DiagnosticArray", (LATCHED,)),
    ("/arm/safety/incidents", "diagnostic_msgs/msg/DiagnosticArray", (LATCHED,)),
    ("/arm/episode/event", "std_msgs/msg/String", (LATCHED,)),
    ("/arm/joint_states", "std_msgs/msg/String", ()),
)
"""Topics of a recorded bag: name, type, how it is offered."""


def string_message(text: str) -> bytes:
    return bytes(Template().add_string(text).data)


def diagnostics_message(stamp_ns: int, name: str, text: str, **values: str) -> bytes:
    seconds, nanoseconds = divmod(stamp_ns, 10**9)
    message = Template().add_uint32(seconds).add_uint32(nanoseconds).add_string("").add_uint32(1)
    message.data.append(2)  # its level
    for part in (name, text, "arm"):
        message.add_string(part)
    message.add_uint32(len(values))
    for key, value in values.items():
        message.add_string(key).add_string(value)
    return bytes(message.data)


@pytest.fixture
def record() -> Callable[..., Path]:
    """Records a bag of half a minute as the recorder of a robot does, with what happened in it.

    What happened is given as seconds since `start_ns`, and one of `("cause", name, text, values)`
    for the guard's report, `("raw", data)` for what should be one, `("state", state)` for its
    state, and `("event", fields)`.
    """

    def write(folder: Path, *said: tuple[Any, ...], start_ns: int = HAPPENED_NS) -> Path:
        topics = [
            BagTopic(name=name, type=kind, text="string data\n", offered_qos=qos)
            for name, kind, qos in BAG
        ]
        messages: list[tuple[float, str, bytes]] = [
            (0.0, "/tf_static", b"\0\1\0\0base"),
            (0.0, "/tf_static", b"\0\1\0\0camera"),
            (0.0, "/robot_description", string_message("<robot/>")),
            *((n / 10, "/arm/joint_states", string_message(f"tick {n}")) for n in range(300)),
        ]
        for second, kind, *what in said:
            stamp_ns = start_ns + round(second * 10**9)
            if kind == "cause":
                name, text, values = what
                data = diagnostics_message(stamp_ns, name, text, **values)
                messages.append((second, "/arm/safety/incidents", data))
            elif kind == "state":
                data = diagnostics_message(stamp_ns, "guard", what[0], state=what[0])
                messages.append((second, "/arm/safety/state", data))
            elif kind == "raw":
                messages.append((second, "/arm/safety/incidents", what[0]))
            else:
                data = string_message(json.dumps(what[0]))
                messages.append((second, "/arm/episode/event", data))
        with BagWriter(folder, topics, chunk_bytes=2048, start={"event": "start"}) as bag:
            for sequence, (second, topic, data) in enumerate(sorted(messages, key=itemgetter(0))):
                stamp_ns = start_ns + round(second * 10**9)
                bag.write(
                    topic, data, received_ns=stamp_ns, published_ns=stamp_ns, sequence=sequence
                )
        return folder

    return write


# Trials of a robot ----------------------------------------------------------------------------

LAB_PLAN = """
name: {name}
tasks: [{{levels: [0], env: RoboEval/CartPole3D-v0, family: balancing}}]
policies: [balancer]
episodes: 3
sides: [sim, twin, real]
"""
_Said = tuple[Any, ...]


class Lab:
    """A trial that was played, episode by episode."""

    def __init__(self, folder: Path, record: Callable[..., Path], name: str = "lab") -> None:
        plan = parse_plan(LAB_PLAN.format(name=name), source="plan")
        self.trial = TrialDirectory.create(folder, plan)
        self.path = self.trial.path
        self._record = record
        self.planned = {side: schedule(self.trial.plan, side) for side in self.trial.plan.sides}
        self.played = 0

    def next(self, side: Side = Side.REAL) -> PlannedEpisode:
        return self.planned[side][self.played]

    def play(
        self,
        *said: _Said,
        side: Side = Side.REAL,
        has_trace: bool = True,
        at_s: int | None = None,
        **changed: Any,
    ) -> str:
        """Play the next episode; returns its id."""
        planned = self.next(side)
        start_ns = HAPPENED_NS + (self.played * 1000 if at_s is None else at_s) * 10**9
        self.played += 1
        uri = f"traces/{planned.episode_id}"
        if has_trace:
            self._record(self.path / uri, *said, start_ns=0 if side is Side.SIM else start_ns)
        fields: dict[str, Any] = {
            "policy_digest": "1" * 64,
            "start_ns": start_ns,
            "duration_s": 20.0,
            "exposure_s": 20.0,
            "ticks": 1000,
            "episode_return": 0.4,
            "end_reason": EndReason.SAFETY_STOP,
            "end_detail": "guard: estop",
            "robot": None if side is Side.SIM else "arm",
            "software": "robo-eval 1",
            "trace_uri": uri if has_trace else None,
        }
        fields |= changed
        reason: EndReason = fields["end_reason"]
        fields["quality"] = 0.4 if reason.is_scored else None
        fields["success"] = reason is EndReason.SUCCESS if reason.is_scored else None
        row = row_for(planned, self.trial.plan, self.trial.plan_digest, **fields)
        with EpisodeStore(self.path, durable=False) as store:
            store.append([row])
            self.trial.write_manifest(status="running", store=store)
        return planned.episode_id

    def cause(self, second: float, name: str, episode: str | None = None, **values: str) -> _Said:
        """The guard's report of a cause."""
        episode_id = self.next().episode_id if episode is None else episode
        return (second, "cause", name, f"Because of {name}.", {"episode_id": episode_id, **values})

    def incidents(self) -> list[Incident]:
        with open_log(self.path, read_only=True) as log:
            return log.incidents()

    def kinds(self) -> list[str]:
        with open_log(self.path, read_only=True) as log:
            return [record.kind for record in log.records()]


@pytest.fixture
def lab(tmp_path: Path, record: Callable[..., Path]) -> Lab:
    """A trial in which nothing was played yet."""
    return Lab(tmp_path / "trial", record)
