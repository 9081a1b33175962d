"""What the commands are plugged into: settings resolved once and only where needed, and who closes what."""

from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from migrate.errors import ClusterError, ConfigError
from migrate.kafka.cluster import KafkaCluster
from migrate.kafka.record_reader import RecordReader
from migrate.mm2.config_file import client_flow
from migrate.mm2.topics import MOST_HELD
from migrate.model import LogRange, Side, TopicPartition
from migrate.session import clusters as sessions
from migrate.session import plan
from migrate.session.options import SessionOptions
from migrate.spark.background import SparkPurpose
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from tests.fakes import FakeClock, FakeCluster, NoProgress

PASSWORD = "hidden-from-everybody"
PLAIN = {"bootstrap.servers": "a:1"}
# Kerberos: Java's clients take it, librdkafka's do not.
JAVA_ALONE = PLAIN | {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
SECRET = PLAIN | {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'x.PlainLoginModule required username="u" password="{PASSWORD}";',
}
OPTIONS = SessionOptions(5.0)


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    def fail():
        pytest.fail("nobody needs Spark yet")

    spark = SimpleNamespace(**dict.fromkeys(("machine", "end_session", "end"), fail))
    monkeypatch.setattr(plan, "background_spark", lambda *_: nullcontext(spark))


def flow(source=PLAIN, target=PLAIN):
    return client_flow(source, target, "A", "B")


def test_properties_are_resolved_once_for_each_family_of_clients(monkeypatch):
    resolved = []
    for name in ("client_settings", "java_settings"):
        resolve = getattr(sessions, name)
        monkeypatch.setattr(sessions, name, lambda of, n=name, r=resolve: resolved.append((n, of.side)) or r(of))
    with plan.plan_session(flow(), False, NoProgress(), OPTIONS) as clusters:
        assert clusters.source is not None and clusters.comparer is not None
    assert sorted(resolved) == [(name, side) for name in ("client_settings", "java_settings") for side in Side]


def test_a_source_that_is_down_needs_no_settings_that_librdkafka_can_use():
    with plan.plan_session(flow(JAVA_ALONE), True, NoProgress(), OPTIONS) as clusters:
        assert (clusters.source, clusters.comparer) == (None, None) and clusters.looks_for_hidden
    with (
        pytest.raises(ConfigError, match="sasl.mechanism"),
        plan.plan_session(flow(JAVA_ALONE), False, NoProgress(), OPTIONS),
    ):
        pass


def test_javas_settings_are_there_where_librdkafka_has_none():
    end, _ = sessions.endpoints(flow(JAVA_ALONE), 5.0)
    with pytest.raises(ConfigError):
        _ = end.kafka
    assert end.java.admin["sasl.mechanism"] == "GSSAPI"


def test_what_is_plugged_in_shows_no_secret():
    end, _ = sessions.endpoints(flow(SECRET), 5.0)
    assert PASSWORD in end.kafka.config.values() and PASSWORD in end.java.secrets
    assert PASSWORD not in repr((end, end.kafka, end.java))
    with plan.plan_session(flow(SECRET, SECRET), False, NoProgress(), OPTIONS) as clusters:
        assert PASSWORD not in repr(clusters)


@pytest.mark.parametrize("looking", [False, True])
def test_status_closes_its_clients_but_not_under_a_look(looking, monkeypatch):
    closed = []
    for client in (KafkaCluster, RecordReader):
        monkeypatch.setattr(client, "close", lambda self: closed.append(type(self)))
    with sessions.status_session(flow(), FakeClock(), OPTIONS) as edges:
        if looking:
            edges.in_use.acquire()
    assert closed == ([] if looking else [KafkaCluster] * 2 + [RecordReader] * 4)


def test_a_source_that_does_not_answer_is_left_out_of_a_look():
    with sessions.status_session(flow(), FakeClock(), OPTIONS) as edges:
        down, up = edges.clusters(source_down=True), edges.clusters(source_down=False)
    assert (down.source, down.comparer) == (None, None)
    assert up.source is edges.source and up.comparer is edges.comparer and down.target is up.target is edges.target


def test_the_java_machine_ends_with_the_command_also_where_it_fails(monkeypatch):
    ended = []
    monkeypatch.setattr("migrate.spark.java_admin.JavaMachine.close", lambda self: ended.append(self))
    with pytest.raises(ZeroDivisionError), sessions.apply_session(flow(), NoProgress(), False, OPTIONS) as edges:
        assert edges.exact_admin(edges.target, ()).side is Side.TARGET
        _ = 1 / 0
    assert len(ended) == 1


@dataclass(frozen=True)
class Logs:
    """A cluster whose logs are all so long; a negative length: it does not answer."""

    length: int

    def log_ranges(self, partitions):
        if self.length < 0:
            raise ClusterError("B is down.", "Start it.")
        return {partition: LogRange(5, 5 + self.length) for partition in partitions}


@pytest.mark.parametrize(
    ("source", "target", "small"),
    [
        (plan.MOST_FOR_SMALL, plan.MOST_FOR_SMALL, True),
        (plan.MOST_FOR_SMALL + 1, 0, False),
        (0, plan.MOST_FOR_SMALL + 1, False),
        (0, -1, False),
        (None, 0, True),
    ],
)
def test_little_is_to_be_read_where_both_of_mm2s_topics_are_short(source, target, small):
    clusters = [None if length is None else Logs(length) for length in (source, target)]
    assert plan._is_small(flow(), *clusters) is small


def test_a_long_offsets_topic_or_one_that_is_not_told_is_much_to_read():
    place = TopicPartition(OFFSETS_TOPIC, 0)
    for end, is_long in ((MOST_HELD, False), (MOST_HELD + 1, True)):
        cluster = FakeCluster(ranges={place: LogRange(0, end)})
        assert plan._has_long_offsets_topic(cluster) is is_long
    assert plan._has_long_offsets_topic(FakeCluster()) and not plan._has_long_offsets_topic(None)


class SparkThere:
    """A Spark that keeps what was ended; its JVM is of the kind that it was to be started as."""

    def __init__(self, wishes=None):
        self.ended, self.wishes = [], wishes

    def machine(self):
        if not self.wishes.purpose.done():
            pytest.fail("nobody has said what is to be started")
        return self.wishes.purpose.result()

    def end_session(self):
        self.ended.append("session")

    def end(self):
        self.ended.append("all")


def test_spark_ends_once_the_last_record_is_read_and_its_jvm_once_everything_is(monkeypatch):
    spark = SparkThere()
    monkeypatch.setattr(plan, "background_spark", lambda *_: nullcontext(spark))
    with plan.plan_session(flow(), False, NoProgress(), OPTIONS) as clusters:
        clusters.end_records()
        assert spark.ended == ["session"]
        clusters.end()
    assert spark.ended == ["session", "all"]


@pytest.mark.parametrize(("no_match", "small"), [(False, True), (True, False)])
def test_a_jvm_is_as_large_as_what_both_clusters_say_there_is_to_read(no_match, small, monkeypatch):
    monkeypatch.setattr(plan, "_is_small", lambda *_: small)
    wishes = plan.plan_wishes([flow()], NoProgress())
    options = replace(OPTIONS, no_match=no_match)
    with closing(plan.PlanSession(flow(), False, SparkThere(wishes), wishes, options)) as asked:
        for cluster in (asked.source, asked.target):
            assert not wishes.purpose.done(), "before both have answered nobody knows"
            cluster.client.has_answered.set()
        assert asked._machine() == SparkPurpose(small, compares=not no_match)


def test_who_needs_a_jvm_before_both_clusters_have_answered_does_not_wait_for_them():
    wishes = plan.plan_wishes([flow()], NoProgress())
    wishes.settle(SparkPurpose(is_small=False))
    with closing(plan.PlanSession(flow(), True, SparkThere(wishes), wishes, OPTIONS)) as asked:
        asked.wait_for_commits()


def test_nothing_is_started_for_a_command_that_is_over():
    wishes = plan.plan_wishes([flow()], NoProgress())
    with closing(plan.PlanSession(flow(), False, SparkThere(wishes), wishes, OPTIONS)) as asked:
        pass
    asked._sized.result(10.0)
    assert not wishes.purpose.done()
