"""How a competition is begun at an address, and what a start that is refused leaves."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from robo_eval.cli.compete_serve import serve
from robo_eval.core.errors import InputError
from tests.unit.compete.door.conftest import Served, tiny


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "cup.yaml").write_text(tiny())
    return tmp_path / "cup.yaml"


@pytest.mark.parametrize(
    "given",
    [
        {"host": "0.0.0.0"}, {"host": "no.such.host.invalid", "allow_plain": True},
        {"policy": ["nobody"]}, {"policy": ["a b=ws://h:1"]}, {"team": ["a b"]},
        {"team": ["twice", "twice"]},
    ],
    ids=str,
)  # fmt: skip
def test_a_refused_start_leaves_nothing(file: Path, given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        serve(file, **{"out": file.parent / "cup", "port": 0, **given})
    assert list(file.parent.iterdir()) == [file]


def test_a_port_that_is_taken_leaves_nothing_new_and_all_that_was(file: Path) -> None:
    from robo_eval.compete.ledger import Ledger
    from robo_eval.compete.serving import opened

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=str(port)):
            serve(file, out=file.parent / "cup", port=port)
        assert list(file.parent.iterdir()) == [file]
        with opened(file, file.parent / "old") as ledger:
            ledger.add_team("first")
            ledger.close_connection()
        with pytest.raises(InputError, match=str(port)):
            serve(file, out=file.parent / "old", port=port)
    with Ledger.open(file.parent / "old") as ledger:
        assert [team.name for team in ledger.teams()] == ["first"]


def test_a_closing_date_that_is_past_names_the_file(file: Path) -> None:
    file.write_text(tiny().replace("2099", "2001"))
    with pytest.raises(InputError, match=r"cup\.yaml: closes"):
        serve(file, out=file.parent / "out", port=0)


def test_the_remedy_names_options_that_there_are(file: Path) -> None:
    with pytest.raises(InputError, match=r"tokens .*--allow-plain-http") as refused:
        serve(file, out=file.parent / "out", host="0.0.0.0")
    assert "--cert" not in str(refused.value)


@pytest.mark.parametrize("names", [["evalbox", "other"], []])
def test_teams_are_given_a_name_where_all_addresses_are_listened_at(
    file: Path, names: list[str]
) -> None:
    from robo_eval.compete.serving import Serving, rehearsed

    ledger = rehearsed(file, file.parent / "dry")
    serving = Serving(ledger, host="0.0.0.0", port=0, names=names, allow_plain=True)
    name = names[0] if names else socket.gethostname()
    assert serving.told_url == serving.url.replace("0.0.0.0", name)
    serving._listener.close()
    ledger.close_connection()


def test_a_server_that_has_ended_is_not_missed(tmp_path: Path) -> None:
    served = Served(tmp_path / "cup", tiny())
    assert len(served.ledger.servers()) == 1
    served.serving.stop()
    assert served.ledger.servers() == {}
    served.stop()
