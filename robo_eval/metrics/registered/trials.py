"""Trials with an onset: how novelty was noticed, lived with and described; see docs/trials.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.core.number import TRIALS, Condition, Number
from robo_eval.core.wording import counted
from robo_eval.formulas import sailon
from robo_eval.metrics.body import Body
from robo_eval.metrics.performance import success_estimate
from robo_eval.metrics.registry import Yields, metric
from robo_eval.metrics.trials import Key, PlayedTrial, Trials, detection_of, over_trials
from robo_eval.stats.rates import garwood_interval

GROUP: Final = TRIALS
_DECLARES: Final = "give the policy a method declare()"
_FROZEN: Final = "name the policy that does not adapt: trials.frozen in the plan"
_INFORMED: Final = "name a policy that is told the novelty: trials.informed in the plan"
_WHOLE: Final = "play trials in which every episode gets a score"
_TRUTH: Final = "declare it with the level: words of @novelty"
_PER_100: Final = "per 100 episodes"

_FIRST: Final = ("M1", "M3", "M4", "level_named", "entity_named")
"""Numbers that tell why there is no value, for all of their kind."""

Some = Mapping[Key, PlayedTrial]
Of = Callable[[Some], Estimate]


def _metric(name: str, unit: str, remedy: str, **also: str) -> Callable[[Yields], Yields]:
    """A metric of simulated trials, which alone there are; no level reads it."""
    return metric(
        name, group=GROUP, unit=unit, also=also, remedy=remedy, is_evidence=False,
        sides=(Side.SIM.value,), named={Side.SIM.value: name},
    )  # fmt: skip


def _told(trials: Trials, name: str, of: Of, *, controls: bool = False) -> Iterator[Number]:
    """A number over all trials, and over those of each condition."""
    every = trials.played if controls else trials.novel
    whole = _number(name, of, every, None)
    parts = [_number(name, of, own, at) for at, own in trials.cells()]
    n_out = trials.n_left_out
    out = f"{counted(n_out, 'trial')} with an episode without a score left out" if n_out else ""
    late = sum(len(one.not_begun) for one in trials.played.values())
    ended = f"not counted as novel: {counted(late, 'episode')} that ended before the novelty began"
    ended = ended if late else ""
    silent = [_in_words(one.at) for one in parts if one.at and one.estimate.value is None]
    none = f"no value at {', '.join(silent)}" if silent and whole.estimate.value is not None else ""
    yield replace(whole, note="; ".join(filter(None, [out, ended, whole.note, none])))
    yield from parts


def _number(name: str, of: Of, own: Some, at: Condition | None) -> Number:
    estimate = of(own)
    out = len(own) - estimate.n
    some = f"{out} of {counted(len(own), 'trial')} left out, where it is not defined"
    return Number(
        name=name,
        at=at,
        estimate=estimate,
        rests_on=counted(estimate.n, "trial"),
        note=some if out and estimate.n else "",
        detail=at is not None,
    )


def _missing(name: str, why: str, remedy: str, unit: str) -> Number:
    """A number where there is none; short tables say why once for all of its kind."""
    none, is_first = Estimate.missing(reason=why, unit=unit), name in _FIRST
    return Number(name=name, estimate=none, remedy=remedy, detail=not is_first)


def _means(body: Body, of: Callable[[PlayedTrial], float | None], unit: str, reason: str) -> Of:
    """The mean of a number over trials."""

    def mean(own: Some) -> Estimate:
        values = {key: of(one) for key, one in own.items()}
        return over_trials(values, body.config, unit=unit, reason=reason)

    return mean


def _share(body: Body, of: Callable[[PlayedTrial], float | None], reason: str = "") -> Of:
    """The share of the trials that it is true of, among those of which it can be said."""

    def share(own: Some) -> Estimate:
        known = [found for one in own.values() if (found := of(one)) is not None]
        if not known and reason:
            return Estimate.missing(reason=reason, unit="ratio", method="wilson")
        return success_estimate(sum(map(bool, known)), len(known), exact=False, level=body.level)

    return share


# Detection ---------------------------------------------------------------------------------------


def _why_not_detected(trials: Trials, *, controls: bool) -> tuple[str, str]:
    """Why nothing can be said of detection, and what would help; empty if it can."""
    if trials.condition == "given":
        return "the onset was given", _DECLARES
    if trials.lacks and not (controls and trials.played):
        return trials.lacks, _WHOLE
    if not any(one.stated for one in trials.played.values()):
        return "the policy declares nothing", _DECLARES
    return "", ""


def _detected(body: Body, name: str, unit: str, of: Of, *, controls: bool) -> Iterator[Number]:
    trials = body.trials
    why, remedy = _why_not_detected(trials, controls=controls)
    if why:
        yield _missing(name, why, remedy, unit)
    else:
        yield from _told(trials, name, of, controls=controls)


@_metric("M1", "episodes", _DECLARES, restricted_delay="episodes")
def delay(body: Body) -> Iterator[Number]:
    """Novel episodes before the one after which novelty was declared, in detected trials.

    `restricted_delay` is that of all trials but those declared too early; a missed one counts with
    all its novel episodes.
    """
    if not body.trials:
        return
    of = _means(
        body, lambda one: detection_of(one.trial)["delay"], "episodes", "no trial was detected"
    )
    yield from _detected(body, "M1", "episodes", of, controls=False)
    of = _means(
        body,
        lambda one: detection_of(one.trial)["restricted_delay"],
        "episodes",
        "novelty was declared too early in every trial",
    )
    yield from _detected(body, "restricted_delay", "episodes", of, controls=False)


@_metric("M2", "ratio", _DECLARES)
def detected(body: Body) -> Iterator[Number]:
    """Share of the trials with novelty in which it was declared, and not before it had begun."""
    if body.trials:
        of = _share(body, lambda one: detection_of(one.trial)["detected"])
        yield from _detected(body, "M2", "ratio", of, controls=False)


@_metric("M2_1", "ratio", _DECLARES, false_alarms_per_100=_PER_100)
def false_positives(body: Body) -> Iterator[Number]:
    """Share of all trials in which novelty was declared although there was none yet.

    A trial without such a declaration counts if its normal episodes were played, none being a
    fault. `false_alarms_per_100` are those declarations per 100 normal episodes that were played
    before any declaration.
    """
    if body.trials:
        none = "normal episodes of every trial were forfeited, or ended by a fault"
        of = _share(body, lambda one: detection_of(one.trial)["false_positive"], none)
        yield from _detected(body, "M2_1", "ratio", of, controls=True)
        yield from _detected(
            body, "false_alarms_per_100", _PER_100, partial(_alarms, body), controls=True
        )


def _alarms(body: Body, own: Some) -> Estimate:
    found = sailon.detection_summary(one.trial for one in own.values())
    n, at_risk = found["n_false_positive"], found["normal_at_risk"]
    if not at_risk:
        return Estimate.missing(
            reason="no normal episode was played", unit=_PER_100, method="garwood"
        )
    low, high = garwood_interval(n, at_risk / 100.0, level=body.level)
    return Estimate(
        value=found["fa_per_100"], low=low, high=high, level=body.level, n=found["n_trials"],
        method="garwood", unit=_PER_100,
    )  # fmt: skip


# Reaction ----------------------------------------------------------------------------------------


def _why_not_beside(trials: Trials) -> tuple[str, str]:
    """Why no trial stands beside one of the frozen policy, and what would help."""
    if not trials.frozen:
        return "no policy is named that does not adapt (`trials.frozen`)", _FROZEN
    none = "no trial that the frozen policy has played, too, with a score in every episode"
    return trials.lacks or none, _WHOLE


def _reaction(body: Body, told: str, name: str, condition: str = "") -> Iterator[Number]:
    """A number of `sailon.reaction`, of all trials or of those of a condition."""
    trials = body.trials
    if condition not in ("", trials.condition):
        return
    if not any(one.beside for one in trials.novel.values()):
        why, remedy = _why_not_beside(trials)
        yield _missing(told, why, remedy, "ratio")
        return

    def of(one: PlayedTrial) -> float | None:
        if one.beside is None:
            return None
        # What is left out may leave fewer than the window that the plan asks for.
        left = len(one.beside["performance"]) - one.beside["onset"]
        window = None if trials.window is None else min(trials.window, left)
        value: float | None = sailon.reaction(**one.beside, window=window)[name]  # type: ignore[literal-required]
        return value

    yield from _told(trials, told, _means(body, of, "ratio", "no trial defines it"))


@_metric("M3", "ratio", _FROZEN)
def recovered(body: Body) -> Iterator[Number]:
    """Performance at the end of a trial by that of the frozen policy before the onset."""
    if body.trials:
        yield from _reaction(body, "M3", "nrp", "system")


@_metric("M4", "ratio", _FROZEN, performance_kept="ratio")
def recovered_when_told(body: Body) -> Iterator[Number]:
    """The same as M3 where the policy was told the onset.

    `performance_kept` is the same as M3 or M4 with all episodes from the onset on.
    """
    if body.trials:
        yield from _reaction(body, "M4", "nrp", "given")
        yield from _reaction(body, "performance_kept", "nrp_post")


@_metric("M5", "ratio", _FROZEN, early_reaction="ratio")
def whole_phase(body: Body) -> Iterator[Number]:
    """Mean performance from the onset on, as a share of it and the frozen policy's together.

    `early_reaction` is the same of the first episodes from the onset on, as many as M6 has.
    """
    if body.trials:
        yield from _reaction(body, "M5", "opti")
        yield from _reaction(body, "early_reaction", "ipti")


@_metric("M6", "ratio", _FROZEN, apti_ratio="ratio")
def asymptotic(body: Body) -> Iterator[Number]:
    """The same as M5 of the last episodes of a trial: 0.5 is as good as the frozen policy.

    `apti_ratio` divides the policy's by that of the frozen policy: 1 is as good.
    """
    if body.trials:
        yield from _reaction(body, "M6", "apti")
        yield from _reaction(body, "apti_ratio", "apti_ratio")


@_metric("adaptation", "difference", _INFORMED, adaptation_possible="difference")
def adaptation(body: Body) -> Iterator[Number]:
    """Performance from the onset on, less that of the frozen policy in the same trials.

    `adaptation_possible` is what a policy that is told the novelty has more than the frozen one.
    """
    trials = body.trials
    if not trials or body.policy == trials.frozen:
        return

    def gain(gains: Mapping[Key, float], why: str) -> Of:
        def mean(own: Some) -> Estimate:
            values = {key: gains.get(key) for key in own}
            return over_trials(values, body.config, unit="difference", reason=why)

        return mean

    yield from _told(trials, "adaptation", gain(trials.gains, _why_not_beside(trials)[0]))
    none = trials.lacks or "no informed and frozen policy have both played these trials"
    whole, *parts = _told(trials, "adaptation_possible", gain(trials.possible, none))
    where = [_in_words(one.at) for one in parts if one.at and _wins_nothing(one.estimate)]
    told = f"nothing to win is shown at {', '.join(where)}" if where else ""
    yield _judged(whole, trials, told)
    for part in parts:
        yield _judged(part, trials)


def _wins_nothing(gain: Estimate) -> bool:
    """Whether nothing above 0 is shown; of values without an interval the mean says it."""
    least = gain.value if gain.low is None else gain.low
    return least is not None and least <= 0.0


def _in_words(at: Condition) -> str:
    parts = (at.task, "" if at.level is None else f"level {at.level}", at.difficulty or "")
    return " ".join(filter(None, parts))


def _judged(number: Number, trials: Trials, told: str = "") -> Number:
    """What an informed policy wins, with what that says where it wins nothing."""
    if number.estimate.value is None:
        return replace(number, remedy=_WHOLE if trials.lacks else _INFORMED)
    if _wins_nothing(number.estimate):
        told = f"nothing to win is shown here: {trials.informed}, told the novelty, does no better"
    return replace(number, note="; ".join(filter(None, [number.note, told])))


# Characterisation --------------------------------------------------------------------------------


_LEVELS: Final = {"level_named": "top1", "level_in_three": "top3", "level_brier": "brier"}
_WORDS: Final = {f"{word}_named": word for word in sailon.WORDS} | {"all_named": "all_three"}
_ENDINGS: Final = {"last": "", "at_declaration": "_at_declaration"}


def _units(names: Iterable[str]) -> dict[str, str]:
    """The unit of each number and of the same at the declaration, without the first one's."""
    every = [f"{name}{ending}" for ending in _ENDINGS.values() for name in names]
    return {name: "squared" if "brier" in name else "ratio" for name in every[1:]}


@_metric("level_named", "ratio", _DECLARES, **_units(_LEVELS))
def characterisation(body: Body) -> Iterator[Number]:
    """Share of the trials whose last report from the declaration on thinks the level most probable.

    `level_in_three` is that of the three most probable, `level_brier` the squared error summed over
    levels; with `_at_declaration` of the report that was made with the declaration.
    """
    yield from _characterised(body, _LEVELS, ("levels",))


@_metric("entity_named", "ratio", _DECLARES, **_units(_WORDS))
def words_named(body: Body) -> Iterator[Number]:
    """Share of the trials whose last report from the declaration on names what has changed.

    `attribute_named` is that of the property, `change_named` of how it changed, `all_named` of all
    three; with `_at_declaration` of the report that was made with the declaration.
    """
    yield from _characterised(body, _WORDS, sailon.WORDS)


def _characterised(body: Body, names: Mapping[str, str], parts: Sequence[str]) -> Iterator[Number]:
    """How right the reports are that say one of these parts at least; nothing where none does."""
    novel = body.trials.novel.values()
    if not any(any(_said(one, parts)) for one in novel):
        return
    for when, ending in _ENDINGS.items():
        for name, field in names.items():
            needs = {"all_three": parts}.get(field, [field if field in parts else "level"])
            of = partial(_right, parts=parts, when=when, field=field)
            none, told = "no report from the declaration on", f"{name}{ending}"
            if not any(one.trial["truth"].keys() >= set(needs) for one in novel):
                why = f"no novelty of these trials declares its {', '.join(needs)}"
                yield _missing(told, why, _TRUTH, "squared" if field == "brier" else "ratio")
            elif field == "brier":
                yield from _told(body.trials, told, _means(body, of, "squared", none))
            else:
                yield from _told(body.trials, told, _share(body, of, none))


def _said(one: PlayedTrial, parts: Sequence[str]) -> list[Mapping[str, Any] | None]:
    """What was declared after each episode, where that says one of these parts."""
    every = one.trial["reports"]
    return [said if said and any(said.get(part) for part in parts) else None for said in every]


def _right(one: PlayedTrial, *, parts: Sequence[str], when: str, field: str) -> float | None:
    """How right a report of a trial is; None if there is none, or the truth is not declared."""
    trial = {**one.trial, "reports": _said(one, parts)}
    found: Any = sailon.characterisation_summary([trial])
    value: float | None = found[when][field]
    return value
