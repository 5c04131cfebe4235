"""How a competition is begun at an address, and what a start that is refused leaves."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from robo_eval.cli.compete_serve import serve
from robo_eval.core.errors import InputError
from tests.unit.compete.door.conftest import Served, tiny


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "cup.yaml").write_text(tiny().replace(", max_ticks: 8", ""))
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
    file.write_text(file.read_text().replace("2099", "2001"))
    with pytest.raises(InputError, match=r"cup\.yaml: closes"):
        serve(file, out=file.parent / "out", port=0)


def test_the_remedy_names_options_that_there_are(file: Path) -> None:
    with pytest.raises(InputError, match=r"tokens .*--allow-plain-http") as refused:
        serve(file, out=file.parent / "out", host="0.0.0.0")
    assert "--cert" not in str(refused.value)


CART = "env: RoboEval/CartPole3D-v0"
HERE = "tests.unit.compete.door.test_serving"


class Speechless:
    """An agent whose action is none."""

    name, digest = "a", "0" * 64

    def reset(self, seed: int | None = None) -> None:
        pass

    def act(self, observation: Any) -> str:
        return "left"


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (CART, f"{CART}, kwargs: {{bolls: 0}}", "tasks.0.kwargs: .*bolls"),
        (CART, "env: nopkg.mod:X-v0", "tasks.0.env: .*nopkg"),
        (f"{CART}, levels: [1]", f"{CART}, axes: {{pole_mass: [-5.0]}}", "tasks.0.axes: "),
        (CART, f"{CART}, max_ticks: 9", "tasks.0.max_ticks: .*remove the key"),
        ("name: tiny", "name: ''", "name: must not be empty"),
        ("name: tiny", 'name: "a\\nb"', "name: is one line"),
        ("feedback: 0", "feedback: 1000", "feedback: 1000 is more than the 2 episodes"),
        ("limits: {", "limits: {trial_s: 50, episode_s: 100, ", "limits.episode_s: 100 is longer"),
        ("hints:", "baselines: [balancr]\nhints:", "baselines.0: .*balancer"),
        ("hints:", "baselines: [nothing, arm-still]\nhints:", "baselines.1: does not play .*Cart"),
        ("hints:", f"baselines: [{{name: a, factory: '{HERE}:Speechless'}}]\nhints:",
         "baselines.0: does not play .*left"),
    ],
)  # fmt: skip
def test_what_cannot_be_played_is_refused_before_anything_is_begun(
    file: Path, old: str, new: str, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = file.read_text()
    file.write_text(good.replace(old, new))
    assert good != file.read_text()
    for begin in (serve, partial(serve, rehearse=True)):
        with pytest.raises(InputError, match=rf"cup\.yaml: {field}") as refused:
            begin(file, out=file.parent / "cup", port=0)
        assert len(str(refused.value).splitlines()) == 1
    assert list(file.parent.iterdir()) == [file]
    assert "is served" not in capsys.readouterr().out


def test_a_server_that_cannot_start_says_why_in_one_line(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from robo_eval.compete.competition import parse_competition
    from robo_eval.compete.ledger import Ledger
    from robo_eval.compete.serving import Serving
    from robo_eval.core.errors import CheckFailedError

    text = file.read_text().replace(CART, f"{CART}, kwargs: {{bolls: 0}}")
    ledger = Ledger.create(file.parent / "c", parse_competition(text, source="cup.yaml"))
    with pytest.raises(CheckFailedError, match="bolls") as refused:
        Serving(ledger, port=0, workers=1).run()
    assert len(str(refused.value).splitlines()) == 1
    assert "Traceback" not in capfd.readouterr().err


def test_who_is_measured_against_and_is_not_there_yet_is_told(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from robo_eval.compete.serving import Serving

    monkeypatch.setattr(Serving, "run", lambda _self: None)
    monkeypatch.setattr("robo_eval.compete.players.play_in_background", lambda _serving: None)
    roles = "onset: 1, frozen: balancr, informed: nothing,"
    text = file.read_text().replace("onset: 1,", roles) + "baselines: [nothing]\n"
    file.write_text(text)
    serve(file, out=file.parent / "cup", port=0)
    said = capsys.readouterr().out
    assert "trials.frozen: no baseline and no team is called 'balancr' yet" in said
    assert "trials.informed" not in said


@pytest.mark.parametrize("given", [{"team": ["nothing"]}, {"policy": ["nothing=ws://h:1"]}])
def test_nobody_else_has_the_name_of_a_baseline(file: Path, given: dict[str, Any]) -> None:
    file.write_text(file.read_text() + "baselines: [nothing]\n")
    with pytest.raises(InputError, match="name of a baseline"):
        serve(file, **{"out": file.parent / "cup", "port": 0, **given})
    assert list(file.parent.iterdir()) == [file]


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
