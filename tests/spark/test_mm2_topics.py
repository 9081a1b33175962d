"""MM2's own positions in Spark SQL: the newest record of each key, as the plain function reads the whole topic."""

import json
import random

import pytest

from migrate.mm2.connect_offsets import positions_of
from migrate.spark.mm2_topics import positions_in
from tests.spark.records import frame


def key(connector, **members):
    return json.dumps([connector, members], separators=(",", ":"), ensure_ascii=False).encode()


def scene(seed):
    rnd = random.Random(seed)
    keys = [
        key("MirrorSourceConnector", cluster="A", partition=p, topic=t) for t in ("t", "group", "名") for p in (0, 1)
    ]
    keys += [
        key("MirrorSourceConnector", cluster="C", partition=0, topic="t"),
        key("MirrorCheckpointConnector", partition=0, topic="A.t", group="g"),
        key("MirrorHeartbeatConnector", sourceClusterAlias="A", targetClusterAlias="B"),
        b"\xff\x00", b"[", None,
    ]  # fmt: skip
    values = [None, b"{}", *(json.dumps({"offset": rnd.randrange(999)}).encode() for _ in range(20))]
    return [(rnd.choice(keys), rnd.choice(values)) for _ in range(80)]


@pytest.mark.parametrize("seed", range(3))
def test_the_same_positions_come_out_as_from_the_plain_function(spark, seed):
    pairs = scene(seed)
    expected = positions_of(pairs, "A")
    assert positions_in(frame(spark, pairs), "A") == expected
    assert len(expected) > 3
