"""One line for each group: what it is, where it is, how far it lags, and what deserves attention. Pure.

Lag is the log end less the committed offset. A commit beyond its log's end is of another log than this one: its lag
is not known, and never a negative part of a sum.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from migrate.checks.group_kinds import VENDOR_GROUP
from migrate.commit_table import has_metadata
from migrate.described_group import Coordinator, GroupDescription
from migrate.extras.inventory.read import ClusterGroups, assigned_to, not_shown
from migrate.model import Commits, Failure, GroupState, TopicPartition
from migrate.survey.connect_topics import SINK_PREFIX
from migrate.survey.expiry import OffsetClocks, expiry_of
from migrate.survey.group_facts import NOT_ASKED
from migrate.survey.groups import NO_ANSWER
from migrate.survey.offsets_topic import GroupKind
from migrate.survey.streams import ASSIGNORS, applications_of, is_metadata
from migrate.text import some

DAY_MS = 86_400_000
# Below the week for which brokers keep offsets by default: what is idle for longer than that is gone.
IDLE_AFTER_MS = 3 * DAY_MS
UNTOLD = Failure("NOT_TOLD", "its records show neither a commit nor since when it is empty")


@dataclass(frozen=True, slots=True)
class GroupActivity:
    """What a group's records tell. Times are in ms since 1970.

    `last_commit_ms` is None where no commit of the group is there. `empty_since_ms` is None while it has members, and
    where that was not stored: only classic groups store it. `expires_ms` is when the first of its offsets goes if
    nobody comes back; None while the group has members, which keep the offsets of topics that they subscribe to, and
    where there are no offsets. The other two are medians of time and of offsets between successive commits on a
    partition, None where fewer than two commits are left.
    """

    last_commit_ms: int | None
    empty_since_ms: int | None
    expires_ms: int | None | Failure
    seconds_between_commits: float | None
    records_between_commits: int | None

    def unused_ms(self, now_ms: int) -> int | None:
        """Return how long ago a commit was made, or the last member left; None where neither is told."""
        told = [time for time in (self.last_commit_ms, self.empty_since_ms) if time is not None]
        # Clocks differ: what was committed a moment ago is not unused for a negative time.
        return max(0, now_ms - max(told)) if told else None


def activity_of(
    group: str, description: GroupDescription | Failure, commits: Commits | Failure, clocks: OffsetClocks
) -> GroupActivity | Failure:
    """Return what the records tell of a group; the `Failure` that says why they could not be read.

    They are the group's own in `__consumer_offsets`, which no Admin call shows; the times in them are the brokers'.
    Compaction takes earlier commits: how often a group commits is told by those that are left.
    """
    records = clocks.records
    if isinstance(records, Failure):
        return records
    record = records.get(group)
    if record is not None and record.kind is GroupKind.SHARE:
        return Failure("NO_CLIENT", "share groups commit nothing")
    if record is None:
        # A group that is listed has records, be they those of its commits alone, once it has formed.
        why = "an open transaction hides them, or none was written yet"
        return Failure("NOT_TOLD", f"its records were not to be seen: {why}")
    if not isinstance(commits, Failure) and (unseen := sorted(commits.keys() - record.committed_ms.keys())):
        # It may be the newest of all: the group would seem to have been idle since an older one.
        why = "that record cannot be decoded, or an open transaction hides it"
        return Failure("NOT_TOLD", f"when it committed on {some(map(str, unseen), 3)} was not to be seen: {why}")
    return GroupActivity(
        record.last_commit_ms,
        record.empty_since_ms,
        _expires_ms(group, description, commits, clocks),
        record.seconds_between_commits,
        record.records_between_commits,
    )


def _expires_ms(
    group: str, description: GroupDescription | Failure, commits: Commits | Failure, clocks: OffsetClocks
) -> int | None | Failure:
    if isinstance(description, Failure):
        return description
    if isinstance(commits, Failure):
        return commits
    # "Dead" with offsets is a group that another broker is taking over: its clock is not read off that.
    if description.state != "Empty" or not commits:
        return None
    # `kept` are all of its offsets: nothing is set.
    found = expiry_of(group, GroupState(description.state), tuple(commits), False, clocks)
    return Failure("NOT_TOLD", found.sentence) if found.back_by_ms is None else found.back_by_ms


CONNECT, STREAMS = "connect", "streams"


class GroupNotice(StrEnum):
    """What deserves attention about a group, in the order in which it is named."""

    ALIVE = "alive"
    IDLE = "idle"
    STALLED = "stalled"
    NEVER_COMMITTED = "never-committed-partitions"
    BEYOND_END = "commit-beyond-log-end"
    STREAMS = "streams"
    CONNECT_SINK = "connect-sink"
    VENDOR = "vendor-internal"
    NOT_VISIBLE = "not-visible"


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How many records a group has still to read.

    `records` adds up the partitions whose lag is known, and is None where there is none of them. `unknown` counts the
    committed partitions whose lag is not known, `beyond` those of them whose commit lies beyond the log's end.
    `unread` says once for each reason why log ends were not read.
    """

    records: int | None
    unknown: int
    beyond: int
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """One group. What was not told stands as the `Failure` that says why.

    `topics` are those that it has committed on or is assigned. `partitions_committed` counts the partitions with a
    commit, `partitions_of_its_topics` all those of its topics that are there. `activity` is `NOT_ASKED`
    where the groups' own records were not asked for, and `stalled_partitions` (`stalled_on`) where one look was enough.
    """

    group: str
    kind: str | Failure
    protocol_type: str | Failure
    description: GroupDescription | Failure
    topics: tuple[str, ...] | Failure
    partitions_committed: int | Failure
    partitions_of_its_topics: int | Failure
    lag: GroupLag | Failure
    attention: tuple[GroupNotice, ...]
    activity: GroupActivity | Failure = NOT_ASKED
    stalled_partitions: int | Failure = NOT_ASKED

    @property
    def state(self) -> str | Failure:
        """Kafka's own word for the group's state."""
        described = self.description
        return described if isinstance(described, Failure) else described.state

    @property
    def members(self) -> int | Failure:
        """How many members the group has."""
        described = self.description
        return described if isinstance(described, Failure) else len(described.members)

    @property
    def assignor(self) -> str | Failure:
        """The assignor in use, "" where there is none."""
        described = self.description
        return described if isinstance(described, Failure) else described.assignor

    @property
    def coordinator(self) -> Coordinator | Failure:
        """The broker that coordinates the group."""
        described = self.description
        return described if isinstance(described, Failure) else described.coordinator

    def not_visible(self) -> dict[str, str]:
        """Return why the fields are not known that are not, by the name of the field."""
        names = (
            "kind", "protocol_type", "state", "members", "assignor", "coordinator", "topics", "partitions_committed",
            "partitions_of_its_topics", "lag",
        )  # fmt: skip
        reasons = {name: str(value) for name in names if isinstance(value := getattr(self, name), Failure)}
        if not isinstance(self.lag, Failure) and self.lag.unread:
            reasons["lag"] = "; ".join(self.lag.unread)
        if isinstance(self.activity, GroupActivity):
            if isinstance(self.activity.expires_ms, Failure):
                reasons["expires_ms"] = str(self.activity.expires_ms)
        elif self.activity is not NOT_ASKED:
            reasons["last_commit_ms"] = str(self.activity)
        if isinstance(self.stalled_partitions, Failure) and self.stalled_partitions is not NOT_ASKED:
            reasons["stalled_partitions"] = str(self.stalled_partitions)
        return reasons

    def is_idle(self, now_ms: int, limit_ms: int) -> bool | Failure:
        """Return whether nobody has used the group for so long; the `Failure` that says why nobody can tell.

        A group that somebody has used since is not idle, whatever else is not known of it.
        """
        activity, described = self.activity, self.description
        unused_ms = None if isinstance(activity, Failure) else activity.unused_ms(now_ms)
        if unused_ms is not None and unused_ms < limit_ms:
            return False
        if isinstance(described, Failure):
            return described
        if not described.is_stopped:
            return False
        if isinstance(activity, Failure):
            return activity
        if described.state == "Dead":
            return Failure("NOT_TOLD", "its coordinator calls it Dead: another one may be taking it over")
        if self.kind != "classic":
            return Failure("NOT_TOLD", "only classic groups store when their last member left")
        return True if unused_ms is not None else UNTOLD


@dataclass(frozen=True)
class Inventory:
    """All groups of a cluster that were asked for, and what they add up to.

    `not_idle` counts groups that are left out because somebody has used them since. `looks_apart_ms` is None where
    there was one look alone.
    """

    read: ClusterGroups
    groups: tuple[GroupSummary, ...]
    not_idle: int = 0
    looks_apart_ms: int | None = None

    @property
    def by_kind_and_state(self) -> Mapping[tuple[str, str], int]:
        """Return how many groups there are of each kind in each state; "not-visible" where one of them is not known."""
        return Counter(sorted((_word(group.kind), _word(group.state)) for group in self.groups))

    @property
    def lag(self) -> tuple[int | None, int, int]:
        """The lag of all groups together, the committed partitions whose lag is not known, groups without any.

        The lag is None where no partition's is known and that of some is not.
        """
        known = [group.lag for group in self.groups if not isinstance(group.lag, Failure)]
        unread, unknown = len(self.groups) - len(known), sum(lag.unknown for lag in known)
        records = [lag.records for lag in known if lag.records is not None]
        return None if (unread or unknown) and not records else sum(records), unknown, unread

    @property
    def is_whole(self) -> bool:
        """True if all that was asked for was read."""
        lacking = any(GroupNotice.NOT_VISIBLE in group.attention for group in self.groups)
        return not (lacking or self.read.unseen or self.read.missing)


def inventory_of(read: ClusterGroups, idle_ms: int | None = None, earlier: ClusterGroups | None = None) -> Inventory:
    """Return one line for each group, in order of their names.

    With `idle_ms` only groups that nobody has used for so long, and those of which that is not visible. `earlier` is a
    look at the same groups that says which of them have stalled since.
    """
    streams = applications_of(read.topics, read.groups).keys()
    limit_ms = IDLE_AFTER_MS if idle_ms is None else idle_ms
    groups = tuple(_summary(read, group, group in streams, limit_ms, earlier) for group in read.groups)
    apart_ms = None if earlier is None else read.time_ms - earlier.time_ms
    if idle_ms is None:
        return Inventory(read, groups, looks_apart_ms=apart_ms)
    assert read.clocks is not None, "only the groups' own records tell who is idle"
    now_ms = read.clocks.now_ms
    # Not by their attention: of whom nobody can tell must not be taken for used.
    shown = tuple(group for group in groups if group.is_idle(now_ms, limit_ms) is not False)
    return Inventory(read, shown, len(groups) - len(shown), apart_ms)


def stalled_on(group: str, earlier: ClusterGroups, read: ClusterGroups) -> int | Failure:
    """Return on how many partitions a group with members has stalled from an earlier look to this one.

    There it had records to read at the earlier look, and its commit is the same by now. What came after the earlier
    look a group may not have met yet. A `Failure` says why nobody can tell.
    """
    for look in (earlier, read):
        listed, commits = look.groups.get(group), look.commits.get(group)
        if listed is None or commits is None:
            return 0
        for answer in (listed.description, commits):
            if isinstance(answer, Failure):
                return answer
        if not isinstance(listed.description, Failure) and listed.description.is_stopped:
            return 0
    before, now = earlier.commits[group], read.commits[group]
    assert not isinstance(before, Failure) and not isinstance(now, Failure)
    same = [place for place in before.keys() & now.keys() if before[place].offset == now[place].offset]
    ends = {place: earlier.log_ends.get(place, NO_ANSWER) for place in same}
    unknown = next((end for end in ends.values() if isinstance(end, Failure)), 0)
    return sum(isinstance(end, int) and end > before[place].offset for place, end in ends.items()) or unknown


def lag_of(commits: Commits, ends: Mapping[TopicPartition, int | Failure]) -> GroupLag:
    """Return the lag of a group's commits."""
    records, known, beyond = 0, 0, 0
    unread: dict[str, None] = {}
    for partition, commit in commits.items():
        end = ends.get(partition)
        if not isinstance(end, int):
            unread[f"{partition.topic}: {end or 'no answer'}"] = None
        elif commit.offset > end:
            beyond += 1
        else:
            records += end - commit.offset
            known += 1
    return GroupLag(records if known else None, len(commits) - known, beyond, tuple(unread))


def _summary(
    read: ClusterGroups, name: str, is_streams: bool, idle_after_ms: int, earlier: ClusterGroups | None
) -> GroupSummary:
    group, commits = read.groups[name], read.commits[name]
    is_streams = is_streams or _looks_like_streams(group.kind, group.description, commits)
    lag: GroupLag | Failure
    hidden = not_shown(read, name)
    if hidden is not None:
        commits = hidden
    if isinstance(commits, Failure):
        topics: tuple[str, ...] | Failure = commits
        committed: int | Failure = commits
        count: int | Failure = commits
        lag, lacks = commits, False
    else:
        by_topic = Counter(place.topic for place in commits)
        sizes = {t: read.topics.get(t, 0) for t in (*by_topic, *(place.topic for place in assigned_to(group)))}
        topics, count, lacks = tuple(sorted(sizes)), sum(sizes.values()), any(by_topic[t] < sizes[t] for t in sizes)
        committed, lag = len(commits), lag_of(commits, read.log_ends)
    described = group.description
    activity = NOT_ASKED if read.clocks is None else activity_of(name, described, commits, read.clocks)
    stalled = NOT_ASKED if earlier is None else stalled_on(name, earlier, read)
    summary = GroupSummary(
        name, group.kind, group.protocol_type, described, topics, committed, count, lag, (), activity, stalled
    )  # fmt: skip
    idle = False if read.clocks is None else summary.is_idle(read.clocks.now_ms, idle_after_ms)
    notices = {
        GroupNotice.IDLE: idle is True,
        GroupNotice.STALLED: isinstance(stalled, int) and stalled > 0,
        GroupNotice.ALIVE: not isinstance(described, Failure) and not described.is_stopped,
        GroupNotice.NEVER_COMMITTED: lacks,
        GroupNotice.BEYOND_END: not isinstance(lag, Failure) and lag.beyond > 0,
        GroupNotice.STREAMS: is_streams,
        GroupNotice.CONNECT_SINK: name.startswith(SINK_PREFIX) and group.protocol_type != CONNECT,
        GroupNotice.VENDOR: VENDOR_GROUP.fullmatch(name) is not None,
        GroupNotice.NOT_VISIBLE: bool(summary.not_visible()),
    }
    return replace(summary, attention=tuple(notice for notice, holds in notices.items() if holds))


def _looks_like_streams(kind: str | Failure, described: GroupDescription | Failure, commits: Commits | Failure) -> bool:
    """True for a group of the streams protocol, of the assignor of Kafka Streams, or with metadata that it commits."""
    if kind == STREAMS or (not isinstance(described, Failure) and described.assignor in ASSIGNORS):
        return True
    if isinstance(commits, Failure) or not has_metadata(commits):
        return False
    return any(is_metadata(commit.metadata) for commit in commits.values() if commit.metadata)


def _word(value: str | Failure) -> str:
    return "not-visible" if isinstance(value, Failure) else value
