"""Whether MM2 has copied all of a partition (docs/translation.md, "Drained"). Pure.

Heartbeats prove nothing, and neither does a copy of the last record alone: MM2 may have been stopped in the middle
of a replay. What is not known is no proof.
"""

from dataclasses import dataclass

from migrate.match.protocol import Tail
from migrate.model import Failure, LogRange
from migrate.text import many


@dataclass(frozen=True, slots=True)
class DrainFacts:
    """What is known of one partition and its copy.

    `source_top` and `target_top` are the high watermarks, None or a `Failure` where they were not told.
    `copied_to` is MM2's own committed source offset (the last record copied, inclusive), None if unknown. `tail` is
    what comparing the records told, None where they were not compared.
    """

    source_log: LogRange
    target_log: LogRange
    source_top: int | Failure | None
    target_top: int | Failure | None
    copied_to: int | None
    tail: Tail | None


@dataclass(frozen=True, slots=True)
class Drained:
    """The verdict: True, False, or None where nobody can tell; `seen` says why it is not True."""

    verdict: bool | None
    seen: str = ""


def drained(facts: DrainFacts, source_alias: str, target_alias: str) -> Drained:
    """Judge one partition: no transaction open, and all copied by the records or by MM2's own position."""
    for top, log, alias in (
        (facts.source_top, facts.source_log, source_alias),
        (facts.target_top, facts.target_log, target_alias),
    ):
        if not isinstance(top, int):
            return Drained(None, f"{alias} did not tell whether a transaction is open")
        if top > log.end:
            return Drained(
                False,
                f"on {alias} the log reaches {top - log.end} beyond its last stable offset: a transaction is open, "
                "or producers write",
            )
    tail, end, copied_to = facts.tail or Tail(None), facts.source_log.end, facts.copied_to
    if tail.uncopied == 0 or facts.source_log.start == end:
        return Drained(True)
    last = end - 1 if tail.last_record is None else tail.last_record
    if copied_to is not None and last <= copied_to < end:
        return Drained(True)
    if tail.uncopied:
        return Drained(False, f"{many(tail.uncopied, 'record')} not copied yet")
    if copied_to is None:
        return Drained(None, "neither MM2's own position nor the records tell")
    if copied_to >= end:
        return Drained(False, f"MM2's own position {copied_to} lies beyond the end {end}: it is of another log, or old")
    seen = f"MM2's own position is {copied_to}"
    if tail.last_record is None:
        return Drained(None, f"{seen} and the log ends at {end}: whether records stand between was not read")
    return Drained(False, f"{seen} and the last record is {tail.last_record}")
