"""Options of verbs that compute metrics: their settings, and files of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.junit import JunitOption
from robo_eval.cli.output import JsonOption
from robo_eval.metrics.config import MetricConfig

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", help="YAML file of metric settings to use instead of those of the plan."
    ),
]
MetricsOption = Annotated[
    list[Path] | None,
    typer.Option("--metrics", metavar="FILE", help="Python file with metrics of your own."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """By what a trial is scored, as the verbs ask for it.

    Attributes:
        config: File of settings.
        files: Files of metrics.
        incidents: Incident log, or a table of incidents.
        faults: File of faults.
        repairs: File of repairs.
        ratings: File of second ratings.
        junit: File for the checks.
        json: Whether to answer as JSON.
    """

    config: ConfigOption = None
    files: MetricsOption = None
    incidents: Annotated[
        Path | None,
        typer.Option("--incidents", help="Incident log or CSV of incidents, if not that of DIR."),
    ] = None
    faults: Annotated[
        Path | None, typer.Option("--faults", help="CSV of faults, if not DIR/faults.csv.")
    ] = None
    repairs: Annotated[
        Path | None, typer.Option("--repairs", help="CSV of repairs, if not DIR/repairs.csv.")
    ] = None
    ratings: Annotated[
        Path | None,
        typer.Option("--ratings", help="CSV of second ratings, if not DIR/ratings.csv."),
    ] = None
    junit: JunitOption = None
    json: JsonOption = False

    @property
    def evidence(self) -> dict[str, Path]:
        """The files of evidence that were named, by kind."""
        named = {
            kind: getattr(self, kind) for kind in ("incidents", "faults", "repairs", "ratings")
        }
        return {kind: path for kind, path in named.items() if path is not None}


def settings_of(config: Path | None, files: Sequence[Path] | None = None) -> MetricConfig | None:
    """The settings in a file; None without one, which stands for those of the plan.

    Args:
        config: The file.
        files: Files of metrics, which are registered; those that the settings name are as well.

    Raises:
        PlanError: If the file cannot be used; the message names file and field.
        InputError: If a file of metrics cannot be used.
    """
    if config is None and not files:
        return None
    from robo_eval.core.plan import read_metric_settings
    from robo_eval.metrics.registry import load_files

    load_files(files or ())
    if config is None:
        return None
    plan = read_metric_settings(config)
    load_files([config.parent / name for name in plan.modules])
    return MetricConfig.of(plan)
