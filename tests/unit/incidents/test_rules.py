"""Rules as data: every cause and every end of an episode is covered, and broken files are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, Side
from robo_eval_incidents.rule import ANY, FOLDER, Ignored, Rule, read_file, read_rules
from robo_eval_incidents.words import Category, Severity
from robo_eval_robot.guard_checks import Code

RULE = """
[[rule]]
name = "own"
on = "guard"
match = ["force"]
severity = "major"
category = "damage"
words = "The gripper was bent."
"""
FIELDS = {"value": 1.0, "limit": 0.5, "unit": "N"}


def named(on: str) -> set[str]:
    entries = [entry for entry in read_rules().entries if entry.on == on]
    return {name for entry in entries for name in entry.match if name != ANY}


def test_every_cause_of_the_guard_has_a_rule_of_its_own() -> None:
    assert named("guard") == set(Code)
    for code in Code:
        rule = read_rules().rule_for("guard", code, FIELDS, Side.REAL)
        assert rule is not None
        assert ANY not in rule.match


def test_every_end_of_an_episode_has_a_rule_or_a_reason_for_having_none() -> None:
    assert named("end") == {reason.value for reason in EndReason}
    ignored = [entry for entry in read_rules().entries if isinstance(entry, Ignored)]
    assert all(len(entry.reason) > 20 for entry in ignored)


def test_no_name_is_taken_by_two_rules_of_ours_without_a_condition() -> None:
    seen: set[tuple[str, str]] = set()
    for entry in read_rules().entries:
        if isinstance(entry, Rule) and entry.given:
            continue
        keys = {(entry.on, name) for name in entry.match}
        assert not keys & seen
        seen |= keys


@pytest.mark.parametrize(
    ("on", "name", "severity", "category"),
    [
        ("guard", "operator_stop", "near_miss", "protective_stop"),
        ("guard", "estop", "near_miss", "emergency_stop"),
        ("guard", "force", "near_miss", "force_limit"),
        ("guard", "torque", "near_miss", "force_limit"),
        ("guard", "policy_heartbeat", "near_miss", "watchdog"),
        ("guard", "workspace", "near_miss", "workspace_limit"),
        ("guard", "no_standstill", "critical", "safety_function"),
        ("guard", "a_cause_of_tomorrow", "near_miss", "protective_stop"),
        ("end", "out_of_bounds", "near_miss", "workspace_limit"),
        ("event", "separation_breach", "near_miss", "separation_breach"),
        ("event", "collision", "minor", "collision"),
        ("event", "person_contact", "major", "person_contact"),
    ],
)
def test_what_is_suggested(on, name, severity, category) -> None:
    rule = read_rules().rule_for(on, name, FIELDS, Side.REAL)
    assert rule is not None
    assert (rule.severity, rule.category) == (Severity(severity), Category(category))


def test_a_robot_that_was_not_seen_to_stand_is_milder_than_one_that_was_seen_to_move() -> None:
    unseen = read_rules().rule_for("guard", "no_standstill", {"limit": 0.1}, Side.REAL)
    assert unseen is not None
    assert unseen.severity is Severity.NEAR_MISS


def test_a_lost_simulation_is_no_incident() -> None:
    assert read_rules().rule_for("end", "lost", {}, Side.SIM) is None
    assert read_rules().rule_for("end", "lost", {}, Side.TWIN) is not None


def test_own_rules_go_first(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        RULE
        + '[[ignore]]\non = "guard"\nmatch = ["operator_stop"]\nreason = "a drill"\n'
        + RULE.replace('"force"', '"*"').replace('"own"', '"rest"')
    )
    rules = read_rules(tmp_path)
    found = {
        name: rules.rule_for("guard", name, FIELDS, Side.REAL)
        for name in ("force", "torque", "operator_stop", "a_cause_of_tomorrow")
    }
    assert {name: rule and rule.name for name, rule in found.items()} == {
        "force": "own",
        "torque": "torque",  # what takes anything goes after what names it
        "operator_stop": None,
        "a_cause_of_tomorrow": "rest",
    }


BROKEN = {
    "no TOML": ("[[rule]\n", "is not TOML"),
    "empty": ("", "holds neither"),
    "misspelt": (RULE.replace("severity", "severty"), r"rule\.0\.severty: .*did you mean"),
    "severity": (RULE.replace('"major"', '"bad"'), r"rule\.0\.severity: .*'bad'"),
    "category": (RULE.replace('"damage"', '"dent"'), r"rule\.0\.category: .*'dent'"),
    "nothing matched": (RULE.replace('["force"]', "[]"), r"rule\.0\.match"),
    "no words": (RULE.replace('"The gripper was bent."', '" "'), r"rule\.0\.words: is empty"),
    "end reason": (
        RULE.replace('"guard"', '"end"').replace('"force"', '"exploded"'),
        r"rule\.0\.match: no end reason 'exploded'",
    ),
    "anything of events": (
        RULE.replace('"guard"', '"event"').replace('"force"', '"*"'),
        r"rule\.0\.match: .*causes of the guard",
    ),
    "no reason": (
        '[[ignore]]\non = "guard"\nmatch = ["estop"]\n',
        r"ignore\.0\.reason: is missing",
    ),
    "quantity": (RULE + 'quantities = { force = "value" }\n', r"rule\.0\.quantities\.force"),
    "not UTF-8": (b"\xff", "line 1: is not UTF-8 text"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(BROKEN))
def test_a_broken_file_is_one_line_with_file_and_field(tmp_path: Path, case: str) -> None:
    content, said = BROKEN[case]
    path = tmp_path / "broken.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=said) as caught:
        read_rules(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_folder_without_rules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no rules"):
        read_rules(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        read_rules(tmp_path / "none")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_words_are_sentences_and_quantities_have_a_unit_or_say_where_it_is(path: Path) -> None:
    for rule in read_file(path).rule:
        assert rule.words[0].isupper()
        assert rule.words.endswith(".")
        if rule.on == "event":
            assert all(quantity.unit for quantity in rule.quantities.values())


def test_the_page_has_every_family_and_its_example_can_be_used(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "guard.md").read_text()
    families = {path.stem for path in FOLDER.glob("*.toml")} - {"no_incident"}
    assert all(f"| `{family}` |" in page for family in families)
    (tmp_path / "page.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    rules = read_rules(tmp_path)
    rule = rules.rule_for("guard", "force", FIELDS, Side.REAL)
    assert rule is not None
    assert rule.name == "gripper_force"
    assert rules.rule_for("guard", "operator_stop", {}, Side.REAL) is None
