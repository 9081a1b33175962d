"""MM2's own positions: the byte forms of a real MirrorMaker 2, and everything else that shares their topic."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.mm2.connect_offsets import positions_of
from migrate.model import TopicPartition

T3 = TopicPartition("t1", 3)
KEY = b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t1"}]'


OTHER = b'["my-mirror", {"topic": "t1", "partition": 3, "cluster": "A"}]'


@pytest.mark.parametrize(
    ("records", "positions"),
    [
        ([(KEY, b'{"offset":4660}'), (KEY, b'{"offset":17}')], {T3: 17}),
        ([(KEY, b'{"offset":4660}'), (KEY, None)], {}),
        ([(KEY, None), (KEY, b'{"offset":0}')], {T3: 0}),
        ([(KEY, b'{"offset":9}'), (OTHER, b'{"offset":5}')], {T3: 5}),
        ([(OTHER, b'{"offset":5}'), (KEY, b'{"offset":9}')], {T3: 5}),
    ],
)
def test_the_last_of_a_key_wins_a_null_clears_it_and_of_two_connectors_the_smaller_is_believed(records, positions):
    assert positions_of(records, "A") == positions


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


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), st.integers(0, 999), st.integers(0, 2**63 - 1))
def test_any_name_is_read_as_jsonconverter_writes_it(topic, partition, offset):
    key = json.dumps(["c", {"cluster": "A", "partition": partition, "topic": topic}], ensure_ascii=False)
    pair = (key.encode(), json.dumps({"offset": offset}).encode())
    assert positions_of([pair], "A") == {TopicPartition(topic, partition): offset}


def test_where_mm2s_connectors_are_known_those_of_others_and_of_its_past_do_not_count():
    records = [(KEY, b'{"offset":9}'), (OTHER, b'{"offset":2}')]
    assert positions_of(records, "A", ("MirrorSourceConnector",)) == {T3: 9}
    assert positions_of(records, "A", ("another",)) == {}
