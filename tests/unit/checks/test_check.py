"""Each check finds its trouble, names it, and touches exactly the groups it concerns."""

import shlex
from dataclasses import replace

from migrate.checks import checklist
from migrate.checks.check import HiddenTopics, TopicShape
from migrate.mm2.chain import Window
from migrate.mm2.connector_status import ConnectorPart, ConnectorTasks
from migrate.mm2.connectors import Role
from migrate.model import (
    Commit,
    Decision,
    Failure,
    GroupState,
    Level,
    LogRange,
    OffsetSync,
)
from migrate.survey.connect_topics import ConnectTopic, Purpose
from migrate.survey.filters import Filters
from migrate.survey.group_facts import BrokerSettings
from migrate.survey.offsets_topic import GroupKind, GroupRecord
from migrate.survey.policies import Policies, Waiver
from migrate.survey.streams import Application, InternalTopic
from tests.unit.checkscene import FACTS, HOUR, NOW, ROWS, asked, blocked, found, row, shape

FORBIDDEN = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")


def levels(check, **arguments):
    return {r.subject: r.level for r in found(check, **arguments)}


def test_a_sound_cutover_has_no_block_and_says_that_its_rows_are_estimated():
    results = checklist.run(FACTS, ROWS, Policies())
    assert not [r for r in results if r.counts_as is Level.BLOCK]
    assert [r.check for r in results if r.level is Level.WARN] == ["estimated-rows"]


def test_one_cluster_on_both_sides_blocks_everything():
    assert levels("clusters-differ", target_cluster_id="id-a") == {"B": Level.BLOCK}
    assert blocked(target_cluster_id="id-a") == {"g", "h"}


def test_a_listing_that_may_be_cut_short_blocks_everything_and_not_knowing_is_no_pass():
    assert levels("listing-complete", may_describe={"A": False, "B": True}) == {"A": Level.BLOCK, "B": Level.PASS}
    unsure = found("listing-complete", may_describe={"A": None, "B": True})[0]
    assert (unsure.level, unsure.counts_as) == (Level.NOT_VISIBLE, Level.BLOCK)
    assert blocked(may_describe={"A": None, "B": True}) == {"g", "h"}


def mm2(role, *states, trace=""):
    """A connector that runs itself, with tasks in these states."""
    tasks = (ConnectorPart(number, state, trace if state == "FAILED" else "") for number, state in enumerate(states))
    return ConnectorTasks(role, (ConnectorPart(None, "RUNNING"), *tasks))


def test_a_failed_task_of_mm2s_source_connector_blocks_with_the_first_line_of_its_trace():
    failed = {"src": mm2(Role.SOURCE, "RUNNING", "FAILED", trace="x.Boom: gone")}
    (told,) = found("mm2-tasks", tasks=failed)
    assert (told.level, told.subject) == (Level.BLOCK, "src")
    assert "task 1 is FAILED: x.Boom: gone" in told.seen and "task 0" not in told.seen
    assert blocked(tasks=failed) == {"g", "h"}
    waiver = Policies(waivers=(Waiver("mm2-tasks", "src"),))
    assert blocked(tasks=failed, policies=waiver) == set()


def test_a_source_connector_that_failed_itself_blocks_and_so_does_one_of_several():
    itself = {"src": ConnectorTasks(Role.SOURCE, (ConnectorPart(None, "FAILED", "x.Boom: no"),))}
    assert levels("mm2-tasks", tasks=itself) == {"src": Level.BLOCK}
    several = {"a": mm2(Role.SOURCE, "RUNNING"), "b": mm2(Role.SOURCE, "FAILED"), "c": mm2(Role.CHECKPOINT, "RUNNING")}
    assert levels("mm2-tasks", tasks=several) == {"b": Level.BLOCK, "a, c": Level.PASS}


def test_a_failed_checkpoint_task_and_whatever_else_does_not_run_warn_and_are_never_a_pass():
    for connector in (
        mm2(Role.CHECKPOINT, "FAILED"),
        mm2(Role.SOURCE, "PAUSED"),
        mm2(Role.CHECKPOINT, "RUNNING", "PAUSED"),
        mm2(Role.SOURCE, "UNASSIGNED"),
        mm2(Role.SOURCE, "RESTARTING"),
        mm2(Role.SOURCE, "in an unknown state"),
        mm2(Role.SOURCE),
        ConnectorTasks(Role.SOURCE, (ConnectorPart(None, "STOPPED"),)),
        ConnectorTasks(Role.SOURCE, (ConnectorPart(None, "PAUSED"), ConnectorPart(0, "RUNNING"))),
    ):
        assert levels("mm2-tasks", tasks={"c": connector}) == {"c": Level.WARN}, connector
    assert blocked(tasks={"c": mm2(Role.SOURCE, "PAUSED")}) == set()


def test_what_to_do_about_a_connector_that_does_not_run_goes_by_its_state():
    def todo(*states: str) -> str:
        parts = (ConnectorPart(None, "RUNNING"), *(ConnectorPart(n, state) for n, state in enumerate(states)))
        (told,) = found("mm2-tasks", tasks={"c": ConnectorTasks(Role.SOURCE, parts)})
        return told.todo

    for stopped in ("PAUSED", "STOPPED"):
        assert "/resume" in todo(stopped) and "live worker" not in todo(stopped)
    assert "live worker" in todo("UNASSIGNED") and "/resume" not in todo("UNASSIGNED")
    assert "/resume" in todo("PAUSED", "UNASSIGNED") and "live worker" in todo("PAUSED", "UNASSIGNED")
    for other in ("RESTARTING", "in an unknown state"):
        assert "/resume" not in todo(other) and "live worker" not in todo(other) and "again" in todo(other)


def test_a_state_that_the_worker_does_not_tell_is_not_visible():
    (told,) = found("mm2-tasks", tasks={"src": Failure("NOT_TOLD", "it is rebalancing")})
    assert (told.level, told.counts_as) == (Level.NOT_VISIBLE, Level.WARN) and "rebalancing" in told.seen


def test_while_the_source_is_down_its_tasks_fail_and_that_is_a_warning():
    down = {"tasks": {"src": mm2(Role.SOURCE, "FAILED")}, "source_down": True}
    assert levels("mm2-tasks", **down) == {"src": Level.WARN}


def test_connects_own_topics_that_the_target_lacks_are_named_with_what_they_are():
    missing = (
        ConnectTopic("connect-offsets", Purpose.OFFSETS, ("connect-configs",)),
        ConnectTopic("dbhistory.x", Purpose.HISTORY),
    )
    told = found("connect-internal-topics", of_connect=missing)
    assert {r.subject: r.level for r in told} == {"connect-offsets": Level.WARN, "dbhistory.x": Level.WARN}
    assert "offsets" in told[0].seen and "connect-configs" in told[0].seen and "snapshot" in told[0].seen
    assert "Debezium" in told[1].seen and "same name" in told[1].todo
    assert blocked(of_connect=missing) == set() and found("connect-internal-topics") == []
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


def test_without_a_worker_nothing_is_said_of_tasks():
    assert found("mm2-tasks") == []


def test_a_missing_mm2_topic_warns_unless_it_was_named():
    missing = (shape(found=False), shape("offset-sync", offset_sync=1))
    assert levels("mm2-checkpoints-topic", shapes=missing) == {"checkpoints-topic": Level.WARN}
    named = (shape(found=False, named=True), shape("offset-sync", offset_sync=1))
    assert levels("mm2-checkpoints-topic", shapes=named) == {"checkpoints-topic": Level.BLOCK}


def test_a_wrong_topic_is_recognised_by_its_records_and_named():
    wrong = (shape(offset_sync=70, tombstone=2), shape("offset-sync", offset_sync=5))
    result = found("mm2-checkpoints-topic", shapes=wrong)[0]
    assert result.level is Level.BLOCK and "70 offset-sync" in result.seen
    assert "offset syncs" in result.todo and "--checkpoints-topic" in result.todo


def test_a_few_foreign_records_are_counted_and_warned_of():
    mixed = (TopicShape("B", "cp", "checkpoint", True, False, {"checkpoint": 9, "undecodable:bad-length": 1}),)
    result = found("mm2-checkpoints-topic", shapes=mixed)[0]
    assert result.level is Level.WARN and "1 undecodable:bad-length" in result.seen


def test_a_live_group_on_the_target_blocks_itself_and_no_waiver_helps():
    live = {"g": GroupState("Stable", 2, ("c1@10.0.0.1", "c2@10.0.0.2")), "h": GroupState("Empty")}
    result = found("target-group-empty", target_states=live)[0]
    assert result.level is Level.BLOCK and "c1@10.0.0.1" in result.seen
    waived = Policies(waivers=(Waiver("target-group-empty"),))
    assert blocked(policies=waived, target_states=live) == {"g"}


def test_of_many_members_some_are_named_and_all_are_counted():
    named = tuple(f"c{number}@10.0.0.1" for number in range(24))  # an adapter keeps no more
    for state, more in (
        (GroupState("Stable", 500, named), " and 490 more"),
        (GroupState("Stable", 10, named[:10]), ""),
    ):
        told = found("source-group-stopped", source_states={"g": state, "h": GroupState("Empty")})[0]
        assert told.seen.endswith("c9@10.0.0.1" + more) and "c10@" not in told.seen


def test_a_live_group_on_the_source_can_be_accepted_by_name_and_the_report_says_so():
    live = {"g": GroupState("Stable", 1), "h": GroupState("Stable", 1)}
    policies = Policies(waivers=(Waiver("source-group-stopped", "g"),))
    by_subject = {r.subject: r for r in found("source-group-stopped", policies=policies, source_states=live)}
    assert by_subject["g"].accepted and by_subject["g"].level is Level.WARN
    assert not by_subject["h"].accepted and by_subject["h"].level is Level.BLOCK
    assert blocked(policies=policies, source_states=live) == {"h"}


def test_a_group_whose_state_is_unknown_or_could_not_be_read_never_counts_as_stopped():
    for state in (GroupState("Unknown"), GroupState("Empty", 1), Failure("GROUP_AUTHORIZATION_FAILED", "no")):
        assert blocked(target_states={"g": state, "h": GroupState("Empty")}) == {"g"}


def test_a_missing_target_topic_blocks_only_the_groups_on_it():
    rows = (row("g", "t", target_partitions=None, target_log=None), row("h", "u"))
    missing = {"t": (2, "A.t", None), "u": (1, "A.u", 1)}
    assert levels("target-topic-exists", rows=rows, partitions=missing) == {"t": Level.BLOCK}
    assert blocked(rows=rows, partitions=missing) == {"g"}


def test_fewer_partitions_on_the_target_block_and_more_warn():
    assert levels("target-partitions", partitions={"t": (3, "A.t", 2)})["t"] is Level.BLOCK
    assert levels("target-partitions", partitions={"t": (2, "A.t", 3)})["t"] is Level.WARN
    assert blocked(partitions={"t": (3, "A.t", 2), "u": (1, "A.u", 1)}) == {"g"}


def test_pending_transactional_offsets_block_their_group():
    assert blocked(unstable=frozenset({"g"})) == {"g"}


def test_too_many_rereads_block_their_group_and_can_be_accepted():
    far = (row("g", around=Window(OffsetSync(0, 1, 1), None)), row("h", "u"))
    strict = Policies(max_rereads=20)
    assert blocked(rows=far, policies=strict) == {"g"}
    assert blocked(rows=far, policies=replace(strict, waivers=(Waiver("re-read-limit", "g"),))) == set()


def test_a_rewind_and_a_commit_beyond_the_log_end_are_named_by_row():
    rows = (row("g", "t", prior=Commit(90)), row("h", "u", commit=Commit(101)))
    assert levels("rewind", rows=rows) == {"g/t/0": Level.BLOCK}
    assert levels("commit-beyond-log-end", rows=rows) == {"h/u/0": Level.BLOCK}


def test_partitions_never_committed_are_named_with_what_decides_there():
    result = found("partitions-never-committed", never_committed={"g": ("t-1",)})[0]
    assert result.level is Level.WARN and "t-1" in result.seen and "auto.offset.reset" in result.todo


def test_a_misspelt_group_name_is_a_block_though_it_has_no_row():
    result = found("named-groups-exist", unknown_names=("ordrs",))[0]
    assert result.level is Level.BLOCK and result.subject == "ordrs"


def test_with_the_source_down_every_group_waits_for_a_reviewer():
    assert blocked(source_down=True) == {"g", "h"}
    policies = Policies(waivers=(Waiver("source-down", "g"),))
    assert blocked(policies=policies, source_down=True) == {"h"}
    unknown = found("groups-unknown", source_down=True, unknown_when_down=("connect-.*",))[0]
    assert unknown.level is Level.NOT_VISIBLE and unknown.subject == "connect-.*"


def test_what_only_java_can_write_or_bring_back_is_said_before_the_first_write():
    rows = (row("g", "t", 0, prior=Commit(10)), row("g", "t", 1))
    needed = found("java-needed", rows=rows)[0]
    assert needed.seen == "1 offsets that a rollback removes while others of their group stay in 1 group"
    prior = (row("g", "t", 0, prior=Commit(10, "m")),)
    assert "1 prior commits with metadata" in found("java-needed", rows=prior)[0].seen
    carried = (row("g", "t", 0, commit=Commit(50, "m")),)
    assert "1 commits with metadata" in found("java-needed", rows=carried)[0].seen
    kept = (replace(prior[0], decision=Decision.KEEP),)
    assert "1 kept commits with metadata to compare in 1 group" in found("java-needed", rows=kept)[0].seen
    assert not found("java-needed", rows=(row("g", "t", 0), row("g", "t", 1)))


def test_metadata_that_brokers_refuse_by_default_blocks_until_somebody_has_raised_their_limit():
    # Java counts UTF-16 units: 2,048 characters beyond the first plane are 4,096.
    fits, too_long = Commit(50, "x" * 4096), Commit(50, "\U0001f600" * 2049)
    assert not found("metadata-too-long", rows=(row("g", "t", 0, commit=fits),))
    rows = (row("g", "t", 0, commit=too_long),)
    block = found("metadata-too-long", rows=rows)[0]
    assert (block.level, block.seen) == (Level.BLOCK, "4098 characters")
    assert found("metadata-too-long", rows, Policies(waivers=(Waiver("metadata-too-long", None),)))[0].accepted


def test_groups_that_mm2_leaves_out_are_named():
    assert levels("mm2-group-filter", left_out_groups=("connect-s3",)) == {"connect-s3": Level.WARN}


def test_groups_only_mm2_remembers_are_named():
    assert "gone" in found("checkpointed-groups-listed", checkpointed_only=("gone",))[0].seen


def test_mm2s_group_sync_blocks_the_groups_that_it_touches_and_unknown_is_no_pass():
    assert levels("group-sync", group_sync=True) == {"g": Level.BLOCK, "h": Level.BLOCK}
    assert blocked(group_sync=True, left_out_groups=("h",)) == {"g"}
    assert blocked(group_sync=True, policies=Policies(waivers=(Waiver("group-sync"),))) == set()
    unknown = found("group-sync", group_sync=None)[0]
    assert (unknown.level, unknown.counts_as) == (Level.NOT_VISIBLE, Level.WARN)
    assert levels("group-sync") == {"B": Level.PASS}


def test_when_offsets_expire_is_a_sentence_with_a_date():
    (passed,) = found("offsets-expiry")
    assert passed.level is Level.PASS and "2026-08-08 03:00 UTC" in passed.seen


def emptied(hours_ago):
    record = GroupRecord(GroupKind.CLASSIC, "consumer", NOW - hours_ago * HOUR)
    return asked(target_records={"h": record})


def test_offsets_that_would_be_gone_within_two_hours_block_and_within_a_day_warn():
    by_subject = {r.subject: r for r in found("offsets-expiry", **emptied(167))}
    assert by_subject["h"].level is Level.BLOCK and "2026-08-01 04:00 UTC" in by_subject["h"].seen
    assert "delete the empty group" in by_subject["h"].todo
    assert blocked(**emptied(167)) == {"h"}
    assert blocked(**emptied(167), policies=Policies(waivers=(Waiver("offsets-expiry", "h"),))) == set()
    assert levels("offsets-expiry", **emptied(150))["h"] is Level.WARN
    assert set(levels("offsets-expiry", **emptied(1)).values()) == {Level.PASS}


def test_a_clock_of_ours_that_is_behind_promises_no_time_that_the_brokers_do_not_give():
    # Two hours behind: by our clock 165 hours have passed since then, by the brokers' 167.
    long_ago = GroupRecord(GroupKind.CLASSIC, "consumer", NOW - 167 * HOUR)
    just_now = GroupRecord(GroupKind.CLASSIC, "consumer", NOW)
    silent = {"now_ms": NOW - 2 * HOUR, "newest_checkpoint_ms": None}
    silent |= asked(target_records={"h": long_ago}, newest_sync_ms=None)
    assert blocked(**silent) == set()
    for seen in (
        {"newest_checkpoint_ms": NOW},
        asked(target_records={"h": long_ago}, newest_sync_ms=NOW),
        asked(target_records={"h": long_ago, "k": just_now}, newest_sync_ms=None),
    ):
        assert blocked(**silent | seen) == {"h"}, seen
        (told,) = [r for r in found("offsets-expiry", **silent | seen) if r.subject == "h"]
        assert "reckoned at 2026-08-01 03:00 UTC" in told.seen


def test_a_retention_of_an_hour_blocks_new_groups_too():
    assert blocked(**asked(target_settings=BrokerSettings(HOUR, True))) == {"g", "h"}


def test_an_expiry_that_nobody_can_tell_says_what_to_do():
    unknown = {r.subject: r for r in found("offsets-expiry", **asked(target_records=FORBIDDEN))}["h"]
    assert (unknown.level, unknown.counts_as) == (Level.NOT_VISIBLE, Level.WARN)
    assert unknown.seen.startswith("unknown") and "start a consumer of the group at once" in unknown.todo


def test_a_group_that_is_alive_on_the_target_is_told_once():
    assert "g" not in levels("offsets-expiry", target_states={"g": GroupState("Stable", 1), "h": GroupState("Empty")})


def test_share_groups_and_streams_groups_block_and_are_never_passed_unseen():
    kinds = {"sharers": "share", "topology": "streams"}
    assert levels("share-group", other_kinds=kinds) == {"sharers": Level.BLOCK}
    assert levels("streams-group", other_kinds=kinds) == {"topology": Level.BLOCK}
    accepted = found("share-group", other_kinds=kinds, policies=Policies(waivers=(Waiver("share-group", "sharers"),)))
    assert accepted[0].accepted
    for check in ("share-group", "streams-group"):
        (hidden,) = found(check, other_kinds=FORBIDDEN)
        assert (hidden.level, hidden.counts_as) == (Level.NOT_VISIBLE, Level.WARN) and FORBIDDEN.code in hidden.seen
        assert levels(check) == {"A": Level.PASS}


def test_commits_that_move_without_members_are_named_with_how_far():
    (moving,) = found("commits-moving", **asked(moving_on_source={"g": ("t-0: 50 to 60",)}))
    assert moving.level is Level.WARN and "t-0: 50 to 60" in moving.seen and "assign()" in moving.todo
    assert levels("commits-moving", **asked(moving_on_target={"h": ("A.u-0: 5 to 6",)})) == {"h": Level.WARN}
    alive = {"g": GroupState("Stable", 1), "h": GroupState("Empty")}
    assert not found("commits-moving", source_states=alive, **asked(moving_on_source={"g": ("t-0: 50 to 60",)}))


def test_a_group_of_kip_848_needs_a_target_that_serves_it():
    states = {"g": GroupState("Empty", kind="consumer"), "h": GroupState("Empty")}
    (fine,) = found("group-protocol", source_states=states)
    assert fine.level is Level.PASS and fine.seen == "1 classic, 1 of KIP-848"
    old = asked(target_settings=BrokerSettings(7 * 24 * HOUR, False))
    assert levels("group-protocol", source_states=states, **old) == {"g": Level.WARN}
    hidden = asked(target_settings=FORBIDDEN)
    assert levels("group-protocol", source_states=states, **hidden) == {"g": Level.NOT_VISIBLE}
    alive = {"g": GroupState("Stable", 1, kind="consumer"), "h": GroupState("Empty")}
    assert "(KIP-848)" in found("source-group-stopped", source_states=alive)[0].seen


def test_a_streams_application_is_named_with_what_becomes_of_its_internal_topics():
    internal = (
        InternalTopic("g-a-changelog", "A.g-a-changelog", True),
        InternalTopic("g-b-repartition", "A.g-b-repartition", False),
    )
    (app,) = found("kafka-streams", applications={"g": Application(("assignor stream",), internal)})
    assert app.level is Level.WARN and app.subject == "g"
    assert "copied under another name, which the application does not read: g-a-changelog" in app.seen
    assert "not copied: g-b-repartition" in app.seen
    same = (InternalTopic("g-a-changelog", "g-a-changelog", True),)
    (app,) = found("kafka-streams", applications={"g": Application(("internal topics",), same)})
    assert "used as they are on the target: g-a-changelog" in app.seen


def test_a_connect_sink_is_named_by_its_group_and_what_is_said_of_all_is_the_same():
    rows = (row("connect-s3", "t"),)
    (sink,) = found("connect-sink", rows=rows)
    assert sink.level is Level.WARN and sink.subject == "connect-s3" and "/stop" in sink.todo


def test_an_mm2_that_has_not_emitted_for_more_than_an_hour_is_named():
    assert levels("old-offset-syncs") == levels("old-checkpoints") == {"B": Level.PASS}
    assert levels("old-offset-syncs", **asked(newest_sync_ms=NOW - 3 * HOUR)) == {"B": Level.WARN}
    assert levels("old-offset-syncs", **asked(newest_sync_ms=FORBIDDEN)) == {"B": Level.NOT_VISIBLE}
    assert not found("old-offset-syncs", **asked(newest_sync_ms=None))
    (old,) = found("old-checkpoints", newest_checkpoint_ms=NOW - 25 * HOUR)
    assert old.level is Level.WARN and "2026-07-31 02:00 UTC" in old.seen and "25 hours" in old.seen


def test_what_this_machines_clock_has_not_come_to_is_neither_old_nor_new():
    (ahead,) = found("old-checkpoints", newest_checkpoint_ms=NOW + 2 * HOUR)
    assert ahead.level is Level.NOT_VISIBLE and ahead.counts_as is Level.WARN
    assert "of 2026-08-01 05:00 UTC, and by this machine's clock it is 2026-08-01 03:00 UTC" in ahead.seen
    assert levels("old-offset-syncs", **asked(newest_sync_ms=NOW + HOUR)) == {"B": Level.NOT_VISIBLE}
    assert levels("old-offset-syncs", **asked(newest_sync_ms=NOW + HOUR // 60)) == {"B": Level.PASS}


def test_a_target_topic_that_others_write_to_is_named():
    (foreign,) = found("target-topic-dedicated", foreign_records={"t": 7})
    assert foreign.level is Level.WARN and foreign.subject == "t" and "7 records" in foreign.seen


def test_a_row_that_the_targets_retention_has_moved_is_named_where_nothing_was_compared():
    late = row("g", "t", target_log=LogRange(70, 100))
    assert levels("target-retention", rows=(late,)) == {"g/t/0": Level.WARN}
    assert not found("target-retention", rows=(replace(late, missing_on_target=0),))
    assert not found("target-retention")


def test_topics_that_a_cluster_does_not_show_block_if_the_flow_has_them_and_warn_otherwise():
    def level(**hidden):
        (result,) = found("topics-visible", hidden={"A": HiddenTopics(**hidden)})
        return result

    assert level().level is Level.PASS
    blocked = level(concerned=("orders",), others=("x",))
    assert blocked.counts_as is Level.BLOCK
    assert "DESCRIBE, and READ to read their records, on topic orders on A" in blocked.todo
    assert level(others=("x",)).counts_as is Level.WARN
    unknown = level(unknown="CLUSTER_AUTHORIZATION_FAILED (no)")
    assert (unknown.level, unknown.counts_as) == (Level.NOT_VISIBLE, Level.WARN)
    waived = found(
        "topics-visible", hidden={"A": HiddenTopics(("orders",))}, policies=Policies((Waiver("topics-visible"),))
    )
    assert waived[0].accepted
