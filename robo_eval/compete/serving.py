"""How a competition is served at an address, until it is told to stop."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import itertools
import logging
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from robo_eval.compete.competition import check_dates, read_competition
from robo_eval.compete.ledger import FILE, Ledger
from robo_eval.compete.playable import check_playable
from robo_eval.core.errors import CheckFailedError, InputError, MissingExtraError, pip_install
from robo_eval.web.serve import address, check_address, listening, server_of

PORT: Final = 8600
_START_S: Final = 180.0


class Serving:
    """A server of a competition.

    Args:
        ledger: What is served; it is closed with the server.
        host: Address to listen at.
        port: Port; 0 takes a free one.
        workers: Simulator processes; None for one a core.
        ray: Address of a Ray cluster that simulators are on; None for this machine.
        world_limit_s: How long a simulator may say nothing before it counts as hung, seconds.
        names: Names it is reached by, beside that of this machine and any address.
        allow_plain: Listen on other addresses than this machine's own, where something else
            encrypts the way.

    Attributes:
        url: Where it is, for this machine.
        told_url: Where it is, for those who take part.
        house: The server without its wires.

    Raises:
        InputError: If the address cannot be listened at, or tokens would cross a network in the
            clear.
        MissingExtraError: If the server's packages are not installed.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        host: str = "127.0.0.1",
        port: int = PORT,
        workers: int | None = None,
        ray: str | None = None,
        world_limit_s: float = 60.0,
        names: Sequence[str] = (),
        allow_plain: bool = False,
    ) -> None:
        check_address(host, is_tls=False, allow_plain=allow_plain, remedy="")
        try:
            import websockets  # noqa: F401 - uvicorn finds it by itself

            from robo_eval.compete.arena import Arena
            from robo_eval.compete.direct import Direct
            from robo_eval.compete.door import make_app
            from robo_eval.compete.house import House
        except ImportError as err:
            raise MissingExtraError(
                f"serving a competition needs {err.name}: {pip_install('server')}"
            ) from err
        arena = Arena(workers, limit_s=world_limit_s, ray=ray)
        self._listener = listening(host, port)
        bound = self._listener.getsockname()[1]
        self.url = address(host, bound, is_tls=False)
        is_all = not host.strip("0.:")  # all addresses of this machine, none of which is named
        told = [*names, socket.gethostname()][0] if is_all else host
        self.told_url = address(told, bound, is_tls=False)
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(contextlib.closing(self._listener))
        server = self._stack.enter_context(_named(ledger.folder))
        self.house = House(ledger, arena, server)
        self._server: Any = server_of(
            make_app(self.house, ("localhost", host, socket.gethostname(), *names)),
            log_level="error",
            ws=Direct,
            ws_max_size=ledger.competition.limits.message_bytes,
            ws_per_message_deflate=False,  # costs more time than it saves
            ws_ping_interval=None,  # how long a team may be silent is a rule, and told
        )
        # uvicorn logs each connection that is refused over HTTP as a fault of the application, and
        # why it could not start as a traceback.
        logging.getLogger("uvicorn.error").addFilter(_is_no_refusal)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until the program is told to stop.

        Raises:
            CheckFailedError: If an environment cannot be made, or a simulator cannot start.
        """
        # uvicorn ends the program where it could not start; the sentence below says why.
        with self._stack, contextlib.suppress(KeyboardInterrupt, SystemExit):
            self._server.run(sockets=[self._listener])
        self._check_started()

    def start(self) -> None:
        """Serve in a thread, and come back when it answers.

        Raises:
            CheckFailedError: If it does not start.
        """
        self._thread = threading.Thread(target=self._run_quietly, daemon=True)
        self._thread.start()
        atexit.register(self.stop)  # Python waits for processes that nobody ends
        self.wait()

    def wait(self) -> None:
        """Wait until it answers.

        Raises:
            CheckFailedError: If it does not start.
        """
        deadline_s = time.monotonic() + _START_S
        while not self._server.started and time.monotonic() < deadline_s and not self.house.problem:
            time.sleep(0.02)
        self._check_started()

    def _check_started(self) -> None:
        if not self._server.started:
            raise CheckFailedError(self.house.problem or "the server could not start")

    def _run_quietly(self) -> None:
        with contextlib.suppress(CheckFailedError, SystemExit):
            self.run()

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop."""
        return bool(self._server.should_exit)

    def at_end(self, call: Callable[[], None]) -> None:
        """Have something done when it has ended."""
        self._stack.callback(call)

    def stop(self) -> None:
        """End it, and wait for that."""
        self._server.should_exit = True
        atexit.unregister(self.stop)
        if self._thread is not None:
            self._thread.join(_START_S)


def _is_no_refusal(record: logging.LogRecord) -> bool:
    said = record.getMessage()
    is_start = said.startswith("Traceback") or "Application startup failed" in said
    return not is_start and "without completing handshake" not in said


@contextlib.contextmanager
def _named(folder: Path) -> Iterator[str]:
    """A name for this process that it has again after it was killed.

    It is the number of the first lock that nobody holds: several processes may serve one folder.
    """
    for number in itertools.count():
        file = (folder / f"server{number}.lock").open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        with file:
            yield f"{socket.gethostname()}:{folder.absolute()}:{number}"
        return


@contextlib.contextmanager
def opened(
    file: Path, folder: Path, url: str | None = None, *, tries_envs: bool = True
) -> Iterator[Ledger]:
    """The ledger of a competition in a folder: a new one, or the one that was begun there.

    If the body fails, nothing is left of a new one, but for what a database server holds.

    Args:
        file: The competition.
        folder: The folder.
        url: Of the PostgreSQL database that a new ledger is to be in; None for a file.
        tries_envs: Whether the environments are on this machine.

    Raises:
        InputError: If another competition was begun there, or elsewhere, the file is none, or what
            it names cannot be played.
    """
    competition = read_competition(file)
    is_new = not (folder / FILE).exists()
    if is_new:
        check_dates(competition, str(file))
    check_playable(competition, str(file), envs=tries_envs)
    ledger = Ledger.create(folder, competition, url) if is_new else Ledger.open(folder)
    try:
        if not is_new and url not in (None, ledger.url):
            raise InputError(f"{folder}: was begun with another database; leave --database out")
        if ledger.competition != competition:
            raise InputError(
                f"{folder}: another competition was begun there than {file} says; serve"
                f" {folder / FILE}, or name a new folder"
            )
        yield ledger
    except BaseException:
        ledger.close_connection()
        if is_new and url is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def rehearsed(file: Path, folder: Path, *, baselines: bool = True) -> Ledger:
    """The ledger of a dry run: the same competition with other seeds, open at once.

    Args:
        file: The competition.
        folder: A new folder.
        baselines: Whether its baselines play as well.

    Raises:
        InputError: If the file is no competition, or what it names cannot be played.
    """
    competition = read_competition(file)
    check_playable(competition, str(file), baselines=baselines)
    changes = {"opens": None, "closes": "2200-01-01T00:00:00Z", "beacon": None}
    return Ledger.create(folder, competition.model_copy(update=changes))
