"""`robo-eval import`: episodes another lab logged, in its own columns, topics or layout."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import JsonOption, next_steps, print_json, quoted, say
from robo_eval.core.errors import InputError
from robo_eval.core.wording import counted
from robo_eval.log.directory import TrialDirectory

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.log.bag_importer import BagImport

app = typer.Typer(no_args_is_help=True)


_MAP = typer.Option("--map", "-m", help="Column map (YAML): our column from theirs.")
_OUT = typer.Option("--out", "-o", help="Trial directory to create.")
ColumnsOption = Annotated[Path, _MAP]
OutOption = Annotated[Path, _OUT]


def _note(text: str) -> None:
    typer.echo(f"robo-eval: {text}", err=True)


@app.command("csv")
def csv(
    table: Annotated[Path, typer.Argument(metavar="FILE", help="CSV file with a header line.")],
    *,
    columns: Annotated[Path | None, _MAP] = None,
    out: Annotated[Path | None, _OUT] = None,
    suggest: Annotated[
        Path | None,
        typer.Option("--suggest", help="Import nothing; write a starter map into this file."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Read episodes from a CSV file by a column map into a new trial directory.

    Example: robo-eval import csv lab.csv --map lab-map.yaml --out runs/lab
    """
    from robo_eval.log.importer import import_csv

    if suggest is not None:
        if columns is not None or out is not None:
            raise InputError("--suggest: imports nothing; leave --map and --out out")
        _suggest(table, suggest, json=json)
        return
    if columns is None or out is None:
        raise InputError("give --map and --out; --suggest MAP.yaml writes a map to start from")
    _say_rows(import_csv(table, columns, out, warn=_note), out, json=json)


@app.command("lerobot")
def lerobot(
    dataset: Annotated[
        Path, typer.Argument(metavar="DIR", help="Dataset of version 2.0, 2.1 or 3.0.")
    ],
    *,
    columns: ColumnsOption,
    out: OutOption,
    episodes: Annotated[str, typer.Option(help="Which to read, such as 0-49,60.")] = "",
    json: JsonOption = False,
) -> None:
    """Read episodes from a LeRobot dataset by a column map into a new trial directory.

    Example: robo-eval import lerobot push/ --map push-map.yaml --out runs/push
    """
    from robo_eval.log.lerobot_importer import import_lerobot

    trial = import_lerobot(dataset, columns, out, episodes=episodes, warn=_note)
    _say_rows(trial, out, json=json)


@app.command("eval-info")
def eval_info(
    results: Annotated[
        Path, typer.Argument(metavar="FILE", help="eval_info.json or evaluations.npz.")
    ],
    *,
    columns: ColumnsOption,
    out: OutOption,
    json: JsonOption = False,
) -> None:
    """Read results of lerobot-eval or Stable-Baselines3 by a column map into a new trial directory.

    Example: robo-eval import eval-info eval_info.json --map map.yaml --out runs/eval
    """
    from robo_eval.log.eval_info import import_eval_info

    _say_rows(import_eval_info(results, columns, out, warn=_note), out, json=json)


def _say_rows(trial: TrialDirectory, out: Path, *, json: bool) -> None:
    rows = trial.frame()
    if json:
        print_json({"trial": str(trial.path), "rows": len(rows)})
        return
    say(f"{counted(len(rows), 'episode')} imported into {trial.path}")
    is_real, is_timed = rows["side"] == "real", rows["duration_s"].notna()
    if unexposed := int((is_real & is_timed & rows["exposure_s"].isna()).sum()):
        episodes = counted(unexposed, "real episode")
        say(
            f"{episodes} with a duration and without exposure_s: hours of exposure are not"
            " known until the map says where exposure_s comes from"
        )
    _say_next(rows, out)


def _say_next(rows: pd.DataFrame, out: Path) -> None:
    verbs = ["metrics", "compare", "report"]
    if len(set(rows["policy"])) == 1:
        verbs.remove("compare")
    next_steps(*(f"robo-eval {verb} {quoted(out)}" for verb in verbs))


def _suggest(table: Path, path: Path, *, json: bool) -> None:
    from robo_eval.log.import_suggest import suggest_map

    problem = suggest_map(table, path)
    if json:
        print_json({"map": str(path), "problem": problem})
        return
    say(f"{path}: a map to start from; read it, and answer its questions")
    if problem is not None:
        say(f"It cannot import the table yet: {problem}")
    next_steps(f"robo-eval import csv {quoted(table)} --map {quoted(path)} --out DIR")


@app.command("bag")
def bag(
    bags: Annotated[
        list[Path],
        typer.Argument(
            metavar="BAGS...",
            help="Bag folders, .mcap files, or folders of these.",
            show_default=False,
        ),
    ],
    *,
    topics: Annotated[
        Path, typer.Option("--map", "-m", help="Topic map (YAML): what their topics mean.")
    ],
    out: OutOption,
    json: JsonOption = False,
) -> None:
    """Read episodes from rosbag2 bags by a topic map into a new trial directory.

    Example: robo-eval import bag bags/ --map topics.yaml --out runs/lab
    """
    from robo_eval.log.bag_importer import import_bags
    from robo_eval.metrics.bag_measures import measure

    done = import_bags(bags, topics, out, measure=measure)
    if json:
        print_json(
            {
                "trial": str(done.trial.path),
                "rows": done.episodes,
                "bags": done.bags,
                "recovered": list(done.recovered),
                "lost": dict(done.lost),
                "left_out": [asdict(item) for item in done.left_out],
                "outside": dict(done.outside),
                "remarks": [asdict(item) for item in done.remarks],
            }
        )
        return
    _say_bags(done)
    _say_next(done.trial.frame(), out)


def _say_bags(done: BagImport) -> None:
    rows, bags = counted(done.episodes, "episode"), counted(done.bags, "bag")
    say(f"{rows} of {bags} imported into {done.trial.path}")
    for name, lost in done.lost.items():
        say(f"  {name}: its bag was cut short; {lost}")
    by_reason: dict[tuple[str, str], list[str]] = {}
    for item in done.left_out:
        by_reason.setdefault((item.measure, item.reason), []).append(item.episode_id)
    for (measure, reason), names in by_reason.items():
        say(f"  {measure} is left out of {_which(names)}: {reason}")
    by_remark: dict[str, list[str]] = {}
    for remark in done.remarks:
        names = by_remark.setdefault(remark.what, [])
        if remark.episode_id is not None:
            names.append(remark.episode_id)
    for what, names in by_remark.items():
        say(f"  {_which(names)}: {what}" if names else f"  {what}")
    for topic, count in done.outside.items():
        say(f"  {topic}: {counted(count, 'message')} in no episode")


def _which(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} episodes, such as {names[0]}"
