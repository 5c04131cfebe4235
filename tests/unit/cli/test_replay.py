"""What `robo-eval replay` prints."""

from __future__ import annotations

from typing import Any

import pytest

from robo_eval.cli.replay import print_drift

SECONDS = ("0.1", "0.2", "0.5", "1", "2", "4")


def episode(name: str, metres: float) -> dict[str, Any]:
    """An episode in which two parts drift, and which ended before four seconds."""
    parts = {"cart_position_m": metres, "pole_quat_xyzw_rad": 0.3}
    within = {
        f"{part}_within_{seconds}_s": None if seconds == "4" else value
        for part, value in parts.items()
        for seconds in SECONDS
    }
    return {"episode_id": name, "ticks": 185, "apart": list(parts), **within}


def test_a_distance_stands_in_a_table_of_its_part_and_unit_by_episode(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_drift([episode("t0-l09-s1010-twin", 0.0049), episode("t0-l00-s1000-twin", 2e-16)])
    carts, poles = capsys.readouterr().out.split("pole_quat_xyzw:")
    assert carts.startswith("cart_position: ")
    assert ("in m\n" in carts, "in rad\n" in poles) == (True, True)
    first, second = (line for line in carts.splitlines() if "twin" in line)
    assert first.split() == ["t0-l00-s1000-twin", "185", *["2e-16"] * 5, "-"]
    assert second.split() == ["t0-l09-s1010-twin", "185", *["0.005"] * 5, "-"]
