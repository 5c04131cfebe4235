"""How well an agent notices novelty in the middle of a trial, and how well it does afterwards.

A trial is a list of episodes; the first ones are normal, and from its `onset` on novelty may come.
An agent may declare after each episode that the world has changed. Whether and when it did is
detection (M1, M2, M2.1), what it performs afterwards, beside a baseline that played the same
episodes, is reaction (M3 to M6), and what it says of the novelty is characterisation.

Episodes are counted from 0. A trial is a mapping, of which each function reads what it needs:
`n_episodes`, `onset` (first novel episode; None in a control trial), `declared` (the episode after
which novelty was declared, latched; None if never), `condition` (`"system"`, or `"given"` where
the agent was told the onset), `unplayed` (episodes that were not played to an end, so that the
agent could declare nothing; none if it is left out), `performance` and `baseline` (one in [0, 1]
an episode), `probability` and `threshold` (the agent's own), `reports` (one an episode, or None)
and `truth`.

References:
    Metric pages of darpa-sail-on/sail-on-client. Where they and the program differ, docs/trials.md
    says which form this is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Final, Literal, TypedDict

from robo_eval.core.errors import InputError
from robo_eval.stats.proportions import clopper_pearson_interval, wilson_interval
from robo_eval.stats.rates import garwood_interval
from robo_eval.stats.resampling import mean_interval

Trial = Mapping[str, Any]
Report = Mapping[str, Any]

THRESHOLDS: Final = (0.175, 0.225, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Thresholds of the curve that the published program computes."""
LEAST_WINDOW: Final = 5
"""Episodes of the asymptotic window at least, and a fifth of the trial if that is more."""
WORDS: Final = ("entity", "attribute", "change")
"""What a report says of the novelty in words."""


class Detection(TypedDict):
    """What one trial tells of detection; delays in episodes."""

    detected: bool
    false_positive: bool | None
    missed: bool
    delay: int | None
    restricted_delay: int | None
    normal_at_risk: int


class DetectionSummary(TypedDict):
    """Detection over trials; M1 and RMDD in episodes, M2 and M2.1 as shares."""

    m1: float | None
    m2: float | None
    m2_1: float | None
    rmdd: float | None
    fa_per_100: float | None
    n_trials: int
    n_novelty: int
    n_detected: int
    n_false_positive: int
    n_judged: int
    n_missed: int
    normal_at_risk: int


class DetectionIntervals(TypedDict):
    """Lower and upper ends; None where there is no trial."""

    m2_wilson: list[float] | None
    m2_clopper_pearson: list[float] | None
    m2_1_wilson: list[float] | None
    m2_1_clopper_pearson: list[float] | None
    fa_per_100_garwood: list[float] | None


class ThresholdPoint(TypedDict):
    """What detection would be with another threshold."""

    threshold: float
    m1: float | None
    m2: float | None
    m2_1: float | None


class Reaction(TypedDict):
    """What one trial tells of performance after the onset; window in episodes."""

    window: int | None
    nrp: float | None
    nrp_post: float | None
    opti: float | None
    apti: float | None
    apti_ratio: float | None
    ipti: float | None


class ReactionSummary(TypedDict):
    """Means over the trials that define a number; of each, how many with novelty do not."""

    m3: float | None
    m4: float | None
    nrp_post: float | None
    m5: float | None
    m6: float | None
    apti_ratio: float | None
    ipti: float | None
    n_undefined: dict[str, int]


class Characterisation(TypedDict):
    """How right one report is; None where it, or the truth, does not say."""

    top1: bool | None
    top3: bool | None
    brier: float | None
    entity: bool | None
    attribute: bool | None
    change: bool | None
    all_three: bool | None


class CharacterisationMeans(TypedDict):
    """Means over trials; `n` trials had a report."""

    n: int
    top1: float | None
    top3: float | None
    brier: float | None
    entity: float | None
    attribute: float | None
    change: float | None
    all_three: float | None


class CharacterisationSummary(TypedDict):
    """Of the last report of each trial, and of the one made with the declaration."""

    last: CharacterisationMeans
    at_declaration: CharacterisationMeans


class TrialMean(TypedDict):
    """A mean over trials with its interval."""

    mean: float | None
    lower: float | None
    upper: float | None
    method: Literal["bca", "t"] | None
    n: int
    n_undefined: int


# Detection ---------------------------------------------------------------------------------------


def declared_index(probability: Sequence[float], threshold: float | Sequence[float]) -> int | None:
    """The first episode whose probability of novelty reaches the threshold.

    Args:
        probability: After each episode, in [0, 1].
        threshold: The agent's own, in [0, 1]: one, or one an episode.

    Returns:
        Its index; None if none does.

    Raises:
        InputError: If a number is missing or not in [0, 1].

    Example:
        >>> declared_index([0.1, 0.2, 0.5, 0.1], 0.5)
        2
    """
    reaches = _reaches(probability, threshold)
    return reaches.index(True) if True in reaches else None


def fn_unlatched(
    probability: Sequence[float], threshold: float | Sequence[float], onset: int | None
) -> int | None:
    """Novel episodes whose own probability stays below the threshold; None in a control trial.

    A declaration that is taken back counts here, and nowhere else.

    Raises:
        InputError: As `declared_index`, or if the onset is outside the trial.
    """
    reaches = _reaches(probability, threshold)
    first = _index("onset", onset, len(reaches))
    return None if first is None else reaches[first:].count(False)


def detection(
    onset: int | None, declared: int | None, n_episodes: int, unplayed: Collection[int] = ()
) -> Detection:
    """What a trial tells of detection.

    A declaration before the onset, or in a control trial, is a false positive. The restricted
    delay is that of a detected trial, and all novel episodes of a missed one. At risk of a false
    declaration are the normal episodes up to the first declaration. Those that were not played are
    not at risk; whether there would have been a false positive is not known where one is missing.

    Raises:
        InputError: If an index is outside the trial.

    Example:
        >>> detection(onset=5, declared=7, n_episodes=20)["delay"]
        2
    """
    total = _whole("n_episodes", n_episodes, least=1)
    first, said = _index("onset", onset, total), _index("declared", declared, total)
    normal = total if first is None else first
    is_false = said is not None and said < normal
    delay = said - first if first is not None and said is not None and not is_false else None
    is_missed = first is not None and said is None
    at_risk = normal if said is None else min(said + 1, normal)
    missing = sum(place < at_risk for place in unplayed)
    return {
        "detected": delay is not None,
        "false_positive": None if missing and not is_false else is_false,
        "missed": is_missed,
        "delay": delay,
        "restricted_delay": total - normal if is_missed else delay,
        "normal_at_risk": at_risk - missing,
    }


def detection_summary(trials: Iterable[Trial]) -> DetectionSummary:
    """M1, M2 and M2.1 with what stands beside them; trials whose onset was given do not count.

    M1 is the mean delay of detected trials, M2 the share of detected trials among those with
    novelty, M2.1 that of false positives among the `n_judged` of which it is known. `rmdd` is the
    mean restricted delay of the trials with novelty that are no false positives.

    Raises:
        InputError: If a trial lacks what is read of it, or an index is outside it.
    """
    every = [trial for trial in trials if _condition(trial) == "system"]
    found = [
        detection(
            _part(trial, "onset"),
            _declared(trial),
            _part(trial, "n_episodes"),
            trial.get("unplayed", ()),
        )
        for trial in every
    ]
    n_novelty = sum(_part(trial, "onset") is not None for trial in every)
    n_detected = sum(one["detected"] for one in found)
    judged = [one["false_positive"] for one in found if one["false_positive"] is not None]
    n_false = sum(judged)
    at_risk = sum(one["normal_at_risk"] for one in found)
    return {
        "m1": _mean(one["delay"] for one in found),
        "m2": n_detected / n_novelty if n_novelty else None,
        "m2_1": n_false / len(judged) if judged else None,
        "rmdd": _mean(one["restricted_delay"] for one in found),
        "fa_per_100": 100.0 * n_false / at_risk if at_risk else None,
        "n_trials": len(found),
        "n_novelty": n_novelty,
        "n_detected": n_detected,
        "n_false_positive": n_false,
        "n_judged": len(judged),
        "n_missed": sum(one["missed"] for one in found),
        "normal_at_risk": at_risk,
    }


def detection_intervals(trials: Iterable[Trial], conf: float = 0.95) -> DetectionIntervals:
    """Intervals of M2, M2.1 and of the false declarations per 100 normal episodes.

    Raises:
        InputError: As `detection_summary`, or if `conf` is no share.
    """
    _share("conf", conf)
    s = detection_summary(trials)
    hits, alarms = (s["n_detected"], s["n_novelty"]), (s["n_false_positive"], s["n_judged"])

    def ends(of: Callable[..., tuple[float, float]], k: int, n: float) -> list[float] | None:
        return list(of(k, n, level=conf)) if n else None

    return {
        "m2_wilson": ends(wilson_interval, *hits),
        "m2_clopper_pearson": ends(clopper_pearson_interval, *hits),
        "m2_1_wilson": ends(wilson_interval, *alarms),
        "m2_1_clopper_pearson": ends(clopper_pearson_interval, *alarms),
        "fa_per_100_garwood": ends(garwood_interval, alarms[0], s["normal_at_risk"] / 100.0),
    }


def threshold_curve(
    trials: Iterable[Trial], thresholds: Sequence[float] = THRESHOLDS
) -> list[ThresholdPoint]:
    """What detection would be if the agent had used each of these thresholds.

    Raises:
        InputError: As `detection_summary`; trials need their `probability`.
    """
    every = [trial for trial in trials if _condition(trial) == "system"]
    curve: list[ThresholdPoint] = []
    for threshold in thresholds:
        again = [
            {**trial, "declared": declared_index(_part(trial, "probability"), threshold)}
            for trial in every
        ]
        s = detection_summary(again)
        curve.append({"threshold": threshold, "m1": s["m1"], "m2": s["m2"], "m2_1": s["m2_1"]})
    return curve


# Reaction ----------------------------------------------------------------------------------------


def window_of(n_episodes: int, onset: int) -> int:
    """Episodes of the asymptotic window where none is chosen: a fifth of the trial, 5 at least."""
    return min(max(LEAST_WINDOW, -(-n_episodes // 5)), n_episodes - onset)


def reaction(
    performance: Sequence[float],
    baseline: Sequence[float],
    onset: int | None,
    window: int | None = None,
) -> Reaction:
    """What a trial tells of performance after the onset, beside a baseline on the same episodes.

    With A and B the means of agent and baseline: `nrp` is A over the last `window` episodes by B
    before the onset, `nrp_post` the same with A over all novel episodes; A / (A + B) is `opti`
    over all novel episodes, `apti` over the last `window`, `ipti` over the first; `apti_ratio` is
    A / B over the last.

    Args:
        performance: Of the agent, one in [0, 1] an episode.
        baseline: Of the baseline, as many.
        onset: First novel episode; None in a control trial, which defines none of them.
        window: Episodes of the window; that of `window_of` if not given.

    Raises:
        InputError: If the window is longer than the novel phase, the two differ in length, or a
            number is missing or not in [0, 1].

    Example:
        >>> reaction([1.0, 0.25, 0.75], [0.75, 0.25, 0.25], onset=1, window=1)["apti"]
        0.75
    """
    ours, theirs = _shares("performance", performance), _shares("baseline", baseline)
    if len(ours) != len(theirs):
        raise InputError(
            f"baseline has {len(theirs)} episodes and performance {len(ours)}; both play the same"
        )
    first = _index("onset", onset, len(ours))
    if first is None:
        return {
            "window": None, "nrp": None, "nrp_post": None, "opti": None, "apti": None,
            "apti_ratio": None, "ipti": None,
        }  # fmt: skip
    length = len(ours) - first
    m = window_of(len(ours), first) if window is None else _whole("window", window, least=1)
    if m > length:
        raise InputError(
            f"window: {m} episodes are more than the {length} from the onset on; choose a shorter"
            " window, or longer trials"
        )
    before = _mean(theirs[:first])
    a, b = _mean_of(ours[-m:]), _mean_of(theirs[-m:])
    post_a, post_b = _mean_of(ours[first:]), _mean_of(theirs[first:])
    early_a, early_b = _mean_of(ours[first : first + m]), _mean_of(theirs[first : first + m])
    return {
        "window": m,
        "nrp": a / before if before else None,
        "nrp_post": post_a / before if before else None,
        "opti": _part_of_both(post_a, post_b),
        "apti": _part_of_both(a, b),
        "apti_ratio": a / b if b else None,
        "ipti": _part_of_both(early_a, early_b),
    }


def reaction_summary(trials: Iterable[Trial], window: int | None = None) -> ReactionSummary:
    """M3 to M6: means over trials, each trial counting once; control trials define none of them.

    M3 is the mean `nrp` of trials whose onset the agent had to find, M4 of those where it was
    given, M5 the mean `opti`, M6 the mean `apti`. `n_undefined` counts the trials with novelty
    that a mean leaves out.

    Raises:
        InputError: As `reaction`.
    """
    found: list[Mapping[str, Any]] = []
    for trial in trials:
        if (onset := _part(trial, "onset")) is not None:
            played = _part(trial, "performance"), _part(trial, "baseline")
            found.append({**reaction(*played, onset, window), "condition": _condition(trial)})

    def mean(name: str, *conditions: str) -> float | None:
        return _mean(one[name] for one in found if one["condition"] in conditions)

    both = "system", "given"
    names = ("nrp", "nrp_post", "opti", "apti", "apti_ratio", "ipti")
    return {
        "m3": mean("nrp", "system"),
        "m4": mean("nrp", "given"),
        "nrp_post": mean("nrp_post", *both),
        "m5": mean("opti", *both),
        "m6": mean("apti", *both),
        "apti_ratio": mean("apti_ratio", *both),
        "ipti": mean("ipti", *both),
        "n_undefined": {name: sum(one[name] is None for one in found) for name in names},
    }


# Characterisation --------------------------------------------------------------------------------


def characterisation(report: Report | None, truth: Report) -> Characterisation:
    """How right a report is about the novelty.

    The Brier score is the sum over levels of (probability - 1 if it is the level, else 0) squared.
    A report that is silent about a word is wrong about it; where the truth has none, nothing is
    said. Of levels with equal probability those named first go first.

    Args:
        report: `levels` (list of `level_number` and `probability`), `entity`, `attribute`,
            `change`; None if there was none.
        truth: `level`, `entity`, `attribute`, `change`.

    Raises:
        InputError: If a level is named twice, or its probability is not in [0, 1].
    """
    named: dict[int, float] = {}
    for entry in (report or {}).get("levels") or ():
        number = _whole("level_number", entry.get("level_number"), least=0)
        if number in named:
            raise InputError(f"levels: level {number} is named twice; give it one probability")
        named[number] = _share("probability", entry.get("probability"))
    level = truth.get("level")
    ranked = sorted(named, key=lambda number: -named[number])
    is_told = bool(ranked) and level is not None
    words = {
        word: None if report is None or truth.get(word) is None else report.get(word) == truth[word]
        for word in WORDS
    }
    return {
        "top1": level in ranked[:1] if is_told else None,
        "top3": level in ranked[:3] if is_told else None,
        "brier": (
            sum((p - (number == level)) ** 2 for number, p in named.items()) + (level not in named)
            if is_told
            else None
        ),
        "entity": words["entity"],
        "attribute": words["attribute"],
        "change": words["change"],
        "all_three": None if None in words.values() else all(words.values()),
    }


def characterisation_summary(trials: Iterable[Trial]) -> CharacterisationSummary:
    """How right reports about novel episodes are, from the declaration on.

    Where the onset was given, it takes the place of the declaration. A trial without a declaration
    has no such report, one declared too early none at its declaration.

    Raises:
        InputError: As `characterisation`, or if an index is outside the trial.
    """
    last: list[Characterisation] = []
    at_declaration: list[Characterisation] = []
    for trial in trials:
        onset, reports = _part(trial, "onset"), trial.get("reports")
        if onset is None or not reports:
            continue
        said = onset if _condition(trial) == "given" else _declared(trial)
        first = _index("onset", onset, len(reports))
        said = _index("declared", said, len(reports))
        if first is None or said is None:
            continue
        truth = _part(trial, "truth")
        made = [report for report in reports[max(first, said) :] if report is not None]
        if made:
            last.append(characterisation(made[-1], truth))
        if said >= first and reports[said] is not None:
            at_declaration.append(characterisation(reports[said], truth))
    return {"last": _means(last), "at_declaration": _means(at_declaration)}


def _means(found: Sequence[Mapping[str, Any]]) -> CharacterisationMeans:
    names = Characterisation.__annotations__
    means: Any = {name: _mean(one[name] for one in found) for name in names}
    means["n"] = len(found)
    found_means: CharacterisationMeans = means
    return found_means


# Over trials -------------------------------------------------------------------------------------


def mean_over_trials(
    values: Iterable[float | None], conf: float = 0.95, seed: int = 0
) -> TrialMean:
    """Mean of a number over trials, which are the independent unit.

    Args:
        values: One a trial; None where the trial does not define it, which is left out.
        conf: Coverage aimed at: by BCa from 10 defined trials on, by Student's t from 3 on. Fewer,
            or equal ones, have no interval.
        seed: Seed of the resamples.

    Raises:
        InputError: If a value is no finite number, or `conf` no share.

    Example:
        >>> mean_over_trials([0.2, None, 0.4])["mean"]
        0.30000000000000004
    """
    every = list(values)
    known = [_number("value", value) for value in every if value is not None]
    _share("conf", conf)
    result: TrialMean = {
        "mean": None, "lower": None, "upper": None, "method": None,
        "n": len(known), "n_undefined": len(every) - len(known),
    }  # fmt: skip
    if known:
        found = mean_interval(known, level=conf, seed=seed)
        result |= {"mean": found.value, "lower": found.low, "upper": found.high}
        if found.low is not None:
            result["method"] = "bca" if found.method == "bca" else "t"
    return result


# Input -------------------------------------------------------------------------------------------


def _part(trial: Trial, name: str) -> Any:
    if name not in trial:
        raise InputError(f"trial: {name} is missing")
    return trial[name]


def _condition(trial: Trial) -> str:
    condition = trial.get("condition", "system")
    if condition not in ("system", "given"):
        raise InputError(f"condition must be 'system' or 'given', given {condition!r:.60}")
    return str(condition)


def _declared(trial: Trial) -> int | None:
    if "declared" not in trial and {"probability", "threshold"} <= trial.keys():
        return declared_index(trial["probability"], trial["threshold"])
    found: int | None = _part(trial, "declared")
    return found


def _reaches(probability: Sequence[float], threshold: Any) -> list[bool]:
    stated = _shares("probability", probability)
    if isinstance(threshold, Real):
        limits = [_share("threshold", threshold)] * len(stated)
    else:
        limits = _shares("threshold", threshold)
    if len(limits) != len(stated):
        raise InputError(
            f"threshold has {len(limits)} episodes and probability {len(stated)}; give one"
            " threshold, or one an episode"
        )
    return [p >= limit for p, limit in zip(stated, limits, strict=True)]


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InputError(f"{name} must be a number, given {value!r:.60}")
    return float(value)


def _share(name: str, value: object) -> float:
    number = _number(name, value)
    if not 0.0 <= number <= 1.0:
        raise InputError(f"{name} must be in [0, 1], given {number:g}")
    return number


def _shares(name: str, values: Sequence[float]) -> list[float]:
    return [
        # Plain numbers first: what else there may be takes five times as long to tell apart.
        value if type(value) is float and 0.0 <= value <= 1.0 else _share(f"{name}[{place}]", value)
        for place, value in enumerate(values)
    ]


def _whole(name: str, value: object, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number, {least} at least, given {value!r:.60}")
    return int(value)


def _index(name: str, value: int | None, total: int) -> int | None:
    if value is None:
        return None
    place = _whole(name, value, least=0)
    if place >= total:
        raise InputError(
            f"{name}: episode {place} is outside the trial of {total} episodes, from 0"
        )
    return place


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _mean_of(known) if known else None


def _mean_of(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _part_of_both(a: float, b: float) -> float | None:
    return a / (a + b) if a + b else None
