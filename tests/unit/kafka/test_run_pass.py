"""A pass over runs: what ends a run, what moves it, and what ends all, without a broker."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, Message

from migrate.kafka.read_pass import (
    HOPELESS_SECONDS,
    LAGGING_SECONDS,
    UNEASY_SECONDS,
    Contents,
    RunIntake,
    RunPass,
    Silence,
)
from migrate.match.log_reader import runs_of
from migrate.match.protocol import OffsetRange
from tests.unit.logscene import PLACES

DEADLINE_SECONDS = 30.0


class Consumer:
    """A consumer that has these topics, with their partitions."""

    def __init__(self, **topics):
        self.topics = {t: SimpleNamespace(error=None, partitions=dict.fromkeys(range(n))) for t, n in topics.items()}

    def list_topics(self, topic="", timeout=0.0):
        return SimpleNamespace(topics=dict(self.topics))

    def get_watermark_offsets(self, partition, timeout, cached):
        return (4, 9) if partition.topic in self.topics else None


def reading(consumer=None, causes=None):
    ranges = (OffsetRange(0, 10),)
    (run,) = runs_of(ranges, 100)
    waiting = {place: RunIntake(run, ranges, [Contents()]) for place in PLACES[:2]}
    return RunPass(
        consumer or Consumer(t=4), waiting, "B", 60.0, DEADLINE_SECONDS, causes if causes is not None else {}
    )


def event(code, offset=5):
    return Message(topic="t", partition=0, offset=offset, error=KafkaError(code, "x"))


def noted(made, code, offset=5):
    message = event(code, offset)
    made.note(PLACES[0], message, message.error())
    return made


def test_a_run_whose_log_begins_later_now_is_moved_and_is_no_failure():
    made = noted(reading(), KafkaError._AUTO_OFFSET_RESET)
    assert made.moved == [PLACES[0]] and list(made.waiting) == [PLACES[1]] and not made.problems


def test_a_log_that_ends_before_its_run_is_waited_for_a_little_and_has_lost_records_then():
    made = noted(reading(), KafkaError._PARTITION_EOF, 5)
    assert made.waits(LAGGING_SECONDS - 1) and len(made.waiting) == 2
    assert made.waits(LAGGING_SECONDS + 1)
    assert {p: e.name() for p, e in made.problems.items()} == {PLACES[0]: "OFFSET_OUT_OF_RANGE"}


def test_a_log_that_went_on_after_it_seemed_to_end_has_lost_nothing():
    made = noted(reading(), KafkaError._PARTITION_EOF, 5)
    made.waiting[PLACES[0]].take([Message(topic="t", partition=0, offset=6)])
    assert made.waits(LAGGING_SECONDS + 1) and len(made.waiting) == 2 and not made.problems


def test_a_cluster_that_refuses_us_ends_the_pass_soon_where_nothing_comes_and_a_silent_one_after_the_deadline():
    refused = noted(reading(), KafkaError._AUTHENTICATION)
    assert refused.waits(10.0)
    with pytest.raises(Silence):
        refused.waits(HOPELESS_SECONDS + 0.1)
    # A token that is renewed at the second try, and one broker of many with a bad certificate, end nothing.
    assert reading(causes={"_AUTHENTICATION": "the token endpoint is busy"}).waits(10.0)
    with pytest.raises(Silence):
        reading(causes={"_SSL": "no"}).waits(HOPELESS_SECONDS + 0.1)
    assert reading().waits(1.0)
    with pytest.raises(Silence):
        reading().waits(DEADLINE_SECONDS + 1)


@pytest.mark.parametrize("other", [KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT])
def test_trouble_of_two_kinds_in_turn_is_no_sign_of_life_and_the_reason_is_kept(other):
    causes = {}
    made = reading(causes=causes)
    assert not made._take([event(KafkaError._AUTHENTICATION), event(other)])
    assert not made._take([event(other)]) and causes.keys() == {"_AUTHENTICATION"}


def record(offset):
    return Message(topic="t", partition=0, offset=offset, key=b"k", value=b"v", timestamp=(1, 1))


def test_what_was_said_of_trouble_before_records_came_again_ends_no_later_silence_before_the_deadline():
    causes = {"_AUTHENTICATION": "the token endpoint is busy"}
    made = reading(causes=causes)
    assert made._take([record(6)])
    assert made.waits(HOPELESS_SECONDS + 1)
    causes["_SSL"] = "said after the records"
    with pytest.raises(Silence):
        made.waits(HOPELESS_SECONDS + 1)


def test_after_some_silence_partitions_that_the_cluster_does_not_have_are_given_up():
    made = reading(Consumer(t=1))
    assert made.waits(UNEASY_SECONDS + 0.5)
    assert {p: e.name() for p, e in made.problems.items()} == {PLACES[1]: "UNKNOWN_TOPIC_OR_PART"}
    gone = reading(Consumer(u=1))
    assert gone.waits(UNEASY_SECONDS + 0.5) and not gone.waiting
