"""How long the night's commands will take, from the timings of a rehearsal. Pure.

`plan` takes what it took. `apply` reads groups and logs again, as often as `plan` did but for the second look, then
writes and reads back; `verify` reads the target. A write costs about as much as three reads of the same offsets (10,000
groups of 10 partitions: 1.9 s to read, 5.2 s to write).
"""

from dataclasses import dataclass

from migrate.model import Decision
from migrate.plan.plan import Plan
from migrate.text import duration_text

# Starting the process and reaching a cluster, where no timing tells.
START_SECONDS = 1.0
WRITE_IN_READS = 3.0
# What `plan` read that `apply` reads again, by the names of its steps.
READ_AGAIN = ("reach", "commits", "pin", "topics")


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds that each command is likely to take, and how many offsets of how many groups `apply` would write."""

    plan_seconds: float
    apply_seconds: float
    verify_seconds: float
    offsets: int
    groups: int

    @property
    def text(self) -> str:
        """The forecast in one line."""
        took = [("plan", self.plan_seconds), ("apply", self.apply_seconds), ("verify", self.verify_seconds)]
        return ", ".join(f"{command} about {duration_text(seconds)}" for command, seconds in took)


def forecast(plan: Plan) -> Forecast | None:
    """Return the forecast of a rehearsal; None where the plan has no timings (an undo).

    Blocked rows count: on the night they are to be written.
    """
    timings = plan.header.timings
    if not timings:
        return None
    read = sum(timings.get(name, 0.0) for name in READ_AGAIN)
    # States are asked for twice by `plan`, once by `apply`.
    read += timings.get("states", 0.0) / 2
    commits = timings.get("commits", 0.0)
    to_write = [
        sum(offset is not None and decision is not Decision.KEEP for offset, decision in rows)
        for rows in (of_group.values("target_offset", "decision") for of_group in plan.groups().values())
    ]
    return Forecast(
        plan_seconds=START_SECONDS + sum(timings.values()),
        apply_seconds=START_SECONDS + read + (WRITE_IN_READS + 1) * commits,
        verify_seconds=START_SECONDS + timings.get("reach", 0.0) + commits,
        offsets=sum(to_write),
        groups=sum(map(bool, to_write)),
    )
