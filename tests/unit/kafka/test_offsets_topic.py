"""The offsets topic of one cluster: read whole and in the order of its logs, or a failure."""

from migrate.kafka.group_facts import read_offsets_topic
from migrate.model import Failure
from migrate.survey.offsets_topic import GroupLog
from tests.mockcluster import FETCH
from tests.unit.logscene import DEADLINE_SECONDS, LENGTH, NOWHERE, REFUSED, config


class Log(GroupLog):
    """What the reader of the offsets topic was given."""

    def __init__(self):
        super().__init__()
        self.records = []

    def take(self, keys, values):
        self.records += zip(keys, values, strict=True)


def test_the_offsets_topic_is_read_to_its_end_each_partition_in_log_order_into_its_own_log(cluster):
    logs = {0: Log(), 2: Log()}
    assert read_offsets_topic(config(cluster), "B", logs, DEADLINE_SECONDS) is None
    for partition, log in logs.items():
        assert log.records == [(b"k%d" % partition, b"v%d" % number) for number in range(LENGTH)]


def test_a_log_that_goes_on_is_read_from_where_it_was(cluster):
    log = Log()
    log.next_offset = LENGTH - 2
    assert read_offsets_topic(config(cluster), "B", {1: log}, DEADLINE_SECONDS) is None
    assert log.records == [(b"k1", b"v%d" % number) for number in (LENGTH - 2, LENGTH - 1)]
    assert (log.taken, log.next_offset) == (2, LENGTH)
    assert read_offsets_topic(config(cluster), "B", {1: log}, DEADLINE_SECONDS) is None
    assert (log.taken, log.next_offset) == (2, LENGTH)


def test_an_offsets_topic_that_can_not_be_read_in_full_is_a_failure(cluster):
    assert read_offsets_topic(NOWHERE, "B", {0: Log()}, 0.5) == Failure("_TIMED_OUT", "no answer within 0.5 s", True)
    cluster.will_answer(FETCH, REFUSED)
    failure = read_offsets_topic(config(cluster), "B", {0: Log(), 1: Log()}, DEADLINE_SECONDS)
    assert failure is not None and failure.code == "TOPIC_AUTHORIZATION_FAILED"
