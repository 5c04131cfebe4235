"""What a study measures: how policies of a pool do in a test, and a learner of two at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.analysis.aiq import MIXTURES
from robo_eval.core.errors import InputError
from robo_eval.study.cloning import Examples, mixed
from robo_eval.study.domain import Domain
from robo_eval.study.network import Architecture, Network
from robo_eval.study.suite import LearnerSection, PoolSection
from robo_eval.study.trainers import Mixture, trained

METHOD: Final = 2
"""Goes up whenever the same suite would give other numbers: results made before count no more."""
SHARES: Final = MIXTURES[1:-1]
"""Mixtures that are learned; the ends of the curve are the tests learned by themselves."""
_EXAMPLES, _PLAYED, _POOL, _LEARNER, _DRAWN = 1, 2, 3, 4, 5
"""What seeds are for: two of one study never agree by chance."""
MOST_LAYERS: Final = 3
"""Hidden layers that a policy of the pool may have."""
MOST_UNITS: Final = 64
"""Units that a hidden layer of it may have."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lesson:
    """A test and the examples of it that networks learn from."""

    domain: Domain
    examples: Examples


def lesson(domain: Domain, count: int, *, seed: int, stream: int = 0) -> Lesson:
    """A test with examples of it.

    Args:
        domain: The test.
        count: Examples.
        seed: Of the study.
        stream: Examples of other streams are of other episodes.
    """
    return Lesson(
        domain=domain,
        examples=domain.examples(count, seed=seed_of(seed, _EXAMPLES, stream)),
    )


def policy(own: Lesson, plan: PoolSection, number: int, *, seed: int) -> tuple[int, float]:
    """Train one policy of a pool on a test, and play it.

    Policies of one number have the same hidden layers in every test, start from the same weights
    where those fit, and are judged by the same episodes.

    Args:
        own: The test.
        plan: The pool.
        number: Which policy, from 0 on; it does not depend on how many there are.
        seed: Of the study.

    Returns:
        Its trainable parameters, and its mean performance in [0, 1].
    """
    domain = own.domain
    built = architectures(
        number + 1,
        inputs=domain.inputs,
        outputs=domain.outputs,
        seed=seed_of(seed, _POOL),
        most_layers=plan.layers,
        most_units=plan.units,
    )[number]
    ways = Mixture(first=domain, second=domain, share=1.0)
    network = trained(built, own.examples, ways, plan, seed=seed_of(seed, _POOL, number))
    return built.size, performance(domain, network, plan.episodes, seed=seed)


def alone(own: Lesson, plan: LearnerSection, number: int, *, seed: int) -> float:
    """Performance of the learner that learned one test only.

    Args:
        own: The test.
        plan: The learner.
        number: Which training, from 0 on.
        seed: Of the study.
    """
    network = learner(own, own, plan, 1.0, number, seed=seed)
    return performance(own.domain, network, plan.episodes, seed=seed)


def mixture(
    first: Lesson,
    second: Lesson,
    plan: LearnerSection,
    number: int,
    *,
    seed: int,
    shares: Sequence[float] = SHARES,
) -> NDArray[np.float64]:
    """How a learner does in two tests, trained anew for each mixture of them.

    An episode of a mixture is of the first test with probability p. The mean performance in the
    mixture is p times that in the first test and 1 - p times that in the second.

    Args:
        first: Its share is p.
        second: Its share is 1 - p; the same test with other examples shows what noise does.
        plan: The learner.
        number: Which training, from 0 on.
        seed: Of the study.
        shares: The mixtures p.

    Returns:
        Performance in the first and in the second test for each mixture, shape (2, len(shares)).

    Raises:
        InputError: If the tests show different numbers of things, or take them.
    """
    check_alike(first.domain, second.domain)
    found = np.empty((2, len(shares)))
    for place, share in enumerate(shares):
        network = learner(first, second, plan, share, number, seed=seed)
        found[0, place] = performance(first.domain, network, plan.episodes, seed=seed)
        found[1, place] = (
            found[0, place]
            if second.domain is first.domain
            else performance(second.domain, network, plan.episodes, seed=seed)
        )
    return found


def learner(
    first: Lesson, second: Lesson, plan: LearnerSection, share: float, number: int, *, seed: int
) -> Network:
    """The reference learner, trained from scratch on a mixture; see `mixture`."""
    built = Architecture(
        inputs=first.domain.inputs, hidden=plan.hidden, outputs=first.domain.outputs
    )
    place = round(share * 1000)
    rng = np.random.default_rng(np.random.SeedSequence([seed, _DRAWN, number, place]))
    return trained(
        built,
        mixed(first.examples, second.examples, share, rng),
        Mixture(first=first.domain, second=second.domain, share=share),
        plan,
        seed=seed_of(seed, _LEARNER, number, place),
    )


def performance(domain: Domain, network: Network, episodes: int, *, seed: int) -> float:
    """Mean performance of a network in the episodes that all networks of a study are judged by."""
    return float(domain.performances(network, episodes, seed=played_seed(seed)).mean())


def played_seed(seed: int) -> int:
    """Seed of the episodes that all networks of a study are judged by."""
    return seed_of(seed, _PLAYED)


def check_alike(first: Domain, second: Domain) -> None:
    """Refuse two tests that one learner cannot learn.

    Raises:
        InputError: If they show different numbers of things, or take them.
    """
    if (first.inputs, first.outputs) != (second.inputs, second.outputs):
        raise InputError(
            f"{first.name} shows {first.inputs} numbers and takes {first.outputs} actions,"
            f" {second.name} {second.inputs} and {second.outputs}; one learner needs the same"
        )


def seed_of(*parts: int) -> int:
    """A seed that follows from several numbers."""
    return int(np.random.SeedSequence(list(parts)).generate_state(1)[0] >> 1)


# The pool ----------------------------------------------------------------------------------------


def architectures(
    count: int,
    *,
    inputs: int,
    outputs: int,
    seed: int,
    most_layers: int = MOST_LAYERS,
    most_units: int = MOST_UNITS,
) -> list[Architecture]:
    """Architectures of a pool: the same hidden layers for every test, whatever it shows and takes.

    The number of hidden layers is drawn evenly from 0 on; the units of each evenly on a logarithmic
    scale, so that there are as many small policies as large ones.

    Args:
        count: How many.
        inputs: Numbers in an observation of the test.
        outputs: Actions of the test.
        seed: Of the draws; pools of one seed have the same hidden layers.
        most_layers: Hidden layers at most.
        most_units: Units of a hidden layer at most.

    Raises:
        InputError: If a number is out of range.
    """
    if count < 1 or most_layers < 0 or most_units < 1:
        raise InputError(
            f"count is {count}, most_layers {most_layers} and most_units {most_units}; they must be"
            " 1, 0 and 1 at least"
        )
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        layers = int(rng.integers(most_layers + 1))
        units = np.floor(np.exp(rng.uniform(0.0, math.log(most_units + 1), most_layers)))
        hidden = tuple(int(one) for one in np.minimum(units, most_units)[:layers])
        found.append(Architecture(inputs=inputs, hidden=hidden, outputs=outputs))
    return found
