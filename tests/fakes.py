"""What stands behind the ports in tests: a Kafka cluster in memory, a comparer, and a clock that does not wait."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from migrate.described_group import ListedGroup
from migrate.errors import ClusterError
from migrate.match.equality import Equality
from migrate.match.protocol import (
    Comparison,
    FetchEstimate,
    Limits,
    Listener,
    Matched,
    PartitionAnswer,
    Tail,
    Unmatched,
    Why,
    Work,
)
from migrate.model import (
    ClusterFacts,
    Commit,
    Commits,
    Failure,
    GroupState,
    LogRange,
    Side,
    TopicPartition,
)
from migrate.ports import Outcomes
from migrate.survey.cluster import CLEANUP_POLICY, BrokerSettings
from migrate.survey.group_facts import NOT_ASKED, AnswerMemory
from migrate.survey.offsets_topic import GroupRecord
from migrate.survey.renamed import SAME_NAMES, TargetNames

EMPTY = GroupState("Empty")
ALIVE = GroupState("Stable", 1, ("app@10.0.0.7",))

# What one write sets, with None for what it removes.
Appended = Mapping[TopicPartition, Commit | None]


class Crash(BaseException):
    """The process is gone: nothing in the product may catch it."""


@dataclass
class Script:
    """One answer given instead of the real one. `applied` writes all the same: an unknown outcome.

    `late` appends all the same, and nobody sees it until `FakeCluster.surface` is called.
    """

    failure: Failure
    applied: bool = False
    late: bool = False


@dataclass
class FakeCluster:
    """Groups, offsets and logs of one cluster; every `renewed()` client shares them.

    `scripts[call, group]` is a queue of answers for that call on that group ("alter", "commits", "delete",
    "states", "delete_offsets"). `lacking` is why metadata and single removals are out of reach. `crash_after` raises
    `Crash` right after so many groups were written, before any answer. `watermarks` are high watermarks, where they
    differ from the log's end: a transaction is open. `on_call` is told each call's name before it is carried out.
    `down` makes every call a `ClusterError`. `unseen` are appends that were not acknowledged and may become visible,
    oldest first, with None for a removal: a later write to the same partition stands behind them in the log. A removal
    writes nothing for what is not visible, as up to Kafka 3.9. `told` tells of groups (`FakeGroupFacts`), nothing where
    it is None, and `memory` keeps that; `hosted` are the topics that it has, shown or not.
    """

    side: Side = Side.TARGET
    alias: str = "B"
    cluster_id: str = "target-id"
    offsets: dict[str, dict[TopicPartition, Commit]] = field(default_factory=dict)
    states: dict[str, GroupState] = field(default_factory=dict)
    ranges: dict[TopicPartition, LogRange | Failure] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    scripts: dict[tuple[str, str], list[Script]] = field(default_factory=dict)
    unstable: set[str] = field(default_factory=set)
    watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    unseen: dict[str, list[Appended]] = field(default_factory=dict)
    crash_after: int | None = None
    down: bool = False
    on_call: Callable[[str], None] = lambda call: None
    lacking: Failure | None = None
    calls: Counter[str] = field(default_factory=Counter)
    widest_alter: int = 0
    clients: int = 1
    told: Any = None
    memory: AnswerMemory | None = None
    hosted: Callable[[], frozenset[str] | Failure] = lambda: NOT_ASKED

    def commit(self, group: str, topic: str, partition: int, offset: int, metadata: str = "") -> None:
        place = TopicPartition(topic, partition)
        self._put(group, {place: Commit(offset, metadata)})
        self.overtake(group, [place])

    def script(self, call: str, group: str, *answers: Script) -> None:
        self.scripts.setdefault((call, group), []).extend(answers)

    def held(self, group: str) -> dict[tuple[str, int], int]:
        """What the group has committed, as plain values."""
        return {(p.topic, p.partition): c.offset for p, c in self.offsets.get(group, {}).items()}

    def when(self, call: str, act: Callable[[], object], once_written: bool = False) -> None:
        """Do something before every such call; with `once_written` only after a first write."""

        def acting(called: str) -> None:
            if called == call and (self.writes or not once_written):
                act()

        self.on_call = acting

    def calm(self) -> None:
        """Do nothing before any call."""
        self.on_call = lambda call: None

    @property
    def writes(self) -> int:
        return self.calls["alter"] + self.calls["delete"] + self.calls["delete_offsets"]

    def facts(self) -> ClusterFacts:
        self._called("facts")
        return ClusterFacts(self.cluster_id, 1, True)

    def topics(self) -> Mapping[str, int]:
        self._called("topics")
        return dict(Counter(p.topic for p in self.ranges))

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        self._called("topic_ids")
        return {t: self.ids[t] for t in topics if t in self.ids}

    def groups(self) -> frozenset[str]:
        self._called("groups")
        return frozenset(self.offsets.keys() | self.states.keys())

    def group_states(self, groups: Collection[str]) -> Mapping[str, GroupState | Failure]:
        self._called("states")
        return {g: self._scripted("states", g) or self.states.get(g, GroupState("Dead")) for g in groups}

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        self._called("commits")
        return {g: self._commits(g, require_stable) for g in groups}

    def log_ranges(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogRange | Failure]:
        self._called("log_ranges")
        return {p: self.ranges.get(p, Failure("UNKNOWN_TOPIC_OR_PARTITION", "no such")) for p in partitions}

    def high_watermarks(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        self._called("high_watermarks")
        ends = {p: log.end for p, log in self.ranges.items() if isinstance(log, LogRange)} | self.watermarks
        return {p: ends.get(p, Failure("UNKNOWN_TOPIC_OR_PARTITION", "no such")) for p in partitions}

    def alter(self, wanted: Mapping[str, Commits]) -> Outcomes:
        self._called("alter")
        self.widest_alter = max(self.widest_alter, len(wanted))
        return {group: self._alter(group, commits) for group, commits in wanted.items()}

    def delete_offsets(self, wanted: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        self._called("delete_offsets")
        return {group: self._delete_offsets(group, partitions) for group, partitions in wanted.items()}

    def missing_capability(self) -> Failure | None:
        self._called("missing_capability")
        return self.lacking

    def delete_groups(self, groups: Collection[str]) -> Mapping[str, Failure | None]:
        self._called("delete")
        return {group: self._delete(group) for group in groups}

    def described_groups(self, groups: Collection[str]) -> Mapping[str, ListedGroup]:
        raise NotImplementedError

    def other_groups(self) -> Mapping[str, ListedGroup] | Failure:
        raise NotImplementedError

    def group_kinds(self) -> Any:
        return self._told("kinds", lambda told: told.group_kinds())

    def group_records(self, groups: Collection[str], most: int | None = None) -> Any:
        what = "records" if most is None else "few records"
        return self._told(what, lambda told: told.group_records(groups, most))

    def broker_settings(self) -> Any:
        return self._told("settings", lambda told: told.broker_settings())

    def topic_settings(self, topics: Collection[str], setting: str) -> Any:
        return self._told(setting, lambda told: told.topic_settings(topics, setting))

    def newest_record_ms(self, topic: str) -> Any:
        return NOT_ASKED if self.told is None else self.told.newest_record_ms(topic)

    def hosted_topics(self) -> frozenset[str] | Failure:
        return self.hosted()

    def _told(self, what: str, ask: Callable[[Any], Any]) -> Any:
        if self.told is None:
            return NOT_ASKED
        return ask(self.told) if self.memory is None else self.memory.answer(what, (), lambda: ask(self.told))

    def named(self, names: TargetNames) -> Any:
        return NamedCluster(self, names) if names else self

    def holding(self, lock: int) -> "FakeCluster":
        return self

    def close(self) -> None: ...

    def renewed(self) -> "FakeCluster":
        self.clients += 1
        return self

    def _commits(self, group: str, require_stable: bool) -> Commits | Failure:
        failure = self._scripted("commits", group)
        if failure is None and group in self.unstable and require_stable:
            failure = Failure("UNSTABLE_OFFSET_COMMIT", "open transaction", retriable=True)
        return failure or copy(self.offsets.get(group, {}))

    def surface(self, group: str) -> None:
        """Let the oldest append of a group that nobody has seen become visible."""
        self._put(group, self.unseen[group].pop(0))

    def overtake(self, group: str, partitions: Collection[TopicPartition]) -> None:
        """Take away what is unseen of these partitions: a later write stands behind it in the log."""
        left = [{p: c for p, c in late.items() if p not in partitions} for late in self.unseen.get(group, ())]
        self.unseen[group] = [late for late in left if late]

    def _delete(self, group: str) -> Failure | None:
        if self.states.get(group, EMPTY).member_count:
            return Failure("NON_EMPTY_GROUP", "the group is not empty")
        # As Kafka up to 3.9: no tombstone is written for what is not visible, and none overtakes it.
        return self._answered("delete", group, dict.fromkeys(self.offsets.get(group, {})))

    def _delete_offsets(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Failure | None]:
        if self.lacking is not None:
            return dict.fromkeys(partitions, self.lacking)
        visible = [place for place in partitions if place in self.offsets.get(group, {})]
        return dict.fromkeys(partitions, self._answered("delete_offsets", group, dict.fromkeys(visible)))

    def _alter(self, group: str, commits: Commits) -> dict[TopicPartition, Failure | None]:
        if self.lacking is not None and any(commit.metadata for commit in commits.values()):
            return dict.fromkeys(commits, self.lacking)
        if self.states.get(group, EMPTY).member_count:
            return dict.fromkeys(commits, Failure("UNKNOWN_MEMBER_ID", "the group has active members"))
        return dict.fromkeys(commits, self._answered("alter", group, commits))

    def _answered(self, call: str, group: str, wanted: Appended) -> Failure | None:
        """Carry a write out, crash right after it where that is due, and return what is answered."""
        script = self._written(call, group, wanted)
        if self.crash_after is not None and (script is None or script.applied or script.late):
            self.crash_after -= 1
            if self.crash_after <= 0:
                self.crash_after = None
                raise Crash
        return script.failure if script else None

    def _written(self, call: str, group: str, wanted: Appended) -> Script | None:
        """Carry a write out as the next script says; return that script."""
        script = self._script(call, group)
        if script is None or script.applied:
            self._put(group, wanted)
            self.overtake(group, wanted.keys())
            if call == "delete":
                self.offsets.pop(group, None)
                self.states.pop(group, None)
        elif script.late:
            self.unseen.setdefault(group, []).append(wanted)
        return script

    def _put(self, group: str, wanted: Appended) -> None:
        for partition, commit in wanted.items():
            if commit is None:
                self.offsets.get(group, {}).pop(partition, None)
            else:
                self.offsets.setdefault(group, {})[partition] = commit
                self.states.setdefault(group, EMPTY)

    def _called(self, call: str) -> None:
        self.on_call(call)
        self.calls[call] += 1
        if self.down:
            raise ClusterError(f"{self.side} {self.alias} cannot be reached.", "Start it.")

    def _script(self, call: str, group: str) -> Script | None:
        queue = self.scripts.get((call, group))
        return queue.pop(0) if queue else None

    def _scripted(self, call: str, group: str) -> Failure | None:
        script = self._script(call, group)
        return script.failure if script else None


class NamedCluster:
    """A fake cluster that is asked and told by the source's names of groups, as `migrate.kafka.cluster` is."""

    def __init__(self, cluster: Any, names: TargetNames) -> None:
        self._cluster = cluster
        self._names = names

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._cluster, name)
        if name in ("renewed", "holding"):
            return lambda *lock: NamedCluster(call(*lock), self._names)
        if name == "groups":
            return lambda: frozenset(self._told(dict.fromkeys(call())))
        if name == "group_kinds":
            return lambda: self._told(call())
        if name in ("alter", "delete_offsets"):
            return lambda wanted: self._told(call(self._names.to_target(wanted)))
        if name in ("group_states", "commits", "delete_groups", "group_records"):
            return lambda groups, *more, **options: self._told(call(self._names.asked(groups), *more, **options))
        return call

    def _told(self, answer: Any) -> Any:
        return answer if isinstance(answer, Failure) else self._names.to_source(answer)


class FakeApplyEdges:
    """What `apply` and its like go through: both clusters.

    Without `source`, `target` answers for both.
    """

    def __init__(self, target: Any, source: Any = None) -> None:
        self._target_admin, self._source_admin = target, source or target
        self.source, self.target = Side.SOURCE, Side.TARGET

    def exact_admin(self, of: Any, groups_with_metadata: Any, names: TargetNames = SAME_NAMES) -> Any:
        return (self._target_admin if of is self.target else self._source_admin).named(names)


@dataclass
class FakeGroupFacts:
    """What a cluster tells of its groups; `asked` keeps of which groups records were wanted."""

    kinds: Mapping[str, str] | Failure = field(default_factory=dict)
    brokers: BrokerSettings | Failure = BrokerSettings(7 * 24 * 3_600_000, True)
    records: Mapping[str, GroupRecord] | Failure = field(default_factory=dict)
    newest_ms: int | None | Failure = None
    compacted: frozenset[str] = frozenset()
    timestamp_type: str | Failure = "CreateTime"
    asked: list[str] = field(default_factory=list)
    commits: Mapping[str, GroupRecord] | Failure = field(default_factory=dict)

    def group_kinds(self) -> Mapping[str, str] | Failure:
        return self.kinds

    def broker_settings(self) -> BrokerSettings | Failure:
        return self.brokers

    def group_records(self, groups: Collection[str], most: int | None = None) -> Mapping[str, GroupRecord] | Failure:
        if most is not None:
            return self.commits
        self.asked += sorted(groups)
        return self.records

    def topic_settings(self, topics: Collection[str], setting: str) -> Mapping[str, str | Failure] | Failure:
        if setting == CLEANUP_POLICY:
            return {topic: "compact" if topic in self.compacted else "delete" for topic in topics}
        if isinstance(self.timestamp_type, Failure):
            return self.timestamp_type
        return dict.fromkeys(topics, self.timestamp_type)

    def newest_record_ms(self, topic: str) -> int | None | Failure:
        return self.newest_ms


@dataclass
class FakeComparer:
    """Places commits as `places` says, by (topic, partition, committed offset); others where their offset is.

    `tails` are by (topic, partition), drained by default. `equality` is every topic's. `asked` keeps what was asked.
    """

    places: dict[tuple[str, int, int], Matched | Unmatched] = field(default_factory=dict)
    tails: dict[tuple[str, int], Tail] = field(default_factory=dict)
    equality: Equality | None = Equality.ALL
    asked: list[Work] = field(default_factory=list)
    limits: list[Limits] = field(default_factory=list)
    failure: ClusterError | None = None

    def __call__(self, works: Collection[Work], limits: Limits, listener: Listener) -> Comparison:
        self.asked += works
        self.limits.append(limits)
        estimate = FetchEstimate(len(works), 100, 90, 1_200_000_000, 1_300_000, 0)
        listener.expects(estimate)
        if self.failure:
            raise self.failure
        answers = {work.source: self._answer(work) for work in works}
        topics = {work.source.topic for work in works}
        return Comparison(answers, dict.fromkeys(topics, self.equality), estimate, 1_100_000_000, 1_250_000)

    def _answer(self, work: Work) -> PartitionAnswer:
        place = (work.source.topic, work.source.partition)
        places = {g: self.places.get((*place, g), Matched(g, Why.PROVEN, 0)) for g in work.source_committed}
        return PartitionAnswer(places, self.tails.get(place, Tail(0)), 50, 45)


class FakeClock:
    """Time passes only by waiting."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self.waited = 0.0

    def now_ms(self) -> int:
        return self._now_ms + int(self.waited * 1000)

    def monotonic(self) -> float:
        return self.waited

    def wait(self, seconds: float) -> None:
        assert seconds > 0, "a wait of no length is a busy loop"
        self.waited += seconds


class NoProgress:
    """Says nothing."""

    def step(self, text: str) -> None: ...

    def advance(self, done: int, total: int) -> None: ...
