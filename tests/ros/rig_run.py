"""`robo-eval` whose guard and twin speak and hear under other names: somebody is in between.

Environment: RIG_REMAPS is a JSON object of remapping rules by process, such as
`{"twin": ["/twin0/joint_states:=/twin0/wire/joint_states"]}`.
"""

from __future__ import annotations

import json
import os
import runpy
from collections.abc import Sequence

from robo_eval_robot.children import Children

RULES: dict[str, list[str]] = json.loads(os.environ.get("RIG_REMAPS", "{}"))
start_plain = Children.start


def start(self: Children, name: str, module: str, arguments: Sequence[str]) -> None:
    rules = [part for rule in RULES.get(name, []) for part in ("-r", rule)]
    start_plain(self, name, module, [*arguments, *(["--ros-args", *rules] if rules else [])])


if __name__ == "__main__":  # and not in each worker of the simulator
    from robo_eval_robot import conductor

    Children.start = start  # type: ignore[method-assign]
    conductor.of_session = list  # names that who is in between knows
    runpy.run_module("robo_eval", run_name="__main__", alter_sys=True)
