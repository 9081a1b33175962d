"""Commits that are read from the offsets topic, instead of asked of each group's coordinator.

What the topic holds up to its pinned end is what coordinators answer (docs/consumer-offsets.md, "As a plan's commits"):
the newest record of a group, topic and partition counts, and one that takes the commit away counts as well. It also
tells of groups that no listing shows.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import IntEnum
from functools import cache, partial
from operator import itemgetter
from typing import NamedTuple

from migrate.commit_table import CommitTable
from migrate.errors import ClusterError
from migrate.model import Commit, GroupPartition, TopicPartition, partitions_of
from migrate.progress import Timer
from migrate.survey import offsets_wire as wire
from migrate.survey.commits import within_filters
from migrate.survey.filters import Filters
from migrate.survey.offsets_pin import (
    OffsetsPin,
    TopicCommits,
    named_groups,
    persistently,
    pin_offsets_topic,
    refuse_beyond,
)
from migrate.survey.offsets_topic import OFFSETS_TOPIC, CommitTopic, partition_of
from migrate.survey.policies import AS_OF_GONE, AS_OF_NONE
from migrate.survey.survey import Clusters, OffsetsTopicSeen, PlanRequest, SelectedCommits
from migrate.text import bytes_text, many

# What stands for a value that is not there, among values in hex.
GONE = "-"
_Made = tuple[TopicPartition, wire.CommitValue]
BY_ADMIN = "Or ask the groups' coordinators instead: --commits-from admin."


class NewestOf(IntEnum):
    """What a record is the newest of: of all, or of those before the time that was asked for."""

    LIVE = 1
    THEN = 2


class NewestRecord(NamedTuple):
    """The newest record of a place, with the key of a commit or with one that cannot be decoded, as it lies there."""

    log_partition: int
    key: bytes | None
    value: bytes | None
    role: int = NewestOf.LIVE


def newest_records(
    log_partition: int, head: bytes | None, tails: str, values: str, role: int
) -> Iterator[NewestRecord]:
    """Yield records whose keys differ in their last four bytes only, a commit's partition.

    `head` is what their keys begin with, None for none; `tails` and `values` are in hex, a blank between two, `GONE`
    for what takes a commit away.
    """
    for tail, value in zip(tails.split(" "), values.split(" "), strict=True):
        key = None if head is None else head + bytes.fromhex(tail)
        yield NewestRecord(log_partition, key, None if value == GONE else bytes.fromhex(value), role)


def commits_of(records: Iterable[NewestRecord], partitions: int, is_as_of: bool = False) -> TopicCommits:
    """Sort the newest records of the offsets topic, which has so many partitions, by group.

    `is_as_of` says that there are those of an earlier time among them.
    A group counts in its own partition alone: what lies elsewhere is left from when the topic had fewer, and no
    coordinator reads it there.
    """
    by_group: dict[int, dict[str, list[_Made]]] = {role: defaultdict(list) for role in NewestOf}
    undecodable: dict[str, dict[TopicPartition, str]] = defaultdict(dict)
    undecodable_keys = 0
    without: dict[str, list[TopicPartition]] = defaultdict(list)
    places: dict[int, set[GroupPartition]] = {role: set() for role in NewestOf}
    none_then: set[GroupPartition] = set()
    made_on: dict[str, dict[TopicPartition, CommitTopic]] = defaultdict(dict)
    own, place_of = cache(partial(partition_of, partitions=partitions)), cache(TopicPartition)
    for log_partition, key, value, role in records:
        about = wire.decode_key(key)
        if isinstance(about, wire.Fault):
            undecodable_keys += 1
            continue
        if log_partition != own(about.group):
            continue
        group, place = about.group, place_of(about.topic or "", about.partition or 0)
        commit = None if value is None else wire.decode_commit(value)
        if isinstance(commit, wire.CommitValue):
            by_group[role][group].append((place, commit))
            if role == NewestOf.THEN and commit.topic_id:
                made_on[group][place] = CommitTopic(commit.offset, commit.topic_id)
        elif commit not in (None, wire.Fault.WITHOUT_OFFSET):
            undecodable[group][place] = str(commit)
        elif role == NewestOf.THEN:
            none_then.add(GroupPartition(group, *place))
        elif commit is not None:
            without[group].append(place)
        if is_as_of:
            places[role].add(GroupPartition(group, *place))
    commits, then = ({g: _table(each) for g, each in sorted(by_group[role].items())} for role in NewestOf)
    gone = places[NewestOf.LIVE] - places[NewestOf.THEN] if is_as_of else set[GroupPartition]()
    without_offset = {group: tuple(sorted(places)) for group, places in sorted(without.items())}
    return TopicCommits(
        commits, dict(undecodable), undecodable_keys, then, frozenset(gone), frozenset(none_then), made_on,
        without_offset,
    )  # fmt: skip


def _table(made: list[_Made]) -> CommitTable:
    # In order, so that groups that have committed on the same partitions share them.
    made.sort(key=itemgetter(0))
    commits = [commit for _, commit in made]
    metadata = [commit.metadata for commit in commits]
    return CommitTable(
        partitions_of(*zip(*(place for place, _ in made), strict=True)),
        [commit.offset for commit in commits],
        metadata if any(metadata) else (),
        [commit.leader_epoch for commit in commits],
    )


def from_offsets_topic(
    clusters: Clusters, listed: frozenset[str], request: PlanRequest, timer: Timer
) -> SelectedCommits:
    """Read the offsets topic, and sort the listed groups' commits into rows and what the filters take.

    As `migrate.survey.commits.from_source`, with what else the topic says as `topic_seen`. Every group of a partition
    with an open transaction is unstable: its own commits may follow in it.
    Raises `ClusterError` if the topic cannot be read, `Refused` where it is longer than may be fetched.
    """
    source, reader = clusters.source, clusters.offsets_topic
    assert source is not None and reader is not None
    if clusters.starts_late:
        timer.run("spark", "waiting for Spark", clusters.wait_for_records)
    filters, alias = request.filters, source.alias

    fetched_bytes = 0

    def read_once() -> tuple[OffsetsPin, TopicCommits]:
        nonlocal fetched_bytes
        text = f"pinning {OFFSETS_TOPIC} of {alias}"
        pin = timer.run("commits", text, lambda: pin_offsets_topic(source, named_groups(filters)))
        in_all, passes = pin.fetched_bytes, "two passes"
        if request.commits.as_of_ms is not None:
            # Where places have no record of then, one more tells whether it can have been compacted away.
            in_all, passes = in_all + pin.offsets_bytes, "up to three passes"
        fetched_bytes += in_all
        refuse_beyond(request.limits.fetch_bytes, fetched_bytes, alias, f" {BY_ADMIN}")
        text = (
            f"reading commits of {many(len(listed), 'group')} in {OFFSETS_TOPIC} of {alias}: "
            f"{len(pin.logs)} of {many(pin.partitions, 'partition')}, {many(pin.offsets, 'offset')}, "
            f"about {bytes_text(in_all)} in {passes}"
        )
        return pin, timer.run("commits", text, lambda: reader(pin, request.commits.as_of_ms))

    with _naming_the_other_way():
        pin, found = persistently(read_once)
    seen = frozenset(group for group, commits in found.commits.items() if commits) | found.undecodable.keys()
    seen |= found.without_offset.keys()
    # Of a group in a partition that nobody read it is not known that it has none: it counts, as a name at least.
    seen |= {group for group in listed if partition_of(group, pin.partitions) not in pin.logs}
    topic_seen = _topic_seen(pin, found, listed, filters)
    if request.commits.as_of_ms is not None:
        # A group that is gone since is in no listing; one that is there and not listed blocks by itself.
        listed |= {group for group in found.then if not found.commits.get(group)}
        then = {group: found.then[group] for group in sorted(listed & found.then.keys())}
        selected = within_filters(then, request, _unstable(pin, listed, filters), seen | found.then.keys(), topic_seen)
        return _beside_now(selected, found, listed, filters)
    commits = {group: found.commits[group] for group in sorted(listed & found.commits.keys())}
    without = {group: places for group, places in found.without_offset.items() if group in listed}
    return within_filters(commits, request, _unstable(pin, listed, filters), seen, topic_seen, without)


def with_missing(
    keys: Mapping[GroupPartition, Commit | None], missing: Collection[GroupPartition]
) -> Mapping[GroupPartition, Commit | None]:
    """Add the places that have no commit of the time that was asked for: each is a row all the same."""
    return dict(sorted({**dict.fromkeys(missing), **keys}.items())) if missing else keys


def _beside_now(
    selected: SelectedCommits, found: TopicCommits, listed: frozenset[str], filters: Filters
) -> SelectedCommits:
    """Return the commits of then with those of now; of what the filters let through."""
    now = {
        group: {place: c for place, c in found.commits.get(group, {}).items() if _is_inside(filters, group, place)}
        for group in sorted(listed)
        if filters.group_verdict(group) is None
    }
    none_then = {key for key in found.none_then if key.source_partition in now.get(key.group, {})}
    reasons = {**dict.fromkeys(none_then, AS_OF_NONE), **dict.fromkeys(found.gone, AS_OF_GONE)}
    missing = {
        key: reason
        for key, reason in sorted(reasons.items())
        if key.group in listed and _is_inside(filters, key.group, key.source_partition)
    }
    return replace(selected, now=now, missing=missing, made_on=found.then_made_on)


def _unstable(pin: OffsetsPin, listed: frozenset[str], filters: Filters) -> frozenset[str]:
    if not pin.open_ends:
        return frozenset()
    inside = (group for group in listed if filters.group_verdict(group) is None)
    return frozenset(group for group in inside if partition_of(group, pin.partitions) in pin.open_ends)


def _topic_seen(pin: OffsetsPin, found: TopicCommits, listed: frozenset[str], filters: Filters) -> OffsetsTopicSeen:
    """Return what the topic says beyond the listed groups' commits, of what the filters let through."""
    broken = {
        group: tuple(f"{place} ({why})" for place, why in sorted(places.items()) if _is_inside(filters, group, place))
        for group, places in sorted(found.undecodable.items())
    }
    undecodable = {group: places for group, places in broken.items() if places}
    committed = (g for g, commits in found.commits.items() if any(_is_inside(filters, g, place) for place in commits))
    inside = undecodable.keys() | committed
    return OffsetsTopicSeen(pin, len(inside), tuple(sorted(inside - listed)), undecodable, found.undecodable_keys)


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
