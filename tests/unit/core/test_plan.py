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
BAD = {
    "empty": ("", "mapping of keys"),
    "a list": ("- 1\n- 2\n", "mapping of keys"),
    "broken yaml": ("name: [1, 2", "not valid YAML at line 2"),
    "tab": ("name: x\n\ttasks: 1", "not valid YAML at line 2"),
    "bomb of braces": ("{" * 5000, "not valid YAML"),
    "unknown key": (
        GOOD + "episods: 3\n",
        r"episods: unknown key 'episods'; did you mean 'episodes'",
    ),
    "unknown task key": (
        GOOD.replace("levels:", "levls:"),
        r"tasks.0.levls: .*did you mean 'levels'",
    ),
    "unknown policy key": (GOOD.replace("factory:", "fctory:"), r"policies.1.fctory: .*'factory'"),
    "no name": (GOOD.replace("name: first look", ""), "name: is missing$"),
    "no tasks": ("name: x\ntasks: []\npolicies: [a]", "tasks: "),
    "no policies": ("name: x\ntasks: [{}]\npolicies: []", "policies: "),
    "wrong difficulty": (
        GOOD.replace("hard]", "hrad]"),
        r"tasks.0.difficulties.1: .*'hrad'; did you mean 'hard'\? .*hard$",
    ),
    "negative level": (GOOD.replace("[0, 9]", "[0, -9]"), "tasks.0.levels.1.*-9"),
    "level twice": (GOOD.replace("[0, 9]", "[9, 9]"), "tasks.0.*levels: must name"),
    "no levels at all": (GOOD.replace("[0, 9]", "[]"), "tasks.0.*levels: must name"),
    "level is a word": (GOOD.replace("[0, 9]", "[zero]"), "tasks.0.levels.0"),
    "zero episodes": (GOOD.replace("episodes: 3", "episodes: 0"), "episodes: .*given 0"),
    "half an episode": (GOOD.replace("episodes: 3", "episodes: 2.5"), "episodes: .*2.5"),
    "nan": (GOOD.replace("episodes: 3", "episodes: .nan"), "episodes: "),
    "policy twice": (GOOD.replace("name: mine", "name: balancer"), "two policies share a name"),
    "policy named like a path": (GOOD.replace("name: mine", "name: ../x"), "policies.1.name"),
    "wrong side": (GOOD + "sides: [moon]\n", "sides.0.*'moon'"),
    "side twice": (GOOD + "sides: [sim, sim]\n", "sides: must name"),
    "wrong order": (GOOD + "order: sorted\n", "order: "),
    "negative seed": (GOOD + "seeds: {first: -1}\n", "seeds.first.*-1"),
    "other version": (GOOD + "version: 99\n", "version: "),
    "wrong profile": (
        GOOD.replace("levels:", "profile: papr\n    levels:"),
        r"tasks.0.profile: .*did you mean 'paper'\? valid: paper, compat$",
    ),
    "levels are no list": (
        GOOD.replace("[0, 9]", "3"),
        r"tasks.0.levels: must be a list.*given 3$",
    ),
    "control is a number": (GOOD + "control: 1\n", "control: must be true or false, given 1"),
    "axes beside levels": (
        GOOD.replace("levels:", "axes: {friction: [1.0]}\n    levels:"),
        r"tasks.0.*axes: stand for levels; name one of the two",
    ),
    "magnitudes up and down": (AXES.replace("[0.2, 0.1]", "[0.2, 0.1, 0.3]"), "axes.friction: mag"),
    "magnitude twice": (AXES.replace("[0.2, 0.1]", "[0.2, 0.2]"), "axes.friction: magnitudes must"),
    "no magnitude": (AXES.replace("[0.2, 0.1]", "[]"), "tasks.0.axes.friction"),
    "magnitude nan": (AXES.replace("[0.2, 0.1]", "[.nan]"), "tasks.0.axes.friction.0"),
    "axis like a path": (AXES.replace("friction:", "../friction:"), "tasks.0.axes"),
    "novelty beside axes": (
        AXES.replace("axes:", "kwargs: {novelty: {friction: 1.0}}\n    axes:"),
        "kwargs: novelty has a key of its own",
    ),
    "pair of an unknown axis": (
        AXES.replace("axes:", "pairs: [[friction, frction]]\n    axes:"),
        "pairs: unknown axis 'frction'; did you mean 'friction'",
    ),
    "pair with itself": (
        AXES.replace("axes:", "pairs: [[friction, friction]]\n    axes:"),
        "pairs: each must name two axes",
    ),
    "pair twice": (
        AXES.replace("axes:", "pairs: [[friction, delay], [delay, friction]]\n    axes:"),
        "pairs: each must name two axes, and none is named twice",
    ),
    "axes on a robot": (AXES + "sides: [sim, twin]\n", "tasks.0.axes: are played in simulation"),
    "axes without shared seeds": (
        AXES + "seeds: {shared: false}\n",
        "seeds.shared: must be true, because `axes` matches seeds",
    ),
    "two problems": (
        GOOD.replace("[0, 9]", "[zero]") + "retries: 99\n",
        r"tasks.0.levels.0: must be a whole number.*\(and 1 more problem\)$",
    ),
    "misspelt key that is needed": (
        GOOD.replace("policies:", "polices:"),
        r"polices: unknown key 'polices'; did you mean 'policies'\?.*\(and 1 more problem\)$",
    ),
    "version as text": (GOOD + "version: '1'\n", r"version: must be 1, given '1'$"),
    "name with a blank": (GOOD.replace("name: mine", "name: my own"), "must consist of letters"),
    "alias to itself": (
        GOOD.replace("levels:", "kwargs: &k {me: *k}\n    levels:"),
        "an alias refers to what it is part of",
    ),
    "level twice, named": (GOOD.replace("[0, 9]", "[0, 9, 9]"), "none twice, given 9 twice"),
    "empty range": (
        GOOD.replace("levels:", "quality_range: [1.0, 1.0]\n    levels:"),
        "quality_range: 1.0 must be below 1.0",
    ),
    "infinite range": (
        GOOD.replace("levels:", "quality_range: [0.0, .inf]\n    levels:"),
        "quality_range.1",
    ),
    "key twice": (GOOD + "episodes: 4\n", "key 'episodes' is there twice"),
    "yes for a number": (GOOD.replace("episodes: 3", "episodes: yes"), "episodes: .*True"),
    "true for a level": (GOOD.replace("[0, 9]", "[true]"), "tasks.0.levels.0"),
    "level among the keywords": (
        GOOD.replace("levels:", "kwargs: {level: 3}\n    levels:"),
        "kwargs: level has a key of its own",
    ),
    "same task in another spelling": (
        (
            "name: x\ntasks: [{levels: [1], kwargs: {balls: 2, wind: 0}},"
            " {levels: [1], kwargs: {wind: 0.0, balls: 2}}]\npolicies: [a]\n"
        ),
        "tasks.1: the same environment",
    ),
    "same task twice": (
        "name: x\ntasks: [{levels: [1]}, {levels: [1]}]\npolicies: [a]\n",
        "tasks.1: the same environment",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_plan_is_one_line_naming_file_and_field(name):
    text, match = BAD[name]
    with pytest.raises(PlanError, match=match) as caught:
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
