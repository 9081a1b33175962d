"""Checks on groups: stopped on both sides, whole, within limits, what a rollback can restore, of which kind."""

import re
import shlex

import pytest

from migrate.mm2.chain import Window
from migrate.mm2.flow import FlowFilter, TopicFilter
from migrate.mm2.naming import PolicyKind, ReplicationPolicy
from migrate.model import Commit, Decision, Failure, GroupState, Level, OffsetSync
from migrate.survey.cluster import BrokerSettings
from migrate.survey.connect_topics import ConnectTopic, Purpose
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import GroupKind, GroupRecord
from migrate.survey.policies import Policies, Waiver
from tests.unit.checkscene import HOUR, NOW, blocked, found, levels, row, waiving

FORBIDDEN = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")
OF_G = (row("g", "t", 0), row("g", "t", 1))


def states(g, h=None):
    return {"g": g, "h": h or GroupState("Empty")}


def test_a_live_group_on_the_target_blocks_itself_and_no_waiver_helps_as_one_does_on_the_source_by_name():
    live = states(GroupState("Stable", 2, ("c1@10.0.0.1", "c2@10.0.0.2")))
    result = found("target-group-empty", target_states=live)[0]
    assert result.level is Level.BLOCK and "c1@10.0.0.1" in result.seen
    assert blocked(target_states=live, **waiving("target-group-empty")) == {"g"}
    on_source = {"source_states": live | {"h": live["g"]}} | waiving("source-group-stopped", "g")
    told = {r.subject: (r.accepted, r.level) for r in found("source-group-stopped", **on_source)}
    assert told == {"g": (True, Level.WARN), "h": (False, Level.BLOCK)} and blocked(**on_source) == {"h"}
    named = tuple(f"c{number}@10.0.0.1" for number in range(24))  # an adapter keeps no more
    (many, _) = found("source-group-stopped", source_states=states(GroupState("Stable", 500, named)))
    assert many.seen.endswith("c9@10.0.0.1 and 490 more") and "c10@" not in many.seen


@pytest.mark.parametrize(("group", "shown"), [("", '""'), ("pay\0x", "pay\\x00x")])
def test_a_group_whose_name_the_client_would_change_is_blocked_and_the_others_are_not(group, shown):
    rows = (row(group), row("h", "u"))
    (block,) = found("group-name-unusable", rows)
    assert (block.subject, block.level, block.seen) == (group, Level.BLOCK, shown)
    assert blocked(rows) == {group}
    misspelt = Filters.from_options(groups=["ordrs", "g"])
    assert levels("named-groups-exist", filters=misspelt) == {"ordrs": Level.BLOCK}, "though it has no row"


def test_a_group_whose_state_is_unknown_or_could_not_be_read_never_counts_as_stopped():
    for state in (GroupState("Unknown"), GroupState("Empty", 1), Failure("GROUP_AUTHORIZATION_FAILED", "no")):
        assert blocked(target_states=states(state)) == {"g"}
    assert blocked(unstable=frozenset({"g"})) == {"g"}, "offsets of a transaction are pending"


def test_too_many_rereads_block_their_group_and_can_be_accepted():
    far = (row("g", around=Window(OffsetSync(0, 1, 1), None)), row("h", "u"))
    for waivers, groups in (((), {"g"}), ((Waiver("re-read-limit", "g"),), set())):
        assert blocked(far, policies=Policies(waivers, max_rereads=20)) == groups


def test_with_the_source_down_every_group_waits_for_a_reviewer_and_who_else_there_was_is_not_known():
    assert blocked(source_down=True) == {"g", "h"}
    assert blocked(source_down=True, **waiving("source-down", "g")) == {"h"}
    own = FlowFilter(((TopicFilter((re.compile(".*"),), (re.compile("connect-.*"),)),),))
    assert levels("groups-unknown", source_down=True, group_filter=own) == {"connect-.*": Level.NOT_VISIBLE}
    assert levels("groups-unknown", source_down=True) == {"groups.exclude": Level.NOT_VISIBLE}
    assert not found("groups-unknown")


def test_a_group_that_mm2_checkpointed_on_a_topic_that_the_source_does_not_show_is_blocked():
    check, without_t = "checkpointed-topics-listed", {"source_topics": {"u": 1}}
    assert levels(check, **without_t) == {"g": Level.BLOCK}
    assert blocked(**without_t, **waiving(check, "g")) == set()
    for no_block in ({"source_down": True}, {"filters": Filters.from_options(topics=["u"])}):
        assert not found(check, **without_t, **no_block)
    assert not found(check)


def test_what_only_java_can_write_or_bring_back_is_said_before_the_first_write():
    prior = row("g", "t", 0, prior=Commit(10, "m"))
    for rows, said in (
        ((row("g", "t", 0, prior=Commit(10)), OF_G[1]),
         "1 offsets that a rollback removes while others of their group stay in 1 group"),
        ((prior,), "1 prior commits with metadata in 1 group"),
        ((row("g", "t", 0, commit=Commit(50, "m")),), "1 commits with metadata in 1 group"),
        ((prior._replace(decision=Decision.KEEP),), "1 kept commits with metadata to compare in 1 group"),
    ):  # fmt: skip
        assert found("java-needed", rows)[0].seen == said
    assert not found("java-needed", OF_G)


def emptied(hours_ago):
    return {"target_records": {"h": GroupRecord(GroupKind.CLASSIC, "consumer", NOW - hours_ago * HOUR)}}


def test_offsets_that_would_be_gone_within_two_hours_block_within_a_day_warn_as_when_nobody_can_tell():
    result = found("offsets-expiry", **emptied(167))[0]
    assert (result.subject, result.level) == ("h", Level.BLOCK) and "2026-08-01 04:00 UTC" in result.seen
    assert "delete the empty group" in result.todo
    assert blocked(**emptied(167)) == {"h"} and blocked(**emptied(167), **waiving("offsets-expiry", "h")) == set()
    assert levels("offsets-expiry", **emptied(150))["h"] is Level.WARN
    unknown = next(r for r in found("offsets-expiry", target_records=FORBIDDEN) if r.subject == "h")
    assert (unknown.level, unknown.counts_as) == (Level.NOT_VISIBLE, Level.WARN)
    assert unknown.seen.startswith("unknown") and "start a consumer of the group at once" in unknown.todo
    assert set(levels("offsets-expiry", **emptied(1)).values()) == {Level.PASS}


def test_a_retention_of_an_hour_blocks_new_groups_too_and_one_that_is_alive_on_the_target_is_told_once():
    (passed,) = found("offsets-expiry")
    assert passed.level is Level.PASS and "2026-08-08 03:00 UTC" in passed.seen
    an_hour = {"target_settings": BrokerSettings(HOUR, True)}
    alive = an_hour | {"target_states": states(GroupState("Stable", 1))}
    assert levels("offsets-expiry", **an_hour) == {"g": Level.BLOCK, "h": Level.BLOCK}
    assert levels("offsets-expiry", **alive) == {"h": Level.BLOCK}
    assert levels("target-group-empty", **alive)["g"] is Level.BLOCK


def test_connects_own_topics_that_the_target_lacks_are_named_with_what_they_are():
    check, missing = "connect-internal-topics", (
        ConnectTopic("connect-offsets", Purpose.OFFSETS, ("connect-configs",)),
        ConnectTopic("dbhistory.x", Purpose.HISTORY),
    )  # fmt: skip
    told = found(check, connect_topics=missing)
    assert {r.subject: r.level for r in told} == {"connect-offsets": Level.WARN, "dbhistory.x": Level.WARN}
    assert "offsets" in told[0].seen and "connect-configs" in told[0].seen and "snapshot" in told[0].seen
    assert "Debezium" in told[1].seen and "same name" in told[1].todo
    there = {"A.t": 2, "A.u": 1, "connect-offsets": 1}
    assert levels(check, connect_topics=missing, target_topics=there) == {"dbhistory.x": Level.WARN}
    assert blocked(connect_topics=missing) == set() and found(check) == []
    assert levels(check, source_down=True) == {"A": Level.NOT_VISIBLE}


def test_groups_with_one_underscore_are_counted_once_as_the_option_to_type_leaves_them_out_and_printed_plainly():
    names = ("_", "_a", "__a", "_a\nb", "_\n", "_\u2028x", "_\x1b[2J", "_a ", "a_b", "g", "_confluent-controlcenter")
    (told,) = found("vendor-groups", [row(group) for group in names])
    option, typed = shlex.split(told.todo.partition(": ")[2])
    assert option == "--exclude-group" and told.level is Level.WARN
    filters = Filters.from_options(exclude_groups=[typed])
    left_out = [n for n in names if filters.group_verdict(n) == "exclude-group"]
    assert f"{len(left_out)} groups" in told.seen and set(left_out) == set(names) - {"__a", "a_b", "g"}
    assert told.seen.isprintable() and r"_a\nb" in told.seen and '"_a "' in told.seen
    assert found("vendor-groups") == []


def test_share_groups_and_streams_groups_block_and_are_never_passed_unseen():
    kinds = {"source_kinds": {"sharers": "share", "topology": "streams"}}
    assert levels("share-group", **kinds) == {"sharers": Level.BLOCK}
    assert levels("streams-group", **kinds) == {"topology": Level.BLOCK}
    assert "docs/limits.md" in found("share-group", **kinds)[0].todo
    assert found("share-group", **kinds, **waiving("share-group", "sharers"))[0].accepted
    for check in ("share-group", "streams-group"):
        (hidden,) = found(check, source_kinds=FORBIDDEN)
        assert (hidden.level, hidden.counts_as) == (Level.NOT_VISIBLE, Level.WARN) and FORBIDDEN.code in hidden.seen
        assert levels(check) == {"A": Level.PASS}


def test_a_group_of_kip_848_needs_a_target_that_serves_it():
    of_848 = {"source_states": states(GroupState("Empty", kind="consumer"))}
    (fine,) = found("group-protocol", **of_848)
    assert fine.level is Level.PASS and fine.seen == "1 classic, 1 of KIP-848"
    old = BrokerSettings(7 * 24 * HOUR, False)
    assert levels("group-protocol", **of_848, target_settings=old) == {"g": Level.WARN}
    assert levels("group-protocol", **of_848, target_settings=FORBIDDEN) == {"g": Level.NOT_VISIBLE}
    alive = states(GroupState("Stable", 1, kind="consumer"))
    assert "(KIP-848)" in found("source-group-stopped", source_states=alive)[0].seen


def test_a_streams_application_is_named_with_what_becomes_of_its_internal_topics_and_a_connect_sink_by_its_group():
    internal = {"source_topics": {"t": 2, "u": 1, "g-a-changelog": 1, "g-b-repartition": 1}}
    (app,) = found("kafka-streams", **internal, target_topics={"A.g-a-changelog": 1})
    assert app.level is Level.WARN and app.subject == "g" and "by its internal topics" in app.seen
    assert "copied under another name, which the application does not read: g-a-changelog" in app.seen
    assert "not copied: g-b-repartition" in app.seen
    identity = ReplicationPolicy(PolicyKind.IDENTITY, "A", "B")
    (app,) = found("kafka-streams", **internal, target_topics={"g-a-changelog": 1}, policy=identity)
    assert "used as they are on the target: g-a-changelog" in app.seen
    (app,) = found("kafka-streams", source_states=states(GroupState("Empty", assignor="stream")))
    assert "by its assignor stream: no internal topic of its name is there" in app.seen
    (sink,) = found("connect-sink", (row("connect-s3", "t"),))
    assert sink.level is Level.WARN and sink.subject == "connect-s3" and "/stop" in sink.todo
