"""The one loop that polls: what is kept, what ends a run or moves it, what ends all, and how consumers are closed."""

import threading
from array import array
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from migrate.kafka.read_pass import (
    HOPELESS_SECONDS,
    LAGGING_SECONDS,
    UNEASY_SECONDS,
    Contents,
    Prints,
    ReadPass,
    RunIntake,
    RunPass,
    Silence,
    close_consumers,
    in_turns,
)
from migrate.match.equality import Equality
from migrate.match.log_reader import runs_of
from migrate.match.protocol import OffsetRange
from migrate.silence import longest_silence
from tests.unit.logscene import PLACES


class Complaining:
    """A consumer that hears of nothing but connections that failed."""

    polls = 0

    def assign(self, partitions):
        pass

    def unassign(self):
        pass

    def consume(self, most, seconds):
        self.polls += 1
        self.waits_for = longest_silence().name
        assert self.polls < 1_000_000, "it never gives up"
        return [Message(topic="t", partition=0, error=KafkaError(KafkaError._TRANSPORT, "refused"))]


def test_a_client_that_only_complains_is_as_good_as_silent():
    consumer = Complaining()
    unread = SimpleNamespace(start=0, take=lambda messages: False)
    reading = ReadPass(consumer, {PLACES[0]: unread}, "B", silence_seconds=0.05)
    reading.run()
    assert consumer.waits_for == "B" and longest_silence() is None
    assert list(reading.waiting) == [PLACES[0]] and not reading.problems


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
    return RunPass(consumer or Consumer(t=4), waiting, "B", 60.0, DEADLINE_SECONDS, {} if causes is None else causes)


def event(code):
    return Message(topic="t", partition=0, offset=5, error=KafkaError(code, "x"))


def noted(code):
    made, message = reading(), event(code)
    made.note(PLACES[0], message, message.error())
    return made


def problems(made):
    return {place: error.name() for place, error in made.problems.items()}


def test_a_run_whose_log_begins_later_now_is_moved_and_is_no_failure():
    made = noted(KafkaError._AUTO_OFFSET_RESET)
    assert made.moved == [PLACES[0]] and list(made.waiting) == [PLACES[1]] and not made.problems


def test_a_log_that_ends_before_its_run_has_lost_records_unless_it_goes_on_in_a_little_while():
    made = noted(KafkaError._PARTITION_EOF)
    assert made.waits(LAGGING_SECONDS - 1) and len(made.waiting) == 2
    assert made.waits(LAGGING_SECONDS + 1) and problems(made) == {PLACES[0]: "OFFSET_OUT_OF_RANGE"}
    made = noted(KafkaError._PARTITION_EOF)
    made.waiting[PLACES[0]].take([Message(topic="t", partition=0, offset=6)])
    assert made.waits(LAGGING_SECONDS + 1) and len(made.waiting) == 2 and not made.problems


def test_a_cluster_that_refuses_us_ends_the_pass_soon_where_nothing_comes_and_a_silent_one_after_the_deadline():
    refused = noted(KafkaError._AUTHENTICATION)
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


def test_trouble_of_two_kinds_is_no_sign_of_life_and_what_was_said_before_records_came_ends_no_later_silence():
    causes = {}
    made = reading(causes=causes)
    for other in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT):
        assert not made._take([event(KafkaError._AUTHENTICATION), event(other)])
        assert not made._take([event(other)]) and causes.keys() == {"_AUTHENTICATION"}
    assert made._take(records(6)) and made.waits(HOPELESS_SECONDS + 1)
    causes["_SSL"] = "said after the records"
    with pytest.raises(Silence):
        made.waits(HOPELESS_SECONDS + 1)


def test_after_some_silence_partitions_that_the_cluster_does_not_have_are_given_up():
    made = reading(Consumer(t=1))
    assert made.waits(UNEASY_SECONDS + 0.5) and problems(made) == {PLACES[1]: "UNKNOWN_TOPIC_OR_PART"}
    gone = reading(Consumer(u=1))
    assert gone.waits(UNEASY_SECONDS + 0.5) and not gone.waiting


RANGES = (OffsetRange(2, 4), OffsetRange(6, 9))


def records(*offsets):
    return [
        Message(topic="t", partition=0, offset=o, key=b"k", value=b"v%d" % o, timestamp=(1, 100 + o), headers=[])
        for o in offsets
    ]


def intake():
    (run,) = runs_of(RANGES, 100)
    shelves = [Contents() for _ in RANGES]
    return RunIntake(run, RANGES, shelves), shelves


def test_records_between_two_ranges_belong_to_neither_and_one_beyond_the_end_ends_the_run():
    taking, shelves = intake()
    assert not taking.take(records(2, 3, 4, 5)) and not taking.take(records(6))
    assert taking.start == 7 and taking.take(records(7, 8))
    assert [list(shelf.records) for shelf in shelves] == [[2, 3], [6, 7, 8]]
    taking, shelves = intake()
    assert taking.take(records(3, 20))
    assert [list(shelf.records) for shelf in shelves] == [[3], []]


def test_where_retention_was_faster_what_is_below_the_logs_start_can_no_longer_be_read():
    taking, shelves = intake()
    taking.begin_at(7)
    assert taking.start == 7 and [shelf.readable_from for shelf in shelves] == [7, 7]
    prints = Prints(Equality.KEY_AND_VALUE)
    prints.add(array("q", [6, 7, 8]), records(6, 7, 8))
    prints.readable_from = 7
    piece = prints.stretch(OffsetRange(6, 9))
    assert (piece.start, piece.end, piece.readable_from, list(piece.offsets)) == (6, 9, 7, [7, 8])


def test_equal_records_have_equal_prints_and_keys_are_marked_only_where_they_are_asked_for():
    plain, keyed = Prints(Equality.KEY_AND_VALUE), Prints(Equality.KEY_AND_VALUE, with_keys=True)
    for shelf in (plain, keyed):
        shelf.add(array("q", [1, 2]), [*records(1), *records(1)])
        prints = shelf.stretch(OffsetRange(0, 3)).prints
        assert prints[0] == prints[1]
    assert len(keyed.stretch(OffsetRange(0, 3)).keys) == 2 and len(plain.stretch(OffsetRange(0, 3)).keys) == 0
    assert keyed.stretch(OffsetRange(0, 3)).prints == plain.stretch(OffsetRange(0, 3)).prints


def test_a_consumer_that_never_closes_is_left_behind_and_the_others_are_closed():
    may_end, closed = threading.Event(), threading.Event()
    hanging, well = (SimpleNamespace(close=close) for close in (lambda: may_end.wait(DEADLINE_SECONDS), closed.set))
    close_consumers([hanging, well], seconds=0.1)
    assert closed.wait(DEADLINE_SECONDS)
    may_end.set()


@given(st.dictionaries(st.text("abc"), st.lists(st.integers())), st.integers(1, 5))
def test_turns_bring_every_value_once_in_the_order_of_its_key_and_name_a_key_once(asked, size):
    turns = [list(turn) for turn in in_turns(asked.items(), size)]
    assert {key: [v for turn in turns for k, v in turn if k == key] for key in asked} == asked
    assert all(len({key for key, _ in turn}) == len(turn) <= size for turn in turns)
