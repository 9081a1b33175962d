"""The one loop that polls: what is a sign of life, and when it ends."""

from confluent_kafka import KafkaError, Message

from migrate.kafka.read_pass import ReadPass
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


class Unread:
    start = 0

    def take(self, messages):
        return False


def test_a_client_that_only_complains_is_as_good_as_silent():
    consumer = Complaining()
    reading = ReadPass(consumer, {PLACES[0]: Unread()}, "B", silence_seconds=0.05)
    reading.run()
    assert consumer.waits_for == "B" and longest_silence() is None
    assert list(reading.waiting) == [PLACES[0]] and not reading.problems
