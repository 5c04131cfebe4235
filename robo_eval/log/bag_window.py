"""Where a bag is cut into episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from robo_eval.core.errors import InputError
from robo_eval.log.bag_field import FieldPath
from robo_eval.log.bag_gaps import Span
from robo_eval.log.bag_map import LABEL_WITHIN_S, Markers
from robo_eval.log.bag_value import spelled

Said = tuple[int, FieldPath, Any]
"""When a field was received (ns), which, and what it was."""

_NS: Final = 1e-9
_NEXT: Final = "no end was said; the next start ended it"
_NEVER: Final = "no end was said; the recording ended it"
_AGAIN: Final = (
    "what begins an episode was said again while it ran, and begins no other; set episodes.each:"
    " message if it does"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeWindow:
    """The part of a bag that is one episode.

    Attributes:
        number: 1, 2, ... in its bag; 0 if it is the whole bag.
        first_ns: When it begins.
        last_ns: When it ends.
        until_ns: Until when a label belongs to it.
        remarks: What is to be said about where it begins and ends.
        pauses: Parts of it that do not count, ns.
    """

    number: int
    first_ns: int
    last_ns: int
    until_ns: int
    remarks: tuple[str, ...] = ()
    pauses: tuple[Span, ...] = ()

    def parts(self) -> list[Span]:
        """What lies between its pauses."""
        edges = [self.first_ns, *(edge for pause in self.pauses for edge in pause), self.last_ns]
        return list(zip(edges[::2], edges[1::2], strict=True))

    def seconds(self, until_ns: int | None = None) -> float:
        """How long it lasts without its pauses, or what of it lies before a time."""
        end = self.last_ns if until_ns is None else until_ns
        return sum(max(0, min(last, end) - first) for first, last in self.parts()) * _NS


def cut(where: str, markers: Markers, said: Sequence[Said], end_ns: int) -> list[EpisodeWindow]:
    """The episodes between markers.

    A marker is a change: a state that is repeated begins one episode, not one each time.

    Args:
        where: Bag, for error messages.
        markers: What begins and ends an episode.
        said: What their fields say, in the order of time.
        end_ns: When the bag ends.

    Raises:
        InputError: If nothing begins an episode, or it cannot be told how many begin.
    """
    place = f"{where}: {markers.field.text} (episodes of the topic map)"
    names = sorted(markers.start | markers.end)
    words = [(stamp, path, spelled(place, value, names)) for stamp, path, value in said]
    begins = [word for _, path, word in words if path == markers.field]
    if not markers.start & set(begins):
        says, wants = (
            ", ".join(f"{word!r:.40}" for word in w)
            for w in (sorted({*begins})[:5], sorted(markers.start))
        )
        raise InputError(
            f"{where}: topic {markers.field.topic} (episodes of the topic map) has no"
            f" message that begins an episode; it says {says or 'nothing'}, the map {wants};"
            " correct episodes, or leave the bag out"
        )
    if markers.each is None and not markers.end and len(begins) > 1 and len(set(begins)) == 1:
        raise InputError(
            f"{place}: says nothing but {begins[0]!r:.40}, {len(begins)} times; set episodes.each:"
            " message if each of these begins an episode, or change if it is one state"
        )
    # An event is said once; what is said again where nothing begins is a state at some rate.
    is_state = any(one == two not in markers.start for one, two in pairwise(begins))
    cuts: list[tuple[int, int, list[str]]] = []
    begun: int | None = None
    remarks: list[str] = []
    before: dict[FieldPath, str] = {}
    for stamp, path, word in words:
        is_new = before.get(path) != word or markers.each == "message"
        before[path] = word
        is_start = path == markers.field and word in markers.start
        is_end = path == (markers.end_field or markers.field) and word in markers.end
        if is_start and is_new:
            if begun is not None:
                cuts.append((begun, stamp - 1, [*remarks, *([_NEXT] if markers.end else [])]))
            begun, remarks = stamp, []
        elif is_end and is_new and begun is not None:
            cuts.append((begun, stamp, remarks))
            begun = None
        elif is_start and begun is not None and not is_state:
            remarks = [_AGAIN]
        elif is_start and cuts and not is_state and markers.each is None:
            raise InputError(
                f"{place}: says {word!r:.40} again after the end of episode {len(cuts)}, and"
                " nothing else between; set episodes.each: message if that begins one, or change"
                " if it does not"
            )
    if begun is not None:
        cuts.append((begun, end_ns, [*remarks, *([_NEVER] if markers.end else [])]))
    within_s = LABEL_WITHIN_S if markers.label_within_s is None else markers.label_within_s
    nexts = [first - 1 for first, _, _ in cuts[1:]] + [end_ns]
    return [
        EpisodeWindow(
            number=number,
            first_ns=first,
            last_ns=last,
            until_ns=min(last + round(within_s * 1e9), following),
            remarks=tuple(said),
        )
        for number, ((first, last, said), following) in enumerate(
            zip(cuts, nexts, strict=True), start=1
        )
    ]
