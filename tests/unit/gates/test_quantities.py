"""Quantities that gates read: each is registered once, and a new one is read like any other."""

from __future__ import annotations

import pytest

from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.gates import QUANTITIES, Readings, assess
from robo_eval.gates.profile import FOLDER
from robo_eval.gates.quantity import _NUMBERS, REGISTERED, Quantity, about
from robo_eval.metrics.registry import names

TEXT = (FOLDER / "robotics.toml").read_text(encoding="utf-8")


def test_each_says_what_supplies_it_and_none_is_called_as_a_number_of_a_metric():
    assert {name: one.remedy for name, one in REGISTERED.items()} == QUANTITIES
    assert all(QUANTITIES.values())
    assert not REGISTERED.keys() & set(names())


def test_what_gates_know_of_numbers_of_metrics_is_of_numbers_there_are():
    assert _NUMBERS.keys() <= set(names(for_gates=True))
    said = about("AR_new_task")
    assert (said.noun, said.is_share, said.is_of_body) == ("task", True, True)
    assert said.remedy
    with pytest.raises(InputError, match="unknown metric"):
        about("nothing")


def test_a_new_one_is_a_function_and_a_line_of_a_profile(tmp_path, monkeypatch):
    monkeypatch.setitem(REGISTERED, "patched_days", None)  # taken out again after the test

    @Quantity("patched_days", "note the changes by people: checkpoints.csv", kind="duration")
    def patched_days(own):
        return Estimate.exact(float(own.upkeep.patched), unit="days", n=1)

    own = tmp_path / "lab.toml"
    own.write_text(TEXT.replace('reads = "QC_worst"', 'reads = "patched_days"'))
    found = assess(Readings(policy="arm", side="real", values={}), own)
    gate = next(one for one in found.gates if one.reads == "patched_days")
    assert (gate.status, gate.kind) == ("missing", "duration")
    assert gate.reason == "note the changes by people: checkpoints.csv"
