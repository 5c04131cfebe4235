"""Writes data/schema_v2: a trial as the programs of schema version 2 wrote it.

It appends through the program's own store, so it can only be run by a program of that version,
such as that of revision fd58a9e:

    .venv/bin/python tests/unit/log/make_schema_v2.py

Version 2 could not say that a start, a duration or a number of ticks is not known.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from robo_eval.core.episode import SCHEMA_VERSION, Episode
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.log import manifest as manifests
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore

FOLDER = Path(__file__).parent / "data/schema_v2"
PLAN = "name: of version 2\ntasks: [{levels: [0, 2]}]\npolicies: [nothing]\nepisodes: 3\n"


def episode(i: int, plan_digest: str) -> Episode:
    survived = i % 3 != 1
    lost = i == 6
    return Episode(
        episode_id=f"t0-l{2 * (i % 2):02d}-easy-nothing-s{1000 + i // 2}-sim",
        plan_digest=plan_digest,
        side=Side.SIM,
        task="RoboEval/CartPole3D-v0",
        family="RoboEval/CartPole3D-v0",
        level=2 * (i % 2),
        difficulty="easy",
        profile="paper",
        seed=1000 + i // 2,
        policy="nothing",
        policy_digest="ab" * 32,
        start_ns=1_780_000_000_000_000_000 + i,
        duration_s=0.0 if lost else 0.02 * (200 if survived else 31 + i),
        ticks=0 if lost else 200 if survived else 31 + i,
        episode_return=None if lost else 1.0 if survived else (31 + i) / 200,
        quality=None if lost else 1.0 if survived else (31 + i) / 200,
        success=None if lost else survived,
        end_reason=EndReason.LOST if lost else EndReason.SUCCESS if survived else EndReason.FAILURE,
        stated_success_probability=i / 10,
        novelty={"name": "ice", "parameters": {"friction": 0.1}} if i % 2 else {},
        initial_state={"cart_position": [0.1 * i, -0.2]},
        software="robo-eval 0.1.0",
    )


def main() -> None:
    if SCHEMA_VERSION != 2:
        raise SystemExit(f"this program has schema version {SCHEMA_VERSION}; check out fd58a9e")
    shutil.rmtree(FOLDER, ignore_errors=True)
    trial = TrialDirectory.create(FOLDER, parse_plan(PLAN, source="plan"))
    (FOLDER / "traces").rmdir()
    with EpisodeStore(FOLDER, durable=True) as store:
        store.append([episode(i, trial.plan_digest) for i in range(1, 7)])
        head = store.head()
    created = "2026-02-01T00:00:00+00:00"
    manifests.write_manifest(
        FOLDER / "manifest.json",
        manifests.Manifest(
            status="complete", plan_digest=trial.plan_digest, planned=6, rows=6, head=head,
            created_utc=created, updated_utc=created, software="robo-eval 0.1.0",
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
