import numpy as np
import pytest
from scipy import stats

from robo_eval.analysis.acc import closed_form, transform
from robo_eval.core.errors import InputError, ShapeError, UnknownNameError

NAN = float("nan")


def test_opponents_stand_at_their_total_score():
    """Three players: A beats B and C, B beats C."""
    found = transform("Opp", [[NAN, 1, 1], [0, NAN, 1], [0, 0, NAN]])
    np.testing.assert_array_equal(found.difficulty, [2.5, 1.5, 0.5, 0.0, 3.0])
    np.testing.assert_array_equal(found.response[0], [0.5, 1, 1, 1, 0])
    agents = found.analyse()
    # A: 1 at 0, 0.5 and 1.5, then 0.5 at 2.5, 0 at 3: by trapezoids 1.5 + 0.75 + 0.125.
    assert agents.area[0] == pytest.approx(2.375)
    # B: 1, 1 at 0.5, 0.5 at 1.5, 0 at 2.5 and 3.
    assert agents.area[1] == pytest.approx(0.5 + 0.75 + 0.25)
    assert (agents.h0, agents.q) == (0.0, 3.0)
    # C mirrors A: upside down and back to front.
    assert agents.normalised_generality[2] == pytest.approx(agents.normalised_generality[0])


def test_opponents_of_equal_strength_share_a_level():
    found = transform("Opp", [[NAN, 1, 0], [0, NAN, 1], [1, 0, NAN]]).analyse()
    np.testing.assert_array_equal(found.levels, [0.0, 1.5, 3.0])
    np.testing.assert_allclose(found.curve, np.tile([1.0, 0.5, 0.0], (3, 1)))


def test_match_tables_that_are_none_are_refused():
    with pytest.raises(InputError, match=r"match of 0 against 1 is 0\.3"):
        transform("Opp", [[0, 0.3], [1, 0]])
    with pytest.raises(InputError, match="match of 0 against 1 is nan"):
        transform("Opp", [[0, NAN], [1, 0]])
    with pytest.raises(ShapeError, match=r"\(A, A\)"):
        transform("Opp", [[0, 1, 1], [0, 0, 1]])


def test_reference_itself_is_half_everywhere_and_not_part_of_the_difficulty():
    scores = np.random.default_rng(0).normal(size=(5, 7))
    found = transform("ARef", scores, reference=2)
    np.testing.assert_array_equal(found.response[2], np.full(7, 0.5))
    above = (np.delete(scores, 2, axis=0) > scores[2]).mean(axis=0)
    np.testing.assert_allclose(found.difficulty, 1 - above)
    assert (found.h0, found.q) == (0.0, 1.0)
    times = transform("ARef", -scores, reference=2, higher_is_better=False)
    np.testing.assert_array_equal(times.response, found.response)
    with pytest.raises(InputError, match="a row from 0 to 4"):
        transform("ARef", scores, reference=5)
    with pytest.raises(ShapeError, match="at least one other agent"):
        transform("ARef", scores[:1], reference=0)


def test_ranks_count_ties_half_and_average_one_half():
    found = transform("Rnk", [[3.0], [1.0], [3.0], [7.0]])
    np.testing.assert_allclose(found.positions.ravel(), [0.5, 0.125, 0.5, 0.875])
    scores = np.random.default_rng(1).integers(0, 4, (9, 12))
    ranked = transform("Rnk", scores, levels=2001)
    assert ranked.positions.mean() == pytest.approx(0.5, abs=1e-12)
    # Sampling a step moves it by less than half a grid cell.
    assert ranked.analyse().capability.mean() == pytest.approx(0.5, abs=0.5 / 2000)


def test_rank_curves_tend_to_the_closed_form():
    scores = np.random.default_rng(2).normal(size=(6, 15))
    found = transform("Rnk", scores, levels=20_001)
    agents = found.analyse()
    for index, positions in enumerate(found.positions):
        area, spread, gamma = closed_form(positions)
        assert agents.area[index] == pytest.approx(area, abs=1e-4)
        assert agents.spread[index] == pytest.approx(spread, abs=1e-4)
        assert agents.normalised_generality[index] == pytest.approx(gamma, abs=1e-4)


def test_a_step_that_falls_on_a_difficulty_is_half_there():
    found = transform("Rnk", [[1.0], [2.0]], levels=5)
    np.testing.assert_array_equal(found.response, [[1, 0.5, 0, 0, 0], [1, 1, 1, 0.5, 0]])


def test_a_reference_distribution_serves_a_single_agent():
    found = transform("DRef", [1.0, -0.5], mean=[0.0, 0.0], variance=[1.0, 4.0])
    np.testing.assert_allclose(found.positions, [stats.norm.cdf([1.0, -0.25])])
    beta = transform("DRef", [[0.5, 0.9]], mean=0.5, variance=1 / 12, family="beta")
    # Mean 1/2 and variance 1/12 are those of the uniform distribution.
    np.testing.assert_allclose(beta.positions, [[0.5, 0.9]])
    lower = transform("DRef", [1.0], mean=0.0, variance=1.0, higher_is_better=False)
    np.testing.assert_allclose(lower.positions, [[1 - stats.norm.cdf(1.0)]])
    with pytest.raises(InputError, match="no beta distribution"):
        transform("DRef", [0.5], mean=0.5, variance=0.3, family="beta")
    with pytest.raises(InputError, match="the variance above 0"):
        transform("DRef", [0.5], mean=0.5, variance=0.0)
    with pytest.raises(UnknownNameError, match="family"):
        transform("DRef", [0.5], mean=0.5, variance=1.0, family="gamma")


def test_log_odds_stand_in_says_what_it_is():
    responses = [[1, 1, 0, 0], [1, 1, 0, 1], [1, 0, 0, 0], [1, 1, 0, 1]]
    found = transform("IRT", responses)
    assert "no item response model was fitted" in found.kind
    np.testing.assert_array_equal(found.items, [1, 3])
    np.testing.assert_allclose(found.difficulty, np.log([1.5 / 3.5, 1.0]))
    assert found.response.shape == (4, 2)
    everything = transform("IRT", responses, drop_constant=False)
    assert everything.difficulty[0] == pytest.approx(np.log(0.5 / 4.5))
    with pytest.raises(InputError, match="it must be 0 or 1"):
        transform("IRT", [[0.5, 1.0]])
    with pytest.raises(InputError, match="no difficulty is left"):
        transform("IRT", [[1, 0], [1, 0]])


def test_closed_form_at_the_ends_is_undefined():
    assert np.isnan(closed_form([0.0, 0.0])[2])
    assert np.isnan(closed_form([1.0, 1.0])[2])
    with pytest.raises(InputError, match=r"in \[0, 1\]"):
        closed_form([1.5])


def test_the_population_is_kept_with_the_result():
    scores = [[3, 5], [4, 5], [2, 9]]
    for kind, options in (("ARef", {"reference": 0}), ("Rnk", {})):
        np.testing.assert_array_equal(transform(kind, scores, **options).population, scores)


UNPLAYED = [[0.5, np.nan, 1], [np.nan, 0.5, 0], [0, 1, 0.5]]


@pytest.mark.parametrize(
    ("matches", "message"),
    [
        ([[0.5, 1, 1], [1, 0.5, 0], [0, 1, 0.5]], r"0 against 1 is 1\.0, and of 1 against 0 1\.0"),
        ([[0.5, 0], [0, 0.5]], r"0 against 1 is 0\.0, and of 1 against 0 0\.0"),
        ([[0.5, 0.5], [1, 0.5]], "the two results of a game add up to 1"),
        (UNPLAYED, "match of 0 against 1 is nan; give nan='drop'"),
        (np.ma.masked_array([[0.5, 1], [0, 0.5]], mask=[[0, 1], [1, 0]]), "0 against 1 is nan"),
    ],
)
def test_a_game_has_one_result(matches, message):
    with pytest.raises(InputError, match=message):
        transform("Opp", matches)


def test_a_game_that_one_side_says_nothing_about_is_refused():
    with pytest.raises(InputError, match="add up to 1"):
        transform("Opp", [[0.5, np.nan], [1, 0.5]], nan="drop")


def test_games_that_were_not_played_are_left_out():
    found = transform("Opp", UNPLAYED, nan="drop")
    # Means over the games with a result, one's own at 0.5 included, times three.
    assert found.difficulty.tolist() == [2.25, 0.75, 1.5, 0.0, 3.0]
    assert np.isfinite(found.analyse().capability).all()
    drawn = [[0.5, 0.5, 1], [0.5, 0.5, 0], [0, 1, 0.5]]
    stated = transform("Opp", UNPLAYED, nan=0.5)
    np.testing.assert_array_equal(stated.difficulty, transform("Opp", drawn).difficulty)


MISSING = [[1, np.nan], [2, 3.0], [3, 4.0]]
REFERENCE = {"mean": [0, 1], "variance": [1, 1]}


@pytest.mark.parametrize(
    ("kind", "more"), [("Rnk", {}), ("ARef", {"reference": 1}), ("DRef", REFERENCE)]
)
def test_missing_scores_are_left_out_or_stated(kind, more):
    for scores in (MISSING, np.ma.masked_invalid(MISSING), [[1, None], *MISSING[1:]]):
        with pytest.raises(InputError, match="score of agent 0 on item 1 is nan; give nan='drop'"):
            transform(kind, scores, **more)
        assert np.isfinite(transform(kind, scores, nan="drop", **more).analyse().capability).all()
        stated = transform(kind, scores, nan=9.0, **more).analyse().capability
        full = transform(kind, [[1, 9.0], *MISSING[1:]], **more).analyse().capability
        np.testing.assert_array_equal(stated, full)


def test_a_rank_is_among_those_with_a_score():
    assert transform("Rnk", MISSING, nan="drop").positions[1:, 1].tolist() == [0.25, 0.75]


def test_log_odds_count_those_who_answered():
    found = transform("IRT", [[1, np.nan], [0, 0], [1, 1]], nan="drop")
    assert found.difficulty.tolist() == [np.log(1.5 / 2.5), 0.0]


@pytest.mark.parametrize("nan", ["skip", np.inf, True])
def test_a_rule_for_missing_scores_that_is_none(nan):
    with pytest.raises(InputError, match="valid: 'raise', 'drop' or a finite number"):
        transform("Rnk", MISSING, nan=nan)


def test_an_agent_without_any_score_is_refused():
    with pytest.raises(InputError, match="agent 0 has no score; leave it out"):
        transform("Rnk", [[np.nan, np.nan], [1, 2]], nan="drop")


def test_unknown_names_and_options_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'ARef'"):
        transform("ARf", [[1, 2]])
    with pytest.raises(InputError, match=r"transformation Rnk: .*unexpected keyword.*'level'"):
        transform("Rnk", [[1, 2]], level=3)
    with pytest.raises(InputError, match="score of agent 0 on item 1 is nan"):
        transform("Rnk", [[1, NAN]])
    with pytest.raises(InputError, match="levels is 1"):
        transform("Rnk", [[1, 2]], levels=1)
