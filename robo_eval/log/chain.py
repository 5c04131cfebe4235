"""Chains of digests, as both logs keep them: each link names the digest of the one before it."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

GENESIS: Final = "0" * 64
"""What the first link of a chain names as the digest of the one before it."""


class ChainLink(NamedTuple):
    """A place in a chain: its number, from 1 on, and its digest."""

    sequence: int
    sha256: str


START: Final = ChainLink(0, GENESIS)
"""What the first link follows."""


def numbers_text(first: int, last: int, noun: str = "row") -> str:
    """Links from one number to another, in words."""
    return f"{noun} {first}" if first == last else f"{noun}s {first} to {last}"


def break_text(
    last: ChainLink, sequence: int, previous_sha256: object, noun: str = "row"
) -> str | None:
    """How a link fails to follow the last one, in words; see `break_before`."""
    before = last.sequence
    match break_before(last, sequence, previous_sha256):
        case "other":
            what = f"does not follow {noun} {before}" if before else f"is not the first {noun}"
            return f"{what}: previous_sha256 is not its digest"
        case "moved":
            return f"comes after {noun} {before}; {noun}s were moved"
        case "gap":
            return f"comes after a gap: {numbers_text(before + 1, sequence - 1, noun)} missing"
        case None:
            return None


def break_before(
    last: ChainLink, sequence: int, previous_sha256: object
) -> Literal["gap", "moved", "other"] | None:
    """How a link fails to follow the last one; None if it follows.

    Args:
        last: The link before, or `START`.
        sequence: Number of the link.
        previous_sha256: Digest that it names as the one before it.

    Returns:
        `gap` if links between them are missing, `moved` if it should come before, `other` if it
        names another link as the one before it.
    """
    if sequence != last.sequence + 1:
        return "gap" if sequence > last.sequence else "moved"
    return None if previous_sha256 == last.sha256 else "other"
