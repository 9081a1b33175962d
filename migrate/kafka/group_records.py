"""Reads what the offsets topic says of groups, through librdkafka.

What is forbidden, missing, slow or too much comes back as a `Failure`: nothing here may end a command.
"""

from collections.abc import Collection, Mapping
from threading import Lock

from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from migrate.clock import Backoff, SystemClock
from migrate.errors import ClusterError
from migrate.kafka.cluster_reader import told_offset
from migrate.kafka.connection import LONGEST, Connection
from migrate.kafka.errors import failure_of
from migrate.kafka.offsets_topic import read_offsets_topic
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure
from migrate.survey.group_facts import TOO_MANY_RECORDS
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupRecord, logs_of, partition_of, records_of

# The offsets topic of a busy cluster may be large, and nothing rests on it alone.
READ_SECONDS = 60.0
RANGE = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
# How long a transaction in the offsets topic is waited for, and how often its partition is asked.
OPEN_SECONDS, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 3.0, 0.05, 0.5
UNTOLD = Failure("NO_ANSWER", f"the end of {OFFSETS_TOPIC} was not told")


class GroupRecords:
    """Reads through one connection what the offsets topic holds of groups; one thread at a time may read."""

    def __init__(self, settings: ClientSettings, connection: Connection) -> None:
        self._config = settings.config
        self._connection = connection
        self._turn = Lock()

    def read(
        self, groups: Collection[str], with_gaps: bool, any_will_do: bool, most: int | None = None
    ) -> Mapping[str, GroupRecord] | Failure:
        """Read the groups' records; `any_will_do` where older ones say the same: a group's kind never changes.

        `most` refuses, before anything is read, to read more offsets than that.
        """
        with self._turn:
            try:
                return self._read(groups, with_gaps, any_will_do, most)
            except ClusterError as error:
                return Failure("_FAIL", error.problem)
            except KafkaException as error:
                return failure_of(error)

    def _read(
        self, groups: Collection[str], with_gaps: bool, any_will_do: bool, most: int | None
    ) -> Mapping[str, GroupRecord] | Failure:
        topic = self._connection.metadata().topics.get(OFFSETS_TOPIC)
        if topic is None:
            # Not shown without DESCRIBE, and not there before the first group.
            return Failure("UNKNOWN_TOPIC_OR_PARTITION", f"{OFFSETS_TOPIC} is not shown")
        if topic.error is not None and not topic.partitions:
            return failure_of(topic.error)
        partition = {group: partition_of(group, len(topic.partitions)) for group in groups}
        hidden = frozenset[int]() if any_will_do else self._hidden(set(partition.values()))
        if isinstance(hidden, Failure):
            return hidden
        refusal = None if most is None else self._too_many({*partition.values()} - hidden, most)
        if refusal is not None:
            return refusal
        logs = logs_of((group for group in groups if partition[group] not in hidden), len(topic.partitions), with_gaps)
        return read_offsets_topic(self._config, logs, READ_SECONDS) or records_of(logs.values())

    def _hidden(self, partitions: Collection[int]) -> frozenset[int] | Failure:
        """Return the partitions of the offsets topic in which an open transaction hides newer records from us.

        Commits in transactions are open for moments: these are waited for. Behind one that hangs, what a reader of
        committed records sees last may be weeks old, and groups that commit every second look idle.
        """
        places = [KafkaPartition(OFFSETS_TOPIC, partition) for partition in sorted(partitions)]
        if not places:
            return frozenset()
        backoff = Backoff(SystemClock(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, OPEN_SECONDS)
        written = self._ends(places, IsolationLevel.READ_UNCOMMITTED)
        hidden = open_partitions(written, self._ends(places, IsolationLevel.READ_COMMITTED))
        while hidden and not isinstance(hidden, Failure) and not backoff.is_over:
            backoff.pause()
            hidden = open_partitions(written, self._ends(places, IsolationLevel.READ_COMMITTED))
        return hidden

    def _too_many(self, partitions: Collection[int], most: int) -> Failure | None:
        """Return why these partitions of the offsets topic are not to be read; None where they may be."""
        places = [KafkaPartition(OFFSETS_TOPIC, partition) for partition in sorted(partitions)]
        if not places:
            return None
        starts, ends = (self._ends(places, IsolationLevel.READ_COMMITTED, spec) for spec in RANGE)
        return too_many(starts, ends, most)

    def _ends(
        self, places: Collection[KafkaPartition], level: IsolationLevel, spec: OffsetSpec | None = None
    ) -> dict[int, int | Failure]:
        specs = {place: spec or OffsetSpec.latest() for place in places}  # type: ignore[no-untyped-call]
        found = self._connection.collect(lambda client: client.list_offsets(specs, isolation_level=level, **LONGEST))
        return {place.partition: told_offset(end) for place, end in found.items()}


def open_partitions(
    written: Mapping[int, int | Failure], stable: Mapping[int, int | Failure]
) -> frozenset[int] | Failure:
    """Return the partitions whose stable end is below the end written before; a `Failure` if either is not told."""
    behind = set()
    for partition, end in written.items():
        reached = stable.get(partition, UNTOLD)
        if isinstance(end, Failure):
            return end
        if isinstance(reached, Failure):
            return reached
        if reached < end:
            behind.add(partition)
    return frozenset(behind)


def too_many(starts: Mapping[int, int | Failure], ends: Mapping[int, int | Failure], most: int) -> Failure | None:
    """Return why partitions of the offsets topic are not to be read: more records than `most`, or nobody told."""
    held = 0
    for partition, start in starts.items():
        end = ends.get(partition, UNTOLD)
        if isinstance(start, Failure):
            return start
        if isinstance(end, Failure):
            return end
        held += end - start
    if held <= most:
        return None
    return Failure(TOO_MANY_RECORDS, f"up to {held:,} records to read: groups list --records reads them all")
