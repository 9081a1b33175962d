"""Where a group stands on the target: the chain of syncs, the window around a committed offset, the row.

Pure functions of values; `migrate.spark.syncs` says the same in Spark SQL and is tested against this.
The rules are Laws 1 and 2 of docs/translation.md. Invariants:

- A chain rises strictly in both coordinates, and no sync that a later one contradicts is in it.
- A window's lower end is the nearest chain sync at or below the committed offset; its upper end the nearest
  above it.
- The offset taken from a window is never beyond `d` of the lower sync + 1, and never below the log start.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from migrate.model import LogRange, OffsetSync


@dataclass(frozen=True, slots=True)
class Window:
    """The syncs on either side of a committed offset; None where the chain has none on that side."""

    lower: OffsetSync | None
    upper: OffsetSync | None


def chain(syncs: Iterable[OffsetSync], source_end: int, target_end: int) -> tuple[OffsetSync, ...]:
    """Return the syncs that no later one contradicts, in log order (Law 1).

    Syncs at or beyond either log's end tell of a log that was since truncated or re-created: dropped.
    Of the rest, one is kept only if every later sync lies strictly above it in both coordinates.
    """
    inside = [s for s in syncs if s.source_offset < source_end and s.target_offset < target_end]
    kept: list[OffsetSync] = []
    least_source = least_target = None
    for sync in sorted(inside, reverse=True):
        if (least_source is None or sync.source_offset < least_source) and (
            least_target is None or sync.target_offset < least_target
        ):
            kept.append(sync)
        least_source = sync.source_offset if least_source is None else min(least_source, sync.source_offset)
        least_target = sync.target_offset if least_target is None else min(least_target, sync.target_offset)
    return tuple(reversed(kept))


def window(links: Sequence[OffsetSync], source_committed: int) -> Window:
    """Return the chain syncs around a committed offset; `links` is a chain."""
    below = [s for s in links if s.source_offset <= source_committed]
    above = [s for s in links if s.source_offset > source_committed]
    return Window(below[-1] if below else None, above[0] if above else None)


def lower_end(around: Window, source_committed: int, target: LogRange) -> int:
    """Return the loss-free lower end of a window: `d` of the sync on the commit itself, else `d` + 1.

    Without a sync at or below the commit, or where the log no longer reaches down to it, the log start:
    everything that is left is still owed to nobody or to this group.
    """
    if around.lower is None or around.lower.target_offset < target.start:
        return target.start
    if around.lower.source_offset == source_committed:
        return around.lower.target_offset
    return around.lower.target_offset + 1


def rereads_estimate(
    around: Window, source_committed: int, target_offset: int, source: LogRange | None, target: LogRange
) -> int:
    """Return how many records are likely read twice, in records; a guide, and no bound.

    Counted on the source from the lower end to the commit, unless the window is longer on the target than on
    the source: then a replay or transaction markers stand in it, and the target's width is the honest number.
    Replays beyond the upper sync are not in it (docs/translation.md, "Why the window is no bound").
    """
    target_top = around.upper.target_offset if around.upper else target.end
    on_target = max(0, target_top - target_offset)
    lower = around.lower if around.lower and around.lower.target_offset >= target.start else None
    if lower is not None:
        on_source = max(0, source_committed - lower.source_offset - 1)
        source_top = around.upper.source_offset if around.upper else (source.end if source else None)
        if source_top is not None and target_top - lower.target_offset > source_top - lower.source_offset:
            return on_target
        return min(on_source, on_target)
    if source is None:
        return on_target
    return min(max(0, source_committed - source.start), on_target)
