"""What anybody but the policy asks for is never passed on, and stops the robot."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from robo_eval.core.plan import OTHER_AUTHOR
from robo_eval_robot.guard import GuardState, Reaction
from robo_eval_robot.guard_checks import Code, Request
from robo_eval_robot.guard_peers import Origin
from tests.unit.robot.test_guard import JOINTS, PERIOD_S, Bench

ASKED = {"policy": (0.25, 0.0), "stray": (-0.25, 0.0)}
NODES = {"policy": "/bench/policy", "stray": "/bench/stray"}


def looked(bench: Bench, *requesters: str, beaters: tuple[str, ...] | None = None) -> None:
    """Who is on the policy's topics, as the graph has it."""
    requests, beats = (
        {source: NODES.get(source, "/bench/policy") for source in sources}
        for sources in (requesters, requesters if beaters is None else beaters)
    )
    bench.guard.peers.requests.nodes, bench.guard.peers.beats.nodes = requests, beats


def running(*there: str) -> Bench:
    """Enabled while some publishers are there, and nobody has asked for anything."""
    bench = Bench().ready()
    looked(bench, *there)
    answer = bench.guard.enable(on=True, now=bench.now)
    assert answer.success, answer.message
    bench.sent.clear()
    return bench


def asks(bench: Bench, source: str, sequence: int | None = None) -> Reaction:
    bench.now += PERIOD_S
    bench.joints()
    request = Request(names=JOINTS, values=ASKED[source], stamp_ns=bench.wall_ns)
    origin = Origin(source, sequence)
    return bench.take(
        bench.guard.request(request, wall_ns=bench.wall_ns, now=bench.now, origin=origin)
    )


def beats(bench: Bench, source: str, sequence: int | None = None) -> Reaction:
    return bench.take(bench.guard.policy_beat(bench.now, Origin(source, sequence)))


def cycles(bench: Bench, periods: int) -> None:
    """Nobody says anything but the driver."""
    for _ in range(periods):
        bench.tick(policy=False)


def test_log_and_guard_call_it_the_same() -> None:
    assert OTHER_AUTHOR == Code.OTHER_AUTHOR


STEP = st.tuples(st.sampled_from(["policy", "stray"]), st.sampled_from([asks, beats]))


@given(
    there=st.sampled_from([(), ("policy",)]),
    steps=st.lists(STEP, min_size=1, max_size=30),
)
@example(there=("policy",), steps=[("stray", asks)])
@example(there=("policy",), steps=[("stray", beats)])
def test_nothing_of_a_second_author_is_passed_on(there: tuple[str, ...], steps: list) -> None:
    """Who is there alone when motion is enabled is the policy; else who comes first, by topic."""
    bench = running(*there)
    owners = dict.fromkeys((asks, beats), there[0]) if there else {}
    for source, says in steps:
        before = bench.state
        passed = bench.guard.counts.passed
        bench.sent.clear()
        reaction = says(bench, source)
        if before is not GuardState.RUNNING:
            assert bench.guard.counts.passed == passed
        elif source == owners.setdefault(says, source):
            assert bench.state is GuardState.RUNNING
            assert bench.sent == ([ASKED[source]] if says is asks else [])
        else:
            assert [each.code for each in reaction.incidents] == [Code.OTHER_AUTHOR]
            assert bench.guard.counts.passed == passed
            assert bench.guard.causes == [Code.OTHER_AUTHOR]
            assert reaction.stopped
        if bench.state is not GuardState.RUNNING:
            assert ASKED["stray" if owners.get(asks) == "policy" else "policy"] not in bench.sent


@pytest.mark.parametrize("says", [asks, beats])
@pytest.mark.parametrize("there", [("policy",), ("policy", "stray")])
def test_with_the_policy_silent_a_stray_keeps_nothing_running(says, there) -> None:
    bench = running("policy")
    looked(bench, *there)  # it joins later, and the graph may or may not know yet
    reaction = says(bench, "stray")
    assert bench.state is GuardState.PROTECTIVE_STOP
    (incident,) = reaction.incidents
    assert incident.code is Code.OTHER_AUTHOR
    assert ("/bench/stray" if "stray" in there else "publisher stray") in incident.message
    assert "/bench/policy/joint_command" in incident.message or says is beats


def test_a_stray_that_was_there_before_keeps_motion_from_being_enabled() -> None:
    bench = Bench().ready()
    looked(bench, "policy", beaters=("policy", "stray"))
    answer = bench.guard.enable(on=True, now=bench.now)
    assert not answer.success
    assert "/bench/policy and /bench/stray publish on /bench/heartbeat/policy" in answer.message
    looked(bench, "policy")
    cycles(bench, 1)
    assert bench.guard.enable(on=True, now=bench.now).success


def test_a_stop_is_not_reset_before_the_stray_is_gone() -> None:
    bench = running("policy")
    asks(bench, "stray")
    cycles(bench, 60)
    looked(bench, "policy", "stray")
    assert not bench.guard.reset(bench.now).success
    looked(bench, "policy")
    assert bench.guard.reset(bench.now).success


def test_a_policy_that_was_started_again_is_heard_although_the_graph_shows_two() -> None:
    bench = running("killed", "policy")  # of one node name
    asks(bench, "policy")
    assert bench.sent == [ASKED["policy"]]
    asks(bench, "stray")
    assert bench.state is GuardState.PROTECTIVE_STOP


def test_the_next_policy_may_be_another() -> None:
    bench = running("policy")
    asks(bench, "policy")
    bench.guard.enable(on=False, now=bench.now)
    cycles(bench, 60)
    looked(bench, "stray")
    assert bench.guard.enable(on=True, now=bench.now).success
    bench.sent.clear()
    asks(bench, "stray")
    assert bench.sent == [ASKED["stray"]]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=20))
def test_a_message_counts_once_and_in_order(numbers: list[int]) -> None:
    bench = running("policy")
    for number in numbers:
        asks(bench, "policy", number)
    newest = [n for i, n in enumerate(numbers) if n > max(numbers[:i], default=0)]
    assert bench.state is GuardState.RUNNING
    assert bench.guard.counts.passed == len(newest)
    assert bench.guard.counts.refused == len(numbers) - len(newest)
    assert bench.guard.peers.requests.missed == newest[-1] - newest[0] + 1 - len(newest)


def test_a_heartbeat_that_is_repeated_is_no_sign_of_life() -> None:
    bench = running("policy")
    for number in range(60):
        asks(bench, "policy")
        beats(bench, "policy", min(number, 5))
        bench.take(bench.guard.cycle(bench.now))
        bench.guard.peers.heard_driver(bench.now)
    assert bench.guard.causes == [Code.POLICY_HEARTBEAT]
