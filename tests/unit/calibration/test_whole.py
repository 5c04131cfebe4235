"""Constants found in recordings that are played whole, of an arm whose constants are known here."""

from dataclasses import replace
from itertools import pairwise

import gymnasium
import numpy as np
import pytest

from robo_eval_calibration.expected import expected
from robo_eval_calibration.fit import fitted
from robo_eval_calibration.held_out import held_out
from robo_eval_calibration.innovations import declared_noise, physics_of
from robo_eval_calibration.intervals import Verdict, half_width
from robo_eval_calibration.recordings import Recording
from robo_eval_calibration.whole import WholeJob, _Search, untouched
from robo_eval_sim.tasks.pick_place.spec import SPEC

TICK_S, TICKS, CLOSES = SPEC.tick_s, 40, 18
HIDDEN = {
    "gain": 0.9, "delay_s": 7 * TICK_S / 12, "payload_kg": 0.2, "object_mass_kg": 0.12,
    "friction": 0.6,
}  # fmt: skip
NOMINAL = {name: one.nominal for name, one in physics_of(SPEC).items()}
SDS = {"states": [5e-4] * 7 + [0.0], "wrench": [0.3] * 3 + [0.03] * 3, "things": 5e-4}


class Toy:
    """Joints that follow their commands, a hand that weighs, and a thing that slips in it."""

    task = SPEC
    slips = True

    def replayed(self, start, commands, constants):
        used = NOMINAL | dict(constants)
        whole, part = divmod(used["delay_s"] / TICK_S, 1.0)
        home = np.array(start["joint_position"])
        asked = np.vstack([np.tile(home, (int(whole) + 1, 1)), commands[:, :7]])
        asked = (1.0 - part) * asked[1:] + part * asked[:-1]
        states, wrench, things = [[*home, 0.08]], [[0.0] * 6], [np.zeros(3)]
        for tick, command in enumerate(commands):
            now = np.array(states[-1][:7])
            then = now + 0.4 * used["gain"] * (asked[tick] - now)
            is_held = tick > CLOSES
            load = 0.81 + used["payload_kg"] + is_held * used["object_mass_kg"]
            grips = 1.0 - np.exp(-2.0 * used["friction"]) if self.slips else 1.0
            states.append([*then, command[7]])
            wrench.append([0.0, 0.0, -9.81 * load, 0.0, 0.1 * load, 0.0])
            things.append(things[-1] + is_held * grips * (then - now)[:3])
        poses = np.zeros((len(things), 1, 7))
        poses[:, 0, :3] = things
        efforts = -5.0 * np.array(wrench)[1:, [2] * 9]
        return {
            "states": np.array(states), "efforts": efforts, "wrench": np.array(wrench),
            "things": poses,
        }  # fmt: skip


def play(seed, model=None, hidden=HIDDEN, **fields):
    rng = np.random.default_rng(seed)
    start = {"joint_position": rng.uniform(-0.1, 0.1, 7).tolist()}
    way = np.cumsum(rng.normal(0.0, 0.1, (TICKS, 7)), axis=0)
    commands = np.column_stack([way, np.where(np.arange(TICKS) < CLOSES, 0.08, 0.0)])
    seen = (model or Toy()).replayed(start, commands, hidden)
    for name, sd in SDS.items():
        shape = seen[name][..., :3].shape if name == "things" else seen[name].shape
        seen[name][..., : shape[-1]] += sd * rng.standard_normal(shape)
    return Recording(
        **{
            "id": f"rec-{seed}", "env": SPEC.env, "side": "sim", "start": start,
            "stamp_ns": np.arange(TICKS + 1) * 50_000_000, "commands": commands, **seen,
        } | fields
    )  # fmt: skip


@pytest.fixture(scope="module")
def recordings():
    return [play(seed) for seed in range(4)]


@pytest.fixture(scope="module")
def found(recordings):
    return fitted(recordings, model=Toy())


def verdicts(found):
    return {name: one.judged.verdict for name, one in found.found.items()}


def test_hidden_constants_are_found(found):
    for name, truth in HIDDEN.items():
        estimate = found.found[name].estimate
        assert estimate.low <= truth <= estimate.high, name
        assert estimate.value == pytest.approx(truth, rel=0.1), name
    assert found.found["delay_s"].by_unit == pytest.approx((HIDDEN["delay_s"],) * 4)
    assert verdicts(found)["gain"] is verdicts(found)["delay_s"] is Verdict.IDENTIFIED
    assert found.noise["joint_noise_rad"] == pytest.approx(5e-4, rel=0.2)
    assert found.structure.reasons == ()


def test_the_interval_of_what_comes_in_quanta_is_one_wide_at_least(found):
    estimate = found.found["delay_s"].estimate
    assert estimate.high - estimate.low >= TICK_S / 12 * 0.999


def test_what_never_slides_tells_no_friction(recordings):
    class Tight(Toy):
        slips = False

    tight = [play(seed, Tight()) for seed in range(2)]
    said = fitted(tight, model=Tight()).found["friction"].judged
    assert said.verdict is Verdict.NOT_IDENTIFIABLE
    foretold = expected(Tight(), tight, NOMINAL, declared_noise(SPEC)).judged["friction"]
    assert foretold.verdict is Verdict.NOT_IDENTIFIABLE


def test_without_forces_no_load_is_told(recordings):
    blind = [replace(one, wrench=None, efforts=None) for one in recordings[:2]]
    said = verdicts(fitted(blind, model=Toy()))
    assert said["payload_kg"] is said["object_mass_kg"] is Verdict.NOT_IDENTIFIABLE
    assert said["gain"] is not Verdict.NOT_IDENTIFIABLE


def test_motors_tell_a_load_where_no_wrench_is_measured(recordings):
    some = [replace(one, wrench=None) for one in recordings[:2]]
    found = fitted(some, model=Toy(), given={"friction": 0.6})
    assert found.found["object_mass_kg"].estimate.value == pytest.approx(0.12, rel=0.05)
    assert "friction" not in found.found


def test_a_group_knows_what_was_hung_on(recordings):
    heavy = play(9, hidden=HIDDEN | {"payload_kg": 0.7}, known={"payload_kg": 0.5}, group="g")
    found = fitted([replace(recordings[0], group="g"), heavy], model=Toy())
    assert found.units == (("rec-0", "rec-9"),)
    assert found.found["payload_kg"].estimate.value == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize("constants", [NOMINAL, HIDDEN])
def test_check_foretells_how_wide_the_intervals_are(recordings, found, constants):
    # Far from the truth as well, where all errors are large.
    now = expected(Toy(), recordings, constants, declared_noise(SPEC))
    for name in ("gain", "delay_s", "payload_kg", "object_mass_kg"):
        one = found.found[name].estimate
        assert 0.4 < now.half_widths[name] / half_width(one) < 2.5, name


def test_recordings_that_were_not_used_are_foretold_better(found):
    others = [play(seed) for seed in (20, 21)]
    noise = {**declared_noise(SPEC), **found.noise}
    told = held_out(Toy(), others, found.constants, NOMINAL, noise)
    assert told.reason is None
    assert told.left == pytest.approx(1.0, abs=0.2)
    nothing = held_out(Toy(), others, NOMINAL, NOMINAL, noise)
    assert nothing.reason is not None


def test_a_gain_far_away_is_found(recordings):
    far = [play(1, hidden=HIDDEN | {"gain": 0.3})]
    assert fitted(far, model=Toy()).found["gain"].estimate.value == pytest.approx(0.3, rel=0.02)


def test_lost_states_count_for_nothing(recordings):
    states = recordings[0].states.copy()
    states[[5, 30]] = np.nan
    found = fitted([replace(recordings[0], states=states)], model=Toy())
    assert found.found["gain"].estimate.value == pytest.approx(0.9, rel=0.02)


class Motors(Toy):
    """Joints that come to where they are asked in ramps of one speed."""

    def replayed(self, start, commands, constants):
        used = NOMINAL | dict(constants)
        home = np.array(start["joint_position"])
        late = np.tile(home, (round(used["delay_s"] / TICK_S * 12), 1))
        asked = np.vstack([home, late, np.repeat(commands[:, :7], 12, axis=0)])
        target, states = home, [home]
        for before, now in pairwise(asked[: 12 * len(commands) + 1]):
            if (now != before).any():
                target = states[-1] + used["gain"] * (now - states[-1])
            states.append(states[-1] + np.clip(target - states[-1], -0.00125, 0.00125))
        joints = np.array(states)[::12]
        none = np.zeros((len(joints), 8))
        return {
            "states": np.column_stack([joints, np.full(len(joints), 0.08)]),
            "efforts": none[1:], "wrench": none[:, :6], "things": none[:, None, :7],
        }  # fmt: skip


def job_of(one, model, *names):
    return WholeJob(
        model=model, unit=(one,), start=NOMINAL, names=names, noise=declared_noise(SPEC)
    )


@pytest.mark.parametrize(("gain", "delay_s"), [(0.8, TICK_S), (1.0, 2 * TICK_S)])
def test_gain_and_delay_are_found_where_ramps_make_errors_jump(gain, delay_s):
    rng = np.random.default_rng(1)
    home, periods, sizes = (rng.uniform(*ends, 7) for ends in ((-0.1, 0.1), (4, 9), (0.1, 0.25)))
    start = {"joint_position": home.tolist()}
    waves = home + sizes * np.sin(np.arange(TICKS)[:, None] / periods)
    commands = np.column_stack([waves, np.full(TICKS, 0.08)])
    seen = Motors().replayed(start, commands, {"gain": gain, "delay_s": delay_s})
    seen["states"] += 5e-4 * rng.standard_normal(seen["states"].shape)
    one = play(1, start=start, commands=commands, **seen)
    found = job_of(one, Motors(), "gain", "delay_s").fit()
    assert found.values == pytest.approx([gain, delay_s], rel=0.01)
    assert found.is_settled


def test_a_search_that_a_restart_betters_has_not_settled(recordings, monkeypatch):
    costs = {0: (500.0, 1.0), 7: (400.0, 0.9)}
    for order, is_settled in (((0, 7), False), ((7, 0), True)):
        ends = iter(order)

        def walked(search, *args, ends=ends):
            search.tried |= costs
            return next(ends)

        monkeypatch.setattr(_Search, "_walked", walked)
        found = job_of(recordings[0], Toy(), "gain", "delay_s").fit()
        assert found.is_settled is is_settled
        assert found.values[1] == pytest.approx(HIDDEN["delay_s"])


def test_noise_is_found_as_well_where_states_are_lost(recordings):
    rng, some = np.random.default_rng(0), []
    for one in recordings:
        states = one.states.copy()
        states[rng.random(len(states)) < 0.19] = np.nan
        some.append(replace(one, states=states))
    whole = replace(job_of(recordings[0], Toy()), unit=tuple(recordings), start=HIDDEN)
    lossy = replace(whole, unit=tuple(some))
    noise, told = (job.sizes(HIDDEN)["joint_noise_rad"] for job in (whole, lossy))
    assert told == pytest.approx(noise, rel=0.1)
    assert lossy.missed() == pytest.approx(whole.missed(), rel=0.03)


def test_fits_are_kept_by_all_that_they_depend_on(recordings, tmp_path, monkeypatch):
    first = fitted(recordings[:1], model=Toy(), jobs_folder=tmp_path)
    monkeypatch.setattr(WholeJob, "fit", lambda job: pytest.fail("played again"))
    assert fitted(recordings[:1], model=Toy(), jobs_folder=tmp_path).found == first.found
    one = recordings[0]
    for other in ({"wrench": one.wrench + 1.0}, {"things": one.things + 1.0}, {"start": {"a": 1}}):
        with pytest.raises(pytest.fail.Exception, match="played again"):
            fitted([replace(one, **other)], model=Toy(), jobs_folder=tmp_path)


def test_until_when_nothing_is_touched(recordings):
    one = recordings[0]
    assert untouched(one) == CLOSES
    assert untouched(replace(one, things=None)) == CLOSES
    # A gripper that closes on nothing touches nothing.
    still = np.zeros_like(one.things)
    assert untouched(replace(one, things=still)) == TICKS


@pytest.mark.slow
def test_an_arm_of_the_engine_is_recovered():
    from robo_eval.agents import make_agent

    hidden = {"gain": 0.9, "delay_s": 7 * TICK_S / 12, "object_mass_kg": 0.12}
    played = []
    for seed in (1, 2):
        env = gymnasium.make(SPEC.env, obs_mode="state+wrench", constants=hidden).unwrapped
        agent = make_agent("pick-place")
        agent.reset(seed=seed)
        seen, commands, is_over = [env.reset(seed=seed)[0]], [], False
        start = env.physical_state()
        while not is_over:
            commands.append(agent.act(seen[-1]))
            observation, _, terminated, truncated, _ = env.step(commands[-1])
            seen.append(observation)
            is_over = terminated or truncated
        rows = np.array(seen, dtype=float)
        played.append(
            Recording(
                id=str(seed), env=SPEC.env, side="sim", start=start,
                stamp_ns=np.arange(len(rows)) * 50_000_000, states=env.channels(rows),
                commands=np.array(commands, dtype=float), wrench=rows[:, -6:],
            )
        )  # fmt: skip
    found = fitted(played).found
    assert found["delay_s"].by_unit == pytest.approx((hidden["delay_s"],) * 2)
    assert found["gain"].estimate.value == pytest.approx(0.9, rel=0.01)
    mass = found["object_mass_kg"].estimate
    assert mass.low <= 0.12 <= mass.high
