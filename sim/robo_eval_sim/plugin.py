"""How `gymnasium.make` knows our environments although nobody imported us.

Gymnasium gave up its entry points with version 1.0. The line in `robo_eval_gymnasium.pth` imports
this module whenever Python starts; it imports nothing else, and waits until somebody imports
Gymnasium. Registering imports no simulator.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` would make every start of Python slower
    from importlib.machinery import ModuleSpec
    from types import ModuleType

REGISTRY = "gymnasium.envs.registration"


class _Waiting:
    """A finder that finds nothing, and is there when Gymnasium's registry is imported."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """What to import for a name: for the registry the usual thing, followed by ours."""
        if name != REGISTRY:
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            from robo_eval_sim.registration import register_environments

            register_environments()

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Register now if Gymnasium is imported already, or as soon as it is."""
    if REGISTRY in sys.modules:
        from robo_eval_sim.registration import register_environments

        register_environments()
    elif not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


install()
