"""What `groups list --records` tells of groups is the same by Spark and by a plain consumer, on a real broker."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial

import pytest

from migrate.clock import SystemClock
from migrate.extras.inventory.group_records import RecordsOfAnyLength
from migrate.extras.inventory.spark_records import spark_records
from migrate.mm2.flow import Cluster as FlowCluster
from migrate.model import Failure, Side
from migrate.session.clusters import Endpoint
from migrate.session.options import SparkOptions
from migrate.survey.offsets_topic import PACE_COMMITS
from tests.fakes import NoProgress
from tests.integration.clusters import commit, create_topic, delete_topic
from tests.integration.members import member_of_kip_848, stay_and_leave
from tests.integration.offsetsrecords import in_transaction, partition_of, taken_away
from tests.integration.rawmember import commit_for
from tests.lab.cluster import OFFSETS_PARTITIONS, Cluster
from tests.lab.waiting import wait_until

GROUPS = {
    "classic": "classic", "steady": "simple", "other": "simple", "with-retention": "simple", "kip-848": "consumer",
    "transaction-open": "simple",
}  # fmt: skip


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """Groups of all kinds, commits in steps, set back, deleted and behind an open transaction."""
    folder = tmp_path_factory.mktemp("long-records")
    cluster = Cluster("long", folder / "kafka")
    with ExitStack() as stack:
        stack.callback(cluster.kill)
        cluster.start()
        bootstrap = cluster.bootstrap
        for topic in ("t", "u"):
            create_topic(bootstrap, topic, 6)
        stay_and_leave(bootstrap, "classic", "t")
        for offset in (*range(12), 3, 20):
            commit(bootstrap, {"steady": {("t", p): offset + p for p in range(6)}, "other": {("t", 0): offset}})
        commit(bootstrap, {"steady": {("u", 0): 1}})
        delete_topic(bootstrap, "u")
        wait_until(lambda: ("steady", "u", 0) in taken_away(bootstrap), 60, "the tombstone")
        commit_for(bootstrap, "with-retention", "t", 11, 3_600_000)
        with member_of_kip_848(bootstrap, "kip-848", "t"):
            pass
        commit(bootstrap, {"kip-848": {("t", 0): 1}})
        in_transaction(bootstrap, "open", stack)
        yield Endpoint(FlowCluster(Side.SOURCE, "A", {"bootstrap.servers": bootstrap}), 60.0)


@pytest.mark.long
def test_spark_tells_of_every_group_what_a_plain_consumer_tells(crowded: Endpoint) -> None:
    groups = [*GROUPS, "absent"]
    long = partial(spark_records, crowded, SparkOptions(master="local[2]"))
    with closing(crowded.admin()) as admin:
        by_length = RecordsOfAnyLength(admin, long, NoProgress(), SystemClock())
        plain = admin.group_records(groups)
        assert not isinstance(plain, Failure)
        assert replace(by_length, most=0)(groups) == plain
        assert by_length(groups) == plain
    # It is no comparison of nothing with nothing.
    hidden = partition_of("transaction-open", OFFSETS_PARTITIONS)
    assert plain.keys() == {group for group in GROUPS if partition_of(group, OFFSETS_PARTITIONS) != hidden}
    kinds = {group: str(record.kind) for group, record in plain.items()}
    assert kinds == {group: kind for group, kind in GROUPS.items() if group in plain} and len(kinds) >= 3
    assert max(len(made) for record in plain.values() for made in record.newest.values()) == PACE_COMMITS
