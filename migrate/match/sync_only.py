"""Law 2: a commit whose records are not compared is placed by a sync, with timestamps as a guard. Pure."""

from collections.abc import Generator

from migrate.match.anchors import Anchors
from migrate.match.partial_log import LogPair, MissingRanges, collected
from migrate.match.protocol import (
    Matched,
    Needs,
    PartitionAnswer,
    PartitionQuestion,
    Supply,
    Tail,
    Unmatched,
    Unreadable,
    Why,
    WhyUnmatched,
)

# Aborted records, and what a cleaner took, leave offsets without a record. So many are asked for at a time: where
# records begin again, no more than these are read for the timestamp of one.
STEP = 8**5


def guarding(
    question: PartitionQuestion, reason: WhyUnmatched, is_bounded: bool
) -> Generator[Needs, Supply | Unreadable, PartitionAnswer]:
    """Place the commits of a partition whose windows are not read: a few records for each, and a timestamp.

    A conversation as `migrate.match.matcher.matching` holds it. `reason` says why nothing was matched. `is_bounded` is
    False where records cannot tell a proven sync from another: then no place has a bound.
    """
    logs = LogPair(question)
    anchors = Anchors(question, logs)
    places: dict[int, Matched | Unmatched] = {}
    while True:
        missing: list[MissingRanges] = []
        for committed in question.source_committed:
            if reason is WhyUnmatched.TIMESTAMPS_NOT_KEPT and committed >= question.source_log.end:
                # Law 2b asks no timestamp where nothing is owed.
                places[committed] = Matched(question.target_log.end, Why.LEAST_TIMESTAMP, 0)
            if committed not in places:
                with collected(missing):
                    places[committed] = guarded(committed, anchors, logs, reason, is_bounded)
        if not missing:
            break
        supply = yield logs.needs(missing)
        if isinstance(supply, Unreadable):
            for committed in question.source_committed:
                places.setdefault(committed, Unmatched.not_readable(supply.reason))
            break
        logs.take_in(supply)
    return PartitionAnswer(places, Tail(None), len(logs.source.offsets), len(logs.target.offsets))


def guarded(
    committed: int,
    anchors: Anchors,
    logs: LogPair,
    reason: WhyUnmatched = WhyUnmatched.MATCH_LIMIT,
    is_bounded: bool = True,
) -> Matched | Unmatched:
    """Place a commit at the smaller of the proven sync below it and the first target offset of its time."""
    pair = anchors.below(committed)
    guard = _first_of_its_time(committed, logs) if logs.keeps_time else None
    if pair is None or guard is None or not is_bounded:
        nearest = anchors.unproven_below(committed)
        # Records that are changed on the way differ, and refute nothing.
        refuted = pair is None and nearest is not None and is_bounded and anchors.is_refuted(nearest)
        return Unmatched(reason, guard, pair, refuted)
    lowest = pair[1] if pair[0] == committed else pair[1] + 1
    offset = min(lowest, guard)
    # Copies of consumed records that still come stand behind the row, and are read again.
    at_most = logs.target.end - offset + logs.question.still_to_copy_below(committed)
    return Matched(offset, Why.NOT_ALL_READ, at_most, 0, pair, None)


def _first_of_its_time(committed: int, logs: LogPair) -> int:
    """Return the target's first offset for the timestamp of the first source record at or after a commit."""
    source, width = logs.source, 1
    start = max(committed, source.start)
    while True:
        owed = source.section(start, start + width)
        if owed.low < owed.top:
            return logs.target.first_at(owed.times[0])
        if start + width >= source.end:
            return logs.target.end
        start, width = start + width, min(8 * width, STEP)
