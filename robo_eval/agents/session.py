"""What the server of a policy answers to each message of one connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from robo_eval.agents.wire import MAX_CHUNK, PROTOCOL, decode, encode
from robo_eval.core.errors import InputError
from robo_eval.core.policy import Policy
from robo_eval.core.trials import METHODS, call_if_there, checked_declaration

FAILED: Final = "the policy failed"
"""What an error that the policy raised begins with."""
_KINDS: Final = ("hello", "reset", "act", *METHODS)


def chunk_length(policy: Policy) -> int:
    """The most actions a policy answers at once: 1 unless it has `act_chunk`.

    Raises:
        InputError: If it has `act_chunk` and does not say how many.

    Example:
        >>> from robo_eval.agents import make_agent
        >>> chunk_length(make_agent("nothing"))
        1
    """
    if not callable(getattr(policy, "act_chunk", None)):
        return 1
    length = getattr(policy, "chunk_length", None)
    if type(length) is not int or not 1 <= length <= MAX_CHUNK:
        raise InputError(
            f"policy {policy.name!r} has act_chunk; it also needs chunk_length, the most actions"
            f" that answers, 1 to {MAX_CHUNK}; it has {length!r}"
        )
    return length


class Session:
    """One client's conversation with a policy of its own.

    Args:
        hello: Name, digest and chunk length, as the client is told.
        make: Makes the policy; called when the client first plays.
        alone: Held while the policy acts or is reset.
        anew: Makes the policy for a new trial, which nobody has played with; `make` if not given.

    Attributes:
        answered: How often the policy answered.
        problem: What broke the protocol; empty if nothing did.
    """

    def __init__(
        self,
        hello: Mapping[str, Any],
        make: Callable[[], Policy],
        alone: threading.Lock,
        anew: Callable[[], Policy] | None = None,
    ) -> None:
        self._hello = dict(hello)
        self._make = make
        self._anew = anew or make
        self._alone = alone
        self._policy: Policy | None = None
        self._is_known = False
        self._is_tried = False
        self.answered = 0
        self.problem = ""

    @property
    def is_over(self) -> bool:
        """Whether the connection is to be closed."""
        return bool(self.problem)

    @property
    def given_back(self) -> Policy | None:
        """The policy, if it was only tried: the next client may have it after a reset."""
        return self._policy if self._is_tried else None

    def answer(self, frame: str | bytes) -> str | bytes:
        """The frame that answers a frame; never raises for what came in or what the policy does."""
        number: object = None
        try:
            message = decode(frame)
            number = message.get("id")
            self._check(message)
        except InputError as err:
            self.problem = str(err)
            return _error(number, self.problem)
        if message["type"] == "hello":
            self._is_known = True
            return encode({"type": "hello", "id": number, "protocol": PROTOCOL, **self._hello})
        try:
            policy = self._playing(of_new_trial=message["type"] == "begin_trial")
            with self._alone:
                if message["type"] in METHODS:
                    return self._in_trial(policy, message)
                if message["type"] == "reset":
                    self._is_tried = message.get("tried") is True
                    policy.reset(seed=message.get("seed"))
                    return encode({"type": "ready", "id": number})
                begin_s = time.monotonic()
                actions = self._act(policy, message["value"])
                inference_s = time.monotonic() - begin_s
            self.answered += 1
            return encode({"type": "actions", "id": number, "inference_s": inference_s}, actions)
        except InputError as err:
            return _error(number, str(err))
        except (Exception, SystemExit) as err:  # noqa: BLE001 - the client is told, and goes on
            return _error(number, f"{FAILED}: {type(err).__name__}: {err}")

    def _check(self, message: Mapping[str, Any]) -> None:
        kind, number = message["type"], message.get("id")
        if type(number) is not int:
            raise InputError(f"a message of type {kind[:40]!r} has no whole number as its id")
        if kind not in _KINDS:
            raise InputError(f"unknown message type {kind[:40]!r}; valid: {', '.join(_KINDS)}")
        if kind == "hello":
            if message.get("protocol") != PROTOCOL:
                raise InputError(
                    f"the client speaks protocol {str(message.get('protocol'))[:20]}, and this"
                    f" server speaks {PROTOCOL}; install the same robo-eval on both machines"
                )
        elif not self._is_known:
            raise InputError(f"{kind} came before hello")
        if kind == "act" and "value" not in message:
            raise InputError("act came without an observation")
        seed = message.get("seed")
        if kind == "reset" and seed is not None and type(seed) is not int:
            raise InputError(f"reset has seed {str(seed)[:40]!r}, not a whole number or null")

    def _playing(self, *, of_new_trial: bool) -> Policy:
        if of_new_trial or self._policy is None:
            self._policy = self._anew() if of_new_trial else self._make()
        return self._policy

    def _in_trial(self, policy: Policy, message: Mapping[str, Any]) -> str | bytes:
        """What answers a message about a trial; what the policy has no method for, it ignores."""
        kind, number = message["type"], message["id"]
        info = message.get("info")
        if kind == "begin_episode" and not isinstance(info, dict):
            raise InputError(f"begin_episode has info {str(info)[:40]!r}, and no object")
        answer = call_if_there(policy, kind, *([info] if kind == "begin_episode" else []))
        if kind != "declare":
            return encode({"type": "ready", "id": number})
        return encode({"type": "declared", "id": number, "said": checked_declaration(answer)})

    def _act(self, policy: Policy, observation: Any) -> list[Any]:
        chunk: Final = self._hello["chunk"]
        act_chunk = getattr(policy, "act_chunk", None)
        if not callable(act_chunk):
            return [policy.act(observation)]
        actions = act_chunk(observation)
        if not isinstance(actions, list | tuple | np.ndarray) or not 1 <= len(actions) <= chunk:
            raise InputError(
                f"policy {policy.name!r}: act_chunk answered with a {type(actions).__name__}, not"
                f" with 1 to {chunk} actions"
            )
        return list(actions)


def _error(number: object, text: str) -> str | bytes:
    known = number if type(number) is int else None
    return encode({"type": "error", "id": known, "message": " ".join(text.split())[:300]})
