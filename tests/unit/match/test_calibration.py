"""How a topic's anchors are found and read: syncs where there are some, else what is alike near the ends."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.match.calibration import (
    FURTHER,
    OVERHEAD,
    SOURCE_TAIL,
    TOPICS_AT_ONCE,
    Calibration,
    calibrate_topics,
    topic_questions,
)
from migrate.match.equality import Content, Equality
from migrate.match.protocol import PartitionQuestion, Work
from migrate.model import LogRange, TopicPartition
from tests.memorylogs import MemoryReader, log_range, record

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
LOG = {n: record(n) for n in range(100)}


def partition(source_log, target_log, sync_pairs=(), places=(SOURCE, TARGET)) -> PartitionQuestion:
    return PartitionQuestion(*places, source_log, target_log, (), sync_pairs=sync_pairs, equality=Equality.ALL)


def calibrate(source, target, sync_pairs=(), **readers) -> Calibration:
    asked = partition(log_range(source), log_range(target), sync_pairs)
    of_source, of_target = MemoryReader({SOURCE: source}, **readers), MemoryReader({TARGET: target})
    (found,) = calibrate_topics(of_source, of_target, [(asked,)])
    return found


def test_syncs_are_the_anchors_and_give_the_sizes():
    found = calibrate(LOG, LOG, tuple((n, n) for n in range(10, 90, 5)))
    size = OVERHEAD + len(b"k3") + len(b"v10")
    assert found == Calibration("t", Equality.ALL, size, size, True)


def test_a_record_near_the_end_that_a_sync_names_has_one_vote():
    """Of 35 records 14 have another timestamp, and these alone have syncs: counted twice they would be most."""
    source = {n: record(n) for n in range(35)}
    target = {n: replace(content, timestamp=n) if n < 14 else content for n, content in source.items()}
    assert calibrate(source, target, tuple((n, n) for n in range(14))).equality is Equality.ALL


@pytest.mark.parametrize("sync_pairs", [(), ((10, 10), (20, 20)), tuple((n, n) for n in (*range(300, 360, 3), 390))])
def test_a_header_that_few_records_have_is_looked_for_until_it_is_clear(sync_pairs):
    """Near the end one record had its flag dropped, and so had one that a sync names; further up it is one of three."""
    kept, flag = ("h", b"1"), ("flag", b"true")
    flagged = {n for n in range(300) if n % 3 == 0} | {390}
    source = {n: replace(record(n), headers=(kept, flag) if n in flagged else (kept,)) for n in range(400)}
    target = {n: replace(record(n), headers=(kept,)) for n in range(400)}
    assert calibrate(source, target, sync_pairs).equality is Equality.WITHOUT_HEADERS


class Counting(MemoryReader):
    """Counts the records asked for, call by call, of logs whose topics have one partition."""

    def contents(self, wanted):
        self.logs["asked"].append(sum(map(len, wanted.values())))
        return super().contents(wanted)


def asked_of_the_source(topics: int, length: int) -> list[int]:
    """How many records were asked for at a time, of topics of which one record in twenty has a header."""
    logs = {n: replace(record(n), headers=(("h", b"1"),) if n % 20 == 0 else ()) for n in range(length)}
    places = [(TopicPartition(f"t{t}", 0), TopicPartition(f"A.t{t}", 0)) for t in range(topics)]
    source = Counting({place: logs for place, _ in places} | {"asked": []})
    target = MemoryReader({copy: logs for _, copy in places})
    log = LogRange(0, length)
    asked = [(partition(log, log, places=each),) for each in places]
    assert len(list(calibrate_topics(source, target, asked))) == topics
    return [count for count in source.logs["asked"] if count]


def test_more_is_read_of_few_topics_at_a_time_and_nothing_of_those_that_were_read_in_full():
    short, long = SOURCE_TAIL, FURTHER * SOURCE_TAIL
    assert asked_of_the_source(1, short) == [short]
    assert asked_of_the_source(20, 2 * long) == [20 * short, *[6 * long] * 3, 2 * long]
    assert 6 * FURTHER <= TOPICS_AT_ONCE, "no more records are held than of as many topics with short ends"


@given(
    st.randoms(use_true_random=False),
    st.integers(1, 90),
    st.integers(1, 500),
    st.integers(0, 500),
    st.integers(1, 3000),
)
def test_whatever_repeats_and_however_far_the_target_lags_kept_timestamps_are_not_called_lost(
    rnd, keys, written, lag, step
):
    time_ms, source = 0, {}
    for n in range(written):
        time_ms += rnd.randint(1, step)
        source[n] = Content(time_ms, b"k%d" % rnd.randrange(keys), rnd.choice([b"on", b"off", None]), ())
    found = calibrate(source, {n: source[n] for n in range(max(0, written - lag))})
    assert found.equality is Equality.ALL


@pytest.mark.parametrize("lag", [0, 100])
def test_timestamps_that_the_target_sets_are_seen_although_the_source_has_the_same_record_at_some_of_them(lag):
    """Records of 60 devices, one in each millisecond: one in five times that the target sets is that of another."""
    source = {n: Content(n, b"k%d" % (n % 60), b"on", ()) for n in range(1000)}
    target = {n: replace(source[n], timestamp=n + (37 if n % 5 else 60)) for n in range(1000 - lag)}
    assert calibrate(source, target).equality is Equality.WITHOUT_TIMESTAMP


@pytest.mark.parametrize(
    ("change", "equality"),
    [
        ({"headers": (("h", b"2"),)}, Equality.WITHOUT_HEADERS),
        ({"timestamp": 5}, Equality.WITHOUT_TIMESTAMP),
        ({"value": b"?"}, Equality.TIME_AND_KEY),
    ],
)
@pytest.mark.parametrize("sync_pairs", [((10, 10), (20, 20)), ()])
def test_what_is_changed_on_the_way_is_seen_with_and_without_syncs(change, equality, sync_pairs):
    source = {n: replace(content, headers=(("h", b"1"),)) for n, content in LOG.items()}
    changed = {n: replace(content, **change) for n, content in source.items()}
    assert calibrate(source, changed, sync_pairs).equality is equality
    if change.keys() & {"headers", "value"}:
        # Nor do few syncs hide it whose records lack what is changed.
        bare = {n: replace(LOG[n], value=None) for n in (10, 20)}
        assert calibrate(source | bare, changed | bare, sync_pairs).equality is equality


def test_where_syncs_agree_in_nothing_a_coincidence_of_time_proves_nothing():
    source = {n: Content(1000 + n, None, b"v%d" % n, ()) for n in range(100)}
    changed = {n: Content(1020 + n, None, b"?%d" % n, ()) for n in range(100)}
    assert calibrate(source, changed, tuple((n, n) for n in range(15))).equality is None


def test_where_nothing_is_alike_or_all_occurs_twice_nothing_is_known():
    twin = Content(1, b"k", b"v", ())
    assert calibrate({0: twin}, {0: twin}).lasts and not calibrate({0: twin, 1: twin}, {0: twin, 1: twin}).lasts
    other = {n: Content(5, b"?", b"?%d" % n, ()) for n in range(100)}
    found = calibrate(LOG, other)
    assert (found.equality, found.lasts) == (Equality.ALL, False)
    assert calibrate(LOG, other, ((10, 10), (20, 20))).equality is None


def test_where_the_last_records_are_aborted_it_is_read_further():
    """A replicator copies none of them, and readers are shown none: the ends have nothing to pair."""
    ends = partition(LogRange(0, max(LOG) + 1 + SOURCE_TAIL), log_range(LOG))
    (found,) = calibrate_topics(MemoryReader({SOURCE: LOG}), MemoryReader({TARGET: LOG}), [(ends,)])
    assert found.lasts


def test_an_empty_log_and_one_that_can_not_be_read_have_no_size():
    assert calibrate({}, LOG).source_size is None
    found = calibrate(LOG, LOG, ((10, 10),), unreadable={SOURCE: "TOPIC_AUTHORIZATION_FAILED"})
    assert (found.equality, found.lasts, found.source_size) == (Equality.ALL, False, None)


def test_of_partitions_without_syncs_those_with_the_longest_logs_tell_of_their_topic():
    lengths = {0: 0, 1: 0, 2: 5, 3: 0, 4: 900, 5: 40, 6: 3}
    works = [
        (Work(TopicPartition("t", p), TopicPartition("A.t", p), LogRange(0, n), LogRange(0, n), (0,)), ())
        for p, n in lengths.items()
    ]
    (topic,) = topic_questions(works)
    assert [partition.source.partition for partition in topic] == [4, 5, 2, 6]
