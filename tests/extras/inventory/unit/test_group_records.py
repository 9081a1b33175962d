"""Groups' records are read by a plain consumer where they are few, else by Spark; what keeps it from that is said."""

from contextlib import nullcontext

import pytest

from migrate.errors import ClusterError, EnvironmentLacks, Refused
from migrate.extras.inventory.group_records import RecordsOfAnyLength
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.offsets_pin import ATTEMPTS, CompactedMeanwhileError
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupKind, GroupRecord, partition_of
from tests.fakes import FakeClock, FakeCluster, FakeGroupFacts, NoProgress

GROUPS = ["billing", "stock"]
BILLING, STOCK = (partition_of(group, 3) for group in GROUPS)
PLAIN, LONG = ({group: GroupRecord(kind) for group in GROUPS} for kind in (GroupKind.CLASSIC, GroupKind.SIMPLE))
RANGES = {n: LogRange(5, end) for n, end in enumerate((10, 20, 30))}
LENGTH = sum(RANGES[n].end - RANGES[n].start for n in {BILLING, STOCK})


def told(most, *answers, ranges=RANGES, max_fetch=None, **more):
    """What is told where Spark gives these answers, each returned or raised; and what it was asked."""
    left, asked = list(answers), []

    def read(pin, groups):
        asked.append((set(pin.logs), groups))
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    places = {TopicPartition(OFFSETS_TOPIC, n): log for n, log in ranges.items()}
    held = FakeCluster(ranges=places, told=FakeGroupFacts(records=PLAIN), **more)
    found = RecordsOfAnyLength(held, lambda: nullcontext(read), NoProgress(), FakeClock(), max_fetch, most)
    return found(GROUPS), asked


def test_what_a_consumer_may_read_is_left_to_it_and_what_is_beyond_is_not():
    assert told(LENGTH) == (PLAIN, [])
    assert told(LENGTH - 1, LONG) == (LONG, [({BILLING, STOCK}, GROUPS)])
    assert told(0, ranges={}) == (PLAIN, []), "a topic that is not shown is told as the consumer tells it"


def test_a_topic_that_was_compacted_meanwhile_is_pinned_and_read_anew():
    found, asked = told(0, CompactedMeanwhileError(OFFSETS_TOPIC), LONG)
    assert found == LONG and len(asked) == 2
    failure, _ = told(0, *(CompactedMeanwhileError(OFFSETS_TOPIC) for _ in range(ATTEMPTS)))
    assert isinstance(failure, Failure) and "compacted while it was read" in failure.message


def test_what_cannot_be_read_is_said_and_without_java_what_to_do():
    assert told(0, ClusterError("no leader", "wait"))[0] == Failure("_FAIL", "no leader")
    failure, _ = told(0, EnvironmentLacks("Java was not found.", "Install a JDK."))
    assert failure.code == "NO_SPARK"
    for words in (f"{LENGTH} records", "Java was not found.", "Install a JDK.", "--group", "--records"):
        assert words in failure.message


def test_groups_behind_an_open_transaction_are_left_out():
    _, asked = told(0, {}, watermarks={TopicPartition(OFFSETS_TOPIC, STOCK): 99})
    assert BILLING != STOCK and asked == [({BILLING}, ["billing"])]


@pytest.mark.parametrize(("most", "passes", "expected"), [(1000, 1, PLAIN), (0, 2, LONG)])
def test_no_more_is_fetched_than_is_allowed(most, passes, expected):
    size = LENGTH * 110 * passes
    assert told(most, LONG, max_fetch=size)[0] == expected
    with pytest.raises(Refused, match="--max-fetch allows"):
        told(most, LONG, max_fetch=size - 1)
