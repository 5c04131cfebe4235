"""What an agent's changes to itself were worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.formulas import checks
from robo_eval.formulas.checks import Numbers

REVISION_SCALE: Final = 0.10
"""Gain, weighted by autonomy, that counts as full self-revision. This project's choice."""

_STEPS: Final = ("propose", "implement", "validate")
_ARMS: Final = ("pre", "post", "ctrl_pre", "ctrl_post")
_KEYS: Final = (*_ARMS, "delta", *_STEPS, "autonomy")
_ALIASES: Final[Mapping[str, str]] = {
    "control_pre": "ctrl_pre",
    "control_post": "ctrl_post",
    "alpha": "autonomy",
}


class RevisionEvent(TypedDict, total=False):
    """One revision, measured on the same held-out tasks before and after.

    Either the four qualities or `delta`, and either the three shares or `autonomy`. Other keys,
    such as an identifier, are not read.

    Attributes:
        pre: Quality before, in [0, 1].
        post: Quality after.
        ctrl_pre: Quality of a frozen copy, measured at the time of `pre`. Also `control_pre`.
        ctrl_post: Quality of the same frozen copy at the time of `post`. Also `control_post`.
        delta: Gain over the control, if it is known already; or draws of it.
        propose: 1 if the agent proposed the revision, else 0.
        implement: Share of the edits that were applied without a human.
        validate: Share of the acceptance checks that needed no human label.
        autonomy: Weighted mean of the three shares, or the three, in order or by name. Also
            `alpha`.
    """

    pre: float
    post: float
    ctrl_pre: float
    ctrl_post: float
    delta: float | NDArray[np.float64]
    propose: float
    implement: float
    validate: float
    autonomy: float | Sequence[float] | Mapping[str, float]


class SelfRevision(TypedDict):
    """Gain and autonomy of each event, and the self-revision axis."""

    deltas: list[float]
    autonomy: list[float]
    r: float


def self_revision(
    events: Iterable[RevisionEvent | Mapping[str, object]],
    scale: float = REVISION_SCALE,
    *,
    step_weights: Numbers | None = None,
    positive_part: bool = False,
) -> SelfRevision:
    """Self-revision axis R: gains of an agent's revisions, each weighted by how much was its own.

    A gain is the difference after less before, minus that of a frozen control. Only admissible
    revisions belong here: resources matched, logged, and the gain gone when they are taken back.

    Args:
        events: The revisions of the window; see `RevisionEvent`.
        scale: Sum of autonomy times gain that counts 1; 0.10 is this project's choice.
        step_weights: Weights of proposing, implementing and validating; none for equal ones, this
            project's choice.
        positive_part: Whether a harmful revision counts 0. By this project's choice it subtracts.

    Returns:
        Gains and autonomy factors in the order of `events`, and R in [0, 1], of draws an array; 0
        and empty lists if there were no revisions, as this is a measurement, too.

    Raises:
        InputError: If a key is missing, both a number and its parts are given, or a number is out
            of range.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.

    Example:
        >>> found = self_revision([
        ...     {"pre": 0.62, "post": 0.70, "ctrl_pre": 0.61, "ctrl_post": 0.63,
        ...      "propose": 1, "implement": 0.9, "validate": 0.8},
        ...     {"delta": -0.01, "autonomy": 0.5},
        ... ])
        >>> print(f"{found['r']:.2f}")
        0.49
    """
    full = checks.positive("scale", scale)
    weights = [float(w) for w in checks.weights_of("step_weights", step_weights, len(_STEPS))]
    if isinstance(events, Mapping) or not isinstance(events, Iterable):
        raise InputError(f"events is a {type(events).__name__}; it must be a sequence of events")
    deltas, shares = list[float](), list[float]()
    for i, event in enumerate(events):
        known = _named(f"events[{i}]", event)
        deltas.append(_delta(f"events[{i}]", known))
        shares.append(_autonomy(f"events[{i}]", known, weights))
    gains = [np.maximum(delta, 0.0) if positive_part else delta for delta in deltas]
    total = checks.total([a * gain for a, gain in zip(shares, gains, strict=True)])
    return {"deltas": deltas, "autonomy": shares, "r": checks.clip(total / full)}


def _named(name: str, event: object) -> dict[str, object]:
    return {_ALIASES.get(key, key): value for key, value in checks.mapping(name, event).items()}


def _delta(name: str, event: Mapping[str, object]) -> float:
    if _is_whole(name, event, "delta", _ARMS):
        return checks.real(f"{name}['delta']", event["delta"], low=-2.0, high=2.0)
    pre, post, ctrl_pre, ctrl_post = (checks.share(f"{name}[{arm!r}]", event[arm]) for arm in _ARMS)
    return (post - pre) - (ctrl_post - ctrl_pre)


def _autonomy(name: str, event: Mapping[str, object], weights: list[float]) -> float:
    if _is_whole(name, event, "autonomy", _STEPS):
        given = event["autonomy"]
        if isinstance(given, Mapping):
            return _autonomy(f"{name}['autonomy']", given, weights)
        if checks.is_single(given):
            return checks.share(f"{name}['autonomy']", given)
        steps = checks.numbers(f"{name}['autonomy']", given, low=0.0, high=1.0).tolist()
        if len(steps) != len(_STEPS):
            raise InputError(
                f"{name}['autonomy'] has {len(steps)} values; give one, or one each for "
                f"{', '.join(_STEPS)}"
            )
    else:
        steps = [checks.share(f"{name}[{step!r}]", event[step]) for step in _STEPS]
    return checks.clip(math.fsum(w * a for w, a in zip(weights, steps, strict=True)))


def _is_whole(name: str, event: Mapping[str, object], whole: str, parts: tuple[str, ...]) -> bool:
    """Whether a number is given itself; the alternative is that all its parts are."""
    given = [part for part in parts if part in event]
    if whole in event and given:
        raise InputError(f"{name} has both {whole!r} and {given[0]!r}; give one or the other")
    missing = [part for part in parts if part not in event]
    if whole not in event and missing:
        # Other keys are the caller's business, unless one of them may be the missing one misspelt.
        unknown = [key for key in event if key not in _KEYS]
        if unknown:
            raise unknown_name(f"key in {name}", unknown[0], _KEYS)
        raise InputError(f"{name} lacks {missing[0]!r}; give {', '.join(parts)}, or {whole!r}")
    return whole in event
