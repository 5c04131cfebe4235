"""Curves over the magnitude of a novelty."""

import itertools

import numpy as np
import pytest
from scipy import stats

from robo_eval.core.kinds import Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.dose import _difference, _ratio_interval, dose_curves
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.tables import main_rows
from robo_eval.stats.paired import PairedTable, success_ratio_interval
from robo_eval.stats.proportions import clopper_pearson_interval

PLAN = """
name: doses
tasks:
  - env: RoboEval/PickPlace-v0
    axes: {{friction: [0.2, 0.1, 0.05], payload: [1, 2]}}
    pairs: {pairs}
policies: [pick-place]
episodes: {episodes}
"""


def plan_of(episodes=20, pairs="[]"):
    return parse_plan(PLAN.format(episodes=episodes, pairs=pairs), source="plan")


def curves(frame, episode, plan, success):
    """The curves of a trial in which `success(novelty, seed)` says how each episode ends."""
    rows = []
    for planned in schedule(plan, Side.SIM):
        novelty = dict(planned.condition.novelty)
        rows.append(
            episode(
                planned.episode_id,
                success(novelty, planned.seed - plan.seeds.first),
                task=plan.tasks[0].env,
                family=None,
                level=None,
                difficulty=None,
                profile=None,
                policy="pick-place",
                seed=planned.seed,
                control_id=planned.control_id,
                novelty={"axes": novelty} if novelty else {},
            )
        )
    table = episodes_frame(frame(*rows), plan)
    return dose_curves(main_rows(table), plan, MetricConfig())


def test_a_curve_falls_where_its_policy_does(frame, episode):
    def success(novelty, seed):
        keeps = {None: 20, 0.2: 20, 0.1: 16, 0.05: 2}[novelty.get("friction")]
        return 1.0 if seed < keeps else 0.4

    friction, payload = curves(frame, episode, plan_of(), success)
    assert (friction.axis, friction.held, friction.nominal_success.value) == ("friction", None, 1.0)
    assert [dose.success.value for dose in friction.doses] == [1.0, 0.8, 0.1]
    assert [dose.n_pairs for dose in friction.doses] == [20, 20, 20]
    # Of the 0.7 between 0.8 and 0.1, 0.3 lie above one half.
    assert friction.half_loss.value == pytest.approx(0.1 - 0.05 * 3 / 7)
    assert (friction.half_loss.low, friction.half_loss.high) == (0.1, 0.05)
    assert friction.half_loss.ends == "0.1 to 0.05"
    assert friction.doses[2].quality_difference.value == pytest.approx(-0.6 * 0.9)
    assert payload.half_loss.value is None
    assert payload.half_loss.reason == "more than half is kept at the strongest, 2"
    assert payload.half_loss.ends == "2 or stronger"


def test_what_fails_without_novelty_is_not_counted_against_it(frame, episode):
    # Ten seeds fail always, and the other ten never.
    friction, _ = curves(frame, episode, plan_of(), lambda _, seed: 1.0 if seed < 10 else 0.0)
    for dose in friction.doses:
        assert (dose.success.value, dose.kept.value) == (0.5, 1.0)
        assert dose.success_difference.value == 0.0
        assert dose.kept.low > 0.5
    assert friction.half_loss.low == 0.05


def test_what_is_kept_has_an_interval_that_covers_of_five_pairs():
    n = 5
    tables = [
        PairedTable(both=a, only_first=b, only_second=c, neither=n - a - b - c)
        for a in range(n + 1)
        for b in range(n + 1 - a)
        for c in range(n + 1 - a - b)
    ]
    ends = np.array([_ratio_interval(one, 0.95) or (0.0, np.inf) for one in tables])
    counts = np.array([[t.both, t.only_first, t.only_second, t.neither] for t in tables])
    for nominal, kept, gain in itertools.product((0.5, 0.9, 0.98), (0.02, 0.5, 0.98), (0.0, 0.2)):
        both, first = nominal * kept, gain * (1.0 - nominal)
        rest = max(0.0, 1.0 - nominal - first)
        chance = stats.multinomial.pmf(counts, n, [both, first, nominal - both, rest])
        truth = (both + first) / nominal
        inside = (ends[:, 0] - 1e-9 <= truth) & (truth <= ends[:, 1] + 1e-9)
        assert chance @ inside >= 0.93


def test_intervals_of_a_curve_hold_together(frame, episode):
    friction, payload = curves(frame, episode, plan_of(), lambda _, seed: float(seed % 2))
    # Three magnitudes and none, two magnitudes and none.
    assert {dose.success.level for dose in friction.doses} == {1.0 - 0.05 / 4}
    assert {dose.kept.level for dose in payload.doses} == {1.0 - 0.05 / 3}
    found = success_ratio_interval(
        PairedTable(both=10, only_first=0, only_second=0, neither=10), level=1.0 - 0.05 / 4
    )
    # No narrower than what ten of ten kept successes show.
    kept, _ = clopper_pearson_interval(10, 10, level=1.0 - 0.05 / 4)
    assert (friction.doses[0].kept.low, friction.doses[0].kept.high) == (kept, found[1])
    assert kept < found[0]
    assert friction.half_loss.level == 0.95


def test_a_difference_covers_so_often_that_five_hold_together():
    """Of ten pairs in which one or the other succeeds; Bonett and Price's holds in 96.1 %."""
    n, gained = 10, np.arange(11)
    found = [
        _difference(PairedTable(both=0, only_first=b, only_second=n - b, neither=0), 0.99)
        for b in gained.tolist()
    ]
    for share in np.linspace(0.5, 0.95, 19):
        truth, chance = 2.0 * share - 1.0, stats.binom.pmf(gained, n, share)
        held = [one.low - 1e-6 <= truth <= one.high + 1e-6 for one in found]
        assert chance @ held >= 0.99 - 1e-6


def test_of_a_pair_there_is_a_curve_at_each_magnitude_of_the_second(frame, episode):
    def success(novelty, seed):
        return 1.0 if len(novelty) < 2 or seed % 2 else 0.2

    found = curves(frame, episode, plan_of(pairs="[[friction, payload]]"), success)
    assert [curve.label for curve in found] == [
        "friction",
        "payload (kg)",
        "friction at payload 1",
        "friction at payload 2",
    ]
    assert {dose.success.value for curve in found[:2] for dose in curve.doses} == {1.0}
    assert {dose.success.value for curve in found[2:] for dose in curve.doses} == {0.5}


def test_too_few_pairs_say_nothing_of_half(frame, episode):
    def success(novelty, seed):
        return None if novelty.get("friction") == 0.1 and seed < 2 else 1.0

    friction, payload = curves(frame, episode, plan_of(), success)
    assert friction.half_loss.reason == "18 of 20 pairs scored at 0.1"
    assert (friction.half_loss.low, friction.half_loss.ends) == (None, "not known")
    assert (friction.doses[1].n_pairs, friction.doses[1].n_expected) == (18, 20)
    assert payload.half_loss.low == 2.0


def test_without_success_there_is_nothing_to_keep(frame, episode):
    friction, _ = curves(frame, episode, plan_of(), lambda *_: 0.3)
    assert friction.doses[0].kept.value is None
    assert friction.half_loss.reason == "no success without novelty"


def test_nothing_is_told_of_a_plan_without_axes(frame, episode):
    plan = parse_plan("name: x\ntasks: [{levels: [0]}]\npolicies: [balancer]\n", source="plan")
    table = episodes_frame(frame(episode("a")), plan)
    assert dose_curves(main_rows(table), plan, MetricConfig()) == ()


@pytest.mark.slow
def test_the_ends_miss_as_seldom_as_they_say():
    """Ends from tests in a fixed order, simulated over a curve that crosses one half."""
    from robo_eval.metrics import dose as module
    from robo_eval.metrics.dose import Dose, HalfLoss

    rng = np.random.default_rng(0)
    shares = {1.0: 0.85, 2.0: 0.65, 3.0: 0.5, 4.0: 0.3, 5.0: 0.1}
    nominal, n, rounds = 0.9, 60, 2000
    missed_low = missed_high = 0
    for _ in range(rounds):
        control = rng.random(n) < nominal
        doses = []
        for size, share in shares.items():
            with_it = control & (rng.random(n) < share)
            both, only_control = int(with_it.sum()), int((control & ~with_it).sum())
            pairs = PairedTable(
                both=both, only_first=0, only_second=only_control, neither=n - both - only_control
            )
            found = Dose(
                magnitude=size,
                n_pairs=n,
                n_expected=n,
                success=module.success_estimate(both, n, exact=False),
                kept=module._kept(pairs, 0.95),
                quality=module.success_estimate(both, n, exact=False),
                success_difference=module._difference(pairs, 0.95),
                quality_difference=module._difference(pairs, 0.95),
            )
            doses.append((found, pairs))
        ends: HalfLoss = module._half_loss(doses, MetricConfig())
        missed_low += ends.low is not None and ends.low >= 3.0
        missed_high += ends.high is not None and ends.high <= 3.0
    # Each at 0.025; three standard errors of 2,000 rounds are 0.0105.
    assert missed_low / rounds < 0.0355
    assert missed_high / rounds < 0.0355


def test_draws_that_were_turned_down_are_summed_by_magnitude(frame, episode):
    plan = plan_of(episodes=3)
    rows = []
    for planned in schedule(plan, Side.SIM):
        novelty = dict(planned.condition.novelty)
        cell = {"axes": novelty} if novelty else {}
        if "friction" in novelty:
            cell["turned_down"] = round(100 * novelty["friction"])
        rows.append(
            episode(
                planned.episode_id, 1.0, task=plan.tasks[0].env, family=None, level=None,
                difficulty=None, profile=None, policy="pick-place", seed=planned.seed,
                control_id=planned.control_id, novelty=cell,
            )
        )  # fmt: skip
    table = episodes_frame(frame(*rows), plan)
    friction, payload = dose_curves(main_rows(table), plan, MetricConfig())
    assert [dose.turned_down for dose in friction.doses] == [60, 30, 15]
    assert [dose.turned_down for dose in payload.doses] == [None, None]
    assert [dose.pairs_text for dose in friction.doses] == ["3", "3", "3"]
