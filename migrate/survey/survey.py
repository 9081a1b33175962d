"""What `plan` asks for and what it read: the values between the clusters and the plan."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from functools import cache, cached_property
from typing import TypeVar

from migrate.commit_table import GroupCommits
from migrate.match.protocol import Comparer, Comparison, Limits, PartitionAnswer
from migrate.mm2.connect_offsets import Positions
from migrate.mm2.connector_status import Mm2Tasks, WorkerReader
from migrate.mm2.flow import Cluster, Flow
from migrate.mm2.name_map import NameMap
from migrate.mm2.topics import CheckpointReading, MirrorReader, SyncReading, WindowQuestion
from migrate.model import (
    ClusterFacts,
    Commit,
    Commits,
    Failure,
    GroupPartition,
    GroupState,
    LogRange,
    OffsetSync,
    Side,
    TopicPartition,
)
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.commits_source import FROM_COORDINATORS, CommitsSource
from migrate.survey.connect_topics import ConnectTopic
from migrate.survey.filters import Filters
from migrate.survey.group_facts import GroupFacts
from migrate.survey.offsets_pin import OffsetsPin, ReadTopicCommits
from migrate.survey.offsets_topic import CommitTopic
from migrate.survey.policies import Policies
from migrate.survey.producers import Growth
from migrate.survey.renamed import TargetNames

States = Mapping[str, GroupState | Failure]
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class PlanRequest:
    """What is asked of `plan`: the flow, the filters, the policies, and the settings as the header states them.

    `limits` bound what is read of the records. `commits` says where they come from.
    `places` are offsets to translate that no group has committed, each with its owners' names in place of groups';
    where there are any, no group's commits are read. `group_map` says what groups are called on the target.
    """

    flow: Flow
    filters: Filters
    policies: Policies
    settle_seconds: float
    settings: Mapping[str, str]
    limits: Limits = Limits(match_records=1_000_000, fetch_bytes=None)
    commits: CommitsSource = FROM_COORDINATORS
    places: tuple[GroupCommits, ...] = ()
    group_map: NameMap = NameMap()

    @property
    def way_to_leave_out(self) -> str:
        """What keeps a topic out of the plan: an option, or leaving it out of what `places` were read from."""
        return "remove its offsets from the input" if self.places else "leave it out with --exclude-topic"


@dataclass
class Clusters:
    """What a survey is taken through: both clusters, MM2's topics, and what reads records. It owns none of them.

    `source` is None while the source is down, `comparer` where no records are to be compared, `worker` where no Connect
    worker is known. `starts_late` is True where clients are still starting: they are waited for by themselves, or their
    start would be taken for the time that reading takes. `looks_for_hidden` is True where clusters are asked which
    topics they do not show us. `offsets_topic` reads the source's commits from its offsets topic; None where
    coordinators are asked for them. `target_names` are those that the target is asked by in place of the source's
    (`named`).
    """

    source: ClusterAdmin | None
    target: ClusterAdmin
    mirror: MirrorReader
    comparer: Comparer | None = None
    worker: WorkerReader | None = None
    starts_late: bool = False
    looks_for_hidden: bool = False
    offsets_topic: ReadTopicCommits | None = None
    target_names: TargetNames = TargetNames()

    def wait_for_commits(self) -> None:
        """Return once commits can be read."""

    def wait_for_records(self) -> None:
        """Return once records can be read."""

    def end_records(self) -> None:
        """End what reads records: no more of them are read."""

    def end(self) -> None:
        """End what takes long to end: a survey was taken, and nothing more is asked for it."""

    def named(self, names: TargetNames) -> "Clusters":
        """Return the same, with the target asked by the source's names of groups."""
        other = copy(self)
        other.target, other.target_names = self.target.named(names), names
        return other


@dataclass(frozen=True)
class OffsetsTopicSeen:
    """What the offsets topic says beside the commits of listed groups, of what the filters let through.

    `groups` is how many have commits there, `unlisted` those of them that no listing shows. `undecodable` names by
    group the partitions whose newest record cannot be decoded, and why; `undecodable_keys` counts commits of nobody
    knows whom.
    """

    pin: OffsetsPin
    groups: int
    unlisted: tuple[str, ...]
    undecodable: Mapping[str, tuple[str, ...]]
    undecodable_keys: int


@dataclass(frozen=True)
class SelectedCommits:
    """The commits inside the filters, sorted, all that were `read`, by group, and how many each filter took of them.

    `unstable` are groups inside the filters with transactional offsets pending, `groups_seen` all that have commits.
    `topic_seen` is what the offsets topic says, None where it was not read for them. `without_offset` are, by group,
    the partitions with a commit of -1. Where `commits` are those of an earlier time, `now` are the groups' commits of
    now, else None. `missing` are places without a commit of then, sorted, by why (a code of `UNTRANSLATABLE_REASONS`),
    `made_on` the topics that commits of then were made on, by group, as far as their records say.
    """

    commits: GroupCommits
    read: Mapping[str, Commits]
    filtered: Mapping[str, int]
    unstable: frozenset[str]
    groups_seen: frozenset[str]
    topic_seen: OffsetsTopicSeen | None = None
    without_offset: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    now: Mapping[str, Commits] | None = None
    missing: Mapping[GroupPartition, str] = field(default_factory=dict)
    made_on: Mapping[str, Mapping[TopicPartition, CommitTopic]] = field(default_factory=dict)

    @property
    def groups(self) -> frozenset[str]:
        """The groups that a plan is about."""
        return frozenset(self.commits.groups()) | self.unstable | {key.group for key in self.missing}

    @property
    def live(self) -> Mapping[str, Commits]:
        """What these groups have committed now."""
        return self.commits.groups() if self.now is None else self.now


@dataclass(frozen=True)
class Logs:
    """Log ranges by partition on either side, pinned; a `Failure` where a cluster did not report it."""

    source: Mapping[TopicPartition, LogRange | Failure]
    target: Mapping[TopicPartition, LogRange | Failure]


@dataclass(frozen=True)
class Watermarks:
    """High watermarks by partition on either side; a `Failure` where a cluster did not report it."""

    source: Mapping[TopicPartition, int | Failure]
    target: Mapping[TopicPartition, int | Failure]

    def is_open(self, partition: TopicPartition, log: LogRange) -> bool:
        """True if the source's log reaches, or may reach, beyond its pinned last stable offset."""
        high_watermark = self.source.get(partition)
        return not isinstance(high_watermark, int) or high_watermark > log.end


@dataclass(frozen=True)
class Mm2Topic:
    """One of MM2's topics: where it should be, whether it is there, and the range that was read.

    `found` is None where its cluster is down, so that nobody looked.
    """

    side: Side
    topic: str
    found: bool | None
    pinned: LogRange | None


@dataclass(frozen=True, slots=True)
class CopyEnd:
    """Where the copy of a partition ends, as a read_uncommitted reader sees it, read after its newest sync.

    `target_end` is a `Failure` where the cluster did not report it, `newest_sync` None where none was seen.
    """

    target_end: int | Failure
    newest_sync: OffsetSync | None

    @property
    def is_below_newest_sync(self) -> bool:
        """True if the copy no longer has the offset that its newest sync names; False where nobody knows its end."""
        end, sync = self.target_end, self.newest_sync
        return sync is not None and isinstance(end, int) and sync.target_offset >= end


@dataclass(frozen=True)
class Mm2Records:
    """What was read from MM2's topics on both sides, and from its Connect worker (`tasks`)."""

    checkpoints: CheckpointReading
    checkpoints_topic: Mm2Topic
    syncs: SyncReading
    syncs_topic: Mm2Topic
    positions: Positions
    tasks: Mm2Tasks = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterSurvey:
    """What one cluster is and has; empty while it is down.

    `topics` maps a topic to its partition count, `listed` are the groups of the first listing. `states` are the
    livelier of two looks at the groups of the plan, `seconds_apart` lay between the two listings (0 where there was
    one). `hidden` are topics that it has and does not show us, or why nobody can tell; None where that was not asked.
    """

    facts: ClusterFacts = ClusterFacts("", 0, None)
    topics: Mapping[str, int] = field(default_factory=dict)
    listed: frozenset[str] = frozenset()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    states: States = field(default_factory=dict)
    seconds_apart: float = 0.0
    hidden: frozenset[str] | Failure | None = None

    def named(self, names: TargetNames) -> "ClusterSurvey":
        """Return the target with its listing by the source's names of groups."""
        return replace(self, listed=frozenset(names.to_source(dict.fromkeys(self.listed))))


class Case(Flag):
    """What a survey is of: who copies, which way, and whether the source was read."""

    ANY = 0
    BY_MM2 = auto()
    WAY_THERE = auto()
    WAY_BACK = auto()
    SOURCE_READ = auto()
    SOURCE_DOWN = auto()


@dataclass(frozen=True)
class Survey:
    """All facts of a plan. `keys` are its rows' places, sorted, with the commit or None where nothing is committed.

    `request` is what was asked, `taken_at_ms` when the reading ended, by this machine's clock, in ms since 1970.
    `priors` are the target's commits by group, `unstable` the groups with transactional offsets pending on either side.
    `comparison` is None where no records were compared. `growth` tells how far the source's log ends moved between two
    readings. `connect_topics` are those on the source that are a Connect worker's own, or Debezium's. `timings` are
    seconds by step. The windows in `mm2.syncs` are those of the commits that comparing has not placed.
    All that was read of groups on the target is by their names on the source; `target_names` says what they are called
    there, `under_old_names` which of those that are called otherwise it has under the source's name as well.
    `copy_ends` are by source partition, of those on which a commit was not placed by comparing; none where MM2 does not
    copy.
    """

    request: PlanRequest
    taken_at_ms: int
    source: ClusterSurvey
    target: ClusterSurvey
    selected: SelectedCommits
    groups: tuple[str, ...]
    unstable: frozenset[str]
    priors: Mapping[str, Commits]
    keys: Mapping[GroupPartition, Commit | None]
    logs: Logs
    watermarks: Watermarks
    growth: Mapping[TopicPartition, Growth | Failure]
    mm2: Mm2Records
    comparison: Comparison | None
    group_facts: GroupFacts
    connect_topics: tuple[ConnectTopic, ...]
    timings: Mapping[str, float]
    target_names: TargetNames = TargetNames()
    under_old_names: tuple[str, ...] = ()
    copy_ends: Mapping[TopicPartition, CopyEnd] = field(default_factory=dict)

    @property
    def flow(self) -> Flow:
        """The flow that it was asked about."""
        return self.request.flow

    @cached_property
    def case(self) -> Case:
        """What it is of, by which checks are chosen."""
        way = Case.WAY_BACK if self.flow.failback else Case.WAY_THERE
        source = Case.SOURCE_READ if self.request.commits.asks_source else Case.SOURCE_DOWN
        return way | source | (Case.BY_MM2 if self.flow.by_mm2 else Case.ANY)

    @property
    def clusters_read(self) -> tuple[tuple[Cluster, ClusterSurvey], ...]:
        """The clusters that were asked, with what was read of each: both, or the target alone."""
        on_target = self.flow.target, self.target
        return ((self.flow.source, self.source), on_target) if self.request.commits.asks_source else (on_target,)

    @property
    def answers(self) -> Mapping[TopicPartition, PartitionAnswer]:
        """What comparing the records told, by source partition; empty where none were compared."""
        return self.comparison.answers if self.comparison else {}


def copy_of(flow: Flow, source: TopicPartition) -> TopicPartition:
    """Return the copy of a source partition, by its name on the target."""
    return TopicPartition(flow.policy.target_topic(source.topic), source.partition)


WindowQuestionOf = Callable[[GroupPartition, Commit | None], WindowQuestion | None]


def window_questions(flow: Flow, logs: Logs) -> WindowQuestionOf:
    """Return what asks for the window of a place's commit; it returns None where no window could place it anyway."""

    @cache
    def of_partition(source: TopicPartition) -> Callable[[int], WindowQuestion] | None:
        source_log, target_log = logs.source.get(source), logs.target.get(copy_of(flow, source))
        if not isinstance(target_log, LogRange) or isinstance(source_log, Failure):
            return None
        name, target_end = flow.mm2_topic(source.topic), target_log.end
        source_end = source_log.end if source_log else None
        return lambda committed: WindowQuestion(name, source.partition, committed, source_end, target_end)

    def question(key: GroupPartition, commit: Commit | None) -> WindowQuestion | None:
        asks = of_partition(key.source_partition)
        return None if asks is None or commit is None else asks(commit.offset)

    return question
