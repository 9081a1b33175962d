"""Worlds that broke a law when they were first drawn, each with the violations that its answers have today.

A line of `found.txt` has a seed, a match limit, a size, and how often each kind of violation occurs, or `none`. After a
`#` it says what made the world break a law. A seed means nothing any more once the simulation changes.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.world.tally import Asked, Draw

FOUND = Path(__file__).with_name("found.txt")


@dataclass(frozen=True)
class FoundWorld:
    """One line of `found.txt`; `kinds`: how often each kind of violation occurs."""

    seed: int
    match_limit: int
    size: float
    kinds: Mapping[str, int]


def found_worlds() -> list[FoundWorld]:
    """Return the worlds of `found.txt`."""
    return [_parsed(line) for line in FOUND.read_text(encoding="utf-8").splitlines()]


def kinds_now(seed: int, match_limit: int, size: float = 1.0) -> Counter[str]:
    """Return how often the matching's answers in a world have each kind of violation."""
    judged, _ = Asked(match_limit=match_limit)(Draw(size=size).world(seed))
    return Counter(violation.kind for violation in judged.violations)


def line_to_keep(seed: int, match_limit: int, size: float = 1.0) -> str:
    """Return the line that keeps a world in `found.txt`, with the kinds of violation that it has now."""
    kinds = kinds_now(seed, match_limit, size)
    counts = ",".join(f"{kind}={kinds[kind]}" for kind in sorted(kinds)) or "none"
    return f"{seed} {match_limit} {size} {counts}"


def _parsed(line: str) -> FoundWorld:
    seed, match_limit, size, counts = line.split("#")[0].split()
    kinds = {} if counts == "none" else dict(each.split("=") for each in counts.split(","))
    return FoundWorld(int(seed), int(match_limit), float(size), {kind: int(many) for kind, many in kinds.items()})
