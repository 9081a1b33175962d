"""A run over clusters in memory, as far as it comes without Spark."""

from dataclasses import replace

import pytest

from migrate.errors import ClusterError
from migrate.extras.audit.run import Audit, AuditSession, rate_of
from migrate.extras.audit.state import read_state
from migrate.match.equality import Equality
from migrate.mm2.config_file import client_flow
from migrate.mm2.flow import ANY
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.model import Side, TopicPartition
from migrate.progress import LineProgress
from migrate.session.status import StatusSession
from migrate.survey.filters import Filters
from tests.fakes import FakeClock, FakeCluster, FakeGroupFacts
from tests.memorylogs import MemoryReader, log_range, record

FLOW = replace(client_flow({"bootstrap.servers": "a:1"}, {"bootstrap.servers": "b:1"}, "A", "B"), replicator=ANY)
LOG = {number: record(number) for number in range(20)}


@pytest.fixture
def audit(tmp_path):
    """An audit of one topic, whose records Spark cannot read."""

    def spark():
        raise ClusterError("Topic t on A could not be read: no.")

    source, target = ({TopicPartition(name, 0): LOG} for name in ("t", "A.t"))
    clusters = [
        FakeCluster(side, name, name, ranges={place: log_range(LOG) for place in logs}, told=FakeGroupFacts())
        for side, name, logs in ((Side.SOURCE, "A", source), (Side.TARGET, "B", target))
    ]
    readers = MemoryReader(source), MemoryReader(target)
    looking = StatusSession(*clusters, ConsumedMm2Topics(FLOW, *readers), None, {})
    session = AuditSession(FLOW, looking, *readers, spark, {})
    return Audit(session, LineProgress(lambda text: None, FakeClock()), Filters(), tmp_path / "state")


def test_a_topic_that_could_not_be_read_is_not_proven_and_kept_for_the_next_run(audit, tmp_path):
    result = audit.run()
    assert result["verdict"] == "NOT PROVEN"
    assert result["topics"][0]["reasons"] == ["not all was read: Topic t on A could not be read: no."]
    state = read_state(tmp_path / "state")
    assert state.topics["t"].cut.equality is Equality.ALL and state.topics["t"].read_to[Side.SOURCE] == {}
    assert state.result is not None


@pytest.mark.parametrize(("text", "rate"), [("50MB/s", 50_000_000), ("50mb/s", 50_000_000), ("500K", 500_000)])
def test_a_rate_is_bytes_a_second(text, rate):
    assert rate_of(text) == rate


@pytest.mark.parametrize("text", ["0", "fast", "10/m", "5MB/h"])
def test_what_is_no_rate_is_said(text):
    with pytest.raises(ValueError):
        rate_of(text)
