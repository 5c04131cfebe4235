"""`robo-eval aiq handicap`: networks of a small study that lose their nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robo_eval.study.run import Study
from robo_eval.study.suite import parse_suite
from tests.e2e.conftest import SUITE

SMALL = ("--layers", 2, "--units", 5, "--steps", 4, "--trainings", 1, "--workers", 1)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("handicap") / "study"
    Study(parse_suite(f"{SUITE}dimensions: 1\n", source="made.yaml"), folder).run()
    return folder


@pytest.mark.slow
def test_networks_are_taken_apart_and_kept(cli, quick_cli, study):
    told = cli("aiq", "handicap", study, *SMALL)
    assert told.code == 0, told.err
    assert "two levels: performance and AIQ in 1 dimensions" in told.out
    assert "mean: line" in told.out
    found = json.loads(quick_cli("aiq", "handicap", study, *SMALL, "--json").out)
    assert found["tests"] == ["level 0", "level 9"]
    assert [one["nodes"] for one in found["curves"]] == [[5, 4, 2, 1], [10, 7, 5, 2]]
    first = found["curves"][0]
    for place, nodes in enumerate(first["nodes"]):
        mean = sum(first["performances"][0][test][place] for test in (0, 1)) / 2
        assert first["mean"]["by_training"][0][place] == pytest.approx(mean)
        assert f"{nodes}   {mean:.3f}  " in told.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none",), "none: no study"),
        ((".", "--units", 3), "steps is 9 and units 3"),
        ((".", "--layers", 0), "layers is 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(quick_cli, arguments, said):
    told = quick_cli("aiq", "handicap", *arguments)
    assert told.code != 0
    assert said in told.err
    assert "Traceback" not in told.err
