"""Help, listings and refusals answer without importing what only playing and scoring need."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from robo_eval.core.episode import Episode
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore

HEAVY = [
    "gymnasium", "matplotlib", "pandas", "plotly", "pyarrow", "pybullet", "rclpy", "scipy",
    "sqlalchemy", "torch",
]  # fmt: skip
DATABASES = ["sqlalchemy"]

PROBE = """
import json, sys
code = 0
try:
    from robo_eval.cli.app import main
    main()
except SystemExit as err:
    code = err.code or 0
sys.stdout = sys.__stdout__
print()
print(json.dumps({"code": code, "loaded": [name for name in %r if name in sys.modules]}))
"""


def loaded_by(
    *arguments: str, folder: Path, watched: list[str] = HEAVY
) -> tuple[int, list[str], str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE % watched, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.stdout.strip(), done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return found["code"], found["loaded"], done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("run", "--help"),
        ("demo", "--help"),
        ("import", "csv", "--help"),
        ("incidents", "--help"),
        ("incidents", "add", "--help"),
        ("levels",),
        ("levels", "--profile", "compat", "--json"),
    ],
    ids=" ".join,
)
def test_answers_load_nothing_heavy(arguments: tuple[str, ...], tmp_path: Path) -> None:
    code, loaded, stderr = loaded_by(*arguments, folder=tmp_path)
    assert code == 0, stderr
    assert loaded == []


@pytest.mark.parametrize("verb", ["--help", "levels"])
def test_help_and_levels_load_no_numpy(verb: str, tmp_path: Path) -> None:
    code, loaded, stderr = loaded_by(verb, folder=tmp_path, watched=[*HEAVY, "numpy"])
    assert code == 0, stderr
    assert loaded == []


PLAN = "name: x\ntasks: [{levels: [0]}]\npolicies: [balancer]\n"


@pytest.mark.parametrize(
    ("plan", "arguments"),
    [
        (None, ("run", "missing.yaml", "--out", "trial")),
        (PLAN + "episods: 3\n", ("run", "plan.yaml", "--out", "trial")),
        (PLAN.replace("[0]", "[99]"), ("run", "plan.yaml", "--out", "trial")),
        (PLAN.replace("[balancer]", "[balancr]"), ("run", "plan.yaml", "--out", "trial")),
        (PLAN, ("run", "plan.yaml", "--out", "trial", "--sides", "simm")),
        (PLAN, ("run", "plan.yaml", "--out", "plan.yaml")),
        (None, ("levels", "--profile", "papr")),
        (None, ("metrics", "no-such-trial")),
        (None, ("resume", "no-such-trial")),
        (None, ("report", "no-such-trial")),
        (None, ("verify", "no-such-trial")),
        (None, ("lvels",)),
    ],
    ids=[
        "missing plan", "unknown key", "unknown level", "unknown agent", "unknown side",
        "output is a file", "unknown profile", "metrics", "resume", "report", "verify",
        "unknown verb",
    ],
)  # fmt: skip
def test_refusals_load_nothing_heavy(
    plan: str | None, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    if plan is not None:
        (tmp_path / "plan.yaml").write_text(plan)
    before = sorted(tmp_path.iterdir())
    code, loaded, stderr = loaded_by(*arguments, folder=tmp_path)
    assert code == 2, stderr
    assert stderr.strip()
    assert "Traceback" not in stderr
    assert loaded == []
    assert sorted(tmp_path.iterdir()) == before


def test_the_probe_sees_a_heavy_import(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN + "episodes: 1\ntraces: none\n")
    code, loaded, stderr = loaded_by("run", "plan.yaml", "--out", "trial", folder=tmp_path)
    assert code == 0, stderr
    assert {"gymnasium", "pybullet"} <= set(loaded)


@pytest.mark.parametrize(
    ("verb", "watched"),
    [
        ("verify", [*HEAVY, "numpy", "pydantic"]),
        *(
            pytest.param(verb, [*DATABASES, "plotly"], marks=pytest.mark.slow)
            for verb in ("metrics", "assess", "acc", "compare")
        ),
        ("report", [*DATABASES, "plotly"]),
        ("export", [*HEAVY, "numpy"]),
    ],
)
def test_reading_a_trial_loads_no_database_library(
    verb: str, watched: list[str], tmp_path: Path
) -> None:
    plan = parse_plan(PLAN.replace("[balancer]", "[balancer, nothing]"), source="plan")
    trial = TrialDirectory.create(tmp_path / "trial", plan)
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        rows = [
            episode_of_plan(trial, number, policy)
            for number in range(24)
            for policy in ("balancer", "nothing")
        ]
        store.append(rows)
        trial.write_manifest(status="complete", store=store)
    more = ("--out", "rows.csv") if verb == "export" else ()
    code, loaded, stderr = loaded_by(verb, str(trial.path), *more, folder=tmp_path, watched=watched)
    assert code in (0, 1), stderr
    assert "Traceback" not in stderr
    assert loaded == []


def episode_of_plan(trial: TrialDirectory, number: int, policy: str) -> Episode:
    """An attempt at a seed of the plan, which `nothing` fails."""
    success = policy == "balancer"
    return Episode(
        episode_id=f"{policy}-{number}",
        plan_digest=trial.plan_digest,
        side=Side.SIM,
        task="RoboEval/CartPole3D-v0",
        level=0,
        difficulty="easy",
        seed=number,
        policy=policy,
        policy_digest="1" * 64,
        start_ns=number,
        duration_s=4.0,
        ticks=200,
        episode_return=1.0,
        quality=float(success),
        success=success,
        end_reason=EndReason.SUCCESS if success else EndReason.FAILURE,
        software="robo-eval",
    )
