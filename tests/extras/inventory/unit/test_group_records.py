"""Groups' records are read by a plain consumer where they are few, else by Spark; what keeps it from that is said."""

from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from migrate.errors import ClusterError, EnvironmentLacks, Refused
from migrate.extras.inventory.group_records import RecordsOfAnyLength
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.offsets_pin import ATTEMPTS, CompactedMeanwhileError
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupKind, GroupRecord, partition_of
from tests.fakes import FakeClock, FakeCluster, FakeGroupFacts, NoProgress

GROUPS = ["billing", "stock"]
PLAIN, LONG = ({group: GroupRecord(kind) for group in GROUPS} for kind in (GroupKind.CLASSIC, GroupKind.SIMPLE))


@dataclass
class FakeLong:
    """Reads by whatever comes next of `answers`; each is returned, or raised."""

    answers: list = field(default_factory=list)
    pins: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    @contextmanager
    def __call__(self):
        yield self.read

    def read(self, pin, groups):
        self.pins.append(pin)
        self.asked.append(groups)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def cluster(**more):
    ranges = {TopicPartition(OFFSETS_TOPIC, n): LogRange(5, end) for n, end in enumerate((10, 20, 30))}
    return FakeCluster(ranges=ranges, told=FakeGroupFacts(records=PLAIN), **more)


def told(long, most, held=None, **more):
    return RecordsOfAnyLength(held or cluster(), long, NoProgress(), FakeClock(), most=most, **more)(GROUPS)


def length_of_groups():
    ends = (10, 20, 30)
    return sum(ends[n] - 5 for n in {partition_of(group, 3) for group in GROUPS})


def test_what_a_consumer_may_read_is_left_to_it_and_what_is_beyond_is_not():
    long = FakeLong([LONG])
    assert told(long, most=length_of_groups()) == PLAIN and not long.pins
    assert told(long, most=length_of_groups() - 1) == LONG
    (pin,) = long.pins
    assert pin.logs.keys() == {partition_of(group, 3) for group in GROUPS} and long.asked == [GROUPS]


def test_a_topic_that_is_not_shown_is_told_as_the_consumer_tells_it():
    assert told(FakeLong(), most=0, held=FakeCluster(told=FakeGroupFacts(records=PLAIN))) == PLAIN


def test_a_topic_that_was_compacted_meanwhile_is_pinned_and_read_anew():
    long = FakeLong([CompactedMeanwhileError(OFFSETS_TOPIC), LONG])
    assert told(long, most=0) == LONG and len(long.pins) == 2
    failure = told(FakeLong([CompactedMeanwhileError(OFFSETS_TOPIC) for _ in range(ATTEMPTS)]), most=0)
    assert isinstance(failure, Failure) and "compacted while it was read" in failure.message


def test_without_java_it_says_what_to_do():
    failure = told(FakeLong([EnvironmentLacks("Java was not found.", "Install a JDK.")]), most=0)
    assert isinstance(failure, Failure) and failure.code == "NO_SPARK"
    for words in (f"{length_of_groups()} records", "Java was not found.", "Install a JDK.", "--group", "--records"):
        assert words in failure.message


def test_what_cannot_be_read_is_said():
    assert told(FakeLong([ClusterError("no leader", "wait")]), most=0) == Failure("_FAIL", "no leader")


def test_groups_behind_an_open_transaction_are_left_out():
    hidden = partition_of("stock", 3)
    assert partition_of("billing", 3) != hidden
    long = FakeLong([{}])
    told(long, most=0, held=cluster(watermarks={TopicPartition(OFFSETS_TOPIC, hidden): 99}))
    assert long.asked == [["billing"]] and hidden not in long.pins[0].logs


@pytest.mark.parametrize(("most", "passes", "expected"), [(1000, 1, PLAIN), (0, 2, LONG)])
def test_no_more_is_fetched_than_is_allowed(most, passes, expected):
    size = length_of_groups() * 110 * passes
    assert told(FakeLong([LONG]), most, max_fetch=size) == expected
    with pytest.raises(Refused, match="--max-fetch allows"):
        told(FakeLong([LONG]), most, max_fetch=size - 1)
