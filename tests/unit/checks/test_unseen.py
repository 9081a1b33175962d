"""What nobody has seen is never a pass: each check without its information says so, and counts as its block or warn."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from migrate.checks.rights import Health
from migrate.cli import doctor
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import Decision, Failure, Level, LogRange, OffsetSync, Scope, Side, TopicPartition
from migrate.plan.build import plan_of
from migrate.session.clusters import Endpoint
from migrate.survey.cluster import BrokerSettings
from migrate.survey.connect_topics import ConnectTopic, Purpose
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies, Waiver
from migrate.survey.survey import Clusters, CopyEnd, PlanRequest
from migrate.survey.take import take_survey
from tests.builders import make_check
from tests.fakes import EMPTY, FakeClock, FakeCluster, FakeGroupFacts, NoProgress, Script
from tests.unit.applyscene import Scene
from tests.unit.checkscene import WEEK, blocked, found, row
from tests.unit.plans import plan
from tests.unit.plans import row as planned_row
from tests.unit.planscene import planned, planned_flow, rows_of, world

REFUSED = Failure("GROUP_AUTHORIZATION_FAILED", "not allowed")
UNSEEN_WARN, UNSEEN_BLOCK = (Level.NOT_VISIBLE, Level.WARN), (Level.NOT_VISIBLE, Level.BLOCK)


def verdicts(check, **arguments):
    return {r.subject: (r.level, r.counts_as) for r in found(check, **arguments)}


def of_plan(made, check):
    return {c.subject: c for c in made.header.checks if c.check == check}


PASS = (Level.PASS, Level.PASS)
T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)
SYNC = OffsetSync(0, 40, 40)
NOWHERE = row("g", "t", 0, target_partitions=None, target_log=None)
LOST = row("g", "t", 0, source_log=Failure("X", "no answer"))
NO_REREADS = row("g", "t")._replace(rereads_at_most=None, rereads_estimate=None)
NO_END = row("g", "t")._replace(source_log_end=None)
EMPTY_G, EMPTY_H = {"g": EMPTY}, {"h": EMPTY}
AT_ONCE = {"source_seconds_apart": 0.0, "target_seconds_apart": 0.0}
OLD = {"target_settings": BrokerSettings(WEEK.retention_ms, False)}


@pytest.mark.parametrize(
    ("check", "changes", "expected"),
    [
        ("target-recreated", {"copy_ends": {T0: CopyEnd(REFUSED, SYNC)}}, {"t": UNSEEN_BLOCK}),
        # The log may have outgrown what it lost: the check refutes, and never confirms.
        (
            "target-recreated", {"copy_ends": {T0: CopyEnd(100, None), U0: CopyEnd(100, SYNC)}},
            {"B": (Level.NOT_VISIBLE, Level.PASS), "1 topic": PASS},
        ),
        ("two-looks", {}, {"B": PASS}),
        # Groups that are listed need no second look.
        ("two-looks", {"target_states": EMPTY_G | EMPTY_H} | AT_ONCE, {}),
        ("inside-target-log", {"rows": (NOWHERE, row("g", "t", 1))}, {"1 row": PASS}),
        ("inside-target-log", {"rows": (NOWHERE,)}, {}),
        ("rewind", {"rows": (NOWHERE, row("g", "t", 1))}, {"1 row": PASS}),
        ("rewind", {"rows": (NOWHERE,)}, {}),
        ("commit-beyond-log-end", {"rows": (LOST,)}, {}),
        ("re-read-limit", {"rows": (row("h", "u"), NO_REREADS)}, {"B": UNSEEN_WARN}),
        ("unread-on-target-only", {"rows": (NO_END,), "failback": True}, {"g/t/0": UNSEEN_BLOCK}),
        ("group-protocol", {"source_states": EMPTY_H} | OLD, {"A": UNSEEN_WARN}),
        ("group-protocol", {"source_states": {"g": REFUSED} | EMPTY_H} | OLD, {"A": UNSEEN_WARN}),
    ],
)  # fmt: skip
def test_what_a_check_could_not_judge_it_does_not_pass(check, changes, expected):
    assert verdicts(check, **changes) == expected


def test_what_was_not_seen_is_said():
    assert "how many records 1 row will read twice" in found("re-read-limit", rows=(NO_REREADS,))[0].seen
    (served,) = found("group-protocol", source_states=EMPTY_H)
    assert served.level is Level.PASS and "1 unknown" in served.seen


# --- partitions -------------------------------------------------------------------------------------------


def test_a_source_whose_partitions_are_not_known_is_no_pass():
    (result,) = found("target-partitions", rows=(row("g", "t"),), source_topics={})
    assert (result.level, result.counts_as) == UNSEEN_WARN
    assert result.seen == "how many A has is not known of t" and "Find out how many there were." in result.todo
    told = verdicts("target-partitions", source_topics={"u": 1})
    assert told == {"A": UNSEEN_WARN, "1 topic": (Level.PASS, Level.PASS)}


# --- topics that a cluster hides --------------------------------------------------------------------------


def looked_for_hidden(told, side=Side.SOURCE, filters=None):
    source, target, mirror = world()
    cluster = source if side is Side.SOURCE else target
    request = PlanRequest(planned_flow(), filters or Filters(), Policies(), 15.0, {})
    cluster.hosted = lambda: told(cluster)
    clusters = Clusters(source, target, mirror, looks_for_hidden=True)
    made = plan_of(take_survey(request, clusters, FakeClock(), NoProgress()))
    return of_plan(made, "topics-visible")[cluster.alias]


def test_an_answer_that_lacks_a_topic_of_the_flow_is_never_it_shows_us_all():
    def created_after(source: FakeCluster) -> frozenset[str]:
        told = frozenset(source.topics())
        source.ranges[TopicPartition("new", 0)] = LogRange(0, 0)
        return told

    result = looked_for_hidden(lambda source: frozenset(source.topics()) - {"u"})
    assert (result.level, result.counts_as) == UNSEEN_WARN and "PARTIAL_ANSWER" in result.seen
    assert looked_for_hidden(lambda source: frozenset()).level is Level.NOT_VISIBLE
    for whole in (lambda source: frozenset(source.topics()), created_after):
        assert looked_for_hidden(whole).level is Level.PASS


@pytest.mark.parametrize(
    ("side", "hidden", "filters", "level"),
    [
        (Side.SOURCE, "orders", Filters(), Level.BLOCK),
        (Side.SOURCE, "orders", Filters.from_options(topics=["t"]), Level.WARN),
        (Side.TARGET, "A.orders", Filters(), Level.BLOCK),
        (Side.TARGET, "billing", Filters(), Level.WARN),
        (Side.SOURCE, "__consumer_offsets", Filters(), Level.PASS),
        (Side.TARGET, "__consumer_offsets", Filters(), Level.PASS),
    ],
)
def test_a_hidden_topic_blocks_only_where_the_plan_is_about_it(side, hidden, filters, level):
    result = looked_for_hidden(lambda cluster: frozenset(cluster.topics()) | {hidden}, side, filters)
    assert result.level is level and (hidden in result.seen) is (level is not Level.PASS)


def test_connects_own_topics_that_a_cluster_may_hide_are_not_known_to_be_absent():
    check, unknown = "connect-internal-topics", Failure("CLUSTER_AUTHORIZATION_FAILED", "no")
    connects = (ConnectTopic("connect-offsets", Purpose.OFFSETS),)
    assert verdicts(check, source_hidden=unknown) == {"A": UNSEEN_WARN}
    named = verdicts(check, source_hidden=unknown, connect_topics=connects)
    assert named == {"A": UNSEEN_WARN, "connect-offsets": (Level.WARN, Level.WARN)}
    (told,) = found(check, source_hidden=unknown)
    assert "CLUSTER_AUTHORIZATION_FAILED" in told.seen and told.todo
    # A source that tells all has none, whatever the target does.
    for hidden in ({}, {"source_hidden": frozenset()}, {"source_hidden": frozenset(), "target_hidden": unknown}):
        assert found(check, **hidden) == []
    assert found(check, source_hidden=unknown, source_down=True)[0].seen.startswith("the source is down")


@pytest.mark.parametrize("told", [{}, {Side.SOURCE: REFUSED}], ids=["not asked", "refused"])
@pytest.mark.parametrize("topics", [("orders",), ("orders", "connect-offsets")])
def test_the_doctor_calls_no_cluster_well_that_may_hide_connects_own_topics(told, topics):
    flow = planned_flow()
    shown = {Side.SOURCE: dict.fromkeys(topics, 1), Side.TARGET: {"connect-offsets": 1}}
    groups: dict[Side, frozenset[str]] = {Side.SOURCE: frozenset(), Side.TARGET: frozenset()}

    def examined(told):
        views = doctor.ClusterViews(topics=shown, groups=groups, hosted=told)
        return doctor._connect_topics(flow, views, FakeGroupFacts())

    (line,) = examined(told)
    assert line.health is Health.WARN
    assert line.seen.startswith("A may have more of them: a cluster does not say which topics it hides (")
    assert "grant DESCRIBE on the cluster" in line.todo
    everything = {Side.SOURCE: frozenset(topics), Side.TARGET: frozenset({"connect-offsets"})}
    (line,) = examined(everything)
    assert line.health is Health.OK
    (line,) = examined(everything | {Side.SOURCE: frozenset({"other"})})
    assert line.health is Health.WARN and "PARTIAL_ANSWER" in line.seen


@pytest.mark.parametrize(("code", "said"), [("REQUEST_TIMED_OUT", True), ("UNKNOWN_SERVER_ERROR", False)])
def test_where_javas_client_alone_gets_no_answer_the_doctor_names_the_addresses_that_it_does_not_try(
    code, said, monkeypatch
):
    flow = planned_flow()
    told = SimpleNamespace(hosted_topics=lambda: Failure(code, "no answer"))
    monkeypatch.setattr(doctor, "KafkaJava", lambda *_: told)
    spark = SimpleNamespace(machine=None)
    (line,) = doctor._java_client("source A", spark, Endpoint(flow.source, 5), doctor.ClusterViews())
    assert line.health is Health.FAIL and code in line.seen
    assert ("-Djava.net.preferIPv6Addresses=true" in line.todo) is said


# --- copies that were created anew ------------------------------------------------------------------------


# --- two looks --------------------------------------------------------------------------------------------


def test_without_a_settle_time_one_listing_does_not_make_a_group_absent():
    made = planned(*world(), settle=0.0)
    looks = of_plan(made, "two-looks")
    assert {s: (c.level, c.counts_as) for s, c in looks.items()} == {"B": UNSEEN_BLOCK}
    assert looks["B"].scope is Scope.CLUSTER and "--accept two-looks:B" in looks["B"].todo
    assert {decision for decision, _, _ in rows_of(made).values()} == {Decision.BLOCK}
    apart = of_plan(planned(*world(), settle=1.5), "two-looks")
    assert apart["B"].level is Level.PASS, "timed by the clock, not by the option"
    assert blocked(target_seconds_apart=0.0) == {"g", "h"}


def test_two_readings_of_log_ends_at_the_same_time_block_and_can_be_accepted_by_name():
    producers = of_plan(planned(*world(), settle=0.0), "producers-stopped")
    assert {s: (c.level, c.counts_as) for s, c in producers.items()} == {"A": UNSEEN_BLOCK}
    waivers = (Waiver("producers-stopped", "A"), Waiver("two-looks", "B"))
    made = planned(*world(), settle=0.0, policies=Policies(waivers=waivers))
    assert made.is_clean()
    # What was accepted is that nobody knows: a log that has grown at apply is drift all the same.
    assert not made.accepted("producers-stopped", "t")


# --- commits that move ------------------------------------------------------------------------------------


def test_commits_that_could_not_be_read_a_second_time_do_not_stand_still():
    source, target, mirror = world()
    source.when("commits", lambda: source.calls["commits"] == 1 and source.script("commits", "g", Script(REFUSED)))
    moving = of_plan(planned(source, target, mirror), "commits-moving")
    assert {s: (c.level, c.counts_as) for s, c in moving.items()} == {"g": UNSEEN_WARN}
    assert REFUSED.code in moving["g"].seen and moving["g"].todo


def test_a_group_that_is_missing_from_the_second_answer_is_named():
    source, target, mirror = world()
    commits = source.commits
    source.commits = lambda *asked, **how: {} if source.calls["commits"] else commits(*asked, **how)
    moving = of_plan(planned(source, target, mirror), "commits-moving")
    assert set(moving) == {"g", "h"} and "NO_ANSWER" in moving["g"].seen


# --- MM2's group sync at apply ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "words"),
    [("MM2 sets none", "MM2 sets none"), ("no file was given", "no file was given"), ("", "not looked at either")],
)  # fmt: skip
def test_an_apply_without_mm2s_configuration_says_that_it_did_not_look_at_its_group_sync(tmp_path, seen, words):
    checks = (make_check("group-sync", "B", level=Level.PASS, seen=seen),) if seen else ()
    scene = Scene(plan(planned_row("g"), checks=checks), tmp_path)
    notes = " ".join(scene.apply(execute=False, synced=None).assessment.notes)
    assert "group sync" in notes and "was not looked at" in notes and words in notes.partition("When the plan")[2]
    assert not [note for note in scene.apply().assessment.notes if "group sync" in note]
    assert not [note for note in scene.rollback(synced=None).assessment.notes if "group sync" in note]


def test_on_the_way_back_nobody_knows_whether_another_mm2_sets_offsets():
    there = replace(planned_flow(), group_sync=False)
    assert there.synced(["g"]) == frozenset() and there.reversed().synced(["g"]) is None
    told = verdicts("group-sync", failback=True, group_sync=there.reversed().group_sync)
    assert told == {"B": UNSEEN_WARN}


# --- brothers ---------------------------------------------------------------------------------------------


def test_with_the_source_down_no_commit_is_known_to_lie_inside_its_log():
    source, target, mirror = world()
    mirror.latest = {CheckpointKey("g", "A.t", 0): CheckpointRecord(55, 55, "", 1, 1)}
    told = of_plan(planned(source, target, mirror, down=True), "commit-beyond-log-end")
    assert {s: (c.level, c.counts_as) for s, c in told.items()} == {"A": UNSEEN_WARN}


def test_a_group_whose_kind_nothing_tells_might_be_a_share_or_a_streams_group():
    for check in ("share-group", "streams-group"):
        (result,) = found(check, source_kinds={"billing": "unknown"})
        assert (result.subject, result.level, result.counts_as) == ("billing", *UNSEEN_BLOCK)
        assert "--accept share-group:GROUP --accept streams-group:GROUP" in result.todo
        (accepted,) = found(check, source_kinds={"billing": "unknown"}, policies=Policies(waivers=(Waiver(check),)))
        assert accepted.accepted
    both = found("share-group", source_kinds={"who": "unknown", "sharers": "share"})
    assert [(r.subject, r.level) for r in both] == [("sharers", Level.BLOCK), ("who", Level.NOT_VISIBLE)]
