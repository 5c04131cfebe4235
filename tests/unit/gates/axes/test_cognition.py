"""Retrieval, and probes beside people."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval import formulas
from robo_eval.core.errors import InputError
from robo_eval.core.plain import plain
from robo_eval.gates.axes.cognition import (
    core_score,
    probe_results,
    retrieved_of,
)
from robo_eval.log.evidence import Probe, Retrieval


def line(queries: int, returned: int, verified: int, k: int = 5, **more: Any) -> Retrieval:
    given = {"family": "objects", "relevant": returned, "found": verified, **more}
    return Retrieval(line=2, k=k, queries=queries, returned=returned, verified=verified, **given)


def probe(mean: float, median: float = 5.0, n: int = 16, sd: float = 1.0, **more: Any) -> Probe:
    given = {"probe": "working_memory_span", "ability": "Gwm", "human_n": 30, "assisted": False}
    return Probe(line=2, n=n, mean=mean, sd=sd, human_median=median, **{**given, **more})


# Retrieval ---------------------------------------------------------------------------------------


def test_shares_of_several_lines_are_those_of_all_their_items() -> None:
    found = retrieved_of([line(10, 45, 40), line(10, 30, 20)], k=5)
    assert found.queries == 20
    assert found.precision.value == pytest.approx(0.6)  # 60 of 20 * 5
    assert found.hallucination.value == pytest.approx(0.2)  # 15 of 75
    assert (found.precision.n, found.hallucination.n) == (100, 75)
    assert found.precision.method == "clopper_pearson"


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    """18 of 20 as in the worked example of the scale."""
    found = retrieved_of([line(4, 20, 18)], k=5)
    assert found.precision.low == pytest.approx(0.683017286, abs=1e-9)
    assert found.precision.high == pytest.approx(0.9876514728, abs=1e-9)
    assert found.hallucination.low == pytest.approx(1.0 - 0.9876514728, abs=1e-9)


def test_lines_about_another_number_of_items_are_left_out_and_named() -> None:
    found = retrieved_of([line(4, 20, 18), line(4, 40, 1, k=10)], k=5)
    assert found.precision.value == pytest.approx(0.9)
    assert found.precision.reason == "lines with k 10 are left out"


def test_without_a_query_nothing_is_known() -> None:
    for lines in ([], [line(0, 0, 0)], [line(3, 3, 3, k=10)]):
        found = retrieved_of(lines, k=5)
        assert (found.precision.value, found.hallucination.value) == (None, None)
        assert str(found.precision.reason).startswith("no query")
    assert "k 10" in str(retrieved_of([line(3, 3, 3, k=10)], k=5).precision.reason)


def test_queries_that_return_nothing_hallucinate_nothing_but_fill_no_room() -> None:
    found = retrieved_of([line(8, 0, 0)], k=5)
    assert found.precision.value == 0.0
    assert found.hallucination.reason == "nothing was returned"
    json.dumps(plain(found), allow_nan=False)


def test_more_items_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(InputError, match="at most k = 5"):
        retrieved_of([line(1, 6, 6)], k=5)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5), st.integers(0, 5)), min_size=1))
def test_shares_agree_with_those_of_each_query(counts: list[tuple[int, int, int]]) -> None:
    queries = [(r, min(r, v)) for _, r, v in counts]
    lines = [line(1, r, v) for r, v in queries]
    found = retrieved_of(lines, k=5)
    alone = formulas.cognitive([r for r, _ in queries], [v for _, v in queries], k=5)
    assert found.precision.value == pytest.approx(alone["vrp_at_k"])
    if alone["hr_at_k"] is None:
        assert found.hallucination.value is None
    else:
        assert found.hallucination.value == pytest.approx(alone["hr_at_k"])


# Probes ------------------------------------------------------------------------------------------


def test_a_probe_is_a_share_of_the_human_median_with_the_interval_of_its_mean() -> None:
    (found,) = probe_results([probe(6.0)])
    assert found.ratio.value == pytest.approx(1.2)
    # t of 15 degrees of freedom at 97.5 %: 2.131449546; half a width of that over 4 and 5.
    assert found.ratio.high == pytest.approx(1.2 + 2.131449546 / 4.0 / 5.0, abs=1e-9)
    assert found.ratio.low == pytest.approx(1.2 - 2.131449546 / 4.0 / 5.0, abs=1e-9)
    assert (found.reached, found.reached_surely) == (True, True)


def test_the_median_itself_is_reached_but_not_surely() -> None:
    (found,) = probe_results([probe(5.0)])
    assert (found.reached, found.reached_surely) == (True, False)
    assert probe_results([probe(4.9)])[0].reached is False


@pytest.mark.parametrize(
    ("one", "value", "reason"),
    [(probe(5.0, median=0.0), None, "the median of people is 0"),
     (probe(0.0, n=0), None, "the probe was never given"),
     (probe(5.0, n=1), 1.0, "given once"),
     (probe(5.0, sd=0.0), 1.0, "all scores are alike")],
)  # fmt: skip
def test_what_cannot_be_compared_says_why(one: Probe, value: float | None, reason: str) -> None:
    (found,) = probe_results([one])
    assert (found.ratio.value, found.ratio.low) == (value, None)
    assert reason in str(found.ratio.reason)
    assert found.reached_surely is None
    json.dumps(plain(found), allow_nan=False)


def test_with_and_without_tools_are_apart() -> None:
    found = probe_results([probe(9.0, assisted=True), probe(4.0)])
    assert [(one.assisted, one.ratio.value) for one in found] == [(False, 0.8), (True, 1.8)]
    assert probe_results([]) == ()


# Core score --------------------------------------------------------------------------------------


def test_the_core_score_is_the_geometric_mean_of_four_axes() -> None:
    values = {"G": 0.9, "P": 0.8, "M": 0.95, "W": 0.7, "A": 0.1}
    expected = (0.9 * 0.8 * 0.95 * 0.7) ** 0.25
    assert core_score(values).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("axis", ["G", "P", "M", "W"])
def test_a_missing_axis_leaves_no_core_score(axis: str) -> None:
    values: dict[str, float | None] = dict.fromkeys("GPMW", 0.9)
    assert core_score({**values, axis: None}).reason == f"{axis} missing"
    del values[axis]
    assert core_score(values).value is None
    assert core_score({**dict.fromkeys("GPMW", 0.9), axis: 0.0}).value == 0.0


def test_what_is_above_people_makes_up_for_nothing() -> None:
    assert core_score({"G": 3.0, "P": 1.0, "M": 1.0, "W": 0.5}).value == pytest.approx(0.5**0.25)
    with pytest.raises(InputError):
        core_score({"G": -0.1, "P": 1.0, "M": 1.0, "W": 0.5})


def test_the_interval_of_the_core_score_is_that_of_its_draws() -> None:
    rng = np.random.default_rng(0)
    draws = {axis: rng.uniform(0.4, 1.2, 300) for axis in "GPMW"}
    values: dict[str, float | None] = dict.fromkeys("GPMW", 0.8)
    found = core_score(values, draws=draws, n=40)
    means = np.exp(np.mean([np.log(np.minimum(one, 1.0)) for one in draws.values()], axis=0))
    assert found.low == pytest.approx(np.quantile(means, 0.025))
    assert found.high == pytest.approx(np.quantile(means, 0.975))
    assert (found.n, math.isclose(found.value or 0.0, 0.8)) == (40, True)
    assert core_score(values, draws={"G": draws["G"]}).low is None
    assert core_score(values, draws=dict.fromkeys("GPMW", np.zeros(0))).low is None
