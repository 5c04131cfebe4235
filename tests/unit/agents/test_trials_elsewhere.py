"""A policy in another process, or on another machine, remembers a trial as it would here."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from robo_eval.agents.confined import ConfinedPolicy, PolicyError, fault_of
from robo_eval.agents.registry import load_policy
from robo_eval.agents.remote import LinkLostError, RemotePolicy, RemotePolicyError
from robo_eval.agents.serve import PolicyServer
from robo_eval.core.kinds import FaultBy
from robo_eval.core.plan import PolicyPlan
from robo_eval.core.trials import InTrial, asked_to_declare, begin_in_trial

MODULE = """
import threading


class Counts:
    name, digest = "counts", "counts-1"

    def __init__(self, bad=False, hangs=False):
        self.bad, self.hangs, self.trials, self.acts, self.told = bad, hangs, 0, 0, None

    def begin_trial(self):
        self.trials += 1

    def begin_episode(self, info):
        self.told = info

    def reset(self, *, seed=None):
        pass

    def act(self, observation):
        self.acts += 1
        if self.hangs and self.acts == 3:
            threading.Event().wait(self.hangs)
        return self.acts if self.bad != "act" else float("nan")

    def declare(self):
        if self.bad is True:
            return {"probability": 7}
        return {"probability": self.acts / 100, "entity": f"{self.trials} {self.told}"}


class Plain:
    name, digest = "plain", "plain-1"

    def reset(self, *, seed=None):
        pass

    def act(self, observation):
        return 0
"""
WHERE = ("here", "confined", "remote")


def test_a_policy_that_was_stopped_is_ended_and_made_anew_for_a_robot():
    with ConfinedPolicy(PolicyPlan(name="balancer"), 0.3) as policy:
        process = policy._process
        assert process is not None
        os.kill(process._process.pid, signal.SIGSTOP)
        with pytest.raises(PolicyError, match=r"not reset within 0\.3 s"):
            policy.reset(seed=1)
        assert not process.is_alive
        policy._limit_s = 30.0
        policy.reset(seed=1)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    (tmp_path / "counting.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    with ExitStack() as opened:

        def make(where: str, cls: str = "Counts", **kwargs: Any) -> Any:
            plan = PolicyPlan(name="counts", factory=f"counting:{cls}", kwargs=kwargs)
            if where == "confined":
                return opened.enter_context(ConfinedPolicy(plan, 30.0))
            if where == "here":
                return load_policy(plan.name, plan.factory, plan.kwargs)
            server = PolicyServer(lambda: load_policy(plan.name, plan.factory, plan.kwargs), port=0)
            server.start()
            opened.callback(server.stop)
            policy = RemotePolicy(server.url, timeout_s=0.1 if "hangs" in kwargs else 2.0)
            policy.server = server  # type: ignore[attr-defined]
            return policy

        yield make
    sys.modules.pop("counting", None)


def places(n: int) -> list[InTrial]:
    return [
        InTrial(
            cell="t0", number=0, episode=k, episodes=n, onset=1, is_novel=k > 0, condition="given"
        )
        for k in range(n)
    ]


def played(policy: Any, n: int = 2) -> list[Any]:
    found = []
    for place in places(n):
        begin_in_trial(policy, place, {"novelty": {"level": 6}} if place.is_novel else {})
        policy.reset(seed=3)
        found.append([policy.act(0.0), policy.act(0.0), asked_to_declare(policy, place)])
    return found


@pytest.mark.parametrize("where", WHERE)
def test_memory_lasts_a_trial(made: Callable[..., Any], where: str) -> None:
    policy = made(where)
    first, second = played(policy)
    assert first[:2] == [1, 2]
    assert second[:2] == [3, 4]
    assert first[2]["entity"] == "1 {'novelty_indicator': False}"
    assert second[2]["entity"] == "1 {'novelty_indicator': True, 'novelty': {'level': 6}}"
    assert second[2]["probability"] == 0.04
    if where != "here":  # where the runner makes the policy anew
        assert played(policy) == [first, second]


@pytest.mark.parametrize("where", WHERE)
def test_a_policy_without_the_methods_is_told_nothing(made: Callable[..., Any], where: str) -> None:
    assert played(made(where, "Plain")) == [[0, 0, None]] * 2


@pytest.mark.parametrize(
    ("where", "error"), [("confined", PolicyError), ("remote", RemotePolicyError)]
)
def test_a_bad_declaration_is_the_policys_error(
    made: Callable[..., Any], where: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match="probability"):
        played(made(where, bad=True))


def test_a_policy_that_was_tried_begins_no_trial(made: Callable[..., Any]) -> None:
    tried = made("remote")
    tried.is_tried = True
    tried.reset(seed=1)
    tried.act(0.0)
    other = RemotePolicy(tried.url)
    tried._link.close()
    assert played(other)[0][:2] == [1, 2]


def test_a_connection_that_breaks_ends_the_trial(made: Callable[..., Any]) -> None:
    policy = made("remote")
    played(policy)
    policy._link.close()
    place = places(2)[1]
    with pytest.raises(LinkLostError, match="remembered"):
        begin_in_trial(policy, place, {})
    with pytest.raises(LinkLostError, match="remembered"):
        policy.reset(seed=3)


@pytest.mark.parametrize(
    ("does", "said"), [({"hangs": 0.5}, "no answer within"), ({"bad": "act"}, "not finite")]
)
def test_what_the_policy_ended_is_by_the_policy_for_the_rest_of_its_trial(
    made: Callable[..., Any], does: dict[str, Any], said: str
) -> None:
    policy = made("remote", **does)
    with pytest.raises(RemotePolicyError, match=said):
        played(policy)
    for place in places(3)[1:]:
        with pytest.raises(RemotePolicyError, match=f"its trial ended: .*{said}") as caught:
            begin_in_trial(policy, place, {})
        assert fault_of(caught.value) is FaultBy.POLICY
    with pytest.raises(RemotePolicyError, match=said):
        policy.reset(seed=3)
