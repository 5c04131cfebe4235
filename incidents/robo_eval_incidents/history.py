"""In which order records of one incident were made, and what each of them knew of the others."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from robo_eval_incidents.record import Record


@dataclass(frozen=True, slots=True)
class Told:
    """A record in its place.

    Attributes:
        record: The record.
        bit: What marks it in `known` of others.
        known: Bits of all records that were known at its station when it was made.
    """

    record: Record
    bit: int
    known: int


def newest(records: Sequence[Record]) -> tuple[str, ...]:
    """Ids of the records that no other one knows of: what the next one comes after."""
    known = {record_id for record in records for record_id in record.after}
    return tuple(sorted({record.record_id for record in records} - known))


def told(records: Sequence[Record]) -> list[Told]:
    """Records so that each comes after all that it knew of.

    What was made apart, at stations that had not been merged, is in the order of their clocks.
    """
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, record in enumerate(records):
        places[record.record_id].append(place)
    before = _before(records, places)
    found: list[Told] = []
    known = [0] * len(records)
    for place in _sorted(records, before):
        bit = 1 << len(found)
        # What comes later knows of this record, and of all that this one knew.
        own = 0
        for other in before[place]:
            own |= known[other]
        known[place] = own | bit
        found.append(Told(record=records[place], bit=bit, known=own))
    return found


def _before(records: Sequence[Record], places: dict[str, list[int]]) -> list[set[int]]:
    """What each record comes after: those it names, and those of its station before it."""
    before: list[set[int]] = [
        {other for record_id in record.after for other in places.get(record_id, ())} - {place}
        for place, record in enumerate(records)
    ]
    last: dict[str, int] = {}
    for place in sorted(range(len(records)), key=lambda one: records[one].sequence):
        station = records[place].station
        if station in last:
            before[place].add(last[station])
        last[station] = place
    return before


def _sorted(records: Sequence[Record], before: Sequence[set[int]]) -> list[int]:
    after: defaultdict[int, list[int]] = defaultdict(list)
    waiting = [len(own) for own in before]
    for place, own in enumerate(before):
        for other in own:
            after[other].append(place)

    def key(place: int) -> tuple[int, str, int, int]:
        record = records[place]
        return record.at.time_ns, record.station, record.sequence, place

    ready = [key(place) for place, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    found: list[int] = []
    while ready:
        place = heapq.heappop(ready)[-1]
        found.append(place)
        for later in after[place]:
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, key(later))
    # Records that name each other in a circle are forged; they are shown all the same.
    left = set(range(len(records))) - set(found)
    return found + sorted(left, key=key)
