"""Plans are read once, completely, and errors name file and field."""

from pathlib import Path

import pytest

from robo_eval.core.canonical import text_digest
from robo_eval.core.errors import InputError, PlanError
from robo_eval.core.kinds import Difficulty, Side
from robo_eval.core.plan import locked_text, parse_plan, read_plan

GOOD = """
name: first look
tasks:
  - env: RoboEval/CartPole3D-v0
    levels: [0, 9]
    difficulties: [easy, hard]
policies: [balancer, {name: mine, factory: "lab.policies:make", kwargs: {gain: 2.0}}]
episodes: 3
"""


def test_short_forms_and_defaults_are_resolved():
    plan = parse_plan(GOOD, source="p.yaml")
    assert [policy.name for policy in plan.policies] == ["balancer", "mine"]
    assert plan.policies[1].kwargs == {"gain": 2.0}
    assert plan.sides == (Side.SIM,)
    assert [c.key for c in plan.conditions()] == [
        "t0-l00-easy",
        "t0-l00-hard",
        "t0-l09-easy",
        "t0-l09-hard",
    ]
    assert plan.tasks[0].difficulties == (Difficulty.EASY, Difficulty.HARD)


def test_locked_text_reads_back_as_the_same_plan_and_keeps_its_digest():
    plan = parse_plan(GOOD, source="p.yaml")
    text = locked_text(plan)
    again = parse_plan(text, source="plan.yaml")
    assert again == plan
    assert locked_text(again) == text
    assert len(text_digest(text)) == 64


AXES = """
name: doses
tasks:
  - env: RoboEval/PickPlace-v0
    axes: {friction: [0.2, 0.1], delay: [0.05]}
policies: [pick-place]
episodes: 2
"""
TWICE = (
    "name: x\ntasks: [{levels: [1], kwargs: {%s}}, {levels: [1], kwargs: {%s}}]\npolicies: [a]\n"
)
TEXTS = [
    ("", "mapping of keys"),
    ("- 1\n- 2\n", "mapping of keys"),
    ("name: [1, 2", "not valid YAML at line 2"),
    ("name: x\n\ttasks: 1", "not valid YAML at line 2"),
    ("{" * 5000, "not valid YAML"),
    ("name: x\ntasks: []\npolicies: [a]", "tasks: "),
    ("name: x\ntasks: [{}]\npolicies: []", "policies: "),
    (TWICE % ("", ""), "tasks.1: the same environment"),
    (TWICE % ("balls: 2, wind: 0", "wind: 0.0, balls: 2"), "tasks.1: the same environment"),
]
# Lines that are added to a good plan.
ADDED = [
    ("episods: 3", "episods: unknown key 'episods'; did you mean 'episodes'"),
    ("episodes: 4", "key 'episodes' is there twice"),
    ("sides: [moon]", "sides.0.*'moon'"),
    ("sides: [sim, sim]", "sides: must name"),
    ("order: sorted", "order: "),
    ("seeds: {first: -1}", "seeds.first.*-1"),
    ("version: 99", "version: "),
    ("version: '1'", "version: must be 1, given '1'$"),
    ("control: 1", "control: must be true or false, given 1"),
]
# What is changed in a good plan, and into what.
CHANGED = [
    ("levels:", "levls:", "tasks.0.levls: .*did you mean 'levels'"),
    ("factory:", "fctory:", "policies.1.fctory: .*'factory'"),
    ("policies:", "polices:", r"polices: .* mean 'policies'\?.*\(and 1 more problem\)$"),
    ("name: first look", "", "name: is missing$"),
    ("hard]", "hrad]", r"tasks.0.difficulties.1: .*'hrad'; did you mean 'hard'\? .*hard$"),
    ("[0, 9]", "[0, -9]", "tasks.0.levels.1.*-9"),
    ("[0, 9]", "[9, 9]", "tasks.0.*levels: must name"),
    ("[0, 9]", "[0, 9, 9]", "none twice, given 9 twice"),
    ("[0, 9]", "[]", "tasks.0.*levels: must name"),
    ("[0, 9]", "[zero]", "tasks.0.levels.0: must be a whole number"),
    ("[0, 9]", "[true]", "tasks.0.levels.0"),
    ("[0, 9]", "3", "tasks.0.levels: must be a list.*given 3$"),
    ("[0, 9]", "[zero]\n    profile: 1", r"tasks.0.levels.0: .*\(and 1 more problem\)$"),
    ("episodes: 3", "episodes: 0", "episodes: .*given 0"),
    ("episodes: 3", "episodes: 2.5", "episodes: .*2.5"),
    ("episodes: 3", "episodes: .nan", "episodes: "),
    ("episodes: 3", "episodes: yes", "episodes: .*True"),
    ("name: mine", "name: balancer", "two policies share a name"),
    ("name: mine", "name: ../x", "policies.1.name"),
    ("name: mine", "name: my own", "must consist of letters"),
]
# Keys that are added to the task of a good plan.
OF_A_TASK = [
    ("profile: papr", r"tasks.0.profile: .*did you mean 'paper'\? valid: paper, compat$"),
    ("axes: {friction: [1.0]}", "tasks.0.*axes: stand for levels; name one of the two"),
    ("kwargs: &k {me: *k}", "an alias refers to what it is part of"),
    ("kwargs: {level: 3}", "kwargs: level has a key of its own"),
    ("quality_range: [1.0, 1.0]", "quality_range: 1.0 must be below 1.0"),
    ("quality_range: [0.0, .inf]", "quality_range.1"),
]
# The same of a plan with axes.
WITH_AXES = [
    ("[0.2, 0.1]", "[0.2, 0.1, 0.3]", "axes.friction: mag"),
    ("[0.2, 0.1]", "[0.2, 0.2]", "axes.friction: magnitudes must"),
    ("[0.2, 0.1]", "[]", "tasks.0.axes.friction"),
    ("[0.2, 0.1]", "[.nan]", "tasks.0.axes.friction.0"),
    ("friction:", "../friction:", "tasks.0.axes"),
    ("axes:", "kwargs: {novelty: {friction: 1.0}}\n    axes:", "novelty has a key of its own"),
    ("axes:", "pairs: [[friction, frction]]\n    axes:", "pairs: .* did you mean 'friction'"),
    ("axes:", "pairs: [[friction, friction]]\n    axes:", "pairs: each must name two axes"),
    ("axes:", "pairs: [[friction, delay], [delay, friction]]\n    axes:", "pairs: .*named twice"),
    ("episodes:", "sides: [sim, twin]\nepisodes:", "tasks.0.axes: are played in simulation"),
    ("episodes:", "seeds: {shared: false}\nepisodes:", "seeds.shared: must be true"),
]
BAD = [
    *TEXTS,
    *((GOOD + line + "\n", said) for line, said in ADDED),
    *((GOOD.replace(old, new), said) for old, new, said in CHANGED),
    *((GOOD.replace("levels:", f"{key}\n    levels:"), said) for key, said in OF_A_TASK),
    *((AXES.replace(old, new), said) for old, new, said in WITH_AXES),
]


@pytest.mark.parametrize(("text", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_plan_is_one_line_naming_file_and_field(text, said):
    with pytest.raises(PlanError, match=said) as caught:
        parse_plan(text, source="trial.yaml")
    assert str(caught.value).startswith("trial.yaml: ")
    assert "\n" not in str(caught.value)


def test_missing_and_binary_files_are_named(tmp_path: Path):
    with pytest.raises(PlanError, match=r"nowhere\.yaml: no such plan file"):
        read_plan(tmp_path / "nowhere.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError, match=r"binary\.yaml"):
        read_plan(binary)
    binary.write_bytes(b"name: x\n\xff")
    with pytest.raises(InputError, match=r"binary\.yaml: line 2: is not UTF-8 text: byte 0xff"):
        read_plan(binary)
    with pytest.raises(PlanError, match="cannot be read"):
        read_plan(tmp_path)


def test_merged_keys_are_not_there_twice():
    text = (
        "name: x\npolicies: [a]\ntasks:\n"
        "- {env: E-v0, kwargs: {z: &b {<<: {q: 1}, q: 2}}}\n"
        "- {env: E-v1, kwargs: {<<: *b}}\n"
    )
    plan = parse_plan(text, source="plan.yaml")
    assert plan.tasks[0].kwargs == {"z": {"q": 2}}
    assert plan.tasks[1].kwargs == {"q": 2}
    with pytest.raises(PlanError, match="at line 5: key 'episodes' is there twice"):
        parse_plan("name: x\ntasks: [{}]\npolicies: [a]\nepisodes: 2\nepisodes: 3\n", source="p")


def test_axes_are_no_novelty_then_each_alone_then_their_pairs():
    plan = parse_plan(AXES.replace("axes:", "pairs: [[delay, friction]]\n    axes:"), source="p")
    assert [condition.key for condition in plan.conditions()] == [
        "t0",
        "t0-friction_0.2",
        "t0-friction_0.1",
        "t0-delay_0.05",
        "t0-delay_0.05+friction_0.2",
        "t0-delay_0.05+friction_0.1",
    ]
    assert parse_plan(locked_text(plan), source="p") == plan


def test_a_late_computer_is_no_reason_that_a_plan_names():
    assert parse_plan(GOOD, source="p").known_void_reasons[-1] == "late_computer"
    with pytest.raises(PlanError, match=r"void_reasons: .*'late_computer'.*leave it out"):
        parse_plan(GOOD + "void_reasons: [late_computer]\n", source="p")


@pytest.mark.parametrize(("given", "told"), [("0", 0), ("null", None)])
def test_how_late_a_computer_may_be_is_part_of_the_plan(given, told):
    plan = parse_plan(GOOD + f"max_missed_ticks: {given}\n", source="p")
    assert plan.max_missed_ticks == told
    assert parse_plan(locked_text(plan), source="plan.yaml") == plan
    for wrong in ("-1", "1.5", "many"):
        with pytest.raises(PlanError, match="max_missed_ticks"):
            parse_plan(GOOD + f"max_missed_ticks: {wrong}\n", source="p")
