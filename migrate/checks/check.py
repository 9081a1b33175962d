"""What a check is: a named, pure function from the facts and the rows to results, one per subject.

A check gives one result for every subject that does not pass, and a single `pass` that counts the rest, so
that 10,000 fine groups stay one line. A fact that could not be read is `not-visible`, which counts as its
check's block or warn, never as a pass. `migrate.checks.registry` declares all checks, `checklist` runs them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from migrate.checks.registry import Check
from migrate.mm2.connector_status import Mm2Tasks
from migrate.mm2.name_map import MapLine
from migrate.model import CheckResult, Failure, GroupState, TopicPartition
from migrate.row_table import PlanRows
from migrate.survey.connect_topics import ConnectTopic
from migrate.survey.drain import Drained
from migrate.survey.group_facts import NOT_ASKED, GroupFacts
from migrate.survey.offsets_topic import newest_ms
from migrate.survey.other_log import LogProofs
from migrate.survey.policies import Policies
from migrate.survey.producers import Growth
from migrate.survey.streams import Application
from migrate.survey.survey import CopyEnd, TopicWitness
from migrate.text import name


@dataclass(frozen=True, slots=True)
class TopicShape:
    """What one of MM2's topics turned out to hold.

    `kind` is the record kind it should hold ("checkpoint" or "offset-sync"), `counts` records by kind as
    read ("undecodable:<reason>" for those of no kind).
    `exists` is False where the cluster has no such topic, None where it is down. `why_not_emitted` is the setting by
    which MM2 writes no such records, "" where it does.
    """

    side: str
    topic: str
    kind: str
    exists: bool | None
    named: bool
    counts: Mapping[str, int]
    why_not_emitted: str = ""


@dataclass(frozen=True, slots=True)
class HiddenTopics:
    """Topics that a cluster has and does not show us: those that a plan may be about, and others.

    `unknown` says why that is not known, "" where it is.
    """

    concerned: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    unknown: str = ""


@dataclass(frozen=True)
class ClusterSide:
    """One of the two clusters. `may_describe` is None where the broker did not report its ACL verdict.

    `states` hold each group's state or the failure to describe it; a group that two listings, `seconds_apart`, did not
    show is `GroupState(ABSENT)`. `hidden` are topics that the cluster does not show us, None where nobody asked.
    `logs` tells of commits on it, by their places on the source, whether they are of the logs that are there. `names`
    are what groups are called there that have another name on the source.
    """

    alias: str
    cluster_id: str
    may_describe: bool | None
    states: Mapping[str, GroupState | Failure]
    seconds_apart: float = 0.0
    hidden: HiddenTopics | None = None
    logs: LogProofs = field(default_factory=LogProofs)
    names: Mapping[str, str] = field(default_factory=dict)

    def where(self, group: str) -> str:
        """Return the cluster, and what the group is called there if that is not its name on the source."""
        return f"{self.alias} as {name(self.names[group])}" if group in self.names else self.alias


@dataclass(frozen=True)
class TopicFacts:
    """The topics of the plan.

    `partitions` maps a source topic to (source partitions or None, target topic, target partitions or None). `drains`
    tell by source partition whether MM2 has copied all of it, `growth` how far each source log's end moved between two
    readings. `foreign_records` counts, by source topic, records on the target that equal none of the source, and
    how many of them may be copies of source records that nobody sees; of `unread_tails` the records near the ends were
    not compared. `copy_ends` tell, by source partition where no records place every commit, where its copy ends.
    `of_connect` are those of Connect's own topics on the source that the target has no topic of the same name for.
    `why_perhaps_missing` says, by source topic, why MM2 may have no copy of it where its policy says. `unread_ends` are
    the source partitions whose log reaches, or may reach, beyond what was read: by an open transaction, say.
    """

    partitions: Mapping[str, tuple[int | None, str, int | None]]
    drains: Mapping[TopicPartition, Drained] = field(default_factory=dict)
    growth: Mapping[TopicPartition, Growth | Failure] = field(default_factory=dict)
    foreign_records: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    copy_ends: Mapping[TopicPartition, CopyEnd] = field(default_factory=dict)
    unread_tails: frozenset[str] = frozenset()
    of_connect: tuple[ConnectTopic, ...] = ()
    why_perhaps_missing: Mapping[str, str] = field(default_factory=dict)
    unread_ends: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True)
class GroupNames:
    """The groups of the plan, and those that are not in it.

    `never_committed` maps a group to the partitions of its topics that it has no commit for, `without_offset` to those
    where its commit is -1, `unseen_topics` to those that it has checkpoints on and the source does not list. `unstable`
    have transactional offsets pending.
    `checkpointed_only` are groups that MM2 checkpointed and the source does not list; `unknown_names` the names asked
    for that no cluster lists; `unknown_when_down` the patterns of groups that MM2 keeps no checkpoints of.
    `other_kinds` are the kinds of groups inside the filters that are no consumer groups ("share", "streams"), a
    `Failure` where no client can see them. `applications` are the groups that look like Kafka Streams. `witness` is
    what the offsets topic says of the source's groups, None where their commits are not from there.
    `idle_map_lines` are those of `--group-map` that decide for no group, `under_old_names` the renamed groups whose
    name on the source the target has as well. `shared_names` maps a group of the plan to one that is not in it, and
    would have the same name on the target, `taken_names` a renamed one to partitions of topics that are not its own
    there on which the group with its new name has committed. `checkpointed_under_new_name` are groups of a source that
    is down whose checkpoints bear the target's name alone.
    """

    never_committed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    without_offset: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unseen_topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unstable: frozenset[str] = frozenset()
    checkpointed_only: tuple[str, ...] = ()
    unknown_names: tuple[str, ...] = ()
    unknown_when_down: tuple[str, ...] = ()
    other_kinds: Mapping[str, str] | Failure = NOT_ASKED
    applications: Mapping[str, Application] = field(default_factory=dict)
    witness: TopicWitness | None = None
    idle_map_lines: tuple[MapLine, ...] = ()
    under_old_names: tuple[str, ...] = ()
    shared_names: Mapping[str, str] = field(default_factory=dict)
    taken_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    checkpointed_under_new_name: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mm2Facts:
    """MirrorMaker 2. `newest_checkpoint_ms` is None where there is none.

    `tasks` is the state of its connectors, empty where no Connect worker was asked. `left_out_groups` are those of the
    plan that its own filter leaves out. `synced_groups` are those whose offsets it writes on the target itself, None
    where that is unknown; of `perhaps_synced` its version decides. `synced_names` are names that groups of the plan get
    on the target and that another group of the source, whose offsets it writes, already has, by the plan's group.
    `positions_unknown` is why its own positions are not known, "" where they are. `copies` is
    False behind another replicator: then nothing of MM2's was asked for.
    """

    shapes: tuple[TopicShape, ...]
    newest_checkpoint_ms: int | None = None
    tasks: Mm2Tasks = field(default_factory=dict)
    left_out_groups: tuple[str, ...] = ()
    synced_groups: frozenset[str] | None = None
    perhaps_synced: frozenset[str] = frozenset()
    synced_names: Mapping[str, str] = field(default_factory=dict)
    positions_unknown: str = ""
    copies: bool = True


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch that a Spark query has begun and not finished, after the one that it finished last."""

    begun: int
    finished: int


@dataclass(frozen=True)
class PositionFacts:
    """The holders of positions outside Kafka, by name.

    `open_batches` are those of Spark checkpoints. `moved` say where a second look found something else, or why there
    was none. `sinks` say whether the folder that a holder writes to remembers batch numbers; `of_spark` are those whose
    sink matters. `stateful` keep a state. `differing` are the partitions on which the group of a holder's name has
    committed something else. `missing` are partitions of its topics that a holder has no position for.
    """

    open_batches: Mapping[str, OpenBatch] = field(default_factory=dict)
    moved: Mapping[str, str] = field(default_factory=dict)
    sinks: Mapping[str, bool] = field(default_factory=dict)
    of_spark: frozenset[str] = frozenset()
    stateful: frozenset[str] = frozenset()
    differing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckFacts:
    """What the checks look at, beside the rows. `now_ms` is the time of the plan.

    `failback` is True where the groups leave MM2's target for its source, `is_as_of` where the commits are those of an
    earlier time.
    """

    source: ClusterSide
    target: ClusterSide
    topics: TopicFacts
    groups: GroupNames
    mm2: Mm2Facts
    group_facts: GroupFacts
    source_down: bool
    failback: bool
    now_ms: int
    positions: PositionFacts = field(default_factory=PositionFacts)
    is_as_of: bool = False

    @property
    def up(self) -> tuple[ClusterSide, ...]:
        """The clusters that were read."""
        return (self.target,) if self.source_down else (self.source, self.target)

    @property
    def newest_seen_ms(self) -> int:
        """The newest time of what MM2 or the target's brokers have written, which their clocks have passed; else 0."""
        mm2_times = (self.mm2.newest_checkpoint_ms, self.group_facts.newest_sync_ms)
        times = (time for time in mm2_times if isinstance(time, int))
        return max([newest_ms(self.group_facts.target_records), *times])


Judge = Callable[[CheckFacts, PlanRows, Policies], Iterable[CheckResult]]


@dataclass(frozen=True, slots=True)
class Judged:
    """A function with the checks that it answers."""

    checks: tuple[Check, ...]
    judge: Judge


def judges(*checks: Check) -> Callable[[Judge], Judged]:
    """Mark the function that judges these checks: `migrate.checks.checklist` finds it by that."""
    return lambda judge: Judged(checks, judge)


def is_without_members(state: GroupState | Failure | None) -> bool:
    """True if nobody is in the group, or two listings did not show it; where that is not known it may be alive."""
    return isinstance(state, GroupState) and state.is_stopped


def groups_of(rows: PlanRows) -> list[str]:
    """Return the groups of the rows, sorted."""
    return sorted(rows.groups())
