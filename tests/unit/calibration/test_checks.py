"""Each thing that can be wrong with recordings is found, and named with its remedy."""

from dataclasses import replace

import numpy as np
import pytest

from robo_eval.core.defaults import HOLD_OUT
from robo_eval_calibration.checks import checked, refusals
from robo_eval_calibration.made import LEAST, split

RATES = {"cart_vx": 2, "cart_vy": 3, "pole_roll_rate": 6, "pole_pitch_rate": 7}


@pytest.fixture(scope="module")
def clean(play):
    return [
        replace(play(seed, ticks=120), robot="gantry", begun_ns=seed * 10**9)
        for seed in range(1, 7)
    ]


def changed(one, column=None, rows=slice(None), value=None, scale=1.0):
    states = one.states.copy()
    states[rows, column] = states[rows, column] * scale if value is None else value
    return replace(one, states=states)


def said(recordings, gantry, check):
    found = [one for one in checked(recordings, gantry.task) if one.check == check]
    assert found, f"{check} says nothing"
    for one in found:
        assert one.verdict == "ok" or one.remedy
    return found


def test_clean_recordings_pass_every_check(clean, gantry):
    assert {one.verdict for one in checked(clean, gantry.task)} == {"ok"}


@pytest.mark.parametrize(("count", "is_enough"), [(1, False), (4, False), (5, False), (6, True)])
def test_too_few_for_validate_to_accept_any_is_said_before_a_fit(clean, gantry, count, is_enough):
    (one,) = said(clean[:count], gantry, "origin")
    assert one.verdict == ("ok" if is_enough else "warn")
    assert is_enough or "record 6 at least" in one.remedy
    assert (len(split(clean[:count], HOLD_OUT)[1]) >= LEAST) is is_enough


def first(change):
    """What is wrong with the first of several recordings."""
    return lambda all_: [change(all_[0]), *all_[1:]]


def every(change):
    return lambda all_: [change(one) for one in all_]


def gaps(share):
    def make(one):
        count = round(share * one.ticks)
        return changed(one, slice(None), slice(20, 20 + count), np.nan)

    return make


def stamps(change):
    return lambda one: replace(one, stamp_ns=change(one.stamp_ns.copy()))


def jumped(stamp_ns, by_s):
    stamp_ns[50:] += round(by_s * 1e9)
    return stamp_ns


def swapped(one):
    return replace(one, states=one.states[:, [0, 1, 3, 2, 4, 5, 6, 7]])


FAULTS = {
    "NaN in a channel": ("numbers", "refuse", first(lambda r: changed(r, 4, 30, np.nan))),
    "infinite state": ("numbers", "refuse", first(lambda r: changed(r, 0, 30, np.inf))),
    "no commands": (
        "numbers", "refuse", first(lambda r: replace(r, commands=np.empty((r.ticks, 0)))),
    ),
    "a command is NaN": (
        "numbers", "refuse",
        first(lambda r: replace(r, commands=np.full_like(r.commands, np.nan))),
    ),
    "too few channels": ("numbers", "refuse", first(lambda r: replace(r, states=r.states[:, :4]))),
    "stamps go back": ("clocks", "refuse", first(stamps(lambda s: jumped(s, -0.5)))),
    "a clock jumps": ("clocks", "refuse", first(stamps(lambda s: jumped(s, 3600.0)))),
    "cut short": ("clocks", "warn", first(lambda r: replace(r, cut="no state for 2 s"))),
    "half the rate": ("rates", "refuse", first(stamps(lambda s: 2 * s))),
    "uneven": (
        "rates", "warn",
        first(stamps(lambda s: s + np.random.default_rng(1).integers(0, 12_000_000, len(s)))),
    ),
    "some states lost": ("gaps", "warn", first(gaps(0.05))),
    "many states lost": ("gaps", "refuse", first(gaps(0.4))),
    "a sensor is stuck": ("saturation", "warn", first(lambda r: changed(r, 0, slice(9, 60), 0.1))),
    "another task": ("origin", "refuse", first(lambda r: replace(r, env="RoboEval/Drawer-v0"))),
    "a force is NaN": (
        "numbers", "refuse",
        first(lambda r: replace(r, wrench=np.where(np.arange(r.ticks + 1)[:, None] == 9, np.nan,
                                                   np.ones((r.ticks + 1, 6))))),
    ),
    "other settings": ("origin", "refuse", first(lambda r: replace(r, keywords={"balls": 2}))),
    "two robots": ("origin", "refuse", first(lambda r: replace(r, robot="another"))),
    "a copy": ("origin", "refuse", lambda all_: [*all_, replace(all_[0], id="copy")]),
    "all alike": ("origin", "refuse", lambda all_: [replace(all_[0], id=one.id) for one in all_]),
    "one only": ("origin", "warn", lambda all_: all_[:1]),
    "axes of rates swapped": ("units", "refuse", every(swapped)),
    "nobody commands": (
        "excitation", "refuse", every(lambda r: replace(r, commands=np.zeros_like(r.commands))),
    ),
    "one motor idle": (
        "excitation", "warn", every(lambda r: replace(r, commands=r.commands * [1.0, 0.0])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(clean, gantry, fault):
    check, verdict, make = FAULTS[fault]
    found = said(make(clean), gantry, check)
    assert {one.verdict for one in found} == {verdict}, found
    assert all(one.recording in ("", *(one.id for one in clean), "copy") for one in found)


@pytest.mark.parametrize(
    ("recordings", "ticks", "verdict"), [(2, 12, "refuse"), (4, 12, "warn"), (4, 30, "ok")]
)
def test_two_recordings_of_12_ticks_are_too_few(play, gantry, recordings, ticks, verdict):
    # Of these, a rate once looked like that of another channel.
    every = [play(20 + seed, ticks=ticks) for seed in range(recordings)]
    (found,) = said(every, gantry, "length")
    assert found.verdict == verdict
    if verdict != "ok":
        assert f"too few: {recordings * ticks} ticks in {recordings} recordings" in found.text
    assert {one.verdict for one in said(every, gantry, "units")} == {"ok"}


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("scale", [57.29578, 1000.0, -1.0, 0.1])
def test_a_rate_in_another_unit_is_refused(clean, gantry, name, scale):
    found = said([changed(one, RATES[name], scale=scale) for one in clean], gantry, "units")
    assert [one.verdict for one in found] == ["refuse"]
    assert name in found[0].text


def test_degrees_are_told_by_name(clean, gantry):
    found = said([changed(one, 6, scale=57.29578) for one in clean], gantry, "units")
    assert "degrees" in found[0].text


def test_a_drive_at_its_end_is_told(play, gantry):
    made = [
        play(seed, ticks=80, with_efforts=True, push=lambda force: np.clip(force, -4, 4))
        for seed in (1, 2)
    ]
    found = said(made, gantry, "saturation")
    assert [one.recording for one in found] == [one.id for one in made]


def test_refusals_are_those_of_the_verdict(clean, gantry):
    found = checked([replace(clean[0], env="other"), *clean[1:]], gantry.task)
    assert [one.check for one in refusals(found)] == ["origin"]
