"""When two records count as the same one: fingerprints, and which parts of a record survive the way.

Pure. A fingerprint is all that is kept of a record's content: payloads stay where they are read. Converters
and transforms on the way may change parts of a record, so what must agree is calibrated per topic on *anchors*:
pairs of records that MM2's syncs name as original and copy (Law 3 of docs/translation.md).
"""

from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat

Headers = Sequence[tuple[str, bytes | None]]
# One anchor in this many may be unlike by chance: a stale sync that names two records which look alike.
RARE = 10
# This many anchors with headers, all of them alike, show that headers are kept.
CLEAR = 16


class Part(StrEnum):
    """What a record consists of, in the order in which it is compared and named."""

    TIMESTAMP = "timestamp"
    KEY = "key"
    VALUE = "value"
    HEADERS = "headers"


ALL_PARTS = frozenset(Part)


class Equality(StrEnum):
    """Which parts of two records must agree, from the widest to the weakest.

    `TIME_AND_KEY` can prove an anchor whose content was changed on the way; rows that rest on it are never exact.
    """

    ALL = "all"
    WITHOUT_HEADERS = "without-headers"
    WITHOUT_TIMESTAMP = "without-timestamp"
    KEY_AND_VALUE = "key-and-value"
    TIME_AND_KEY = "time-and-key"

    @property
    def parts(self) -> frozenset[Part]:
        """The parts that this equality looks at."""
        return _PARTS[self]

    @property
    def keeps_time(self) -> bool:
        """True if equal records have equal timestamps, so that a log can be searched by them."""
        return Part.TIMESTAMP in self.parts


_PARTS = {
    Equality.ALL: ALL_PARTS,
    Equality.WITHOUT_HEADERS: ALL_PARTS - {Part.HEADERS},
    Equality.WITHOUT_TIMESTAMP: ALL_PARTS - {Part.TIMESTAMP},
    Equality.KEY_AND_VALUE: frozenset({Part.KEY, Part.VALUE}),
    Equality.TIME_AND_KEY: frozenset({Part.TIMESTAMP, Part.KEY}),
}


@dataclass(frozen=True, slots=True)
class Content:
    """A record's parts as read; `timestamp` in ms. Never leaves the process that read it."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def fingerprints(
    equality: Equality,
    times: Iterable[int],
    keys: Iterable[bytes | None],
    values: Iterable[bytes | None],
    headers: Iterable[Headers | None],
) -> "array[int]":
    """Return the 64-bit signed fingerprints of records given as columns: one pass over millions of records.

    Python's own hash of a tuple: SipHash-1-3 of each part, combined in the manner of xxHash. The boundaries of parts
    count: ("ab", "c") is not ("a", "bc"), and null is not empty. It is seeded per process, so prints are only compared
    with those made in the same one; a digest that holds everywhere (BLAKE2b) took a third of all comparing time.
    """
    columns: dict[Part, Iterable[object]] = {Part.TIMESTAMP: times, Part.KEY: keys, Part.VALUE: values}
    if Part.HEADERS in equality.parts:
        named = list(headers)
        # Most topics have none.
        columns[Part.HEADERS] = (tuple(map(tuple, each or ())) for each in named) if any(named) else repeat(())
    parts = [column for part, column in columns.items() if part in equality.parts]
    return array("q", map(hash, zip(*parts, strict=False)))


def calibrated(anchors: Iterable[tuple[Content, Content]]) -> Equality | None:
    """Return the widest equality under which most anchors of a topic agree; None if none agrees under any.

    `anchors` are (source record, target record) of the same sync. A sync may be stale and name two unrelated records,
    so anchors that agree in nothing have no vote, however many they are. What is kept is decided part by part, by most
    of those that can tell: one stale anchor's timestamp (two records that look alike) does not narrow the equality, and
    records without headers do not hide that headers are changed.
    """
    pairs = list(anchors)
    same = [(a, b) for a, b in pairs if (a.key, a.value) == (b.key, b.value)]
    changed = [(a, b) for a, b in pairs if (a.timestamp, a.key) == (b.timestamp, b.key) and a.value != b.value]
    # Transforms leave a null value alone, so tombstones do not tell that values are kept.
    if len(changed) > sum(a.value is not None for a, _ in same):
        return Equality.TIME_AND_KEY
    if not same:
        return None
    keeps_time, unlike, certain = _telling_headers(same)
    keeps_headers = RARE * unlike < certain or not certain
    if keeps_time:
        return Equality.ALL if keeps_headers else Equality.WITHOUT_HEADERS
    return Equality.WITHOUT_TIMESTAMP if keeps_headers else Equality.KEY_AND_VALUE


def is_clear(anchors: Iterable[tuple[Content, Content]]) -> bool:
    """True if more anchors would hardly change what `calibrated` makes of the headers.

    A converter may change a header that few records have: a dozen that agree do not show that all are kept, and a
    single one that differs may be chance.
    """
    _, unlike, certain = _telling_headers([(a, b) for a, b in anchors if (a.key, a.value) == (b.key, b.value)])
    return RARE * unlike >= certain if unlike else not 0 < certain < CLEAR


def _telling_headers(same: Collection[tuple[Content, Content]]) -> tuple[bool, int, int]:
    """Return of pairs with equal key and value: whether they keep time, how many differ in headers, of how many."""
    # Headers without a value tell nothing: a converter leaves them as they are.
    with_headers = [(a, b) for a, b in same if any(value for _, value in (*a.headers, *b.headers))]
    # Half suffice: two records are far less often equal by chance than unlike by a stale sync.
    keeps_time = 2 * sum(a.timestamp == b.timestamp for a, b in same) >= len(same)
    # A converter may change some headers only. Those that are alike in all else are hardly so by chance.
    certain = [(a, b) for a, b in with_headers if a.timestamp == b.timestamp] if keeps_time else with_headers
    return keeps_time, sum(tuple(a.headers) != tuple(b.headers) for a, b in certain), len(certain)
