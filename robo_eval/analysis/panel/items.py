"""What the shipped panel data say."""

from __future__ import annotations

import ast
import functools
import importlib.util
import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.canonical import digest
from robo_eval.core.cartpole3d import EPISODE_TICKS
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name

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
)
_DATA: Final = "items.json"
_PLAN: Final = "plan.yaml"
_SIMULATOR: Final = "robo_eval_sim"
_LEVEL_SOURCE: Final = ("novelty/*.py", "physics.py", "start.py", "motion.py", "world.py")
"""Files of the simulator that set how hard an item is."""


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
    """What the panel data were made with, and whether the levels have changed since.

    Attributes:
        software: Version and revision that played the episodes.
        versions: Versions of Python and the packages beneath.
        plan_digest: SHA-256 of the locked plan.
        levels_digest: Digest of the levels' source then.
        levels_digest_now: The same of the installed simulator; None if there is none.
    """

    software: str
    versions: dict[str, str]
    plan_digest: str
    levels_digest: str
    levels_digest_now: str | None

    @property
    def is_current(self) -> bool | None:
        """Whether the installed levels are those of the data; None without a simulator."""
        if self.levels_digest_now is None:
            return None
        return self.levels_digest_now == self.levels_digest


def item_difficulty(profile: str, *, agents: Iterable[str] = ()) -> pd.DataFrame:
    """Difficulty of every level and difficulty of a profile, as the panel found it.

    Args:
        profile: `"paper"` or `"compat"`.
        agents: Digests of the agents under test; none may be a member of the panel, whose results
            would be judged by themselves.

    Returns:
        One row an item: `level`, `difficulty`, `mean_performance` of the panel with its 95 %
        interval `low` to `high` (bootstrap over seeds), `n` episodes, and `item_difficulty`, which
        is 1 - `mean_performance`.

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
    return {**found, **{agent: name for agent, name in _spellings().items() if agent in others}}


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
    if name == "delay" or value != int(value):  # a delay that is no whole number is refused
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


def warnings() -> tuple[str, ...]:
    """Why the difficulties may not be those of the levels that were played; empty if they are."""
    if provenance().is_current is False:
        return ("The installed novelty levels are not those the panel was measured on.",)
    return ()


def members() -> tuple[Member, ...]:
    """The controllers of the panel, in the order of their plan."""
    return tuple(Member(**member) for member in _data()["members"])


def provenance() -> Provenance:
    """What the data were made with."""
    made = {name: _data()[name] for name in ("software", "versions", "plan_digest")}
    return Provenance(
        **made,
        levels_digest=_data()["levels_digest"],
        levels_digest_now=levels_digest(),
    )


def plan_text() -> str:
    """The plan, as YAML, whose episodes the data summarise."""
    return (files(__package__) / _PLAN).read_text(encoding="utf-8")


def levels_digest() -> str | None:
    """Digest of the installed levels' code, comments and docstrings aside.

    None if no simulator is installed.
    """
    found = importlib.util.find_spec(_SIMULATOR)
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(found.submodule_search_locations[0])
    paths = sorted(path for pattern in _LEVEL_SOURCE for path in folder.glob(pattern))
    code = {
        path.relative_to(folder).as_posix(): _code(path.read_text(encoding="utf-8"))
        for path in paths
    }
    return digest(code)


@functools.lru_cache(maxsize=256)
def _code(text: str) -> str:
    """The code of a file in one spelling, so that only what runs can differ."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is only a string: a docstring of a function or of an attribute."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@functools.cache
def _data() -> dict[str, Any]:
    text = (files(__package__) / _DATA).read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data
