"""What `plan` asks for and what it read: the values between the clusters and the plan."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from migrate.clock import Clock
from migrate.match.comparison import Comparison, Limits, RecordComparer
from migrate.mm2.connect_offsets import Positions
from migrate.mm2.connector_status import Mm2Tasks, TaskReader
from migrate.mm2.flow import Flow
from migrate.mm2.topics import CheckpointReading, MirrorReader, SyncReading, WindowQuestion
from migrate.model import (
    ClusterFacts,
    Commit,
    Commits,
    Failure,
    GroupPartition,
    GroupState,
    LogRange,
    Side,
    TopicPartition,
)
from migrate.ports import ClusterAdmin, CommitReader, PositionReader, Progress
from migrate.progress import BATCH, in_batches
from migrate.survey.connect_topics import ConnectTopic
from migrate.survey.filters import Filters
from migrate.survey.group_facts import GroupFacts, GroupFactsReader
from migrate.survey.policies import Policies
from migrate.survey.producers import Growth

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class PlanRequest:
    """What is asked of `plan`: the flow, the filters, the policies, and the settings as the header tells them.

    `limits` bound what is read of the records.
    """

    flow: Flow
    filters: Filters
    policies: Policies
    source_down: bool
    settle_seconds: float
    settings: Mapping[str, str]
    limits: Limits = Limits(match_records=1_000_000, fetch_bytes=None)


@dataclass(frozen=True)
class Clusters:
    """The edges that `plan` reads through. `source` and `source_commits` are None while the source is down.

    `comparer` is None where no records are to be compared, `worker` where no Connect worker is known. `hosted` tells
    per side which topics a cluster has, shown to us or not; a side that nobody can ask is not in it.
    `source_groups` and `target_groups` tell of groups what an admin client does not; None where nobody is to be asked.
    `tasks` tells the state of MM2's connectors, None where no Connect worker is known.
    `ready` returns once the edges can be used that take long to start; None where none does.
    """

    source: ClusterAdmin | None
    target: ClusterAdmin
    source_commits: CommitReader | None
    target_commits: CommitReader
    mirror: MirrorReader
    comparer: RecordComparer | None = None
    hosted: Mapping[Side, Callable[[], frozenset[str] | Failure]] = field(default_factory=dict)
    worker: PositionReader | None = None
    source_groups: GroupFactsReader | None = None
    target_groups: GroupFactsReader | None = None
    ready: Callable[[], object] | None = None
    tasks: TaskReader | None = None


@dataclass(frozen=True)
class Wanted:
    """The commits inside the filters, what the filters took (by filter), and how many were read in all.

    `unstable` are wanted groups with transactional offsets pending, `groups_seen` all that have commits.
    """

    commits: Mapping[GroupPartition, Commit]
    commits_read: int
    filtered: Mapping[str, int]
    unstable: frozenset[str]
    groups_seen: frozenset[str]


@dataclass(frozen=True)
class Logs:
    """Log ranges by partition on either side, pinned; a `Failure` where a cluster did not tell."""

    source: Mapping[TopicPartition, LogRange | Failure]
    target: Mapping[TopicPartition, LogRange | Failure]


@dataclass(frozen=True)
class Watermarks:
    """High watermarks by partition on either side; a `Failure` where a cluster did not tell."""

    source: Mapping[TopicPartition, int | Failure]
    target: Mapping[TopicPartition, int | Failure]

    def is_open(self, partition: TopicPartition, log: LogRange) -> bool:
        """True if the source's log reaches, or may reach, beyond its pinned last stable offset."""
        told = self.source.get(partition)
        return not isinstance(told, int) or told > log.end


@dataclass(frozen=True)
class Mm2Topic:
    """One of MM2's topics: where it should be, whether it is there, and the range that was read.

    `found` is None where its cluster is down, so that nobody looked.
    """

    side: Side
    topic: str
    found: bool | None
    pinned: LogRange | None


@dataclass(frozen=True)
class Survey:
    """All facts of a plan. `keys` are its rows' places, with the commit or None where nothing is committed.

    `questions` are the window questions of those commits that a window could place. States are the livelier of
    two looks. What is the source's is empty or None while it is down. `comparison` is None where no records were
    compared. `hidden` are topics that a cluster has and does not show us, or why nobody can tell.
    `growth` tells how far the source's log ends moved between two readings, `looks_apart` how many seconds lay between
    the two listings of a side's groups. `connect_topics` are those on the source that are a Connect worker's own, or
    Debezium's.
    """

    source_facts: ClusterFacts | None
    target_facts: ClusterFacts
    source_topics: Mapping[str, int]
    target_topics: Mapping[str, int]
    source_listed: frozenset[str]
    wanted: Wanted
    groups: tuple[str, ...]
    unstable: frozenset[str]
    keys: Mapping[GroupPartition, Commit | None]
    questions: Mapping[GroupPartition, WindowQuestion]
    priors: Mapping[str, Commits]
    logs: Logs
    source_states: Mapping[str, GroupState | Failure]
    target_states: Mapping[str, GroupState | Failure]
    checkpoints: CheckpointReading
    checkpoints_topic: Mm2Topic
    syncs: SyncReading
    syncs_topic: Mm2Topic
    target_topic_ids: Mapping[str, str]
    timings: Mapping[str, float]
    watermarks: Watermarks
    positions: Positions
    comparison: Comparison | None
    hidden: Mapping[Side, frozenset[str] | Failure] = field(default_factory=dict)
    growth: Mapping[TopicPartition, Growth | Failure] = field(default_factory=dict)
    group_facts: GroupFacts = GroupFacts()
    mm2_tasks: Mm2Tasks = field(default_factory=dict)
    connect_topics: tuple[ConnectTopic, ...] = ()
    source_topic_ids: Mapping[str, str] = field(default_factory=dict)
    looks_apart: Mapping[Side, float] = field(default_factory=dict)


def window_question(key: GroupPartition, commit: Commit | None, flow: Flow, logs: Logs) -> WindowQuestion | None:
    """Return the window question of a commit; None where no window could place it anyway."""
    source_log = logs.source.get(TopicPartition(key.topic, key.partition))
    target_log = logs.target.get(TopicPartition(flow.policy.target_topic(key.topic), key.partition))
    if commit is None or not isinstance(target_log, LogRange) or isinstance(source_log, Failure):
        return None
    source_end = source_log.end if source_log else None
    return WindowQuestion(flow.mm2_topic(key.topic), key.partition, commit.offset, source_end, target_log.end)


class Timer:
    """Announces the steps of a run and times them: `timings` are seconds by step name, summed."""

    def __init__(self, clock: Clock, progress: Progress) -> None:
        self._clock = clock
        self._progress = progress
        self.timings: dict[str, float] = {}

    def run(self, name: str, text: str, action: Callable[[], T]) -> T:
        """Announce and time one step."""
        self._progress.step(text)
        began = self._clock.monotonic()
        try:
            return action()
        finally:
            took = self._clock.monotonic() - began
            self.timings[name] = round(self.timings.get(name, 0.0) + took, 3)

    def ask(
        self,
        name: str,
        text: str,
        items: Collection[K],
        question: Callable[[Collection[K]], Mapping[K, V]],
        size: int = BATCH,
    ) -> dict[K, V]:
        """Announce and time a step that asks the same of many items, saying how far it is."""
        return self.run(name, text, lambda: in_batches(list(items), question, self._progress, size))
