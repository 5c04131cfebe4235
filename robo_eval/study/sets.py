"""Sets of labelled examples: shipped digits, images that users supply, what experts do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from robo_eval.core.canonical import digest, file_digest
from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.core.names import unknown_name
from robo_eval.study.cloning import Examples
from robo_eval.study.domain import Labelled, Task
from robo_eval.study.image_files import STORED, Images, folder_of, unreadable
from robo_eval.study.network import Array

_SHARE_JUDGED: Final = 0.2
"""Of the digits, which come in one piece, so many are kept to judge by."""
_DRAWN, _NOISE, _SPLIT, _SEEN, _JUDGED = 11, 12, 13, 14, 15
"""What seeds are for: two of one set never agree by chance."""
SETS: Final = ("digits", *STORED)
"""Names of the sets that `load_set` knows."""


def load_set(
    name: str,
    *,
    folder: Path | None = None,
    classes: Sequence[int] | None = None,
    copies: int = 1,
    noise: float = 0.0,
    most: int | None = None,
    seed: int = 0,
) -> Labelled:
    """A set of labelled images as a test; values are scaled to [0, 1], images are flat.

    First the classes are chosen, then examples drawn, then noise is added, then copies made: copies
    are exact ones.

    Args:
        name: `digits` (shipped with scikit-learn: 8 x 8 grey, 10 classes), `mnist`,
            `fashion_mnist` (28 x 28 grey, 10 classes), `cifar10` or `cifar100` (32 x 32 in three
            colours, 10 and 100 classes).
        folder: Where the files are of all but `digits`: for MNIST and Fashion-MNIST the four IDX
            files, packed (`.gz`) or not; for CIFAR the `.bin` files of the binary version.
        classes: Labels that are kept, which become 0, 1, ... in this order; none keeps all.
        copies: How often each example to learn from is there.
        noise: Standard deviation of the Gaussian noise on each value of all examples, in units of
            the scaled values; values may leave [0, 1].
        most: Examples to learn from at most, before copies; none keeps all.
        seed: Of what is drawn, and for `digits` of which fifth is kept to judge by.

    Returns:
        The test. All of a CIFAR set takes 0.8 GB, 1.7 GB while it is made with noise, and 0.6 GB
        more for each copy.

    Raises:
        UnknownNameError: If there is no such set; the message names the nearest.
        InputError: If a file is missing or damaged, or something else cannot be used; the message
            names the file or argument and what would do.
        MissingExtraError: If `digits` are wanted and scikit-learn is not installed.

    Example:
        >>> load_set("digits", classes=(3, 8), seed=1).inputs
        64
    """
    if name not in SETS:
        raise unknown_name("set", name, SETS)
    _check_changes(copies, noise, most)
    if name == "digits":
        if folder is not None:
            raise InputError("digits: come with scikit-learn; leave out the folder")
        train, test = _read_digits(seed)
        count = _DIGIT_CLASSES
    else:
        stored = STORED[name]
        train, test = stored.read(stored.files(folder_of(name, folder)))
        count = stored.classes
    chosen = _chosen(name, classes, count)
    train, test = _only(train, chosen), _only(test, chosen)
    if not len(train.labels) or not len(test.labels):
        raise InputError(f"{name}: there is no example of the classes {list(chosen)}")
    if most is not None and most < len(train.labels):
        train = train.rows(_rng(seed, _DRAWN).permutation(len(train.labels))[:most])
    rng = _rng(seed, _NOISE)
    return Labelled(
        name=name,
        train=_copied(_examples(train, noise, rng), copies),
        test=_examples(test, noise, rng),
        outputs=len(chosen),
    )


def digits(*, classes: Sequence[int] | None = None, seed: int) -> Labelled:
    """The handwritten digits shipped with scikit-learn; see `load_set`.

    Args:
        classes: Digits that are kept, which become 0, 1, ... in this order; none keeps all.
        seed: Of which fifth is kept to judge by.

    Raises:
        InputError: If a class is none of 0 to 9.
        MissingExtraError: If scikit-learn is not installed.
    """
    return load_set("digits", classes=classes, seed=seed)


def as_labelled(task: Task, count: int, *, seed: int, name: str | None = None) -> Labelled:
    """A control task as labelled examples: what the expert does after what it sees.

    The reduction of Pereyda and Holder (2025), AI 6(12):313. Examples to learn from and to
    judge by are of different episodes.

    Args:
        task: Its expert is watched.
        count: Examples to learn from, and as many to judge by.
        seed: Of the episodes.
        name: Name of the test; none takes that of the task.

    Raises:
        InputError: If the count is below 1, or the expert takes an action that is none of the
            task's.
    """
    if count < 1:
        raise InputError(f"{name or task.name}: count is {count}; it must be 1 or more")
    return Labelled(
        name=task.name if name is None else name,
        train=task.examples(count, seed=_seed(seed, _SEEN)),
        test=task.examples(count, seed=_seed(seed, _JUDGED)),
        outputs=task.outputs,
    )


def set_digest(name: str, folder: Path | None = None) -> str:
    """SHA-256 of what a set holds: of the bytes of its files, or the version that ships it.

    Args:
        name: As for `load_set`.
        folder: As for `load_set`. A file packed anew is another file.

    Raises:
        UnknownNameError: If there is no such set.
        InputError: If the folder or a file is missing or cannot be read.
        MissingExtraError: If `digits` are wanted and scikit-learn is not installed.
    """
    if name not in SETS:
        raise unknown_name("set", name, SETS)
    if name == "digits":
        return digest({"set": name, "scikit-learn": _scikit_version()})
    paths = STORED[name].files(folder_of(name, folder))
    found = []
    for path in paths:
        try:
            found.append(file_digest(path))
        except OSError as err:
            raise unreadable(path, err) from err
    return digest({"set": name, "files": found})


# What is changed -------------------------------------------------------------------------------


def _check_changes(copies: int, noise: float, most: int | None) -> None:
    if copies < 1:
        raise InputError(f"copies is {copies}; it must be 1 or more")
    if not 0.0 <= noise < math.inf:
        raise InputError(f"noise is {noise}; it must be a finite number of 0 or more")
    if most is not None and most < 1:
        raise InputError(f"most is {most}; it must be 1 or more")


def _chosen(name: str, classes: Sequence[int] | None, count: int) -> Sequence[int]:
    if classes is None:
        return range(count)
    for one in classes:
        if not 0 <= one < count:
            raise InputError(f"{name}: there is no class {one}; classes are 0 to {count - 1}")
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise InputError(f"{name}: classes is {list(classes)}; name 2 at least, and each only once")
    return classes


def _only(images: Images, classes: Sequence[int]) -> Images:
    """Those of some classes, which become 0, 1, ..."""
    new = np.full(int(max(images.labels.max(initial=0), *classes)) + 1, -1, dtype=np.intp)
    new[list(classes)] = np.arange(len(classes))
    labels = new[images.labels]
    kept = labels >= 0
    if kept.all():
        return Images(values=images.values, labels=labels, top=images.top)
    return Images(values=images.values[kept], labels=labels[kept], top=images.top)


def _examples(images: Images, noise: float, rng: np.random.Generator) -> Examples:
    values: Array = images.values.astype(np.float32)
    values /= np.float32(images.top)
    if noise:
        added = rng.standard_normal(values.shape, dtype=np.float32)
        added *= np.float32(noise)
        values += added
    return Examples.of(values, images.labels)


def _copied(examples: Examples, copies: int) -> Examples:
    if copies == 1:
        return examples
    return Examples(
        observations=np.tile(examples.observations, (copies, 1)),
        actions=np.tile(examples.actions, copies),
    )


def _rng(*parts: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(list(parts)))


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(list(parts)).generate_state(1)[0] >> 1)


# Digits ----------------------------------------------------------------------------------------

_DIGIT_CLASSES: Final = 10
_DIGIT_TOP: Final = 16.0


def _read_digits(seed: int) -> tuple[Images, Images]:
    _scikit_version()
    from sklearn.datasets import load_digits

    values, labels = load_digits(return_X_y=True)
    images = Images(values=values.astype(np.uint8), labels=labels.astype(np.intp), top=_DIGIT_TOP)
    order = _rng(seed, _SPLIT).permutation(len(labels))
    judged = round(_SHARE_JUDGED * len(order))
    return images.rows(order[judged:]), images.rows(order[:judged])


def _scikit_version() -> str:
    try:
        import sklearn
    except ImportError as err:
        raise MissingExtraError(
            f"the set of digits comes with scikit-learn; run: {pip_install('study')}"
        ) from err
    return str(sklearn.__version__)
