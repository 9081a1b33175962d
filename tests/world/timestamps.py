"""Rows that timestamps alone place, held against the truth: Law 2b, and the rule that others use."""

from dataclasses import dataclass, field
from functools import partial

from migrate.match.equality import Equality
from migrate.match.least_timestamp import by_timestamp
from migrate.match.protocol import Matched, PartitionQuestion
from tests.integration import oracle
from tests.integration.oracle import Truth
from tests.world.model import World
from tests.world.rowjudge import since_deletion
from tests.world.runner import PARTITION, Matcher, conversed, lookup
from tests.world.tally import Draw

# Copies that the target stamps itself are no matter of timestamps: the row is a block.
KEPT = Draw(unwanted=frozenset({"append-time"}))


@dataclass
class TimedRows:
    """What was seen in many worlds.

    `lost` counts rows that lose a record; `examples` say in which world.
    """

    rows: int = 0
    lost: int = 0
    short_bounds: int = 0
    at_best: int = 0
    falling: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, world: World, truth: Truth, committed: int, target_offset: int, rereads_at_most: int) -> None:
        """Judge one row by brute force."""
        self.rows += 1
        times = [entry.content.timestamp for entry in world.source_seen]
        self.falling += times != sorted(times)
        self.at_best += target_offset == oracle.best(truth, committed)
        # An open transaction is a block of its own: open-transaction.
        lost = oracle.lost(truth, committed, target_offset) - {e.identity for e in world.source if e.pending}
        short = oracle.rereads(truth, committed, target_offset) > rereads_at_most
        self.lost += bool(lost)
        self.short_bounds += short
        if lost or short:
            self.examples.append(f"world {world.seed}, g={committed} at {target_offset}: loses {sorted(lost)}")


def question(world: World, match_limit: int = 1_000_000) -> PartitionQuestion:
    """Ask about every commit of a world, of which no sync is known."""
    return PartitionQuestion(
        PARTITION, PARTITION, world.source_log, world.target_log, world.commits, sync_pairs=(),
        equality=Equality.ALL, match_limit=match_limit, has_open_transaction=world.source_open,
    )  # fmt: skip


# In small pieces, so that worlds have several.
LAW_2B: Matcher = partial(by_timestamp, piece=7)


def law_2b(rows: int, seed: int = 1, draw: Draw = KEPT, matcher: Matcher = LAW_2B) -> TimedRows:
    """Judge so many rows of Law 2b."""
    seen = TimedRows()
    for world in draw.worlds(seed):
        run = conversed(world, question(world), matcher)
        truth = since_deletion(world, run)
        for committed, place in run.answer.places.items():
            assert isinstance(place, Matched), place
            seen.add(world, truth, committed, place.target_offset, place.rereads_at_most)
        if seen.rows >= rows:
            return seen
    raise AssertionError("worlds have no end")


def usual_rule(rows: int, seed: int = 1, draw: Draw = KEPT) -> TimedRows:
    """Judge as many rows of the same worlds, placed by the timestamp of the first owed record, as others do."""
    seen = TimedRows()
    for world in draw.worlds(seed):
        first_offset = lookup(world)
        for committed in world.commits:
            times = (entry.content.timestamp for entry in world.source_seen if entry.offset >= committed)
            first = next(times, None)
            at = world.target_log.end if first is None else first_offset(first)
            if committed < world.source_log.start:
                at = world.target_log.start
            at = max(at, world.target_log.start)
            seen.add(world, world.truth, committed, at, world.target_log.end - at)
        if seen.rows >= rows:
            return seen
    raise AssertionError("worlds have no end")
