"""The page on the words of incidents has every word, with the meaning the program gives it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from robo_eval_incidents.words import (
    Category,
    Engagement,
    Question,
    Severity,
    Status,
)

PAGE = Path(__file__).parents[2] / "docs" / "vocabulary.md"
RECORDABLE = 3
"""Column of the table of examples."""


def table(title: str) -> list[list[str]]:
    """Cells of the table under a heading, without its head and without marks of code."""
    _, found, section = PAGE.read_text().partition(f"\n## {title}\n")
    assert found, f"no heading {title!r}"
    lines = section.partition("\n##")[0].splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in row] for row in rows[2:]]


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Severity", Severity),
        ("Category", Category),
        ("Engagement", Engagement),
        ("Status", Status),
        ("Recordability", Question),
    ],
)
def test_the_page_explains_each_word_once_in_the_programs_order(
    title: str, words: Iterable[str]
) -> None:
    rows = table(title)
    assert [row[0] for row in rows] == [str(word) for word in words]
    assert all(row[1] for row in rows)


def test_words_mean_what_the_program_says() -> None:
    assert {row[0]: row[1] for row in table("Severity")} == {
        one.value: one.meaning for one in Severity
    }
    assert {row[0]: row[1] for row in table("Category")} == {
        one.value: one.meaning for one in Category
    }


def test_questions_are_those_of_the_program() -> None:
    assert {row[0]: row[1] for row in table("Recordability")} == {
        one.value: one.meaning for one in Question
    }


def test_examples_use_words_that_exist_and_say_why() -> None:
    rows = table("Examples")
    assert {row[1] for row in rows} == set(Severity)
    assert {row[2] for row in rows} <= set(Category)
    for row in rows:
        verdict, _, reason = row[RECORDABLE].partition(": ")
        assert verdict in {"yes", "no"}
        assert reason
