"""Play the reference panel's plan and write the difficulty of the items anew.

Run: .venv/bin/python benchmarks/make_panel.py runs/panel

The folder holds the trial; called again, an interrupted run goes on. About 8 minutes on two
cores. A change of the simulator that changes results asks for it; the new items.json is a commit
of its own, with the reason.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from robo_eval.analysis import panel
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Difficulty
from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.provenance import versions
from robo_eval.stats.resampling import mean_interval
from robo_eval_sim.runner import run_simulated

if TYPE_CHECKING:
    import pandas as pd

_ORDER: Final[dict[object, int]] = {d.value: index for index, d in enumerate(Difficulty)}
_DIGITS: Final = 6


def main(folder: Path) -> None:
    plan = parse_plan(panel.plan_text(), source="plan.yaml")
    known = TrialDirectory.open(folder) if folder.exists() else None
    trial = known or TrialDirectory.create(folder, plan)
    result = run_simulated(trial, on_progress=_show)
    print(f"\n{result.planned} episodes, {result.played} of them now in {result.seconds:.0f} s")
    data = summarise_panel(trial.frame(), plan_digest=trial.plan_digest, versions=versions())
    path = Path(panel.__file__).parent / "items.json"
    path.write_text(as_text(data), encoding="utf-8")
    for profile in ("paper", "compat"):
        low, high = spread(data, profile)
        print(f"{profile}: mean performance of the items from {low:.3f} to {high:.3f}")
    print(path)


def _show(done: int, planned: int, _: object) -> None:
    if done % 100 < 8:
        print(f"\r{done} of {planned}", end="", flush=True)


def summarise_panel(
    episodes: pd.DataFrame, *, plan_digest: str, versions: Mapping[str, str]
) -> dict[str, Any]:
    """Condense the episodes of the panel's plan.

    All members play the same seeds, so what an episode of an item measures is the mean of the
    members at one seed, and the interval resamples seeds: it speaks about these members on other
    draws of the item.

    Args:
        episodes: Rows of the trial, columns as in `robo_eval.core.episode`.
        plan_digest: SHA-256 of the locked plan.
        versions: Versions of Python and the packages beneath.

    Raises:
        InputError: If an episode was not scored, a member misses a seed of an item, or the level
            changed between its episodes.
    """
    if episodes["quality"].isna().any():
        raise InputError("panel: an episode has no score; run the plan again")
    items = []
    keys = ["profile", "level", "difficulty"]
    for (profile, level, difficulty), cell in episodes.groupby(keys, sort=False):
        table = cell.pivot_table(index="seed", columns="policy", values="quality")
        if table.isna().to_numpy().any() or table.size != len(cell):
            raise InputError(f"panel: {profile} level {level} {difficulty}: episodes are missing")
        behaviours = cell["behaviour"].fillna("none").unique().tolist()
        if len(behaviours) != 1 or behaviours == ["none"]:
            raise InputError(
                f"panel: {profile} level {level} {difficulty}: episodes were played with the"
                f" behaviours {', '.join(behaviours)}; run the plan again in a new folder"
            )
        interval = mean_interval(table.mean(axis=1).to_numpy())
        mean = interval.value
        assert mean is not None  # a mean of numbers is a number
        low, high = (mean if end is None else end for end in (interval.low, interval.high))
        items.append(
            {
                "profile": profile,
                "level": int(str(level)),
                "difficulty": difficulty,
                "mean_performance": round(mean, _DIGITS),
                "low": round(low, _DIGITS),
                "high": round(high, _DIGITS),
                "n": len(cell),
                "behaviour": behaviours[0],
            }
        )
    items.sort(key=lambda item: (item["profile"], item["level"], _ORDER[item["difficulty"]]))
    return {
        "software": ", ".join(sorted(episodes["software"].unique())),
        "versions": dict(versions),
        "plan_digest": plan_digest,
        "members": _members(episodes),
        "probe": _probe(episodes),
        "items": items,
    }


def _members(episodes: pd.DataFrame) -> list[dict[str, Any]]:
    found = []
    for name, own in episodes.groupby("policy", sort=True):
        digests = own["policy_digest"].unique()
        if len(digests) != 1:
            raise InputError(f"panel: {name} played with {len(digests)} digests")
        mean = round(float(own["quality"].mean()), _DIGITS)
        found.append({"name": name, "digest": digests[0], "mean_performance": mean})
    return found


def _probe(episodes: pd.DataFrame) -> dict[str, Any]:
    """Single results, by which a test sees whether the simulator still gives them."""
    telling = episodes.groupby("policy")["quality"].std().idxmax()
    seed = int(episodes["seed"].min())
    first = episodes[(episodes["policy"] == telling) & (episodes["seed"] == seed)]
    rows = first[["profile", "level", "difficulty", "quality"]].itertuples(index=False)
    results = [[p, int(level), d, round(float(q), _DIGITS)] for p, level, d, q in rows]
    results.sort(key=lambda row: (row[0], row[1], _ORDER[row[2]]))
    return {"policy": telling, "seed": seed, "results": results}


def as_text(data: Mapping[str, Any]) -> str:
    """JSON with one record a line, so that a change shows as the lines it changes."""
    parts = []
    for name, value in data.items():
        if isinstance(value, list):
            rows = ",\n".join("    " + json.dumps(row) for row in value)
            parts.append(f'  "{name}": [\n{rows}\n  ]')
        elif name == "probe":
            head = json.dumps({k: v for k, v in value.items() if k != "results"})[1:-1]
            rows = ",\n".join("      " + json.dumps(row) for row in value["results"])
            parts.append(f'  "probe": {{{head}, "results": [\n{rows}\n  ]}}')
        else:
            parts.append(f'  "{name}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def spread(data: Mapping[str, Any], profile: str) -> tuple[float, float]:
    """Least and largest mean performance of a profile's items."""
    means = [item["mean_performance"] for item in data["items"] if item["profile"] == profile]
    return float(np.min(means)), float(np.max(means))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
