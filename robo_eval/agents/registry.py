"""Which agents can be named, how one is built, and what its digest covers."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError, foreign
from robo_eval.core.names import unknown_name
from robo_eval.core.policy import Policy
from robo_eval.core.sources import source_of, sources

PolicyClass = TypeVar("PolicyClass", bound=type[Any])

_REGISTERED: Final[dict[str, type[Any]]] = {}
_MARK: Final = re.compile(r'^@agent\("([^"]+)"\)', re.MULTILINE)
_DIGESTED: Final = (
    "robo_eval.agents",
    "robo_eval_sim.tasks",
    "robo_eval_sim.arm.layout",
    "robo_eval_sim.arm.chain",
)
"""Packages and modules whose source counts as part of an agent's behaviour."""


def agent(name: str) -> Callable[[PolicyClass], PolicyClass]:
    """Register a class as the agent of this name; every keyword of its constructor is optional.

    Raises:
        InputError: If another class has the name already.
    """

    def register(cls: PolicyClass) -> PolicyClass:
        other = _REGISTERED.setdefault(name, cls)
        if other is not cls:
            raise InputError(
                f"agent {name!r} is registered twice: by {other.__module__} and {cls.__module__}"
            )
        cls.name = name
        return cls

    return register


@functools.cache
def _modules() -> dict[str, str]:
    """Which module of this package or of a folder in it registers each agent.

    Read from the source text and not by importing: most agents need numpy, and an unknown name in
    a plan is to be refused sooner than that loads.
    """
    package = importlib.import_module(__package__ or "robo_eval.agents")
    found: dict[str, str] = {}
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = info.name
        for name in _MARK.findall(source_of(module)):
            if name in found:
                raise InputError(
                    f"agent {name!r} is registered twice: by {found[name]} and {module}"
                )
            found[name] = module
    return found


def agent_names() -> list[str]:
    """Names of the registered agents, sorted."""
    return sorted({*_modules(), *_REGISTERED})


def make_agent(name: str, /, **kwargs: Any) -> Policy:
    """Build a registered agent.

    Args:
        name: One of `agent_names()`.
        **kwargs: Its keywords; those not given take their defaults.

    Raises:
        UnknownNameError: If there is no such agent, or it has no such keyword.
        InputError: If a keyword's value cannot be used.

    Example:
        >>> make_agent("balancer").name
        'balancer'
    """
    if name not in _REGISTERED:
        if name not in _modules():
            raise unknown_name("agent", name, agent_names())
        importlib.import_module(_modules()[name])
    cls = _REGISTERED[name]
    valid = [p.name for p in inspect.signature(cls).parameters.values()]
    for key in kwargs:
        if key not in valid:
            raise unknown_name(f"keyword of agent {name!r}", key, valid or ["(it takes none)"])
    made: Policy = cls(**kwargs)
    return made


def load_policy(
    name: str, factory: str | None = None, kwargs: Mapping[str, Any] | None = None
) -> Policy:
    """The policy a plan names: a registered agent, or what an import path returns.

    Modules are looked for on the Python path, then in the current folder. A policy that a
    factory made takes the plan's name.

    Args:
        name: Name of the policy in the plan; the registered name if there is no factory.
        factory: `package.module:callable`; the callable returns the policy.
        kwargs: Keywords for the agent or the callable.

    Raises:
        UnknownNameError: If there is no such agent, keyword or attribute.
        InputError: If the module is missing or cannot be imported, the callable refuses the
            keywords, or what it returns is not a policy.
    """
    keywords = dict(kwargs or {})
    if not factory:
        return make_agent(name, **keywords)
    where = f"policy {name!r}: factory {factory!r}"
    with foreign(where, "calling it"):
        made = _call(callable_at(factory, where), keywords, where)
        missing = [part for part in ("act", "reset", "digest") if not hasattr(made, part)]
        if missing:
            raise InputError(
                f"{where}: returned a {type(made).__name__} without {', '.join(missing)}; a policy"
                " has act(observation), reset(seed=...), name and digest"
            )
        try:
            made.name = name
        except AttributeError as err:
            raise InputError(f"{where}: the policy's name cannot be set to {name!r}") from err
        if not isinstance(made, Policy):
            raise InputError(f"{where}: returned a {type(made).__name__}, which is not a policy")
        stated: object = made.digest
        if not isinstance(stated, str) or not stated:
            raise InputError(f"{where}: the policy's digest must be a text, given {stated!r:.60}")
        policy: Policy = made
    return policy


def callable_at(factory: str, where: str) -> Callable[..., Any]:
    """The callable an import path leads to.

    Args:
        factory: The path, `package.module:callable`; the current folder is looked in last.
        where: What named it, for messages.

    Raises:
        InputError: If it leads to none.
    """
    module_name, colon, attribute = factory.partition(":")
    if not (colon and attribute and all(part.isidentifier() for part in module_name.split("."))):
        raise InputError(f"{where}: write it as package.module:callable")
    module = _import(module_name, where)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InputError(
                f"{where}: {unknown_name(f'attribute of {module_name}', part, _own(found))}"
            )
        found = getattr(found, part)
    if not callable(found):
        raise InputError(f"{where}: is a {type(found).__name__}, not a callable")
    called: Callable[..., Any] = found
    return called


def _own(holder: Any) -> list[str]:
    """What a module or class offers to be called, without what a module only imports."""
    public = [name for name in dir(holder) if not name.startswith("_")]
    named = [name for name in public if callable(getattr(holder, name))]
    home = getattr(holder, "__name__", None)
    own = [name for name in named if getattr(getattr(holder, name), "__module__", None) == home]
    return own or named or public


def _import(module_name: str, where: str) -> Any:
    folder = str(Path.cwd())
    if not {"", folder} & set(sys.path):
        # Last, so that a file of the current folder never hides an installed package.
        sys.path.append(folder)
    with foreign(where, "importing it"):
        try:
            return importlib.import_module(module_name)
        except ModuleNotFoundError as err:
            if err.name and (module_name == err.name or module_name.startswith(f"{err.name}.")):
                raise InputError(
                    f"{where}: there is no module {err.name!r} on the Python path or in {folder}"
                ) from err
            raise InputError(
                f"{where}: importing it needs a module that is missing: {err}"
            ) from err


def _call(factory: Callable[..., Any], keywords: dict[str, Any], where: str) -> Any:
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # some compiled callables do not tell
        return factory(**keywords)
    try:
        signature.bind(**keywords)
    except TypeError as err:
        raise InputError(
            f"{where}: cannot be called with kwargs {sorted(keywords)}: {err}"
        ) from err
    return factory(**keywords)


# What a digest covers --------------------------------------------------------------------------


def policy_digest(cls: type[Any], parameters: Mapping[str, Any]) -> str:
    """SHA-256 of what defines an agent's behaviour.

    It covers the class, every parameter, and the source text of the agent's module and of the
    modules of this package (and specifications of tasks) it imports, directly or not. It does not
    cover the versions of Python and numpy. A changed comment changes the digest: rather one
    digest too many than two behaviours under one.
    """
    return digest(
        {
            "agent": f"{cls.__module__}.{cls.__qualname__}",
            "parameters": dict(parameters),
            "source": sources(cls.__module__, _DIGESTED, but=__name__),
        }
    )
