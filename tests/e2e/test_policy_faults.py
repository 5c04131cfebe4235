"""An agent that raises an error on its hard seeds gains nothing where its errors are failures."""

from __future__ import annotations

import json

import pytest

MAP = """
columns: {policy: policy, seed: seed, end_reason: end, fault_by: by}
constants: {task: t, side: sim}
"""


@pytest.fixture
def lab(tmp_path, quick_cli):
    """200 seeds, of which 10 are hard: `honest` fails them, `quitter` raises an error there."""
    rows = ["policy,seed,end,by"]
    for seed in range(200):
        hard = seed % 20 == 0
        rows.append(f"honest,{seed},{'failure' if hard else 'success'},")
        rows.append(f"quitter,{seed},{'fault,policy' if hard else 'success,'}")
    (tmp_path / "lab.csv").write_text("\n".join(rows))
    (tmp_path / "map.yaml").write_text(MAP)
    (tmp_path / "failure.yaml").write_text("policy_faults: failure")
    done = quick_cli("import", "csv", "lab.csv", "--map", "map.yaml", "--out", "lab")
    assert done.code == 0, done.err
    return tmp_path / "lab"


def quitter(document):
    (found,) = [one for one in document["policies"] if one["policy"] == "quitter"]
    return found


def test_both_readings_are_told(lab, quick_cli):
    told = quick_cli("metrics", lab)
    assert (
        "10 episodes ended by an error of the policy and count as missing; as failures, success"
        in (told.out)
    )
    missing = quitter(json.loads(quick_cli("metrics", lab, "--json").out))
    assert (missing["success_exact"]["value"], missing["success_exact"]["n"]) == (1.0, 190)
    assert missing["success_otherwise"]["value"] == pytest.approx(0.95)

    settings = ("--config", lab.parent / "failure.yaml")
    told = quick_cli("metrics", lab, *settings)
    assert "count as failures; as missing, success is 1.00 [0.98, 1.00] of 190" in told.out
    failed = quitter(json.loads(quick_cli("metrics", lab, *settings, "--json").out))
    assert (failed["success_exact"]["value"], failed["success_exact"]["n"]) == (0.95, 200)
    assert failed["coverage"]["missing"] == {}
    # The other reading of one is the reading of the other.
    for one, other in ((missing, failed), (failed, missing)):
        assert one["success_otherwise"] == other["success_exact"]
        assert one["n_policy_faults"] == 10


def test_the_setting_reaches_comparisons_and_reports(lab, quick_cli):
    settings = ("--config", lab.parent / "failure.yaml")
    (pair,) = json.loads(quick_cli("compare", lab, *settings, "--json").out)["sides"][0]["pairs"]
    assert (pair["n_pairs"], pair["difference"]["value"]) == (200, 0.0)
    done = quick_cli("report", lab, *settings)
    assert done.code == 0, done.err
    page = (lab / "report" / "index.html").read_text()
    assert "quitter: 10 episodes ended by an error of the policy and count as failures" in page


def test_a_stopping_rule_and_failures_by_errors_are_refused_together(tmp_path, quick_cli):
    (tmp_path / "plan.yaml").write_text(
        "name: x\npolicies: [random, nothing]\nepisodes: 9\ntasks: [{levels: [0]}]\n"
        "stopping: {compare: [random, nothing]}\nmetrics: {policy_faults: failure}\n"
    )
    done = quick_cli("run", "plan.yaml", "--out", "x")
    assert done.code == 2
    assert "metrics.policy_faults: must be missing" in done.err
    assert not (tmp_path / "x").exists()
