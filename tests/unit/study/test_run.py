"""A study as a whole: what is done, what is kept, and that it does not matter who does it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
import yaml

from robo_eval.analysis.aiq import dissimilarity, mccp, relative, space
from robo_eval.core import spread
from robo_eval.core.errors import CheckFailedError, InputError, UnknownNameError
from robo_eval.core.spread import done
from robo_eval.log.lock import RunLock
from robo_eval.study import entries, work
from robo_eval.study.agreement import agreement
from robo_eval.study.results import Results
from robo_eval.study.run import Study, as_json
from robo_eval.study.suite import parse_suite
from robo_eval.study.work import best_expert


def study_of(suite: dict, folder) -> Study:
    return Study(parse_suite(yaml.safe_dump(suite), source="suite"), folder)


def jobs_of(study: Study) -> list[work.StudyJob]:
    study.prepare()
    return list(work.main_jobs(study.suite, study.tests))


@pytest.fixture(scope="module")
def finished(tiny_suite, tmp_path_factory):
    """The folder of a study that was run; `done_already` makes a copy of it."""
    folder = tmp_path_factory.mktemp("finished")
    study_of(tiny_suite, folder).run()
    return folder


@pytest.fixture
def done_already(finished, tmp_path):
    """A folder in which the tiny suite was run."""
    return shutil.copytree(finished, tmp_path / "study")


@pytest.fixture
def counted(monkeypatch) -> list[str]:
    """What was done, in order."""
    found = []
    do = work.do

    def told(job):
        found.append(job.label)
        return do(job)

    monkeypatch.setattr("robo_eval.study.run.do", told)
    return found


def test_what_is_found_follows_from_the_raw_numbers(done_already):
    outcome = Study.open(done_already).known()
    measured = outcome.measured
    assert measured.tests == ["level 0", "level 9"]
    assert measured.performances.shape == (2, 12)
    assert measured.mixtures[0, 1].shape == (2, 2, 9)
    areas = [mccp(measured.sizes, row).area for row in measured.performances]
    assert [one.value for one in outcome.complexities] == areas
    shares = np.arange(1, 10) / 10
    first, second = measured.mixtures[0, 1].mean(axis=1)
    ends = measured.alone.mean(axis=1)
    mixed = [ends[1], *(shares * first + (1 - shares) * second), ends[0]]
    assert outcome.dissimilarities.table[0, 1] == pytest.approx(dissimilarity(mixed))
    made = space(outcome.dissimilarities.table, relative(areas))
    np.testing.assert_array_equal(outcome.space.points, made.points)


def test_the_best_expert_of_each_test_is_learned_from(tiny, tmp_path):
    tiny["tasks"][0]["experts"] = ["random", "balancer", "nothing"]
    tiny["expert_episodes"] = 20
    outcome = study_of(tiny, tmp_path).run()
    assert outcome.measured.experts == ["balancer", "balancer"]


def test_of_experts_that_are_equally_good_the_first_one_is_learned_from():
    rng = np.random.default_rng(0)
    good = rng.uniform(0.5, 1.0, 50)
    worse, ahead = good - 0.1, good + rng.normal(0.001, 0.05, 50)
    assert best_expert([good, ahead]) == 0
    assert best_expert([worse, good, ahead]) == 1
    assert best_expert([ahead, good]) == 0
    assert best_expert([np.array([0.4]), np.array([0.5])]) == 1
    assert best_expert([np.array([0.5]), np.array([0.5])]) == 0


def test_nothing_is_done_twice(tiny, done_already, counted):
    written = json.loads((done_already / "study.json").read_text())
    again = study_of(tiny, done_already).run()
    assert counted == []
    assert as_json(again)["tests"] == written["tests"]
    assert Study.open(done_already).known().as_dict() == again.as_dict()


def test_a_changed_test_is_done_anew_and_others_are_not(tiny, done_already, counted):
    tiny["tasks"][0]["each"]["level"] = [0, 1]
    study_of(tiny, done_already).run()
    assert counted
    assert all("level 1" in label for label in counted)


def test_a_level_whose_code_changed_is_done_anew(tiny, done_already, counted, monkeypatch):
    digest_of = entries.environment_digest

    def changed(env):
        return "other" if env.unwrapped._level.number == 9 else digest_of(env)

    monkeypatch.setattr(entries, "environment_digest", changed)
    study_of(tiny, done_already).run()
    assert counted
    assert all("level 9" in label for label in counted)


def test_more_of_the_same_goes_on_from_what_there_is(tiny, done_already, counted):
    tiny["pool"]["policies"] = 30
    tiny["learner"]["trainings"] = 3
    study_of(tiny, done_already).run()
    assert sorted(counted) == [
        "mixture level 0 and level 0", "mixture level 0 and level 9", "mixture level 9 and level 9",
        "pool level 0", "pool level 9",
    ]  # fmt: skip


def test_another_name_changes_nothing(tiny, done_already, counted):
    tiny["tasks"][0]["name"] = "{level}"
    assert study_of(tiny, done_already).run().measured.tests == ["0", "9"]
    assert counted == []


@pytest.mark.slow
def test_workers_find_what_one_process_finds(tiny, tmp_path, done_already):
    alone = Study.open(done_already).known()
    shared = study_of(tiny, tmp_path / "shared").run(workers=2)
    assert shared.as_dict() == alone.as_dict()
    assert agreement(alone, shared)["complexity"].spearman == pytest.approx(1.0)


def test_the_cost_falls_as_work_is_done(tiny, tmp_path, done_already):
    before = study_of(tiny, tmp_path).prepare()
    assert before.pieces == 16
    assert before.known == 0
    assert before.core_s > 0.0
    after = study_of(tiny, done_already).prepare()
    assert (after.pieces, after.known, after.core_s) == (0, 16, 0.0)


@pytest.mark.slow
def test_progress_ends_where_it_said(tiny, tmp_path):
    told = []
    study_of(tiny, tmp_path).run(progress=lambda *one: told.append(one))
    done_s, total_s, label = told[-1]
    assert done_s == pytest.approx(total_s)
    assert label == "mixture level 0 and level 9"


@pytest.mark.slow
def test_a_killed_worker_costs_what_it_was_doing_only(tiny, tmp_path):
    jobs = jobs_of(study_of(tiny, tmp_path))
    found, is_killed = {}, False
    for job, value in done(jobs, work.do, workers=2):
        found[job.digest] = value
        if not is_killed:
            own = psutil.Process()
            victims = [
                one for one in own.children() if any("spawn_main" in w for w in one.cmdline())
            ]
            victims[0].kill()
            is_killed = True
    assert is_killed
    assert found.keys() == {job.digest for job in jobs}
    mixed = next(job for job in jobs if job.kind == "mixture")
    assert found[mixed.digest]["first"] == work.do(mixed)["first"]


def touched(path):
    path.touch()
    return path.name


def ends(_hears, _speaks, sign) -> None:
    while sign is not None and not sign.exists():
        time.sleep(0.01)
    time.sleep(0.5)  # what the other one said was heard
    os._exit(9)


@pytest.mark.parametrize(
    "dead", [{0, 1}, {1, 2}, pytest.param({1}, marks=pytest.mark.slow)], ids=str
)
def test_a_worker_that_dies_while_it_starts_blames_no_piece(monkeypatch, tmp_path, dead):
    """If none has started yet, none can; later ones are replaced."""
    jobs = [tmp_path / f"{number}" for number in range(6)]
    numbers = itertools.count()

    def hire(crew, *, is_alone):
        if next(numbers) in dead:
            return spread.Worker(ends, None if 0 in dead else jobs[0], forks=False)
        return spread.Worker(spread._serve, touched, forks=False)

    monkeypatch.setattr(spread._Hands, "hire", hire)
    if 0 in dead:
        with pytest.raises(CheckFailedError, match="cannot start"):
            list(done(jobs, touched, workers=2))
    else:
        assert dict(done(jobs, touched, workers=2)) == {path: path.name for path in jobs}


def test_a_killed_run_goes_on_where_it_was(tiny, tmp_path, done_already):
    path = tmp_path / "suite.yaml"
    path.write_text(yaml.safe_dump(tiny))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "robo_eval", "aiq", "run", str(path), "--out", str(out)]
    run = subprocess.Popen([*command, "--workers", "1", "--json"], stdout=subprocess.PIPE)
    while (kept := count_of(out / "results.db")) <= 4:
        assert run.poll() is None
        time.sleep(0.01)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    kept = count_of(out / "results.db")
    assert 4 < kept < 18
    cost = Study.open(out).prepare()
    assert cost.known == kept - 2  # two pieces compared experts
    assert cost.pieces == 18 - kept
    resumed = Study.open(out).run()
    assert resumed.as_dict() == Study.open(done_already).known().as_dict()


def count_of(path) -> int:
    if not path.exists():
        return 0
    try:
        with sqlite3.connect(path) as connection:
            return connection.execute("SELECT count(*) FROM results").fetchone()[0]
    except sqlite3.OperationalError:  # being made
        return 0


def test_the_same_suite_gives_the_same_numbers_as_ever(tiny, tmp_path):
    """A change of these is a change of method: METHOD in study/measure.py goes up with it."""
    jobs = jobs_of(study_of(tiny, tmp_path))
    pool = work.do(next(job for job in jobs if job.kind == "pool"))
    assert pool["sizes"][:4] == GOLDEN_SIZES
    assert pool["performances"][:4] == pytest.approx(GOLDEN_PERFORMANCES, abs=0.02)


GOLDEN_SIZES = [1832, 149, 65, 65]
GOLDEN_PERFORMANCES = [0.1525, 0.165, 0.135, 0.15]


@pytest.mark.slow
def test_sets_and_their_changes_are_tests_as_well(tiny, tmp_path):
    tiny["tasks"] = []
    tiny["sets"] = [
        {"set": "digits"},
        {"set": "digits", "name": "noisy", "noise": 0.6},
        {"set": "digits", "name": "twice", "copies": 2},
    ]
    tiny["pool"] |= {"episodes": 200, "steps": 100, "examples": 1000}
    tiny["learner"] |= {"episodes": 200, "steps": 100, "examples": 1000}
    outcome = study_of(tiny, tmp_path).run()
    means = outcome.measured.alone.mean(axis=1)
    assert means[0] > means[1] + 0.1
    assert abs(means[0] - means[2]) < 0.1
    assert outcome.measured.experts == ["labels"] * 3
    assert json.loads((tmp_path / "study.json").read_text())["tests"][0]["entropy_bits"] is None


def test_a_task_may_be_made_a_set_of_what_its_expert_does(tiny, tmp_path):
    played = study_of(tiny, tmp_path / "played")
    tiny["tasks"][0]["labelled"] = 300
    tiny["pool"] |= {"episodes": 100}
    tiny["learner"] |= {"episodes": 100}
    study = study_of(tiny, tmp_path / "labelled")
    outcome = study.run()
    assert {job.kind for job in jobs_of(study)} == {"pool", "alone", "mixture"}
    assert np.isnan(outcome.measured.entropies).all()
    # Of 100 examples.
    shares = 100 * outcome.measured.performances
    assert np.allclose(shares, np.round(shares))
    assert outcome.measured.experts == ["balancer", "balancer"]
    # What a task is made of is the same; what is judged is not.
    one, other = played.tests[0].identity, study.tests[0].identity
    assert other == one | {"labelled": 300, "seed": tiny["seed"], "expert": other["expert"]}


def test_labels_follow_from_the_seed(tiny, tmp_path):
    tiny["tasks"][0]["labelled"] = 200
    first, again = (study_of(tiny, tmp_path).tests[0].domain() for _ in range(2))
    other = study_of(tiny | {"seed": 9}, tmp_path).tests[0].domain()
    assert np.array_equal(first.train.observations, again.train.observations)
    assert not np.array_equal(first.train.observations, other.train.observations)


# Bad input -------------------------------------------------------------------------------------


def test_tests_that_cannot_be_made_are_refused_before_anything_is(tiny, tmp_path):
    out = tmp_path / "out"
    for changes, said in (
        ({"each": {"level": [0, 99]}}, "unknown level 99"),
        ({"env": "RoboEval/CartPoll3D-v0"}, "did you mean 'RoboEval/CartPole3D-v0'"),
        (
            {
                "env": "Pendulum-v1",
                "each": {"g": [9, 10]},
                "kwargs": {},
                "name": "{g}",
                "returns": [0, 1],
            },
            "discrete",
        ),
        ({"experts": ["balancr"]}, "did you mean 'balancer'"),
        ({"observed": 999}, "an observation of RoboEval/CartPole3D-v0 has 320 numbers"),
    ):
        bad = {**tiny, "tasks": [{**tiny["tasks"][0], **changes}]}
        with pytest.raises(InputError, match=said):
            study_of(bad, out)
        assert not out.exists()


def test_tests_that_no_learner_can_mix_are_refused(tiny, tmp_path):
    other = {"env": "CartPole-v1", "experts": ["nothing"], "returns": [0, 500]}
    with pytest.raises(InputError, match="one learner needs the same"):
        study_of({**tiny, "tasks": [*tiny["tasks"], other]}, tmp_path)


def test_a_study_with_missing_parts_says_how_to_go_on(tiny, tmp_path):
    with pytest.raises(InputError, match="no study; `robo-eval aiq run"):
        Study.open(tmp_path)
    study_of(tiny, tmp_path).prepare()
    with pytest.raises(InputError, match="16 pieces of work of the study are missing"):
        Study.open(tmp_path).known()


def test_asking_for_the_cost_leaves_the_study_of_a_folder_as_it_is(tiny, done_already):
    before = (done_already / "suite.yaml").read_bytes()
    study_of(tiny | {"name": "another", "seed": 99}, done_already).prepare()
    assert (done_already / "suite.yaml").read_bytes() == before
    assert Study.open(done_already).known().name != "another"


def test_a_file_that_is_no_results_is_not_written_over(tiny, tmp_path):
    (tmp_path / "results.db").write_text("my notes, which I want to keep\n" * 40)
    with pytest.raises(InputError, match=r"results.db: cannot be used as results of a study"):
        study_of(tiny, tmp_path).prepare()
    assert (tmp_path / "results.db").read_text().startswith("my notes")


def test_a_result_that_was_damaged_is_done_again(tiny, done_already):
    whole = Study.open(done_already).known()
    with sqlite3.connect(done_already / "results.db") as connection:
        connection.execute("UPDATE results SET value = '{' WHERE label LIKE 'pool%'")
    connection.close()
    assert study_of(tiny, done_already).prepare().pieces == 4
    assert study_of(tiny, done_already).run().as_dict() == whole.as_dict()


def test_what_is_written_is_json_without_nan(done_already):
    text = (done_already / "study.json").read_text()
    found = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert [test["name"] for test in found["tests"]] == ["level 0", "level 9"]
    assert found["software"].startswith("robo-eval ")


def test_a_set_that_is_not_there_is_refused(tiny, tmp_path):
    for entry, said in (
        ({"set": "mnist", "folder": str(tmp_path)}, "mnist|idx|train-images"),
        ({"set": "dgits"}, "did you mean 'digits'"),
    ):
        with pytest.raises(InputError, match=said):
            study_of({**tiny, "tasks": [], "sets": [entry, {**entry, "name": "b"}]}, tmp_path / "o")
        assert not (tmp_path / "o").exists()


def test_workers_must_be_there(tiny, tmp_path):
    with pytest.raises(InputError, match="workers is 0"):
        study_of(tiny, tmp_path).run(workers=0)


def test_two_runs_in_one_folder_do_not_do_the_same_twice(tiny, tmp_path, done_already):
    with RunLock(tmp_path), pytest.raises(InputError, match=f"process {os.getpid()} on .* writing"):
        study_of(tiny, tmp_path).prepare()
    with RunLock(done_already):  # nothing is left to do
        study_of(tiny, done_already).run()


def test_errors_name_the_file_of_the_suite(tiny, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({**tiny, "tasks": [{**tiny["tasks"][0], "experts": ["up"]}]}))
    with pytest.raises(UnknownNameError, match=f"^{file}: unknown agent 'up'"):
        Study.of(file, tmp_path / "out")


def test_what_is_no_folder_is_refused(tiny, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: cannot be the folder of a study: File exists"):
        study_of(tiny, tmp_path / "file").prepare()


def test_a_full_disk_loses_nothing_that_was_kept(tmp_path):
    with Results(tmp_path / "r.db") as results:
        results.put("first", "what", {"seconds": 1.0})
        results._connection.execute("PRAGMA max_page_count = 8")
        with pytest.raises(InputError, match=r"r\.db: the disk is full; what is in it is kept"):
            results.put("second", "what" * 100_000, {"seconds": 1.0})
    with Results(tmp_path / "r.db") as results:
        assert results.get("first") == {"seconds": 1.0}


def test_results_are_kept_one_by_one(tmp_path):
    with Results(tmp_path / "r.db") as results:
        results.put("d", "what", {"seconds": 1.0, "x": [0.1, 2]})
        with Results(tmp_path / "r.db") as other:
            assert other.get("d") == {"seconds": 1.0, "x": [0.1, 2]}
            assert other.get("e") is None
        with pytest.raises(ValueError, match="JSON"):
            results.put("d", "what", {"seconds": 1.0, "x": float("nan")})
        assert results.get("d") == {"seconds": 1.0, "x": [0.1, 2]}
