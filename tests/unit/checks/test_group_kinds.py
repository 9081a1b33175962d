"""Checks on what kind of group it is: share, streams, of KIP-848, of Connect, of Kafka Streams, of a vendor."""

import shlex

from migrate.mm2.naming import PolicyKind, ReplicationPolicy
from migrate.model import Failure, GroupState, Level
from migrate.survey.cluster import BrokerSettings
from migrate.survey.connect_topics import ConnectTopic, Purpose
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies, Waiver
from tests.unit.checkscene import HOUR, blocked, found, levels, row

FORBIDDEN = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")


def test_connects_own_topics_that_the_target_lacks_are_named_with_what_they_are():
    missing = (
        ConnectTopic("connect-offsets", Purpose.OFFSETS, ("connect-configs",)),
        ConnectTopic("dbhistory.x", Purpose.HISTORY),
    )
    told = found("connect-internal-topics", connect_topics=missing)
    assert {r.subject: r.level for r in told} == {"connect-offsets": Level.WARN, "dbhistory.x": Level.WARN}
    assert "offsets" in told[0].seen and "connect-configs" in told[0].seen and "snapshot" in told[0].seen
    assert "Debezium" in told[1].seen and "same name" in told[1].todo
    there = {"A.t": 2, "A.u": 1, "connect-offsets": 1}
    assert levels("connect-internal-topics", connect_topics=missing, target_topics=there) == {"dbhistory.x": Level.WARN}
    assert blocked(connect_topics=missing) == set() and found("connect-internal-topics") == []
    (unknown,) = found("connect-internal-topics", source_down=True)
    assert unknown.level is Level.NOT_VISIBLE


def test_groups_with_one_underscore_are_counted_once_with_the_option_to_type():
    rows = tuple(row(group) for group in ("_confluent-controlcenter", "_x", "g", "a_b", "__two"))
    (told,) = found("vendor-groups", rows=rows)
    assert told.level is Level.WARN and "2 groups" in told.seen and "_confluent-controlcenter, _x" in told.seen
    (typed,) = [words[1] for words in [shlex.split(told.todo.partition(": ")[2])] if words[0] == "--exclude-group"]
    filters = Filters.from_options(exclude_groups=[typed])
    assert [r.group for r in rows if filters.group_verdict(r.group) != "exclude-group"] == ["g", "a_b", "__two"]
    assert found("vendor-groups") == []


def test_what_is_counted_with_one_underscore_is_what_the_option_leaves_out_and_is_printed_plainly():
    names = ("_", "_a", "__a", "_a\nb", "_\n", "_\u2028x", "_\x1b[2J", "_a ", "a_b")
    (told,) = found("vendor-groups", rows=tuple(row(group) for group in names))
    (typed,) = [words[1] for words in [shlex.split(told.todo.partition(": ")[2])] if words[0] == "--exclude-group"]
    left_out = [n for n in names if Filters.from_options(exclude_groups=[typed]).group_verdict(n) == "exclude-group"]
    assert f"{len(left_out)} groups" in told.seen and set(left_out) == set(names) - {"__a", "a_b"}
    assert told.seen.isprintable() and r"_a\nb" in told.seen and '"_a "' in told.seen


def test_share_groups_and_streams_groups_block_and_are_never_passed_unseen():
    kinds = {"sharers": "share", "topology": "streams"}
    assert levels("share-group", source_kinds=kinds) == {"sharers": Level.BLOCK}
    assert levels("streams-group", source_kinds=kinds) == {"topology": Level.BLOCK}
    assert "docs/limits.md" in found("share-group", source_kinds=kinds)[0].todo
    accepted = found("share-group", source_kinds=kinds, policies=Policies(waivers=(Waiver("share-group", "sharers"),)))
    assert accepted[0].accepted
    for check in ("share-group", "streams-group"):
        (hidden,) = found(check, source_kinds=FORBIDDEN)
        assert (hidden.level, hidden.counts_as) == (Level.NOT_VISIBLE, Level.WARN) and FORBIDDEN.code in hidden.seen
        assert levels(check) == {"A": Level.PASS}


def test_a_group_of_kip_848_needs_a_target_that_serves_it():
    states = {"g": GroupState("Empty", kind="consumer"), "h": GroupState("Empty")}
    (fine,) = found("group-protocol", source_states=states)
    assert fine.level is Level.PASS and fine.seen == "1 classic, 1 of KIP-848"
    old = {"target_settings": BrokerSettings(7 * 24 * HOUR, False)}
    assert levels("group-protocol", source_states=states, **old) == {"g": Level.WARN}
    hidden = {"target_settings": FORBIDDEN}
    assert levels("group-protocol", source_states=states, **hidden) == {"g": Level.NOT_VISIBLE}
    alive = {"g": GroupState("Stable", 1, kind="consumer"), "h": GroupState("Empty")}
    assert "(KIP-848)" in found("source-group-stopped", source_states=alive)[0].seen


def test_a_streams_application_is_named_with_what_becomes_of_its_internal_topics():
    internal = {"t": 2, "u": 1, "g-a-changelog": 1, "g-b-repartition": 1}
    (app,) = found("kafka-streams", source_topics=internal, target_topics={"A.g-a-changelog": 1})
    assert app.level is Level.WARN and app.subject == "g" and "by its internal topics" in app.seen
    assert "copied under another name, which the application does not read: g-a-changelog" in app.seen
    assert "not copied: g-b-repartition" in app.seen
    identity = ReplicationPolicy(PolicyKind.IDENTITY, "A", "B")
    (app,) = found("kafka-streams", source_topics=internal, target_topics={"g-a-changelog": 1}, policy=identity)
    assert "used as they are on the target: g-a-changelog" in app.seen
    assigned = {"g": GroupState("Empty", assignor="stream"), "h": GroupState("Empty")}
    (app,) = found("kafka-streams", source_states=assigned)
    assert "by its assignor stream: no internal topic of its name is there" in app.seen


def test_a_connect_sink_is_named_by_its_group_and_what_is_said_of_all_is_the_same():
    rows = (row("connect-s3", "t"),)
    (sink,) = found("connect-sink", rows=rows)
    assert sink.level is Level.WARN and sink.subject == "connect-s3" and "/stop" in sink.todo
