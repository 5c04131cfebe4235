"""Sets of labelled examples: shipped ones, files that users supply, actions of an expert."""

from __future__ import annotations

import builtins
import gzip
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_eval.agents.foreign import wrap
from robo_eval.core.errors import InputError, MissingExtraError, UnknownNameError
from robo_eval.study.cloning import TrainingBudget, clone
from robo_eval.study.domain import Task
from robo_eval.study.network import Architecture
from robo_eval.study.sets import SETS, as_labelled, digits, load_set, set_digest

SIDE = 3
TRAIN_LABELS = [5, 0, 4, 1, 9, 2, 1, 3]
TEST_LABELS = [7, 2, 1, 0]


def idx(values: np.ndarray) -> bytes:
    magic = 0x0800 + values.ndim
    return struct.pack(f">{values.ndim + 1}I", magic, *values.shape) + values.tobytes()


def images(count: int) -> np.ndarray:
    """Each image holds its number, and 255 in the last place."""
    values = np.tile(np.arange(count, dtype=np.uint8)[:, None, None], (1, SIDE, SIDE))
    values[:, -1, -1] = 255
    return values


def write_idx(folder: Path, *, packed: bool = False) -> Path:
    for part, labels in (("train", TRAIN_LABELS), ("t10k", TEST_LABELS)):
        for name, content in (
            (f"{part}-images-idx3-ubyte", idx(images(len(labels)))),
            (f"{part}-labels-idx1-ubyte", idx(np.array(labels, dtype=np.uint8))),
        ):
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (folder / name).write_bytes(content)
    return folder


def write_cifar(folder: Path, *, coarse: bool = False) -> Path:
    names = (
        ["train.bin", "test.bin"]
        if coarse
        else [*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin"]
    )
    for number, name in enumerate(names):
        records = [bytes([19] * coarse + [label]) + bytes([number]) * 3072 for label in (number, 9)]
        (folder / name).write_bytes(b"".join(records))
    return folder


# Digits


def test_digits_are_scaled_and_told_apart():
    found = digits(seed=0)
    assert (found.inputs, found.outputs, len(found.train), len(found.test)) == (64, 10, 1438, 359)
    assert (found.train.observations.min(), found.train.observations.max()) == (0.0, 1.0)
    network = clone(
        Architecture(inputs=64, hidden=(32,), outputs=10),
        found.examples(1_438, seed=0),
        budget=TrainingBudget(steps=300),
        seed=0,
    )
    assert found.performances(network, 359, seed=0).mean() > 0.9


def test_digits_to_judge_by_are_others_and_follow_the_seed():
    first, same, other = (digits(seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.test.observations, same.test.observations)
    assert (first.test.observations != other.test.observations).any()
    whole = np.concatenate([first.train.observations, first.test.observations])
    again = np.concatenate([other.train.observations, other.test.observations])
    assert sorted(map(bytes, whole)) == sorted(map(bytes, again)), "none is lost, none is twice"


def test_classes_that_are_kept_are_numbered_anew():
    whole, some = digits(seed=3), digits(classes=(8, 3), seed=3)
    assert some.outputs == 2
    for new, old in ((0, 8), (1, 3)):
        np.testing.assert_array_equal(
            some.train.observations[some.train.actions == new],
            whole.train.observations[whole.train.actions == old],
        )


def test_copies_are_exact_and_only_to_learn_from():
    once, thrice = (load_set("digits", copies=n, noise=0.1, seed=0) for n in (1, 3))
    assert len(thrice.train) == 3 * len(once.train)
    np.testing.assert_array_equal(
        thrice.train.observations, np.tile(once.train.observations, (3, 1))
    )
    np.testing.assert_array_equal(thrice.train.actions, np.tile(once.train.actions, 3))
    assert len(thrice.test) == len(once.test)


def test_noise_has_its_deviation():
    calm, noisy = (load_set("digits", noise=noise, seed=0) for noise in (0.0, 0.3))
    for part in ("train", "test"):
        added = getattr(noisy, part).observations - getattr(calm, part).observations
        assert added.std() == pytest.approx(0.3, rel=0.02)
        assert added.mean() == pytest.approx(0.0, abs=0.01)
    np.testing.assert_array_equal(noisy.train.actions, calm.train.actions)


def test_examples_are_drawn_by_the_seed():
    some = load_set("digits", most=100, seed=4)
    assert (len(some.train), len(some.test)) == (100, 359)
    assert len(set(map(bytes, some.train.observations))) == 100
    assert len(load_set("digits", most=10**6, seed=4).train) == 1438


# Files


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_idx_files_are_read(tmp_path, name, packed):
    found = load_set(name, folder=write_idx(tmp_path, packed=packed))
    assert (found.name, found.inputs, found.outputs) == (name, SIDE * SIDE, 10)
    assert found.train.actions.tolist() == TRAIN_LABELS
    assert found.test.actions.tolist() == TEST_LABELS
    assert found.train.observations[:, 0] == pytest.approx(np.arange(8) / 255)
    assert (found.train.observations[:, -1] == 1.0).all()


def test_idx_files_with_a_dot_in_their_name_are_found(tmp_path):
    for path in list(write_idx(tmp_path).iterdir()):
        path.rename(path.with_name(path.name.replace("-idx", ".idx")))
    assert len(load_set("mnist", folder=tmp_path).train) == 8


@pytest.mark.parametrize("inside", ["", "cifar-10-batches-bin"])
def test_cifar10_is_read(tmp_path, inside):
    (tmp_path / inside).mkdir(exist_ok=True)
    write_cifar(tmp_path / inside)
    found = load_set("cifar10", folder=tmp_path)
    assert (found.inputs, found.outputs) == (3072, 10)
    assert found.train.actions.tolist() == [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]
    assert found.test.actions.tolist() == [5, 9]
    assert found.train.observations[-1] == pytest.approx(np.full(3072, 4 / 255))


def test_cifar100_has_the_fine_labels(tmp_path):
    found = load_set("cifar100", folder=write_cifar(tmp_path, coarse=True), classes=(9, 0, 1))
    assert (found.inputs, found.outputs) == (3072, 3)
    assert (found.train.actions.tolist(), found.test.actions.tolist()) == ([1, 0], [2, 0])


def test_the_pickled_version_is_refused_unread(tmp_path):
    class Trap:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "sprung",)

    (tmp_path / "cifar-10-batches-py").mkdir()
    (tmp_path / "cifar-10-batches-py" / "data_batch_1").write_bytes(pickle.dumps(Trap()))
    (tmp_path / "train").write_bytes(pickle.dumps(Trap()))
    for name, wanted in (("cifar10", "cifar-10-batches-bin"), ("cifar100", "cifar-100-binary")):
        with pytest.raises(InputError, match=f"a pickle, which can run code .*{wanted}"):
            load_set(name, folder=tmp_path)
    assert not (tmp_path / "sprung").exists()


TRAIN_IMAGES = "train-images-idx3-ubyte"
TRAIN_SAID = "train-labels-idx1-ubyte"
LABELS_7 = idx(np.zeros(7, dtype=np.uint8))


def replaced(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes())) and None


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / TRAIN_IMAGES).unlink(),
         f"{TRAIN_IMAGES}: is missing; put it there, as it is or as {TRAIN_IMAGES}.gz"),
        (replaced(TRAIN_IMAGES, lambda old: LABELS_7), f"{TRAIN_IMAGES}: ends after 15 bytes"),
        (replaced(TRAIN_IMAGES, lambda old: b"PNG!" + old), "begins with the number 1347307297"),
        (replaced(TRAIN_IMAGES, lambda old: old[:-1]), "holds 71 bytes of values and not 72"),
        (replaced(TRAIN_IMAGES, lambda old: old + b"!"), "holds more bytes of values and not 72"),
        (replaced(TRAIN_IMAGES, lambda old: b""), "ends after 0 bytes"),
        (replaced(TRAIN_IMAGES, lambda old: struct.pack(">4I", 0x803, 2**31, 28, 28)),
         "header says 2147483648 x 28 x 28 values; download it again"),
        (replaced(TRAIN_IMAGES, lambda old: struct.pack(">4I", 0x803, 10**6, 28, 28)),
         "holds 0 bytes of values and not 784000000"),
        (replaced(TRAIN_IMAGES, lambda old: idx(np.zeros((8, 2, 2), dtype=np.uint8))),
         "t10k-images-idx3-ubyte: images have 9 values, those of train-images-idx3-ubyte 4"),
        (replaced(TRAIN_SAID, lambda old: LABELS_7),
         f"{TRAIN_SAID}: holds 7 labels and {TRAIN_IMAGES} 8 images; take both"),
        (replaced(TRAIN_SAID, lambda old: old[:-1] + b"\x0a"), "holds a label 10, .* 0 to 9"),
    ],
)  # fmt: skip
def test_a_damaged_idx_file_is_named(tmp_path, spoil, message):
    spoil(write_idx(tmp_path))
    with pytest.raises(InputError, match=message):
        load_set("mnist", folder=tmp_path)


@pytest.mark.parametrize("change", [lambda old: old[:30], lambda old: b"no gzip", lambda old: b""])
def test_a_damaged_packed_file_is_named(tmp_path, change):
    write_idx(tmp_path, packed=True)
    replaced(f"{TRAIN_IMAGES}.gz", change)(tmp_path)
    with pytest.raises(InputError, match=rf"{TRAIN_IMAGES}.gz: .*; download it again"):
        load_set("mnist", folder=tmp_path)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "data_batch_4.bin").unlink(),
         r"data_batch_4.bin: is missing; unpack the binary version \(cifar-10-batches-bin\)"),
        (replaced("data_batch_4.bin", lambda old: old[:-1]),
         "data_batch_4.bin: holds 6145 bytes, which are no whole records of 3073; download"),
        (replaced("test_batch.bin", lambda old: b""), "test_batch.bin: holds 0 bytes"),
        (replaced("data_batch_2.bin", lambda old: b"\x0b" + old[1:]), "data_batch_2.bin: .* 11"),
    ],
)  # fmt: skip
def test_a_damaged_cifar_file_is_named(tmp_path, spoil, message):
    spoil(write_cifar(tmp_path))
    with pytest.raises(InputError, match=message):
        load_set("cifar10", folder=tmp_path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "mnist"}, "mnist: is not shipped; name a folder with the four IDX files"),
        ({"name": "cifar100"}, "cifar100: is not shipped; name a folder with train.bin"),
        ({"name": "mnist", "folder": Path("nowhere")}, "nowhere: is not a folder; mnist needs one"),
        ({"name": "digits", "folder": Path()}, "leave out the folder"),
        ({"name": "digits", "classes": (1, 10)}, "there is no class 10; classes are 0 to 9"),
        ({"name": "digits", "classes": (1, -1)}, "there is no class -1"),
        ({"name": "digits", "classes": (1, 1)}, "each only once"),
        ({"name": "digits", "classes": (1,)}, "name 2 at least"),
        ({"name": "digits", "classes": ()}, "name 2 at least"),
        ({"name": "digits", "copies": 0}, "copies is 0; it must be 1 or more"),
        ({"name": "digits", "noise": -0.1}, "noise is -0.1"),
        ({"name": "digits", "noise": float("nan")}, "noise is nan"),
        ({"name": "digits", "noise": float("inf")}, "noise is inf"),
        ({"name": "digits", "most": 0}, "most is 0; it must be 1 or more"),
    ],
)
def test_what_cannot_be_loaded_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        load_set(**given)


def test_classes_without_an_example_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"no example of the classes \[6, 8\]"):
        load_set("mnist", folder=write_idx(tmp_path), classes=(6, 8))


@pytest.mark.parametrize("call", [load_set, set_digest])
def test_the_nearest_set_is_named(call):
    with pytest.raises(UnknownNameError, match="did you mean 'fashion_mnist'"):
        call("fashion-mnist")
    assert SETS == ("digits", "mnist", "fashion_mnist", "cifar10", "cifar100")


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    whole = builtins.__import__

    def without(name: str, *more: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] == "sklearn":
            raise ImportError(name)
        return whole(name, *more, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    for call in (lambda: digits(seed=0), lambda: set_digest("digits")):
        with pytest.raises(MissingExtraError, match=r"pip install \"robo-eval-stack\[study\]\""):
            call()


# Digests


def test_a_digest_follows_what_a_set_holds(tmp_path):
    write_idx(tmp_path)
    first = set_digest("mnist", tmp_path)
    assert first == set_digest("mnist", tmp_path)
    assert first != set_digest("fashion_mnist", tmp_path)
    replaced("t10k-labels-idx1-ubyte", lambda old: old[:-1] + b"\x03")(tmp_path)
    assert set_digest("mnist", tmp_path) != first
    assert set_digest("digits") == set_digest("digits") != first
    with pytest.raises(InputError, match=r"data_batch_1\.bin: is missing"):
        set_digest("cifar10", tmp_path)


# Tasks


def test_a_task_becomes_labelled_examples_of_its_expert():
    def act(seen: Any) -> int:
        return int(seen[2] + 0.3 * seen[3] > 0)

    task = Task(name="cart", env="CartPole-v1", expert=wrap(act, digest_of="1"), highest=500.0)
    found = as_labelled(task, 200, seed=0)
    assert (found.name, found.inputs, found.outputs) == ("cart", 4, 2)
    assert (len(found.train), len(found.test)) == (200, 200)
    assert found.train.actions.tolist() == [act(one) for one in found.train.observations]
    assert not set(map(bytes, found.train.observations)) & set(map(bytes, found.test.observations))
    again = as_labelled(task, 200, seed=0, name="again")
    assert again.name == "again"
    np.testing.assert_array_equal(again.train.observations, found.train.observations)
    with pytest.raises(InputError, match="cart: count is 0"):
        as_labelled(task, 0, seed=0)
