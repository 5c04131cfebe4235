"""A twin that is asked to end ends with 0, however often and whoever else is there."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import robo_eval_twin

HERE = Path(__file__).parent
TWIN = Path(robo_eval_twin.__file__).with_name("gantry_twin.yaml")
DEADLINE_S = 120.0
AT_ONCE = 3


@pytest.mark.slow
def test_a_twin_ends_on_sigint_and_on_sigterm(
    begin: Callable[..., subprocess.Popen[str]],
    wait_until: Callable[..., None],
    tmp_path: Path,
) -> None:
    """Six of each signal; some at a time, each a robot of its own on one graph."""
    text = TWIN.read_text()
    spaces = [f"/twin{number}" for number in range(AT_ONCE)]
    witnesses = {}
    for space in spaces:
        (tmp_path / f"{space[1:]}.yaml").write_text(text.replace("/twin0", space))
        witnesses[space] = begin(HERE / "rig_faults.py", json.dumps({"namespace": space}))
    asked = [number for number in (signal.SIGINT, signal.SIGTERM) for _ in range(6)]
    for first in range(0, len(asked), AT_ONCE):
        before = {space: states(witnesses[space]) for space in spaces}
        twins = {
            space: begin("-m", "robo_eval_twin.twin_node", f"{space[1:]}.yaml") for space in spaces
        }
        for (space, twin), number in zip(twins.items(), asked[first:], strict=False):
            witness, heard = witnesses[space], before[space]
            wait_until(lambda w=witness, n=heard: states(w) > n, f"{space} speaks")
            twin.send_signal(number)
        for (space, twin), _ in zip(twins.items(), asked[first:], strict=False):
            _, err = twin.communicate(timeout=DEADLINE_S)
            assert (twin.returncode, err) == (0, ""), (space, err)


def states(witness: subprocess.Popen[str]) -> int:
    """How many joint states a witness has heard."""
    assert witness.stdin is not None
    assert witness.stdout is not None
    witness.stdin.write("seen\n")
    witness.stdin.flush()
    while True:
        said = json.loads(witness.stdout.readline())
        if "seen" in said:
            return int(said["seen"]["states"])
