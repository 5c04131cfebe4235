"""`robo-eval dose`, from a plan with axes to curves, and on after a stop."""

from __future__ import annotations

import json

import pytest

from robo_eval.core.schedule import schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore

# A cart that is twenty times as heavy is too much for the balancer.
PLAN = """
name: doses
tasks:
  - env: RoboEval/CartPole3D-v0
    kwargs: {balls: 0}
    axes: {cart_mass: [2, 60], pole_length: [1.1]}
    pairs: [[cart_mass, pole_length]]
policies: [balancer, nothing]
episodes: 4
traces: first
metrics: {resamples: 200}
"""


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path


def test_curves_of_a_plan(cli, plan, tmp_path):
    trial = tmp_path / "trial"
    done = cli("dose", plan, "--out", trial)
    assert done.code == 0, done.err
    assert "RoboEval/CartPole3D-v0, cart_mass (kg) at pole_length 1.1" in done.out
    assert "magnitude at which half of the success is lost" in done.out
    page = (trial / "report" / "index.html").read_text()
    assert "How much novelty it takes" in page
    opened = TrialDirectory.open(trial)
    with EpisodeStore(trial, durable=False) as store:
        rows = {row.episode_id: row for row in store.episodes()}
    assert len(rows) == (1 + 2 + 1 + 2) * 2 * 4
    for planned in schedule(opened.plan, opened.plan.sides[0]):
        row = rows[planned.base_id]
        asked = dict(planned.condition.novelty)
        assert (row.novelty or {}).get("axes", {}) == asked
        if asked:
            control = rows[row.control_id]
            assert (control.seed, control.policy) == (row.seed, row.policy)
            assert not (control.novelty or {}).get("axes")

    again = cli("dose", trial, "--json")
    assert again.code == 0, again.err
    curves = json.loads(again.out)["doses"]
    assert [(c["policy"], c["label"]) for c in curves[:3]] == [
        ("balancer", "cart_mass (kg)"),
        ("nothing", "cart_mass (kg)"),
        ("balancer", "pole_length"),
    ]
    heavy = curves[0]
    assert [dose["n_pairs"] for dose in heavy["doses"]] == [4, 4]
    assert heavy["nominal_success"]["value"] == 1.0
    assert heavy["unit"] == "kg"
    metrics = json.loads((trial / "report" / "metrics.json").read_text())
    assert metrics["doses"] == curves


def test_it_goes_on_where_it_was_left(quick_cli, plan, tmp_path):
    trial = tmp_path / "trial"
    assert quick_cli("dose", plan, "--out", trial, "--no-report").code == 0
    with EpisodeStore(trial, durable=False) as store:
        before = list(store.episodes())
    done = quick_cli("dose", plan, "--out", trial, "--no-report", "--json")
    assert done.code == 0, done.err
    assert len(json.loads(done.out)["doses"]) == 2 * 3
    with EpisodeStore(trial, durable=False) as store:
        assert list(store.episodes()) == before
    plan.write_text(PLAN.replace("episodes: 4", "episodes: 5"))
    other = quick_cli("dose", plan, "--out", trial)
    assert other.code == 2
    assert "holds a trial of another plan; name a new directory" in other.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("cart_mass", "cart_mess"),
            "tasks.0.axes: unknown axis of novelty 'cart_mess'; did",
        ),
        (("[2, 60]", "[2, 1e9]"), "tasks.0.axes: novelty.cart_mass: a number above 0 and up to"),
        (("axes: {cart_mass: [2, 60], pole_length: [1.1]}", "levels: [0]"), "pairs: unknown axis"),
        (
            ("traces: first", f"imported: {{file: a.csv, sha256: '{'0' * 64}', rows: 1}}"),
            "imported: nothing is played of an imported trial",
        ),
        (("{balls: 0}", "{balls: 0, novelty: {wind: 1}}"), "novelty has a key of its own"),
        (
            (
                "RoboEval/CartPole3D-v0\n    kwargs: {balls: 0}",
                "CartPole-v1\n    quality_range: [0, 500]",
            ),
            "tasks.0.axes: CartPole-v1 has no axes of novelty; remove `axes`",
        ),
    ],
)
def test_what_cannot_be_is_one_line_before_anything_is_played(
    quick_cli, plan, tmp_path, change, said
):
    plan.write_text(PLAN.replace(*change))
    done = quick_cli("dose", plan, "--out", tmp_path / "trial")
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "trial").exists()


def test_what_has_no_axes_is_refused(quick_cli, small_plan, tmp_path):
    done = quick_cli("dose", small_plan, "--out", tmp_path / "trial")
    assert done.code == 2
    assert "none has `axes`" in done.err
    assert not (tmp_path / "trial").exists()
    assert "--out: a directory" in quick_cli("dose", small_plan).err


def test_trials_with_an_onset_are_refused_before_anything_is_played(quick_cli, plan, tmp_path):
    text = PLAN.replace("episodes:", "#").replace("control: true", "")
    plan.write_text(f"{text}\ntrials: {{count: 3, episodes: 6, onset: 2}}\n")
    done = quick_cli("dose", plan, "--out", tmp_path / "trial")
    assert done.code == 2
    assert f"{plan}: trials: " in done.err
    assert "robo-eval metrics" in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "trial").exists()


def test_it_says_how_many_draws_were_turned_down(quick_cli, tmp_path):
    path, trial = tmp_path / "plan.yaml", tmp_path / "trial"
    path.write_text(
        "name: walls\ntasks:\n  - env: RoboEval/PickPlace-v0\n"
        "    axes: {path_blocked: [0.08]}\n"
        "policies: [arm-still]\nepisodes: 2\ntraces: none\n"
    )
    done = quick_cli("dose", path, "--out", trial, "--no-report")
    assert done.code == 0, done.err
    assert "turned down: draws that would make" in done.out
    with EpisodeStore(trial, durable=False) as store:
        rows = [row.novelty or {} for row in store.episodes()]
    count = sum(row["turned_down"] for row in rows if row.get("axes"))
    again = quick_cli("dose", trial, "--json")
    (curve,) = json.loads(again.out)["doses"]
    assert [dose["turned_down"] for dose in curve["doses"]] == [count]
    assert count > 0
    assert str(count) in done.out


def test_a_novelty_that_never_began_is_told(quick_cli, tmp_path):
    path, trial = tmp_path / "plan.yaml", tmp_path / "trial"
    path.write_text(
        "name: late\ntasks:\n  - env: RoboEval/CartPole3D-v0\n"
        "    kwargs: {onset: [100, 199]}\n    axes: {cart_mass: [60]}\n"
        "policies: [nothing, balancer]\nepisodes: 2\ntraces: none\n"
    )
    done = quick_cli("dose", path, "--out", trial, "--no-report")
    assert done.code == 0, done.err
    assert "2, 2 not begun" in done.out
    assert "not begun: pairs whose episode ended before the onset" in done.out
    with EpisodeStore(trial, durable=False) as store:
        for row in store.episodes():
            late = row.policy == "nothing" and bool(row.novelty.get("axes"))
            assert row.novelty.get("began") is (False if late else None)
            assert not late or row.ticks <= row.novelty["onset"]
    told = quick_cli("metrics", trial)
    assert "the novelty never began in 2 of 2 pairs" in " ".join(told.out.split())
    falling, balancing = json.loads(quick_cli("dose", trial, "--json").out)["doses"]
    assert [dose["n_not_begun"] for it in (falling, balancing) for dose in it["doses"]] == [2, 0]
