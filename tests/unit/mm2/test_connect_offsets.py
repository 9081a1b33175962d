"""MM2's own positions: the byte forms of a real MirrorMaker 2, and everything else that shares their topic."""

import pytest

from migrate.mm2.connect_offsets import positions_of
from migrate.model import TopicPartition

T3 = TopicPartition("té", 3)
KEY = '["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"té"}]'.encode()
OTHER = '["my-mirror", {"topic": "té", "partition": 3, "cluster": "A"}]'.encode()


@pytest.mark.parametrize(
    ("records", "positions"),
    [
        ([(KEY, b'{"offset":4660}'), (KEY, b'{"offset":9223372036854775807}')], {T3: 2**63 - 1}),
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


def test_where_mm2s_connectors_are_known_those_of_others_and_of_its_past_do_not_count():
    records = [(KEY, b'{"offset":9}'), (OTHER, b'{"offset":2}')]
    assert positions_of(records, "A", ("MirrorSourceConnector",)) == {T3: 9}
    assert positions_of(records, "A", ("another",)) == {}
