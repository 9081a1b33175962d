"""Runs many worlds and adds up what the judge says of them."""

import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from migrate.match.matcher import matching
from migrate.match.protocol import Matched
from tests.world.judge import Judgement, judge
from tests.world.kinds import EXCUSED
from tests.world.model import World
from tests.world.notation import drawn, explained
from tests.world.rowjudge import Violation, well_calibrated
from tests.world.runner import BadNeeds, Matcher, Run, answer
from tests.world.shrinking import shrunk
from tests.world.simulation import simulate
from tests.world.troubles import LOSSY, crossed

SHORT = "short-of-best"

# Worlds whose records are kept, and whose equality was found to be another: a family by itself.
MISCALIBRATED = "(miscalibrated)"


@dataclass(frozen=True, slots=True)
class Draw:
    """Which worlds are made: troubles that all of them have, that none has, and whether there are others."""

    wanted: tuple[str, ...] = ()
    unwanted: frozenset[str] = frozenset()
    only: bool = False
    size: float = 1.0

    def world(self, seed: int) -> World:
        troubles = crossed(Random(f"draw {seed}"), self.wanted, self.only) - self.unwanted
        return simulate(seed, troubles, self.size)

    def worlds(self, seed: int) -> Iterator[World]:
        """Worlds without end; a world's own seed makes it again."""
        number = seed * 1_000_000
        while True:
            yield self.world(number)
            number += 1


class Asked:
    """A matcher for each world: the product's, or one that is made for the world."""

    def __init__(self, make: Callable[[World], Matcher] | None = None, match_limit: int = 1_000_000) -> None:
        self.make, self.match_limit = make, match_limit

    def __call__(self, world: World) -> tuple[Judgement, Run | None]:
        """Ask and judge; an error of the matching is a violation, with the last lines of its trace."""
        matcher = matching if self.make is None else self.make(world)
        try:
            run = answer(world, matcher, self.match_limit)
        except BadNeeds as error:
            return Judgement(world, (), (Violation("raised", None, f"bad needs: {error}"),)), None
        except Exception:
            trace = traceback.format_exc().strip().splitlines()
            return Judgement(world, (), (Violation("raised", None, "\n   ".join(trace[-9:])),)), None
        return judge(world, run), run


@dataclass
class Tally:
    """What was seen. `smallest`: by kind of violation (or `SHORT`: Why), the smallest world that has it."""

    rows: int = 0
    worlds: int = 0
    exact: int = 0
    at_best: int = 0
    kept_rows: int = 0
    kept_at_best: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    rows_by_trouble: Counter[str] = field(default_factory=Counter)
    matched_by_trouble: Counter[str] = field(default_factory=Counter)
    drained: int = 0
    drained_told: int = 0
    undrained: int = 0
    undrained_told: int = 0
    smallest: dict[str, World] = field(default_factory=dict)

    def add(self, judged: Judgement, run: Run | None) -> None:
        world = judged.world
        names = sorted(world.troubles) or ["none"]
        if run and not world.troubles & LOSSY and not well_calibrated(world, run):
            names.append(MISCALIBRATED)
        self.worlds += 1
        self.rows += len(judged.rows)
        self._add_rows(judged, names)
        for violation in judged.violations:
            self.broken[violation.kind] += 1
        for kind in kinds_in(judged):
            if kind not in self.smallest or world.size < self.smallest[kind].size:
                self.smallest[kind] = world
        if run:
            self._add_tail(world, run)

    def _add_tail(self, world: World, run: Run) -> None:
        """A tail may say that it does not know; how often it does know is what a test asks."""
        if world.source_open or world.target_open or world.troubles & LOSSY or not well_calibrated(world, run):
            return
        uncopied, is_drained = run.answer.tail.uncopied, world.reached >= world.source_log.end
        self.drained += is_drained
        self.drained_told += is_drained and uncopied == 0
        self.undrained += not is_drained
        self.undrained_told += not is_drained and bool(uncopied)

    def _add_rows(self, judged: Judgement, names: list[str]) -> None:
        matched = [row.place for row in judged.rows if isinstance(row.place, Matched)]
        at_best = sum(row.at_best for row in judged.rows)
        self.at_best += at_best
        self.exact += sum(place.exact for place in matched)
        for name in names:
            self.rows_by_trouble[name] += len(judged.rows)
            self.matched_by_trouble[name] += len(matched)
        if not judged.world.troubles & LOSSY:
            self.kept_rows += len(judged.rows)
            self.kept_at_best += at_best

    @property
    def failures(self) -> dict[str, int]:
        """Violations that are not excused, by kind."""
        return {kind: many for kind, many in self.broken.items() if kind not in EXCUSED}

    def example(self, kind: str, ask: Asked) -> str:
        """The smallest world of a kind, made smaller still, with its answers."""
        world = shrunk(self.smallest[kind], lambda smaller: kind in kinds_in(ask(smaller)[0]))
        judged, run = ask(world)
        if run is None:
            return drawn(world) + "".join(f"\n!! {v.kind}: {v.detail}" for v in judged.violations)
        return explained(judged, run, kind)


def kinds_in(judged: Judgement) -> set[str]:
    """What a judgement would be kept as an example of."""
    short = set()
    if not judged.world.troubles & LOSSY:
        short = {
            f"{SHORT}: {row.place.why if isinstance(row.place, Matched) else 'unmatched: ' + row.place.reason}"
            for row in judged.rows
            if not row.at_best
        }
    return {violation.kind for violation in judged.violations} | short


def tally(ask: Asked, draw: Draw, seed: int, rows: int) -> Tally:
    """Judge worlds until there are `rows` rows."""
    sums = Tally()
    for world in draw.worlds(seed):
        sums.add(*ask(world))
        if sums.rows >= rows or sums.worlds >= rows:
            return sums
    raise AssertionError("worlds have no end")
