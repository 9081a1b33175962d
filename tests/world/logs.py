"""A partition's log that grows: records, transactions with their markers, retention, compaction, truncation."""

from dataclasses import dataclass, field
from random import Random

from migrate.match.equality import Content


@dataclass(slots=True)
class Slot:
    """One offset. `state`: committed, aborted, open or marker."""

    offset: int
    identity: str
    content: Content
    state: str = "committed"
    altered: bool = False


@dataclass(slots=True)
class GrowingLog:
    """Slots in offset order; offsets that retention or compaction removed have none."""

    start: int = 0
    end: int = 0
    slots: list[Slot] = field(default_factory=list)
    transactions: dict[str, list[Slot]] = field(default_factory=dict)

    @property
    def last_stable(self) -> int:
        """The offset below which no transaction is open."""
        return min((slots[0].offset for slots in self.transactions.values() if slots), default=self.end)

    def append(self, identity: str, content: Content, transaction: str | None = None, altered: bool = False) -> Slot:
        slot = Slot(self.end, identity, content, "open" if transaction else "committed", altered)
        self.slots.append(slot)
        self.end += 1
        if transaction:
            self.transactions.setdefault(transaction, []).append(slot)
        return slot

    def finish(self, transaction: str, commit: bool, time: int) -> None:
        """End a transaction with its control marker, which takes an offset."""
        for slot in self.transactions.pop(transaction, []):
            slot.state = "committed" if commit else "aborted"
        self.slots.append(Slot(self.end, "", Content(time, None, None, ()), "marker"))
        self.end += 1

    def readable(self, start: int, committed_only: bool, most: int) -> tuple[list[Slot], int]:
        """The records a consumer at `start` gets next, and the position it has then."""
        end = self.last_stable if committed_only else self.end
        found: list[Slot] = []
        for slot in self.slots:
            if slot.offset < start or slot.offset >= end:
                continue
            if len(found) == most:
                return found, slot.offset
            if slot.state == "marker" or (committed_only and slot.state == "aborted"):
                continue
            found.append(slot)
        return found, max(start, end)

    def retain_from(self, start: int) -> None:
        """Delete what lies below `start` (never beyond the last stable offset)."""
        self.start = max(self.start, min(start, self.last_stable))
        self.slots = [slot for slot in self.slots if slot.offset >= self.start]

    def compact(self, below: int, dice: Random) -> None:
        """Remove superseded and aborted records below `below`, but for some that a cleaner has not come to."""
        below = min(below, self.last_stable)
        newest = {s.content.key: s.offset for s in self.slots if s.state == "committed" and s.offset < below}
        self.slots = [
            s
            for s in self.slots
            if s.offset >= below
            or s.state == "marker"
            or (s.state == "committed" and newest[s.content.key] == s.offset)
            or dice.random() < 0.1
        ]

    def truncate(self, end: int) -> None:
        """Lose what lies at or after `end` (an unclean election); open transactions are gone with it."""
        self.slots = [slot for slot in self.slots if slot.offset < end]
        self.end = min(self.end, max(end, self.start))
        for name, slots in list(self.transactions.items()):
            kept = [slot for slot in slots if slot.offset < end]
            if kept:
                self.transactions[name] = kept
            else:
                del self.transactions[name]

    def somewhere(self, dice: Random) -> int:
        return dice.randint(self.start, self.end)
