"""Trained networks as policies of a trial."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_eval.agents.registry import load_policy
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.core.policy import Policy
from robo_eval.study.network import Architecture, Network
from robo_eval.study.played import network, read_network


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    trained = Network.initial(
        Architecture(inputs=3, hidden=(6,), outputs=4), np.random.default_rng(0)
    )
    path = tmp_path / "three.npz"
    np.savez(path, **trained.arrays())
    return path


def test_it_does_what_the_network_scores_highest(stored):
    policy = network(stored)
    assert isinstance(policy, Policy)
    assert policy.name == "three"
    for seen in np.random.default_rng(1).normal(size=(20, 3)):
        assert policy.act(seen) == read_network(stored).choose(seen)


def test_it_sees_the_part_it_is_to_see(stored):
    whole, part = network(stored), network(stored, observed=3)
    for seen in np.random.default_rng(1).normal(size=(20, 9)):
        assert part.act(seen) == whole.act(seen[:3])


def test_half_precision_is_played_in_single(stored):
    arrays = read_network(stored).arrays()
    np.savez_compressed(stored, **{name: one.astype(np.float16) for name, one in arrays.items()})
    assert read_network(stored).weights[0].dtype == np.float32


def test_a_digest_follows_the_file_and_what_is_seen(stored):
    first = network(stored).digest
    assert first == network(str(stored)).digest
    assert first != network(stored, 3).digest
    np.savez(stored, weight_0=np.ones((3, 2)), bias_0=np.zeros(2))
    assert network(stored).digest != first


def test_a_plan_can_name_it(stored):
    policy = load_policy(
        "three", "robo_eval.study.played:network", {"path": str(stored), "observed": 3}
    )
    assert policy.act(np.zeros(320)) in range(4)


@pytest.mark.parametrize("observed", [4, 0, -1, [0, 3]])
def test_what_it_cannot_see_is_refused(stored, observed):
    with pytest.raises(InputError, match=r"observed is .*; .*three\.npz takes 3 numbers"):
        network(stored, observed=observed)


def test_another_observation_is_refused(stored):
    with pytest.raises(
        ShapeError, match=r"three\.npz: takes 3 numbers and is shown 320; `observed: 3` shows"
    ):
        network(stored).act(np.zeros(320))


def test_what_is_no_file_of_a_network_is_refused(tmp_path, stored):
    def refused(path: Path, message: str) -> None:
        with pytest.raises(InputError, match=f"{path.name}: {message}"):
            network(path)

    refused(tmp_path / "none.npz", "cannot be read: No such file")
    (tmp_path / "text.npz").write_text("hello")
    refused(tmp_path / "text.npz", "cannot be read: is damaged, or no .npz file")
    (tmp_path / "short.npz").write_bytes(stored.read_bytes()[:-200])
    refused(tmp_path / "short.npz", "cannot be read")
    np.save(tmp_path / "one.npy", np.zeros(3))
    refused(tmp_path / "one.npy", "this is a single array")
    np.savez(tmp_path / "other.npz", other=np.zeros(3))
    refused(tmp_path / "other.npz", "these are no arrays of a network: other")

    class Trap:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "sprung",)

    (tmp_path / "trap.npz").write_bytes(pickle.dumps(Trap()))
    refused(tmp_path / "trap.npz", "cannot be read")
    np.savez(tmp_path / "inside.npz", weight_0=np.array([Trap()]), bias_0=np.zeros(1))
    refused(tmp_path / "inside.npz", "cannot be read")
    assert not (tmp_path / "sprung").exists()
