"""What a policy did in trials with an onset, beside a frozen policy and an informed one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import FaultBy
from robo_eval.core.number import Condition
from robo_eval.formulas import sailon
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import is_missing
from robo_eval.metrics.performance import CONDITION
from robo_eval.metrics.tasks import VARIANT, task_label
from robo_eval.stats.resampling import cells_mean_interval

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan

_UNSAID: Final = {"probability": 0.0, "threshold": 0.5}
"""What counts as declared after an episode where nothing was."""

Key = tuple[str, int]
"""Cell and number of a trial: what the same trial of another policy shares with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedTrial:
    """One trial of a policy.

    Attributes:
        at: Task and novelty; None of a control trial, and where no novelty ever began.
        trial: What the formulas read of it, see `formulas.sailon`; its onset is the first episode
            in which the novelty began.
        stated: The thresholds that the policy declared; none if it declared nothing.
        not_begun: Novel episodes that ended before their novelty began, by place.
        beside: Performance, baseline and onset without the episodes in which the novelty never
            began for it or for the frozen policy; None if that has not played the same.
    """

    at: Condition | None
    trial: Mapping[str, Any]
    stated: tuple[float, ...]
    not_begun: frozenset[int]
    beside: Mapping[str, Any] | None = None


Whole = tuple[dict[Key, PlayedTrial], int]
"""Trials whose episodes all have a score, by key, and how many lack one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """The trials of a policy.

    Attributes:
        frozen: Name of the policy that does not adapt; empty if none is named.
        informed: Name of the policy that is told the novelty; empty if none is named.
        condition: `system`, or `given` where the policies were told the onset.
        window: Episodes of the asymptotic window; None leaves them to the formulas.
        played: Trials whose episodes all have a score.
        n_left_out: Trials that are left out, because an episode has no score.
        gains: By key, how much better it did from the onset on than the frozen policy, a
            difference of mean performance.
        possible: By key, how much better the informed policy did.
        is_split: Whether numbers are also asked for by condition.
    """

    frozen: str
    informed: str
    condition: str
    window: int | None
    played: Mapping[Key, PlayedTrial]
    n_left_out: int
    gains: Mapping[Key, float]
    possible: Mapping[Key, float]
    is_split: bool = True

    def __bool__(self) -> bool:
        return bool(self.played or self.n_left_out)

    @property
    def novel(self) -> dict[Key, PlayedTrial]:
        """Trials with novelty."""
        return {key: one for key, one in self.played.items() if one.at is not None}

    @property
    def lacks(self) -> str:
        """Why there is no trial with novelty to judge; empty if there is one."""
        which = "trial with novelty" if self.played else "trial"
        return "" if self.novel else f"no {which} whose episodes all have a score"

    def cells(self) -> Iterator[tuple[Condition, dict[Key, PlayedTrial]]]:
        """The trials of each condition, where there are several of them, and they are asked for."""
        found: dict[Condition, dict[Key, PlayedTrial]] = defaultdict(dict)
        for key, one in self.novel.items():
            if one.at is not None:
                found[one.at][key] = one
        return iter(found.items() if self.is_split and len(found) > 1 else ())


def trials_of(table: pd.DataFrame, policy: str, plan: TrialPlan | None) -> Trials:
    """The trials of a policy among the episodes of a side.

    Args:
        table: Episodes as `episodes_frame` has them.
        policy: Name of the policy.
        plan: The plan, which names the frozen and the informed policy.
    """
    if plan is not None and (plan.trials is None or plan.imported is not None):
        return trials_among({}, policy, plan)
    rules = None if plan is None else plan.trials
    named = {policy} if rules is None else {policy, rules.frozen, rules.informed}
    return trials_among(_trials_by_policy(table, {one for one in named if one}), policy, plan)


def whole_trials(table: pd.DataFrame, policy: str) -> Whole:
    """The whole trials of a policy by key, and how many lack a score; see `trials_of`."""
    return _trials_by_policy(table, {policy})[policy]


def trials_among(every: Mapping[str, Whole], policy: str, plan: TrialPlan | None) -> Trials:
    """`trials_of`, where whole trials are there already.

    Args:
        every: Of the policy, and of those that the plan names, as `whole_trials` gives them.
        policy: Name of the policy.
        plan: The plan, which names the frozen and the informed policy.
    """
    rules = None if plan is None else plan.trials
    frozen = (rules and rules.frozen) or ""
    informed = (rules and rules.informed) or ""
    own, n_left_out = every.get(policy, ({}, 0))
    base = every.get(frozen, ({}, 0))[0]
    told = every.get(informed, ({}, 0))[0]
    conditions = (str(one.trial["condition"]) for one in own.values())
    return Trials(
        frozen=frozen,
        informed=informed,
        condition=rules.condition if rules else next(conditions, "system"),
        window=None if rules is None else rules.window,
        played={key: replace(one, beside=_beside(one, base.get(key))) for key, one in own.items()},
        n_left_out=n_left_out,
        gains=_gains(own, base),
        possible=_gains(told, base),
    )


def _beside(one: PlayedTrial, base: PlayedTrial | None) -> Mapping[str, Any] | None:
    if base is None or one.at is None:
        return None
    ours, theirs = one.trial["performance"], base.trial["performance"]
    out = one.not_begun | base.not_begun
    kept = [place for place in range(len(ours)) if place not in out]
    first = sum(place < one.trial["onset"] for place in kept)
    if first == len(kept):
        return None
    both = {"performance": [ours[at] for at in kept], "baseline": [theirs[at] for at in kept]}
    return {**both, "onset": first}


def _gains(own: Mapping[Key, PlayedTrial], base: Mapping[Key, PlayedTrial]) -> dict[Key, float]:
    found = {key: _beside(one, base.get(key)) for key, one in own.items()}
    return {key: _gain(**beside) for key, beside in found.items() if beside}


def _gain(performance: Sequence[float], baseline: Sequence[float], onset: int) -> float:
    return (sum(performance[onset:]) - sum(baseline[onset:])) / len(performance[onset:])


def detection_of(trial: Mapping[str, Any]) -> sailon.Detection:
    """What a trial of `PlayedTrial` tells of detection."""
    names = ("onset", "declared", "n_episodes", "unplayed")
    return sailon.detection(*(trial[name] for name in names))


def has_not_begun(novelty: object) -> bool:
    """Whether an episode of a trial ended before its novelty began, by the `novelty` of its row."""
    return isinstance(novelty, Mapping) and "trial" in novelty and novelty.get("began") is False


def _trials_by_policy(
    table: pd.DataFrame, policies: set[str]
) -> dict[str, tuple[dict[Key, PlayedTrial], int]]:
    """Whole trials of each policy, and how many lack a score."""
    if "novelty" not in table.columns:
        return {}
    names = (
        "policy", "quality", "fault_by", "task", "family", VARIANT, "profile", "level",
        "difficulty",
    )  # fmt: skip
    columns = [table[name].tolist() for name in ("novelty", *names)]
    rows: dict[tuple[str, Key], dict[int, dict[str, Any]]] = defaultdict(dict)
    for novelty, *cells in zip(*columns, strict=True):
        place = novelty.get("trial") if isinstance(novelty, Mapping) else None
        row = dict(zip(names, cells, strict=True))
        if place is not None and row["policy"] in policies:
            key = str(place["cell"]), int(place["number"])
            episode = {**row, "place": place, "novelty": novelty}
            own = rows[str(row["policy"]), key]
            if int(place["episode"]) not in own or not is_missing(row["quality"]):
                own[int(place["episode"])] = episode  # of several attempts, that with a score
    found: dict[str, tuple[dict[Key, PlayedTrial], int]] = {name: ({}, 0) for name in policies}
    for (policy, key), trial in sorted(rows.items()):
        trials, n_left_out = found[policy]
        episodes = [trial[place] for place in sorted(trial)]
        is_whole = len(trial) == int(episodes[0]["place"]["episodes"])
        if is_whole and not any(is_missing(row["quality"]) for row in episodes):
            trials[key] = _played(episodes)
        else:
            n_left_out += 1
        found[policy] = trials, n_left_out
    return found


def _played(rows: Sequence[Mapping[str, Any]]) -> PlayedTrial:
    places = [row["place"] for row in rows]
    said = [place.get("declared") for place in places]
    stated = [_UNSAID if one is None else one for one in said]
    novel = [place for place, row in enumerate(rows) if row["place"]["is_novel"]]
    began = [place for place in novel if not has_not_begun(rows[place]["novelty"])]
    onset = began[0] if began else None
    first = None if onset is None else rows[onset]
    trial: dict[str, Any] = {
        "n_episodes": len(rows),
        "onset": onset,
        "unplayed": [at for at, row in enumerate(rows) if row["fault_by"] == FaultBy.POLICY],
        "condition": places[0]["condition"],
        "performance": [float(row["quality"]) for row in rows],
        "probability": [one["probability"] for one in stated],
        "threshold": [one["threshold"] for one in stated],
        "reports": said,
        "truth": {} if first is None else _truth(first),
    }
    trial["declared"] = sailon.declared_index(trial["probability"], trial["threshold"])
    return PlayedTrial(
        at=None if first is None else _condition(first),
        trial=trial,
        stated=tuple(one["threshold"] for one in said if one is not None),
        not_begun=frozenset(novel).difference(began),
    )


def _truth(row: Mapping[str, Any]) -> dict[str, Any]:
    """What is new in an episode: its level, and what its task declares in words."""
    words = row["novelty"].get("truth")
    level = {} if is_missing(row["level"]) else {"level": row["level"]}
    return {**level, **(words if isinstance(words, Mapping) else {})}


def _condition(row: Mapping[str, Any]) -> Condition:
    return Condition(
        task=task_label(str(row["family"] or row["task"]), str(row[VARIANT] or "")),
        profile=_known(row["profile"]),
        level=_known(row["level"]),
        difficulty=_known(row["difficulty"]),
    )


def _known(cell: Any) -> Any:
    return None if is_missing(cell) else cell


def not_begun_text(episodes: pd.DataFrame) -> str:
    """How many novel episodes of trials ended before their novelty began, by level.

    Args:
        episodes: As `episodes_frame` has them.

    Returns:
        Such as `3 at level 9`; empty if there is none.
    """
    cells = zip(episodes["level"], episodes["novelty"], strict=True)
    late = Counter(
        "" if is_missing(level) else f" at level {level}"
        for level, novelty in cells
        if has_not_begun(novelty)
    )
    return ", ".join(f"{n}{where}" for where, n in sorted(late.items()))


def once_in_trials(table: pd.DataFrame) -> pd.DataFrame:
    """Episodes, of which those that several trials repeat count once: the first that has a score.

    Trials of one number share their seeds over conditions, and begin with the same normal episodes.

    Args:
        table: Episodes as `episodes_frame` has them.
    """
    in_trial = table["novelty"].map(lambda cell: isinstance(cell, Mapping) and "trial" in cell)
    scored = table[in_trial.astype(bool) & table["quality"].notna()]
    scored = scored.sort_values("start_ns", kind="stable")
    return table.drop(index=scored.index[scored.duplicated(["policy", *CONDITION, "seed"])])


def over_trials(
    values: Mapping[Key, float | None], config: MetricConfig, *, unit: str, reason: str
) -> Estimate:
    """Mean over trials, which are resampled inside their condition; each condition counts once.

    Args:
        values: By key; None where a trial does not define it.
        config: Settings of the interval.
        unit: Unit of the values.
        reason: Why there is no value, where no trial defines it.
    """
    cells: dict[str, list[float]] = defaultdict(list)
    for (cell, _), value in values.items():
        if value is not None:
            cells[cell].append(float(value))
    known = [cells[cell] for cell in sorted(cells)]
    if not known:
        return Estimate.missing(reason=reason, unit=unit)
    return cells_mean_interval(
        known, level=config.level, unit=unit, resamples=config.resamples, seed=config.seed
    )
