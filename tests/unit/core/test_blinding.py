"""Codes in place of names: the same when a run goes on, and none that the order gives away."""

from __future__ import annotations

from robo_eval.core.blinding import Blinding, blinding_of
from robo_eval.core.kinds import Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import schedule

NAMES = ["mine", "mine-2", "s1", "t0.l00+x", "easy"]


def plan(**keywords: object) -> TrialPlan:
    return TrialPlan.model_validate(
        {"name": "x", "tasks": [{"levels": [0, 9]}], "policies": NAMES, "blind": True, **keywords}
    )


def test_codes_depend_on_seed_and_digest_and_not_on_the_order_of_the_plan():
    digests = [f"{number:064x}" for number in range(40)]
    found = [blinding_of(plan(), digest).codes for digest in digests]
    assert all(sorted(codes.values()) == list("ABCDE") for codes in found)
    assert len({tuple(codes[name] for name in NAMES) for codes in found}) > 20
    assert blinding_of(plan(), "ab") == blinding_of(plan(), "ab")
    assert any(
        blinding_of(plan(order_seed=seed), "ab") != blinding_of(plan(), "ab") for seed in range(5)
    )
    assert blinding_of(plan(blind=False), "ab") == Blinding({})


def test_episode_ids_show_codes():
    checked = plan(control=True)
    blinding = blinding_of(checked, "0" * 64)
    for planned in schedule(checked, Side.TWIN):
        name = checked.policies[planned.policy].name
        shown = blinding.episode(f"{planned.base_id}-a3")
        assert shown.replace(f"-{blinding.codes[name]}-", f"-{name}-") == f"{planned.base_id}-a3"
        assert shown != f"{planned.base_id}-a3"
        assert Blinding({}).episode(planned.base_id) == planned.base_id
    no_levels = Blinding({"mine": "A"})
    assert no_levels.episode("t3-mine-s12") == "t3-A-s12"
    assert no_levels.episode("another thing") == "another thing"


def test_texts_show_codes_but_keep_other_words():
    blinding = Blinding({"mine": "A", "mine-2": "B", "rand": "C"})
    assert blinding.text("mine-2 beats mine, rand; random mined") == "B beats A, C; random mined"
    assert Blinding({}).text("mine") == "mine"


def test_many_policies_have_codes_of_their_own():
    many = TrialPlan.model_validate(
        {
            "name": "x",
            "tasks": [{}],
            "policies": [{"name": f"p{i}", "factory": "m:f"} for i in range(60)],
            "blind": True,
        }
    )
    assert len(set(blinding_of(many, "").codes.values())) == 60
