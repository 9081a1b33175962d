"""What a check is: a named, pure function from the facts and the rows to results, one per subject.

A check gives one result for every subject that does not pass, and a single `pass` that counts the rest, so
that 10,000 fine groups stay one line. A fact that could not be read is `not-visible`, which counts as its
check's block or warn, never as a pass. `migrate.checks.registry` names all checks and runs them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from migrate.mm2.connector_status import Mm2Tasks
from migrate.model import CheckResult, Failure, GroupPartition, GroupState, Level, Row, Scope, TopicPartition
from migrate.survey.connect_topics import ConnectTopic
from migrate.survey.drain import Drained
from migrate.survey.group_facts import NOT_ASKED, GroupFacts
from migrate.survey.offsets_topic import newest_ms
from migrate.survey.other_log import OtherLog
from migrate.survey.policies import Policies
from migrate.survey.producers import Growth
from migrate.survey.streams import Application


@dataclass(frozen=True, slots=True)
class TopicShape:
    """What one of MM2's topics turned out to hold.

    `wanted` is the record kind it should hold ("checkpoint" or "offset-sync"), `counts` records by kind as
    read ("undecodable:<reason>" for those of no kind).
    `found` is False where the cluster has no such topic, None where it is down.
    """

    side: str
    topic: str
    wanted: str
    found: bool | None
    named: bool
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class HiddenTopics:
    """Topics that a cluster has and does not show us: those that a plan may be about, and others.

    `unknown` says why nobody can tell, "" where it is known.
    """

    concerned: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    unknown: str = ""


@dataclass(frozen=True)
class CheckFacts:
    """What the checks look at, beside the rows.

    `source_states` and `target_states` hold each group's state or the failure to describe it; a group that two
    listings, a settle time apart, did not show is `GroupState("Absent")`. `topic_partitions` maps a source
    topic to (source partitions or None, target topic, target partitions or None). `never_committed` maps a
    group to the partitions of its topics that it has no commit for. `checkpointed_only` are groups that MM2
    checkpointed and the source does not list; `unknown_names` the names asked for that no cluster lists.
    `unstable_groups` have transactional offsets pending. `drains` tell by source partition whether MM2 has copied all
    of it, `positions_unknown` why MM2's own positions are not known ("" where they are). `failback` is True where the
    groups leave MM2's target for its source. `hidden` tells by alias of topics that the cluster does not show us.
    `growth` tells how far each source log's end moved between two readings.

    `other_kinds` are the kinds of groups inside the filters that are no consumer groups ("share", "streams"), a
    `Failure` where no client can see them. `applications` are the groups that look like Kafka Streams. `group_sync`
    is MM2's setting, None where unknown. `newest_checkpoint_ms` is None where there is none. `foreign_records` counts,
    by source topic, records on the target that equal none of the source. `now_ms` is the time of the plan. `mm2_tasks`
    is the state of MM2's connectors, empty where no Connect worker was asked. `connect_topics` are those of
    Connect's own topics on the source that the target has no topic of the same name for.

    `looks_apart` is by alias how many seconds lay between the two listings of its groups. `other_logs` are the
    commits on the source, and `target_other_logs` those on the target, that are proven to be of another log.
    """

    source_alias: str
    target_alias: str
    source_cluster_id: str
    target_cluster_id: str
    source_down: bool
    may_describe: Mapping[str, bool | None]
    shapes: tuple[TopicShape, ...]
    source_states: Mapping[str, GroupState | Failure]
    target_states: Mapping[str, GroupState | Failure]
    topic_partitions: Mapping[str, tuple[int | None, str, int | None]]
    never_committed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unstable_groups: frozenset[str] = frozenset()
    checkpointed_only: tuple[str, ...] = ()
    unseen_topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown_names: tuple[str, ...] = ()
    left_out_by_mm2: tuple[str, ...] = ()
    unknown_when_down: tuple[str, ...] = ()
    drains: Mapping[TopicPartition, Drained] = field(default_factory=dict)
    positions_unknown: str = ""
    failback: bool = False
    hidden: Mapping[str, HiddenTopics] = field(default_factory=dict)
    growth: Mapping[TopicPartition, Growth | Failure] = field(default_factory=dict)
    groups: GroupFacts = GroupFacts()
    other_kinds: Mapping[str, str] | Failure = NOT_ASKED
    applications: Mapping[str, Application] = field(default_factory=dict)
    group_sync: bool | None = None
    newest_checkpoint_ms: int | None = None
    foreign_records: Mapping[str, int] = field(default_factory=dict)
    now_ms: int = 0
    mm2_tasks: Mm2Tasks = field(default_factory=dict)
    connect_topics: tuple[ConnectTopic, ...] = ()
    looks_apart: Mapping[str, float] = field(default_factory=dict)
    other_logs: Mapping[GroupPartition, OtherLog] = field(default_factory=dict)
    target_other_logs: Mapping[GroupPartition, OtherLog] = field(default_factory=dict)

    @property
    def newest_seen_ms(self) -> int:
        """The newest time of what MM2 or the target's brokers have written, which their clocks have passed; else 0."""
        mm2_times = (self.newest_checkpoint_ms, self.groups.newest_sync_ms)
        return max([newest_ms(self.groups.target_records), *(time for time in mm2_times if isinstance(time, int))])


Check = Callable[[CheckFacts, tuple[Row, ...], Policies], Iterable[CheckResult]]


def result(
    level: Level, check: str, scope: Scope, subject: str, expected: str, seen: str, todo: str = ""
) -> CheckResult:
    """Return a result whose level is also what decides."""
    return CheckResult(check, level, scope, subject, expected, seen, todo, False, level)


def unseen(
    counts_as: Level, check: str, scope: Scope, subject: str, expected: str, seen: str, todo: str
) -> CheckResult:
    """Return a `not-visible` result that counts as `counts_as`: block or warn.

    `PASS` is for a check that can only ever refute: it found nothing, and that is no proof. Such a result is listed
    beside those that passed, never among them.
    """
    return CheckResult(check, Level.NOT_VISIBLE, scope, subject, expected, seen, todo, False, counts_as)


def groups_of(rows: Iterable[Row]) -> list[str]:
    """Return the groups of the rows, sorted."""
    return sorted({row.group for row in rows})


def some(names: Iterable[str], most: int = 10, between: str = ", ") -> str:
    """Return at most `most` names in a sentence, and how many more there are."""
    listed = list(names)
    tail = f" and {len(listed) - most} more" if len(listed) > most else ""
    return between.join(listed[:most]) + tail
