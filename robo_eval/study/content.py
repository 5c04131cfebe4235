"""What a test consists of, as a digest: results stay valid as long as it does."""

from __future__ import annotations

import importlib.util
import inspect
from typing import Any

import gymnasium

from robo_eval.core.canonical import digest


def environment_digest(env: gymnasium.Env[Any, Any]) -> str:
    """SHA-256 of what makes an environment what it is.

    An environment can say so itself by a text attribute `digest`. Of another one it covers the
    source text of its module, the name of its class, and the version of its distribution; what it
    imports is covered by that version alone.

    Args:
        env: As `gymnasium.make` gave it.
    """
    own = env.unwrapped
    said = getattr(own, "digest", None)
    if isinstance(said, str) and said:
        return said
    cls = type(own)
    return digest(
        {
            "class": f"{cls.__module__}.{cls.__qualname__}",
            "source": _source(cls),
            "version": _version(cls.__module__),
            "max_episode_steps": getattr(env.spec, "max_episode_steps", None),
        }
    )


def _source(cls: type[Any]) -> str:
    try:
        return inspect.getsource(inspect.getmodule(cls) or cls).replace("\r\n", "\n")
    except (OSError, TypeError):  # compiled, or typed in at a prompt
        return ""


def _version(module: str) -> str:
    package = module.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        return ""
    return str(getattr(importlib.import_module(package), "__version__", ""))
