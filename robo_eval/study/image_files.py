"""Files of labelled images that users supply.

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

from robo_eval.core.errors import InputError

Bytes = NDArray[np.uint8]

_IDX_IMAGES: Final = 0x0000_0803
"""Magic number: unsigned bytes in three dimensions."""
_IDX_LABELS: Final = 0x0000_0801
_IDX_MOST: Final = 2**31
"""Bytes of a file's content; a header that claims more is damaged."""
_CIFAR_VALUES: Final = 3 * 32 * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Values of images and their labels as they are stored.

    Attributes:
        values: Shape (n, values).
        labels: Shape (n,).
        top: The largest value there can be; it becomes 1.
    """

    values: Bytes
    labels: NDArray[np.intp]
    top: float

    def rows(self, chosen: NDArray[np.intp]) -> Images:
        """Some of them, by their places."""
        return Images(values=self.values[chosen], labels=self.labels[chosen], top=self.top)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSet:
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
    read: Callable[[list[Path]], tuple[Images, Images]]


def folder_of(name: str, folder: Path | None) -> Path:
    """The folder of a set; refuses none, and what is not a folder."""
    wanted = STORED[name].wanted
    if folder is None:
        raise InputError(f"{name}: is not shipped; name a folder with {wanted}")
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder; {name} needs one with {wanted}")
    return folder


def unreadable(path: Path, err: Exception) -> InputError:
    """The message for a file that cannot be read."""
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


def _read_idx(paths: list[Path]) -> tuple[Images, Images]:
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


def _idx_images(images: Path, labels: Path) -> Images:
    values = _idx_array(images, _IDX_IMAGES, 3)
    said = _idx_array(labels, _IDX_LABELS, 1)
    if len(values) != len(said):
        raise InputError(
            f"{labels}: holds {len(said)} labels and {images.name} {len(values)} images; take both"
            " files from the same download"
        )
    return Images(
        values=values.reshape(len(values), -1), labels=_labels(labels, said, 10), top=255.0
    )


def _idx_array(path: Path, magic: int, dimensions: int) -> Bytes:
    """The content of an IDX file: magic number, length of each dimension, bytes."""
    try:
        with _opened(path) as file:
            header = file.read(4 + 4 * dimensions)
            shape = _idx_shape(path, header, magic, dimensions)
            # One more than there should be, and never what a damaged header promises at once.
            data = _read_at_most(file, math.prod(shape) + 1)
    except (OSError, EOFError, zlib.error) as err:  # gzip raises all three
        raise unreadable(path, err) from err
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


def _labels(path: Path, said: Bytes, classes: int) -> NDArray[np.intp]:
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


def _read_cifar(labels: int, classes: int) -> Callable[[list[Path]], tuple[Images, Images]]:
    """How CIFAR files are read, the last of which is to judge by.

    Args:
        labels: Bytes of label in a record; the last is that of the class.
        classes: How many there are.
    """

    def read_one(path: Path) -> Images:
        width = labels + _CIFAR_VALUES
        try:
            data = path.read_bytes()
        except OSError as err:
            raise unreadable(path, err) from err
        if not data or len(data) % width:
            raise _damaged(path, f"holds {len(data)} bytes, which are no whole records of {width}")
        records = np.frombuffer(data, dtype=np.uint8).reshape(-1, width)
        return Images(
            values=records[:, labels:], labels=_labels(path, records[:, labels - 1], classes),
            top=255.0,
        )  # fmt: skip

    def read(paths: list[Path]) -> tuple[Images, Images]:
        *train, test = (read_one(path) for path in paths)
        joined = Images(
            values=np.concatenate([one.values for one in train]),
            labels=np.concatenate([one.labels for one in train]),
            top=255.0,
        )
        return joined, test

    return read


_IDX: Final = StoredSet(
    classes=10,
    wanted="the four IDX files train-images-idx3-ubyte, train-labels-idx1-ubyte,"
    " t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, as they are or packed (.gz)",
    files=_idx_files,
    read=_read_idx,
)
STORED: Final[dict[str, StoredSet]] = {
    "mnist": _IDX,
    "fashion_mnist": _IDX,
    "cifar10": StoredSet(
        classes=10,
        wanted="data_batch_1.bin to data_batch_5.bin and test_batch.bin of the binary version",
        files=_cifar_files(
            [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"],
            "cifar-10-batches-bin",
            "cifar-10-batches-py",
        ),
        read=_read_cifar(1, 10),
    ),
    "cifar100": StoredSet(
        classes=100,
        wanted="train.bin and test.bin of the binary version",
        files=_cifar_files(["train.bin", "test.bin"], "cifar-100-binary", "cifar-100-python"),
        # Before the label of the class comes that of the superclass, of which there are 20.
        read=_read_cifar(2, 100),
    ),
}
