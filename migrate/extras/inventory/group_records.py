"""How groups' own records are read, whatever the length of the offsets topic: by a plain consumer, or by Spark."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from migrate.clock import Clock
from migrate.errors import ClusterError, EnvironmentLacks
from migrate.model import Failure
from migrate.ports import Progress
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.offsets_pin import (
    OffsetsPin,
    past_open_transactions,
    persistently,
    pin_offsets_topic,
    refuse_beyond,
)
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupRecord, partition_of
from migrate.text import bytes_text, many

# Some seconds of a plain consumer, which is when Spark has started.
MOST_CONSUMED = 2_000_000
FEWER = "Or name groups (--group, --groups-file), whose partitions alone are read, or omit --records and --idle."


ReadPinned = Callable[[OffsetsPin, Collection[str]], Mapping[str, GroupRecord]]
"""Returns what the pinned ranges, of any length, hold of these groups; a group without any is left out.

Raises `EnvironmentLacks` where it cannot run on this machine, `ClusterError` if the topic cannot be read to its pinned
end, `CompactedMeanwhileError` among them.
"""


@dataclass(frozen=True)
class RecordsOfAnyLength:
    """What reads them depends on how much there is, and the answer does not.

    Up to `most` offsets are left to `admin`. What is longer is read by what `long` yields, which is made then.
    `max_fetch` bounds the bytes that are fetched, None is no bound.
    """

    admin: ClusterAdmin
    long: Callable[[], AbstractContextManager[ReadPinned]]
    progress: Progress
    clock: Clock
    max_fetch: int | None = None
    most: int = MOST_CONSUMED

    def __call__(self, groups: Collection[str]) -> Mapping[str, GroupRecord] | Failure:
        """Return the records of these groups; one in a partition with an open transaction is left out.

        Raises `Refused` where more would be fetched than is allowed.
        """
        try:
            pin = pin_offsets_topic(self.admin, groups)
        except ClusterError:
            return self.admin.group_records(groups)  # it says why
        if pin.offsets <= self.most:
            refuse_beyond(self.max_fetch, pin.offsets_bytes, pin.alias)
            return self.admin.group_records(groups)
        try:
            with self.long() as read:
                return persistently(lambda: self._read(read, groups))
        except EnvironmentLacks as error:
            problem = f"{many(pin.offsets, 'record')} are more than a plain consumer reads, and Spark does not start"
            return Failure("NO_SPARK", f"{problem}: {error.problem} {error.todo} {FEWER}")
        except ClusterError as error:
            return Failure("_FAIL", error.problem)

    def _read(self, read: ReadPinned, groups: Collection[str]) -> Mapping[str, GroupRecord]:
        pin = pin_offsets_topic(self.admin, groups)
        refuse_beyond(self.max_fetch, pin.fetched_bytes, pin.alias)
        size = f"{many(pin.offsets, 'offset')}, about {bytes_text(pin.fetched_bytes)} in two passes"
        partitions = f"{len(pin.logs)} of {many(pin.partitions, 'partition')}"
        self.progress.step(f"reading {OFFSETS_TOPIC} of {pin.alias} with Spark: {partitions}, {size}")
        pin = past_open_transactions(self.admin, pin, self.clock)
        # Behind a transaction that hangs, what is seen last may be weeks old.
        seen = replace(pin, logs={number: log for number, log in pin.logs.items() if number not in pin.open_ends})
        return read(seen, [group for group in groups if partition_of(group, pin.partitions) in seen.logs])
