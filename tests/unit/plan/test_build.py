"""From two clusters and MM2's topics to a plan: every commit one row, in the order that safety needs."""

from threading import Event

import pytest

from migrate.commit_table import GroupCommits
from migrate.errors import ClusterError
from migrate.mm2.config_file import client_flow
from migrate.mm2.connector_status import ConnectorPart, ConnectorTasks
from migrate.mm2.connectors import Role
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import Commit, Decision, Failure, GroupState, Level, LogRange, TopicPartition
from migrate.plan.plan import PlannedActivity
from migrate.plan.rows import translate
from migrate.show.plan_table import Page, table
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import GroupKind, GroupRecord, PastCommit
from migrate.survey.policies import Policies, Rewind, Uncommitted, Untranslatable, Waiver
from migrate.survey.survey import Clusters, PlanRequest
from migrate.survey.take import take_survey
from tests.fakes import ALIVE, EMPTY, FakeClock, FakeCluster, FakeGroupFacts, NoProgress
from tests.unit.planscene import SYNCS, FakeMirror, checks_of, planned, planned_flow, rows_of, world


def test_what_a_worker_tells_of_mm2s_tasks_is_in_the_plan():
    class Worker:
        where = "the worker"

        def tasks(self):
            return {
                "src": ConnectorTasks(Role.SOURCE, (ConnectorPart(None, "RUNNING"), ConnectorPart(0, "FAILED", "Boom")))
            }

    plan = planned(*world(), worker=Worker())
    assert [row.decision for row in plan.rows] == [Decision.BLOCK] * 3
    assert checks_of(plan, "mm2-tasks") == ["src"]


def test_connects_own_topics_without_a_copy_of_the_same_name_are_in_the_plan():
    source, target, mirror = world()
    for topic in ("my-offsets", "my-configs", "app-offsets", "app-configs"):
        source.ranges[TopicPartition(topic, 0)] = LogRange(0, 1)
    target.ranges[TopicPartition("my-configs", 0)] = LogRange(0, 1)
    facts = FakeGroupFacts(compacted=frozenset({"my-offsets", "my-configs"}))
    plan = planned(source, target, mirror, source_groups=facts)
    assert checks_of(plan, "connect-internal-topics") == ["my-offsets"] and plan.is_clean()


def test_a_group_of_unknown_kind_inside_the_filters_keeps_a_plan_from_being_clean_until_somebody_says_what_it_is():
    facts = FakeGroupFacts(kinds={"g": "consumer", "h": "consumer", "worker": "other", "new": "unknown"})
    checks = ("share-group", "streams-group")
    plan = planned(*world(), source_groups=facts)
    assert {(c.check, c.subject) for c in plan.blocks()} == {(check, "new") for check in checks}
    assert not plan.is_clean() and not plan.is_clean_to_apply()
    assert "share-group:GROUP" in "\n".join(table(plan, plan.rows, Page("", 200)))
    for asked in (
        {"filters": Filters.from_options(exclude_groups=["new"])},
        {"policies": Policies(waivers=tuple(Waiver(check, "new") for check in checks))},
    ):
        assert planned(*world(), source_groups=facts, **asked).is_clean()


def test_every_commit_becomes_one_row():
    assert rows_of(planned(*world())) == {
        ("g", "t", 0): (Decision.SET, 51, "translated"),
        ("g", "t", 1): (Decision.SET, 60, "translated"),
        ("h", "u", 0): (Decision.SET, 91, "translated"),
    }


def test_a_commit_at_offset_0_is_a_commit():
    source, target, mirror = world()
    source.commit("g", "t", 0, 0)
    made = planned(source, target, mirror)
    assert rows_of(made).keys() == {("g", "t", 0), ("g", "t", 1), ("h", "u", 0)}
    assert [row.source_committed for row in made.rows] == [0, 60, 100]


def test_a_sound_world_gives_a_clean_plan():
    plan = planned(*world())
    assert plan.is_clean()
    assert plan.header.target_topic_ids == {"A.t": "id-of-t", "A.u": "id-of-u"}
    assert plan.header.source_topic_ids == {"t": "id-of-source-t", "u": "id-of-source-u"}


def test_topic_ids_are_read_before_what_they_vouch_for():
    source, target, mirror = world()
    del target.ranges[TopicPartition("mm2-offsets.A.internal", 0)]  # which is pinned by itself
    order: list[str] = []
    source.on_call = lambda call: order.append(f"A {call}")
    target.on_call = lambda call: order.append(f"B {call}")
    planned(source, target, mirror)
    assert order.index("A topic_ids") < order.index("A commits")
    assert order.index("B topic_ids") < order.index("B log_ranges")


def test_the_same_world_and_clock_give_the_same_fingerprint_and_any_difference_another():
    source, target, mirror = world()
    first = planned(source, target, mirror).fingerprint
    assert planned(*world()).fingerprint == first
    source.commit("h", "u", 0, 99)
    assert planned(source, target, mirror).fingerprint != first


def test_rows_and_filtered_add_up_to_the_commits_read():
    source, target, mirror = world()
    source.commit("console-consumer-7", "t", 0, 1)
    source.commit("__internal", "t", 0, 1)
    filters = Filters.from_options(exclude_groups=["h"])
    counts = planned(source, target, mirror, filters).header.counts
    filtered = sum(count for name, count in counts.items() if name.startswith("filtered:"))
    assert counts["commits_read"] == 5 and counts["rows"] == 2 and filtered == 3
    assert counts["filtered:default-exclude"] == 2 and counts["filtered:exclude-group"] == 1


def test_connect_groups_are_in_the_plan_though_mm2_leaves_them_out():
    source, target, mirror = world()
    source.commit("connect-sink", "t", 0, 5)
    assert ("connect-sink", "t", 0) in rows_of(planned(source, target, mirror))


def test_a_missing_target_topic_is_a_row_and_not_a_gap():
    source, target, mirror = world()
    source.ranges[TopicPartition("new", 0)] = LogRange(0, 9)
    source.commit("h", "new", 0, 3)
    plan = planned(source, target, mirror)
    assert rows_of(plan)["h", "new", 0] == (Decision.BLOCK, None, "target-topic-missing")
    assert rows_of(plan)["h", "u", 0] == (Decision.BLOCK, 91, "target-topic-exists")
    assert rows_of(plan)["g", "t", 0][0] is Decision.SET


def test_target_log_ends_are_pinned_before_the_sources_and_commits_before_both():
    source, target, mirror = world()
    del target.ranges[TopicPartition("mm2-offsets.A.internal", 0)]  # which is pinned by itself
    order: list[str] = []
    source.on_call = lambda call: order.append(f"A {call}")
    target.on_call = lambda call: order.append(f"B {call}")
    planned(source, target, mirror)
    assert order.index("A commits") < order.index("B log_ranges") < order.index("A log_ranges")


def test_a_group_whose_commits_are_refused_is_an_error_and_not_a_smaller_plan():
    from migrate.model import Failure
    from tests.fakes import Script

    source, target, mirror = world()
    source.script("commits", "g", Script(Failure("GROUP_AUTHORIZATION_FAILED", "not allowed")))
    with pytest.raises(ClusterError, match="'g'.*GROUP_AUTHORIZATION_FAILED"):
        planned(source, target, mirror)


def test_pending_transactional_offsets_block_their_group_and_its_rows_are_still_shown():
    source, target, mirror = world()
    source.unstable = {"g"}
    plan = planned(source, target, mirror)
    assert rows_of(plan)["g", "t", 0] == (Decision.BLOCK, 51, "pending-transactions")
    assert rows_of(plan)["h", "u", 0][0] is Decision.SET


def test_a_target_group_that_two_listings_do_not_show_is_absent_and_the_listings_are_a_settle_time_apart():
    source, target, mirror = world()
    clock = FakeClock()
    plan = planned(source, target, mirror, settle=15.0, clock=clock)
    assert clock.waited == 15.0
    states = {(s.side, s.group): s.state for s in plan.header.group_states}
    assert states["target", "g"] == "Absent" and states["source", "g"] == "Empty"


def test_a_group_that_appears_at_the_second_look_blocks():
    source, target, mirror = world()

    def join(call: str) -> None:
        if call == "groups" and target.calls["groups"] == 1:
            target.states["g"] = ALIVE

    target.on_call = join
    plan = planned(source, target, mirror)
    assert rows_of(plan)["g", "t", 0] == (Decision.BLOCK, 51, "target-group-empty")


def test_a_group_that_is_alive_at_the_first_look_only_blocks_too():
    source, target, mirror = world()
    source.states["g"] = ALIVE

    def leave(call: str) -> None:
        if call == "groups" and source.calls["groups"] == 1:
            source.states["g"] = GroupState("Empty")

    source.on_call = leave
    assert rows_of(planned(source, target, mirror))["g", "t", 0][2] == "source-group-stopped"


@pytest.mark.parametrize("rewind", [Rewind.BLOCK, Rewind.KEEP])
def test_a_prior_offset_beyond_the_targets_log_blocks_its_group_and_the_check_does_not_pass(rewind):
    source, target, mirror = world()
    target.commit("g", "A.t", 0, 4100)
    plan = planned(source, target, mirror, policies=Policies(rewind=rewind))
    (found,) = (c for c in plan.header.checks if c.check == "inside-target-log")
    assert (found.level, found.subject) == (Level.BLOCK, "g/t/0") and "--rewind set" in found.todo
    assert "g" in plan.blocked_groups()
    assert not planned(source, target, mirror, policies=Policies(rewind=Rewind.SET)).blocked_groups()


def test_partitions_never_committed_are_named_or_given_a_row():
    source, target, mirror = world()
    del source.offsets["g"][TopicPartition("t", 1)]
    assert checks_of(planned(source, target, mirror), "partitions-never-committed") == ["g"]
    plan = planned(source, target, mirror, policies=Policies(uncommitted=Uncommitted.EARLIEST))
    assert rows_of(plan)["g", "t", 1] == (Decision.SET, 0, "never-committed")
    assert plan.header.counts["uncommitted_added"] == 1
    assert checks_of(plan, "partitions-never-committed") == []


def test_a_name_in_the_groups_file_that_no_group_has_blocks(tmp_path):
    wave = tmp_path / "wave"
    wave.write_text("g\nordrs\n")
    plan = planned(*world(), filters=Filters.from_options(groups_file=wave))
    assert checks_of(plan, "named-groups-exist") == ["ordrs"]
    assert not plan.is_clean() and {row.group for row in plan.rows} == {"g"}


def test_commits_that_move_while_nobody_is_a_member_are_found_by_the_second_reading():
    source, target, mirror = world()
    target.commit("g", "A.t", 0, 5)

    def go_on(call: str) -> None:
        if call == "commits" and source.calls["commits"] == 1:
            source.commit("g", "t", 1, 61)
        if call == "commits" and target.calls["commits"] == 1:
            target.commit("g", "A.t", 0, 6)

    source.on_call = target.on_call = go_on
    plan = planned(source, target, mirror)
    moving = [c.seen for c in plan.header.checks if c.check == "commits-moving"]
    assert len(moving) == 2 and "t-1: 60 to 61" in moving[0] and "A.t-0: 5 to 6" in moving[1]
    assert not checks_of(planned(*world()), "commits-moving")


class Meanwhile(FakeClock):
    """A clock while whose waits something happens."""

    def __init__(self, happens):
        super().__init__()
        self.happens = happens

    def wait(self, seconds):
        super().wait(seconds)
        self.happens()


def moving_after(clusters, happens, **more):
    """Return what is said of commits that move, by group, where something happens while the plan waits."""
    plan = planned(*clusters, clock=Meanwhile(happens), **more)
    return {c.subject: c.seen for c in plan.header.checks if c.check == "commits-moving"}


@pytest.mark.parametrize("before", ["Absent", "Empty"])
def test_the_first_commits_of_a_group_on_the_target_are_commits_that_move(before):
    source, target, mirror = world()
    if before == "Empty":
        target.states["g"] = GroupState("Empty")

    def sync():
        target.commit("g", "A.t", 0, 95)

    assert "A.t-0: none to 95" in moving_after((source, target, mirror), sync)["g"]


def test_a_commit_on_the_target_on_another_partition_than_before_moves():
    source, target, mirror = world()
    target.commit("g", "A.t", 0, 5)
    moving = moving_after((source, target, mirror), lambda: target.commit("g", "A.t", 1, 7))
    assert "A.t-1: none to 7" in moving["g"] and "A.t-0" not in moving["g"]


def test_the_first_commit_on_a_partition_of_the_source_moves_unless_the_filters_take_it():
    source, target, mirror = world()

    def go_on():
        source.commit("h", "t", 1, 77)

    assert "t-1: none to 77" in moving_after((source, target, mirror), go_on)["h"]
    only_u = Filters.from_options(topics=("u",))
    assert not moving_after(world(), lambda: None)
    source, target, mirror = world()
    assert not moving_after((source, target, mirror), go_on, filters=only_u)


def test_what_the_clusters_tell_of_their_groups_reaches_the_checks():
    source, target, mirror = world()
    target.commit("h", "A.u", 0, 1)
    since = FakeClock().now_ms() - 7 * 24 * 3_600_000
    on_target = FakeGroupFacts(records={"h": GroupRecord(GroupKind.CLASSIC, "consumer", since)})
    on_source = FakeGroupFacts({"g": "consumer", "sharers": "share", "__hidden": "share"}, newest_ms=1)
    source.states["g"] = GroupState("Stable", 1, kind="classic", assignor="stream")
    source.ranges[TopicPartition("g-store-changelog", 0)] = LogRange(0, 1)
    plan = planned(source, target, mirror, source_groups=on_source, target_groups=on_target)
    assert on_target.asked == ["h"]
    assert checks_of(plan, "share-group") == ["sharers"]
    assert checks_of(plan, "kafka-streams") == ["g"]
    assert rows_of(plan)["h", "u", 0][2] == "offsets-expiry"
    assert [c.level for c in plan.header.checks if c.check == "old-offset-syncs"] == [Level.WARN]


def down_world() -> tuple[FakeCluster, FakeCluster, FakeMirror]:
    source, target, mirror = world()
    mirror.latest = {
        CheckpointKey("g", "A.t", 0): CheckpointRecord(55, 51, "", 1, 1000),
        CheckpointKey("h", "A.u", 0): CheckpointRecord(90, 90, "", 2, 1000),
    }
    return source, target, mirror


def test_with_the_source_down_checkpoints_stand_in_and_every_group_waits_for_a_reviewer():
    plan = planned(*down_world(), down=True)
    rows = rows_of(plan)
    assert rows["h", "u", 0] == (Decision.BLOCK, 90, "source-down")
    assert rows["g", "t", 1] == (Decision.BLOCK, None, "source-gone-without-checkpoint")
    assert plan.header.source_down and plan.header.source_cluster_id == ""
    assert checks_of(plan, "groups-unknown")


def test_with_the_source_down_an_accepted_group_is_set():
    policies = Policies(
        waivers=(Waiver("source-down", "h"), Waiver("source-down", "g")), untranslatable=Untranslatable.SKIP
    )
    rows = rows_of(planned(*down_world(), policies=policies, down=True))
    assert rows["h", "u", 0][:2] == (Decision.SET, 90)
    assert rows["g", "t", 0][:2] == (Decision.SET, 51)
    assert rows["g", "t", 1][0] is Decision.SKIP


def test_a_missing_offset_syncs_topic_is_warned_of_and_rows_fall_to_the_log_start():
    source, target, mirror = world()
    del source.ranges[TopicPartition(SYNCS, 0)]
    plan = planned(source, target, mirror)
    assert checks_of(plan, "mm2-offset-syncs-topic") == [SYNCS]
    assert rows_of(plan)["g", "t", 0][1] == 0 and plan.is_clean()


def test_a_source_that_does_not_answer_is_an_error_that_names_the_way_on():
    source, target, mirror = world()
    source.down = True
    with pytest.raises(ClusterError) as raised:
        planned(source, target, mirror)
    assert "--source-down" in raised.value.todo


def test_a_checkpointed_topic_that_the_source_does_not_show_blocks_its_group():
    source, target, mirror = world()
    mirror.latest = {CheckpointKey("g", "A.hidden", 0): CheckpointRecord(5, 5, "", 1, 1000)}
    plan = planned(source, target, mirror)
    assert checks_of(plan, "checkpointed-topics-listed") == ["g"]
    assert rows_of(plan)["g", "t", 0][0] is Decision.BLOCK and rows_of(plan)["h", "u", 0][0] is Decision.SET
    waived = Policies(waivers=(Waiver("checkpointed-topics-listed", "g"),))
    assert planned(source, target, mirror, policies=waived).is_clean()


def test_a_group_of_which_the_source_shows_no_commit_at_all_is_named_where_mm2_has_checkpointed_it():
    source, target, mirror = world()
    source.states["k"] = EMPTY
    mirror.latest = {CheckpointKey("k", "A.hidden", 0): CheckpointRecord(5, 5, "", 1, 1000)}
    plan = planned(source, target, mirror)
    assert checks_of(plan, "checkpointed-topics-listed") == ["k"] and not plan.is_clean()
    assert {row.group for row in plan.rows} == {"g", "h"}
    others = planned(source, target, mirror, filters=Filters.from_options(groups=["g", "h"]))
    assert others.is_clean(), "it is none of theirs"


def test_with_the_source_down_nobody_says_that_a_topic_is_missing_there():
    plan = planned(*down_world(), down=True)
    found = [c for c in plan.header.checks if c.check == "mm2-offset-syncs-topic"]
    assert [str(c.level) for c in found] == ["not-visible"] and "not checked" in found[0].seen


def test_a_group_option_that_reads_like_a_name_and_matches_no_group_blocks_and_a_pattern_does_not():
    plan = planned(*world(), filters=Filters.from_options(groups=["g", "ordrs", "wave-.*"]))
    assert checks_of(plan, "named-groups-exist") == ["ordrs"]
    assert not plan.is_clean() and {row.group for row in plan.rows} == {"g"}


def test_waiting_for_a_jvm_and_for_spark_is_timed_by_itself():
    source, target, mirror = world()
    clock = FakeClock()
    properties = {"bootstrap.servers": "x:1"}
    request = PlanRequest(client_flow(properties, properties, "A", "B"), Filters(), Policies(), 0.0, {})

    class Late(Clusters):
        def wait_for_commits(self):
            clock.wait(2.0)

        def wait_for_records(self):
            clock.wait(7.0)

    clusters = Late(source, target, mirror, starts_late=True)
    timings = take_survey(request, clusters, clock, NoProgress()).timings
    assert (timings["spark"], timings["commits"], timings["positions"]) == (9.0, 0.0, 0.0)


def test_offsets_that_no_group_has_committed_are_placed_as_commits_and_no_groups_commits_are_read():
    source, target, mirror = world()
    target.commit("g", "A.t", 0, 99)
    asked: list[str] = []
    source.on_call = asked.append
    clock, places = FakeClock(), GroupCommits({"g": {TopicPartition("t", 0): Commit(55)}})
    request = PlanRequest(planned_flow(), Filters(), Policies(), 15.0, {}, places=(places,))
    survey = take_survey(request, Clusters(source, target, mirror), clock, NoProgress())
    (table,) = translate(survey, places)
    commits = rows_of(planned(*world()))
    assert [(row.group, row.target_offset, row.target_prior) for row in table] == [("g", commits["g", "t", 0][1], None)]
    assert "commits" not in asked and not survey.groups and not survey.keys
    assert set(survey.growth) == {TopicPartition("t", 0)} and clock.monotonic() >= 15.0, "whether producers still write"


def test_what_reads_records_ends_when_no_record_is_to_be_read_any_more_and_before_the_second_look():
    source, target, mirror = world()
    order: list[str] = []
    for alias, cluster in (("A", source), ("B", target)):
        cluster.on_call = lambda call, alias=alias: order.append(f"{alias} {call}")
    mirror.on_call = lambda call: order.append(call)
    properties = {"bootstrap.servers": "x:1"}
    request = PlanRequest(client_flow(properties, properties, "A", "B"), Filters(), Policies(), 0.0, {})

    def hosted():
        # As late as can be: whoever ends the JVM before it is told does so by then.
        ended.wait(0.5)
        order.append("hosted")
        return frozenset(target.topics())

    class Watched(Clusters):
        def end_records(self):
            order.append("end of records")

        def end(self):
            order.append("end")
            ended.set()

    ended, target.hosted = Event(), hosted
    clusters = Watched(source, target, mirror, looks_for_hidden=True)
    take_survey(request, clusters, FakeClock(), NoProgress())
    assert "hosted" in order and "end" not in order, "a JVM that is asked goes on until it has answered"
    assert order.index("A commits") < order.index("positions"), "no older than what they are compared with"
    assert order.count("positions") == 1
    of_records = {"checkpoints", "windows", "positions"}
    before, after = set(order[: order.index("end of records")]), set(order[order.index("end of records") :])
    assert of_records <= before and not of_records & after
    assert {"A groups", "B groups"} <= after, "the second look"


def test_rows_are_sorted_by_group_topic_and_partition_in_whatever_order_the_commits_came():
    source, target, mirror = world()
    source.commit("b", "u", 0, 100)
    source.commit("b", "t", 1, 60)
    source.commit("b", "t", 0, 60)
    rows = planned(source, target, mirror).rows
    places = [("b", "t", 0), ("b", "t", 1), ("b", "u", 0), ("g", "t", 0), ("g", "t", 1), ("h", "u", 0)]
    assert [row.key for row in rows] == places


def test_the_plan_keeps_when_its_groups_committed_last_and_how_often_as_far_as_their_records_tell():
    at = {TopicPartition("t", 0): 40_000, TopicPartition("t", 1): 50_000}
    newest = {TopicPartition("t", 0): (PastCommit(35_000, 8), PastCommit(40_000, 20))}
    told = FakeGroupFacts(
        commits={
            "g": GroupRecord(GroupKind.CLASSIC, committed_ms=at, newest=newest),
            "h": GroupRecord(GroupKind.CLASSIC),
            "not-in-the-plan": GroupRecord(GroupKind.CLASSIC, committed_ms=at),
        }
    )
    assert planned(*world(), source_groups=told).header.activity == (PlannedActivity("g", 50_000, 5_000, 12),)
    refused = FakeGroupFacts(commits=Failure("TOPIC_AUTHORIZATION_FAILED", "no"))
    assert planned(*world(), source_groups=refused).header.activity == ()
