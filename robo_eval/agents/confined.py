"""How what a policy's author wrote is run in a process of its own, which ends if it hangs."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Self

from robo_eval.agents.registry import load_policy
from robo_eval.core.confined import Confined, can_fork, wait_for
from robo_eval.core.errors import InputError, RoboEvalError, said
from robo_eval.core.kinds import FaultBy
from robo_eval.core.plan import PolicyPlan
from robo_eval.core.trials import METHODS, call_if_there, checked_declaration

_MAKING: Final = (60.0, 10.0)
"""Making a policy may take so many seconds, or so many times as long as a decision."""


def making_limit_s(decision_timeout_s: float) -> float:
    """How long making a policy may take: networks load, libraries compile."""
    return max(_MAKING[0], _MAKING[1] * decision_timeout_s)


def digest_of(policy: PolicyPlan, decision_timeout_s: float) -> str:
    """The digest of a policy, made once; one by import path where it can do no harm.

    Raises:
        RoboEvalError: If it cannot be made, or not in time.
    """
    if policy.factory is None:
        return load_policy(policy.name, None, policy.kwargs).digest
    where = f"policy {policy.name!r}: factory {policy.factory!r}"
    limit_s = making_limit_s(decision_timeout_s)
    process = Confined(_make, policy, forks=can_fork())
    try:
        if not wait_for(process, limit_s):
            raise InputError(
                f"{where}: did not return within {limit_s:g} s; if it needs longer, raise"
                " decision_timeout_s, of which that is ten times, and a minute at least"
            )
        found: str | RoboEvalError = process.pipe.recv()
    except EOFError as err:
        raise InputError(f"{where}: the process that called it died") from err
    finally:
        process.end()
    if isinstance(found, RoboEvalError):
        raise found
    return found


def _make(_hears: Connection, pipe: Connection, policy: PolicyPlan) -> None:
    try:
        pipe.send(load_policy(policy.name, policy.factory, policy.kwargs).digest)
    except RoboEvalError as err:
        pipe.send(err)
    except BaseException as err:  # noqa: BLE001 - whatever it raises is told in one line
        where = f"policy {policy.name!r}: factory {policy.factory!r}"
        pipe.send(InputError(f"{where}: raised {said(err)}"))


def fault_of(err: BaseException) -> FaultBy:
    """Who is to blame for what a policy raised: itself, unless the way to it broke."""
    from robo_eval.agents.remote import LinkLostError

    return FaultBy.SETUP if isinstance(err, LinkLostError) else FaultBy.POLICY


# One policy, asked over a pipe: for a robot, whose ticks are long -------------------------------


class PolicyError(RoboEvalError):
    """A policy raised an error, took too long or answered with no action.

    Args:
        line: What went wrong, in one line.
        place: Where in whose code; may be empty.
        fault_by: Who that is by.
    """

    def __init__(self, line: str, place: str = "", fault_by: FaultBy = FaultBy.POLICY) -> None:
        super().__init__(line)
        self.place = place
        self.fault_by = fault_by


class ConfinedPolicy:
    """A policy in a process of its own, which is ended when an answer takes too long.

    The next `reset` makes the policy anew, in a fresh process.

    Args:
        policy: What the plan says of it.
        decision_timeout_s: How long a reset or an action may take, seconds.
        check: Called many times a second while it is waited for; what it raises ends the waiting.

    Attributes:
        name: Its name in the plan.
        digest: Its digest.

    Raises:
        InputError: If it cannot be made, or not in time.
    """

    def __init__(
        self,
        policy: PolicyPlan,
        decision_timeout_s: float,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.name = policy.name
        self.check = check
        self._policy = policy
        self._limit_s = decision_timeout_s
        self._process: Confined | None = None
        try:
            self.digest: str = self._made()
        except PolicyError as err:
            raise InputError(f"policy {self.name!r}: {err}") from err

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def reset(self, *, seed: int | None = None) -> None:
        """Forget the last episode; a process that was ended is started again.

        Raises:
            PolicyError: If the policy raises an error or takes too long.
        """
        if self._process is None:
            self._made()
        self._ask("the policy was not reset", self._limit_s, "reset", seed)

    def act(self, observation: Any) -> Any:
        """The action for this observation.

        Raises:
            PolicyError: If the policy raises an error or takes too long.
        """
        return self._ask("the policy gave no action", self._limit_s, "act", observation)

    def begin_trial(self) -> None:
        """Make the policy anew, and tell it that a trial begins.

        Raises:
            PolicyError: If the policy raises an error or takes too long.
        """
        self._end()
        self._made()
        self._ask("the policy did not begin a trial", self._limit_s, "begin_trial", ())

    def begin_episode(self, info: Mapping[str, Any]) -> None:
        """Tell the policy what it may know of the episode that begins.

        Raises:
            PolicyError: If the policy raises an error or takes too long.
        """
        problem = "the policy did not begin an episode"
        self._ask(problem, self._limit_s, "begin_episode", (dict(info),))

    def declare(self) -> object:
        """What the policy declares after the episode that has ended; None if nothing.

        Raises:
            PolicyError: If the policy raises an error, takes too long or declares what cannot be.
        """
        return self._ask("the policy did not declare", self._limit_s, "declare", ())

    @property
    def queued_s(self) -> float:
        """How long its process and this one were ready to run and had no processor, seconds."""
        return 0.0 if self._process is None else self._process.queued_s

    def measures(self) -> dict[str, float]:
        """What the policy measured of itself since `reset`."""
        if self._process is None:
            return {}
        found: dict[str, float] = self._ask("no measures came", self._limit_s, "measures", None)
        return found

    def _made(self) -> str:
        self._process = Confined(_serve, self._policy, forks=False)
        limit_s = making_limit_s(self._limit_s)
        digest: str = self._ask("the policy was not made", limit_s, "digest", None)
        return digest

    def _ask(self, problem: str, limit_s: float, what: str, given: object) -> Any:
        if self._process is None:
            raise PolicyError("the policy's process has ended; the next reset starts it again")
        self._process.tell((what, given))
        is_done = False
        try:
            # Stopped by whomever: a robot does not wait for it.
            if not wait_for(self._process, limit_s, self.check, even_stopped=True):
                raise PolicyError(f"{problem} within {limit_s:g} s")
            found = self._process.pipe.recv()
            is_done = True
        except EOFError as err:
            raise PolicyError("the policy's process died") from err
        finally:
            if not is_done:  # an answer may be under way that nobody awaits
                self._end()
        if isinstance(found, _Raised):
            raise PolicyError(found.line, found.place, found.fault_by)
        return found

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()


@dataclass(frozen=True, slots=True)
class _Raised:
    """An error on its way from the process of a policy."""

    line: str
    place: str
    fault_by: FaultBy


def _serve(hears: Connection, speaks: Connection, plan: PolicyPlan) -> None:
    policy: Any = None
    while True:
        what, given = hears.recv()
        answer: object = None
        try:
            if what == "digest":
                policy = load_policy(plan.name, plan.factory, plan.kwargs)
                answer = policy.digest
            elif what == "reset":
                policy.reset(seed=given)
            elif what == "act":
                answer = policy.act(given)
            elif what in METHODS:
                answer = call_if_there(policy, what, *given)
                answer = checked_declaration(answer) if what == "declare" else None
            elif callable(getattr(policy, "measures", None)):
                answer = {str(name): float(value) for name, value in policy.measures().items()}
            else:
                answer = {}
            speaks.send(answer)
        except BaseException as err:  # noqa: BLE001 - whatever it raises is told
            frames = traceback.extract_tb(err.__traceback__)
            place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}, " if frames else ""
            speaks.send(_Raised(said(err), place, fault_of(err)))
