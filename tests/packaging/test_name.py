"""One name for pip: that of the project, of the messages, and of the pages."""

import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import robo_eval
from robo_eval.core.errors import DISTRIBUTION, pip_install

REPOSITORY = Path(__file__).parents[2]


def project() -> dict:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def test_the_project_is_called_as_the_messages_say() -> None:
    assert project()["name"] == DISTRIBUTION
    assert robo_eval.__version__ == version(DISTRIBUTION) == project()["version"]


def test_every_extra_that_is_named_is_one() -> None:
    known = set(project()["optional-dependencies"])
    command = ["git", "grep", "-hoE", r"pip_install\('[a-z]+'\)|robo-eval[a-z-]*\[[a-z,]+\]"]
    found = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    named = found.stdout.split()
    assert pip_install("sim") == f'pip install "{DISTRIBUTION}[sim]"'
    assert len(named) > 20
    for text in named:
        name, extras = re.match(r"([\w-]+)[\[(]'?([a-z,]+)", text).groups()
        assert name in (DISTRIBUTION, "pip_install"), text
        assert set(extras.split(",")) <= known, text
