"""Writes data/schema_v1: a trial as schema version 1 kept it. Run it from the repository root.

    .venv/bin/python tests/unit/log/make_schema_v1.py

Version 1 had neither `profile` nor `stated_success_probability`, and no `row_form`: its rows are
hashed without the three.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

import robo_eval.log.migrations
from robo_eval.core.episode import Episode
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.log import manifest as manifests
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.rows import GENESIS, cells_of, columns_of_form, row_digest

FOLDER = Path(__file__).parent / "data/schema_v1"
PLAN = "name: of version 1\ntasks: [{levels: [0, 2]}]\npolicies: [nothing]\nepisodes: 6\n"


def episode(i: int, plan_digest: str) -> Episode:
    survived = i % 3 != 1
    return Episode(
        episode_id=f"t0-l{2 * (i % 2):02d}-easy-nothing-s{1000 + i}-sim",
        plan_digest=plan_digest,
        side=Side.SIM,
        task="RoboEval/CartPole3D-v0",
        family="RoboEval/CartPole3D-v0",
        level=2 * (i % 2),
        difficulty="easy",
        seed=1000 + i,
        policy="nothing",
        policy_digest="ab" * 32,
        start_ns=1_780_000_000_000_000_000 + i,
        duration_s=0.02 * (200 if survived else 31 + i),
        ticks=200 if survived else 31 + i,
        episode_return=1.0 if survived else (31 + i) / 200,
        quality=1.0 if survived else (31 + i) / 200,
        success=survived,
        end_reason=EndReason.SUCCESS if survived else EndReason.FAILURE,
        initial_state={"cart_position": [0.1 * i, -0.2]},
        software="robo-eval 0.0.1",
    )


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    trial = TrialDirectory.create(FOLDER, parse_plan(PLAN, source="plan"))
    (FOLDER / "traces").rmdir()
    file = FOLDER / "episodes.db"
    file.unlink()
    engine = create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(file, isolation_level=None),
        poolclass=StaticPool, isolation_level="AUTOCOMMIT",
    )  # fmt: skip
    config = Config()
    config.set_main_option("script_location", str(Path(robo_eval.log.migrations.__file__).parent))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        head = GENESIS
        for sequence in range(1, 7):
            cells = cells_of(episode(sequence, trial.plan_digest), where="v1")
            row = {name: cells[name] for name in columns_of_form(1)}
            digest = row_digest(row, sequence=sequence, previous_sha256=head, row_form=1)
            row |= {"sequence": sequence, "previous_sha256": head, "row_sha256": digest}
            marks = ", ".join("?" for _ in row)
            connection.exec_driver_sql(
                f"INSERT INTO episodes ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
            )
            head = digest
    engine.dispose()
    created = "2026-01-01T00:00:00+00:00"
    manifests.write_manifest(
        FOLDER / "manifest.json",
        manifests.Manifest(
            status="complete", plan_digest=trial.plan_digest, planned=12, rows=6, head=head,
            created_utc=created, updated_utc=created, software="robo-eval 0.0.1",
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
