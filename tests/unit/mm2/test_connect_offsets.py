"""MM2's own positions: the byte forms of a real MirrorMaker 2, and everything else that shares their topic."""

import json

from hypothesis import given
from hypothesis import strategies as st

from migrate.mm2.connect_offsets import positions_in, positions_of
from migrate.model import TopicPartition

T3 = TopicPartition("t1", 3)
KEY = b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t1"}]'


def test_the_last_record_of_a_key_wins_and_never_the_greatest():
    assert positions_of([(KEY, b'{"offset":4660}'), (KEY, b'{"offset":17}')], "A") == {T3: 17}


def test_a_null_value_clears_a_position_and_a_later_one_sets_it_again():
    assert positions_of([(KEY, b'{"offset":4660}'), (KEY, None)], "A") == {}
    assert positions_of([(KEY, None), (KEY, b'{"offset":0}')], "A") == {T3: 0}


def test_the_order_of_the_members_and_the_connectors_name_mean_nothing():
    other = b'["my-mirror", {"topic": "t1", "partition": 3, "cluster": "A"}]'
    assert positions_of([(other, b'{"offset":5}')], "A") == {T3: 5}


def test_of_two_keys_for_one_partition_the_smaller_position_is_believed():
    other = b'["my-mirror",{"topic":"t1","partition":3,"cluster":"A"}]'
    for pairs in ([(KEY, 9), (other, 5)], [(other, 5), (KEY, 9)]):
        assert positions_of([(k, b'{"offset":%d}' % n) for k, n in pairs], "A") == {T3: 5}


def test_other_sources_and_other_connectors_are_left_aside():
    keys = [
        b'["MirrorSourceConnector",{"cluster":"C","partition":3,"topic":"t1"}]',
        b'["MirrorCheckpointConnector",{"partition":3,"topic":"A.t1","group":"g1"}]',
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
        b'["file-source",{"filename":"x"}]',
    ]
    assert positions_of([(key, b'{"offset":1}') for key in keys], "A") == {}


def test_what_is_no_position_is_left_aside():
    for key in (None, b"", b"\xff", b"[]", b"[" * 9999, b'["x",{"cluster":"A","partition":-1,"topic":"t1"}]',
                b'["x",{"cluster":"A","partition":"3","topic":"t1"}]'):  # fmt: skip
        assert positions_of([(key, b'{"offset":1}')], "A") == {}
    for value in (b"", b"{}", b'{"offset":-1}', b'{"offset":"1"}', b"7", b"null", b'{"offset":1.5}'):
        assert positions_of([(KEY, value)], "A") == {}


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), st.integers(0, 999), st.integers(0, 2**63 - 1))
def test_any_name_is_read_as_jsonconverter_writes_it(topic, partition, offset):
    key = json.dumps(["c", {"cluster": "A", "partition": partition, "topic": topic}], ensure_ascii=False)
    pair = (key.encode(), json.dumps({"offset": offset}).encode())
    assert positions_of([pair], "A") == {TopicPartition(topic, partition): offset}


def test_where_mm2s_connectors_are_known_those_of_others_and_of_its_past_do_not_count():
    def key(connector):
        return b'["%s",{"cluster":"A","partition":3,"topic":"t1"}]' % connector

    records = [(key(b"mine"), b'{"offset":9}'), (key(b"renamed-since"), b'{"offset":2}')]
    assert positions_of(records, "A") == {T3: 2}
    assert positions_of(records, "A", ("mine",)) == {T3: 9}
    assert positions_of(records, "A", ("other",)) == {}


def test_documents_of_a_workers_rest_mean_the_same_as_its_records():
    partition = {"cluster": "A", "partition": 3, "topic": "t1"}
    assert positions_in([(partition, {"offset": 7}), ({"group": "g"}, {"offset": 1})], "A") == {T3: 7}
    assert positions_in([(partition, None), (partition | {"partition": -1}, {"offset": 1})], "A") == {}
