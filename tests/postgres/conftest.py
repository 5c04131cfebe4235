"""A real PostgreSQL server of the tests' own, which they may kill."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest


class Server:
    """A server on a socket in a folder of its own."""

    def __init__(self, pgserver: Any, folder: Path) -> None:
        self._server = pgserver.get_server(folder / "killed", cleanup_mode="delete")

    def make_database(self) -> str:
        """URL of a new, empty database."""
        name = f"log_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return str(self._server.get_uri(name))

    def kill(self) -> None:
        """Kill -9 of the server and all that belongs to it, as a power cut would."""
        postmaster = psutil.Process(self._server.get_pid())
        family = [postmaster, *postmaster.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=120)

    def start(self) -> None:
        """Start it again; it recovers from its own log."""
        for attempt in range(40):
            try:
                self._server.ensure_postgres_running()
            except Exception:
                if attempt == 39:
                    raise
                time.sleep(0.5)
            else:
                return

    def stop(self) -> None:
        """Stop it and delete its data."""
        self._server.cleanup()


@pytest.fixture(scope="session")
def server(pgserver: Any, server_folder: Path) -> Iterator[Server]:
    """The server."""
    running = Server(pgserver, server_folder)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def url(server: Server) -> str:
    """URL of an empty database."""
    return server.make_database()
