"""When offsets on the target expire, and by when consumers must be back there. Pure.

The law is Kafka's (`ClassicGroup.offsetExpirationCondition`, KIP-211): an offset goes `offsets.retention.minutes`
after its clock started, unless a consumer of the group is there. The clock starts

- where the group is not there yet, is simple (offsets, and never a member) or of KIP-848: when each offset is set;
- where a classic group is empty: when it lost its last member, for all its offsets, however fresh they are.

A commit that carries an end of its own (a client asked for a retention: OffsetCommit 2 to 4) goes at that time,
whatever the clock says (`OffsetExpirationConditionImpl`).
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import itemgetter

from migrate.clock import minute
from migrate.model import Failure, GroupState, TopicPartition
from migrate.survey.cluster import BrokerSettings
from migrate.survey.offsets_topic import GroupRecord
from migrate.text import many

MINUTE_MS = 60_000
BLOCK_BELOW_MS = 120 * MINUTE_MS
WARN_BELOW_MS = 24 * 60 * MINUTE_MS

EXPIRY_EXPECTED = "offsets kept until the consumers are back"
UNKNOWN_TODO = "It may be minutes: start a consumer of the group at once, or delete the empty group before apply."


@dataclass(frozen=True, slots=True)
class Expiry:
    """By when a group's consumers must be back on the target (ms since 1970), None where nobody can tell.

    `sentence` says it with date and time, and why. `from_apply` is True where the clock starts when the offsets are
    set: then the time is that of an apply at this moment. `of_commit` is True where a commit carries that time itself.
    """

    back_by_ms: int | None
    sentence: str
    from_apply: bool = False
    of_commit: bool = False

    def left_ms(self, now_ms: int) -> int | None:
        """Return how long that is from now, None where nobody can tell."""
        return None if self.back_by_ms is None else self.back_by_ms - now_ms

    def at(self, now_ms: int) -> str:
        """Return the sentence, and the time that what is left is reckoned from: clocks differ."""
        return f"{self.sentence}; reckoned at {minute(now_ms)}"


def needs_record(state: GroupState | Failure | None, has_commits: bool) -> bool:
    """True if only the group's own records tell when the clock of its offsets started."""
    if not isinstance(state, GroupState) or state.state != "Empty":
        return False
    return state.kind == "classic" or has_commits


@dataclass(frozen=True, slots=True)
class OffsetClocks:
    """What the target `alias` tells of when offsets expire: its brokers' settings, and the groups' own records.

    `now_ms` is the time that what is left is reckoned from.
    """

    alias: str
    settings: BrokerSettings | Failure
    records: Mapping[str, GroupRecord] | Failure
    now_ms: int


def expiry_of(
    group: str, state: GroupState, kept: Collection[TopicPartition], sets: bool, clocks: OffsetClocks
) -> Expiry:
    """Return by when the consumers of a stopped group must be back, if its offsets were set now.

    `kept` are the partitions whose offset is there already and is not set again: its clock has been running since.
    `sets` is True where others of the group are set: what those kept carry says nothing of these.
    """
    alias, settings, records, now_ms = clocks.alias, clocks.settings, clocks.records, clocks.now_ms
    record = None if isinstance(records, Failure) or state.state != "Empty" else records.get(group)
    ends = _own_ends(record, kept, alias)
    if isinstance(settings, Failure):
        unknown = Expiry(None, f"offsets.retention.minutes of {alias} could not be read ({settings.code})")
        return _earliest(unknown, [ends] if ends else [], now_ms)
    retention_ms = settings.retention_ms
    length = f"{alias} keeps offsets {span(retention_ms)}"
    back_by = now_ms + retention_ms
    back = f"consumers must be back on {alias} by {minute(back_by)}"
    when = f"{back} if the offsets are set at {minute(now_ms)}: {length}"
    fresh = Expiry(back_by, when, from_apply=True)
    if state.state != "Empty":
        return fresh
    if isinstance(records, Failure):
        if state.kind != "classic" and not kept:
            return fresh
        unknown = Expiry(
            None,
            f"{length} after an empty group's last member left, and the group's records in __consumer_offsets, which "
            f"show when that was, could not be read ({records.code})",
        )
        return _earliest(unknown, [fresh] if sets else [], now_ms)
    others = {place for place in kept if record is None or place not in record.expires_ms}
    if ends is not None and not others and not sets:
        return ends
    clock = _by_clock(record, retention_ms, others, fresh, alias)
    return _earliest(clock, [*([ends] if ends else []), *([fresh] if sets else [])], now_ms)


def _own_ends(record: GroupRecord | None, kept: Collection[TopicPartition], alias: str) -> Expiry | None:
    """Return the first of the ends that commits of `kept` carry themselves; None where none does."""
    ends = [(record.expires_ms[place], place) for place in kept if place in record.expires_ms] if record else []
    if not ends:
        return None
    end, place = min(ends, key=itemgetter(0))
    return Expiry(
        end,
        f"consumers must be back on {alias} by {minute(end)}, and commit: the offset on {place} is kept as it "
        "is, and was committed with this end of its own, which comes before what the brokers are set to",
        of_commit=True,
    )


def _earliest(clock: Expiry, known: Collection[Expiry], now_ms: int) -> Expiry:
    """Return the first to come; where `clock` is unknown, one of `known` only if it is near.

    What is unknown may be earlier still, but never takes back what is known to be near.
    """
    first = min([clock, *known], key=lambda expiry: math.inf if expiry.back_by_ms is None else expiry.back_by_ms)
    left_ms = first.left_ms(now_ms)
    is_near = left_ms is not None and left_ms < BLOCK_BELOW_MS
    return first if is_near or clock.back_by_ms is not None else clock


def _by_clock(
    record: GroupRecord | None, retention_ms: int, kept: Collection[TopicPartition], fresh: Expiry, alias: str
) -> Expiry:
    """Return when the brokers' own retention takes the offsets, those of `kept` as they were committed.

    `fresh` is what holds where all are set anew.
    """
    length = f"{alias} keeps offsets {span(retention_ms)}"
    if record is not None and record.has_one_clock:
        if record.empty_since_ms is None:
            return Expiry(None, f"{length} after its last member left, and its record does not show when that was")
        back_by = record.empty_since_ms + retention_ms
        return Expiry(
            back_by,
            f"consumers must be back on {alias} by {minute(back_by)}: it is empty there since "
            f"{minute(record.empty_since_ms)}, and {length} after that, however fresh they are",
        )
    if not kept:
        return fresh
    times = [record.committed_ms[p] for p in kept if record and p in record.committed_ms]
    if len(times) < len(kept):
        return Expiry(None, f"{length}, and its records do not show when the offsets that are kept were committed")
    back_by = min(times) + retention_ms
    return Expiry(
        back_by,
        f"consumers must be back on {alias} by {minute(back_by)}: an offset that is kept as it is was committed "
        f"{minute(min(times))}, and {length}",
    )


def remedy(expiry: Expiry, alias: str) -> str:
    """Return what to do about offsets that would be gone too soon, without a full stop."""
    if expiry.from_apply:
        return f"Raise offsets.retention.minutes on {alias}, or start the consumers right after apply"
    if expiry.of_commit:
        return f"Delete the empty group on {alias}, so that its offsets are set anew, without an end of their own"
    return (
        f"Start a consumer of the group on {alias} once and stop it again, or delete the empty group there before "
        "apply: its clock then starts anew"
    )


def span(length_ms: int) -> str:
    """Return a length of time in the largest unit that keeps it whole: "7 days", "90 minutes"."""
    minutes = length_ms // MINUTE_MS
    for unit, size in (("day", 1440), ("hour", 60)):
        if minutes and minutes % size == 0:
            return many(minutes // size, unit)
    return many(minutes, "minute")
