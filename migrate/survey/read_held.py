"""Reads positions outside Kafka for a plan: before the logs are pinned, and once more a settle time later."""

from collections.abc import Iterator
from dataclasses import replace

from migrate.errors import MigrateError
from migrate.progress import Timer
from migrate.survey.positions import HeldPositions, PositionReader, PositionsRead, held
from migrate.survey.survey import Clusters, PlanRequest
from migrate.text import name


def read_held(request: PlanRequest, clusters: Clusters, timer: Timer) -> HeldPositions:
    """Read all that was asked for, and put it together; nothing where nothing was.

    Raises what a reader raises: a position that cannot be read is never a smaller plan.
    """
    reader, asked = clusters.held_positions, request.positions
    if reader is None or not asked:
        return HeldPositions()
    reads = tuple(_reads(reader, request, timer, "reading"))
    sinks = {}
    for holder, sink in sorted(asked.sinks.items()):
        text = f"looking whether {name(sink)} remembers batches"
        sinks[holder] = timer.run("positions", text, lambda sink=sink: reader.remembers_batches(sink))  # type: ignore[misc]
    return held(reads, asked, sinks)


def look_again(first: HeldPositions, request: PlanRequest, clusters: Clusters, timer: Timer) -> HeldPositions:
    """Read the same again, and name what is another by now: its reader still runs, or somebody writes the file."""
    reader = clusters.held_positions
    if reader is None or not first.reads:
        return first
    try:
        moved = [
            before.origin
            for before, now in zip(first.reads, _reads(reader, request, timer, "looking again at"), strict=True)
            if before.sha256 != now.sha256
        ]
    except MigrateError as error:
        # It could be read a moment ago: whoever changes it is at work.
        return replace(first, moved=tuple(read.origin for read in first.reads), unread=error.problem)
    return replace(first, moved=tuple(moved))


def _reads(reader: PositionReader, request: PlanRequest, timer: Timer, doing: str) -> Iterator[PositionsRead]:
    for origin in request.positions.files:
        yield timer.run("positions", f"{doing} {name(origin)}", lambda origin=origin: reader.file(origin))  # type: ignore[misc]
    for asked in request.positions.checkpoints:
        text = f"{doing} the checkpoint of {name(asked.holder)}"
        yield timer.run("positions", text, lambda asked=asked: reader.checkpoint(asked))  # type: ignore[misc]
