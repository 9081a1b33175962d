"""What is kept of the records that a run delivers: fingerprints, or whole contents of a few.

Records are taken in by the hundred: what is done for each of them alone decides how fast everything is.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Protocol

from confluent_kafka import Message

from migrate.match.equality import Content, Equality, fingerprints
from migrate.match.log_reader import Run
from migrate.match.protocol import LogSlice, OffsetRange, key_mark

# A record without an error has all of these: the client's types cannot tell.
_offset: Any = Message.offset
_headers: Any = Message.headers
_second = itemgetter(1)
_WITH_HEADERS = (Equality.ALL, Equality.WITHOUT_TIMESTAMP)


class Shelf(Protocol):
    """Keeps what is needed of the records of one range; below `readable_from` retention has deleted them."""

    readable_from: int

    def add(self, offsets: "array[int]", messages: Sequence[Message]) -> None:
        """Take records that follow those taken before."""


class Prints:
    """Fingerprints of the records of one range."""

    def __init__(self, equality: Equality, with_keys: bool = False) -> None:
        self.readable_from = 0
        self._with_keys = with_keys
        self._keys = array("q")
        self._equality = equality
        self._offsets = array("q")
        self._times = array("q")
        self._prints = array("q")

    def add(self, offsets: "array[int]", messages: Sequence[Message]) -> None:
        """Fingerprint records; their payloads end here."""
        times = array("q", _times(messages))
        keys: Any = map(Message.key, messages)
        values: Any = map(Message.value, messages)
        if self._with_keys:
            keys, values = list(keys), list(values)
            self._keys.extend(map(key_mark, keys, values))
        self._offsets.extend(offsets)
        self._times.extend(times)
        headers = map(_headers, messages) if self._equality in _WITH_HEADERS else repeat(())
        self._prints.extend(fingerprints(self._equality, times, keys, values, headers))

    def stretch(self, piece: OffsetRange) -> LogSlice:
        """Return what was taken in."""
        readable_from = min(max(piece.start, self.readable_from), piece.end)
        at = bisect_left(self._offsets, readable_from)
        offsets, times, prints, keys = (
            column[at:] if at else column for column in (self._offsets, self._times, self._prints, self._keys)
        )
        return LogSlice(piece.start, piece.end, readable_from, offsets, times, prints, keys)


class Contents:
    """The contents of single records, by offset."""

    def __init__(self) -> None:
        self.readable_from = 0
        self.records: dict[int, Content] = {}

    def add(self, offsets: "array[int]", messages: Sequence[Message]) -> None:
        """Keep the records as they are."""
        parts = (_times(messages), map(Message.key, messages), map(Message.value, messages), map(_headers, messages))
        for offset, time, key, value, headers in zip(offsets, *parts, strict=True):
            self.records[offset] = Content(time, key, value, tuple(headers or ()))


class RunIntake:
    """Takes the records of one run and puts those within its ranges on their shelves; `start` is what comes next."""

    def __init__(self, run: Run, ranges: Sequence[OffsetRange], shelves: Sequence[Shelf]) -> None:
        self.run = run
        self.start = run.start
        self._ranges = ranges
        self._shelves = shelves
        self._at = run.first

    def take(self, messages: Sequence[Message]) -> bool:
        """Take records of this partition in the order of their log; True if the run's end is reached.

        A record beyond the end ends it too: compaction, markers and aborted records leave offsets without one.
        """
        offsets: array[int] = array("q", map(_offset, messages))
        last = offsets[-1]
        self.start = last + 1
        while self._at <= self.run.last:
            piece = self._ranges[self._at]
            if piece.start > last:
                break
            low, high = bisect_left(offsets, piece.start), bisect_left(offsets, piece.end)
            if low < high:
                self._shelves[self._at].add(offsets[low:high], messages[low:high])
            if last < piece.end - 1:
                break
            self._at += 1
        return last >= self.run.end - 1

    def begin_at(self, log_start: int) -> None:
        """Go on from where the log begins now: retention was faster."""
        self.start = log_start
        for shelf in self._shelves[self.run.first : self.run.last + 1]:
            shelf.readable_from = log_start


def _times(messages: Iterable[Message]) -> Iterator[int]:
    return map(_second, map(Message.timestamp, messages))
