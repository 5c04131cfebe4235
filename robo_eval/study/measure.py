"""What a study measures: how a pool of policies does in a test, and a learner of two at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.analysis.aiq import MIXTURES, Complexity, mccp
from robo_eval.core.errors import InputError
from robo_eval.study.cloning import Budget, Examples, clone, mixed
from robo_eval.study.domain import Domain
from robo_eval.study.network import Architecture
from robo_eval.study.pool import architectures

LEARNER: Final = (32, 32)
"""Hidden layers of the learner of mixtures, unless others are named."""
_EXAMPLES, _PLAYED, _POOL = 1, 2, 3
"""What seeds are for: two of one study never agree by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is spent on each policy; the same for all tests of a study.

    Attributes:
        examples: Examples that an expert gives of each test.
        budget: How much each network is trained.
        episodes: Episodes each is judged by.
    """

    examples: int = 4_000
    budget: Budget = field(default_factory=Budget)
    episodes: int = 20

    def __post_init__(self) -> None:
        if self.examples < 1 or self.episodes < 1:
            raise InputError(
                f"examples is {self.examples} and episodes {self.episodes}; 1 is the least"
            )


_DEFAULT: Final = Effort()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """How the policies of a pool did in a test.

    Attributes:
        sizes: Their trainable parameters, shape (n,).
        performances: Their mean performances in [0, 1], shape (n,).
    """

    sizes: NDArray[np.float64]
    performances: NDArray[np.float64]

    @property
    def complexity(self) -> Complexity:
        """The complexity of the test; see `robo_eval.analysis.aiq.mccp`."""
        return mccp(self.sizes, self.performances)


def examples_of(domain: Domain, effort: Effort, *, seed: int) -> Examples:
    """Examples of a test that all policies of a study learn from."""
    return domain.examples(effort.examples, seed=_seed(seed, _EXAMPLES))


def pool_of(
    domain: Domain,
    policies: int,
    *,
    seed: int,
    effort: Effort = _DEFAULT,
    examples: Examples | None = None,
) -> Pool:
    """Train a pool of policies on a test and play each.

    Pools of one seed have the same hidden layers in every test, start from the same weights where
    those fit, and are judged by the same episodes.

    Args:
        domain: The test.
        policies: How many.
        seed: Of the study.
        effort: How much is spent on each.
        examples: Those of `examples_of`; made if none are given.

    Raises:
        InputError: If there are none, or a network does not fit the test.
    """
    own = examples_of(domain, effort, seed=seed) if examples is None else examples
    built = architectures(
        policies, inputs=domain.inputs, outputs=domain.outputs, seed=_seed(seed, _POOL)
    )
    found = [
        _performance(domain, architecture, own, effort, seed=seed, number=number)
        for number, architecture in enumerate(built)
    ]
    return Pool(
        sizes=np.array([one.size for one in built], dtype=np.float64),
        performances=np.array(found),
    )


def mixture_performances(
    first: Domain,
    second: Domain,
    *,
    seed: int,
    effort: Effort = _DEFAULT,
    trainings: int = 3,
    hidden: Sequence[int] = LEARNER,
    shares: Sequence[float] = MIXTURES,
    examples: tuple[Examples, Examples] | None = None,
) -> NDArray[np.float64]:
    """How one learner does in mixtures of two tests, trained anew for each.

    An episode of a mixture is of the first test with probability p; its mean performance is p times
    that in the first and 1 - p times that in the second.

    Args:
        first: Its share is p.
        second: Its share is 1 - p. It shows as many numbers and takes as many actions.
        seed: Of the study.
        effort: How much is spent on each training.
        trainings: How often each mixture is learned.
        hidden: Hidden layers of the learner.
        shares: The mixtures p.
        examples: Those of `examples_of` of both; made if none are given.

    Returns:
        Performances in [0, 1], shape (trainings, len(shares)).

    Raises:
        InputError: If the tests show or take different numbers of things.
    """
    if (first.inputs, first.outputs) != (second.inputs, second.outputs):
        raise InputError(
            f"{first.name} shows {first.inputs} numbers and takes {first.outputs} actions,"
            f" {second.name} {second.inputs} and {second.outputs}; one learner needs the same"
        )
    if trainings < 1:
        raise InputError(f"trainings is {trainings}; it must be 1 or more")
    own, other = examples or (
        examples_of(first, effort, seed=seed), examples_of(second, effort, seed=seed)
    )  # fmt: skip
    built = Architecture(inputs=first.inputs, hidden=tuple(hidden), outputs=first.outputs)
    found = np.empty((trainings, len(shares)))
    for training in range(trainings):
        for place, share in enumerate(shares):
            number = training * len(shares) + place
            rng = np.random.default_rng(np.random.SeedSequence([seed, _EXAMPLES, number]))
            network = clone(
                built,
                mixed(own, other, share, rng),
                budget=effort.budget,
                seed=_seed(seed, _POOL, number),
            )
            means = [
                one.performances(network, effort.episodes, seed=_seed(seed, _PLAYED)).mean()
                if weight
                else 0.0
                for one, weight in ((first, share), (second, 1.0 - share))
            ]
            found[training, place] = share * means[0] + (1.0 - share) * means[1]
    return found


def _performance(
    domain: Domain,
    architecture: Architecture,
    examples: Examples,
    effort: Effort,
    *,
    seed: int,
    number: int,
) -> float:
    network = clone(architecture, examples, budget=effort.budget, seed=_seed(seed, _POOL, number))
    played = domain.performances(network, effort.episodes, seed=_seed(seed, _PLAYED))
    return float(played.mean())


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(list(parts)).generate_state(1)[0] >> 1)
