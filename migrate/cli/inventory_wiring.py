"""What the `groups` commands look through that ask one cluster."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

from migrate.cli.wiring import DAEMON, Endpoint, endpoint_of, parse_spark_conf
from migrate.clock import SystemClock
from migrate.inventory.group_records import LongTopicReader, RecordsOfAnyLength
from migrate.inventory.read import ReadRecords
from migrate.mm2.flow import Flow
from migrate.ports import Progress
from migrate.spark.background import SparkPurpose, Wishes, background_spark
from migrate.survey.cluster import ClusterAdmin


@dataclass(frozen=True)
class InventoryEdges:
    """One cluster, and what reads groups' own records there, from one look to the next; `in_use` is locked during a
    look."""

    admin: ClusterAdmin
    records: ReadRecords
    in_use: Lock = field(default_factory=Lock)


@contextmanager
def inventory_edges(flow: Flow, progress: Progress, options: Mapping[str, Any]) -> Iterator[InventoryEdges]:
    """Yield what one cluster is asked through.

    `options` are `side`, `request_timeout` and, where groups' records may be read, `master`, `spark_conf` and
    `max_fetch`: Spark starts if there are too many for a consumer.
    """
    of = endpoint_of(flow, options)
    admin = of.admin()
    records: ReadRecords = partial(admin.group_records, with_gaps=True)
    if "spark_conf" in options:
        conf, limit = parse_spark_conf(options["spark_conf"]), options["max_fetch"]
        long = partial(_long_topic_reader, of, options["master"], conf)
        records = RecordsOfAnyLength(admin, long, progress, SystemClock(), limit)
    edges = InventoryEdges(admin, records)
    try:
        yield edges
    finally:
        # As in `status_edges`: a client that is closed under a question can take the process with it.
        if not edges.in_use.locked():
            admin.close()


@contextmanager
def _long_topic_reader(of: Endpoint, master: str | None, conf: Mapping[str, str]) -> Iterator[LongTopicReader]:
    from migrate.spark.group_records import SparkGroupRecords

    wishes = Wishes(DAEMON, lambda: None, of.java.secrets, lambda: None)
    wishes.settle(SparkPurpose(is_small=False))
    with background_spark(master, conf, wishes) as spark:
        yield SparkGroupRecords(spark, of.java)
