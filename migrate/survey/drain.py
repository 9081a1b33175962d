"""Whether MM2 has copied all of a partition (docs/translation.md, "Drained"), and how many records are left. Pure.

Heartbeats prove nothing, and neither does a copy of the last record alone: MM2 may have been stopped in the middle
of a replay. What is not known is no proof.

What is left is counted where the records were compared; else it is an estimate, from how far each log reaches behind
the newest sync that both sides confirm, and from MM2's own position. An estimate never says that all is copied.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from migrate.match.protocol import OffsetPair, Tail
from migrate.mm2.flow import Flow
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.survey import Case, Survey, copy_of
from migrate.text import many


@dataclass(frozen=True, slots=True)
class Drained:
    """The verdict: True, False, or None where nobody can tell; `seen` says why it is not True."""

    verdict: bool | None
    seen: str = ""


def drained(
    flow: Flow,
    source_log: LogRange,
    target_log: LogRange,
    source_top: int | Failure | None,
    target_top: int | Failure | None,
    last_copied_offset: int | None,
    tail: Tail | None,
) -> Drained:
    """Judge one partition: no transaction open, and all copied by the records or by MM2's own position.

    `source_top` and `target_top` are the high watermarks, None or a `Failure` where they were not reported.
    `last_copied_offset` is MM2's own committed source offset (the last record copied, inclusive), None if unknown.
    `tail` is what comparing the records showed, None where they were not compared.
    """
    source_alias, target_alias = flow.source.alias, flow.target.alias
    for top, log, alias in ((source_top, source_log, source_alias), (target_top, target_log, target_alias)):
        if not isinstance(top, int):
            return Drained(None, f"{alias} did not say whether a transaction is open")
        if top > log.end:
            return Drained(
                False,
                f"on {alias} the log reaches {top - log.end} beyond its last stable offset: a transaction is open, "
                "or producers write",
            )
    tail, end, position = tail or Tail(None), source_log.end, last_copied_offset
    if tail.uncopied == 0 or source_log.start == end:
        return Drained(True)
    last = end - 1 if tail.last_record is None else tail.last_record
    if position is not None and last <= position < end:
        is_empty = target_log.start == target_log.end
        empty = f"MM2's own position is {position}, and yet the copy on {target_alias} is empty"
        elsewhere = f"{empty}: a transform may send records elsewhere, or retention has removed them"
        return Drained(None, elsewhere) if is_empty else Drained(True)
    if tail.uncopied:
        return Drained(False, f"{many(tail.uncopied, 'record')} not copied yet")
    if position is None:
        return Drained(None, flow.replicator.unproven)
    if position >= end:
        return Drained(False, f"MM2's own position {position} lies beyond the end {end}: it is of another log, or old")
    position_text = f"MM2's own position is {position}"
    if tail.last_record is None:
        return Drained(
            None, f"{position_text} and the log ends at {end}: whether there are records between was not read"
        )
    return Drained(False, f"{position_text} and the last record is {tail.last_record}")


def drains(survey: Survey) -> dict[TopicPartition, Drained]:
    """Judge every source partition of the plan of which both logs are pinned; none where nothing is copied its way."""
    flow, judged = survey.flow, dict[TopicPartition, Drained]()
    if (Case.SOURCE_READ | Case.WAY_THERE) not in survey.case:
        return judged
    for source, source_log in survey.logs.source.items():
        target = copy_of(flow, source)
        target_log, answer = survey.logs.target.get(target), survey.answers.get(source)
        if isinstance(source_log, LogRange) and isinstance(target_log, LogRange):
            judged[source] = drained(
                flow,
                source_log,
                target_log,
                survey.watermarks.source.get(source),
                survey.watermarks.target.get(target),
                survey.mm2.positions.last_copied_offset.get(source),
                answer.tail if answer else None,
            )
    return judged


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
    newest: OffsetPair | None,
    last_copied_offset: int | None,
) -> Lag:
    """Return the lag of one partition.

    `newest` is the last sync of its chain, `last_copied_offset` MM2's own position (the last record copied, inclusive).
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
    if last_copied_offset is not None:
        bounds.append(source_log.end - 1 - last_copied_offset)
    is_empty = target_log.end == target_log.start
    if not bounds:
        return Lag(width) if is_empty else UNKNOWN
    if is_empty:
        # What syncs and position tell of was copied elsewhere, or is gone.
        return UNKNOWN
    return Lag(min(width, max(0, min(bounds))))


def total(lags: Iterable[Lag]) -> Lag:
    """Return the lag of several partitions together; unknown if one of them is."""
    parts = list(lags)
    if any(lag.records is None for lag in parts):
        return UNKNOWN
    since = [lag.waiting_since for lag in parts if lag.waiting_since is not None]
    return Lag(sum(lag.records or 0 for lag in parts), all(lag.is_counted for lag in parts), min(since, default=None))
