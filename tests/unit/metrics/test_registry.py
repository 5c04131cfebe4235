"""The registry of metrics: what each may yield, and what a package of a lab may add."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from robo_eval.core.errors import InputError
from robo_eval.core.plain import plain
from robo_eval.log.evidence import Evidence, Fault, Incident, Repair
from robo_eval.metrics import Estimate, Number, metric, registry
from robo_eval.metrics.body import Body
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.summary import TrialSummary, summarise

CONFIG = MetricConfig(
    resamples=200,
    tolerances={"*": {"error_mm": 5.0}},
    price_card={"operator": 18.0},
    currency="EUR",
)
HOUR_NS = 3600 * 10**9
PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
BEGIN, END = "<!-- metrics -->", "<!-- end of metrics -->"


def table(side: str = "real") -> pd.DataFrame:
    """Twenty-four pairs of two families, an hour each on the body."""
    rows = []
    for i in range(24):
        for own in (side, "sim"):
            is_body = own != "sim"
            ok = i % 4 > 0 if is_body else i % 6 > 0
            rows.append(
                {
                    "episode_id": f"{own}-{i}",
                    "side": own,
                    "task": "pick" if i % 2 else "place",
                    "policy": "ours",
                    "quality": float(ok),
                    "success": ok,
                    "end_reason": "success" if ok else "failure",
                    "seed": i,
                    "pair_id": f"p{i}",
                    "start_ns": i * HOUR_NS,
                    "duration_s": 3600.0,
                    "exposure_s": 3600.0 if is_body else 0.0,
                    "control_quality": {
                        "error_mm": 1.0 + i % 8,
                        **{
                            f"command_latency_{name}_s": 0.01 * (1 + i % 3)
                            for name in ("p50", "p99", "max")
                        },
                    }
                    if is_body
                    else None,
                }
            )
    return pd.DataFrame(rows)


def evidence(side: str = "real") -> Evidence:
    return Evidence(
        incidents=(Incident(line=1, incident_id="i1", severity="minor", side=side),),
        faults=tuple(
            Fault(line=i, fault="slip", recovered=i > 1, recovered_by="robot", side=side)
            for i in (1, 2, 3)
        ),
        repairs=(Repair(line=1, hours=0.5, side=side),),
    )


def summary(
    side: str = "real", noted: Evidence | None = None, *, shuffled: bool = False
) -> TrialSummary:
    own = table(side)
    if shuffled:
        own = own.sample(frac=1.0, random_state=3).reset_index(drop=True)
    return summarise(own, config=CONFIG, evidence=evidence(side) if noted is None else noted)


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers goes with it."""
    registry.registered()
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))


# What is declared --------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["real", "twin"])
@pytest.mark.parametrize("noted", [evidence, lambda side: Evidence()])
def test_each_number_is_declared_and_says_why_it_is_missing(side: str, noted: Any) -> None:
    found = summary(side, noted(side)).numbers
    declared = {
        one.name_on(side, name): one.unit_of(name)
        for one in registry.registered().values()
        for name in (one.name, *one.also)
    }
    assert {one.name for one in found} <= declared.keys()
    assert {one.side for one in found} == {side}
    for one in found:
        assert one.estimate.unit == declared[one.name]
        assert one.estimate.value is not None or one.estimate.reason, one
        assert one.group in registry.GROUPS
    whole = [(one.name, one.family, one.case, one.at) for one in found]
    assert len(set(whole)) == len(whole)


@pytest.mark.parametrize("side", ["real", "twin"])
def test_every_metric_tells_its_number_of_this_trial(side: str) -> None:
    told = {one.name for one in summary(side).numbers if one.estimate.value is not None}
    own = registry.registered()
    # All pairs have partners, so nothing sharpens; none ended by a fault, or has a control.
    none = ("AR_sharpened", "MTBF", "novelty_effect")
    expected = {
        one.name_on(side) for one in own.values() if side in one.sides and one.name not in none
    }
    assert expected <= told


def test_latency_is_told_of_the_episodes_that_measured_it() -> None:
    own = table()
    own.loc[own["side"] == "real", "control_quality"] = [
        {f"command_latency_{name}_s": 0.01 * (i + 1) * factor
         for name, factor in (("p50", 1.0), ("p99", 2.0), ("max", 3.0))} if i < 3 else {}
        for i in range(24)
    ]  # fmt: skip
    numbers = summarise(own, config=MetricConfig(resamples=200), evidence=evidence()).numbers
    told = {one.name: one for one in numbers if one.name.startswith("command_latency")}
    values = {name: (round(one.estimate.value or 0.0, 6), one.rests_on)
              for name, one in told.items()}  # fmt: skip
    assert values == {
        "command_latency": (0.02, "3 episodes"),
        "command_latency_p99": (0.04, "3 episodes"),
        "command_latency_max": (0.09, "3 episodes"),
    }


def test_the_order_of_rows_moves_no_number() -> None:
    assert plain(list(summary(shuffled=True).numbers)) == plain(list(summary().numbers))


def test_what_lacks_evidence_names_the_remedy() -> None:
    found = {one.name: one for one in summary(noted=Evidence()).numbers}
    assert "incidents.db" in found["SS"].remedy
    assert "faults.csv" in found["RA"].remedy
    assert found["E"].estimate.reason.startswith("SS: no record of incidents")


def test_each_metric_says_what_it_is_in_a_sentence() -> None:
    for one in registry.registered().values():
        assert one.meaning.endswith("."), one.name
        assert len(one.meaning) < 110, one.name


def documented() -> str:
    """The table of `docs/metrics.md`; this file, run as a program, writes it there."""
    rows = ["| name | unit | meaning | further names |", "|---|---|---|---|"]
    for one in registry.registered().values():
        if one.compute.__module__.startswith("robo_eval."):
            further = ", ".join(f"`{name}`" for name in one.also)
            said = one.explanation + ("" if one.is_evidence else " No gate reads it.")
            rows.append(f"| `{one.name}` | {one.unit} | {said} | {further} |")
    return "\n".join(rows)


def parts_of_page() -> tuple[str, str, str]:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    table, after = rest.split(END)
    return before + BEGIN, table.strip(), END + after


def test_the_page_of_metrics_lists_what_there_is() -> None:
    assert parts_of_page()[1] == documented(), f"run {__file__} to write the table anew"


# What is refused ---------------------------------------------------------------------------------


def bodies() -> tuple[Body, ...]:
    return summary().bodies


def counted(value: float, unit: str = "count") -> Estimate:
    return Estimate(value=value, n=1, method="counted", unit=unit)


def test_a_name_may_be_taken_once(empty: None) -> None:
    with pytest.raises(InputError, match=r"metric 'AR'.*robo_eval.metrics.registered.reliability"):

        @metric("AR", group="Ours", unit="count")
        def other(body: Body) -> Iterator[Number]:
            """Other."""
            yield Number(estimate=counted(1.0))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("AR_twin", {}),
        ("S2S", {}),
        ("falls", {"named": {"real": "AR"}, "also": {"slips": "count"}}),
    ],
)
def test_no_number_is_called_on_a_side_as_another_is(
    empty: None, name: str, words: dict[str, Any]
) -> None:
    def own(body: Body) -> Iterator[Number]:
        """Own."""
        yield Number(estimate=counted(1.0))

    with pytest.raises(InputError, match=r"has a metric of that name"):
        metric(name, group="Ours", unit="count", **words)(own)


def test_what_is_not_declared_is_refused_with_the_function_named(empty: None) -> None:
    @metric("steps", group="Ours", unit="count", also={"falls": "count"})
    def steps(body: Body) -> Iterator[Number]:
        """Steps."""
        yield Number(name="slips", estimate=counted(2.0))

    with pytest.raises(InputError, match=r"'steps' of .*test_registry yields 'slips'"):
        bodies()[0].numbers  # noqa: B018


def test_a_unit_is_the_one_declared(empty: None) -> None:
    @metric("steps", group="Ours", unit="count")
    def steps(body: Body) -> Iterator[Number]:
        """Steps."""
        yield Number(estimate=counted(2.0, "ratio"))

    with pytest.raises(InputError, match=r"'steps'.*in 'ratio', declared is 'count'"):
        bodies()[0].numbers  # noqa: B018


def test_what_a_metric_of_a_lab_raises_is_one_line_with_its_name(empty: None) -> None:
    @metric("steps", group="Ours", unit="count")
    def steps(body: Body) -> Iterator[Number]:
        """Steps."""
        yield Number(estimate=counted(float(body.episodes["steps"].sum())))

    with pytest.raises(InputError, match=r"'steps' of .*: computing it fails: .*steps"):
        bodies()[0].numbers  # noqa: B018


def test_what_a_metric_yields_is_a_number(empty: None) -> None:
    @metric("steps", group="Ours", unit="count")
    def steps(body: Body) -> Iterator[Number]:
        """Steps."""
        yield counted(1.0)  # type: ignore[misc]

    with pytest.raises(InputError, match=r"'steps' of .* yields a Estimate, and no Number"):
        bodies()[0].numbers  # noqa: B018


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"estimate": 0.5}, "whose estimate is a float"),
        ({"estimate": None}, "whose estimate is a NoneType"),
        ({"family": None}, "whose family is not text"),
        ({"case": ["slip"]}, "whose case is not text"),
        ({"at": "pick"}, "whose `at` is no Condition"),
    ],
)
def test_parts_of_a_number_are_what_they_should_be(
    empty: None, parts: dict[str, Any], said: str
) -> None:
    @metric("steps", group="Ours", unit="count")
    def steps(body: Body) -> Iterator[Number]:
        """Steps."""
        yield Number(**{"estimate": counted(1.0), **parts})

    with pytest.raises(InputError, match=rf"'steps' of .* yields a Number {said}"):
        bodies()[0].numbers  # noqa: B018


def test_a_number_of_one_part_is_yielded_once(empty: None) -> None:
    @metric("steps", group="Ours", unit="count")
    def steps(body: Body) -> Iterator[Number]:
        """Steps."""
        yield Number(case="up", estimate=counted(1.0))
        yield Number(estimate=counted(1.0))
        yield Number(case="up", estimate=counted(2.0))

    with pytest.raises(InputError, match=r"'steps' of .* yields steps twice"):
        bodies()[0].numbers  # noqa: B018


def test_what_a_metric_writes_into_moves_no_other_number(empty: None) -> None:
    before = [(one.name, one.estimate) for body in bodies() for one in body.numbers]

    @metric("steps", group="Reliability", unit="count")
    def steps(body: Body) -> Iterator[Number]:
        """Steps."""
        for table in (body.frame, body.episodes):
            table.loc[:, "quality"] = 0.0
            table.loc[:, "control_quality"] = None
        if body.counts is not None:
            body.counts["critical"] = 7
        yield Number(estimate=counted(1.0))

    after = [(one.name, one.estimate) for body in bodies() for one in body.numbers]
    assert [one for one in after if not one[0].startswith("steps")] == before


def test_a_metric_of_robots_has_no_value_in_simulation(empty: None) -> None:
    @metric("margin", group="Ours", unit="ratio", needs=("S2R",))
    def margin(body: Body) -> Iterator[Number]:
        """Margin."""
        yield Number(estimate=counted(1.0, "ratio"))

    (simulated,) = [one for one in bodies() if one.side == "sim"]
    assert simulated.of("margin").reason == "S2R: there is none on side sim"


def test_metrics_that_need_each_other_are_named(empty: None) -> None:
    for name, other in (("first", "second"), ("second", "first")):

        @metric(name, group="Ours", unit="count", needs=(other,))
        def own(body: Body) -> Iterator[Number]:
            """Own."""
            yield Number(estimate=counted(1.0))

        own.__qualname__ = name

    with pytest.raises(InputError, match="first -> second -> first"):
        bodies()[0].of("first")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"name": "near misses"}, "near misses"),
        ({"sides": ("robot",)}, "unknown side 'robot'"),
        ({"named": {"robot": "own"}}, "unknown side 'robot'"),
        ({"needs": ("incident",)}, "'own' of .*test_registry: unknown need 'incident'"),
        ({"also": {"own_sim": "count"}}, "two of its numbers are called own_sim on sim"),
    ],
)
def test_a_wrong_declaration_is_refused(empty: None, words: dict[str, Any], said: str) -> None:
    def own(body: Body) -> Iterator[Number]:
        """Own."""
        yield Number(estimate=counted(1.0))

    def declare() -> None:
        metric(**{"name": "own", "group": "Ours", "unit": "count", **words})(own)
        registry.registered()

    with pytest.raises(InputError, match=said):
        declare()


def test_a_metric_that_needs_another_has_its_reason(empty: None) -> None:
    @metric("margin", group="Ours", unit="ratio", needs=("SS", "RA"))
    def margin(body: Body) -> Iterator[Number]:
        """Margin."""
        value = (body.of("SS").value or 0.0) * (body.of("RA").value or 0.0)
        yield Number(estimate=counted(value, "ratio"))

    (bare,) = [one for one in summary(noted=Evidence()).bodies if one.side == "real"]
    found = bare.of("margin")
    assert found.value is None
    assert str(found.reason).startswith("SS: no record of incidents")
    assert "RA: no record of faults" in str(found.reason)
    (whole,) = [one for one in bodies() if one.side == "real"]
    assert whole.of("margin").value == whole.of("SS").value * whole.of("RA").value  # type: ignore[operator]


def test_a_side_is_part_of_every_name_but_that_of_a_robot(empty: None) -> None:
    @metric("steps", group="Ours", unit="count", also={"falls": "count"})
    def steps(body: Body) -> Iterator[Number]:
        """Steps."""
        yield Number(estimate=counted(2.0))
        yield Number(name="falls", estimate=counted(1.0))

    names = {one.side: one.name for one in summary().numbers if one.name.startswith("steps")}
    assert names == {"real": "steps", "sim": "steps_sim"}
    assert {one.name for one in summary("twin").numbers} >= {"steps_twin", "falls_twin"}


if __name__ == "__main__":
    first, _, last = parts_of_page()
    PAGE.write_text(f"{first}\n\n{documented()}\n\n{last}", encoding="utf-8")
