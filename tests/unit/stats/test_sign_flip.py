"""The randomisation test of clustered differences, against counting by hand, scipy and McNemar."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import permutation_test

from robo_eval.stats.paired import mcnemar_p
from robo_eval.stats.sign_flip import sign_flip_p


@pytest.mark.parametrize(
    "sums", [[3, 2, 3, 1, 0, 2], [1], [4, -4], [2, -1, -1], [6, 3, 9, -3], [5, 5, 5, -2, 1, 1, -7]]
)
def test_every_assignment_of_signs_is_counted(sums):
    reached = [
        abs(np.dot(signs, sums)) >= abs(sum(sums)) for signs in product((-1, 1), repeat=len(sums))
    ]
    assert sign_flip_p(sums) == pytest.approx(np.mean(reached), abs=1e-12)


def test_scipy_agrees():
    sums = np.array([3, 1, -1, 2, 0, 4, 1, -2, 3])
    found = permutation_test(
        (sums, np.zeros_like(sums)),
        lambda a, b, axis: (a - b).sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert sign_flip_p(sums) == pytest.approx(found.pvalue, abs=1e-12)


@pytest.mark.parametrize(("b", "c"), [(2, 0), (8, 2), (5, 5), (0, 12), (300, 240)])
def test_single_pairs_are_mcnemars(b, c):
    assert sign_flip_p([1] * b + [-1] * c + [0] * 7) == pytest.approx(mcnemar_p(b, c), rel=1e-9)


def test_large_samples_pass_on_to_the_normal_approximation():
    rng = np.random.default_rng(0)
    half = rng.integers(-1, 2, 29_000)
    more = np.concatenate([half, np.ones(150, int)])
    b, c = int((more > 0).sum()), int((more < 0).sum())
    assert b + c < 20_000
    assert sign_flip_p(more) == pytest.approx(mcnemar_p(b, c), rel=1e-9)
    many = np.concatenate([more, [1, -1] * 400])
    b, c = int((many > 0).sum()), int((many < 0).sum())
    assert b + c > 20_000
    assert sign_flip_p(many) == pytest.approx(mcnemar_p(b, c), abs=0.005)


def test_edges():
    assert sign_flip_p([]) == 1.0
    assert sign_flip_p([0, 0]) == 1.0
    assert sign_flip_p([2, -2]) == 1.0
    with pytest.raises(ValueError, match="whole numbers"):
        sign_flip_p([0.5])
    with pytest.raises(ValueError, match="not finite"):
        sign_flip_p([float("nan")])


def test_it_keeps_its_level_where_pairs_of_a_seed_are_alike():
    """McNemar's test of the same pairs decides far too often: that is why there is another."""
    rng = np.random.default_rng(1)
    seeds, conditions, runs = 12, 4, 400
    lean = rng.integers(-1, 2, (runs, seeds, 1))
    own = rng.integers(-1, 2, (runs, seeds, conditions))
    differences = np.where(rng.random(own.shape) < 0.8, lean, own)
    clustered = np.mean([sign_flip_p(run.sum(axis=1)) <= 0.05 for run in differences])
    naive = np.mean(mcnemar_p((differences > 0).sum((1, 2)), (differences < 0).sum((1, 2))) <= 0.05)
    assert clustered <= 0.075
    assert naive > 0.2
