"""How often each excuse may be used, and how much an answer must say at the least, over worlds of pinned seeds.

An excuse is a kind of violation that docs/translation.md names (`tests.world.kinds.EXCUSED`). The matching uses each of
them just so often on these seeds; one use more, and somebody has to look at it. Where a kind is not named, it is 0.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.world.kinds import EXCUSED
from tests.world.tally import MISCALIBRATED, Tally

# A trouble that fewer rows have says nothing of the share of them that is placed.
TELLING_ROWS = 100


@dataclass(frozen=True)
class Budget:
    """`ceilings`: the most uses of each excuse. `placed`: the least share of rows with a place, in every family of
    worlds, `placed_miscalibrated` where the equality was not found: there rows have none rather than a wrong one.
    `drained_told`, `undrained_told`: the least share of tails that say so, where nothing is changed on the
    way, calibration went right, and no transaction is open."""

    ceilings: Mapping[str, int]
    placed: float
    drained_told: float
    undrained_told: float
    placed_miscalibrated: float = 0.0


def overdrawn(sums: Sequence[Tally], budget: Budget) -> list[str]:
    """Return what goes beyond the budget, as sentences."""
    used = sum((each.broken for each in sums), Counter[str]())
    rows = sum((each.rows_by_trouble for each in sums), Counter[str]())
    placed = sum((each.matched_by_trouble for each in sums), Counter[str]())
    complaints = [
        f"{kind} is excused {used[kind]} times, at most {budget.ceilings.get(kind, 0)} are allowed"
        for kind in sorted(EXCUSED)
        if used[kind] > budget.ceilings.get(kind, 0)
    ]
    for name, many in sorted(rows.items()):
        least = budget.placed_miscalibrated if name == MISCALIBRATED else budget.placed
        if many >= TELLING_ROWS and placed[name] < least * many:
            complaints.append(f"{name}: {placed[name]} of {many} rows have a place, at least {least:.0%} must")
    tails = (
        ("drained", sum(s.drained_told for s in sums), sum(s.drained for s in sums), budget.drained_told),
        ("undrained", sum(s.undrained_told for s in sums), sum(s.undrained for s in sums), budget.undrained_told),
    )
    return complaints + [
        f"{told} of {many} {name} tails are told to be so, at least {least:.0%} must"
        for name, told, many, least in tails
        if told < least * many
    ]
