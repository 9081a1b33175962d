"""The records of groups in an offsets topic that is too long for one consumer, through Spark.

Spark finds the few records that say something, by keys and positions alone: values are not sorted. These are read in a
second pass, and `migrate.survey.offsets_topic.GroupLog` takes them as it takes the whole of a shorter topic, so that
the answer is the same.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from migrate.extras.inventory.group_records import ReadPinned
from migrate.model import LogRange
from migrate.session.clusters import Endpoint, starting_spark
from migrate.session.options import SparkOptions
from migrate.spark.columns import uint16
from migrate.spark.consumer_offsets import Read, offsets_session, topic_reader
from migrate.spark.dataframes import into_spark, out_of_spark, reading_topic
from migrate.survey.offsets_pin import CompactedMeanwhileError, OffsetsPin
from migrate.survey.offsets_topic import (
    OFFSETS_TOPIC,
    PACE_COMMITS,
    PACE_PARTITIONS,
    GroupRecord,
    key_part,
    logs_of,
    partition_of,
    records_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_IN_ORDER = "over (partition by log_partition, key order by log_offset)"
_OF_KEY = "over (partition by log_partition, key)"
# With its length, as in a key.
_NAMED = f"substring(key, 3, 2 + coalesce({uint16('key', 3)}, 0))"
# From one commit to the next, with no deletion in between.
_IS_STEP = "substring(key, 1, 2) = X'0001' and not is_gone and not coalesce(gone_before, true)"


@contextmanager
def spark_records(of: Endpoint, options: SparkOptions) -> Iterator[ReadPinned]:
    """Yield what reads groups' records in an offsets topic of any length, read_committed; Spark starts for it."""
    with starting_spark(options, of.cluster, small=False) as spark:

        def read(pin: OffsetsPin, groups: Collection[str]) -> Mapping[str, GroupRecord]:
            session = offsets_session(spark)
            with reading_topic(of.java, OFFSETS_TOPIC):
                return records_in(topic_reader(session, of.java), pin.logs, groups, pin.partitions)

        yield read


def records_in(
    read: Read, logs: Mapping[int, LogRange], groups: Collection[str], partitions: int
) -> Mapping[str, GroupRecord]:
    """Return what these ranges hold of groups, from wherever `read` reads; the topic has so many `partitions`.

    Raises `CompactedMeanwhileError` if the topic was compacted between the passes.
    """
    from pyspark.sql.functions import expr

    places = _places(read(logs), groups, partitions).persist()
    try:
        of_each = places.groupBy("log_partition").agg(
            expr("min(log_offset)"), expr("max(log_offset)"), expr("count(1)")
        )
        ends = of_each.collect()
        part = {partition: LogRange(first, last + 1) for partition, first, last, _ in ends}
        named = read(part).selectExpr("partition as log_partition", "offset as log_offset", "key", "value")
        kept = named.join(places, ["log_partition", "log_offset"], "left_semi")
        # Arrays leave NULLs out.
        said = kept.selectExpr(
            "log_partition", "log_offset", "key", "coalesce(value, X'') as value", "value is null as gone"
        )
        found = sorted(out_of_spark(said, "log_offset"), key=lambda row: row[:2])
    finally:
        places.unpersist()
    if len(found) != sum(count for *_, count in ends):
        raise CompactedMeanwhileError(OFFSETS_TOPIC)
    kept_of = logs_of(groups, partitions)
    for partition, rows in groupby(found, key=itemgetter(0)):
        of_one = list(rows)
        kept_of[partition].take(
            (bytes(row[2]) for row in of_one), (None if row[4] else bytes(row[3]) for row in of_one)
        )
    return records_of(kept_of.values())


def _places(records: "DataFrame", groups: Collection[str], partitions: int) -> "DataFrame":
    """The places (`log_partition`, `log_offset`) of what a `GroupLog` keeps in the end, each in its group's partition.

    Of every key the last record. Of the first keys of a group that were committed twice in a row also the newest
    commits, as far as no deletion follows them.
    """
    from pyspark.sql.functions import broadcast

    keys = records.where("key is not null").selectExpr(
        f"{_NAMED} as named", "key", "value is null as is_gone", "partition as log_partition", "offset as log_offset"
    )
    own = [(key_part(group).hex(), partition_of(group, partitions)) for group in groups]
    names = into_spark(keys.sparkSession, own, "hex string, log_partition int")
    names = broadcast(names.selectExpr("unhex(hex) as named", "log_partition"))
    keys = keys.join(names, ["named", "log_partition"], "left_semi")
    seen = keys.selectExpr(
        "*",
        f"lag(is_gone) {_IN_ORDER} as gone_before",
        f"lead(log_offset, {PACE_COMMITS}) {_IN_ORDER} as beyond",
        f"max(if(is_gone, log_offset, null)) {_OF_KEY} as last_gone",
        f"max(log_offset) {_OF_KEY} as last",
    )
    begun = seen.selectExpr("*", f"min(if({_IS_STEP}, log_offset, null)) {_OF_KEY} as began")
    is_pace = "began is not null and beyond is null and log_offset > coalesce(last_gone, -1)"
    few = begun.selectExpr("*", f"{is_pace} as is_pace").where("is_pace or log_offset = last")
    turn = "dense_rank() over (partition by named order by began nulls last, log_partition) as turn"
    wanted = few.selectExpr("*", turn).where(f"log_offset = last or (is_pace and turn <= {PACE_PARTITIONS})")
    return wanted.select("log_partition", "log_offset")
