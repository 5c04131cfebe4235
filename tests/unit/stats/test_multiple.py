import numpy as np
import pytest

from robo_eval.stats.multiple import holm, rank_ranges, tied_ranks


def test_adjusted_p_steps_down():
    rng = np.random.default_rng(0)
    p = rng.random(9) ** 3
    adjusted = holm(p)
    for alpha in (0.01, 0.05, 0.3):
        rejected = np.zeros(9, dtype=bool)
        for step, index in enumerate(np.argsort(p)):
            if p[index] > alpha / (9 - step):
                break
            rejected[index] = True
        assert (rejected == (adjusted <= alpha)).all()


def test_order_of_p_values_does_not_matter():
    p = np.array([0.01, 0.5, 0.01, 0.2])
    order = np.array([2, 0, 3, 1])
    assert holm(p[order]).tolist() == holm(p)[order].tolist()
    assert holm([]).tolist() == []
    assert holm([0.4]).tolist() == [0.4]


def better(policies, *pairs):
    table = np.zeros((policies, policies), dtype=bool)
    for i, j in pairs:
        table[i, j] = True
    return table


def test_ranks_of_policies_told_apart():
    assert tied_ranks(better(3, (2, 0), (0, 1), (2, 1))).tolist() == [2, 3, 1]
    assert tied_ranks(better(4)).tolist() == [1, 1, 1, 1]
    assert tied_ranks(better(4, (0, 2), (0, 3), (1, 2), (1, 3))).tolist() == [1, 1, 3, 3]
    assert tied_ranks(better(1)).tolist() == [1]
    assert tied_ranks(np.zeros((0, 0))).tolist() == []


def test_sharing_passes_on_and_ranges_keep_the_difference():
    chain = better(3, (0, 2))  # 0 ~ 1, 1 ~ 2, but 0 is better than 2
    assert tied_ranks(chain).tolist() == [1, 1, 1]
    best, worst = rank_ranges(chain)
    assert best.tolist() == [1, 1, 2]
    assert worst.tolist() == [2, 3, 3]


def test_circles_share_a_rank():
    assert tied_ranks(better(3, (0, 1), (1, 2), (2, 0))).tolist() == [1, 1, 1]


def test_policies_not_told_apart_share_a_rank_always():
    rng = np.random.default_rng(1)
    for _ in range(200):
        table = rng.random((6, 6)) < 0.4
        table &= ~table.T
        np.fill_diagonal(table, val=False)
        ranks = tied_ranks(table)
        best, worst = rank_ranges(table)
        for i in range(6):
            for j in range(6):
                if i != j and not table[i, j] and not table[j, i]:
                    assert ranks[i] == ranks[j]
        assert (best <= worst).all()
        assert np.sort(ranks)[0] == 1
        assert (np.sort(ranks) <= np.arange(1, 7)).all()


def test_impossible_tables_are_refused():
    with pytest.raises(ValueError, match=r"better must have shape \(P, P\), given \(2, 3\)"):
        tied_ranks(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="policies 0 and 1 are each better than the other"):
        rank_ranges(better(2, (0, 1), (1, 0)))
    with pytest.raises(ValueError, match="policies 0 and 0 are each better"):
        tied_ranks(np.eye(2))
    with pytest.raises(ValueError, match=r"p_values must be between 0 and 1, given 1\.5"):
        holm([0.1, 1.5])
    with pytest.raises(ValueError, match="p_values holds nan"):
        holm([float("nan")])
