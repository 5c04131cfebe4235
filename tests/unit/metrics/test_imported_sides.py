"""What is said of imported trials: pairs to be had, what can be supplied, which share tasks."""

import pytest
from typer.testing import CliRunner

from robo_eval.analysis.comparison import compare_trials
from robo_eval.analysis.trial import analyse_trial
from robo_eval.cli.app import app
from robo_eval.core.errors import InputError
from robo_eval.log.importer import import_csv

MAP = """
columns: {episode_id: id, policy: policy, seed: seed, success: s, side: side, task: task}
constants: {robot: arm}
"""


@pytest.fixture
def lab(tmp_path):
    """Import lines of policy, side, task, seed and success."""

    def run(*lines, name="out", columns=MAP, extra=""):
        header = f"id,policy,side,task,seed,s{extra}"
        table = [f"{index},{line}" for index, line in enumerate(lines)]
        (tmp_path / "t.csv").write_text("\n".join([header, *table]))
        (tmp_path / "map.yaml").write_text(columns)
        return import_csv(tmp_path / "t.csv", tmp_path / "map.yaml", tmp_path / name)

    return run


def played(policy, side="real", tasks=("push",), seeds=range(8)):
    return [
        f"{policy},{side},{task},{seed},{int(seed % 3 > 0)}" for task in tasks for seed in seeds
    ]


def said(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments]).output


def test_pairs_without_a_name_are_offered(lab):
    trial = lab(*played("a"), *played("a", "sim", seeds=range(2, 9)), *played("b"))
    summary = analyse_trial(trial)
    assert summary.as_dict()["offered_pairs"] == 6
    (line,) = (one for one in said("metrics", trial.path).splitlines() if "pair_id" in one)
    assert line.startswith("6 episodes have a simulated one of the same policy, task, level")
    assert "columns: {pair_id: ...}" in line


def test_the_remedy_of_the_offer_gives_pairs(lab):
    lines = [f"{line},{line.split(',')[3]}" for line in (*played("a"), *played("a", "sim"))]
    named = MAP.replace("task: task}", "task: task, pair_id: pair}")
    summary = analyse_trial(lab(*lines, columns=named, extra=",pair"))
    assert summary.offered_pairs == 0
    assert summary.robots[0].agreement.n_pairs == 8


def test_a_seed_that_repeats_is_no_pair(lab):
    summary = analyse_trial(lab(*played("a"), *played("a", "sim"), *played("a", seeds=[0, 1])))
    assert summary.offered_pairs == 6


@pytest.mark.parametrize("sides", [["real"], ["sim"], ["real", "sim"]])
def test_nobody_is_told_to_play_an_import(lab, sides):
    # The simulated episodes are of another task, so that nothing can be compared.
    trial = lab(*(line for side in sides for line in played("a", side, [side])))
    text = said("assess", trial.path, "--json") + said("metrics", trial.path, "--json")
    text += said("report", trial.path)
    assert "robo-eval partner" not in text
    assert "robo-eval resume" not in text
    if sides == ["real"]:
        assert "import the simulated episodes with those of the robot" in text


def test_metrics_stand_in_the_order_of_compare(lab):
    weak = [line[:-1] + "0" for line in played("a")]
    trial = lab(*weak, *played("b"))
    for verb in ("metrics", "compare"):
        lines = said(verb, trial.path).splitlines()
        names = [line.split()[0] for line in lines if line[1:4].strip() in ("a", "b")]
        assert names[:2] == ["b", "a"]


def test_imports_that_share_some_tasks_are_compared_in_these(lab):
    trials = [
        lab(*played("a", tasks=("t1", "t2")), name="one"),
        lab(*played("b", tasks=("t2", "t3")), name="two"),
        lab(*played("c", tasks=("t3",)), name="three"),
    ]
    (side,) = compare_trials(trials).sides
    shared = {(pair.first, pair.second): pair.n_conditions for pair in side.pairs}
    assert sorted(shared.values()) == [0, 1, 1]
    text = said("compare", *(trial.path for trial in trials))
    assert "conditions that both played" in text
    assert "Not told apart from the best" in text
    with pytest.raises(InputError, match="cannot be compared: task"):
        compare_trials([trials[0], trials[2]])


def test_a_threshold_of_the_map_is_that_of_the_audit(lab):
    columns = MAP.replace("success: s", "quality: s") + "success_quality: 0.8\n"
    lines = [f"a,real,push,{seed},{0.8 + seed / 100}" for seed in range(8)]
    trial = lab(*lines, columns=columns)
    summary = analyse_trial(trial)
    assert summary.findings == ()
    assert summary.robots[0].reliability.value == 1.0
    assert trial.plan.tasks[0].success_quality == 0.8
