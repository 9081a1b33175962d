"""The offsets topic of a cluster as it is pinned before it is read, and what its reading gives a plan."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from migrate.clock import Backoff, Clock
from migrate.errors import ClusterError, Refused
from migrate.model import Commits, Failure, GroupPartition, LogRange, TopicPartition
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.filters import Filters, is_one_name, name_of
from migrate.survey.offsets_topic import OFFSETS_TOPIC, CommitTopic, partition_of
from migrate.text import bytes_text

# About what is fetched of a record, headers of batches included: key and value of ordinary names, in a small batch.
BYTES_A_RECORD = 110
# Once to find the newest record of every key, and once for what is written.
PASSES = 2
# Applications that commit in transactions have one open at any moment, and end it within a second or two.
PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = (0.1, 1.0)
T = TypeVar("T", LogRange, int)
V = TypeVar("V")
# How often a topic is read that is compacted while it is read.
ATTEMPTS = 3


@dataclass(frozen=True)
class OffsetsPin:
    """The offsets topic of one cluster at the moment when it was pinned.

    `logs` are the ranges to be read, up to the last stable offset, of `partitions` that the topic has. `open_ends` are
    the high watermarks of those beyond which a transaction is open: what lies in between is hidden, commits of others
    too.
    """

    alias: str
    partitions: int
    logs: Mapping[int, LogRange]
    open_ends: Mapping[int, int]

    @property
    def offsets(self) -> int:
        """How many offsets lie in the ranges; records are fewer, where the topic was compacted."""
        return sum(log.end - log.start for log in self.logs.values())

    @property
    def offsets_bytes(self) -> int:
        """About how much is fetched at most by one who reads the ranges once."""
        return self.offsets * BYTES_A_RECORD

    @property
    def fetched_bytes(self) -> int:
        """About how much is fetched at most, over both passes."""
        return self.offsets_bytes * PASSES


def named_groups(filters: Filters) -> frozenset[str] | None:
    """Return the only groups that filters can let through, None where only the groups themselves tell."""
    if filters.groups_file is not None:
        return filters.groups_file
    if not filters.groups or not all(map(is_one_name, filters.groups)):
        return None
    return frozenset(name for pattern in filters.groups if (name := name_of(pattern)) is not None)


def pin_offsets_topic(admin: ClusterAdmin, groups: Collection[str] | None) -> OffsetsPin:
    """Pin the offsets topic, or only the partitions of it that hold `groups`.

    Raises `ClusterError` if the cluster does not show the topic, or does not tell its ends.
    """
    partitions = admin.topics().get(OFFSETS_TOPIC, 0)
    if not partitions:
        raise ClusterError(
            f"{admin.side} {admin.alias} does not show {OFFSETS_TOPIC}: its commits are not visible.",
            f"Grant DESCRIBE and READ on {OFFSETS_TOPIC}; some hosted services never show it, and a cluster without "
            "any group has none.",
        )
    numbers = range(partitions) if groups is None else {partition_of(group, partitions) for group in groups}
    places = [TopicPartition(OFFSETS_TOPIC, number) for number in sorted(numbers)]
    # Watermarks first: an end that is lower than one read earlier is held back by a transaction, and not by the time.
    watermarks, ranges = admin.high_watermarks(places), admin.log_ranges(places)
    logs, open_ends = {}, {}
    for place in places:
        log, watermark = _answered(admin, place, ranges[place]), _answered(admin, place, watermarks[place])
        logs[place.partition] = log
        if watermark > log.end:
            open_ends[place.partition] = watermark
    return OffsetsPin(admin.alias, partitions, logs, open_ends)


def past_open_transactions(admin: ClusterAdmin, pin: OffsetsPin, clock: Clock) -> OffsetsPin:
    """Wait a little for the transactions that were open at the pin; return it with the ends of those that have ended.

    A partition's end is then its high watermark at the pin, so that the moment stays the same for all.
    """
    backoff = Backoff(clock, *_PAUSE_SECONDS, PATIENCE_SECONDS)
    while pin.open_ends and not backoff.is_over:
        backoff.pause()
        places = {number: TopicPartition(OFFSETS_TOPIC, number) for number in pin.open_ends}
        ranges = admin.log_ranges(list(places.values()))
        ends = {number: _answered(admin, place, ranges[place]).end for number, place in places.items()}
        ended = {number: end for number, end in pin.open_ends.items() if ends[number] >= end}
        logs = {**pin.logs, **{number: replace(pin.logs[number], end=end) for number, end in ended.items()}}
        pin = replace(pin, logs=logs, open_ends={n: end for n, end in pin.open_ends.items() if n not in ended})
    return pin


def refuse_beyond(max_fetch: int | None, fetched_bytes: int, alias: str, other_way: str = "") -> None:
    """Raise `Refused` if reading the offsets topic of a cluster would fetch more bytes than --max-fetch allows."""
    if max_fetch is not None and fetched_bytes > max_fetch:
        raise Refused(
            f"About {bytes_text(fetched_bytes)} of {OFFSETS_TOPIC} on {alias} would be fetched, and --max-fetch allows "
            f"{bytes_text(max_fetch)}.",
            "Name groups with --group (a dot in a name as \\.) or --groups-file, whose partitions alone are read, or "
            f"allow more.{other_way}",
        )


def _answered(admin: ClusterAdmin, place: TopicPartition, answer: T | Failure) -> T:
    if isinstance(answer, Failure):
        raise ClusterError(
            f"{admin.side} {admin.alias} returned no log ends of {place} ({answer}).",
            f"Check that the partition has a leader, and that the principal may READ {OFFSETS_TOPIC}.",
        )
    return answer


@dataclass(frozen=True)
class TopicCommits:
    """What the pinned offsets topic says of commits, group by group.

    `undecodable` names by group the partitions whose newest record cannot be decoded, each with why; the record before
    it is never passed off as the newest. `undecodable_keys` counts keys of commits that cannot be decoded: whose they
    are is not known. Where an earlier time was asked for, `then` are the commits of then, `gone` the places whose
    records are all of later (compaction may have taken an earlier one), and `none_then` those that had no commit then.
    `then_made_on` are the topics that commits of then were made on, by group, as far as their records say.
    `without_offset` are the partitions whose newest commit is -1.
    """

    commits: Mapping[str, Commits]
    undecodable: Mapping[str, Mapping[TopicPartition, str]] = field(default_factory=dict)
    undecodable_keys: int = 0
    then: Mapping[str, Commits] = field(default_factory=dict)
    gone: frozenset[GroupPartition] = frozenset()
    none_then: frozenset[GroupPartition] = frozenset()
    then_made_on: Mapping[str, Mapping[TopicPartition, CommitTopic]] = field(default_factory=dict)
    without_offset: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)


ReadTopicCommits = Callable[[OffsetsPin, int | None], TopicCommits]
"""Returns the newest commits of all groups in the pinned ranges; with those of an earlier time, where one is given.

That time, in ms since 1970, is the brokers': a record of that moment is later. Raises `ClusterError` if the topic
cannot be read to its pinned end, `CompactedMeanwhileError` among them.
"""


class CompactedMeanwhileError(ClusterError):
    """Raised where records of a topic were compacted away between two passes over it.

    Not to be read again up to the same ends: what was taken away has given place to a record beyond them, and such a
    key would be missing without a word.
    """

    def __init__(self, topic: str) -> None:
        super().__init__(f"{topic} was compacted while it was read.", "Run the command again.")


def persistently(read: Callable[[], V]) -> V:
    """Read anew, each time up to later ends, while the topic is compacted in between; the last failure is told."""
    for _ in range(ATTEMPTS - 1):
        with suppress(CompactedMeanwhileError):
            return read()
    return read()
