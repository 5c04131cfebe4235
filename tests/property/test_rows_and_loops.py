"""What is computed of whole columns is what a loop over the rows finds."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval.core.kinds import EndReason
from robo_eval.metrics.coverage import NO_VERDICT, coverage_of
from robo_eval.metrics.effects import policy_differences
from robo_eval.metrics.frame import episodes_frame, is_missing
from robo_eval.metrics.performance import cells, policies
from robo_eval.metrics.tables import (
    Rows,
    groups,
    main_rows,
    matched_pairs,
    means_by,
    order_of,
    sort_key,
)

POLICIES = ["a", "b"]
FEW = settings(max_examples=12)  # a table each time
KEYS = ("side", "level", "difficulty", "seed")


@st.composite
def tables(draw):
    rows = []
    for index in range(draw(st.integers(1, 12))):
        success = draw(st.sampled_from([True, False, None]))
        reason = draw(st.sampled_from(["fault", "void", "timeout", "lost"]))
        if success is not None:
            reason = "success" if success else draw(st.sampled_from(["failure", "timeout"]))
        rows.append(
            {
                "episode_id": f"e{index}",
                "attempt": 1,
                "side": draw(st.sampled_from(["sim", "real"])),
                "task": draw(st.sampled_from(["T", "U"])),
                "family": draw(st.sampled_from(["", "f"])),
                "policy": draw(st.sampled_from(POLICIES)),
                "level": draw(st.sampled_from([None, 0, 3])),
                "difficulty": draw(st.sampled_from([None, "easy"])),
                "seed": draw(st.integers(0, 4)),
                "arm": draw(st.sampled_from(["main", "main", "main", "control"])),
                "control_id": draw(st.sampled_from([None, "e0", "e1"])),
                "quality": None if success is None else draw(st.integers(0, 10)) / 10,
                "success": success,
                "end_reason": reason,
            }
        )
        # A second try at what was not scored.
        if success is None and draw(st.booleans()):
            rows.append({**rows[-1], "episode_id": f"e{index}-a2", "attempt": 2})
    table = pd.DataFrame(rows)
    if draw(st.booleans()):  # as a table read from CSV is
        table["seed"] = table["seed"].where(table["seed"] > 0)
    return table


def _rows(table):
    return episodes_frame(table).to_dict(orient="records")


def _main(table):
    return [row for row in _rows(table) if row["arm"] == "main"]


def _cell(value):
    return None if is_missing(value) else value


@FEW
@given(tables())
def test_groups_are_those_of_a_loop(table):
    rows = main_rows(episodes_frame(table))
    expected = {}
    for index, row in enumerate(_main(table)):
        expected.setdefault(tuple(_cell(row[name]) for name in KEYS), []).append(index)
    numbered = rows.having(place=np.arange(len(rows)))
    found = groups(numbered, KEYS)
    assert [tuple(map(_cell, key)) for key in found] == list(expected)
    assert [own["place"].tolist() for own in found.values()] == list(expected.values())


@FEW
@given(tables())
def test_coverage_is_that_of_a_loop(table):
    scored, last = set(), {}
    main = _main(table)
    for row in main:
        if not math.isnan(row["quality"]):
            scored.add(row["base_id"])
    for row in main:
        if row["base_id"] not in scored:
            best = last.get(row["base_id"])
            if best is None or row["attempt"] >= best["attempt"]:
                last[row["base_id"]] = row
    reasons = [EndReason(row["end_reason"]) for row in last.values()]
    missing = Counter(NO_VERDICT if reason.is_scored else reason.value for reason in reasons)
    found = coverage_of(main_rows(episodes_frame(table)))
    assert (found.scored, found.attempted) == (len(scored), len(scored) + len(last))
    assert found.missing == dict(sorted(missing.items()))
    assert found.voids == sum(row["end_reason"] == "void" for row in main)
    assert found.attempts == len(main)


@FEW
@given(tables())
def test_cells_and_policies_hold_the_means_of_a_loop(table):
    main = _main(table)
    for found in (*cells(table), *policies(table)):
        names = [name for name in ("side", "policy", "task", "level") if hasattr(found, name)]
        names += ["difficulty"] if hasattr(found, "difficulty") else []
        own = [
            row for row in main
            if all(_cell(row[name]) == getattr(found, name) for name in names)
            and (not hasattr(found, "family") or (row["family"] or row["task"]) == found.family)
        ]  # fmt: skip
        successes = [row["success"] for row in own if row["success"] is not None]
        assert found.coverage.scored == len(successes)
        assert found.n_success == sum(successes)
        if successes:
            assert found.success.value == pytest.approx(sum(successes) / len(successes))


@FEW
@given(tables())
def test_differences_of_policies_are_those_of_a_loop(table):
    condition = ("side", "task", "family", "level", "difficulty", "seed")
    qualities = {}
    for row in _main(table):
        if not is_missing(row["seed"]) and not math.isnan(row["quality"]):
            key = tuple(_cell(row[name]) for name in condition)
            qualities.setdefault(key, {}).setdefault(row["policy"], []).append(row["quality"])
    expected = [
        (key, np.mean(own["a"]) - np.mean(own["b"]))
        for key, own in qualities.items()
        if len(own) == 2
    ]
    found = policy_differences(table, "a", "b", by=("side",))
    for effect in found:
        mine = {}
        for key, difference in expected:
            if key[0] == effect.side:
                mine.setdefault(key[-1], []).append(difference)
        assert effect.n_pairs == sum(map(len, mine.values()))
        if mine:
            mean = np.mean([np.mean(values) for values in mine.values()])
            assert effect.difference.value == pytest.approx(mean, abs=1e-9)


@FEW
@given(st.lists(st.tuples(st.booleans(), st.sampled_from([None, *"abcdefgh"])), min_size=1))
def test_pairs_are_those_of_a_loop(cells):
    rows = Rows({"pair_id": np.array([pair for _, pair in cells] + ["z"], dtype=object)})
    is_first = np.array([first for first, _ in cells] + [False])
    one, other = rows.take(is_first), rows.take(~is_first)
    mine, partners = matched_pairs(one, other)
    last = {pair: row for row, pair in enumerate(other["pair_id"])}
    assert [(row, partner) for row, partner in zip(mine, partners, strict=True)] == [
        (row, last[pair])
        for row, pair in enumerate(one["pair_id"])
        if pair is not None and pair in last
    ]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(-1, 1)), min_size=1, max_size=200),
    st.randoms(use_true_random=False),
)
def test_means_by_group_are_those_of_sorted_values_to_the_last_digit(pairs, random):
    names = sorted({name for name, _ in pairs})
    shuffled = random.sample(pairs, len(pairs))
    found = means_by(
        np.array([names.index(name) for name, _ in shuffled]),
        np.array([value for _, value in shuffled]),
        len(names),
    )
    expected = [np.sort([value for name, value in pairs if name == own]).mean() for own in names]
    assert found.tolist() == expected


@given(st.lists(st.one_of(st.none(), st.integers(-(2**70), 2**70), st.text())))
def test_values_are_ordered_as_their_keys(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    expected = sorted(values, key=lambda value: sort_key((value,)))
    assert [values[index] for index in order_of(column)] == expected


def test_rows_of_rows_are_cut_when_they_are_read():
    rows = Rows({"x": np.array(["a", "b", None, "b"], dtype=object), "quality": np.arange(4.0)})
    some = rows.take([3, 2, 0]).take([True, True, False])
    assert len(some) == 2
    assert some["x"].tolist() == ["b", None]
    assert some["quality"].tolist() == [3.0, 2.0]
    assert some.missing("x").tolist() == [False, True]
    # Numbers are those of the rows they were cut from, so that they can be compared.
    assert some.codes("x").code[0] == rows.codes("x").code[1]
    assert some.having(x=np.array([1, 2]))["x"].tolist() == [1, 2]
    assert set(some.columns) == {"x", "quality"}
