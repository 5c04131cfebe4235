"""`robo-eval demo`: the main job on real input, from nothing to a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, say
from robo_eval.cli.run import JobsOption


def demo(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the trials.")] = Path(
        "runs/demo"
    ),
    jobs: JobsOption = None,
    json: JsonOption = False,
) -> None:
    """Play 17 novelty levels in three difficulties with four agents, and write the report.

    A demo that was interrupted goes on; one that is complete only gets its report again.

    Example: robo-eval demo --out runs/demo
    """
    from importlib.resources import files

    from robo_eval.cli.run import play, start
    from robo_eval.core.plan import parse_plan
    from robo_eval.log.directory import TrialDirectory

    text = files("robo_eval.cli").joinpath("demo_plan.yaml").read_text(encoding="utf-8")
    plan = parse_plan(text, source="demo plan")
    trial_path = out / "sim"
    if (trial_path / "plan.yaml").exists():
        trial = TrialDirectory.open(trial_path)
        if not json:
            say(f"{trial.path}: {trial.status()}; going on from there")
        play(trial, jobs=jobs, with_report=True, json=json)
    else:
        start(plan, trial_path, jobs=jobs, with_report=True, json=json)
