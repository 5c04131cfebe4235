"""The AAI index with its intervals, its alternatives, and what it refuses to say."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval import formulas
from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import plain
from robo_eval.formulas import AXES, WEIGHT_PROFILES
from robo_eval.gates.axes.anchors import Axis
from robo_eval.gates.axes.index import index_of
from robo_eval.gates.axes.settings import IndexSettings

# The example vector of the scale, section 4.
X: dict[str, float | None] = {
    "A": 0.7, "G": 0.5, "P": 0.6, "M": 0.6, "T": 0.5, "R": 0.3, "S": 0.4, "E": 0.8992833802,
    "W": 0.6, "$": 0.5,
}  # fmt: skip
NO_E = {**X, "E": None}
NEAR = pytest.approx


def axes(
    values: dict[str, float | None], *, sd: float | None = 0.02, size: int = 2000, seed: int = 0
) -> list[Axis]:
    """Axes with these values, and independent normal draws around them."""
    rng = np.random.default_rng(seed)
    found = []
    for name, value in values.items():
        if value is None:
            estimate = Estimate.missing(reason="not measured", unit="ratio")
        else:
            estimate = Estimate(value=value, n=10, method="x", unit="ratio")
        noise = rng.standard_normal(size)
        drawn = None if value is None or sd is None else np.clip(value + sd * noise, 0.0, 1.0)
        found.append(
            Axis(name=name, raw=estimate, baseline=0.0, expert=1.0, value=estimate, draws=drawn)
        )
    return found


def of(values: dict[str, float | None], weights: Any = "general", **more: Any) -> Any:
    settings = IndexSettings(weights=weights, **more)
    return index_of(axes(values), settings)


# Worked numbers of the scale ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "weights", "expected"),
    [
        (X, "general", 0.5094659884),
        (X, "robotics", 0.5745298367),
        (NO_E, "general", 0.4944549203),
        (NO_E, "software", 0.4977465320),
    ],
)
def test_worked_examples_of_the_index(values: Any, weights: str, expected: float):
    found = of(values, weights)
    assert found.index.value == NEAR(expected, abs=1e-9)
    assert found.index.low < expected < found.index.high
    assert found.index.n == len(found.weights) == (10 if values is X else 9)
    assert sum(found.weights.values()) == NEAR(1.0)
    assert found.alternatives[weights].value == found.index.value
    assert found.mean == NEAR(expected, abs=0.002)
    assert found.median == NEAR(expected, abs=0.002)
    assert found.quartiles[0] < found.median < found.quartiles[1]


def test_worked_examples_of_unevenness_and_the_delta_method():
    found = index_of(axes(X, size=4000), IndexSettings(weights="robotics", resamples=4000))
    assert found.arithmetic_mean.value == NEAR(0.6023566760, abs=1e-9)
    assert found.uniformity.value == NEAR(0.9538033851, abs=1e-9)
    assert found.adjusted.value == NEAR(0.5611022591, abs=1e-9)
    # Errors are those of the draws, 0.02 but for chance.
    half = 1.959963985 * 0.006992160592
    assert found.delta.high - found.delta.value == NEAR(half, rel=0.03)
    assert found.index.high - found.index.low == NEAR(2 * half, rel=0.08)


def test_other_weights_stand_beside_the_chosen_ones():
    found = of(X, "robotics")
    for name in WEIGHT_PROFILES:
        assert found.alternatives[name].value == NEAR(formulas.aai_index(X, name))
    assert found.alternatives["equal"].value == NEAR(np.exp(np.mean(np.log(list(X.values())))))
    without = {**WEIGHT_PROFILES["robotics"], "E": 0.0}
    assert found.alternatives["without_embodiment"].value == NEAR(formulas.aai_index(X, without))
    assert found.alternatives["with_embodiment"].value == found.index.value
    software = of(X, "software")
    assert software.alternatives["without_embodiment"].value == software.index.value
    with_e = {**WEIGHT_PROFILES["software"], "E": 0.5}
    assert software.alternatives["with_embodiment"].value == NEAR(formulas.aai_index(X, with_e))


# What is missing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in AXES if name != "E"])
def test_without_a_required_axis_there_is_no_index(name: str):
    found = of({**X, name: None})
    for one in (found.index, found.adjusted, found.delta, found.uniformity, found.arithmetic_mean):
        assert one.value is None
        assert f"{name} (" in str(one.reason)
    assert found.missing == (name,)
    assert (found.mean, found.median, found.quartiles, found.draws) == (None, None, None, None)
    assert found.weights == {}


def test_an_axis_that_is_not_among_them_is_missing():
    found = index_of(axes(X)[:7], IndexSettings())
    assert found.missing == ("W", "$")
    assert found.index.reason == "no value of W (world model), $ (throughput)"


def test_embodiment_may_be_missing_but_for_a_robot():
    assert of(NO_E, "general").missing == ()
    assert "E" not in of(NO_E, "general").weights
    assert of(NO_E, "robotics").missing == ("E",)
    tripled = {name: 3 * weight for name, weight in WEIGHT_PROFILES["robotics"].items()}
    assert of(NO_E, tripled).missing == ("E",)
    general = of(NO_E, "general")
    assert general.alternatives["robotics"].value is None
    assert general.alternatives["with_embodiment"].value is None
    assert general.alternatives["without_embodiment"].value == NEAR(general.index.value)


def test_an_axis_without_weight_does_not_count_whatever_it_is():
    weights = {"A": 1.0, "G": 1.0}
    found = of({**dict.fromkeys(AXES), "A": 0.9, "G": 0.4, "S": 0.0}, weights)
    assert found.index.value == NEAR(0.6)
    assert set(found.weights) == {"A", "G"}


def test_weights_of_embodiment_alone_leave_nothing_without_it():
    found = of(X, {"E": 1.0})
    assert found.index.value == NEAR(0.8992833802)
    assert "without_embodiment" not in found.alternatives
    assert of(NO_E, {"E": 1.0}).missing == ("E",)


def test_an_axis_without_draws_leaves_the_index_without_an_interval():
    known = axes(X)
    known[3] = axes(X, sd=None)[3]
    found = index_of(known, IndexSettings())
    assert found.index.value == NEAR(0.5094659884, abs=1e-9)
    assert (found.index.low, found.index.reason) == (None, "no interval of M")
    assert (found.delta.low, found.delta.value) == (None, found.index.value)
    assert found.mean is None


def test_an_axis_of_0_makes_an_index_of_0_whose_draws_may_not_be():
    found = of({**X, "S": 0.0})
    assert (found.index.value, found.adjusted.value) == (0.0, 0.0)
    assert (found.index.low, found.delta.low) == (0.0, None)
    assert found.index.high > 0.0
    assert "no slope" in found.delta.reason


def test_all_axes_of_0_are_an_index_of_0_and_no_error():
    known = axes(dict.fromkeys(AXES, 0.0), sd=0.0)
    for form in ("gm_am", "min_max", "one_minus_cv"):
        found = index_of(known, IndexSettings(uniformity=form))
        assert (found.index.high, found.uniformity.value, found.uniformity.high) == (0.0, 0.0, 0.0)


# Resampling --------------------------------------------------------------------------------------


@given(
    st.lists(st.floats(0.0, 1.0), min_size=10, max_size=10),
    st.sampled_from(["gm_am", "min_max", "one_minus_cv"]),
    st.floats(0.0, 2.0),
    st.sampled_from([*WEIGHT_PROFILES, {"A": 1.0, "S": 2.5, "E": 0.1}]),
)
def test_each_resample_is_the_formula_of_its_axes(
    values: list[float], form: Any, gamma: float, weights: Any
):
    """With draws that are the values themselves, all resamples give what the formula gives."""
    vector: dict[str, float | None] = dict(zip(AXES, values, strict=True))
    settings = IndexSettings(weights=weights, gamma=gamma, uniformity=form, resamples=100)
    found = index_of(axes(vector, sd=0.0, size=100), settings)
    expected = formulas.jaggedness(vector, weights, gamma, form=form)
    for one, key in ((found.index, "index"), (found.adjusted, "adjusted_index"),
                     (found.uniformity, "uniformity"),
                     (found.arithmetic_mean, "weighted_arithmetic_mean")):  # fmt: skip
        value = expected[key]  # type: ignore[literal-required]
        assert one.value == NEAR(value)
        # 1 - CV of nearly equal axes is exact to about the root of a rounding error only.
        assert one.low == NEAR(value, abs=1e-6)
        assert one.high == NEAR(value, abs=1e-6)
    counted = [vector[name] or 0.0 for name in found.weights]
    assert min(counted) - 1e-12 <= (found.index.value or 0.0) <= max(counted) + 1e-12


def test_axes_of_the_same_episodes_keep_their_draws_together_and_others_do_not():
    known = axes(X, sd=0.1)
    shared = known[0].draws
    assert shared is not None
    same = [
        Axis(name=a.name, raw=a.raw, baseline=0.0, expert=1.0, value=a.value, draws=shared)
        for a in known
    ]

    def width(*names: str) -> float:
        found = index_of(same, IndexSettings(weights=dict.fromkeys(names, 1.0)))
        return float(np.std(np.log(np.maximum(found.draws, 1e-9))))  # type: ignore[arg-type]

    alone = width("A")
    assert width("A", "G", "P", "W") == NEAR(alone, rel=1e-9)
    # Draws made of the same numbers would never even out; put in any order they do.
    assert width("M", "T", "R", "S") == NEAR(alone / 2, rel=0.1)


def test_draws_of_other_numbers_than_the_resamples_are_used_evenly():
    known = axes(X, size=500)
    for resamples in (100, 500, 1300):
        found = index_of(known, IndexSettings(resamples=resamples))
        assert found.draws is not None
        assert found.draws.shape == (resamples,)
    assert index_of(known, IndexSettings(resamples=1000)).mean == NEAR(0.509, abs=0.003)


def test_the_same_seed_gives_the_same_index():
    known = axes(X)
    first, again, other = (index_of(known, IndexSettings(), seed=s) for s in (1, 1, 2))
    assert first.index == again.index
    assert first.alternatives == again.alternatives
    assert first.index.value == other.index.value
    assert first.index.low != other.index.low


def test_a_higher_level_is_a_wider_interval():
    wide, narrow = (index_of(axes(X), IndexSettings(), level=level) for level in (0.99, 0.8))
    for name in ("index", "delta", "adjusted"):
        one, other = getattr(wide, name), getattr(narrow, name)
        assert (one.level, other.level) == (0.99, 0.8)
        assert one.high - one.low > other.high - other.low


@pytest.mark.slow
def test_both_intervals_cover_the_true_index_about_as_often_as_they_say():
    """Axes of 60 episodes each, whose draws are Jeffreys'."""
    truth = np.array([value or 0.0 for value in X.values()])
    index = formulas.aai_index(X, "general") or 0.0
    rng = np.random.default_rng(11)
    covered = np.zeros(2)
    trials, n = 400, 60
    settings = IndexSettings(resamples=200)
    for trial in range(trials):
        k = rng.binomial(n, truth)
        known = [
            Axis(
                name=name, raw=value, baseline=0.0, expert=1.0, value=value,
                draws=rng.beta(count + 0.5, n - count + 0.5, 200),
            )
            for name, count in zip(AXES, k, strict=True)
            for value in [Estimate(value=count / n, n=n, method="x", unit="ratio")]
        ]  # fmt: skip
        found = index_of(known, settings, seed=trial)
        for i, one in enumerate((found.index, found.delta)):
            assert one.low is not None
            assert one.high is not None
            covered[i] += one.low <= index <= one.high
    assert (covered / trials > 0.91).all(), covered / trials
    assert (covered / trials < 0.985).all(), covered / trials


@given(
    st.dictionaries(st.sampled_from(AXES), st.floats(0.0, 1.0), max_size=10),
    st.sampled_from(list(WEIGHT_PROFILES)),
)
def test_the_index_lies_between_its_axes_and_the_missing_are_never_counted(
    known: dict[str, float], weights: str
):
    values: dict[str, float | None] = {**dict.fromkeys(AXES), **known}
    found = index_of(axes(values, size=100), IndexSettings(weights=weights, resamples=100))
    assert found.index.value == formulas.aai_index(values, weights)
    assert not set(found.missing) & set(known)
    if found.index.value is not None:
        counted = [known[name] for name in found.weights]
        assert min(counted) - 1e-12 <= found.index.value <= max(counted) + 1e-12
        assert (found.adjusted.value or 0.0) <= found.index.value + 1e-12
        assert found.index.value <= (found.arithmetic_mean.value or 0.0) + 1e-12
    else:
        assert found.missing


def test_the_index_is_json_with_and_without_a_value():
    for values in (X, {**X, "M": None}):
        shown = json.loads(json.dumps(plain(of(values))))
        assert set(shown) >= {"index", "adjusted", "delta", "weights", "missing", "alternatives"}
    assert shown["missing"] == ["M"]
    assert shown["index"]["value"] is None
