"""Quantiles found without scipy are scipy's."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special

from robo_eval.stats import quantiles

SHAPE = st.floats(0.1, 85.0)
SHARE = st.one_of(
    st.sampled_from([0.0005, 0.005, 0.025, 0.05, 0.95, 0.975]), st.floats(1e-9, 0.999)
)


def same(found: object, expected: object) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0.0)


@given(SHAPE, SHAPE, SHARE)
@example(0.1015625, 29.0, 0.625)  # far below the middle, of a probability above it
def test_beta(a: float, b: float, p: float) -> None:
    same(quantiles.betaincinv(a, b, p), special.betaincinv(a, b, p))


@pytest.mark.parametrize("tail", [1e-7, 0.0005, 0.005, 0.025, 0.05])
def test_ends_of_every_count_of_small_samples(tail: float) -> None:
    for n in (1, 2, 3, 10, 48, 169, 170, 500):
        k = np.arange(1.0, n + 1.0)
        expected = special.betaincinv(k, n - k + 1.0, tail)
        same([quantiles.betaincinv(x, n - x + 1.0, tail) for x in k], expected)


@given(st.integers(1, 400), st.one_of(st.floats(1e-9, 0.49), st.floats(0.51, 0.9999999)))
def test_student(df: int, p: float) -> None:
    same(quantiles.stdtrit(df, p), special.stdtrit(df, p))


@given(st.integers(1, 400), st.floats(-60.0, 3.0))
def test_student_below(df: int, t: float) -> None:
    same(quantiles.stdtr(df, t), special.stdtr(df, t))


def test_student_close_to_the_middle_is_the_series() -> None:
    # scipy's own is off by 2e-9 there: t (1 + 5 t² / 24), t = 8 (p - 1/2) / 3 for 4 degrees
    t = 8.0 * (0.5001 - 0.5) / 3.0
    assert quantiles.stdtrit(4, 0.5001) == pytest.approx(t * (1.0 + 5.0 * t**2 / 24.0), rel=1e-12)
    assert quantiles.stdtrit(4, 0.5) == 0.0


@given(st.floats(1e-12, 1.0, exclude_max=True), st.floats(-12.0, 12.0))
def test_normal(p: float, x: float) -> None:
    np.testing.assert_allclose(quantiles.ndtri(p), special.ndtri(p), rtol=1e-12, atol=1e-15)
    same(quantiles.ndtr(x), special.ndtr(x))


def test_what_is_out_of_reach_is_as_scipy_says() -> None:
    for a, b, p in [(1.0, 2.0, 0.0), (1.0, 2.0, 1.0), (900.0, 4.0, 0.5), (1e-3, 1.0, 0.5)]:
        same(quantiles.betaincinv(a, b, p), special.betaincinv(a, b, p))
    assert np.isnan(quantiles.betaincinv(-1.0, 2.0, 0.5))
    assert quantiles.ndtri(0.0) == -np.inf
    assert np.isnan(quantiles.stdtrit(3, np.nan))


def test_many_keep_their_shape() -> None:
    k = np.arange(1.0, 81.0).reshape(4, 20)
    same(quantiles.betaincinv(k, 81.0 - k, 0.025), special.betaincinv(k, 81.0 - k, 0.025))
    assert quantiles.betaincinv(k[:2, :3], 2.0, 0.5).shape == (2, 3)


def test_an_exact_interval_loads_no_scipy() -> None:
    program = (
        "import sys; from robo_eval.stats.proportions import clopper_pearson_interval as f;"
        " f(3, 12); assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
