"""A calibration snapshot says the same when it is read again, and a broken one says where."""

import math
from datetime import UTC, date, datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import PlanError, TrialDirectoryError, UnknownNameError
from robo_eval.core.task import task_named
from robo_eval.log import files
from robo_eval.log.snapshot import (
    Accepted,
    Identified,
    Noise,
    Residuals,
    Snapshot,
    Used,
    Validity,
    read_snapshot,
    write_snapshot,
)

TASK = "RoboEval/CartPole3D-v0"
LOW, HIGH = next((c.low, c.high) for c in task_named(TASK).constants if c.name == "cart_mass_kg")
ABOVE = HIGH + 0.1
MASS = Identified(
    value=1.3, low=1.29, high=1.31, unit="kg", nominal=1.0, n=2, by_recording=(1.25, ABOVE),
    between_sd=0.01, method="re_kh", verdict="identified",
)  # fmt: skip


def snapshot(**changes):
    return Snapshot(
        **{
            "name": "identified", "task": TASK, "robot": "gantry", "side": "twin",
            "made": datetime(2026, 11, 29, 10, tzinfo=UTC),
            "valid": Validity(from_=date(2026, 11, 29), until=date(2026, 12, 13), by="calendar"),
            "recordings": (
                Used(id="rec-1", episode="e1", sha256="a" * 64),
                Used(id="rec-2", episode="e2"),
                Used(id="rec-3", episode="e3", dropped="fell at once"),
            ),
            "constants": {
                "cart_mass_kg": MASS.model_copy(update={"by_recording": (1.25, ABOVE, None)}),
                "pole_mass_kg": Identified(
                    verdict="weak", with_=("cart_mass_kg",), unit="kg", kept=0.1
                ),
            },
            "noise": Noise(sensors={"position_noise_m": 0.001}, force={"force_noise_n": 0.3}),
        }
        | changes
    )  # fmt: skip


texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,20}", fullmatch=True)
shares = st.one_of(st.none(), st.floats(1e-6, 1e6))


@given(
    name=names,
    robot=texts,
    value=st.floats(LOW, HIGH),
    recordings=st.lists(
        st.tuples(names, texts, st.none() | texts), min_size=1, unique_by=lambda one: one[0]
    ),
    reason=st.none() | texts,
    numbers=st.tuples(shares, shares, shares),
    keywords=st.dictionaries(names, st.one_of(st.booleans(), st.integers(0, 9), texts), max_size=3),
)  # fmt: skip
def test_what_is_written_is_read(
    tmp_path_factory, name, robot, value, recordings, reason, numbers, keywords
):
    made = snapshot(
        name=name,
        robot=robot,
        recordings=tuple(
            Used(id=id_, episode=episode, dropped=dropped) for id_, episode, dropped in recordings
        ),
        constants={
            "cart_mass_kg": Identified(
                value=value, verdict="identified", by_recording=(value,) * len(recordings),
                reason=reason, unit="kg",
            ),
        },
        residuals=Residuals(chi2=numbers[0], skill=numbers[1], share=numbers[2], reasons=("x",)),
        accepted=Accepted(verdict=True, reason=reason),
        keywords=keywords,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("snapshot") / "made.yaml"
    write_snapshot(made, path)
    accepted = made.accepted.model_copy(update={"sha256": made.sha256})
    assert read_snapshot(path) == made.model_copy(update={"accepted": accepted})


def test_rows_are_named_by_the_recordings_that_count():
    assert snapshot().row_names() == ["identified/rec-1", "identified/rec-2"]


def test_what_is_played():
    made = snapshot()
    everything = {
        "cart_mass_kg": 1.3, "pole_mass_kg": 0.1, "position_noise_m": 0.001, "force_noise_n": 0.3,
    }  # fmt: skip
    assert made.played() == everything
    assert made.played("rec-1") == everything | {"cart_mass_kg": 1.25}
    assert made.played(noise=False, force=False).keys() == {"cart_mass_kg", "pole_mass_kg"}
    # A recording's estimate beyond the bounds is played at the bound.
    assert made.played("rec-2")["cart_mass_kg"] == HIGH
    with pytest.raises(UnknownNameError, match="rec-1"):
        made.played("rec-9")


def test_where_no_constants_explain_recordings_neither_noise_nor_force_is_played():
    nominal = MASS.model_copy(update={"by_recording": (), "kept": 1.0})
    made = snapshot(constants={"cart_mass_kg": nominal}, residuals=Residuals(verdict="structure"))
    assert made.played() == made.played("rec-1") == {"cart_mass_kg": 1.0}
    assert [("nominal" in one, "explain" in one) for one in made.warnings] == [(True, True)]


def test_an_estimate_that_is_played_at_a_bound_is_told():
    (told,) = snapshot(accepted=Accepted(verdict=True, reason=None)).warnings
    assert told.startswith(f"cart_mass_kg of rec-2 is {ABOVE:g} kg, beyond")
    assert told.endswith(f"{HIGH:g} is played")
    kept = MASS.model_copy(update={"kept": 1.0})
    assert snapshot(constants={"cart_mass_kg": kept}, recordings=(
        Used(id="rec-1", episode="e1"), Used(id="rec-2", episode="e2"),
    )).clamped == []  # fmt: skip


def test_noise_that_is_the_least_believed_is_not_told_as_found():
    noise = Noise(sensors={"position_noise_m": 0.001, "tilt_noise_rad": 0.0002})
    assert snapshot(noise=noise).noise_found["tilt_noise_rad"] == "0.0002"
    noise = noise.model_copy(update={"floored": ("tilt_noise_rad",)})
    found = snapshot(noise=noise).noise_found
    assert found["position_noise_m"] == "0.001"
    assert found["tilt_noise_rad"].startswith("0.0002 or less")


@pytest.mark.parametrize(
    ("given_", "word"),
    [
        ({"task": "RoboEval/PickPlace-v0"}, "PickPlace"),
        ({"robot": "another"}, "another"),
        ({"day": date(2026, 12, 14)}, "2026-12-13"),
        ({"day": date(2026, 11, 28)}, "2026-11-29"),
    ],
)
def test_what_it_should_not_be_played_for(given_, word):
    (problem,) = snapshot().problems(**given_)
    assert word in problem


def test_what_it_may_be_played_for():
    assert not snapshot().problems(task=TASK, robot="gantry", day=date(2026, 12, 13))


# Where a snapshot is changed, into what, and which field the refusal names.
BROKEN = [
    ("", {"version": 2}, "version"),
    ("", {"robott": 1}, "robott"),
    ("", {"recordings": []}, "recordings"),
    ("", {"recordings": [{"id": "rec-1", "episode": "e1"}] * 2}, "recordings"),
    ("", {"name": "a/b"}, "name"),
    ("valid", {"until": "2026-01-01"}, "until"),
    ("constants", {"cart_mas_kg": MASS.model_dump(mode="json")}, "cart_mas_kg"),
    ("constants.cart_mass_kg", {"by_recording": [1.0]}, "by_recording"),
    ("constants.cart_mass_kg", {"by_recording": [1.2, 99.0, None]}, "by_recording.1"),
    ("constants.cart_mass_kg", {"by_recording": [math.nan, 1.2, None]}, "by_recording.0"),
    ("constants.cart_mass_kg", {"value": 1e6, "low": None, "high": None}, "value"),
    ("constants.cart_mass_kg", {"value": 2.0}, "value"),
    ("constants.cart_mass_kg", {"unit": "g"}, "unit"),
    ("constants.cart_mass_kg", {"verdict": "sure"}, "verdict"),
    ("constants.pole_mass_kg", {"unit": None}, "unit"),
    ("constants.pole_mass_kg", {"kept": None}, ""),
    ("noise.sensors", {"position_noise_m": 1e6}, "position_noise_m"),
    ("noise.force", {"force_noise_n": math.nan}, "force_noise_n"),
]


@pytest.mark.parametrize(("place", "change", "field"), BROKEN)
def test_a_broken_one_names_file_and_field(tmp_path, place, change, field):
    path = tmp_path / "made.yaml"
    write_snapshot(snapshot(), path)
    data = part = yaml.safe_load(path.read_text())
    for name in filter(None, place.split(".")):
        part = part[name]
    part.update(change)
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(PlanError) as told:
        read_snapshot(path)
    assert str(told.value).startswith(f"{path}: ")
    assert ".".join(filter(None, (place, field))) in str(told.value)
    assert "\n" not in str(told.value)


def test_the_unit_to_write_is_said(tmp_path):
    path = tmp_path / "made.yaml"
    mass = MASS.model_copy(update={"unit": "g", "by_recording": ()})
    write_snapshot(snapshot(constants={"cart_mass_kg": mass}), path)
    with pytest.raises(PlanError, match=r"made\.yaml: .*unit: is 'g'; write 'kg'"):
        read_snapshot(path)


CHANGES = {
    "a value within its interval": lambda d: d["constants"]["cart_mass_kg"].update(value=1.295),
    "a value and its interval": lambda d: d["constants"]["cart_mass_kg"].update(
        value=2.0, low=1.9, high=2.1
    ),
    "noise": lambda d: d["noise"]["sensors"].update(position_noise_m=0.002),
    "its last day": lambda d: d["valid"].update(until="2027-12-13"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_was_changed_since_it_was_accepted_is_refused(tmp_path, kind):
    path = tmp_path / "made.yaml"
    write_snapshot(snapshot(accepted=Accepted(verdict=True, reason=None)), path)
    again = read_snapshot(path)
    write_snapshot(again, path)
    assert read_snapshot(path) == again
    data = yaml.safe_load(path.read_text())
    CHANGES[kind](data)
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(PlanError) as told:
        read_snapshot(path)
    for word in ("made.yaml: accepted.sha256", "changed since it was accepted", "validate"):
        assert word in str(told.value)
    # Without what was accepted it can be read, and validated again.
    del data["accepted"]
    path.write_text(yaml.safe_dump(data))
    assert not read_snapshot(path).accepted.verdict


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(PlanError, match=r"gone\.yaml"):
        read_snapshot(tmp_path / "gone.yaml")


def test_nothing_is_written_half(tmp_path, monkeypatch):
    path = tmp_path / "made.yaml"
    write_snapshot(snapshot(), path)
    before = path.read_bytes()

    def full(*_given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(TrialDirectoryError, match=r"made\.yaml"):
        write_snapshot(snapshot(name="other"), path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["made.yaml"]
