"""A world as it stands when the pins are set: two logs, the syncs, and what is true of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from migrate.match.equality import Content, Equality
from migrate.model import LogRange, OffsetSync
from tests.integration.oracle import Found, Log, Truth, Written
from tests.prints import fingerprint


@dataclass(frozen=True, slots=True)
class Entry:
    """One offset of a log. `identity` is empty for a control marker.

    `visible`: a read_committed reader is given it. `pending`: its transaction is still open, or it lies behind
    one that is. `altered`: its content was changed on the way, the identity is still the source record's.
    """

    offset: int
    identity: str
    content: Content
    visible: bool = True
    pending: bool = False
    altered: bool = False


@dataclass(frozen=True)
class World:
    """One partition, its copy, and the raw syncs in log order.

    Logs hold every offset that physically stands between their start and high watermark; the ranges end at the
    pins (last stable offsets). Identities of records that the source's present log has, or had, are their source
    offsets as text; those of earlier logs and of local writers are other texts. `reached`: MM2 would copy this
    source offset next. `retention`: (round of reading, True for the source, new log start), in order.
    `elsewhere`: anchors of the topic's other partitions (source record, target record), which help to calibrate.
    `keeps`: what calibration should find out, if anchors tell.
    `survives`: what of a record the way does not touch, so that two records that agree in it are one to any consumer.
    """

    seed: int
    troubles: frozenset[str]
    source_log: LogRange
    target_log: LogRange
    source: tuple[Entry, ...]
    target: tuple[Entry, ...]
    written: tuple[Written, ...]
    syncs: tuple[OffsetSync, ...]
    commits: tuple[int, ...]
    reached: int
    last_copied_offset: int | None = None
    retention: tuple[tuple[int, bool, int], ...] = ()
    keeps: Equality = Equality.ALL
    survives: Equality = Equality.ALL
    elsewhere: tuple[tuple[Content, Content], ...] = ()

    @property
    def source_open(self) -> bool:
        """True where the source's log reaches beyond its last stable offset."""
        return any(entry.offset >= self.source_log.end for entry in self.source)

    @property
    def target_open(self) -> bool:
        """True where the target's log reaches beyond its pinned end."""
        return any(entry.offset >= self.target_log.end for entry in self.target)

    @property
    def size(self) -> int:
        """How much there is for a person to look at."""
        return len(self.source) + len(self.target) + len(self.syncs)

    @cached_property
    def source_seen(self) -> tuple[Entry, ...]:
        """What a read_committed reader is given of the source, up to the pin."""
        return _seen(self.source, self.source_log)

    @cached_property
    def target_seen(self) -> tuple[Entry, ...]:
        """What a read_committed reader is given of the target, up to the pin."""
        return _seen(self.target, self.target_log)

    @cached_property
    def truth(self) -> Truth:
        """What the oracle judges by. Records of a transaction that is still open count as if it will commit."""
        top = max((e.offset + 1 for e in self.source), default=self.source_log.end)
        records = tuple(Found(e.offset, e.identity) for e in self.source if e.identity and (e.visible or e.pending))
        target = tuple(Found(e.offset, e.identity) for e in self.target_seen)
        return Truth(
            self.written,
            Log(self.source_log.start, max(top, self.source_log.end), records),
            Log(self.target_log.start, self.target_log.end, target),
        )

    @cached_property
    def alike(self) -> Mapping[str, int]:
        """A number for each identity; identities with the same number can't be told apart by any consumer."""
        return self.alike_under(self.survives)

    def alike_under(self, equality: Equality) -> Mapping[str, int]:
        """A number for each identity; identities with the same number are equal, altered copies left out."""
        source = {e.identity: fingerprint(e.content, equality) for e in self.source if e.identity}
        target = {e.identity: fingerprint(e.content, equality) for e in self.target if e.identity and not e.altered}
        return {**target, **source}


def _seen(entries: tuple[Entry, ...], log: LogRange) -> tuple[Entry, ...]:
    return tuple(e for e in entries if e.visible and log.start <= e.offset < log.end)
