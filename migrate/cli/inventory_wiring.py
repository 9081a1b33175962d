"""What the `groups` commands look through that ask one cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from migrate.clock import SystemClock
from migrate.inventory.group_records import RecordsOfAnyLength
from migrate.inventory.read import ReadRecords
from migrate.mm2.flow import Flow
from migrate.ports import Progress
from migrate.session.clusters import endpoint_of, parse_spark_conf
from migrate.session.options import SessionOptions
from migrate.session.plan import group_records_by_spark
from migrate.survey.cluster import ClusterAdmin


@dataclass(frozen=True)
class InventorySession:
    """One cluster, and what reads groups' own records there, from one look to the next; `in_use` is locked during a
    look."""

    admin: ClusterAdmin
    records: ReadRecords
    in_use: Lock = field(default_factory=Lock)


@contextmanager
def inventory_session(flow: Flow, progress: Progress, options: SessionOptions) -> Iterator[InventorySession]:
    """Yield what one cluster is asked through.

    With `long_records` of `options` Spark starts if there are too many of groups' records for a consumer.
    """
    of = endpoint_of(flow, options)
    admin = of.admin()
    records: ReadRecords = partial(admin.group_records, with_gaps=True)
    if options.long_records:
        conf, limit = parse_spark_conf(options.spark.spark_conf), options.max_fetch
        long = partial(group_records_by_spark, of, options.spark.master, conf)
        records = RecordsOfAnyLength(admin, long, progress, SystemClock(), limit)
    edges = InventorySession(admin, records)
    try:
        yield edges
    finally:
        # As in `status_session`: a client that is closed under a question can take the process with it.
        if not edges.in_use.locked():
            admin.close()
