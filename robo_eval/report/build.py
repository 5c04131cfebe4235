"""How a trial directory becomes a report bundle."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from robo_eval.analysis.trial import analyse_trial, scored_frame
from robo_eval.core.canonical import canonical_json
from robo_eval.core.episode import COLUMNS
from robo_eval.core.errors import DISTRIBUTION, InputError
from robo_eval.core.installed import versions_of
from robo_eval.core.kinds import Arm
from robo_eval.core.plain import plain
from robo_eval.log.directory import PLAN, TrialDirectory
from robo_eval.log.evidence_read import read_evidence
from robo_eval.metrics.summary import TrialSummary
from robo_eval.page.embed import packed
from robo_eval.report.content import make_report
from robo_eval.report.files import fingerprint, json_bytes, write_bundle
from robo_eval.report.model import Report, TrialData
from robo_eval.report.page import Download, render

if TYPE_CHECKING:
    from robo_eval.gates.trial import TrialFindings
    from robo_eval.metrics.config import MetricConfig

MAX_BYTES: Final = 6_000_000
"""Largest index.html; data that would not fit lie next to it instead of inside."""
MANIFEST_VERSION: Final = 1
_PACKAGES: Final = (DISTRIBUTION, "numpy", "scipy", "pandas", "plotly", "jinja2")

_log = logging.getLogger(__name__)


def build_report(
    trial: TrialDirectory,
    *,
    config: MetricConfig | None = None,
    summary: TrialSummary | None = None,
    frame: pd.DataFrame | None = None,
    evidence: Mapping[str, Path] | None = None,
    profile: str | Path = "robotics",
) -> Path:
    """Write report/index.html, metrics.json, episodes.csv and manifest.json of a trial.

    For a trial with a robot or its twin there is assessment.json, too. Everything is computed from
    the log; the log is not touched. Files appear complete or not at all. The page says whether the
    rows of the log are those that were logged.

    Args:
        trial: The trial directory.
        config: Settings of the intervals.
        summary: What `analyse_trial` found of the same log just now, so that it is not computed
            a second time; not together with `config`.
        frame: What `scored_frame(trial)` returned, so that the log is not read a second time.
        evidence: Files of incidents, faults, repairs and ratings to read instead of those in the
            trial directory, by kind; with `summary`, the files that it was made with.
        profile: Which autonomy levels are told, by name or file.

    Returns:
        Path of index.html.

    Raises:
        InputError: If the log cannot be scored, or the summary is not of this log.
        TrialDirectoryError: If the log cannot be read or the report not be written.
    """
    data = read_trial(trial, frame)
    if summary is None:
        summary = analyse_trial(trial, config=config, frame=data.frame, evidence=evidence)
    else:
        _check_summary(summary, config, data)
    findings = _findings(trial, data, summary, evidence, profile)
    report = make_report(data, summary, findings)
    files = {
        "metrics.json": json_bytes(summary.as_dict()),
        "episodes.csv": csv_bytes(data.frame),
    }
    if report.autonomy is not None and findings is not None:
        files["assessment.json"] = json_bytes(findings.as_dict())
    files["index.html"] = page_bytes(report, files)
    files["manifest.json"] = json_bytes(_manifest(data, summary, report, files))
    write_bundle(trial.report_dir, files)
    return trial.report_dir / "index.html"


def _check_summary(summary: TrialSummary, config: MetricConfig | None, data: TrialData) -> None:
    """Refuse a summary that cannot be of this log: numbers and episodes must not disagree."""
    if config is not None and config != summary.config:
        raise InputError("build_report: config differs from the one the summary was made with")
    main = data.frame[data.frame["arm"] == Arm.MAIN.value]
    scored = int(main["quality"].notna().sum())
    if (summary.name, summary.coverage.scored) != (data.plan.name, scored):
        raise InputError(
            f"build_report: the summary is of {summary.name!r} with"
            f" {summary.coverage.scored} scored episodes, the log of {data.plan.name!r} has"
            f" {scored}; analyse it again"
        )


def _findings(
    trial: TrialDirectory,
    data: TrialData,
    summary: TrialSummary,
    evidence: Mapping[str, Path] | None,
    profile: str | Path,
) -> TrialFindings | None:
    """The autonomy level of each policy; none for a trial in simulation only."""
    if not summary.robots:
        return None
    from robo_eval.gates.trial import examine_summary  # a simulation needs none of its forms

    noted = read_evidence(trial.path, evidence)
    if noted.sources != summary.evidence:
        # Gates must not read other incidents than the numbers beside them.
        _log.warning(
            "%s: the report leaves out autonomy levels: the summary was made with other files of"
            " evidence than those at hand; hand the same files to build_report",
            trial.path,
        )
        return None
    return examine_summary(trial, summary, data.frame, noted, profile)


def read_trial(trial: TrialDirectory, frame: pd.DataFrame | None = None) -> TrialData:
    """Everything a report needs of a trial directory."""
    return TrialData(
        path=trial.path,
        plan=trial.plan,
        plan_text=(trial.path / PLAN).read_text(encoding="utf-8"),
        plan_digest=trial.plan_digest,
        status=trial.status(),
        manifest=trial.manifest,
        frame=scored_frame(trial) if frame is None else frame,
    )


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Episodes as CSV: one row per attempt, mappings as JSON, empty where nothing is known."""
    table = frame[[column for column in COLUMNS if column in frame.columns]].copy()
    for column in table.columns:
        if table[column].map(lambda value: isinstance(value, dict | list)).any():
            table[column] = table[column].map(_json_cell)
    return table.to_csv(index=False, lineterminator="\n").encode()


def _json_cell(value: Any) -> str:
    return "" if value is None else canonical_json(plain(value)).decode()


def page_bytes(report: Report, files: dict[str, bytes]) -> bytes:
    """The page with as many of the files inside as its size allows, the smallest first."""
    kinds = {".json": "application/json", ".csv": "text/csv"}
    inside = {name: packed(data) for name, data in files.items()}
    while True:
        downloads = [
            Download(
                name=name, mime=kinds[Path(name).suffix], size=_size(data), packed=inside.get(name)
            )
            for name, data in files.items()
        ]
        page = render(report, downloads).encode()
        if len(page) <= MAX_BYTES or not inside:
            if len(page) > MAX_BYTES:
                _log.warning("the report has %s, more than %s", _size(page), MAX_BYTES)
            return page
        inside.pop(max(inside, key=lambda name: len(inside[name])))


def _size(data: bytes) -> str:
    kilobytes = len(data) / 1000
    return f"{kilobytes / 1000:.1f} MB" if kilobytes >= 1000 else f"{max(1, round(kilobytes))} kB"


def _manifest(
    data: TrialData, summary: TrialSummary, report: Report, files: dict[str, bytes]
) -> dict[str, object]:
    """What the bundle was made from and by, and the digest of each of its files."""
    return {
        "version": MANIFEST_VERSION,
        "kind": "robo-eval report",
        "trial": {
            "name": data.plan.name,
            "status": data.status,
            "plan_sha256": data.plan_digest,
            "rows": len(data.frame),
            "verified": report.log.is_sound if report.log else None,
            "problems": list(report.log.problems) if report.log else [],
            "chain_head": data.manifest.head if data.manifest else None,
            "seeds": {"first": data.plan.seeds.first, "per_condition": data.plan.episodes},
            "policies": {result.policy: list(result.policy_digests) for result in summary.policies},
            "software": sorted(set(data.frame["software"].astype(str))),
            "score_versions": {str(v): n for v, n in summary.score_versions.items()},
        },
        "evidence_sha256": dict(summary.evidence),
        "configuration": summary.config.as_dict(),
        "configuration_sha256": summary.config.digest,
        "versions": versions_of(_PACKAGES),
        "files": {name: fingerprint(content) for name, content in sorted(files.items())},
    }
