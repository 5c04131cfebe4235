"""The matrix of faults: its arguments, and what it computes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FILE = Path(__file__).parents[3] / "benchmarks/fault_matrix.py"


@pytest.fixture(scope="module")
def matrix() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fault_matrix", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["fault_matrix"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--faults", "kill,drown"], "--faults: 'drown' is none of kill, stop"),
        (["--targets", ""], "--targets: '' is none of guard"),
        (["--halves", "leg"], "--halves: 'leg' is none of arm, trial"),
        (["--repeat", "0"], "--repeat: 1 to 100 is needed, given 0"),
        (["--out", "nowhere/x.md"], "--out: nowhere/x.md cannot take the table"),
        (["conductor"], "give options only"),
        (["measure", "robot.yaml"], "give options only"),
    ],
)
def test_bad_arguments_are_one_error(
    matrix: ModuleType, given: list[str], said: str, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(sys, "argv", ["fault_matrix.py", *given])
    with pytest.raises(SystemExit) as ended:
        matrix.main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_standstill_lasts(matrix: ModuleType) -> None:
    moves, stands = [(n * 0.01, 0.2) for n in range(50)], [(0.5 + n * 0.01, 0.0) for n in range(50)]
    assert matrix.stands_after(moves + stands, 0.1) == pytest.approx(20.0)
    assert matrix.stands_after(moves, 0.1) is None
    # It moved again before it had stood for long enough.
    again = [*moves, *stands[:10], (0.6, 0.2), *[(0.61 + n * 0.01, 0.0) for n in range(50)]]
    assert matrix.stands_after(again, 0.1) == pytest.approx(25.5)


def test_a_stop_takes_until_the_last_command_that_changes(matrix: ModuleType) -> None:
    heard: list[dict[str, Any]] = [{"t": 9.99, "command": [0.9]}, {"t": 10.0, "trips": []}]
    heard.append({"t": 10.01, "trips": ["force"], "at": 10.0})
    heard += [{"t": 10.0 + n * 0.02, "command": [min(1.0, 0.94 + n * 0.02)]} for n in range(10)]
    assert matrix.stop_ticks(heard) == (pytest.approx(3.0), "force")
    assert matrix.stop_ticks(heard[:2]) == (None, "")


def test_the_page_keeps_its_words(matrix: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    page.write_text("# Before\n\n<!-- measured -->\nold\n<!-- end -->\n\nAfter\n")
    cells = [matrix.Cell(fault="kill", target="guard", stands_after=20.0, row="lost")]
    text = matrix.into_page(page, matrix.table(cells, "load 1"))
    assert text.startswith("# Before\n\n<!-- measured -->\n\nrobo-eval ")
    assert "| kill | guard | 20.0 | — | lost |" in text
    assert "old" not in text
    assert text.endswith("<!-- end -->\n\nAfter\n")


def test_cells_that_make_no_sense_say_why(matrix: ModuleType) -> None:
    for (fault, target), why in matrix.SENSELESS.items():
        assert fault in matrix.FAULTS
        assert target in matrix.TARGETS
        assert why in matrix.shown(matrix.play(fault, target, ["arm", "trial"]))
