"""Of the two distributions that bring PyBullet one may be here, and what is wrong is named."""

from __future__ import annotations

import sys
from importlib.metadata import version

import pytest

from robo_eval.core import installed
from robo_eval.core.errors import MissingExtraError, pip_install

SIM = pip_install("sim")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch):
    """Say what is installed, whether the module is found, and which Python this is."""

    def set_up(*names: str, is_found: bool, python: tuple[int, int] = (3, 12)) -> None:
        monkeypatch.setattr(installed, "versions_of", lambda asked: dict.fromkeys(names, "3.2"))
        monkeypatch.setattr(installed, "find_spec", lambda name: name if is_found else None)
        monkeypatch.setattr(sys, "version_info", (*python, 1))

    return set_up


@pytest.mark.parametrize("is_found", [True, False])
def test_two_distributions_in_one_folder_are_refused_with_the_remedy(here, is_found) -> None:
    here("pybullet", "pybullet-arm64", is_found=is_found)
    with pytest.raises(MissingExtraError) as refused:
        installed.need_pybullet("the simulator")
    said = str(refused.value)
    assert "pybullet and pybullet-arm64 are both installed" in said
    assert said.endswith(f"pip uninstall -y pybullet pybullet-arm64 && {SIM}")


def test_files_that_an_uninstalled_one_took_along_are_named(here) -> None:
    here("pybullet-arm64", is_found=False)
    with pytest.raises(MissingExtraError, match="files of pybullet-arm64 are gone") as refused:
        installed.need_pybullet("the twin")
    assert str(refused.value).endswith(f"pip uninstall -y pybullet-arm64 && {SIM}")


@pytest.mark.parametrize("python", [(3, 11), (3, 12), (3, 13)])
def test_where_it_can_be_had_the_command_is_named(here, python) -> None:
    here(is_found=False, python=python)
    with pytest.raises(MissingExtraError, match="the twin needs PyBullet") as refused:
        installed.need_pybullet("the twin")
    assert str(refused.value).endswith(SIM)


def test_where_it_cannot_be_had_the_versions_of_python_are_named(here) -> None:
    here(is_found=False, python=(3, 14))
    with pytest.raises(MissingExtraError) as refused:
        installed.need_pybullet("the simulator")
    assert "3.11, 3.12 and 3.13" in str(refused.value)
    assert "3.14" in str(refused.value)
    assert "pip install" not in str(refused.value)


@pytest.mark.parametrize("names", [(), ("pybullet",), ("pybullet-arm64",)])
def test_one_that_is_found_will_do_on_any_python(here, names) -> None:
    here(*names, is_found=True, python=(3, 15))
    installed.need_pybullet("the simulator")


def test_versions_are_those_of_what_is_installed() -> None:
    found = installed.versions_of(["numpy", "no-such-distribution"])
    assert found == {"numpy": version("numpy")}
