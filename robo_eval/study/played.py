"""How a trained network takes part in a trial."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from robo_eval.agents.foreign import Wrapped, wrap
from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.study.network import Network


def network(path: str | Path, observed: int | None = None) -> Wrapped:
    """A policy that does what a stored network scores highest.

    A plan names it by `factory: robo_eval.study.played:network` and `kwargs: {path: FILE.npz}`.
    Neither torch nor Stable-Baselines3 is needed. Its digest is of the bytes of the file and of
    what it observes.

    Args:
        path: File of `Network.arrays`, as `numpy.savez` writes it.
        observed: How many of the first numbers of the observation the network sees; none shows it
            all. Observations must be arrays; actions are numbered from 0 on.

    Raises:
        InputError: If the file cannot be read or is none of a network, or `observed` is not what it
            takes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "right.npz"
        ...     np.savez(file, weight_0=[[0.0, 1.0]], bias_0=[0.0, 0.0])
        ...     network(file, observed=1).act(np.array([0.5, -9.0, -9.0]))
        1
    """
    file = Path(path)
    found = read_network(file)
    inputs = found.architecture.inputs
    if observed not in (None, inputs):
        raise InputError(f"observed is {observed!r}; {file} takes {inputs} numbers")

    def act(observation: Any) -> int:
        seen = np.asarray(observation, dtype=np.float32).ravel()[:observed]
        if len(seen) != inputs:
            raise ShapeError(
                f"{file}: takes {inputs} numbers and is shown {len(seen)};"
                f" `observed: {inputs}` shows it the first ones"
            )
        return int(found.choose(seen))

    return wrap(
        act,
        digest_of={
            "network": file_digest(file),
            "observed": observed,
        },
        name=file.stem,
    )


def read_network(path: Path) -> Network:
    """The network of a file that `numpy.savez` wrote of `Network.arrays`.

    Args:
        path: The file; what could run code in it is not read.

    Raises:
        InputError: If it cannot be read or is none of a network.
    """
    try:
        stored = np.load(path, allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            raise ShapeError("this is a single array and no network")
        with stored:
            return Network.from_arrays({name: stored[name] for name in stored.files})
    except InputError as err:
        raise InputError(f"{path}: {err}") from err
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as err:
        problem = getattr(err, "strerror", None) or "is damaged, or no .npz file of a network"
        raise InputError(f"{path}: cannot be read: {problem}") from err
