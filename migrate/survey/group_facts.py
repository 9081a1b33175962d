"""What a cluster tells of its groups beyond states and commits, and the port that it is asked through. Pure.

Nothing rests on these facts alone, so whatever is forbidden or slow is a `Failure`, never an error of the command.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

from migrate.clock import Clock
from migrate.model import Failure
from migrate.survey.offsets_topic import GroupRecord
from migrate.text import duration_text, many

T = TypeVar("T")
# A watch that shows what was true longer ago keeps a block that a consumer has long ended.
REMEMBERED_SECONDS = 60.0
_RECORDS, _COMMIT_RECORDS = "records", "commit-records"
NOT_ASKED = Failure("NOT_ASKED", "nobody asked")
TOO_MANY_RECORDS = "TOO_MANY_RECORDS"
NOT_TOLD = Failure("NOT_TOLD", "its records were not to be seen")


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """What the brokers of a cluster are set to.

    `retention_ms` is the shortest `offsets.retention.minutes` of any, `takes_kip848` False where one of them does
    not serve `group.protocol=consumer` (`group.coordinator.rebalance.protocols`, Kafka 3.7 and later).
    """

    retention_ms: int
    takes_kip848: bool


class GroupFactsReader(Protocol):
    """Asks one cluster. Reads only; a consumer behind it joins no group and commits nothing."""

    def group_kinds(self) -> Mapping[str, str] | Failure:
        """Return the kind of each group that is there, of any kind: "consumer" (all that is planned), "share",
        "streams", "other", "unknown" where neither a listing nor its records say; a `Failure` where no client at hand
        can see the others."""

    def settings(self) -> BrokerSettings | Failure:
        """Return what the brokers are set to; needs DESCRIBE_CONFIGS on the cluster."""

    def group_records(self, groups: Collection[str]) -> Mapping[str, GroupRecord] | Failure:
        """Return what the offsets topic holds of these groups; needs READ on it. A group without records is left
        out."""

    def commit_records(self, groups: Collection[str]) -> Mapping[str, GroupRecord] | Failure:
        """Return the same with `gaps`; a `Failure` too where that is more to read than a plan should wait for."""

    def compacted_topics(self, topics: Collection[str]) -> frozenset[str] | Failure:
        """Return those of these topics whose `cleanup.policy` names compact; needs DESCRIBE_CONFIGS on them."""

    def cleanup_policies(self, topics: Collection[str]) -> Mapping[str, str | Failure] | Failure:
        """Return the `cleanup.policy` of each topic, as it is set; needs DESCRIBE_CONFIGS on them."""

    def timestamp_types(self, topics: Collection[str]) -> Mapping[str, str | Failure] | Failure:
        """Return the `message.timestamp.type` of each topic; needs DESCRIBE_CONFIGS on them."""

    def newest_record_ms(self, topic: str) -> int | None | Failure:
        """Return the newest timestamp in a topic of one partition; None where it is empty."""


@dataclass(frozen=True)
class GroupFacts:
    """What was asked of both clusters.

    `source_kinds` are the kinds of all groups on the source. `target_records` are those of the plan's groups that
    are on the target. `newest_sync_ms` is the time of MM2's newest offset sync, None where there is none.
    `moving` names, by group, the commits that changed between two readings while the group had no member: on the
    source, on the target. `unread` says of such groups, by side, why their commits were not read a second time.
    `source_records` are those of the plan's groups on the source: when they committed last, and how often.
    """

    source_kinds: Mapping[str, str] | Failure = NOT_ASKED
    target_settings: BrokerSettings | Failure = NOT_ASKED
    target_records: Mapping[str, GroupRecord] | Failure = NOT_ASKED
    newest_sync_ms: int | None | Failure = NOT_ASKED
    moving_on_source: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    moving_on_target: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unread_on_source: Mapping[str, str] = field(default_factory=dict)
    unread_on_target: Mapping[str, str] = field(default_factory=dict)
    source_records: Mapping[str, GroupRecord] | Failure = NOT_ASKED

    def source_record(self, group: str) -> GroupRecord | Failure:
        """Return what the records tell of one group on the source, or why they do not."""
        if isinstance(self.source_records, Failure):
            return self.source_records
        return self.source_records.get(group, NOT_TOLD)


def cadence_text(record: GroupRecord | Failure) -> str:
    """Return how often a group commits, which is what it reads twice after a hard stop; "" where nobody can tell.

    Its last commit before such a stop is up to one such step behind what it has processed.
    """
    if isinstance(record, Failure):
        return ""
    return pace_text(record.seconds_between_commits, record.records_between_commits)


def pace_text(seconds: float | None, records: int | None) -> str:
    """Return `cadence_text` of a group that commits every so many seconds; "" where that is not known."""
    if seconds is None:
        return ""
    step = many(records or 0, "record")
    often = f"about every {duration_text(seconds)}" if seconds >= 1 else "more than once a second"
    return f"commits {often}, each time {step} of a partition: a hard stop reads them twice"


class RememberedGroupFacts:
    """What a cluster answered about its groups a short while ago: for a watch, which looks every other second.

    A `Failure` is never kept: one slow answer would hide a block from every later look. Nothing is kept for longer
    than `REMEMBERED_SECONDS`.
    """

    def __init__(self, asked: GroupFactsReader, clock: Clock) -> None:
        self.newest_record_ms = asked.newest_record_ms
        self._asked = asked
        self._clock = clock
        self._kept: dict[tuple[str, tuple[str, ...]], _Answer] = {}
        self._look = 0
        self._noted: object = None

    def forget(self) -> None:
        """Ask everything afresh from now on; an answer to what was asked before is not kept any more."""
        self._kept = {}

    def note(self, premises: object) -> None:
        """End a look at `premises`, all that group records depend on; drop those read when these were different."""
        if premises != self._noted:
            for question, answer in list(self._kept.items()):
                if question[0] == _RECORDS and answer.look != self._look:
                    self._kept.pop(question, None)
        self._noted = premises
        self._look += 1

    def group_kinds(self) -> Mapping[str, str] | Failure:
        """Return the kind of each group."""
        return self._remembered("kinds", (), self._asked.group_kinds)

    def settings(self) -> BrokerSettings | Failure:
        """Return what the brokers are set to."""
        return self._remembered("settings", (), self._asked.settings)

    def group_records(self, groups: Collection[str]) -> Mapping[str, GroupRecord] | Failure:
        """Return what the offsets topic holds of these groups."""
        return self._remembered(_RECORDS, groups, lambda: self._asked.group_records(groups))

    def commit_records(self, groups: Collection[str]) -> Mapping[str, GroupRecord] | Failure:
        """Return what the offsets topic holds of these groups' commits, a few earlier ones included."""
        return self._remembered(_COMMIT_RECORDS, groups, lambda: self._asked.commit_records(groups))

    def compacted_topics(self, topics: Collection[str]) -> frozenset[str] | Failure:
        """Return those of these topics that are compacted."""
        return self._remembered("compacted", topics, lambda: self._asked.compacted_topics(topics))

    def cleanup_policies(self, topics: Collection[str]) -> Mapping[str, str | Failure] | Failure:
        """Return what these topics' `cleanup.policy` is."""
        return self._remembered("policies", topics, lambda: self._asked.cleanup_policies(topics))

    def timestamp_types(self, topics: Collection[str]) -> Mapping[str, str | Failure] | Failure:
        """Return what these topics' `message.timestamp.type` is."""
        return self._remembered("timestamp types", topics, lambda: self._asked.timestamp_types(topics))

    def _remembered(self, what: str, about: Collection[str], ask: Callable[[], T]) -> T:
        question, memory, look, asked_at = (what, tuple(sorted(about))), self._kept, self._look, self._clock.monotonic()
        kept = memory.get(question)
        if kept is not None and asked_at - kept.at < REMEMBERED_SECONDS:
            return cast(T, kept.value)
        value = ask()
        # A look that failed may have left this question behind, and a later one have asked it again, and been answered.
        newer = memory.get(question)
        if newer is None or newer.at <= asked_at:
            memory.pop(question, None)
            if _is_whole(value):
                memory[question] = _Answer(value, asked_at, look)
        return value


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer, when it was asked for (seconds of a clock that never goes back), and in which look."""

    value: object
    at: float
    look: int


def _is_whole(answer: object) -> bool:
    """Return whether nothing in an answer is a `Failure`."""
    parts = [answer, *(answer.values() if isinstance(answer, Mapping) else ())]
    return not any(isinstance(part, Failure) for part in parts)
