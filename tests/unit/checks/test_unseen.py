"""What nobody has seen is never a pass: each check without its information says so, and counts as its block or warn."""

from types import SimpleNamespace

import pytest

from migrate.checks.rights import Health
from migrate.cli import doctor
from migrate.model import Decision, Failure, Level, LogRange, OffsetSync, Scope, Side, TopicPartition
from migrate.session.clusters import Endpoint
from migrate.survey.cluster import BrokerSettings
from migrate.survey.connect_topics import ConnectTopic, Purpose
from migrate.survey.survey import CopyEnd
from tests.builders import make_check
from tests.fakes import EMPTY, FakeCluster, FakeGroupFacts, Script
from tests.unit.applyscene import Scene
from tests.unit.checkscene import WEEK, blocked, found, row, verdicts, waiving
from tests.unit.plans import plan
from tests.unit.plans import row as planned_row
from tests.unit.planscene import accepting, planned, planned_flow, results_of, rows_of, world

REFUSED = Failure("GROUP_AUTHORIZATION_FAILED", "not allowed")
PASS, UNSEEN_WARN, UNSEEN_BLOCK = (
    (Level.PASS, Level.PASS), (Level.NOT_VISIBLE, Level.WARN), (Level.NOT_VISIBLE, Level.BLOCK),
)  # fmt: skip
T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)
SYNC = OffsetSync(0, 40, 40)
NOWHERE = row("g", "t", 0, target_partitions=None, target_log=None)
LOST = row("g", "t", 0, source_log=Failure("X", "no answer"))
NO_REREADS = row("g", "t")._replace(rereads_at_most=None, rereads_estimate=None)
NO_END = row("g", "t")._replace(source_log_end=None)
EMPTY_G, EMPTY_H = {"g": EMPTY}, {"h": EMPTY}
AT_ONCE = {"source_seconds_apart": 0.0, "target_seconds_apart": 0.0}
OLD = {"target_settings": BrokerSettings(WEEK.retention_ms, False)}
UNKNOWN_KIND = {"source_kinds": {"who": "unknown", "sharers": "share"}}


def judged(made, check):
    return {c.subject: (c.level, c.counts_as) for c in results_of(made, check)}


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
        # A group whose kind nothing tells might be a share or a streams group.
        ("share-group", UNKNOWN_KIND, {"sharers": (Level.BLOCK, Level.BLOCK), "who": UNSEEN_BLOCK}),
        ("streams-group", UNKNOWN_KIND, {"who": UNSEEN_BLOCK}),
        ("streams-group", UNKNOWN_KIND | waiving("streams-group"), {"who": (Level.WARN, Level.WARN)}),
    ],
)  # fmt: skip
def test_what_a_check_could_not_judge_it_does_not_pass(check, changes, expected):
    assert verdicts(check, **changes) == expected


def test_what_was_not_seen_is_said():
    assert "how many records 1 row will read twice" in found("re-read-limit", (NO_REREADS,))[0].seen
    (served,) = found("group-protocol", source_states=EMPTY_H)
    assert served.level is Level.PASS and "1 unknown" in served.seen
    (unknown,) = found("streams-group", **UNKNOWN_KIND)
    assert "--accept share-group:GROUP --accept streams-group:GROUP" in unknown.todo


def test_an_answer_that_lacks_a_topic_of_the_flow_is_never_it_shows_us_all():
    def looked(told):
        source, target, mirror = world()
        source.hosted = lambda: told(source)
        return results_of(planned(source, target, mirror, hides=True), "topics-visible")[0]

    def created_after(source: FakeCluster) -> frozenset[str]:
        told = frozenset(source.topics())
        source.ranges[TopicPartition("new", 0)] = LogRange(0, 0)
        return told

    partial = looked(lambda source: frozenset(source.topics()) - {"u"})
    assert (partial.level, partial.counts_as) == UNSEEN_WARN and "PARTIAL_ANSWER" in partial.seen
    assert looked(lambda source: frozenset()).level is Level.NOT_VISIBLE
    assert looked(created_after).level is looked(lambda source: frozenset(source.topics())).level is Level.PASS
    hiding = looked(lambda source: frozenset(source.topics()) | {"orders"})
    assert hiding.level is Level.BLOCK and "orders" in hiding.seen


def test_connects_own_topics_that_a_cluster_may_hide_are_not_known_to_be_absent():
    check, unknown = "connect-internal-topics", Failure("CLUSTER_AUTHORIZATION_FAILED", "no")
    connects = (ConnectTopic("connect-offsets", Purpose.OFFSETS),)
    named = verdicts(check, source_hidden=unknown, connect_topics=connects)
    assert named == {"A": UNSEEN_WARN, "connect-offsets": (Level.WARN, Level.WARN)}
    (told,) = found(check, source_hidden=unknown)
    assert "CLUSTER_AUTHORIZATION_FAILED" in told.seen and told.todo
    # A source that tells all has none, whatever the target does.
    for hidden in ({"source_hidden": frozenset()}, {"source_hidden": frozenset(), "target_hidden": unknown}):
        assert found(check, **hidden) == []
    assert found(check, source_hidden=unknown, source_down=True)[0].seen.startswith("the source is down")


@pytest.mark.parametrize("topics", [("orders",), ("orders", "connect-offsets")])
def test_the_doctor_calls_no_cluster_well_that_may_hide_connects_own_topics(topics):
    shown = {Side.SOURCE: dict.fromkeys(topics, 1), Side.TARGET: {"connect-offsets": 1}}
    everything = {side: frozenset(names) for side, names in shown.items()}

    def examined(told):
        views = doctor.ClusterViews(topics=shown, groups=dict.fromkeys(Side, frozenset()), hosted=told)
        (line,) = doctor._connect_topics(planned_flow(), views, FakeGroupFacts())
        return line

    for told in ({}, {Side.SOURCE: REFUSED}, everything | {Side.SOURCE: frozenset({"other"})}):
        line = examined(told)
        assert line.health is Health.WARN and "grant DESCRIBE on the cluster" in line.todo
        assert line.seen.startswith("A may have more of them: a cluster does not say which topics it hides (")
    assert "PARTIAL_ANSWER" in line.seen and examined(everything).health is Health.OK


@pytest.mark.parametrize(("code", "said"), [("REQUEST_TIMED_OUT", True), ("UNKNOWN_SERVER_ERROR", False)])
def test_where_javas_client_alone_gets_no_answer_the_doctor_names_the_addresses_that_it_does_not_try(
    code, said, monkeypatch
):
    told = SimpleNamespace(hosted_topics=lambda: Failure(code, "no answer"))
    monkeypatch.setattr(doctor, "KafkaJava", lambda *_: told)
    spark, endpoint = SimpleNamespace(machine=None), Endpoint(planned_flow().source, 5)
    (line,) = doctor._java_client("source A", spark, endpoint, doctor.ClusterViews())
    assert line.health is Health.FAIL and code in line.seen
    assert ("-Djava.net.preferIPv6Addresses=true" in line.todo) is said


def test_without_a_settle_time_one_listing_makes_no_group_absent_nor_log_ends_still_until_accepted_by_name():
    made = planned(*world(), settle=0.0)
    assert judged(made, "two-looks") == {"B": UNSEEN_BLOCK} and judged(made, "producers-stopped") == {"A": UNSEEN_BLOCK}
    (looks,) = results_of(made, "two-looks")
    assert looks.scope is Scope.CLUSTER and "--accept two-looks:B" in looks.todo
    assert {decision for decision, _, _ in rows_of(made).values()} == {Decision.BLOCK}
    apart = planned(*world(), settle=1.5)
    assert judged(apart, "two-looks") == {"B": PASS}, "timed by the clock, not by the option"
    assert blocked(target_seconds_apart=0.0) == {"g", "h"}
    made = planned(*world(), settle=0.0, policies=accepting("producers-stopped:A", "two-looks:B"))
    assert made.is_clean()
    # What was accepted is that nobody knows: a log that has grown at apply is drift all the same.
    assert not made.accepted("producers-stopped", "t")


def test_commits_that_could_not_be_read_a_second_time_do_not_stand_still():
    source, target, mirror = world()
    source.when("commits", lambda: source.calls["commits"] == 1 and source.script("commits", "g", Script(REFUSED)))
    moving = planned(source, target, mirror)
    assert judged(moving, "commits-moving") == {"g": UNSEEN_WARN}
    (told,) = results_of(moving, "commits-moving")
    assert REFUSED.code in told.seen and told.todo
    source, target, mirror = world()
    commits = source.commits
    source.commits = lambda *asked, **how: {} if source.calls["commits"] else commits(*asked, **how)
    of_g, of_h = results_of(planned(source, target, mirror), "commits-moving")
    assert (of_g.subject, of_h.subject) == ("g", "h") and "NO_ANSWER" in of_g.seen


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
