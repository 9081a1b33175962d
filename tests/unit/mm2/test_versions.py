"""Settings that MM2's version decides on: blacklists, and topics that end as internal ones do."""

import pytest

from tests.unit.connectscene import connectors, strimzi
from tests.unit.mm2.flowlines import from_properties, from_strimzi, from_worker

OLD, NEW, UNKNOWN = "before 4.0", "from 4.0 on", "not known"
HOMES = [
    ("properties", "", UNKNOWN),
    ("connect", "3.9.2", OLD), ("connect", "7.9.0-ccs", OLD), ("connect", "4.0.0", NEW),
    ("connect", "vendor-9", UNKNOWN),
    ("strimzi", "3.9.0", OLD), ("strimzi", "4.1.0", NEW), ("strimzi", None, UNKNOWN),
]  # fmt: skip


def told(tmp_path, home, version, settings):
    """The flow A -> B with these settings, as that kind of MM2 tells it."""
    if home == "properties":
        return from_properties(tmp_path, settings)
    if home == "strimzi":
        return from_strimzi(tmp_path, strimzi(settings, version=version))
    return from_worker(connectors(settings), version)


@pytest.mark.parametrize(("home", "version", "age"), HOMES)
def test_a_blacklist_of_groups_counts_before_kafka_4_alone_and_what_either_would_sync_counts_as_synced(
    tmp_path, home, version, age
):
    settings = {"groups.blacklist": "z.*", "sync.group.offsets.enabled": "true"}
    synced = {OLD: {"g", "connect-s"}, NEW: {"g", "z1"}, UNKNOWN: {"g", "z1", "connect-s"}}[age]
    assert told(tmp_path, home, version, settings).synced(["g", "z1", "connect-s"]) == synced
    flow = told(tmp_path, home, version, settings | {"groups.exclude": "y.*"})
    assert flow.synced(["g", "z1", "y1"]) == {"g", "z1"}, "groups.exclude wins in every version"


@pytest.mark.parametrize(("home", "version", "age"), HOMES)
def test_a_blacklist_of_topics_counts_before_kafka_4_alone_and_what_either_would_copy_is_perhaps_copied(
    tmp_path, home, version, age
):
    flow = told(tmp_path, home, version, {"topics.blacklist": "z.*"})
    topics = ("orders", "z1", "a.replica")
    left_out = {topic for topic in topics if flow.why_not_replicated(topic)}
    perhaps = {topic for topic in topics if "depends on its version" in flow.why_perhaps_not_replicated(topic)}
    assert left_out == {OLD: {"z1"}, NEW: {"a.replica"}, UNKNOWN: set()}[age]
    assert perhaps == ({"z1", "a.replica"} if age is UNKNOWN else set())


@pytest.mark.parametrize(("home", "version", "age"), HOMES)
def test_before_kafka_4_topics_that_end_in_internal_are_never_copied_and_that_is_the_cause_told(
    tmp_path, home, version, age
):
    flow = told(tmp_path, home, version, {"topics.exclude": "none", "replication.policy.separator": "_"})
    for topic in ("foo.internal", "foo-internal", "foo_internal"):
        why, perhaps = flow.why_not_replicated(topic), flow.why_perhaps_not_replicated(topic)
        assert ("before Kafka 4.0" in why, "before Kafka 4.0" in perhaps) == (age is OLD, age is UNKNOWN)
    assert not flow.why_not_replicated("internally") and not flow.why_perhaps_not_replicated("internally")
    # By the defaults too, whatever else leaves it out.
    plain = told(tmp_path, home, version, {})
    assert bool(plain.why_not_replicated("foo-internal")) is (age is OLD)
    assert not plain.why_not_replicated("foo_internal")
