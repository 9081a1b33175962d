"""The matching on the way back: simulated worlds with their sides swapped, judged by the same brute force.

What was the target is the source now: it holds copies, some twice after MM2 was killed, and records of local writers.
Owed is what stands there at or after the commit; a record that has no original where the group goes back to is told.
"""

from dataclasses import replace
from random import Random

import pytest

from migrate.match.matcher import matching
from migrate.match.protocol import Matched
from migrate.model import OffsetSync
from tests.integration import oracle
from tests.integration.oracle import Written
from tests.world.model import World
from tests.world.notation import drawn
from tests.world.runner import Run, answer
from tests.world.simulation import simulate

# All troubles that leave records what they are, and tell each from the others.
TROUBLES = (
    "exactly-once", "far-future", "few-syncs", "jitter", "local-writers", "lone-partition", "no-syncs", "not-drained",
    "old-mm2", "paused-writer", "read-committed", "restarts", "running", "source-retention", "stopped-mid-replay",
    "syncs-compacted", "syncs-delayed", "syncs-lost", "target-retention", "transactions",
)  # fmt: skip
SEEDS, LONG_SEEDS = 250, 5_000
COMMITS = 8


def turned(world: World, dice: Random) -> World:
    """Swap the sides. What was aborted is seen where it has copies, as `Flow.target_isolation_level` says."""
    leaves_out_aborted = bool(world.troubles & {"read-committed", "exactly-once"})
    low, high = world.target_log.start, world.target_log.end
    return replace(
        world,
        source_log=world.target_log,
        target_log=world.source_log,
        source=world.target,
        target=tuple(
            e if leaves_out_aborted or e.pending or not e.identity else replace(e, visible=True) for e in world.source
        ),
        written=tuple(Written(e.offset, e.identity) for e in world.target if e.visible and e.identity),
        syncs=tuple(OffsetSync(s.position, s.target_offset, s.source_offset) for s in world.syncs),
        commits=tuple(sorted({low, high, *(dice.randint(low, high) for _ in range(COMMITS))})),
        last_copied_offset=None,
        retention=(),
    )


def back(world: World) -> Run:
    return answer(world, lambda question: matching(replace(question, source_has_copies=True)))


def violations(world: World, g: int, row: Matched) -> list[str]:
    """What a row does that it must not."""
    owed, best = oracle.owed(world.truth, g), oracle.best(world.truth, g)
    originals = {e.identity for e in world.target_seen}

    def first(offset: int) -> int:
        return next((e.offset for e in world.target_seen if e.offset >= offset), world.target_log.end)

    unread_only_here = {e.identity for e in world.source_seen if e.offset >= g} - originals
    again = sum(e.offset >= row.target_offset and e.identity not in owed for e in world.target_seen)
    told = {
        "loses records": bool(oracle.lost(world.truth, g, row.target_offset)),
        "says exact and is not at the best": row.exact and first(row.target_offset) != first(best),
        "does not tell of unread records without an original": bool(unread_only_here) and not row.missing_on_target,
        "tells of such records where there are none": not unread_only_here and bool(row.missing_on_target),
        "reads more twice than it says": again > row.rereads_at_most,
    }
    return [what for what, is_so in told.items() if is_so]


def test_no_law_is_broken_on_the_way_back(request: pytest.FixtureRequest) -> None:
    rows, at_best, broken = 0, 0, list[str]()
    for seed in range(LONG_SEEDS if request.config.getoption("--long") else SEEDS):
        dice = Random(seed)
        world = turned(simulate(seed, frozenset(dice.sample(TROUBLES, dice.randint(0, 5)))), dice)
        for g, row in back(world).answer.places.items():
            assert isinstance(row, Matched)
            rows += 1
            at_best += row.target_offset == oracle.best(world.truth, g)
            broken += [f"seed {seed}, commit {g}: {what}\n{row}\n{drawn(world)}" for what in violations(world, g, row)]
    assert not broken, f"{len(broken)} of {rows} rows; the first: {broken[0]}"
    assert rows >= 5 * SEEDS and at_best >= 0.95 * rows
