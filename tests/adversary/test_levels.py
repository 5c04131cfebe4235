"""What a laboratory that cheats would try: each buys no level."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from robo_eval.cli.app import app
from robo_eval.core.estimate import Estimate
from robo_eval.gates import Readings, assess, load_profile, profiles
from robo_eval.gates.axes.improvement import streak_of
from robo_eval.gates.profile import BUILT_IN, FOLDER
from robo_eval.log.evidence import Checkpoint

PROGRAM = Path(__file__).parents[2] / "examples" / "archetypes.py"
DAY_NS = 86_400 * 10**9


@pytest.fixture(scope="session")
def program() -> Any:
    """The example that writes four made-up laboratories."""
    specification = importlib.util.spec_from_file_location("archetypes", PROGRAM)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def judged(trial: Path, *options: str) -> dict[str, Any]:
    """What `assess` says of a trial, of its only policy."""
    done = CliRunner().invoke(app, ["assess", str(trial), "--json", *options])
    assert done.exit_code in (0, 1), done.output
    (found,) = json.loads(done.stdout)["assessments"]
    return found


def headline(trial: Path, *options: str) -> str:
    """What `assess` prints first."""
    done = CliRunner().invoke(app, ["assess", str(trial), *options])
    assert done.exit_code in (0, 1), done.output
    return done.stdout.split("evidence", 1)[0]


# Settings, weights and units ---------------------------------------------------------------------


def test_the_digests_of_built_in_profiles_are_those_of_the_files() -> None:
    assert {name: load_profile(name).digest for name in profiles()} == BUILT_IN


BOUGHT = """  level: 0.01
  severity_weights: {near_miss: 0.000001, minor: 0.000001, major: 0.000001, critical: 10}
  min_coverage: 0.01
"""


def test_settings_of_a_locked_plan_buy_no_level(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = program.plan_text(program.ARCHETYPES[1]).replace("metrics:\n", f"metrics:\n{BOUGHT}")
    monkeypatch.setattr(program, "plan_text", lambda _: text)
    trial = program.make(program.ARCHETYPES[1], tmp_path / "trial").path
    found = judged(trial)
    assert found["headline"].endswith(
        "NON-STANDARD SETTINGS (level 0.01 instead of 0.95; min_coverage 0.01 instead of 0.95;"
        " severity_weights near_miss 1e-06, minor 1e-06, major 1e-06, critical 10 instead of"
        " near_miss 0.01, minor 0.1, major 1, critical 10)"
    )
    assert "AAI" not in found["headline"]
    first = headline(trial)
    assert "NON-STANDARD SETTINGS" in first
    assert "AAI" not in first
    bundle = json.loads((trial / "assessment" / "assessment.json").read_text())
    assert bundle["assessments"][0]["non_standard"] == found["non_standard"] != []
    CliRunner().invoke(app, ["report", str(trial)])
    page = (trial / "report" / "index.html").read_text()
    article = page[page.index('<article class="autonomy"') :].split("</article>")[0]
    assert "NON-STANDARD SETTINGS" in article
    assert "AAI-" not in article
    told = CliRunner().invoke(app, ["metrics", str(trial)]).stdout
    assert "settings: of the locked plan; level 0.01 instead of 0.95" in " ".join(told.split())


@pytest.mark.parametrize(
    ("setting", "is_usual"),
    [
        ("level: 0.9", False), ("level: 0.99", False), ("seed: 7", False),
        ("resamples: 999", False), ("max_voids: 0.2", False), ("max_unmatched: 0.5", False), ("safety_form: reciprocal", False),
        ("control_weights: {jerk_rms: 0}", False), ("min_coverage: 0.5", False),
        ("resamples: 2000", True), ("policy_faults: failure", True),
        ('tolerances: {"*": {jerk_rms: 2}}', True),
    ],
)  # fmt: skip
def test_which_settings_a_level_may_rest_on(setting: str, is_usual: bool) -> None:
    from robo_eval.core.plan import parse_plan
    from robo_eval.metrics.config import MetricConfig

    text = f"name: x\npolicies: [{{name: nothing}}]\ntasks: [{{}}]\nmetrics: {{{setting}}}"
    plan = parse_plan(text, source="plan")
    assert (MetricConfig.of(plan.metrics).unusual == ()) is is_usual


def test_a_profile_edited_in_place_is_none_of_the_built_in(program: Any, tmp_path: Path) -> None:
    trial = program.make(program.ARCHETYPES[0], tmp_path / "trial").path
    edited = tmp_path / "robotics.toml"
    edited.write_text((FOLDER / "robotics.toml").read_text().replace("2 = 0.80", "2 = 0.10"))
    first = headline(trial, "--profile", str(edited))
    assert "NON-STANDARD PROFILE (robotics, " in first
    assert "AAI" not in first
    copy = tmp_path / "copy.toml"
    copy.write_text((FOLDER / "robotics.toml").read_text())
    assert "NON-STANDARD" not in headline(trial, "--profile", str(copy))


def learning(per_day: float, unit: float, noise: tuple[float, ...] = (0.002, -0.002)) -> Any:
    points = [
        Checkpoint(
            line=2 + day, time_ns=day * DAY_NS, family="pick", resources=2.0 * day / unit,
            capability=0.5 + per_day * day + noise[day % len(noise)],
        )
        for day in range(15)
    ]  # fmt: skip
    return streak_of(points, least=0.005, window_days=7, resamples=500)


def test_another_unit_of_resource_buys_no_improvement() -> None:
    assert learning(0.001, unit=1000.0).days == learning(0.001, unit=1.0).days == 0
    assert learning(0.015, unit=1000.0).days == learning(0.015, unit=1e-3).days >= 7


def test_a_slope_the_noise_allows_is_no_improvement() -> None:
    assert learning(0.006, 1.0, noise=(0.2, -0.2, 0.1, -0.1)).days == 0


# Two verdicts ------------------------------------------------------------------------------------


def ratio(value: float, low: float, n: int = 50) -> Estimate:
    return Estimate(value=value, low=low, high=1.0, n=n, method="x", unit="ratio")


def test_the_headline_says_what_is_shown_and_what_points_say(
    shown_at_2: Callable[..., Readings],
) -> None:
    assert assess(shown_at_2()).headline == "AAI-2 shown at 95 %"
    found = assess(shown_at_2(AR_new_task=ratio(0.86, 0.79)))
    assert (found.level, found.level_conservative) == (2, 0)
    assert found.headline == "AAI-0, nothing higher is shown at 95 %; AAI-2 by point values"
    assert found.badge == "AAI-0"


@pytest.fixture
def shown_at_2() -> Callable[..., Readings]:
    """Evidence by which nothing stands between a robot and level 2."""
    profile = load_profile("robotics")

    def make(**changed: Estimate) -> Readings:
        passing = {
            gate.reads: (
                Estimate.exact(0.0, unit="", n=1)
                if gate.test in ("zero", "at_most")
                else Estimate.exact(5000.0, unit="", n=1)
                if gate.reads in ("exposure_hours", "MTBSI", "maintenance_days")
                else ratio(0.99, 0.98)
            )
            for gate in profile.at(2).values()
            if gate.test != "families"
        }
        from robo_eval.gates import Audit
        from robo_eval.gates.axes.improvement import Streak

        return Readings(
            policy="arm", side="real", values=passing | changed, played=("pick",),
            families={"AR": {"pick": ratio(0.99, 0.98)}, "S2R": {"pick": ratio(0.99, 0.98)}},
            streaks={"pick": Streak(kappa=ratio(0.02, 0.01), days=9, of_days=9)},
            events={},
            audits=tuple(
                Audit(id=name, title=name, status="pass", reason="") for name in profile.audits
            ),
        )  # fmt: skip

    return make


def test_bounds_on_harm_are_one_sided_and_few_hours_decide_nothing(
    shown_at_2: Callable[..., Readings],
) -> None:
    from robo_eval.metrics.safety import safety_score

    score = safety_score({}, 1000.0, level=0.9)
    assert score.low == pytest.approx(1 - 1.11 * 100 * 2.995732274 / 1000)
    found = assess(replace(shown_at_2(SS=score), events={}, values=shown_at_2(SS=score).values | {
        "exposure_hours": Estimate.exact(1000.0, unit="h", n=1),
    }))  # fmt: skip
    (gate,) = [gate for gate in found.at(2) if gate.id == "ss"]
    assert gate.status == "undecided"
    assert gate.reason == "not decidable yet: about 663 h more without a safety incident"
    assert (found.level, found.level_conservative) == (2, 0)
    # What the hours exclude is a failure.
    bad = assess(shown_at_2(SS=replace(score, value=0.1, low=0.0, high=0.3)))
    assert {gate.status for gate in bad.at(2) if gate.id == "ss"} == {"fail"}
