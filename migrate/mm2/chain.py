r"""Where a group is placed without comparing records: the chain of syncs, and the window around its commit. Pure.

An offset sync says that the source's record at one offset was written at another on the target. MM2 writes one now and
then. Here it copied 0 to 100, was killed, and copied again from 60 on, which was written at 101:

    source   0         50   60     75       90        105     75: the group's committed offset
             |----------|----|======*========|---------|
             |          |     \               \
    syncs  (0,0)     (50,50)  (60,101)         (90,131)       (90,90) is of the first run: (60,101) contradicts it
             |          |        \               \
             |----------|---/ /---|===============|---------|
    target   0         50        101             131       146
                                   102: where Law 2 places the group, unless a timestamp says lower

The chain is what no later sync contradicts (Law 1 of docs/translation.md): it rises strictly on both sides. The window
of a commit, drawn with =, lies between the nearest syncs of the chain at or below it and above it. Gaps and second
copies shift the logs against each other in there, so that 116, the distance added, might skip a record. But all that
follows the lower sync's record on the source was written behind its copy on the target: 102 skips nothing.

`migrate.spark.syncs` says the same in Spark SQL and is tested against this.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from migrate.model import LogRange, OffsetSync


@dataclass(frozen=True, slots=True)
class Window:
    """The syncs on either side of a committed offset; None where the chain has none on that side."""

    lower: OffsetSync | None
    upper: OffsetSync | None


NO_WINDOW = Window(None, None)


def chain(syncs: Iterable[OffsetSync], source_end: int, target_end: int) -> tuple[OffsetSync, ...]:
    """Return the syncs that no later one contradicts, in log order (Law 1).

    Syncs at or beyond either log's end are of a log that was since truncated or re-created: dropped.
    Of the rest, one is kept only if every later sync lies strictly above it in both coordinates.
    """
    inside = [s for s in syncs if s.source_offset < source_end and s.target_offset < target_end]
    kept: list[OffsetSync] = []
    least_source = least_target = inf
    for sync in sorted(inside, reverse=True):
        if sync.source_offset < least_source and sync.target_offset < least_target:
            kept.append(sync)
        least_source, least_target = min(least_source, sync.source_offset), min(least_target, sync.target_offset)
    return tuple(reversed(kept))


def window(syncs: Sequence[OffsetSync], source_committed: int) -> Window:
    """Return the syncs of a chain around a committed offset."""
    at = bisect_right(syncs, source_committed, key=lambda sync: sync.source_offset)
    return Window(syncs[at - 1] if at else None, syncs[at] if at < len(syncs) else None)


def lower_end(around: Window, source_committed: int, target: LogRange) -> int:
    """Return the loss-free lower end of a window: `d` of the sync on the commit itself, else `d` + 1.

    Without a sync at or below the commit, or where the log no longer reaches down to it, the log start:
    everything that is left is still owed to nobody or to this group.
    """
    lower = around.lower
    if lower is None or lower.target_offset < target.start:
        return target.start
    return lower.target_offset + (lower.source_offset < source_committed)


def rereads_estimate(
    around: Window, source_committed: int, target_offset: int, source: LogRange | None, target: LogRange
) -> int:
    """Return how many records are likely read twice; a guide, and no bound ("Why the window is no bound").

    Counted on the source from the lower end to the commit, unless the window is longer on the target: then it holds a
    replay or markers, and the target's width is the honest number. Replays beyond the upper sync are not counted.
    """
    target_top = around.upper.target_offset if around.upper else target.end
    on_target = max(0, target_top - target_offset)
    lower = around.lower if around.lower and around.lower.target_offset >= target.start else None
    if lower is None:
        return on_target if source is None else min(max(0, source_committed - source.start), on_target)
    source_top = around.upper.source_offset if around.upper else source.end if source else None
    if source_top is not None and target_top - lower.target_offset > source_top - lower.source_offset:
        return on_target
    return min(max(0, source_committed - lower.source_offset - 1), on_target)
