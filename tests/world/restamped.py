"""Worlds whose target stamps records itself, now and then in the very millisecond of the source; and their twins.

Producers' clocks are ahead of the brokers', and the replicator changes values: only keys and timestamps can tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from migrate.match.equality import Content
from migrate.match.least_timestamp import placed, question_for
from migrate.match.protocol import Matched
from migrate.model import LogRange

START_MS = 1_700_000_000_000
AHEAD_MS = 300
GROUPS = 20


@dataclass(frozen=True)
class Restamped:
    """A partition's log, its copy that the target has stamped, and the copy as it would be with timestamps kept."""

    source: Mapping[int, Content]
    target: Mapping[int, Content]
    kept: Mapping[int, Content]
    commits: tuple[int, ...]

    def lost_by_timestamps(self) -> int:
        """Return how many commits Law 2b would place behind the copy of an owed record."""
        return sum(self._place(g).target_offset > g for g in self.commits)

    def _place(self, committed: int) -> Matched:
        time = question_for(min(c.timestamp for o, c in self.source.items() if o >= committed))
        assert time is not None
        end = max(self.target) + 1
        first = next((o for o, c in sorted(self.target.items()) if c.timestamp >= time), end)
        return placed(time + 1, first, LogRange(0, end))


def restamped(seed: int, records: int = 700) -> Restamped:
    """Make one: as many keys as records or few, and copies that come just as late as producers' clocks are ahead."""
    dice = Random(f"restamped {seed}")
    keys, spread = dice.choice((records, 200, 40)), dice.choice((3, 10, 40))
    now, source, target, stamped = START_MS, {}, {}, 0
    for offset in range(records):
        now += dice.randint(10, 40)
        key = b"k%d" % (offset if keys == records else dice.randrange(keys))
        source[offset] = Content(now + AHEAD_MS, key, b"v%d" % offset, ())
        stamped = max(stamped, now + AHEAD_MS - dice.randint(0, spread))
        target[offset] = Content(stamped, key, b"changed v%d" % offset, ())
    kept = {o: replace(c, timestamp=source[o].timestamp) for o, c in target.items()}
    return Restamped(source, target, kept, tuple(dice.sample(range(records), GROUPS)))
