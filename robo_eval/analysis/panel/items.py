"""What the shipped panel data say."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.errors import InputError
from robo_eval.core.names import listing, unknown_name
from robo_eval_sim.tasks.cartpole3d.layout import EPISODE_TICKS

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TaskPlan

TASK: Final = "RoboEval/CartPole3D-v0"
"""Gymnasium id of the environment whose levels are the items."""
COLUMNS: Final = (
    "level",
    "difficulty",
    "mean_performance",
    "low",
    "high",
    "n",
    "item_difficulty",
    "behaviour",
)
_DATA: Final = "items.json"
_PLAN: Final = "plan.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A controller of the panel.

    Attributes:
        name: Its name in the panel's plan.
        digest: Digest it played with.
        mean_performance: Mean over all its episodes.
    """

    name: str
    digest: str
    mean_performance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What the panel data were made with.

    Attributes:
        software: Version and revision that played the episodes.
        versions: Versions of Python and the packages beneath.
        plan_digest: SHA-256 of the locked plan.
    """

    software: str
    versions: dict[str, str]
    plan_digest: str


def item_difficulty(profile: str, *, agents: Iterable[str] = ()) -> pd.DataFrame:
    """Difficulty of every level and difficulty of a profile, as the panel found it.

    Args:
        profile: `"paper"` or `"compat"`.
        agents: Digests of the agents under test; none may be a member of the panel, whose results
            would be judged by themselves.

    Returns:
        One row an item: `level`, `difficulty`, `mean_performance` of the panel with its 95 %
        interval `low` to `high` (bootstrap over seeds), `n` episodes, `item_difficulty`, which is
        1 - `mean_performance`, and `behaviour` of the level, as rows carry it.

    Raises:
        UnknownNameError: If there is no such profile.
        InputError: If an agent under test is a member of the panel.
    """
    import pandas as pd

    check_outsiders(agents)
    items = _data()["items"]
    valid = sorted({item["profile"] for item in items})
    if profile not in valid:
        raise unknown_name("profile", profile, valid)
    table = pd.DataFrame([item for item in items if item["profile"] == profile])
    table["item_difficulty"] = 1.0 - table["mean_performance"]
    return table[list(COLUMNS)]


def check_outsiders(agents: Iterable[str]) -> None:
    """Refuse agents that are members of the panel.

    Args:
        agents: Digests of the agents under test.

    Raises:
        InputError: If one is a member's.
    """
    inside = sorted(set(members_among(agents).values()))
    if inside:
        raise InputError(
            f"{', '.join(inside)}: a member of the panel that sets the difficulty of the items"
            " cannot be measured by them; leave it out of the analysis"
        )


def members_among(agents: Iterable[str]) -> dict[str, str]:
    """Which agents are members of the panel, however their parameters were written.

    Args:
        agents: Digests of the agents under test.

    Returns:
        Name of the member by digest; agents that are none are not in it.
    """
    given = set(agents)
    recorded = {member.digest: member.name for member in members()}
    found = {agent: recorded[agent] for agent in given if agent in recorded}
    others = given - found.keys()
    spellings = _spellings() if others else {}
    return {**found, **{agent: name for agent, name in spellings.items() if agent in others}}


@functools.cache
def _spellings() -> Mapping[str, str]:
    """Name of the member by every digest that its controller can have.

    A digest covers parameters as they were written, and 0 is written unlike 0.0, although the
    controller does the same.
    """
    from robo_eval.agents.registry import policy_digest
    from robo_eval.analysis.panel.controllers import PanelController
    from robo_eval.core.plan import parse_plan

    found = {}
    for policy in parse_plan(plan_text(), source=_PLAN).policies:
        parameters = PanelController(**policy.kwargs).parameters
        options = [_written(name, value) for name, value in parameters.items()]
        for values in itertools.product(*options):
            written = dict(zip(parameters, values, strict=True))
            found[policy_digest(PanelController, written)] = policy.name
    return found


def _written(name: str, value: float) -> list[float]:
    """A parameter in each form that a plan may give it in."""
    if name == "delay" or value != int(value):  # a delay that is not a whole number is refused
        return [value]
    return [int(value), float(value)]


def unlike_items(task: TaskPlan) -> list[str]:
    """Why episodes of a task are no episodes of the panel's items, as far as settings go.

    The panel says how difficult an item is as it was played: under other keywords, another time
    limit or another scale of quality nobody knows.

    Args:
        task: Section of a plan.

    Returns:
        What differs, for people; empty if nothing does, or if the environment is another.
    """
    from robo_eval.metrics.tasks import as_text

    if task.env != TASK:
        return []
    reasons = [
        f"kwargs.{name} {as_text(value)}, the panel had none"
        for name, value in sorted(task.kwargs.items())
    ]
    # An episode ends after EPISODE_TICKS by itself, so a later limit changes nothing.
    if task.max_ticks is not None and task.max_ticks < EPISODE_TICKS:
        reasons.append(f"max_ticks {task.max_ticks}, the panel had {EPISODE_TICKS}")
    if task.quality_range != (0.0, 1.0):
        reasons.append(f"quality_range {as_text(task.quality_range)}, the panel had [0.0, 1.0]")
    return reasons


def warnings(episodes: pd.DataFrame) -> tuple[str, ...]:
    """Why the difficulties may not be those of the levels that were played; empty if they are.

    Args:
        episodes: Rows. Those without a behaviour, as of a robot or an import, say nothing.
    """
    played = episodes[episodes["task"].eq(TASK) & episodes["behaviour"].notna()]
    measured = {
        (i["profile"], i["level"], i["difficulty"]): i["behaviour"] for i in _data()["items"]
    }
    names = ["level", "difficulty", "profile"]
    found = [
        f"level {level} {difficulty} ({profile})"
        for (level, difficulty, profile, behaviour), _ in played.groupby([*names, "behaviour"])
        if measured.get((profile, level, difficulty), behaviour) != behaviour
    ]
    if not found:
        return ()
    made = provenance().versions
    versions = ", ".join(f"{name} {made[name]}" for name in ("robo_eval", "pybullet", "numpy"))
    text = (
        f"{listing(found)}: played as levels that behave otherwise than those the panel was"
        f" measured on, with {versions}. How difficult they are is not known."
    )
    return (text,)


def members() -> tuple[Member, ...]:
    """The controllers of the panel, in the order of their plan."""
    return tuple(Member(**member) for member in _data()["members"])


def provenance() -> Provenance:
    """What the data were made with."""
    return Provenance(**{name: _data()[name] for name in ("software", "versions", "plan_digest")})


def plan_text() -> str:
    """The plan, as YAML, whose episodes the data summarise."""
    return (files(__package__) / _PLAN).read_text(encoding="utf-8")


@functools.cache
def _data() -> dict[str, Any]:
    text = (files(__package__) / _DATA).read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data
