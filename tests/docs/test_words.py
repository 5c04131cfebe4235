"""The page of trials holds the words by which reports of agents are judged, of every level.

This file, run as a program, writes them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from robo_eval.core.kinds import Profile
from robo_eval.core.task import tasks
from robo_eval_sim.novelty.base import LESS, MORE, Level, Words

PAGE = Path(__file__).parents[2] / "docs/trials.md"
BEGIN = "<!-- begin: tests/docs/test_words.py writes this from the levels -->"
END = "<!-- end -->"
CARTPOLE, ARM = "RoboEval/CartPole3D-v0", "robo_eval_sim.arm.levels"
ENTITIES = {"cart", "pole", "block", "obstacle", "walls", "location", "player"}
ATTRIBUTES = {
    "quantity", "size", "value", "speed", "direction", "position", "angle", "gravity", "mass",
    "force", "friction", "bounce",
}  # fmt: skip
CHANGES = {"increase", "decrease", "increasing", "decreasing"}


def levels() -> Iterator[tuple[str, Level]]:
    """Those of CartPole3D, and each axis of the arm once, with the task it is of."""
    seen = set()
    for env, spec in tasks().items():
        for level in spec.levels().values():
            is_ours = env == CARTPOLE or type(level).__module__.startswith(ARM)
            if level.number and is_ours and type(level) not in seen:
                seen.add(type(level))
                yield env, level


def said(level: Level) -> Words:
    """The words; of a quantity that may grow or fall, both changes."""
    entity, attribute, change = level.words[Profile.PAPER]
    falls = change == MORE and level.usual
    return entity, attribute, f"{MORE}, {LESS}" if falls else change


def lines() -> Iterator[str]:
    """The table."""
    yield "| | level or axis | entity | attribute | change |"
    yield "|---|---|---|---|---|"
    rows = []
    for env, level in levels():
        kind = "CartPole3D" if env == CARTPOLE else "arm"
        rows.append((kind, level.number, f"{level.number} `{level.name}`", said(level)))
        compat = level.words[Profile.COMPAT]
        if compat != level.words[Profile.PAPER]:
            rows.append((kind, level.number, f"{level.number} `{level.name}`, `compat`", compat))
    rows.sort(key=lambda row: (row[0] == "arm", row[3][:2] if row[0] == "arm" else (), row[1]))
    for kind, _, name, words in rows:
        yield f"| {kind} | {name} | {' | '.join(word or 'not declared' for word in words)} |"


def parts() -> tuple[str, str, str]:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    middle, after = rest.split(END)
    return before + BEGIN, middle.strip(), END + after


def test_the_page_lists_the_words() -> None:
    assert parts()[1] == "\n".join(lines()), f"run {__file__} to write the page anew"


def test_every_level_says_what_is_new_in_the_words_of_the_published_form() -> None:
    found = [level for env, level in levels() if env == CARTPOLE]
    assert [level.number for level in found] == list(range(1, 17))
    for level in found:
        assert set(level.words) == set(Profile)
        for entity, attribute, change in level.words.values():
            assert entity in ENTITIES
            assert attribute in ATTRIBUTES
            verb, _, towards = (change or "increase").partition(" ")
            assert (verb in CHANGES) if not towards else (verb in ("away", "toward"))
            assert not towards or towards in ENTITIES
    assert len([level for env, level in levels() if env != CARTPOLE]) == 27
    assert all(len(level.words[Profile.PAPER]) == 3 for _, level in levels())


@pytest.mark.parametrize(
    ("env", "novelty", "change"),
    [
        (CARTPOLE, {"cart_mass": 20.0}, "increase"),
        (CARTPOLE, {"cart_mass": 0.5}, "decrease"),
        (CARTPOLE, {"gravity": 4.0}, "decrease"),
        (CARTPOLE, {"pole_length": 0.5}, "decrease"),
        (CARTPOLE, {"restitution": 0.8}, "decrease"),
        (CARTPOLE, {"balls_apart": 2.0}, "away block"),
        (CARTPOLE, {"balls_on_lines": 2.0}, None),
        ("RoboEval/PickPlace-v0", {"light": 0.5}, "decrease"),
        ("RoboEval/PickPlace-v0", {"light": 2.0}, "increase"),
        ("RoboEval/PickPlace-v0", {"payload": 1.0}, "increase"),
    ],
)
def test_a_smaller_magnitude_than_usual_is_a_decrease(
    env: str, novelty: dict[str, float], change: str | None
) -> None:
    made = gymnasium.make(env, novelty=novelty)
    try:
        assert made.unwrapped.novelty is None
        made.reset(seed=1)
        assert made.unwrapped.novelty["truth"].get("change") == change
        assert "truth" not in str(made.step(made.action_space.sample())[4])
    finally:
        made.close()


def test_several_axes_at_once_and_none_have_no_truth() -> None:
    for keywords in ({"novelty": {"cart_mass": 5.0, "gravity": 20.0}}, {"level": 0}):
        made = gymnasium.make(CARTPOLE, **keywords)
        made.reset(seed=1)
        assert "truth" not in made.unwrapped.novelty
        made.close()


if __name__ == "__main__":
    before, _, after = parts()
    PAGE.write_text(f"{before}\n" + "\n".join(lines()) + f"\n{after}", encoding="utf-8")
