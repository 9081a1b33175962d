"""How late a commit reaches the target: from the moment it was made, or was first seen, until it is delivered. Pure.

It is delivered once its records are copied and its offset is on the target.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from migrate.match.protocol import PartitionAnswer, Why
from migrate.model import Decision, Failure, GroupPartition, Row, TopicPartition
from migrate.survey.offsets_topic import GroupRecord

TENTHS = 10
LONGEST_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Delay:
    """One row's delay in seconds; `is_from_first_look` where only the pass that saw its commit first is known."""

    seconds: float
    is_from_first_look: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many rows wait for MM2 to copy the records before their commits, and how long the oldest has."""

    rows: int = 0
    oldest_seconds: float = 0.0


def waits_for_copy(row: Row, tails: Mapping[TopicPartition, PartitionAnswer]) -> bool:
    """True if records before a row's commit are not copied yet: until they are, no offset there means the same."""
    if row.decision is Decision.SKIP or row.why in ("", Why.PROVEN):
        return False
    answer = tails.get(row.source_partition)
    # Another doubt may hide that one; at the end of an unfinished copy it counts as that.
    is_at_end = row.target_offset is not None and row.target_offset == row.target_log_end
    return row.why == Why.NOT_COPIED_YET or (is_at_end and bool(answer and answer.tail and answer.tail.uncopied))


class DelayWatch:
    """Remembers since when each row's commit waits. The first look measures nothing: those commits are of any age."""

    def __init__(self) -> None:
        self._seen: dict[GroupPartition, int | None] = {}
        self._since: dict[GroupPartition, tuple[int, bool]] = {}
        self._uncopied_since: dict[GroupPartition, int] = {}
        self._is_first = True

    def look(self, rows: Iterable[Row], records: Mapping[str, GroupRecord] | Failure, began_ms: int) -> int:
        """Take what a pass read from `began_ms` on; return how many rows have another commit than the pass before."""
        changed = 0
        seen: dict[GroupPartition, int | None] = {}
        for row in rows:
            key = GroupPartition(row.group, row.source_topic, row.partition)
            seen[key] = row.source_committed
            if key in self._seen and self._seen[key] == row.source_committed:
                continue
            changed += 1
            if not self._is_first:
                record = None if isinstance(records, Failure) else records.get(row.group)
                made_ms = None if record is None else made_at(row, record, began_ms)
                self._since[key] = (began_ms, True) if made_ms is None else (made_ms, False)
        self._seen, self._is_first = seen, False
        self._since = {key: since for key, since in self._since.items() if key in seen}
        return changed

    def uncopied(self, rows: Iterable[Row], began_ms: int) -> Waiting:
        """Take the rows of a pass whose records are not all copied yet; return how many there are, and since when."""
        keys = [GroupPartition(row.group, row.source_topic, row.partition) for row in rows]
        self._uncopied_since = {
            key: self._uncopied_since.get(key, self._since.get(key, (began_ms, True))[0]) for key in keys
        }
        return Waiting(len(keys), max(0, began_ms - min(self._uncopied_since.values(), default=began_ms)) / 1000)

    def reached(self, rows: Iterable[Row], now_ms: int) -> tuple[Delay, ...]:
        """Return the delays of rows that are copied, and set on the target at `now_ms`; they wait no more."""
        since = [self._since.pop(GroupPartition(r.group, r.source_topic, r.partition), None) for r in rows]
        return tuple(Delay(max(0, now_ms - each[0]) / 1000, each[1]) for each in since if each is not None)


def made_at(row: Row, record: GroupRecord, began_ms: int) -> int | None:
    """Return when a row's commit was made, None where that is not known.

    The records are read after the commit, and may tell of a later one: a time counts where it is that of the same
    offset, or comes before the commits were read.
    """
    # A consumer that commits by the clock repeats the offset at which it waits: only the first of these times counts.
    runs = groupby(record.newest.get(row.source_partition, ()), key=lambda commit: commit.offset)
    came_ms: dict[int | None, int] = {offset: next(same).at_ms for offset, same in runs}
    if (came := came_ms.get(row.source_committed)) is not None:
        return came
    made_ms, made_on = record.committed_ms.get(row.source_partition), record.made_on.get(row.source_partition)
    if made_ms is None:
        return None
    is_same = made_ms <= began_ms if made_on is None else made_on.source_offset == row.source_committed
    return made_ms if is_same else None


@dataclass
class DelaySum:
    """Delays counted in tenths of a second, so that a month of them takes no more memory than an hour."""

    tenths: Counter[int] = field(default_factory=Counter)
    from_first_look: int = 0

    def add(self, delays: Iterable[Delay]) -> None:
        """Count some more."""
        for delay in delays:
            self.tenths[min(round(delay.seconds * TENTHS), LONGEST_SECONDS * TENTHS)] += 1
            self.from_first_look += delay.is_from_first_look

    def document(self) -> dict[str, float | int | None]:
        """Return p50, p99 and max in seconds, None where nothing was counted, and how many there are."""
        total = self.tenths.total()
        return {
            "p50": self._at(total * 0.50),
            "p99": self._at(total * 0.99),
            "max": max(self.tenths) / TENTHS if total else None,
            "rows": total,
            "from_first_seen": self.from_first_look,
        }

    def _at(self, rank: float) -> float | None:
        passed = 0
        for tenth, count in sorted(self.tenths.items()):
            passed += count
            if passed >= rank:
                return tenth / TENTHS
        return None
