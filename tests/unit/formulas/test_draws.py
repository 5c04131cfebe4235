"""A formula of draws is the formula of each of them."""

from collections.abc import Callable

import numpy as np
import pytest

from robo_eval import formulas as f
from robo_eval.core.errors import InputError

RNG = np.random.default_rng(7)
SHARES = np.concatenate([RNG.random((3, 60)), np.eye(3), np.zeros((3, 1)), np.ones((3, 1))], axis=1)
SIGNED = RNG.normal(0.0, 1.0, (2, SHARES.shape[1]))
NAMES = ("A", "G", "E")
WEIGHTS = {"A": 1.0, "G": 2.0, "E": 0.5}

# Each with the draws it is given, shape (inputs, draws).
FORMULAS: dict[str, tuple[np.ndarray, Callable[..., object]]] = {
    "aai_index": (SHARES, lambda *x: f.aai_index(dict(zip(NAMES, x, strict=True)), WEIGHTS)),
    "aai_index, floor": (
        SHARES, lambda *x: f.aai_index(dict(zip(NAMES, x, strict=True)), WEIGHTS, floor=0.1),
    ),
    **{
        f"jaggedness, {form}": (
            SHARES,
            lambda *x, form=form: list(
                f.jaggedness(dict(zip(NAMES, x, strict=True)), WEIGHTS, 2.0, form=form).values()
            ),
        )
        for form in ("gm_am", "min_max", "one_minus_cv")
    },
    "calibrate": (SIGNED[:1], lambda x: f.calibrate(x, 0.5, -0.5)),
    "calibrate, log": (SHARES[:1], lambda x: f.calibrate(x, 0.1, 0.9, scale="log")),
    "memory": (SHARES[:2], lambda x, y: list(f.memory(30.0 * x, 7.0, y).values())),
    "tool_economy": (SHARES[:2], lambda x, y: f.tool_economy(np.floor(9.0 * x), y, 0.0)),
    "embodiment": (SHARES, f.embodiment),
    "link_value": (SHARES[:1], lambda x: f.link_value(x, "logit")),
    "continuous_score": (
        SIGNED, lambda x, y: f.continuous_score(0.6, x, link_curvature=y)["score"],
    ),
    "self_revision": (
        SIGNED,
        lambda x, y: f.self_revision(
            [{"delta": 0.1 * x, "autonomy": 0.7}, {"delta": 0.1 * y, "autonomy": 0.4}]
        )["r"],
    ),
    "sociality": (
        SHARES,
        lambda x, y, z: list(
            f.sociality(
                np.array([x, y]), np.array([z, x]), [1.0, 3.0], {"loop": y}
            ).values()
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_draws_are_computed_as_each_alone(name: str) -> None:
    given, formula = FORMULAS[name]
    each = [formula(*map(float, column)) for column in given.T]
    assert all(isinstance(x, float) for x in np.atleast_1d(np.array(each[0], dtype=object)))
    np.testing.assert_allclose(np.asarray(formula(*given)).T, each, rtol=0.0, atol=1e-14)


def test_an_elasticity_without_a_rise_is_missing_among_draws() -> None:
    found = f.meta_elasticity(2.0, np.array([1.0, 0.0, -1.0]), np.array([3.0, 3.0, 3.0]))
    np.testing.assert_array_equal(found, [6.0, np.nan, np.nan])


def test_an_endless_half_life_forgets_nothing() -> None:
    found = f.memory(np.array([0.0, 7.0, np.inf]), 7.0, np.full(3, 1.0))
    np.testing.assert_allclose(np.asarray(found["retention"]), [0.0, 0.5, 1.0])


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda: f.calibrate(np.array([0.1, np.nan]), 0.0, 1.0), r"x\[1\] is nan"),
        (lambda: f.aai_index({"A": np.array([0.1, 1.5])}, {"A": 1.0}), r"axes\['A'\]\[1\] is 1.5"),
        (lambda: f.tool_economy(np.array([1.5]), 0.5), "categories_passing is 1.5"),
        (lambda: f.sociality(np.full((2, 3), 2.0), np.ones((2, 3))), r"solo\[0, 0\] is 2"),
        (lambda: f.memory(np.array([-1.0])), r"half_life_days\[0\] is -1"),
    ],
)
def test_the_first_draw_that_cannot_be_is_named(call: Callable[[], object], where: str) -> None:
    with pytest.raises(InputError, match=where):
        call()
