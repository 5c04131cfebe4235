"""What pip has installed here: versions, and whether there is one PyBullet."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

from robo_eval.core.errors import MissingExtraError, pip_install

PYBULLETS: Final = ("pybullet", "pybullet-arm64")
"""PyBullet, and the fork of its source that is also built for Python 3.12 and 3.13."""
_LAST: Final = (3, 13)
"""The last version of Python that one of them is built for."""


def versions_of(distributions: Iterable[str]) -> dict[str, str]:
    """Versions of those distributions that are here; nothing is imported."""
    found = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def need_pybullet(who: str) -> None:
    """Refuse to go on where PyBullet cannot be imported, or two of it share one folder.

    Args:
        who: Needs it, such as `the simulator`.

    Raises:
        MissingExtraError: With the remedy.
    """
    found = " ".join(versions_of(PYBULLETS))
    again = f"pip uninstall -y {found} && {pip_install('sim')}"
    if " " in found:
        raise MissingExtraError(
            f"{who} needs one PyBullet, but {found.replace(' ', ' and ')} are both installed and"
            f" overwrite each other's files: {again}"
        )
    if find_spec("pybullet") is not None:
        return
    if found:
        raise MissingExtraError(f"{who} needs PyBullet, and files of {found} are gone: {again}")
    if sys.version_info[:2] > _LAST:
        raise MissingExtraError(
            f"{who} needs PyBullet, which is built for Python 3.11, 3.12 and 3.13;"
            f" this is {sys.version_info[0]}.{sys.version_info[1]}"
        )
    raise MissingExtraError(f"{who} needs PyBullet, which is not installed: {pip_install('sim')}")
