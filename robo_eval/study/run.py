"""A study from its suite to what it found: resumable, and done by as many workers as there are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from robo_eval.core.errors import InputError
from robo_eval.core.plain import plain
from robo_eval.core.spread import done
from robo_eval.log.files import explained, write_atomically
from robo_eval.log.lock import RunLock
from robo_eval.log.provenance import software, versions
from robo_eval.study import results, work
from robo_eval.study.entries import Test, tests_of
from robo_eval.study.outcome import Outcome, measured_of, outcome_of
from robo_eval.study.results import Results
from robo_eval.study.suite import Suite, read_suite
from robo_eval.study.work import StudyJob, do

SUITE_NAME: Final = "suite.yaml"
OUTCOME_NAME: Final = "study.json"


@dataclass(frozen=True, slots=True)
class Cost:
    """What is still to be done.

    Attributes:
        pieces: Pieces of work that are left.
        known: Pieces whose results are there already.
        core_s: How long one processor would take, seconds.
    """

    pieces: int
    known: int
    core_s: float


class Study:
    """A suite in the folder it is run in.

    Args:
        suite: What is measured.
        folder: Where results are kept; made when the first one is.

    Raises:
        InputError: If a test of the suite cannot be built.
    """

    def __init__(self, suite: Suite, folder: Path) -> None:
        self.suite: Final = suite
        self.folder: Final = folder
        self.tests: list[Test] = tests_of(suite)

    @classmethod
    def of(cls, path: Path, folder: Path) -> Study:
        """The suite of a file, in the folder it is run in.

        Raises:
            PlanError: If the file is no suite.
            InputError: If a test of the suite cannot be built; the message names the file.
        """
        suite = read_suite(path)
        try:
            return cls(suite, folder)
        except InputError as err:
            raise type(err)(f"{path}: {err}") from err

    @classmethod
    def open(cls, folder: Path) -> Study:
        """The study that was run in a folder.

        Raises:
            InputError: If there is none.
        """
        if not (folder / SUITE_NAME).is_file():
            raise InputError(
                f"{folder}: no study; `robo-eval aiq run SUITE.yaml --out {folder}` makes one"
            )
        return cls.of(folder / SUITE_NAME, folder)

    def prepare(
        self,
        *,
        workers: int = 1,
        ray: str | None = None,
        progress: Callable[[float, float, str], None] | None = None,
    ) -> Cost:
        """Find the expert of each test, and say what the rest costs.

        Args:
            workers: Processes on this machine.
            ray: Address of a Ray cluster instead; see `robo_eval.core.spread`.
            progress: Told of work that is done and of all there is, seconds of one processor,
                and of the newest piece.

        Raises:
            InputError: If the folder cannot be used.
        """
        with explained(self.folder, "cannot be the folder of a study"):
            self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / SUITE_NAME).exists():
            # Who only asks for the cost must not make another study's folder this one's.
            self._write_suite()
        jobs = self._first_jobs()
        found = self._done(jobs, workers=workers, ray=ray, progress=progress)
        self._choose_experts(found[job.digest] for job in jobs)
        rest = self._jobs()
        with Results(self.folder / results.NAME) as kept:
            left = [job for job in rest if kept.get(job.digest) is None]
        known = len(rest) - len(left)
        costs = work.Costs(found.values())
        return Cost(len(left), known, sum(costs.of(job) for job in left))

    def run(
        self,
        *,
        workers: int = 1,
        ray: str | None = None,
        progress: Callable[[float, float, str], None] | None = None,
    ) -> Outcome:
        """Do what is left, and say what was found; see `prepare`.

        Results are kept one by one. A study that is run again does only what is not there yet, or
        what has changed since.
        """
        self.prepare(workers=workers, ray=ray, progress=progress)
        self._write_suite()
        jobs = [*self._first_jobs(), *self._jobs()]
        found = self._done(jobs, workers=workers, ray=ray, progress=progress)
        outcome = outcome_of(self.suite, measured_of(self.suite, self.tests, found, jobs))
        text = json.dumps(as_json(outcome), indent=1, allow_nan=False)
        write_atomically(self.folder / OUTCOME_NAME, f"{text}\n".encode())
        return outcome

    def known(self) -> Outcome:
        """What was found, from the results that are kept; nothing is done anew.

        Raises:
            InputError: If a piece of work is missing.
        """
        jobs = self._first_jobs()
        found = self._kept(jobs)
        if None not in found.values():
            self._choose_experts(found[job.digest] for job in jobs)
            jobs = [*jobs, *self._jobs()]
            found = self._kept(jobs)
        missing = sum(value is None for value in found.values())
        if missing:
            raise InputError(
                f"{self.folder}: {missing} pieces of work of the study are missing;"
                f" `robo-eval aiq run {self.folder / SUITE_NAME} --out {self.folder}` goes on"
            )
        return outcome_of(self.suite, measured_of(self.suite, self.tests, found, jobs))

    def _write_suite(self) -> None:
        write_atomically(self.folder / SUITE_NAME, _text(self.suite).encode())

    def _choose_experts(self, found: Iterable[dict[str, Any]]) -> None:
        self.tests = [
            test.with_expert(one["best"]) for test, one in zip(self.tests, found, strict=True)
        ]

    def _kept(self, jobs: Sequence[StudyJob]) -> dict[str, Any]:
        with Results(self.folder / results.NAME) as kept:
            return {job.digest: kept.get(job.digest) for job in jobs}

    def _jobs(self) -> list[StudyJob]:
        return list(work.main_jobs(self.suite, self.tests))

    def _done(
        self,
        jobs: Sequence[StudyJob],
        *,
        workers: int,
        ray: str | None,
        progress: Callable[[float, float, str], None] | None,
    ) -> dict[str, Any]:
        """The results of some pieces of work, by digest; what is not there yet is done."""
        with Results(self.folder / results.NAME) as kept:
            found = {job.digest: kept.get(job.digest) for job in jobs}
            left = [job for job in jobs if found[job.digest] is None]
            if not left:
                return found
            costs = work.Costs(kept.get(job.digest) for job in self._first_jobs())
            weights = {job.digest: costs.of(job) for job in left}
            total, so_far = sum(weights.values()), 0.0
            # Two at once would do the same work twice.
            with RunLock(self.folder):
                for job, value in done(left, do, workers=workers, ray=ray):
                    kept.put(job.digest, job.label, value)
                    found[job.digest] = value
                    so_far += weights[job.digest]
                    if progress is not None:
                        progress(so_far, total, job.label)
        return found

    def _first_jobs(self) -> list[StudyJob]:
        return work.first_jobs(self.suite, [test.with_expert(None) for test in self.tests])


def as_json(outcome: Outcome) -> dict[str, Any]:
    """What was found as plain data, with the software it was found by."""
    document = {**outcome.as_dict(), "software": software(), "versions": versions()}
    found: dict[str, Any] = plain(document)
    return found


def _text(suite: Suite) -> str:
    data = suite.model_dump(mode="json")
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
