"""How `robo-eval calibrate loop` fits, plays and tells what it found."""

from __future__ import annotations

import json as form
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from robo_eval.cli.output import interval, number, percent, print_json, print_table, say
from robo_eval.cli.run import PlayOptions, play
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.plain import plain
from robo_eval.core.task import TaskSpec
from robo_eval.log.directory import PLAN, TrialDirectory, is_trial
from robo_eval.log.files import write_atomically
from robo_eval.log.store import EpisodeStore

if TYPE_CHECKING:
    from robo_eval.core.plan import TrialPlan
    from robo_eval.metrics.summary import TrialSummary
    from robo_eval_calibration.loop import Chosen

RESULT: Final = "loop.json"


def sizes_of(text: str) -> tuple[int, ...]:
    """Numbers of recordings, from `1,2,4,8`.

    Raises:
        InputError: If they are none.
    """
    parts = text.split(",")
    if not all(re.fullmatch(r"\s*0*[1-9]\d{0,5}\s*", part) for part in parts):
        raise InputError(f"--recordings: numbers such as 1,2,4,8 are needed, given {text!r:.80}")
    numbers = [int(part) for part in parts]
    for twice in {one for one in numbers if numbers.count(one) > 1}:
        raise InputError(f"--recordings: {twice} is there twice; name each number once")
    return tuple(numbers)


def asked_ranges(texts: Sequence[str], task: TaskSpec) -> dict[str, tuple[float, float]]:
    """What is drawn of constants, from `NAME=LOW,HIGH`.

    Raises:
        InputError: If one is none of the task, or its ends are none.
    """
    found = {}
    for text in texts:
        name, _, ends = text.partition("=")
        try:
            low, high = (float(end) for end in ends.split(","))
        except ValueError as err:
            raise InputError(f"--randomised: {text!r:.80} is no NAME=LOW,HIGH") from err
        try:
            task.checked({name: low})
            task.checked({name: high})
        except InputError as err:
            raise InputError(f"--randomised: {err}") from err
        if not low < high:
            raise InputError(f"--randomised: {name}: {low:g} must be below {high:g}")
        found[name] = low, high
    return found


def opened_loop(
    trial: TrialDirectory,
    plan: TrialPlan,
    told: Chosen,
    out: Path,
    given: Mapping[str, float],
    how: PlayOptions,
) -> TrialDirectory:
    """The trial in which simulated episodes are played: begun now, or found as it was left.

    Raises:
        InputError: If there is another one.
        TrialDirectoryError: If there is something else.
    """
    from robo_eval.cli.calibrate import fitted_snapshot
    from robo_eval.cli.calibrations import snapshot_texts, with_snapshots
    from robo_eval.log.provenance import cores
    from robo_eval.log.snapshot import write_snapshot
    from robo_eval_calibration.loop import physical_rows

    if not is_trial(out):
        TrialDirectory.check_new(out)
        with tempfile.TemporaryDirectory() as folder:
            for size in told.sizes:
                snapshot = fitted_snapshot(
                    trial, told.fitted[:size], told.others, given,
                    name=f"fitted-{size}", workers=how.jobs or cores(), ray=how.ray, quiet=how.json,
                )  # fmt: skip
                write_snapshot(snapshot, Path(folder) / f"{size}.yaml")
            # That nobody accepted them needs no saying: the loop says what they are worth.
            locked = with_snapshots(plan, Path(folder) / PLAN, warn=lambda _: None)
        TrialDirectory.create(out, locked, files=snapshot_texts(locked))
    made = TrialDirectory.open(out)
    if made.plan.description != plan.description:
        raise InputError(f"{out}: holds another loop, or another trial; name another folder")
    with made.lock(), EpisodeStore(out, durable=True) as store:
        there, rows = store.ids(), physical_rows(told, made.plan, made.plan_digest)
        store.append([row for row in rows if row.episode_id not in there])
    return made


def play_loop(made: TrialDirectory, told: Chosen, how: PlayOptions) -> None:
    """Play what is missing, and tell what it came to."""
    from robo_eval.metrics.agreement import NAMES
    from robo_eval.report.loop import settings_of

    def tell(trial: TrialDirectory, summary: TrialSummary) -> None:
        body = next(one for one in summary.bodies if one.side == told.side)
        settings, name = settings_of(body, trial.plan), NAMES[told.side]
        found = {
            "trial": str(trial.path),
            "agreement": name,
            "is_stand_in": told.is_stand_in,
            "success": plain(body.reliability),
            "settings": plain(settings),
        }
        text = form.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(trial.path / RESULT, text.encode() + b"\n")
        if how.json:
            print_json(found)
            return
        robot = "the stand-in, which is simulated," if told.is_stand_in else f"the {told.side}"
        apart = f"there less simulated [{percent(body.level)}]"
        print_table(
            f"{trial.plan.name}: {robot} succeeds in {interval(body.reliability)}",
            ["simulation", "recordings", "success", apart, name],
            [
                [one.played, one.recordings, "-" if one.success is None else number(one.success),
                 interval(one.difference), interval(one.agreement)]
                for one in settings
            ],
            right=(1, 2),
        )  # fmt: skip
        _say_nominal(trial)

    play(made, how, sides=(Side.SIM,), tell=tell)


def _say_nominal(trial: TrialDirectory) -> None:
    """Of which snapshots no constant is played, and why."""
    from robo_eval.log.snapshot import read_snapshot

    for path in trial.calibration_files:
        found = read_snapshot(path)
        looked_for = [one for one in found.constants.values() if one.verdict != "given"]
        if all(one.kept is not None for one in looked_for):
            why = "; ".join(found.residuals.reasons) or "none could be told"
            say(f"{path.stem}: constants are nominal: {why}")
