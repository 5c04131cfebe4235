"""Sets of labelled examples: digits that are shipped, images that users supply, experts' actions.

File formats: IDX of MNIST (LeCun, Cortes and Burges) and Fashion-MNIST (Xiao, Rasul and Vollgraf,
2017, arXiv:1708.07747), and the binary version of CIFAR-10 and CIFAR-100 (Krizhevsky, 2009).
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.canonical import digest, file_digest
from robo_eval.core.errors import InputError, MissingExtraError
from robo_eval.core.names import unknown_name
from robo_eval.study.cloning import Examples
from robo_eval.study.domain import Labelled, Task
from robo_eval.study.network import Array

_Bytes = NDArray[np.uint8]

_SHARE_JUDGED: Final = 0.2
"""Of the digits, which come in one piece, so many are kept to judge by."""
_IDX_IMAGES: Final = 0x0000_0803
"""Magic number: unsigned bytes in three dimensions."""
_IDX_LABELS: Final = 0x0000_0801
_IDX_MOST: Final = 2**31
"""Bytes of a file's content; a header that claims more is damaged."""
_CIFAR_VALUES: Final = 3 * 32 * 32
_DRAWN, _NOISE, _SPLIT, _SEEN, _JUDGED = 11, 12, 13, 14, 15
"""What seeds are for: two of one set never agree by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Images:
    """Values of images and their labels as they are stored.

    Attributes:
        values: Shape (n, values).
        labels: Shape (n,).
        top: The largest value there can be; it becomes 1.
    """

    values: _Bytes
    labels: NDArray[np.intp]
    top: float

    def rows(self, chosen: NDArray[np.intp]) -> _Images:
        return _Images(values=self.values[chosen], labels=self.labels[chosen], top=self.top)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """A set that users supply.

    Attributes:
        classes: How many it has.
        wanted: What a folder must hold.
        files: The files of it in a folder; refuses a folder without them.
        read: What is in them: images to learn from, and to judge by.
    """

    classes: int
    wanted: str
    files: Callable[[Path], list[Path]]
    read: Callable[[list[Path]], tuple[_Images, _Images]]


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
        stored = _STORED[name]
        train, test = stored.read(stored.files(_folder(name, folder)))
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
    paths = _STORED[name].files(_folder(name, folder))
    found = []
    for path in paths:
        try:
            found.append(file_digest(path))
        except OSError as err:
            raise _unreadable(path, err) from err
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


def _only(images: _Images, classes: Sequence[int]) -> _Images:
    """Those of some classes, which become 0, 1, ..."""
    new = np.full(int(max(images.labels.max(initial=0), *classes)) + 1, -1, dtype=np.intp)
    new[list(classes)] = np.arange(len(classes))
    labels = new[images.labels]
    kept = labels >= 0
    if kept.all():
        return _Images(values=images.values, labels=labels, top=images.top)
    return _Images(values=images.values[kept], labels=labels[kept], top=images.top)


def _examples(images: _Images, noise: float, rng: np.random.Generator) -> Examples:
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


def _read_digits(seed: int) -> tuple[_Images, _Images]:
    _scikit_version()
    from sklearn.datasets import load_digits

    values, labels = load_digits(return_X_y=True)
    images = _Images(values=values.astype(np.uint8), labels=labels.astype(np.intp), top=_DIGIT_TOP)
    order = _rng(seed, _SPLIT).permutation(len(labels))
    judged = round(_SHARE_JUDGED * len(order))
    return images.rows(order[judged:]), images.rows(order[:judged])


def _scikit_version() -> str:
    try:
        import sklearn
    except ImportError as err:
        raise MissingExtraError(
            'the set of digits comes with scikit-learn; run: pip install "robo-eval[study]"'
        ) from err
    return str(sklearn.__version__)


# Files -----------------------------------------------------------------------------------------


def _folder(name: str, folder: Path | None) -> Path:
    wanted = _STORED[name].wanted
    if folder is None:
        raise InputError(f"{name}: is not shipped; name a folder with {wanted}")
    if not folder.is_dir():
        raise InputError(f"{folder}: is no folder; {name} needs one with {wanted}")
    return folder


def _unreadable(path: Path, err: Exception) -> InputError:
    problem = getattr(err, "strerror", None) or err
    return InputError(f"{path}: cannot be read: {problem}; download it again")


def _damaged(path: Path, problem: str) -> InputError:
    return InputError(f"{path}: {problem}; download it again")


def _idx_files(folder: Path) -> list[Path]:
    """The four files, in the order in which they are read."""
    return [
        _idx_file(folder, part, kind)
        for part in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    ]


def _idx_file(folder: Path, part: str, kind: str) -> Path:
    plain = f"{part}-{kind}-ubyte"
    # Some places that offer them write a dot for the second dash.
    stems = [plain, plain.replace("-idx", ".idx")]
    names = [f"{stem}{tail}" for stem in stems for tail in ("", ".gz")]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{folder / plain}: is missing; put it there, as it is or as {plain}.gz")


def _read_idx(paths: list[Path]) -> tuple[_Images, _Images]:
    first, second = (
        _idx_images(images, labels) for images, labels in (paths[:2], paths[2:])
    )  # fmt: skip
    if first.values.shape[1] != second.values.shape[1]:
        raise _damaged(
            paths[2],
            f"images have {second.values.shape[1]} values, those of {paths[0].name}"
            f" {first.values.shape[1]}",
        )
    return first, second


def _idx_images(images: Path, labels: Path) -> _Images:
    values = _idx_array(images, _IDX_IMAGES, 3)
    said = _idx_array(labels, _IDX_LABELS, 1)
    if len(values) != len(said):
        raise InputError(
            f"{labels}: holds {len(said)} labels and {images.name} {len(values)} images; take both"
            " files from the same download"
        )
    return _Images(
        values=values.reshape(len(values), -1), labels=_labels(labels, said, 10), top=255.0
    )


def _idx_array(path: Path, magic: int, dimensions: int) -> _Bytes:
    """The content of an IDX file: magic number, length of each dimension, bytes."""
    try:
        with _opened(path) as file:
            header = file.read(4 + 4 * dimensions)
            shape = _idx_shape(path, header, magic, dimensions)
            # One more than there should be, and never what a damaged header promises at once.
            data = _read_at_most(file, math.prod(shape) + 1)
    except (OSError, EOFError, zlib.error) as err:  # gzip raises all three
        raise _unreadable(path, err) from err
    if len(data) != math.prod(shape):
        raise _damaged(
            path,
            f"holds {'more' if len(data) > math.prod(shape) else len(data)} bytes of values and"
            f" not {math.prod(shape)}, as its header says",
        )
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def _idx_shape(path: Path, header: bytes, magic: int, dimensions: int) -> tuple[int, ...]:
    if len(header) < 4 + 4 * dimensions:
        raise _damaged(path, f"ends after {len(header)} bytes, within its header")
    found, *shape = (int(one) for one in np.frombuffer(header, dtype=">u4"))
    if found != magic:
        raise InputError(
            f"{path}: begins with the number {found}, where an IDX file of"
            f" {'images' if dimensions > 1 else 'labels'} has {magic}; this is another file"
        )
    if not 0 < math.prod(shape) <= _IDX_MOST:
        raise _damaged(path, f"its header says {' x '.join(map(str, shape))} values")
    return tuple(shape)


def _opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _read_at_most(file: BinaryIO, count: int) -> bytes:
    """As many bytes, or all there are; memory grows with what is there, not with `count`."""

    def pieces() -> Iterator[bytes]:
        left = count
        while left and (piece := file.read(min(left, 2**20))):
            left -= len(piece)
            yield piece

    return b"".join(pieces())


def _labels(path: Path, said: _Bytes, classes: int) -> NDArray[np.intp]:
    if said.max() >= classes:
        raise InputError(
            f"{path}: holds a label {said.max()}, and there are classes 0 to {classes - 1}; this is"
            " another file"
        )
    return said.astype(np.intp)


def _cifar_files(names: Sequence[str], inside: str, pickled: str) -> Callable[[Path], list[Path]]:
    """How the files of a CIFAR set are found, in a folder or in the one its archive makes there."""

    def files(folder: Path) -> list[Path]:
        place = folder / inside if (folder / inside).is_dir() else folder
        for name in names:
            if (place / name).is_file():
                continue
            # The python version calls its files the same, without an ending.
            stem = Path(name).stem
            for other in (place / stem, folder / pickled / stem):
                if other.is_file():
                    raise InputError(
                        f"{other}: is the python version, a pickle, which can run code when it is"
                        f" read; download the binary version ({inside}, {names[0]} and so on)"
                    )
            raise InputError(
                f"{place / name}: is missing; unpack the binary version ({inside}) there"
            )
        return [place / name for name in names]

    return files


def _read_cifar(labels: int, classes: int) -> Callable[[list[Path]], tuple[_Images, _Images]]:
    """How CIFAR files are read, the last of which is to judge by.

    Args:
        labels: Bytes of label in a record; the last is that of the class.
        classes: How many there are.
    """

    def read_one(path: Path) -> _Images:
        width = labels + _CIFAR_VALUES
        try:
            data = path.read_bytes()
        except OSError as err:
            raise _unreadable(path, err) from err
        if not data or len(data) % width:
            raise _damaged(path, f"holds {len(data)} bytes, which are no whole records of {width}")
        records = np.frombuffer(data, dtype=np.uint8).reshape(-1, width)
        return _Images(
            values=records[:, labels:], labels=_labels(path, records[:, labels - 1], classes),
            top=255.0,
        )  # fmt: skip

    def read(paths: list[Path]) -> tuple[_Images, _Images]:
        *train, test = (read_one(path) for path in paths)
        joined = _Images(
            values=np.concatenate([one.values for one in train]),
            labels=np.concatenate([one.labels for one in train]),
            top=255.0,
        )
        return joined, test

    return read


_IDX: Final = _Set(
    classes=10,
    wanted="the four IDX files train-images-idx3-ubyte, train-labels-idx1-ubyte,"
    " t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, as they are or packed (.gz)",
    files=_idx_files,
    read=_read_idx,
)
_STORED: Final[dict[str, _Set]] = {
    "mnist": _IDX,
    "fashion_mnist": _IDX,
    "cifar10": _Set(
        classes=10,
        wanted="data_batch_1.bin to data_batch_5.bin and test_batch.bin of the binary version",
        files=_cifar_files(
            [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"],
            "cifar-10-batches-bin",
            "cifar-10-batches-py",
        ),
        read=_read_cifar(1, 10),
    ),
    "cifar100": _Set(
        classes=100,
        wanted="train.bin and test.bin of the binary version",
        files=_cifar_files(["train.bin", "test.bin"], "cifar-100-binary", "cifar-100-python"),
        # Before the label of the class comes that of the superclass, of which there are 20.
        read=_read_cifar(2, 100),
    ),
}
SETS: Final = ("digits", *_STORED)
"""Names of the sets that `load_set` knows."""
