"""Results that lerobot-eval and Stable-Baselines3 write, brought into a trial directory of ours."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from pydantic import Field

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.core.wording import counted
from robo_eval.log.bag_value import cell_of
from robo_eval.log.column_map import ImportMap, OurColumn, Source, Whole
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.files import explained
from robo_eval.log.import_row import RowMaker
from robo_eval.log.import_score import ImportedRow
from robo_eval.log.import_trial import check_new, plan_of_import, write_trial

_USUAL: Final = {
    "success": "success",
    "sum_reward": "episode_return",
    "result": "episode_return",
    "ep_length": "ticks",
    "seed": "seed",
    "task": "task",
    "task_group": "family",
}
"""Which of our columns one of theirs is, where the map does not say otherwise."""
_LISTS: Final = {"sum_rewards": "sum_reward", "max_rewards": "max_reward", "successes": "success"}
"""Lists of the layout with several tasks, and what an entry of each is called."""
_ARRAYS: Final = {"results": "result", "ep_lengths": "ep_length", "successes": "success"}
"""The same of evaluations.npz."""
# What NumPy and the readers of ZIP files raise for a damaged one, or one with a password.
_BROKEN: Final = (
    KeyError, ValueError, TypeError, SyntaxError, EOFError, OSError, MemoryError, RuntimeError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_CHECKPOINTS: Final = ("last", "best", "all")
Played = tuple[str, str, int, dict[str, Any]]
"""Of an episode: its place in the file, its id, its number from 0, and what is said, by column."""


class EvalInfoMap(ImportMap):
    """The map of results of an evaluation."""

    WHAT: ClassVar = ("column map", "docs/lerobot.md")
    NEEDS: ClassVar = ("policy", "side")
    TELLS_OUTCOMES: ClassVar = False

    columns: dict[OurColumn, Source] = Field(default_factory=dict)
    """Source of each of our columns that is not taken from the usual one."""
    start_seed: Whole | None = None
    """Seed of the first episode of each task, where the file does not say the seeds."""
    checkpoint: str = "last"
    """Which evaluation of a training counts: `last`, `best`, `all`, or its number of steps."""


def import_eval_info(
    path: Path | str | os.PathLike[str],
    column_map: Path | str | os.PathLike[str],
    out: Path | str | os.PathLike[str],
    *,
    warn: Callable[[str], None] | None = None,
) -> TrialDirectory:
    """Read the episodes of an evaluation by a column map into a new trial directory.

    Args:
        path: `eval_info.json` of lerobot-eval, of one task or of several, or `evaluations.npz` of
            Stable-Baselines3.
        column_map: YAML file: policy, side, and where our columns come from. See docs/lerobot.md.
        out: Trial directory to create.
        warn: Called with what somebody should know who looks at the rows only.

    Raises:
        InputError: If map or file are not usable; the message names file, place and remedy.
        TrialDirectoryError: If the directory exists or cannot be written.
    """
    source, folder = Path(path), Path(out)
    check_new(folder)
    with explained(source, "cannot be read"):
        data = door.bytes_of(source)
    notes: list[str] = []
    is_npz = zipfile.is_zipfile(io.BytesIO(data))
    played = [] if is_npz else list(_evaluated(source, data))
    mapping = EvalInfoMap.read(Path(column_map))
    found = _trained(source, data, mapping, notes) if is_npz else played
    maker = RowMaker(mapping, sha256=hashlib.sha256(data).hexdigest())
    said = maker.beside.union(*mapping.says().values())
    usual = [(ours, Source(column=one)) for one, ours in _USUAL.items() if ours not in said]
    rows = [_row(source, mapping, maker, usual, played) for played in found]
    if not rows:
        raise InputError(f"{source}: holds no episodes")
    if all(row.values.get("seed") is None for row in rows):
        notes.append(
            f"{source}: says no seeds, so its episodes make no pairs with others; set start_seed in"
            " the map if you know the first one"
        )
    notes += maker.notes(source, rows)
    plan = plan_of_import(source, maker, rows)
    return write_trial(folder, plan, rows, notes=notes, warn=warn)


def _row(
    source: Path,
    mapping: EvalInfoMap,
    maker: RowMaker,
    usual: Sequence[tuple[str, Source]],
    played: Played,
) -> ImportedRow:
    place, name, number, cells = played
    where, seed = f"{source}: {place}", cells.get("seed")
    if mapping.start_seed is not None:
        cells["seed"] = mapping.start_seed + number
        # A seed that is no number is none.
        if seed is not None and seed == seed and seed != cells["seed"]:
            raise InputError(
                f"{where}: its seed is {seed!r:.40}, and start_seed of the map makes it"
                f" {cells['seed']}; leave start_seed out"
            )
    own = {ours: source for ours, source in usual if cells.get(source.column) is not None}

    def text_of(_ours: str, source: Source) -> str:
        column = source.column
        if column not in cells:
            raise InputError(f"{where}: {unknown_name('column', column, cells)}")
        return cell_of(f"{where}, column {column!r}", cells[column], source.values)

    row = ImportedRow(where, {"episode_id": name})
    maker.add_columns(row, own | mapping.columns, text_of)
    return maker.finish(row, names=[str(number)])


def _evaluated(source: Path, data: bytes) -> Iterator[Played]:
    """The episodes of an `eval_info.json`."""
    try:
        info = door.json_of(data)
    except ValueError as err:
        raise InputError(
            f"{source}: is neither JSON nor evaluations.npz ({err}); robo-eval import csv reads"
            " tables, import lerobot folders of datasets and import bag recordings"
        ) from err
    info = info if isinstance(info, Mapping) else {}
    has_tasks = isinstance(info.get("per_task"), list) and info["per_task"]
    if isinstance(info.get("per_episode"), list) and (info["per_episode"] or not has_tasks):
        for place, entry in enumerate(info["per_episode"]):
            number = entry.get("episode_ix", place) if isinstance(entry, Mapping) else None
            if type(number) is not int:
                raise InputError(f"{source}: per_episode[{place}]: its episode_ix is no number")
            yield f"per_episode[{place}]", f"episode_{number:06d}", number, dict(entry)
    elif isinstance(info.get("per_task"), list):
        for place, entry in enumerate(info["per_task"]):
            yield from _of_task(source, f"per_task[{place}]", entry)
    else:
        raise InputError(f"{source}: holds neither per_episode nor per_task of lerobot-eval")


def _of_task(source: Path, where: str, entry: Any) -> Iterator[Played]:
    """The episodes of one of several tasks, which are told apart by their order only."""
    entry = entry if isinstance(entry, Mapping) else {}
    metrics, group = entry.get("metrics"), entry.get("task_group")
    metrics = metrics if isinstance(metrics, Mapping) else {}
    lists = {one: metrics[key] for key, one in _LISTS.items() if key in metrics}
    sizes = {len(cells) if isinstance(cells, list) else -1 for cells in lists.values()}
    if len(sizes) != 1 or -1 in sizes:
        raise InputError(
            f"{source}: {where}: needs {', '.join(_LISTS)} as lists of one length, an entry"
            " for each episode"
        )
    task = f"{group}_{entry.get('task_id')}"
    for number, cells in enumerate(zip(*lists.values(), strict=True)):
        told = {"task": task, "task_group": group, **dict(zip(lists, cells, strict=True))}
        yield f"{where}, episode {number}", f"{task}_episode_{number:06d}", number, told


def _trained(source: Path, data: bytes, mapping: EvalInfoMap, notes: list[str]) -> Iterator[Played]:
    """The episodes of the evaluations during a training, of Stable-Baselines3, that count."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            steps, shape = file["timesteps"], file["results"].shape
            arrays = {one: file[key] for key, one in _ARRAYS.items() if key in file.files}
        is_even = all(array.shape == shape for array in arrays.values())
        if not is_even or steps.shape != shape[:1] or len(shape) != 2 or not all(shape):
            raise ValueError("its arrays differ in size, or are empty")
    except _BROKEN as err:
        what = "is no evaluations.npz with timesteps, results and ep_lengths as plain arrays"
        raise InputError(f"{source}: {what} ({' '.join(str(err).split())!s:.100})") from err
    wanted, places = mapping.checkpoint, list(range(len(steps)))
    if wanted not in _CHECKPOINTS:
        places = [place for place in places if str(steps[place]) == wanted]
        if not places:
            raise unknown_name("checkpoint of the map", wanted, [*_CHECKPOINTS, *steps.tolist()])
    elif wanted != "all":
        means = np.nan_to_num(arrays["result"].mean(axis=1), nan=-np.inf)
        places = [int(np.argmax(means)) if wanted == "best" else len(steps) - 1]
        chosen = (
            "; chosen by these episodes, it looks better than it is" if wanted == "best" else ""
        )
        notes.append(
            f"{source}: {wanted} of {counted(len(steps), 'evaluation')} taken, at step"
            f" {steps[places[0]]}{chosen}; checkpoint in the map takes another"
        )
    elif mapping.columns.get("policy") is None:
        raise InputError(
            f"{mapping.path}: checkpoint: all takes each evaluation for a policy of its own; write"
            " policy: timesteps under columns instead of one name"
        )
    for place in places:
        for number in range(shape[1]):
            cells = {name: array[place, number] for name, array in arrays.items()}
            where = f"evaluation at step {steps[place]}, episode {number}"
            name = f"step_{steps[place]}_episode_{number:06d}"
            yield where, name, number, {"timesteps": steps[place], **cells}
