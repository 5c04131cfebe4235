"""Names and numbers of a table stay whole on any screen."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import robo_eval.cli
from robo_eval.cli.table import Table, wrapped

HELPER = Path(__file__).parents[2] / "e2e" / "tables_fit.py"
REASON = "no record of incidents: a trial without one is not a trial without incidents"
INTERVAL = "0.62 [0.41, 0.82]"


def misfits(table: Table, width: int) -> list[str]:
    specification = importlib.util.spec_from_file_location("tables_fit", HELPER)
    assert specification is not None
    assert specification.loader is not None
    module: Any = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.misfits(table, width, Table.laid_out)


WORDS = st.text(st.sampled_from("abcdefgh0123456789._-[]日本"), min_size=1, max_size=14)
CELLS = st.one_of(st.just(""), st.just(INTERVAL), st.lists(WORDS, max_size=4).map(" ".join))
SENTENCES = st.one_of(CELLS, st.just(REASON), st.lists(WORDS, max_size=30).map(" ".join))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    columns = draw(st.lists(st.one_of(st.just(""), WORDS), min_size=1, max_size=7))
    places = range(len(columns))
    prose = draw(st.sets(st.sampled_from(places), max_size=2)) - {0}
    cells = st.tuples(*(SENTENCES if place in prose else CELLS for place in places))
    rows = draw(st.lists(cells, max_size=6))
    return Table(columns, rows, right=draw(st.sets(st.sampled_from(places))), prose=prose)


@given(tables(), st.integers(75, 200))
def test_every_name_and_number_is_whole_within_the_width(table: Table, width: int) -> None:
    assert misfits(table, width) == []


@given(tables())
def test_without_a_screen_every_row_stands_on_lines_of_its_own(table: Table) -> None:
    _, body = table.laid_out(None)
    for row in table.rows:
        firm = [cell for place, cell in enumerate(row) if place not in table.prose and cell.strip()]
        assert any(all(cell in line for cell in firm) for line in body)


def test_what_fits_stands_side_by_side() -> None:
    table = Table(["policy", "success"], [["ours", INTERVAL]], right=[1])
    head, body = table.laid_out(80)
    assert head == [" policy             success"]
    assert body == [" ours     0.62 [0.41, 0.82]"]


def test_sentences_go_on_between_words_beside_numbers() -> None:
    table = Table(["metric", "value", "rests on"], [["SS", INTERVAL, REASON]], prose=[2])
    _, body = table.laid_out(60)
    assert body[0].startswith(f" SS       {INTERVAL}   no record of")
    assert len(body) > 1
    assert " ".join(" ".join(body).split()) == f"SS {INTERVAL} {REASON}"


def test_what_does_not_fit_stands_below_its_row_by_the_name_of_its_column() -> None:
    columns = ["policy", "rank", "success", "quality", "why"]
    row = ["pi0-fast-droid-finetuned", "1 to 3", INTERVAL, INTERVAL, REASON]
    _, body = Table(columns, [row], prose=[4]).laid_out(50)
    assert body[:2] == [
        " pi0-fast-droid-finetuned   1 to 3",
        f"      success: {INTERVAL}",
    ]
    assert body[2] == f"      quality: {INTERVAL}"
    assert body[3].startswith("      why: no record of")


def test_a_shared_name_stands_once_above_its_rows() -> None:
    rows = [["a-policy-with-a-long-name", f"metric {i}", INTERVAL, REASON[:40]] for i in range(3)]
    head, body = Table(["policy", "metric", "value", "rests on"], rows, prose=[3]).laid_out(80)
    assert head[0] == " policy"
    assert sum("a-policy-with-a-long-name" in line for line in body) == 1
    assert len(body) == 4


def test_columns_that_do_not_fit_follow_in_a_part_of_their_own() -> None:
    columns = ["level", "difficulty", "ours", "pi0", "octo", "fourth"]
    rows = [[str(level), "easy", *[INTERVAL] * 4] for level in range(17)]
    table = Table(columns, rows, right=[0], keys=2)
    head, body = table.laid_out(80)
    assert (len(head), len(body)) == (1, 17 + 1 + 1 + 17)
    again = next(line for line in body if "level" in line)
    assert again.split() in (["level", "difficulty", "octo", "fourth"], [*columns[:2], "fourth"])
    assert misfits(table, 80) == []


def test_columns_stand_closer_where_that_spares_half_of_the_lines() -> None:
    columns = ["month", "hours", "near_miss", "minor", "major", "critical", "rate", "interval"]
    rows = [["2026-01", "1,234.5", "0", "1", "0", "0", "1.62", "[0.0411, 9.03]"]] * 12
    head, body = Table(columns, rows, right=range(1, 8)).laid_out(75)
    assert (len(head), len(body)) == (1, 12)
    assert misfits(Table(columns, rows, right=range(1, 8)), 75) == []


def test_no_line_of_a_head_is_empty() -> None:
    row = ["pass", "a gate whose name is long, of tasks like these", "0.9 [0.8, 1]", REASON]
    head, _ = Table(["", "gate", "found", "why"], [row], prose=[3]).laid_out(45)
    assert all(line.strip() for line in head)


def test_a_long_sentence_is_told_once_on_a_narrow_screen_alone() -> None:
    rows = [["SS", "-", REASON], ["MTBSI", "-", REASON], ["MTTR", "-", "no repair"]]
    table = Table(["metric", "value", "rests on"], rows, prose=[2])
    narrow, wide = (table.laid_out(width)[1] for width in (60, 120))
    assert any(line.endswith("as for SS") for line in narrow)
    assert sum(line.endswith(REASON) for line in wide) == 2


def test_a_number_is_not_parted_from_its_interval_by_the_name_of_its_column() -> None:
    columns = ["policy", "a column of a name that is rather long"]
    _, body = Table(columns, [["x" * 38, INTERVAL]]).laid_out(40)
    assert any(INTERVAL in line for line in body)


@pytest.mark.parametrize("text", ["", "  two words", f"  {REASON}", "日本 " * 20])
def test_a_line_goes_on_as_far_in_as_it_began(text: str) -> None:
    lines = wrapped(text, 30)
    assert all(cell_len(line) <= 30 for line in lines)
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())
    assert len({len(line) - len(line.lstrip()) for line in lines if line}) <= 1


def test_verbs_print_tables_in_one_way_only() -> None:
    """`print_table` alone, which `e2e/run_prepared.py` watches."""
    for file in Path(robo_eval.cli.__file__).parent.glob("*.py"):
        imported = {
            node.module
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
        }
        assert file.name == "progress_screen.py" or "rich.table" not in imported, file
