"""Worked numbers of detection, reaction and characterisation in trials with an onset.

Computed by hand from the definitions in docs/trials.md; intervals of shares by scipy.
"""

from __future__ import annotations

from typing import Any

import pytest

from robo_eval.analysis import sailon

FIVE = [{"n_episodes": 20, "onset": 5, "declared": d} for d in (7, 5, None, 2, 10)]
AGENT = [
    0.9, 0.92, 0.88, 0.9, 0.9, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.7, 0.75, 0.8, 0.8, 0.8, 0.85, 0.85,
    0.8, 0.9,
]  # fmt: skip
BASELINE = [
    0.8, 0.85, 0.8, 0.75, 0.8, 0.3, 0.25, 0.3, 0.35, 0.3, 0.3, 0.3, 0.35, 0.3, 0.3, 0.3, 0.25, 0.3,
    0.35, 0.3,
]  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "kind", "delay", "restricted"),
    [
        (None, "missed", None, 15),
        (2, "false_positive", None, None),
        (5, "detected", 0, 0),
        (7, "detected", 2, 2),
        (19, "detected", 14, 14),
    ],
)
def test_a_trial_is_detected_missed_or_false(
    declared: int | None, kind: str, delay: int | None, restricted: int | None
) -> None:
    found = sailon.detection(onset=5, declared=declared, n_episodes=20)
    assert [name for name in ("detected", "false_positive", "missed") if found[name]] == [kind]  # type: ignore[literal-required]
    assert (found["delay"], found["restricted_delay"]) == (delay, restricted)


def test_five_trials() -> None:
    found = sailon.detection_summary(trials=FIVE)
    assert found["m1"] == pytest.approx(2.3333333333)
    assert (found["m2"], found["m2_1"], found["rmdd"]) == (0.6, 0.2, 5.5)
    assert (found["n_detected"], found["n_false_positive"], found["n_missed"]) == (3, 1, 1)
    assert found["normal_at_risk"] == 5 + 5 + 5 + 3 + 5
    ends = sailon.detection_intervals(trials=FIVE, conf=0.95)
    assert ends["m2_wilson"] == pytest.approx([0.2307242813, 0.8823792258])
    assert ends["m2_clopper_pearson"] == pytest.approx([0.1466327996, 0.9472550495])


def test_normal_episodes_that_were_not_played_are_not_at_risk() -> None:
    """What nobody played has no false alarm, and none was avoided there."""
    gone = [
        {"n_episodes": 20, "onset": 5, "declared": d, "unplayed": [1, *range(3, 20)]}
        for d in (None, 2)
    ]
    found = sailon.detection_summary(trials=[*FIVE, *gone])
    assert found["normal_at_risk"] == 23 + 2 + 2
    assert (found["n_judged"], found["n_false_positive"], found["m2_1"]) == (6, 2, 2 / 6)
    assert found["m2"] == 3 / 7
    late = {"n_episodes": 20, "onset": 5, "declared": None, "unplayed": [5, 19]}
    assert sailon.detection_summary(trials=[late])["m2_1"] == 0.0


@pytest.mark.parametrize(("declared", "m2_1"), [(8, 2 / 6), (None, 1 / 6)])
def test_a_control_trial_enters_false_positives_alone(declared: int | None, m2_1: float) -> None:
    control = {"n_episodes": 20, "onset": None, "declared": declared}
    found = sailon.detection_summary(trials=[*FIVE, control])
    assert (found["m2"], found["m2_1"]) == (0.6, m2_1)
    given = {"n_episodes": 20, "onset": 5, "declared": None, "condition": "given"}
    assert sailon.detection_summary(trials=[*FIVE, control, given]) == found


def test_a_declaration_is_latched() -> None:
    probability = [0.0] * 7 + [0.9, 0.1] + [0.9] * 11
    assert sailon.declared_index(probability=probability, threshold=0.5) == 7
    assert sailon.fn_unlatched(probability=probability, threshold=0.5, onset=5) == 3
    curve = sailon.threshold_curve(
        trials=[{"n_episodes": 20, "onset": 5, "probability": probability}], thresholds=(0.05, 0.95)
    )
    assert curve == [
        {"threshold": 0.05, "m1": 2.0, "m2": 1.0, "m2_1": 0.0},
        {"threshold": 0.95, "m1": None, "m2": 0.0, "m2_1": 0.0},
    ]


def test_reaction_of_one_trial() -> None:
    found = sailon.reaction(performance=AGENT, baseline=BASELINE, onset=5)
    assert found["window"] == 5
    assert found["nrp"] == pytest.approx(1.05)
    assert found["nrp_post"] == pytest.approx(0.8291666667)
    assert found["opti"] == pytest.approx(0.6862068966)
    assert found["apti"] == pytest.approx(0.7368421053)
    assert found["apti_ratio"] == pytest.approx(2.8)
    assert found["ipti"] == pytest.approx(2.0 / 3.5)


def test_the_mean_is_over_trials_and_not_pooled() -> None:
    trials: list[dict[str, Any]] = [
        {"onset": 1, "performance": [1.0, a], "baseline": [1.0, b]}
        for a, b in ((0.9, 0.3), (0.2, 0.4), (0.6, 0.6))
    ]
    found = sailon.reaction_summary(trials=trials)
    assert found["m6"] == pytest.approx(0.5277777778)
    assert found["apti_ratio"] == pytest.approx(1.5)
    assert found["m3"] == pytest.approx((0.9 + 0.2 + 0.6) / 3)
    assert found["m4"] is None


def test_means_over_ten_trials() -> None:
    values = [0.74, 0.61, 0.55, 0.70, 0.48, 0.66, 0.59, 0.72, 0.63, 0.57]
    found = sailon.mean_over_trials(values=values)
    assert found["method"] == "bca"
    assert found["mean"] == pytest.approx(0.625)
    assert found["lower"] == pytest.approx(0.576, abs=0.003)
    assert found["upper"] == pytest.approx(0.673, abs=0.003)
    nine = sailon.mean_over_trials(values=[*values[:9], None])
    assert (nine["method"], nine["n"], nine["n_undefined"]) == ("t", 9, 1)
    assert sailon.mean_over_trials(values=values[:2])["method"] is None
    assert sailon.mean_over_trials(values=[None])["mean"] is None


def test_what_is_undefined_has_no_value() -> None:
    none = sailon.reaction(performance=[1.0, 0.0], baseline=[1.0, 0.0], onset=1)
    assert (none["opti"], none["apti"], none["apti_ratio"], none["nrp"]) == (None, None, None, 0.0)
    only = sailon.reaction(performance=[1.0, 0.4], baseline=[1.0, 0.0], onset=1)
    assert (only["apti"], only["apti_ratio"]) == (1.0, None)
    at_once = sailon.reaction(performance=[0.5, 0.4], baseline=[1.0, 0.5], onset=0)
    assert (at_once["nrp"], at_once["nrp_post"]) == (None, None)
    assert at_once["opti"] == pytest.approx(0.9 / 2.4)
    control = sailon.reaction(performance=[0.5], baseline=[1.0], onset=None)
    assert set(control.values()) == {None}
    trials = [
        {"onset": onset, "performance": p, "baseline": b}
        for onset, p, b in ((1, [1, 0], [1, 0]), (0, [1, 1], [1, 1]), (None, [1, 1], [1, 1]))
    ]
    undefined = sailon.reaction_summary(trials=trials)["n_undefined"]
    assert (undefined["nrp"], undefined["opti"], undefined["apti_ratio"]) == (1, 1, 1)


def test_characterisation_of_one_report() -> None:
    report = {
        "levels": [
            {"level_number": 0, "probability": 0.1},
            {"level_number": 6, "probability": 0.3},
            {"level_number": 1, "probability": 0.6},
        ],
        "entity": "cart", "attribute": "mass", "change": None,
    }  # fmt: skip
    truth = {"level": 6, "entity": "cart", "attribute": "gravity", "change": "increase"}
    found = sailon.characterisation(report=report, truth=truth)
    assert (found["top1"], found["top3"]) == (False, True)
    assert found["brier"] == pytest.approx(0.01 + 0.49 + 0.36)
    assert [found[word] for word in sailon.WORDS] == [True, False, False]  # type: ignore[literal-required]
    assert found["all_three"] is False
    unnamed = sailon.characterisation(report=report, truth={**truth, "level": 8})
    assert unnamed["brier"] == pytest.approx(0.01 + 0.09 + 0.36 + 1.0)
    assert set(sailon.characterisation(report=None, truth=truth).values()) == {None}


def test_characterisation_begins_with_the_declaration() -> None:
    truth = {"level": 6, "entity": "gravity", "attribute": None, "change": None}
    right, wrong = ({"levels": [{"level_number": n, "probability": 1.0}]} for n in (6, 1))
    one = {"onset": 1, "declared": 2, "truth": truth, "reports": [None, right, wrong, right]}
    early = {**one, "declared": 0, "reports": [wrong, None, right, None]}
    missed = {**one, "declared": None}
    control = {"onset": None, "declared": None, "reports": [right]}
    given = {**one, "condition": "given", "declared": None}
    found = sailon.characterisation_summary(trials=[one, early, missed, control, given])
    assert (found["last"]["n"], found["last"]["top1"]) == (3, 1.0)
    assert (found["at_declaration"]["n"], found["at_declaration"]["top1"]) == (2, 0.5)
    assert found["last"]["entity"] == 0.0
    assert found["last"]["all_three"] is None
