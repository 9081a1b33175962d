"""Records of many partitions: ranges, single ones, and what cannot be read."""

import pytest

from migrate.errors import ClusterError
from migrate.kafka.record_reader import RecordReader
from migrate.match.equality import Equality
from migrate.match.log_reader import Wanted
from migrate.match.protocol import OffsetRange, Unreadable
from tests.mockcluster import FETCH
from tests.unit.logscene import DEADLINE_SECONDS, LENGTH, NOWHERE, PLACES, REFUSED, config, settings


@pytest.fixture
def reader(cluster):
    made = RecordReader(settings(config(cluster)), DEADLINE_SECONDS)
    yield made
    made.close()


def test_ranges_are_read_whole_short_and_long_ones_of_many_partitions(reader):
    ranges = (OffsetRange(5, 20), OffsetRange(25, 30), OffsetRange(50, LENGTH))
    found = reader.read({place: Wanted(ranges, Equality.KEY_AND_VALUE) for place in PLACES})
    for place in PLACES:
        assert [list(piece.offsets) for piece in found[place]] == [list(range(r.start, r.end)) for r in ranges]
    assert len({tuple(found[place][0].prints) for place in PLACES}) == len(PLACES)


def test_single_records_come_as_they_are(reader):
    found = reader.contents({PLACES[1]: [3, LENGTH - 1]})[PLACES[1]]
    assert {offset: (c.key, c.value) for offset, c in found.items()} == {
        3: (b"k1", b"v3"),
        LENGTH - 1: (b"k1", b"v%d" % (LENGTH - 1)),
    }


def test_a_partition_that_is_refused_is_a_value(cluster, reader):
    cluster.will_answer(FETCH, REFUSED)
    found = reader.read({PLACES[0]: Wanted((OffsetRange(0, 5),), Equality.ALL)})
    assert found == {PLACES[0]: Unreadable("TOPIC_AUTHORIZATION_FAILED")}


def test_a_cluster_that_is_silent_is_an_error_with_its_cause():
    reader = RecordReader(settings(NOWHERE), 0.5)
    with pytest.raises(ClusterError, match=r"source A did not answer within 0.5 s .*Connection refused"):
        reader.read({PLACES[0]: Wanted((OffsetRange(0, 5),), Equality.ALL)})
    reader.close()
