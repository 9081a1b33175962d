"""Commits that are read from the offsets topic, instead of asked of each group's coordinator.

What the topic holds up to its pinned end is what coordinators answer (docs/consumer-offsets.md, "As a plan's commits"):
the newest record of a group, topic and partition counts, and one that takes the commit away counts as well. It also
tells of groups that no listing shows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache, partial
from sys import intern
from typing import NamedTuple, Protocol, TypeVar

from migrate.commit_table import CommitTable
from migrate.errors import ClusterError, Refused
from migrate.model import Commit, Commits, GroupPartition, TopicPartition
from migrate.survey import offsets_wire as wire
from migrate.survey.commits import within_filters
from migrate.survey.filters import Filters
from migrate.survey.offsets_export import OffsetsPin, named_groups, pin_offsets_topic
from migrate.survey.offsets_topic import OFFSETS_TOPIC, partition_of
from migrate.survey.policies import AS_OF_GONE, AS_OF_NONE
from migrate.survey.survey import AsOf, Clusters, PlanRequest, SelectedCommits, Timer, TopicWitness
from migrate.text import bytes_text, many

NO_EPOCH = -1
ATTEMPTS = 3
T = TypeVar("T")
BY_ADMIN = "Or ask the groups' coordinators instead: --commits-from admin."


@dataclass(frozen=True)
class TopicCommits:
    """What the pinned offsets topic says of commits, group by group.

    `undecodable` names by group the partitions whose newest record cannot be decoded, each with why; the record before
    it is never passed off as the newest. `undecodable_keys` counts keys of commits that cannot be decoded: whose they
    are is not known. Where an earlier time was asked for, `then` are the commits of then, `gone` the places whose
    records are all of later (compaction may have taken an earlier one), and `none_then` those that had no commit then.
    """

    commits: Mapping[str, Commits]
    undecodable: Mapping[str, Mapping[TopicPartition, str]] = field(default_factory=dict)
    undecodable_keys: int = 0
    then: Mapping[str, Commits] = field(default_factory=dict)
    gone: frozenset[GroupPartition] = frozenset()
    none_then: frozenset[GroupPartition] = frozenset()


class CompactedMeanwhileError(ClusterError):
    """Records of the topic were compacted away between two passes over it.

    Not to be read again up to the same ends: what was taken away has given place to a record beyond them.
    """

    def __init__(self) -> None:
        super().__init__(f"{OFFSETS_TOPIC} was compacted while it was read.", "Run the command again.")


class NewestOf(IntEnum):
    """What a record is the newest of: of all, or of those before the time that was asked for."""

    LIVE = 1
    THEN = 2


class NewestRecord(NamedTuple):
    """The newest record of a group and partition, or of a key that cannot be decoded.

    `label` is that of `migrate.survey.offsets_wire.label`; what a record of its kind does not say is "" or 0.
    `leader_epoch` is `NO_EPOCH` where the consumer sent none.
    """

    group: str
    topic: str
    partition: int
    log_partition: int
    label: str
    offset: int
    metadata: str
    leader_epoch: int
    role: int = NewestOf.LIVE

    @property
    def place(self) -> TopicPartition:
        """The partition that it is about."""
        return TopicPartition(intern(self.topic), self.partition)

    @property
    def key(self) -> GroupPartition:
        """The same, of its group."""
        return GroupPartition(self.group, *self.place)


def commits_of(records: Iterable[NewestRecord], partitions: int, is_as_of: bool = False) -> TopicCommits:
    """Sort the newest records of the offsets topic, which has so many partitions, by group.

    `is_as_of` says that there are those of an earlier time among them.
    A group counts in its own partition alone: what lies elsewhere is left from when the topic had fewer, and no
    coordinator reads it there.
    """
    by_group: dict[int, dict[str, list[NewestRecord]]] = {role: defaultdict(list) for role in NewestOf}
    undecodable: dict[str, dict[TopicPartition, str]] = defaultdict(dict)
    undecodable_keys = 0
    places: dict[int, set[GroupPartition]] = {role: set() for role in NewestOf}
    none_then: set[GroupPartition] = set()
    own = cache(partial(partition_of, partitions=partitions))
    for record in records:
        if record.label.startswith(wire.BROKEN_KEY):
            undecodable_keys += 1
            continue
        if record.log_partition != own(record.group):
            continue
        if record.label in (wire.COMMIT, wire.COMMIT_WITH_OTHER_TAGS):
            by_group[record.role][record.group].append(record)
        elif record.label != wire.COMMIT_TOMBSTONE:
            undecodable[record.group][record.place] = record.label.removeprefix(wire.BROKEN_VALUE)
        elif record.role == NewestOf.THEN:
            none_then.add(record.key)
        if is_as_of:
            places[record.role].add(record.key)
    commits, then = ({g: _table(of_group) for g, of_group in sorted(by_group[role].items())} for role in NewestOf)
    gone = places[NewestOf.LIVE] - places[NewestOf.THEN] if is_as_of else set[GroupPartition]()
    return TopicCommits(commits, dict(undecodable), undecodable_keys, then, frozenset(gone), frozenset(none_then))


def _table(records: list[NewestRecord]) -> CommitTable:
    # In order, so that groups that have committed on the same partitions share them.
    records.sort(key=lambda record: (record.topic, record.partition))
    return CommitTable(
        [record.place for record in records],
        [record.offset for record in records],
        [record.metadata for record in records],
        [None if record.leader_epoch == NO_EPOCH else record.leader_epoch for record in records],
    )


class OffsetsTopicReader(Protocol):
    """Reads the commits of a pinned offsets topic."""

    def commits(self, pin: OffsetsPin, as_of_ms: int | None = None) -> TopicCommits:
        """Return the newest commits of all groups in the pinned ranges; with those of an earlier time, if asked for.

        That time, in ms since 1970, is the brokers': a record of that moment is later.
        Raises `ClusterError` if the topic cannot be read to its pinned end, `CompactedMeanwhileError` among them.
        """


def from_offsets_topic(
    clusters: Clusters, listed: frozenset[str], request: PlanRequest, timer: Timer
) -> SelectedCommits:
    """Read the offsets topic, and sort the listed groups' commits into rows and what the filters take.

    As `migrate.survey.commits.from_source`, with what else the topic tells as the `witness`. Every group of a partition
    with an open transaction is unstable: its own commits may follow in it.
    Raises `ClusterError` if the topic cannot be read, `Refused` where it is longer than may be fetched.
    """
    source, reader = clusters.source, clusters.offsets_topic
    assert source is not None and reader is not None
    if clusters.records_ready is not None:
        timer.run("spark", "waiting for Spark", clusters.records_ready)
    filters, alias = request.filters, source.alias

    def read_once() -> tuple[OffsetsPin, TopicCommits]:
        text = f"pinning {OFFSETS_TOPIC} of {alias}"
        pin = timer.run("commits", text, lambda: pin_offsets_topic(source, named_groups(filters)))
        _refuse_beyond(pin, request.limits.fetch_bytes)
        text = (
            f"reading commits of {many(len(listed), 'group')} in {OFFSETS_TOPIC} of {alias}: "
            f"{len(pin.logs)} of {many(pin.partitions, 'partition')}, {many(pin.offsets, 'offset')}, "
            f"about {bytes_text(pin.fetched_bytes)} in two passes"
        )
        return pin, timer.run("commits", text, lambda: reader.commits(pin, request.as_of_ms))

    with _naming_the_other_way():
        pin, told = _persistently(read_once)
    seen = frozenset(group for group, commits in told.commits.items() if commits) | told.undecodable.keys()
    witness = _witness(pin, told, listed, filters)
    if request.as_of_ms is not None:
        # A group that is gone since is in no listing; one that is there and not listed blocks by itself.
        listed |= {group for group in told.then if not told.commits.get(group)}
        then = {group: told.then[group] for group in sorted(listed & told.then.keys())}
        selected = within_filters(then, request, _unstable(pin, listed, filters), seen | told.then.keys(), witness)
        return replace(selected, as_of=_as_of(told, listed, filters))
    commits = {group: told.commits[group] for group in sorted(listed & told.commits.keys())}
    return within_filters(commits, request, _unstable(pin, listed, filters), seen, witness)


def _persistently(read: Callable[[], T]) -> T:
    """Read anew, each time up to later ends, while the topic is compacted in between; the last failure is told."""
    for _ in range(ATTEMPTS - 1):
        with suppress(CompactedMeanwhileError):
            return read()
    return read()


def with_missing(
    keys: Mapping[GroupPartition, Commit | None], as_of: AsOf | None
) -> Mapping[GroupPartition, Commit | None]:
    """Add the places that have no commit of the time that was asked for: each is a row all the same."""
    return keys if as_of is None else dict(sorted({**dict.fromkeys(as_of.missing), **keys}.items()))


def _as_of(told: TopicCommits, listed: frozenset[str], filters: Filters) -> AsOf:
    live = {
        group: {place: c for place, c in told.commits.get(group, {}).items() if _is_inside(filters, group, place)}
        for group in sorted(listed)
        if filters.group_verdict(group) is None
    }
    none_then = {key for key in told.none_then if key.source_partition in live.get(key.group, {})}
    reasons = {**dict.fromkeys(none_then, AS_OF_NONE), **dict.fromkeys(told.gone, AS_OF_GONE)}
    return AsOf(
        live,
        {
            key: reason
            for key, reason in sorted(reasons.items())
            if key.group in listed and _is_inside(filters, key.group, key.source_partition)
        },
    )


def _unstable(pin: OffsetsPin, listed: frozenset[str], filters: Filters) -> frozenset[str]:
    if not pin.open_ends:
        return frozenset()
    inside = (group for group in listed if filters.group_verdict(group) is None)
    return frozenset(group for group in inside if partition_of(group, pin.partitions) in pin.open_ends)


def _witness(pin: OffsetsPin, told: TopicCommits, listed: frozenset[str], filters: Filters) -> TopicWitness:
    """Return what the topic says beyond the listed groups' commits, of what the filters let through."""
    broken = {
        group: tuple(f"{place} ({why})" for place, why in sorted(places.items()) if _is_inside(filters, group, place))
        for group, places in sorted(told.undecodable.items())
    }
    undecodable = {group: places for group, places in broken.items() if places}
    committed = (g for g, commits in told.commits.items() if any(_is_inside(filters, g, place) for place in commits))
    inside = undecodable.keys() | committed
    return TopicWitness(pin, len(inside), tuple(sorted(inside - listed)), undecodable, told.undecodable_keys)


def _is_inside(filters: Filters, group: str, place: TopicPartition) -> bool:
    """True if no filter takes this commit."""
    return filters.verdict(group, place.topic) is None


@contextmanager
def _naming_the_other_way() -> Iterator[None]:
    """Whatever keeps the topic from being read, coordinators may still answer."""
    try:
        yield
    except ClusterError as error:
        raise ClusterError(error.problem, f"{error.todo} {BY_ADMIN}") from error


def _refuse_beyond(pin: OffsetsPin, most: int | None) -> None:
    if most is not None and pin.fetched_bytes > most:
        raise Refused(
            f"About {bytes_text(pin.fetched_bytes)} of {OFFSETS_TOPIC} on {pin.alias} would be fetched, and "
            f"--max-fetch allows {bytes_text(most)}.",
            f"Name groups with --group or --groups-file, whose partitions alone are read, or allow more. {BY_ADMIN}",
        )
