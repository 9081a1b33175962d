"""How a topic's anchors are found and read: syncs where there are some, else what is alike near the ends."""

from dataclasses import replace

import pytest

from migrate.errors import ClusterError
from migrate.match.calibration import OVERHEAD, AnchorPartition, Calibration, TopicQuestion, calibrate_topics
from migrate.match.equality import Content, Equality
from migrate.model import LogRange, TopicPartition
from tests.memorylogs import MemoryReader, MemoryReaders, log_range, record

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
LOG = {n: record(n) for n in range(100)}


def calibrate(source, target, sync_pairs=(), **readers) -> Calibration:
    question = TopicQuestion("t", (AnchorPartition(SOURCE, TARGET, log_range(source), log_range(target), sync_pairs),))
    opened = MemoryReaders(MemoryReader({SOURCE: source}, **readers), MemoryReader({TARGET: target}))
    (found,) = calibrate_topics(opened, [question])
    assert isinstance(found, Calibration)
    return found


def test_syncs_are_the_anchors_and_give_the_sizes():
    found = calibrate(LOG, LOG, tuple((n, n) for n in range(10, 90, 5)))
    size = OVERHEAD + len(b"k3") + len(b"v10")
    assert found == Calibration("t", Equality.ALL, 16, size, size)


def test_a_sync_without_its_records_is_no_anchor():
    by_syncs = tuple((n, n) for n in range(10, 90, 5))
    assert calibrate(LOG, LOG, (*by_syncs[:-2], (500, 20), (30, 700))).anchors == 14 + 50


@pytest.mark.parametrize(
    ("has", "change", "equality"),
    [
        ({"headers": (("h", b"1"),)}, {"headers": (("h", b'"1"'),)}, Equality.WITHOUT_HEADERS),
        ({}, {"value": b"?"}, Equality.TIME_AND_KEY),
    ],
)
def test_few_syncs_whose_records_lack_what_is_changed_do_not_hide_it(has, change, equality):
    bare = {n: replace(LOG[n], value=None) for n in (10, 20)}
    source = {n: replace(content, **has) for n, content in LOG.items()}
    target = {n: replace(content, **change) for n, content in LOG.items()}
    assert calibrate(source | bare, target | bare, ((10, 10), (20, 20))).equality is equality


@pytest.mark.parametrize("sync_pairs", [(), ((10, 10), (20, 20)), tuple((n, n) for n in (*range(300, 360, 3), 390))])
def test_a_header_that_few_records_have_is_looked_for_until_it_is_clear(sync_pairs):
    """Near the end one record had its flag dropped, and so had one that a sync names; further up it is one of three."""
    kept, flag = ("h", b"1"), ("flag", b"true")
    flagged = {n for n in range(300) if n % 3 == 0} | {390}
    source = {n: replace(record(n), headers=(kept, flag) if n in flagged else (kept,)) for n in range(400)}
    target = {n: replace(record(n), headers=(kept,)) for n in range(400)}
    assert calibrate(source, target, sync_pairs).equality is Equality.WITHOUT_HEADERS


def test_records_that_repeat_what_others_said_do_not_outvote_the_syncs():
    every_hour = {n: Content(n * 3600, b"k%d" % (n % 60), b"on", ()) for n in range(200)}
    behind = {n: every_hour[n] for n in range(100)}
    assert calibrate(every_hour, behind, ((10, 10), (20, 20))).equality is Equality.ALL


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
    changed = {n: replace(content, **({"headers": (("h", b"1"),)} | change)) for n, content in LOG.items()}
    assert calibrate(source, changed, sync_pairs).equality is equality


def test_where_syncs_agree_in_nothing_a_coincidence_of_time_proves_nothing():
    source = {n: Content(1000 + n, None, b"v%d" % n, ()) for n in range(100)}
    changed = {n: Content(1020 + n, None, b"?%d" % n, ()) for n in range(100)}
    assert calibrate(source, changed, tuple((n, n) for n in range(15))).equality is None


def test_records_that_occur_twice_near_the_end_tell_nothing():
    twin = Content(1, b"k", b"v", ())
    source = LOG | {100: twin, 101: twin}
    assert calibrate(source, source).anchors == calibrate(LOG, LOG).anchors - 2


def test_where_nothing_is_alike_nothing_is_known():
    other = {n: Content(5, b"?", b"?%d" % n, ()) for n in range(100)}
    found = calibrate(LOG, other)
    assert (found.equality, found.anchors) == (Equality.ALL, 0)
    assert calibrate(LOG, other, ((10, 10), (20, 20))).equality is None


def test_an_empty_log_and_one_that_can_not_be_read_have_no_size():
    assert calibrate({}, LOG).source_size is None
    found = calibrate(LOG, LOG, ((10, 10),), unreadable={SOURCE: "TOPIC_AUTHORIZATION_FAILED"})
    assert (found.equality, found.anchors, found.source_size) == (Equality.ALL, 0, None)


def test_a_cluster_that_does_not_answer_is_a_value():
    down = ClusterError("B is down.", "Start it.")
    assert list(calibrate_topics(MemoryReaders(MemoryReader({}), MemoryReader({}), down), [])) == [down]
    assert LogRange(0, 0) == log_range({})
