"""Play the reference panel's plan and write the difficulty of the items anew.

Run: .venv/bin/python benchmarks/make_panel.py runs/panel

The folder holds the trial; called again, an interrupted run goes on. About 8 minutes on two
cores. A change of the simulator that changes results asks for it; the new items.json is a commit
of its own, with the reason.
"""

from __future__ import annotations

import sys
from pathlib import Path

from robo_eval.analysis import panel
from robo_eval.analysis.panel.build import as_text, spread, summarise_panel
from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.provenance import versions
from robo_eval_sim.runner import run_simulated


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


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
