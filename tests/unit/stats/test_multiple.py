import numpy as np
import pytest

from robo_eval.stats.multiple import holm, letters, rank_ranges


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


def test_letters_of_policies_told_apart():
    assert letters(better(3, (2, 0), (0, 1), (2, 1))) == ["a", "b", "c"]
    assert letters(better(4)) == ["a"] * 4
    assert letters(better(4, (0, 2), (0, 3), (1, 2), (1, 3))) == ["a", "a", "b", "b"]
    assert letters(better(1)) == ["a"]
    assert letters(np.zeros((0, 0))) == []


def test_letters_and_ranges_of_a_chain():
    chain = better(3, (0, 2))  # 0 ~ 1, 1 ~ 2, but 0 is better than 2
    assert letters(chain) == ["a", "ab", "b"]
    best, worst = rank_ranges(chain)
    assert best.tolist() == [1, 1, 2]
    assert worst.tolist() == [2, 3, 3]


def test_more_groups_than_letters_have_double_ones():
    names = letters(np.triu(np.ones((28, 28)), 1))
    assert names[25:] == ["z", "aa", "bb"]


def test_policies_share_a_letter_exactly_where_they_were_not_told_apart():
    rng = np.random.default_rng(1)
    for _ in range(200):
        table = rng.random((6, 6)) < 0.4
        table &= ~table.T
        np.fill_diagonal(table, val=False)
        names = [set(name) for name in letters(table)]
        best, worst = rank_ranges(table)
        for i in range(6):
            for j in range(6):
                if i != j:
                    assert bool(names[i] & names[j]) == (not table[i, j] and not table[j, i])
        assert (best <= worst).all()


def test_impossible_tables_are_refused():
    with pytest.raises(ValueError, match=r"better must have shape \(P, P\), given \(2, 3\)"):
        letters(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="policies 0 and 1 are each better than the other"):
        rank_ranges(better(2, (0, 1), (1, 0)))
    with pytest.raises(ValueError, match="policies 0 and 0 are each better"):
        letters(np.eye(2))
    with pytest.raises(ValueError, match=r"p_values must be between 0 and 1, given 1\.5"):
        holm([0.1, 1.5])
    with pytest.raises(ValueError, match="p_values holds nan"):
        holm([float("nan")])
