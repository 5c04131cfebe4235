"""The embodiment score of a robot: reliability, safety and agreement with simulation in one."""

from __future__ import annotations

from typing import Final

from robo_eval import formulas
from robo_eval.core.estimate import Estimate

_METHOD: Final = "ends_of_the_parts"


def embodiment_score(
    ar: Estimate | float | None, ss: Estimate | float | None, s2r: Estimate | float | None
) -> Estimate:
    """Embodiment score E: geometric mean of AR, SS and S2R.

    The score rises with each part, so its ends are those of the parts: an interval that covers at
    least as often as theirs do together, and is wider than one that knew how the parts hang
    together.

    Args:
        ar: Actuation reliability of the robot, with or without an interval.
        ss: Safety score.
        s2r: Sim-to-real agreement.

    Returns:
        The score; no value, and the reason, if a part has none. An interval only if all parts have
        one.

    Raises:
        InputError: If a part is not in [0, 1].

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.1 and 7.
    """
    parts = {"AR": ar, "SS": ss, "S2R": s2r}
    values = {
        name: part.value if isinstance(part, Estimate) else part for name, part in parts.items()
    }
    estimates = [part for part in parts.values() if isinstance(part, Estimate)]
    # What E rests on are episodes; incidents and hours are not counted with them.
    n = ar.n if isinstance(ar, Estimate) else min((part.n for part in estimates), default=0)
    missing = [name for name, value in values.items() if value is None]
    value = formulas.embodiment(values["AR"], values["SS"], values["S2R"])
    if value is None:
        reasons = [
            f"{name}: {part.reason}" if isinstance(part, Estimate) else f"{name} is missing"
            for name, part in parts.items()
            if name in missing
        ]
        return Estimate.missing(reason="; ".join(reasons), unit="ratio", n=n, method=_METHOD)
    ends = [
        [getattr(part, end) for part in estimates if getattr(part, end) is not None]
        for end in ("low", "high")
    ]
    if len(estimates) < len(parts) or any(len(end) < len(parts) for end in ends):
        return Estimate(
            value=value,
            n=n,
            method="none",
            unit="ratio",
            reason="a part has no interval",
        )
    low, high = (formulas.embodiment(*(min(max(x, 0.0), 1.0) for x in end)) for end in ends)
    return Estimate(
        value=value,
        low=low,
        high=high,
        level=min(part.level for part in estimates),
        n=n,
        method=_METHOD,
        unit="ratio",
    )
