"""Labels of pandas' tables are what positions mean: where they do not fit, nothing is computed."""

import numpy as np
import pandas as pd
import pytest

from robo_eval.analysis import acc, coherence
from robo_eval.core.errors import InputError
from robo_eval.stats.agreement import cohens_kappa, mmrv, pearson, rating_table
from robo_eval.stats.clustered import new_cluster_rate
from robo_eval.stats.paired import paired_table
from robo_eval.stats.resampling import paired_difference_interval

SIM = pd.Series([0.1, 0.5, 0.9], index=["a", "b", "c"])


@pytest.mark.parametrize("other", [["c", "b", "a"], ["b", "c", "d"], ["x", "y", "z"]])
@pytest.mark.parametrize("function", [mmrv, pearson, paired_difference_interval])
def test_policies_in_another_order_are_refused(function, other):
    with pytest.raises(ValueError, match=r"have other labels, or another order"):
        function(SIM, pd.Series([0.2, 0.4, 0.8], index=other))


def test_what_fits_or_has_no_labels_is_taken():
    real = pd.Series([0.2, 0.4, 0.8], index=["a", "b", "c"])
    assert mmrv(SIM, real) == mmrv(SIM.to_numpy(), real) == mmrv(SIM.to_list(), real.to_list())
    episodes = pd.DataFrame({"policy": list("aabb"), "success": [1, 0, 1, 1]})
    mine, theirs = (episodes.success[episodes.policy == name] for name in "ab")
    assert paired_table(mine, theirs).only_second == 1


def test_seeds_that_overlap_in_part_are_refused():
    first = pd.Series([1, 0, 1], index=[1, 2, 3])
    with pytest.raises(ValueError, match=r"first and second .*align"):
        paired_table(first, pd.Series([1, 0, 1], index=[2, 3, 4]))
    with pytest.raises(ValueError, match=r"k and n have other labels"):
        new_cluster_rate(first, pd.Series([4, 4, 4], index=[3, 2, 1]))


def test_a_table_of_verdicts_has_the_same_words_both_ways():
    first, second = ["no", "yes", "yes"], ["yes", "unsure", "yes"]
    with pytest.raises(ValueError, match="table has other labels in its rows than in its columns"):
        cohens_kappa(pd.crosstab(pd.Series(first), pd.Series(second)))
    words = {"no": 0, "yes": 1}
    table = pd.crosstab(pd.Series(["no", "yes", "yes"]), pd.Series(["yes", "no", "yes"]))
    plain = rating_table([0, 1, 1], [words[word] for word in ("yes", "no", "yes")])
    assert cohens_kappa(table).value == cohens_kappa(plain).value


def test_items_in_another_order_are_refused_and_names_of_agents_are_no_items():
    items = ["i1", "i2", "i3"]
    response = pd.DataFrame(np.eye(3), index=["a", "b", "c"], columns=items)
    difficulty = pd.Series([0.1, 0.5, 0.9], index=items)
    assert acc.analyse(response, difficulty).capability.shape == (3,)
    with pytest.raises(InputError, match="response and difficulty have other labels"):
        acc.analyse(response, difficulty[::-1])
    with pytest.raises(InputError, match="scores and weights have other labels"):
        coherence.auc(difficulty, pd.Series([1.0, 1.0, 2.0], index=items[::-1]))


def test_a_default_numbering_says_nothing_about_names():
    named = SIM.set_axis(list("cba"))
    assert mmrv(SIM.reset_index(drop=True), named) == mmrv(SIM.to_numpy(), named)


@pytest.mark.parametrize(
    "other",
    [
        lambda a: a.iloc[::-1],
        lambda a: a.sample(frac=1, random_state=3),
        lambda a: a.sort_values(),
        lambda a: a.set_axis([3, 4, 5, 6, 7, 8, 9, 10]),
    ],
)
def test_a_default_numbering_is_held_against_other_numbers(other):
    first = pd.Series([True] * 6 + [False] * 2)
    second = other(first)
    with pytest.raises(ValueError, match=r"other labels, or another order.*to_numpy"):
        paired_table(first, second)
    with pytest.raises(ValueError, match=r"other labels, or another order"):
        paired_table(second, first)
