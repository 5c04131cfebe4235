"""Agents ranked by what they cover of the space of a study, and by other measures beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval.analysis.acc import AccTable, analyse
from robo_eval.analysis.acc.trial import AccRow, acc_of_table
from robo_eval.analysis.aiq import Space, around, quotient, quotient_interval, quotients
from robo_eval.analysis.arrays import (
    bootstrap_name,
    percentiles,
    resampled_means,
)
from robo_eval.analysis.coherence import Coherence, auc, auc_interval, coherence
from robo_eval.analysis.comparison import check_copies
from robo_eval.analysis.panel import item_difficulty, members_among
from robo_eval.analysis.panel import warnings as panel_warnings
from robo_eval.analysis.panel.items import TASK
from robo_eval.analysis.trial import log_problem
from robo_eval.core.estimate import Estimate
from robo_eval.core.names import unknown_name
from robo_eval.core.plain import plain
from robo_eval.log.directory import TrialDirectory
from robo_eval.metrics.compatible import check_levels
from robo_eval.metrics.coverage import Coverage
from robo_eval.stats.resampling import stratified_mean_interval
from robo_eval.study.causes import Disagreement, Measure, causes, listed
from robo_eval.study.entries import TaskTest, Test
from robo_eval.study.matched import Played, PolicyGroup, matched, warnings_of
from robo_eval.study.outcome import Outcome, resampled_spaces
from robo_eval.study.run import Study

Numbers = NDArray[np.float64]
_LEVEL: Final = 0.95
_RESAMPLES: Final = 1_000
_HULLS: Final = 300
"""Draws of what takes longer: volumes, and areas under curves of means."""
_SPACES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedAgent:
    """What one policy achieved under the conditions of a group.

    Attributes:
        policy: Its name.
        performances: Mean performance in each test in [0, 1], shape (tests,); NaN without an
            episode.
        episodes: Scored episodes of each test, shape (tests,).
        mean: Mean performance over tests.
        apti: Mean over tests of performance beside that of the baseline, of whole episodes: 0.5 is
            as good as it. Tests in which both are 0 are left out.
        aiq: Share of the space of the study that it covers, as a root; the interval is of episodes
            or, where tests share them, seeds, with the space as it is.
        aiq_of_suite: The same with the interval that other trainings and pools would make.
        behind: Quotient less that of the agent which covers most, with such an interval; 0 for that
            agent itself.
        by_k: The quotient in a dimension fewer, as many, and one more.
        capability: Difficulty up to which it gets, by the reference panel; see `analysis.acc`.
        normalised_generality: In [-1, 1].
        coherence: Area under the curve of generalised means over tests; see `analysis.coherence`.
        evenness: The curve that `coherence` is the area of, and which tests hold it back; None if a
            test has no episode.
        characteristic: Its agent characteristic curve; None if the items have no difficulty, or it
            is one of the panel that says how difficult they are.
        coverage: Scored episodes out of those that were begun; None if that is not known.
    """

    policy: str
    performances: Numbers
    episodes: NDArray[np.intp]
    mean: Estimate
    apti: Estimate
    aiq: Estimate
    aiq_of_suite: Estimate
    behind: Estimate
    by_k: Mapping[int, float]
    capability: Estimate
    normalised_generality: Estimate
    coherence: Estimate
    evenness: Coherence | None
    characteristic: AccRow | None
    coverage: Coverage | None = None

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; NaN where a test was not played."""
        named = ("mean", "apti", "aiq", "aiq_of_suite", "behind", "capability",
                 "normalised_generality", "coherence")  # fmt: skip
        return {
            "policy": self.policy,
            "performances": self.performances.tolist(),
            "episodes": self.episodes.tolist(),
            **{name: getattr(self, name).as_dict() for name in named},
            "by_k": {str(k): value for k, value in self.by_k.items()},
            "evenness": None if self.evenness is None else self.evenness.as_dict(),
            "coverage": plain(self.coverage),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """Agents under the same conditions, by what they cover; the one that covers most comes first.

    Attributes:
        side: Where they were played: `sim`, `twin` or `real`.
        difficulty: At which difficulty; `all` for every one there is, `""` if there is none.
        tests: Names of the tests.
        k: Dimensions of the space.
        baseline: The agent others are compared with by APTI.
        agents: Those with an episode in every test, best first, and then the others.
        disagreements: Where measures rank otherwise than the mean.
        acc: Of the group; None if the items have no difficulty.
        warnings: What else to mind of the trials.
        log_problems: Why the rows of a trial are not those that were logged, by trial directory;
            empty if all are.
    """

    side: str
    difficulty: str
    tests: list[str]
    k: int
    baseline: str
    agents: list[RankedAgent]
    disagreements: list[Disagreement]
    acc: AccTable | None
    warnings: tuple[str, ...] = ()
    log_problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def uncovered(self) -> list[str]:
        """Agents of which too few episodes have a score to compare them, each with its counts."""
        return [
            f"{one.policy} ({self.side}{f', {self.difficulty}' if self.difficulty else ''}):"
            f" {one.coverage.text}"
            for one in self.agents
            if one.coverage is not None and not one.coverage.is_sufficient
        ]

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; NaN where a test was not played."""
        return {
            "side": self.side,
            "difficulty": self.difficulty or None,
            "tests": self.tests,
            "k": self.k,
            "baseline": self.baseline,
            "agents": [agent.as_dict() for agent in self.agents],
            "disagreements": [
                {"first": one.first, "second": one.second, "by": one.by, "tests": list(one.tests)}
                for one in self.disagreements
            ],
            "warnings": [*self.warnings, *(self.acc.warnings if self.acc else ())],
            "uncovered": self.uncovered,
            "log_problems": dict(self.log_problems),
        }


def rank(
    study: Study,
    trials: Sequence[TrialDirectory],
    *,
    baseline: str | None = None,
    seed: int = 0,
    across_versions: bool = False,
) -> tuple[Outcome, list[Ranking]]:
    """Rank the policies of trials in the space of a study, for each side and difficulty.

    Args:
        study: A study that was run.
        trials: Played trials; see `study.matched.matched`.
        baseline: The policy that others are compared with by APTI; None takes `random` if it is
            there, and else the one of the lowest mean. Where it was not played there is no APTI.
        seed: Of the draws that intervals are made by.
        across_versions: Whether episodes of levels that changed in between are ranked all the
            same, with a warning.

    Returns:
        What the study found, and a ranking for each group.

    Raises:
        InputError: If the study is not finished, no episode is of one of its tests, or a level
            changed between episodes.
        UnknownNameError: If there is no such baseline.
        TrialDirectoryError: If a log cannot be read.
    """
    outcome = study.known()
    check_copies(trials)
    groups = matched(study.tests, trials)
    played = pd.concat([group.table for group in groups], ignore_index=True)
    changed = check_levels(played, across_versions=across_versions)
    names = sorted({agent.policy for group in groups for agent in group.agents})
    if baseline is not None and baseline not in names:
        raise unknown_name("baseline", baseline, names)
    spaces = resampled_spaces(study.suite, outcome, draws=_SPACES, seed=seed)
    warnings = (*changed, *warnings_of(trials))
    problems = {str(one.path): why for one in trials if (why := log_problem(one))}
    found = [
        _ranking(group, study.tests, outcome.space, spaces, baseline, seed) for group in groups
    ]
    return outcome, [replace(one, warnings=warnings, log_problems=problems) for one in found]


def _ranking(
    group: PolicyGroup,
    tests: Sequence[Test],
    suite: Space,
    spaces: Sequence[Space],
    baseline: str | None,
    seed: int,
) -> Ranking:
    names = [test.name for test in tests]
    base = _baseline(group, baseline)
    acc = _acc(group, tests, seed)
    drawn = _drawn_quotients(group, spaces)
    values = {name: quotient(suite, _means(_played(group, name))).aiq for name in drawn}
    best = max(values, key=lambda name: values[name]) if values else None
    agents = [
        _agent(one, names, suite, base, group, acc, seed, drawn, values, best)
        for one in group.agents
    ]
    agents.sort(key=lambda one: (one.aiq.value is None, -(one.aiq.value or 0.0), one.policy))
    return Ranking(
        side=group.side,
        difficulty=group.difficulty,
        tests=names,
        k=suite.k,
        baseline=base,
        agents=agents,
        disagreements=_disagreements(agents, names, _measures(suite, group, tests)),
        acc=acc,
    )


def _agent(
    own: Played,
    names: Sequence[str],
    suite: Space,
    base: str,
    group: PolicyGroup,
    acc: AccTable | None,
    seed: int,
    drawn: Mapping[str, Numbers],
    values: Mapping[str, float],
    best: str | None,
) -> RankedAgent:
    rows = own.episodes
    lacking = [
        f"{name} at {own.gaps[place]}" if place in own.gaps else name
        for place, name in enumerate(names)
        if not len(rows[place])
    ]
    row = next((one for one in acc.rows if one.policy == own.policy), None) if acc else None
    is_member = acc is not None and own.policy in acc.panel_members
    no_curve = Estimate.missing(
        reason="it is of the panel that says how difficult the tests are"
        if is_member
        else "the tests have no known difficulty",
        unit="difficulty",
    )
    found: dict[str, Estimate]
    if lacking:
        reason = f"no episode of {listed(lacking)}"
        found = {
            name: Estimate.missing(reason=reason, unit="ratio")
            for name in ("mean", "apti", "aiq", "aiq_of_suite", "behind", "coherence")
        }
    else:
        assert best is not None
        of_suite = _spread(values[own.policy], drawn[own.policy], is_basic=True)
        difference = drawn[own.policy] - drawn[best]
        found = {
            "mean": _mean(own, seed),
            "apti": _apti(own, base, group, seed),
            "aiq": quotient_interval(
                suite, rows, seeds=own.seeds, level=_LEVEL, resamples=_HULLS, seed=seed
            ),
            "aiq_of_suite": of_suite,
            "behind": _spread(values[own.policy] - values[best], difference, is_basic=False),
            "coherence": auc_interval(
                rows, seeds=own.seeds, level=_LEVEL, resamples=_HULLS, seed=seed
            ),
        }
    return RankedAgent(
        policy=own.policy,
        performances=_means(own),
        episodes=np.array([len(one) for one in rows]),
        **found,
        evenness=None if lacking else coherence(_means(own), domains=names),
        by_k={} if lacking else {k: one.aiq for k, one in around(suite, _means(own)).items()},
        capability=row.capability if row else no_curve,
        normalised_generality=row.normalised_generality if row else no_curve,
        characteristic=row,
        coverage=own.coverage,
    )


def _mean(own: Played, seed: int) -> Estimate:
    rows = own.episodes
    if own.seeds is not None:
        drawn = resampled_means(rows, _RESAMPLES, seed, own.seeds).mean(axis=1)
        low, high, reason = percentiles(drawn, _LEVEL, own.seeds)
        return Estimate(
            value=float(_means(own).mean()),
            low=low,
            high=high,
            level=_LEVEL,
            n=sum(map(len, rows)),
            method=bootstrap_name("tests", own.seeds),
            unit="ratio",
            reason=reason,
        )
    return stratified_mean_interval(rows, over="these", level=_LEVEL, seed=seed)


def _apti(own: Played, baseline: str, group: PolicyGroup, seed: int) -> Estimate:
    rows = own.episodes
    n = sum(map(len, rows))
    other = next((one for one in group.agents if one.policy == baseline), None)
    if other is None or not all(map(len, other.episodes)):
        where = "here" if other is None else "in every test"
        return Estimate.missing(
            reason=f"the baseline {baseline} was not played {where}", unit="ratio", n=n
        )
    value = _mean_apti(_means(own)[None], _means(other)[None])[0]
    if other is own and np.isfinite(value):
        return Estimate(
            value=0.5, low=0.5, high=0.5, level=_LEVEL, n=n, method="exact", unit="ratio"
        )
    labels = None if own.seeds is None or other.seeds is None else own.seeds + other.seeds
    drawn = _mean_apti(*_drawn_beside(own, other, labels, seed))
    if not np.isfinite(value):
        return Estimate.missing(reason="it and the baseline are 0 everywhere", unit="ratio", n=n)
    low, high, reason = percentiles(drawn, _LEVEL, labels)
    return Estimate(
        value=float(value), low=low, high=high, level=_LEVEL, n=n,
        method=bootstrap_name("tests", labels), unit="ratio", reason=reason,
    )  # fmt: skip


def _drawn_beside(
    own: Played, other: Played, labels: Sequence[NDArray[np.int64]] | None, seed: int
) -> tuple[Numbers, Numbers]:
    """Profiles of two agents, drawn together if they met the same seeds."""
    if labels is not None:
        both = resampled_means(own.episodes + other.episodes, _RESAMPLES, seed, labels)
        first, second = np.split(both, 2, axis=1)
        return first, second
    drawn = resampled_means(own.episodes, _RESAMPLES, seed)
    # An agent beside itself is the same episodes: 0.5 in every draw.
    is_same = own.episodes is other.episodes
    return drawn, drawn if is_same else resampled_means(other.episodes, _RESAMPLES, seed + 1)


def _mean_apti(agent: Numbers, base: Numbers) -> Numbers:
    """Mean over tests of agent / (agent + baseline), shape (draws,)."""
    both = agent + base
    shares = np.divide(agent, both, out=np.full(both.shape, np.nan), where=both > 0.0)
    known = np.isfinite(shares)
    count = known.sum(axis=1)
    total = np.where(known, shares, 0.0).sum(axis=1)
    found: Numbers = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return found


def _drawn_quotients(group: PolicyGroup, spaces: Sequence[Space]) -> dict[str, Numbers]:
    """The quotients of the agents that played every test, in each space, by name."""
    complete = [one for one in group.agents if all(map(len, one.episodes))]
    if not complete:
        return {}
    rows = [_means(one) for one in complete]
    table = np.array([[one.aiq for one in quotients(space, rows)] for space in spaces])
    return {one.policy: table[:, place] for place, one in enumerate(complete)}


def _spread(value: float, drawn: Numbers, *, is_basic: bool) -> Estimate:
    """An estimate with the interval of other trainings and pools, widened to hold the estimate."""
    low, high = np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    if is_basic:
        # Noise makes tests less alike, and the draws with it: they lie to a side of the value.
        low, high = np.clip([2.0 * value - high, 2.0 * value - low], 0.0, 1.0)
    return Estimate(
        value=value,
        low=float(min(low, value)),
        high=float(max(high, value)),
        level=_LEVEL,
        n=len(drawn),
        method="bootstrap of trainings and halves of the pool, "
        + ("basic" if is_basic else "percentiles"),
        unit="ratio",
    )


def _baseline(group: PolicyGroup, wanted: str | None) -> str:
    if wanted is not None:
        return wanted
    if any(one.policy == "random" for one in group.agents):
        return "random"
    known = [one for one in group.agents if any(map(len, one.episodes))]
    complete = [one for one in known if all(map(len, one.episodes))] or known
    return min(complete, key=lambda one: float(np.nanmean(_means(one)))).policy


def _played(group: PolicyGroup, name: str) -> Played:
    return next(one for one in group.agents if one.policy == name)


def _means(one: Played) -> Numbers:
    return np.array([row.mean() if len(row) else np.nan for row in one.episodes])


# Capability ------------------------------------------------------------------------------------


def _acc(group: PolicyGroup, tests: Sequence[Test], seed: int) -> AccTable | None:
    """Characteristic curves over the levels of a group; None where the panel knows none.

    Policies that are of the panel are left out, as `analysis.trial.acc_of` leaves them out.
    """
    profile = _profile(tests)
    if profile is None:
        return None
    policies = zip(group.table["policy"], group.table["policy_digest"].astype(str), strict=True)
    digests = dict(policies)
    known = members_among(digests.values())
    members = {name: known[digest] for name, digest in digests.items() if digest in known}
    table = acc_of_table(
        group.table[~group.table["policy"].isin(list(members))],
        item_difficulty(profile),
        resamples=_RESAMPLES,
        level=_LEVEL,
        seed=seed,
    )
    if not table.rows and not members:
        return None
    return replace(table, panel_members=members, warnings=panel_warnings(group.table))


def _profile(tests: Sequence[Test]) -> str | None:
    """The profile of tests that are levels of the panel's task, all of one; None otherwise."""
    found = set()
    for test in tests:
        if not isinstance(test, TaskTest) or test.task.env != TASK or "level" not in test.kwargs:
            return None
        if test.kwargs.keys() - {"level", "profile", "difficulty"}:
            return None
        found.add(str(test.kwargs.get("profile", "paper")))
    return found.pop() if len(found) == 1 else None


# Disagreements ---------------------------------------------------------------------------------


def _measures(suite: Space, group: PolicyGroup, tests: Sequence[Test]) -> dict[str, Measure]:
    """What agents are ranked by beside the mean, each a number of their performances."""
    found: dict[str, Measure] = {
        "aiq": lambda values: quotient(suite, values).aiq,
        "coherence": lambda values: float(auc(values)),
    }
    profile = _profile(tests)
    panel = None if profile is None else item_difficulty(profile)
    if panel is not None and group.difficulty in set(panel["difficulty"]):
        own = panel[panel["difficulty"] == group.difficulty].set_index("level")["item_difficulty"]
        levels = [int(test.kwargs["level"]) for test in tests if isinstance(test, TaskTest)]
        difficulty = own.loc[levels].to_numpy(float)
        found["capability"] = lambda values: float(analyse(values, difficulty).capability)
    return found


def _disagreements(
    agents: Sequence[RankedAgent], names: Sequence[str], measures: Mapping[str, Measure]
) -> list[Disagreement]:
    """Pairs of agents that a measure ranks otherwise than the mean does, and why."""
    complete = [one for one in agents if one.aiq.value is not None]
    found = []
    for one, other in combinations(complete, 2):
        first, second = sorted(
            (one, other), key=lambda agent: float(agent.performances.mean()), reverse=True
        )
        if first.performances.mean() == second.performances.mean():
            continue
        for name, measure in measures.items():
            if name == "capability" and None in (first.capability.value, second.capability.value):
                continue
            if measure(first.performances) < measure(second.performances):
                tests = causes(first.performances, second.performances, measure)
                found.append(
                    Disagreement(
                        first=first.policy,
                        second=second.policy,
                        by=name,
                        tests=tuple(names[place] for place in tests),
                    )
                )
    return found
