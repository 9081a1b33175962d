"""How many records of a partition MM2 has still to copy. Pure.

Counted where the records were compared; else an estimate, from how far each log reaches behind the newest sync that
both sides confirm, and from MM2's own position. An estimate never says that all is copied: that is
`migrate.survey.drain`'s.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from migrate.match.protocol import Link, Tail
from migrate.model import LogRange


@dataclass(frozen=True, slots=True)
class Lag:
    """`records` not copied yet, None where nothing tells; `is_counted` is False for an estimate.

    `waiting_since` is the timestamp (ms) of the oldest of them, None where it was not read.
    """

    records: int | None
    is_counted: bool = False
    waiting_since: int | None = None


NONE_LEFT = Lag(0, True)
UNKNOWN = Lag(None)


def lag_of(
    source_log: LogRange,
    target_log: LogRange,
    is_drained: bool,
    tail: Tail | None,
    newest: Link | None,
    copied_to: int | None,
) -> Lag:
    """Return the lag of one partition.

    `newest` is the last sync of its chain, `copied_to` MM2's own position (the last record copied, inclusive).
    """
    if is_drained:
        return NONE_LEFT
    if tail is not None and tail.uncopied is not None:
        return Lag(tail.uncopied, True, tail.waiting_since)
    width = source_log.end - source_log.start
    bounds = []
    if newest is not None:
        # Markers and replays make the target's part longer than what was copied, never shorter.
        bounds.append((source_log.end - newest[0]) - (target_log.end - newest[1]))
    if copied_to is not None:
        bounds.append(source_log.end - 1 - copied_to)
    if not bounds:
        return UNKNOWN if target_log.end > target_log.start else Lag(width)
    return Lag(min(width, max(0, min(bounds))))


def total(lags: Iterable[Lag]) -> Lag:
    """Return the lag of several partitions together; unknown if one of them is."""
    records, is_counted, since = 0, True, []
    for lag in lags:
        if lag.records is None:
            return UNKNOWN
        records += lag.records
        is_counted = is_counted and lag.is_counted
        if lag.waiting_since is not None:
            since.append(lag.waiting_since)
    return Lag(records, is_counted, min(since, default=None))
