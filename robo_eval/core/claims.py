"""The words that claim something, each given the verdict of the test that allows it."""

from __future__ import annotations

from typing import Literal

Verdict = Literal["higher", "lower", "undecided"]
"""What a test says of the first beside the second; `undecided` where it does not decide."""


def did(verdict: Verdict, than: str) -> str:
    """How somebody did beside another, to stand after a name.

    Example:
        >>> did("higher", "balancer"), did("undecided", "balancer")
        ('did better than balancer', 'was not told apart from balancer')
    """
    words = {
        "higher": "did better than",
        "lower": "did worse than",
        "undecided": "was not told apart from",
    }
    return f"{words[verdict]} {than}"


def promised(verdict: Verdict) -> str:
    """Whether a simulator told how a robot does, by the test of robot less simulator.

    Example:
        >>> promised("lower")
        'No, it promised too much.'
    """
    return {
        "higher": "No, it promised too little.",
        "lower": "No, it promised too much.",
        "undecided": "No difference was shown.",
    }[verdict]
