"""A trial is scored with the rules at hand; the log keeps what was recorded."""

import csv
import hashlib
import json
import re
import shutil
import sqlite3

import pytest

from robo_eval.analysis.panel import items
from robo_eval.analysis.trial import (
    acc_of,
    analyse_trial,
    log_problem,
    scored_frame,
    write_scores,
)
from robo_eval.cli.acc import acc as acc_verb
from robo_eval.cli.metrics import metrics as metrics_verb
from robo_eval.core.errors import CheckFailedError
from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial
from robo_eval.metrics import scoring
from robo_eval_sim.runner import run_simulated

PLAN = """
name: x
tasks: [{levels: [0, 9], difficulties: [easy]}]
policies: [nothing, balancer]
episodes: 3
traces: none
"""


def play(folder, text):
    made = TrialDirectory.create(folder, parse_plan(text, source="plan"))
    run_simulated(made, jobs=1)
    return made


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return play(tmp_path_factory.mktemp("played") / "trial", PLAN)


@pytest.fixture
def trial(played, tmp_path):
    shutil.copytree(played.path, tmp_path / "trial")
    return TrialDirectory.open(tmp_path / "trial")


def test_scores_of_the_recorded_version_are_not_written_again(trial):
    assert write_scores(trial) is None
    assert not (trial.path / "scores").exists()


def test_scores_of_a_later_version_stand_beside_the_log(trial, monkeypatch):
    with EpisodeStore(trial.path, durable=False) as store:
        head = store.head()
    before = hashlib.sha256((trial.path / "plan.yaml").read_bytes()).hexdigest()
    monkeypatch.setattr(scoring, "SCORE_VERSION", 2)
    # A later rule: nothing but a perfect half is worth anything.
    monkeypatch.setattr(scoring, "quality_of", lambda total, span: min(1.0, total / 2))
    path = write_scores(trial)
    assert path == trial.path / "scores/v2.csv"
    with path.open() as file:
        rows = {row["episode_id"]: row for row in csv.DictReader(file)}
    assert len(rows) == 12
    assert {row["score_version"] for row in rows.values()} == {"2"}
    with EpisodeStore(trial.path, durable=False) as store:
        assert store.head() == head
        for episode in store.episodes():
            assert episode.score_version == 1
            assert float(rows[episode.episode_id]["quality"]) == pytest.approx(episode.quality / 2)
    assert hashlib.sha256((trial.path / "plan.yaml").read_bytes()).hexdigest() == before
    summary = analyse_trial(trial)
    assert summary.score_versions == {2: 12}
    assert all(result.performance.value < 0.5 + 1e-9 for result in summary.policies)


def test_capability_rests_on_the_panel_and_says_it_is_unreliable_for_few_episodes(trial):
    summary = analyse_trial(trial)
    table = summary.as_dict()["acc"]
    assert table["n_items"] == 2
    by_policy = {row["policy"]: row for row in table["rows"]}
    assert (
        by_policy["balancer"]["capability"]["value"] > by_policy["nothing"]["capability"]["value"]
    )
    assert all("unreliable" in row and row["unreliable"] for row in table["rows"])


def tamper(trial, sql):
    with sqlite3.connect(trial.path / "episodes.db") as connection:
        connection.execute("DROP TRIGGER IF EXISTS episodes_no_update")
        connection.execute("DROP TRIGGER IF EXISTS episodes_no_delete")
        assert connection.execute(sql).rowcount > 0
    connection.close()


def test_an_untouched_log_verifies(trial):
    assert log_problem(trial) is None
    summary = analyse_trial(trial)
    assert (summary.verified, summary.log_problem) == (True, None)
    assert summary.as_dict()["verified"] is True


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("UPDATE episodes SET quality = 0.5 WHERE sequence = 3", "row 3 (t0-"),
        ("UPDATE episodes SET row_form = 99 WHERE sequence = 2", "has an unknown form"),
        ("UPDATE episodes SET row_sha256 = 'x' WHERE sequence = 2", "row 2 (t0-"),
        ("DELETE FROM episodes WHERE sequence = 5", "comes after a gap: row 5 missing"),
        ("DELETE FROM episodes WHERE sequence IN (5, 6)", "comes after a gap: rows 5 to 6 missing"),
        ("DELETE FROM episodes WHERE sequence > 10", "10 of 12 rows that manifest.json counts"),
    ],
)
def test_a_tampered_log_is_named_before_its_numbers_are_believed(trial, capsys, sql, problem):
    tamper(trial, sql)
    assert problem in log_problem(trial)
    row = re.match(r"row \d+", log_problem(trial))
    told = [str(one).partition(": ")[2] for one in verify_trial(trial.path).problems]
    assert row is None or any(one.startswith(f"{row[0]}: ") for one in told), told
    with pytest.raises(CheckFailedError, match=r"the log does not verify: .*; run `robo-eval ver"):
        metrics_verb(trial.path, json=True)
    data = json.loads(capsys.readouterr().out)
    assert data["verified"] is False
    assert problem in data["log_problem"]
    with pytest.raises(CheckFailedError, match="the log does not verify") as caught:
        acc_verb(trial.path, json=True)
    assert "\n" not in str(caught.value)
    assert json.loads(capsys.readouterr().out)["verified"] is False


def test_rows_that_were_chained_anew_do_not_end_where_the_manifest_says(trial):
    from robo_eval.log.chain import GENESIS
    from robo_eval.log.rows import row_digest
    from robo_eval.log.store import COLUMNS

    with sqlite3.connect(trial.path / "episodes.db") as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute("SELECT * FROM episodes")]
        head = GENESIS
        for row in sorted(rows, key=lambda row: row["sequence"]):
            cells = {name: row[name] for name in COLUMNS} | {"operator": "nobody"}
            found = row_digest(cells, sequence=row["sequence"], previous_sha256=head)
            connection.execute(
                "UPDATE episodes SET operator = 'nobody', previous_sha256 = ?, row_sha256 = ?"
                " WHERE sequence = ?",
                (head, found, row["sequence"]),
            )
            head = found
    connection.close()
    assert log_problem(trial) == "row 12 is not the one whose digest manifest.json holds"


def test_rows_after_the_end_and_a_lost_manifest_are_problems(trial):
    manifest = trial.path / "manifest.json"
    manifest.rename(trial.path / "elsewhere")
    assert "manifest.json is missing" in log_problem(trial)
    manifest.write_text("{}")
    assert log_problem(trial).startswith("manifest.json")


def test_scores_of_a_tampered_log_are_not_kept(trial, monkeypatch, capsys):
    monkeypatch.setattr(scoring, "SCORE_VERSION", 2)
    tamper(trial, "UPDATE episodes SET episode_return = 1.0")
    with pytest.raises(CheckFailedError):
        metrics_verb(trial.path, json=True)
    assert not (trial.path / "scores").exists()
    capsys.readouterr()


def test_metrics_of_a_sound_log_print_and_end_well(trial, capsys):
    metrics_verb(trial.path, json=True)
    assert json.loads(capsys.readouterr().out)["verified"] is True
    metrics_verb(trial.path)
    assert "performance by level, n = 3" in " ".join(capsys.readouterr().out.split())
    acc_verb(trial.path)
    text = capsys.readouterr().out
    assert "2 items at 2 difficulties" in text
    assert (
        "balancer, nothing: unreliable: 3 seeds, shared by the items, 8 needed;"
        " 2 difficulty levels, 6 needed; fewer than 20 episodes at 2 of 2 difficulty levels"
    ) in text


def test_a_frame_that_was_read_already_gives_the_same(trial):
    frame = scored_frame(trial, trial.frame())
    assert analyse_trial(trial, frame=frame).as_dict() == analyse_trial(trial).as_dict()


TWO_TASKS = """
name: two tasks
tasks:
  - {levels: [0, 9], difficulties: [easy], family: balancing}
  - {levels: [0, 9], difficulties: [easy], family: balancing, kwargs: {balls: 0}}
  - {levels: [1], difficulties: [easy], family: short, max_ticks: 20}
  - {levels: [2], difficulties: [easy], family: scaled, quality_range: [0, 2]}
  - {levels: [3], difficulties: [easy], family: long, max_ticks: 200}
policies: [nothing, balancer]
episodes: 3
control: true
traces: none
"""


@pytest.fixture(scope="module")
def two_tasks(tmp_path_factory):
    return play(tmp_path_factory.mktemp("two") / "trial", TWO_TASKS)


def test_tasks_of_one_environment_are_told_apart_by_their_keywords(two_tasks):
    summary = analyse_trial(two_tasks)
    labels = [cell.label for cell in summary.cells if cell.policy == "nothing"]
    assert labels == [
        *["balancing"] * 2,
        *["balancing {balls: 0}"] * 2,
        *["short", "scaled", "long"],
    ]
    assert all(cell.coverage.text == "3 of 3 scored" for cell in summary.cells)
    effects = summary.numbers.where(name="novelty_effect_sim", policy="nothing")
    tasks = [it.at.task for it in effects if it.at is not None and it.at.difficulty is not None]
    assert tasks == ["balancing", "balancing {balls: 0}", "short", "scaled", "long"]


def test_only_tasks_that_the_panel_played_have_items(two_tasks, capsys):
    table = acc_of(two_tasks)
    assert table.left_out == (
        "balancing {balls: 0} (tasks.1: kwargs.balls 0, the panel had none)",
        "short (tasks.2: max_ticks 20, the panel had 200)",
        "scaled (tasks.3: quality_range [0.0, 2.0], the panel had [0.0, 1.0])",
    )
    assert table.n_items == 3
    assert [row.n_episodes for row in table.rows] == [9, 9]
    assert table.as_dict()["left_out"] == list(table.left_out)
    acc_verb(two_tasks.path)
    text = capsys.readouterr().out
    assert "left out: balancing {balls: 0} (tasks.1: kwargs.balls 0, the panel had none)" in text


def test_levels_that_the_panel_did_not_play_are_warned_of(trial, capsys, monkeypatch):
    assert acc_of(trial).warnings == ()
    others = [{**item, "behaviour": "0" * 64} for item in items._data()["items"]]
    data = {**items._data(), "items": others}
    monkeypatch.setattr(items, "_data", lambda: data)
    (warning,) = acc_of(trial).warnings
    assert "behave otherwise than those the panel was measured on" in warning
    acc_verb(trial.path)
    assert f"warning: {warning}" in capsys.readouterr().out
    acc_verb(trial.path, json=True)
    assert json.loads(capsys.readouterr().out)["warnings"] == [warning]


ONE_LEVEL = """
name: one
tasks: [{levels: [0], difficulties: [easy]}]
policies: [nothing]
episodes: 2
traces: none
"""


def test_one_item_is_written_in_the_singular_and_has_no_interval(tmp_path, capsys):
    trial = play(tmp_path / "trial", ONE_LEVEL)
    acc_verb(trial.path)
    text = capsys.readouterr().out
    assert "1 item at 1 difficulty" in text
    assert "1 difficulty level, 6 needed" in text
    assert "[0." not in text
    assert "a curve needs two difficulties" in " ".join(text.split())


def drop(trial, condition):
    """Take rows out of what is read of a log, as if they had not been played yet."""
    frame = trial.frame()
    return frame[~condition(frame)]


def test_numbers_of_an_incomplete_trial_come_with_a_warning_and_exit_code_1(
    trial, capsys, monkeypatch
):
    played = drop(trial, lambda frame: (frame["level"] == 9) & (frame["policy"] == "balancer"))
    monkeypatch.setattr(TrialDirectory, "frame", lambda _self: played)
    with pytest.raises(CheckFailedError, match="too few episodes are scored") as caught:
        acc_verb(trial.path)
    assert "balancer: 1 of 2 items, 3 of 6 episodes scored" in str(caught.value)
    text = " ".join(capsys.readouterr().out.split())
    assert " 1 of 2 " in text
    assert "comparable" in text
    assert "balancer: unreliable: 1 of 2 items, 3 of 6 episodes scored; 1 item of other" in text
    assert "nothing: unreliable: 3 seeds" in text
    with pytest.raises(CheckFailedError, match="too few episodes are scored"):
        acc_verb(trial.path, json=True)
    data = json.loads(capsys.readouterr().out)
    assert data["uncovered"]
    assert [(row["is_covered"], row["is_partial"]) for row in data["rows"]] == [
        (False, True),
        (True, False),
    ]


def test_a_policy_without_a_score_is_named(trial, capsys, monkeypatch):
    played = drop(trial, lambda frame: frame["policy"] == "balancer")
    monkeypatch.setattr(TrialDirectory, "frame", lambda _self: played)
    with pytest.raises(CheckFailedError, match="balancer: 0 of 6 scored"):
        acc_verb(trial.path)
    assert "left out: balancer: no scored episode (6 not played)" in capsys.readouterr().out
