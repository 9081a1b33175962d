"""MM2's topics read without Spark: the newest of each key, chains, ages, and only what is new at the next look."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Semaphore

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import ClusterError
from migrate.match.equality import Content
from migrate.match.protocol import Unreadable
from migrate.mm2 import topic_reader as plainmirror
from migrate.mm2.chain import Window
from migrate.mm2.checkpoint_table import CheckpointTable, WrittenCheckpoints, checkpoints_at
from migrate.mm2.connect_offsets import positions_of
from migrate.mm2.topic_reader import ConsumedMm2Topics, News
from migrate.mm2.topics import CheckpointKey, CheckpointRecord, WindowQuestion
from migrate.mm2.wire import SyncRecord, WireCheckpoint
from migrate.model import LogRange, OffsetSync, Side, TopicPartition
from tests.unit.surveyscene import FLOW
from tests.wirebytes import encode_checkpoint, encode_sync

SYNCS, CHECKPOINTS, OFFSETS = "mm2-offset-syncs.B.internal", "A.checkpoints.internal", "mm2-offsets.A.internal"
T0 = TopicPartition("t", 0)


@dataclass
class Scanner:
    """One cluster's logs; `asked` keeps what was read."""

    logs: dict[TopicPartition, dict[int, Content]] = field(default_factory=dict)
    refused: str = ""
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    def scan(self, wanted):
        found = {}
        for place, piece in wanted.items():
            self.asked.append((place.topic, piece.start, piece.end))
            inside = {o: c for o, c in self.logs[place].items() if piece.start <= o < piece.end}
            found[place] = Unreadable(self.refused) if self.refused else inside
        return found


def sync(source_offset, target_offset, topic="t", partition=0, time=1000):
    return Content(time, *encode_sync(SyncRecord(topic, partition, source_offset, target_offset)), ())


def checkpoint(group, source_offset, target_offset, time=1000):
    return Content(time, *encode_checkpoint(WireCheckpoint(group, "A.t", 0, source_offset, target_offset)), ())


def mirror(syncs=(), checkpoints=(), positions=()):
    source = Scanner({TopicPartition(SYNCS, 0): dict(enumerate(syncs))})
    target = Scanner({TopicPartition(CHECKPOINTS, 0): dict(enumerate(checkpoints))})
    target.logs[TopicPartition(OFFSETS, 0)] = dict(enumerate(positions))
    return ConsumedMm2Topics(FLOW, source, target), source, target


def windows(reader, end, *questions):
    return reader.windows(Side.SOURCE, SYNCS, LogRange(0, end), questions)


CHAIN = [sync(0, 0), sync(90, 90), sync(10, 12), sync(20, 25)]


@pytest.mark.parametrize(
    ("flow", "lower", "upper"), [(FLOW, (10, 12), (20, 25)), (FLOW.reversed(), (12, 10), (25, 20))], ids=["", "back"]
)
def test_windows_are_those_of_the_chain_whose_offsets_swap_their_roles_on_the_way_back(flow, lower, upper):
    _, source, target = mirror([*CHAIN, sync(10, 13, "u")])
    reader, asked = ConsumedMm2Topics(flow, source, target), WindowQuestion("t", 0, 15, 100, 100)
    reading = windows(reader, 5, asked)
    assert reading.windows == {asked: Window(OffsetSync(2, *lower), OffsetSync(3, *upper))}
    assert reading.counts == {"offset-sync": 5}
    assert reader.sync_pairs(T0, 100, 100) == ((0, 0), lower, upper)


def test_with_the_source_down_syncs_are_not_checked_against_its_end():
    reader, _, _ = mirror([sync(10, 12), sync(900, 25)])
    asked = WindowQuestion("t", 0, 15, None, 100)
    assert windows(reader, 2, asked).windows[asked].upper == OffsetSync(1, 900, 25)


def test_the_newest_checkpoint_of_a_key_wins_a_tombstone_takes_it_away_and_strangers_are_counted():
    gone, nobodys = (Content(2000, key, None, ()) for key in (checkpoint("i", 5, 4).key, b"?"))
    records = [checkpoint("i", 9, 9), checkpoint("g", 5, 4), checkpoint("h", 1, 1), checkpoint("g", 3, 2), sync(1, 1)]
    reading = mirror(checkpoints=[*records, gone, nobodys])[0].checkpoints(CHECKPOINTS, LogRange(0, 7))
    assert {k: (r.source_offset, r.position) for k, r in reading.latest.items()} == {
        CheckpointKey("g", "A.t", 0): (3, 3),
        CheckpointKey("h", "A.t", 0): (1, 2),
    }
    assert reading.counts == {"checkpoint": 4, "offset-sync": 1, "tombstone": 2}
    anew = mirror(checkpoints=[checkpoint("i", 9, 9), gone, checkpoint("i", 3, 2)])[0]
    (record,) = anew.checkpoints(CHECKPOINTS, LogRange(0, 3)).latest.values()
    assert record.source_offset == 3


def test_partitions_of_positions_are_read_together_and_others_connectors_are_no_matter():
    key = b'["%s",{"cluster":"A","partition":%d,"topic":"t"}]'
    _, source, target = mirror()
    target.logs[TopicPartition(OFFSETS, 0)] = {7: Content(0, key % (b"mine", 0), b'{"offset":41}', ())}
    target.logs[TopicPartition(OFFSETS, 3)] = {2: Content(0, key % (b"theirs", 1), b'{"offset":9}', ())}
    pinned = {0: LogRange(5, 8), 3: LogRange(0, 3)}
    named = replace(FLOW, runtime=replace(FLOW.runtime, source_connectors=("mine",)))
    assert ConsumedMm2Topics(named, source, target).positions(OFFSETS, pinned) == {T0: 41}
    assert target.asked == [(OFFSETS, 5, 8), (OFFSETS, 0, 3)]


def test_a_look_beside_one_that_was_left_behind_counts_each_record_once(monkeypatch):
    reader, _, target = mirror(checkpoints=[checkpoint("g", 1, 1), checkpoint("g", 2, 2)])
    begun, scan = Semaphore(0), target.scan

    def slowly(wanted):
        begun.release()
        for _ in range(2):
            begun.acquire(timeout=0.2)
        return scan(wanted)

    monkeypatch.setattr(target, "scan", slowly)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(reader.checkpoints, CHECKPOINTS, LogRange(0, 2)) for _ in range(2)]
    assert [read.result().counts for read in both] == [{"checkpoint": 2}] * 2


def test_the_next_look_reads_only_what_is_new_and_a_topic_that_became_shorter_anew():
    reader, source, _ = mirror([sync(0, 0), sync(10, 10), sync(20, 20, time=7000)])
    windows(reader, 2)
    assert reader.news(Side.SOURCE, SYNCS) == News(1000)
    windows(reader, 2)
    windows(reader, 3)
    assert source.asked == [(SYNCS, 0, 2), (SYNCS, 2, 3)]
    assert reader.sync_pairs(T0, 100, 100)[-1] == (20, 20) and reader.news(Side.SOURCE, SYNCS).newest_ms == 7000
    source.logs[TopicPartition(SYNCS, 0)] = {0: sync(5, 4)}
    windows(reader, 1)
    assert reader.sync_pairs(T0, 100, 100) == ((5, 4),)


def test_positions_of_two_topics_are_kept_apart_and_all_read_again_where_one_began_anew():
    def position(offset):
        return Content(0, b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]', offset, ())

    reader, _, target = mirror(positions=[position(b'{"offset":41}'), Content(0, b"x", b"{}", ())])
    target.logs[TopicPartition("other", 0)] = {0: position(b'{"offset":70}')}
    for topic, end, offset in ((OFFSETS, 2, 41), ("other", 1, 70), (OFFSETS, 2, 41)):
        assert reader.positions(topic, {0: LogRange(0, end)}) == {T0: offset}
    target.logs[TopicPartition(OFFSETS, 0)] = {0: Content(0, b"x", b"{}", ())}
    assert reader.positions(OFFSETS, {0: LogRange(0, 1)}) == {}


def test_of_a_long_topic_the_end_is_read_and_what_was_left_out_is_counted(monkeypatch):
    monkeypatch.setattr(plainmirror, "MOST_RECORDS", 10)
    monkeypatch.setattr(plainmirror, "CHUNK", 4)
    reader, source, _ = mirror([sync(n, n) for n in range(25)])
    windows(reader, 25)
    assert source.asked == [(SYNCS, 15, 19), (SYNCS, 19, 23), (SYNCS, 23, 25)]
    assert reader.sync_pairs(T0, 100, 100) == tuple((n, n) for n in range(15, 25))
    assert reader.news(Side.SOURCE, SYNCS).left_out == 15


def test_a_topic_that_may_not_be_read_is_an_error_that_names_it():
    reader, source, _ = mirror([sync(0, 0)])
    source.refused = "TOPIC_AUTHORIZATION_FAILED"
    with pytest.raises(ClusterError, match="A does not let us read MM2's topic mm2-offset-syncs.B.internal"):
        windows(reader, 1)


COUNTED = st.integers(0, 2**63 - 1)
# Partition, whether it is a tombstone, the offsets, the timestamp, metadata.
RECORDS = st.tuples(
    st.integers(0, 5), st.booleans(), COUNTED, COUNTED, st.integers(-1, 2**62), st.sampled_from(["", "m\x00,é"])
)
PLACES = st.sampled_from([("g", "A.orders"), ("g", "A.bills"), ("h", "A.orders")])


@given(st.lists(st.tuples(PLACES, RECORDS)), st.randoms())
def test_the_newest_of_each_key_counts_and_a_tombstone_takes_it_away(written, random) -> None:
    plain: dict[CheckpointKey, CheckpointRecord] = {}
    by_topic: dict[tuple[str, str], list[tuple[int, ...]]] = {}
    for position, (place, (partition, is_tombstone, source, target, time, metadata)) in enumerate(written):
        key = CheckpointKey(*place, partition)
        plain.pop(key, None)
        if not is_tombstone:
            plain[key] = CheckpointRecord(source, target, metadata, position, time)
        by_topic.setdefault(place, []).append((partition, position, is_tombstone, source, target, time, metadata))
    for records in by_topic.values():
        random.shuffle(records)
    columns = ((place, zip(*records, strict=True)) for place, records in by_topic.items())
    table = CheckpointTable(WrittenCheckpoints(*place, *map(list, each)) for place, each in columns)
    assert table == plain and len(table) == len(plain) and set(table) == set(plain)
    for latest in (table, plain):
        copies = [TopicPartition(topic, n) for topic in ("A.orders", "A.bills") for n in (5, 0, 3)]
        found = [plain.get(CheckpointKey("g", *copy)) for copy in copies]
        assert checkpoints_at(latest, "g", copies) == [
            record and (record.source_offset, record.target_offset) for record in found
        ]


T3 = TopicPartition("té", 3)
KEY = '["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"té"}]'.encode()
OTHER = '["my-mirror", {"topic": "té", "partition": 3, "cluster": "A"}]'.encode()


@pytest.mark.parametrize(("records", "positions"), [
    ([(KEY, b'{"offset":4660}'), (KEY, b'{"offset":9223372036854775807}')], {T3: 2**63 - 1}),
    ([(KEY, b'{"offset":4660}'), (KEY, None)], {}),
    ([(KEY, None), (KEY, b'{"offset":0}')], {T3: 0}),
    ([(KEY, b'{"offset":9}'), (OTHER, b'{"offset":5}')], {T3: 5}),
    ([(OTHER, b'{"offset":5}'), (KEY, b'{"offset":9}')], {T3: 5}),
])  # fmt: skip
def test_the_last_of_a_key_wins_a_null_clears_it_and_of_two_connectors_the_smaller_is_believed(records, positions):
    assert positions_of(records, "A") == positions


def test_where_mm2s_connectors_are_known_those_of_others_and_of_its_past_do_not_count():
    records = [(KEY, b'{"offset":9}'), (OTHER, b'{"offset":2}')]
    assert positions_of(records, "A", ("MirrorSourceConnector",)) == {T3: 9}
    assert positions_of(records, "A", ("another",)) == {}


def test_what_is_no_position_of_this_source_is_left_aside():
    for key in (
        b'["MirrorSourceConnector",{"cluster":"C","partition":3,"topic":"t1"}]',
        b'["MirrorCheckpointConnector",{"partition":3,"topic":"A.t1","group":"g1"}]',
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
        b'["file-source",{"filename":"x"}]',
        b'["x",{"cluster":"A","partition":-1,"topic":"t1"}]',
        b'["x",{"cluster":"A","partition":"3","topic":"t1"}]',
        *(None, b"", b"\xff", b"[]", b"[" * 9999),
    ):
        assert positions_of([(key, b'{"offset":1}')], "A") == {}
    for value in (b"", b"{}", b'{"offset":-1}', b'{"offset":"1"}', b"7", b"null", b'{"offset":1.5}'):
        assert positions_of([(KEY, value)], "A") == {}
