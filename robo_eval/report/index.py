"""Which trials a folder holds, and what each found: the page over many reports."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from robo_eval.analysis.trial import log_problem
from robo_eval.core.errors import RoboEvalError, TrialDirectoryError
from robo_eval.core.wording import NOT_RECORDED
from robo_eval.log.directory import TrialDirectory, is_trial
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.performance import policies
from robo_eval.page.render import environment
from robo_eval.page.words import count
from robo_eval.report.files import write_bundle
from robo_eval.report.model import Badge, EndCounts, LogCheck, Result, badge
from robo_eval.report.outcomes import outcomes

_COUNTS_ONLY: Final = MetricConfig(resamples=100)
"""The index shows exact intervals of counts; bootstraps would only cost time."""

_NO_BADGE: Final = Badge(text="unreadable", tone="open")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """One trial directory as the index lists it.

    Attributes:
        folder: Where it is, relative to the index.
        title: Name of its plan; the folder if that cannot be read.
        started_ns: Start of its first episode, UTC; None without one, or if it is not recorded.
        badge: How it stands.
        results: Each policy's numbers.
        outcomes: How each policy's episodes ended, in the same order.
        href: Link to its report; None without one.
        problem: Why it cannot be read; None if it can.
    """

    folder: str
    title: str
    started_ns: int | None = None
    badge: Badge = _NO_BADGE
    results: Sequence[Result] = ()
    outcomes: Sequence[EndCounts] = ()
    href: str | None = None
    problem: str | None = None

    @property
    def has_episodes(self) -> bool:
        """Whether anything was played."""
        return any(result.numbers.coverage.attempted for result in self.results)

    @property
    def started(self) -> str:
        """Date and time for people."""
        if self.started_ns is None:
            return f"start {NOT_RECORDED}" if self.has_episodes else "not started"
        return f"{datetime.fromtimestamp(self.started_ns / 1e9, tz=UTC):%Y-%m-%d %H:%M} UTC"


def build_index(folder: Path) -> Path:
    """Write index.html of a folder of trial directories, newest trial first.

    Trials are looked for in the folder and in the folders in it. One that cannot be read is
    listed with the reason and stops nothing.

    Args:
        folder: Folder to list.

    Returns:
        Path of index.html.

    Raises:
        TrialDirectoryError: If the folder does not exist or cannot be written.
    """
    if not folder.is_dir():
        raise TrialDirectoryError(f"{folder}: is no folder; name a folder of trial directories")
    entries = [read_entry(path, folder) for path in find_trials(folder)]
    entries.sort(
        key=lambda entry: (entry.problem is not None, -(entry.started_ns or 0), entry.folder)
    )
    page = (
        environment()
        .get_template("index.html.j2")
        .render(
            name=folder.resolve().name or str(folder.resolve()),
            synopsis=_synopsis(entries),
            entries=entries,
            level="95",
        )
    )
    write_bundle(folder, {"index.html": page.encode()})
    return folder / "index.html"


def _synopsis(entries: Sequence[IndexEntry]) -> str:
    """How many trials there are, and how many of them need a look."""
    readable = [entry for entry in entries if entry.problem is None]
    parts = {
        "not verified": sum(entry.badge.tone == "bad" for entry in readable),
        "incomplete or with episodes without a score": sum(
            entry.badge.tone == "open" for entry in readable
        ),
        "unreadable": len(entries) - len(readable),
    }
    found = [f"{n} {what}" for what, n in parts.items() if n]
    return "; ".join([count(len(entries), "trial"), *found])


def find_trials(folder: Path) -> list[Path]:
    """Trial directories one or two folders down, in order of their names."""
    found = []
    for child in sorted(path for path in folder.iterdir() if _is_visible_folder(path)):
        if is_trial(child):
            found.append(child)
        else:
            found += sorted(
                path for path in _children(child) if _is_visible_folder(path) and is_trial(path)
            )
    return found


def _is_visible_folder(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".")


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as err:
        _log.warning("%s is left out: %s", folder, err.strerror or err)
        return []


def read_entry(path: Path, folder: Path) -> IndexEntry:
    """What the index says of one trial directory; its problem if it cannot be read."""
    relative = path.relative_to(folder).as_posix()
    try:
        trial = TrialDirectory.open(path)
        frame = trial.frame()
        numbers = policies(frame, trial.plan, _COUNTS_ONLY)
        sides = {row.side for row in numbers}
        results = [
            Result(
                policy=f"{row.policy} ({row.side})" if len(sides) > 1 else row.policy, numbers=row
            )
            for row in numbers
        ]
        starts = frame["start_ns"].dropna()
        problem = log_problem(trial)
        log = LogCheck(rows=len(frame), problems=() if problem is None else (problem,))
        return IndexEntry(
            folder=relative,
            title=trial.plan.name,
            started_ns=int(starts.min()) if len(starts) else None,
            badge=badge(trial.status(), _lost(results), log),
            results=results,
            outcomes=outcomes(results, frame),
            href=_report_of(path, relative),
        )
    except (RoboEvalError, OSError) as err:
        return IndexEntry(folder=relative, title=path.name, problem=_one_line(err, path))


def _lost(results: Sequence[Result]) -> int:
    """Episodes of all policies that have no score."""
    return sum(
        result.numbers.coverage.expected - result.numbers.coverage.scored for result in results
    )


def _report_of(path: Path, relative: str) -> str | None:
    page = path / "report" / "index.html"
    return f"{quote(relative)}/report/index.html" if page.is_file() else None


def _one_line(err: Exception, path: Path) -> str:
    # Shown under the folder's own name, so that the page says nothing of the machine's paths.
    return " ".join(str(err).replace(f"{path}/", "").replace(f"{path}: ", "").split())
