"""The table of the README says how large every extra is."""

import re
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_every_extra_has_a_row_with_its_size_or_why_there_is_none() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    readme = (REPOSITORY / "README.md").read_text()
    rows = dict(re.findall(r"^\| `\.(?:\[([a-z]+)\])?` \| .+ \| (.+) \|$", readme, re.MULTILINE))
    assert rows.keys() == {"", *project["optional-dependencies"]}
    for extra, size in rows.items():
        assert re.fullmatch(r"\d+ MB|not measured: .+", size), extra
