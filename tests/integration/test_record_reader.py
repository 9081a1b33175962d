"""The reader of records against a real broker: every range whole, and every gap, error and silence told."""

import random
from collections.abc import Iterator
from contextlib import closing
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType  # type: ignore[attr-defined]

from migrate.kafka.record_reader import SHORT_RUN, RecordReader
from migrate.kafka.settings import ClientSettings
from migrate.match.equality import Content, Equality
from migrate.match.log_reader import GAP, Wanted
from migrate.match.protocol import LogSlice, OffsetRange, Unreadable
from migrate.model import Side
from migrate.model import TopicPartition as Partition
from tests.integration.clusters import admin, create_topic, delete_before, denied
from tests.integration.repeated import breaking
from tests.lab.cluster import QUIET_CLIENT
from tests.lab.proxy import ProxiedCluster
from tests.lab.waiting import wait_until
from tests.prints import fingerprint

SECRET = "not-to-be-printed"
DEADLINE_SECONDS = 30.0
# Seldom enough for an answer to come through, and often enough to hit a question of every round.
BROKEN_EVERY_SECONDS, ROUNDS = 0.15, 12
TIME = 1_750_000_000_000
KEPT = {"retention.ms": "-1"}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.ms": "100",
    "segment.bytes": "1048576",
    "retention.ms": "-1",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedCluster]:
    """A broker that refuses where an ACL says so, and allows everything else."""
    acls = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    cluster = ProxiedCluster("records", tmp_path_factory.mktemp("records"), overrides=acls)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


@pytest.fixture(scope="module")
def bootstrap(cluster: ProxiedCluster) -> str:
    return cluster.bootstrap


def settings(name: str, config: dict[str, str]) -> ClientSettings:
    return ClientSettings(Side.SOURCE, "A", name, config, frozenset({SECRET}))


@pytest.fixture
def reader(bootstrap: str) -> Iterator[RecordReader]:
    made = RecordReader(settings(f"source A ({bootstrap})", {"bootstrap.servers": bootstrap}), DEADLINE_SECONDS)
    yield made
    made.close()


def topic(bootstrap: str, partitions: int = 1, **config: str) -> str:
    name = f"t-{uuid4().hex[:8]}"
    create_topic(bootstrap, name, partitions, KEPT | {key.replace("_", "."): value for key, value in config.items()})
    return name


def write(bootstrap: str, name: str, counts: dict[int, int], size: int = 20, **config: object) -> None:
    """Write so many records to each partition: record n has key n, timestamp TIME + 10 n and `size` bytes."""
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET_CLIENT, "enable.idempotence": True, **config})
    for partition, count in counts.items():
        for number in range(count):
            record = written(partition, number, size)
            producer.produce(name, record.value, record.key, partition, timestamp=record.timestamp)
        assert producer.flush(60) == 0


def written(partition: int, number: int, size: int = 20) -> Content:
    value = f"{partition}/{number}".ljust(size).encode()
    return Content(TIME + 10 * number, str(number).encode(), value, ())


def whole(reader: RecordReader, name: str, *ranges: tuple[int, int]) -> tuple[LogSlice, ...] | Unreadable:
    wanted = Wanted(tuple(OffsetRange(*each) for each in ranges), Equality.ALL)
    return reader.read({Partition(name, 0): wanted})[Partition(name, 0)]


def read(reader: RecordReader, name: str, *ranges: tuple[int, int]) -> tuple[LogSlice, ...]:
    found = whole(reader, name, *ranges)
    assert not isinstance(found, Unreadable), found
    return found


def offsets(stretch: LogSlice) -> list[int]:
    columns = (stretch.offsets, stretch.times, stretch.prints)
    assert len(set(map(len, columns))) == 1
    return list(stretch.offsets)


def test_records_come_with_offsets_timestamps_and_fingerprints_and_reading_leaves_no_group_behind(bootstrap, reader):
    name = topic(bootstrap)
    write(bootstrap, name, {0: 50})
    for equality in Equality:
        place = Partition(name, 0)
        stretches = reader.read({place: Wanted((OffsetRange(0, 3), OffsetRange(40, 50)), equality)})[place]
        for stretch, numbers in zip(stretches, (range(3), range(40, 50)), strict=True):
            contents = [written(0, number) for number in numbers]
            assert offsets(stretch) == list(numbers)
            assert list(stretch.times) == [content.timestamp for content in contents]
            assert list(stretch.prints) == [fingerprint(content, equality) for content in contents]
            assert stretch.readable_from == stretch.start
    assert reader.fetched_bytes > 0
    client = admin(bootstrap)
    assert not client.list_consumer_groups().result(30).valid, "reading has left a group behind"


def test_one_reader_reads_any_ranges_of_many_partitions_round_after_round(bootstrap, reader):
    partitions, length = 60, 3 * (GAP + SHORT_RUN)
    name, other = topic(bootstrap, partitions), topic(bootstrap, 3)
    write(bootstrap, name, dict.fromkeys(range(partitions), length))
    write(bootstrap, other, dict.fromkeys(range(3), length))
    rnd = random.Random(7)
    for _ in range(12):
        places = [Partition(name, p) for p in rnd.sample(range(partitions), rnd.choice([1, 10, 50]))]
        wanted = {}
        for place in [*places, Partition(other, rnd.randrange(3))]:
            cuts = sorted(rnd.sample(range(length + 1), 2 * rnd.randrange(1, 6)))
            wanted[place] = Wanted(tuple(map(OffsetRange, cuts[::2], cuts[1::2])), Equality.ALL)
        found = reader.read(wanted)
        for place, asked in wanted.items():
            for piece, stretch in zip(asked.ranges, found[place], strict=True):
                assert offsets(stretch) == list(range(piece.start, piece.end)), (place, asked)
                first = written(place.partition, piece.start)
                assert stretch.prints[0] == fingerprint(first, Equality.ALL)


def test_markers_and_aborted_records_leave_gaps_and_an_open_transaction_does_not_hold_up_what_lies_below_it(
    bootstrap, reader
):
    name = topic(bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET_CLIENT, "transactional.id": f"tx-{name}"})
    producer.init_transactions(30)
    committed, end = [], 0
    for number, keep in enumerate([True, False, True, False, False]):
        producer.begin_transaction()
        for _ in range(5):
            producer.produce(name, f"{number}")
        assert producer.flush(30) == 0
        (producer.commit_transaction if keep else producer.abort_transaction)(30)
        committed += range(end, end + 5) if keep else ()
        end += 6
    producer.begin_transaction()
    producer.produce(name, "open")
    assert producer.flush(30) == 0
    ranges = [(0, end), (0, 6), (5, 6), (6, 12), (7, 18), (18, end), (4, 4)]
    # The last marker may come a moment after the answer.
    wait_until(lambda: isinstance(whole(reader, name, (0, end)), tuple), 30, "the last marker")
    for start, stop in ranges:
        (stretch,) = read(reader, name, (start, stop))
        assert offsets(stretch) == [offset for offset in committed if start <= offset < stop]
    producer.abort_transaction(30)


def test_compaction_leaves_gaps_and_the_end_of_a_range_need_not_be_there(bootstrap, reader):
    name = topic(bootstrap, **{key.replace(".", "_"): value for key, value in COMPACTED.items()})
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET_CLIENT})
    # Compaction leaves the active segment alone: a new one begins with every flush after segment.ms.
    for number in range(300):
        producer.produce(name, f"{number}", "superseded" if 100 <= number < 300 else f"{number}")
    assert producer.flush(30) == 0
    count = 300

    def compacted() -> bool:
        nonlocal count
        producer.produce(name, "filler", "superseded")
        assert producer.flush(30) == 0
        count += 1
        (stretch,) = read(reader, name, (100, 300))
        return not len(stretch.offsets)

    wait_until(compacted, 60, "compaction", poll_seconds=0.5)
    ((first), (rest), (gone)) = read(reader, name, (90, 150), (150, 250), (299, 300))
    assert offsets(first) == list(range(90, 100))
    assert [offsets(stretch) for stretch in (rest, gone)] == [[], []]
    assert gone.readable_from == gone.start


def test_of_a_range_whose_beginning_or_all_was_deleted_it_says_from_where_it_could_be_read(bootstrap, reader):
    name, emptied = topic(bootstrap, 2), topic(bootstrap)
    write(bootstrap, name, {0: 1000, 1: 1000})
    write(bootstrap, emptied, {0: 20})
    delete_before(bootstrap, name, 0, 300)
    delete_before(bootstrap, emptied, 0, 20)
    left = {
        Partition(name, 0): {(100, 200): 200, (250, 400): 300, (900, 950): 900},
        Partition(name, 1): {(100, 200): 100},
        Partition(emptied, 0): {(5, 20): 20},
    }
    found = reader.read({at: Wanted(tuple(OffsetRange(*r) for r in of), Equality.ALL) for at, of in left.items()})
    for place, of in left.items():
        for stretch, ((_, end), readable_from) in zip(found[place], of.items(), strict=True):
            assert (stretch.readable_from, offsets(stretch)) == (readable_from, list(range(readable_from, end))), place


def test_a_range_beyond_the_log_is_no_shorter_stretch(bootstrap, reader):
    name = topic(bootstrap)
    write(bootstrap, name, {0: 20})
    for start in (10, 30):
        assert whole(reader, name, (start, 40)) == Unreadable("OFFSET_OUT_OF_RANGE")


def test_topics_and_partitions_that_are_not_there_are_told_and_not_made(bootstrap, reader):
    name = topic(bootstrap)
    write(bootstrap, name, {0: 5})
    there, missing, beyond = Partition(name, 0), Partition(f"{name}-missing", 0), Partition(name, 7)
    unknown = Unreadable("UNKNOWN_TOPIC_OR_PARTITION")
    wanted = Wanted((OffsetRange(0, 5),), Equality.ALL)
    found = reader.read({there: wanted, missing: wanted, beyond: wanted})
    assert (found[missing], found[beyond]) == (unknown, unknown)
    assert [offsets(stretch) for stretch in found[there]] == [list(range(5))]
    first = reader.first_offsets({there: [TIME], missing: [TIME]})
    assert first[there] == {TIME: 0}
    assert first[missing] == unknown
    assert missing.topic not in admin(bootstrap).list_topics(timeout=10).topics


@pytest.mark.parametrize("operation", [AclOperation.READ, AclOperation.DESCRIBE])
def test_a_topic_that_we_may_not_read_is_told_and_the_others_are_read(bootstrap, reader, operation):
    name, closed = topic(bootstrap), topic(bootstrap)
    write(bootstrap, name, {0: 5})
    write(bootstrap, closed, {0: 5})
    there, refused = Partition(name, 0), Partition(closed, 0)
    wanted, unreadable = Wanted((OffsetRange(0, 5),), Equality.ALL), Unreadable("TOPIC_AUTHORIZATION_FAILED")
    with denied(bootstrap, ResourceType.TOPIC, closed, operation):
        wait_until(lambda: reader.read({refused: wanted})[refused] == unreadable, 30, "the ACL")
        found = reader.read({there: wanted, refused: wanted})
        first = reader.first_offsets({there: [TIME], refused: [TIME]})
    assert found[refused] == unreadable
    assert first == {there: {TIME: 0}, refused: unreadable if operation is AclOperation.DESCRIBE else {TIME: 0}}
    assert [offsets(stretch) for stretch in found[there]] == [list(range(5))]


def test_first_offsets_are_found_for_many_timestamps_of_many_partitions(bootstrap, reader):
    name = topic(bootstrap, 20)
    write(bootstrap, name, dict.fromkeys(range(20), 30))
    asked = [TIME - 5, TIME, TIME + 1, TIME + 100, TIME + 290, TIME + 291, -1]
    found = reader.first_offsets({Partition(name, p): asked for p in range(20)})
    right = dict(zip(asked, [0, 0, 1, 10, 29, None, 0], strict=True))
    assert found == {Partition(name, p): right for p in range(20)}


def test_an_offset_that_a_broker_does_not_find_behind_a_deleted_late_record_is_taken_for_the_logs_start(
    bootstrap, reader
):
    name = topic(bootstrap, segment_bytes=str(1 << 20))
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "message.max.bytes": 1 << 20, **QUIET_CLIENT})
    for time_ms, size in ((TIME + 10_000, 1), (TIME, 600_000), (TIME + 1, 600_000), (TIME + 5_000, 1)):
        producer.produce(name, b"x" * size, partition=0, timestamp=time_ms)
        assert producer.flush(30) == 0
    delete_before(bootstrap, name, 0, 1)
    place, late = Partition(name, 0), TIME + 2_000
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "looks", **QUIET_CLIENT})) as consumer:
        (told,) = consumer.offsets_for_times([TopicPartition(name, 0, late)], timeout=30)
    assert told.offset < 0, "this broker finds it by itself"
    assert reader.first_offsets({place: [TIME, late, TIME + 20_000]})[place] == {TIME: 1, late: 1, TIME + 20_000: None}


def test_contents_are_whole_and_tell_null_from_empty(bootstrap, reader):
    name = topic(bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET_CLIENT})
    headers = [("a", b"1"), ("a", None), ("b", b"")]
    producer.produce(name, b"value", b"key", timestamp=TIME, headers=headers)
    producer.produce(name, None, None, timestamp=TIME + 1)
    producer.produce(name, b"", b"", timestamp=TIME + 2)
    assert producer.flush(30) == 0
    place = Partition(name, 0)
    found = reader.contents({place: [0, 1, 2]})[place]
    right = [
        Content(TIME, b"key", b"value", tuple(headers)),
        Content(TIME + 1, None, None, ()),
        Content(TIME + 2, b"", b"", ()),
    ]
    assert found == dict(enumerate(right))
    (stretch,) = read(reader, name, (0, 3))
    assert list(stretch.prints) == [fingerprint(content, Equality.ALL) for content in right]
    assert len(set(stretch.prints)) == 3


def test_batches_larger_than_a_small_fetch_are_read_in_short_runs_as_well(bootstrap, reader):
    name = topic(bootstrap, 12)
    write(bootstrap, name, dict.fromkeys(range(12), 300), size=2000, **{"linger.ms": 100, "batch.size": 900_000})
    places = [Partition(name, p) for p in range(12)]
    found = reader.read({place: Wanted((OffsetRange(120, 150),), Equality.ALL) for place in places})
    for place in places:
        (stretch,) = found[place]
        assert offsets(stretch) == list(range(120, 150))
        assert stretch.prints[0] == fingerprint(written(place.partition, 120, 2000), Equality.ALL)


@pytest.mark.long
def test_over_connections_that_break_again_and_again_all_that_is_there_is_read(cluster):
    """Else rows would stand at a sync that nobody has looked at: librdkafka forgets partitions with a connection."""
    name, asked = topic(cluster.bootstrap, 3), [TIME + 100, TIME + 2000]
    write(cluster.bootstrap, name, dict.fromkeys(range(3), 250))
    places = [Partition(name, p) for p in range(3)]
    with breaking(cluster.network, BROKEN_EVERY_SECONDS):
        for _ in range(ROUNDS):
            proxied = settings("source A", {"bootstrap.servers": cluster.proxied_bootstrap})
            with closing(RecordReader(proxied, 4 * DEADLINE_SECONDS)) as one:
                single = one.contents(dict.fromkeys(places, [1, 200]))
                assert single == {p: {n: written(p.partition, n) for n in (1, 200)} for p in places}
                first = one.first_offsets(dict.fromkeys(places, asked))
                assert first == dict.fromkeys(places, dict(zip(asked, (10, 200), strict=True)))
                scanned = one.scan(dict.fromkeys(places, OffsetRange(0, 250))).values()
                assert [None if isinstance(found, Unreadable) else len(found) for found in scanned] == [250] * 3
