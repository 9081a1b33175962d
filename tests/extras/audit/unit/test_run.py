"""A run over clusters in memory, as far as it comes without Spark."""

from collections import defaultdict
from dataclasses import replace
from itertools import islice

import pytest

from migrate.errors import ClusterError
from migrate.extras.audit.run import Audit, AuditSession, Choices, rate_of, step_offsets
from migrate.extras.audit.state import read_state
from migrate.match.equality import Equality
from migrate.mm2.config_file import client_flow
from migrate.mm2.flow import ANY
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.model import LogRange, Side, TopicPartition
from migrate.progress import LineProgress
from migrate.session.status import StatusSession
from migrate.survey.filters import Filters
from tests.fakes import FakeClock, FakeCluster, FakeGroupFacts
from tests.memorylogs import MemoryReader, log_range, record
from tests.unit.commands import clusters, run

FLOW = replace(client_flow({"bootstrap.servers": "a:1"}, {"bootstrap.servers": "b:1"}, "A", "B"), replicator=ANY)
LOG = {number: record(number) for number in range(20)}


def audit_of(folder, copies=LOG, starts=(), **choices):
    """An audit of one topic, whose records Spark cannot read; at each try its log begins at the next of `starts`."""
    coming = iter(starts)

    def unreadable():
        for start in islice(coming, 1):
            sides[0].ranges[TopicPartition("t", 0)] = LogRange(start, 20)
        raise ClusterError("Topic t on A could not be read: no.")

    source, target = {TopicPartition("t", 0): LOG}, {TopicPartition("A.t", 0): copies}
    sides = [
        FakeCluster(side, name, name, ranges={p: log_range(log) for p, log in logs.items()}, told=FakeGroupFacts())
        for side, name, logs in ((Side.SOURCE, "A", source), (Side.TARGET, "B", target))
    ]
    readers = MemoryReader(source), MemoryReader(target)
    looking = StatusSession(*sides, ConsumedMm2Topics(FLOW, *readers), None, {})
    session = AuditSession(FLOW, looking, *readers, lambda: None, defaultdict(unreadable))
    return Audit(session, LineProgress(lambda text: None, FakeClock()), Filters(), folder, Choices(**choices))


def test_a_topic_that_could_not_be_read_is_not_proven_and_kept_for_the_next_run(tmp_path):
    result = audit_of(tmp_path / "state").run()
    assert result["verdict"] == "NOT PROVEN"
    assert result["topics"][0]["reasons"] == ["not all was read: Topic t on A could not be read: no."]
    state = read_state(tmp_path / "state")
    assert state.topics["t"].cut.equality is Equality.ALL and state.topics["t"].read_to[Side.SOURCE] == {}
    assert state.result is not None and state.result["since_ms"] is None


def test_while_retention_takes_what_is_about_to_be_read_it_is_tried_again_and_then_no_more(tmp_path):
    audit = audit_of(tmp_path / "state", starts=(tries := iter((5, 10, 10, 15))))
    assert audit.run()["verdict"] == "NOT PROVEN"
    assert [*tries] == [15]


def test_what_copies_belong_to_a_time_is_not_known_where_timestamps_do_not_survive(tmp_path):
    later = {offset: replace(each, timestamp=each.timestamp + 7) for offset, each in LOG.items()}
    result = audit_of(tmp_path / "state", later, since_ms=LOG[10].timestamp).run()
    (reason,) = result["topics"][0]["reasons"]
    assert result["verdict"] == "NOT PROVEN" and reason.startswith("timestamps do not survive")
    assert read_state(tmp_path / "state").part.startswith("records since ")


def test_an_audit_since_a_time_or_of_a_plan_is_not_one_of_the_other_or_of_chosen_topics(tmp_path):
    typed = ["audit", "run", "--state", str(tmp_path / "s"), "--plan", "x.plan", *clusters(tmp_path)]
    for more, said in (("--since", "2026-11-23T22:00:00Z"), "exclude each other"), (("--topic", "t"), "which topics"):
        ran = run(*typed, *more)
        assert ran.exit_code == 2 and said in ran.stderr, ran.output


def test_a_rate_is_bytes_a_second_and_what_is_none_is_said():
    assert [rate_of(text) for text in ("50MB/s", "50mb/s", "500K")] == [50_000_000, 50_000_000, 500_000]
    for text in ("0", "fast", "10/m", "5MB/h"):
        with pytest.raises(ValueError):
            rate_of(text)


def test_at_a_slow_rate_what_was_read_is_kept_more_often():
    assert step_offsets(None, 500.0) == step_offsets(10**9, None) == step_offsets(10**9, 500.0) == 20_000_000
    assert step_offsets(1_000_000, 500.0) == 120_000 and step_offsets(1, 500.0) == 1
