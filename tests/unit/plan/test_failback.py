"""The way back: names, roles and checks of a plan whose groups leave MM2's target for its source."""

from dataclasses import replace

import pytest
from hypothesis import given

from migrate.apply.assess import ApplyClusters, RunOptions
from migrate.apply.engine import apply_plan
from migrate.apply.journal import Journal
from migrate.apply.undo import undo_plan
from migrate.errors import ClusterError
from migrate.match.protocol import Matched, Why
from migrate.mm2.flow import Mm2Runtime
from migrate.mm2.naming import ReplicationPolicy, ReversedPolicy
from migrate.model import Decision, Grade, Level, LogRange, OffsetSync, Side, TopicPartition
from migrate.plan.file import write_plan
from migrate.plan.plan import Plan
from tests.builders import make_plan
from tests.fakes import FakeClock, FakeCluster, FakeComparer, NoProgress
from tests.unit import planscene
from tests.unit.applyscene import text
from tests.unit.commands import clusters, run
from tests.unit.names import POLICIES, TOPICS
from tests.unit.pages import render
from tests.unit.planscene import SYNCS, FakeMirror, accepting, blocks_of, checks_of

WAY_THERE = planscene.planned_flow()


class FakeMirrorOfTheWayBack(FakeMirror):
    """MM2's syncs with their offsets swapped, as `MirrorReader.windows` gives them for a failback."""

    def windows(self, side, topic, pinned, questions):
        assert side is Side.TARGET and topic == SYNCS, "the syncs are on MM2's source, which is the plan's target"
        return super().windows(side, topic, pinned, questions)


def world() -> tuple[FakeCluster, FakeCluster, FakeMirrorOfTheWayBack]:
    """A and B as in `planscene`, but B's copies lie 5 further on; groups ran on B and are committed there."""
    a = FakeCluster(Side.TARGET, "A", "id-a", ids={"t": "id-of-t", "u": "id-of-u"})
    b = FakeCluster(Side.SOURCE, "B", "id-b")
    mirror = FakeMirrorOfTheWayBack()
    for topic, partition in (("t", 0), ("t", 1), ("u", 0)):
        a.ranges[TopicPartition(topic, partition)] = LogRange(0, 100)
        b.ranges[TopicPartition(f"A.{topic}", partition)] = LogRange(5, 105)
        mirror.history[topic, partition] = [OffsetSync(i, 10 * i + 5, 10 * i) for i in range(10)]
    a.ranges[TopicPartition(SYNCS, 0)] = LogRange(0, 30)
    b.ranges[TopicPartition("local", 0)] = LogRange(0, 9)
    b.commit("g", "A.t", 0, 60)
    b.commit("g", "A.t", 1, 65)
    b.commit("h", "A.u", 0, 105)
    return a, b, mirror


def planned(a, b, mirror, comparer=None, policies=None, way_there=WAY_THERE) -> Plan:
    return planscene.planned(b, a, mirror, policies=policies, comparer=comparer, flow=way_there.reversed())


def matched(g1=None) -> FakeComparer:
    """Answers for the commits of `world`, all proven; `g1` in place of that for g on A.t-1."""
    commits = ("A.t", 0, 60), ("A.t", 1, 65), ("A.u", 0, 105)
    places = {place: Matched(place[2] - 5, Why.PROVEN, 0) for place in commits}
    return FakeComparer(places | {commits[1]: g1 or places[commits[1]]})


def test_groups_on_b_get_offsets_on_a_and_show_says_which_cluster_is_written():
    comparer = matched()
    plan = planned(*world(), comparer)
    assert [(*row.key, row.target_topic, row.target_offset) for row in plan.rows] == [
        ("g", "A.t", 0, "t", 55), ("g", "A.t", 1, "t", 60), ("h", "A.u", 0, "u", 100),
    ]  # fmt: skip
    asked = {(work.source.topic, work.target.topic, work.original.topic) for work in comparer.asked}
    assert asked == {("A.t", "t", "t"), ("A.u", "u", "u")}
    header = plan.header
    assert plan.is_clean() and header.failback and (header.source_alias, header.target_alias) == ("B", "A")
    assert header.target_topic_ids == {"t": "id-of-t", "u": "id-of-u"}
    assert header.flow["offset_syncs_location"] == "source"
    assert header.flow["checkpoints_topic"] == "A.checkpoints.internal", "MM2's facts are in its own words"
    names = {c.check for c in header.checks}
    assert not names & {"not-drained", "mm2-checkpoints-topic"} and "mm2-offset-syncs-topic" in names
    assert all(row.checkpoint_target_offset is None for row in plan.rows)
    shown = "\n".join(render(plan, "table", "c.plan", width=120))
    assert shown.startswith("FAILBACK: READY TO APPLY") and "A is what is written" in shown
    assert "checkpoints" not in shown.split("NEEDS ATTENTION")[1]


def test_an_original_that_is_missing_or_was_created_anew_since_it_was_copied_blocks():
    a, b, mirror = world()
    a.ranges[TopicPartition("t", 0)] = LogRange(0, 20)
    (block,) = blocks_of(planned(a, b, mirror), "target-recreated")
    assert block.subject == "A.t"
    assert block.seen == "partition 0 of t ends at 20, and MM2's newest sync names a record at 90 there"
    assert not checks_of(planned(a, b, mirror, matched()), "target-recreated")
    del a.ranges[TopicPartition("u", 0)]
    routed = replace(WAY_THERE, runtime=Mm2Runtime(transforms="Route"))
    (missing,) = blocks_of(planned(a, b, mirror, matched(), way_there=routed), "target-topic-exists")
    assert missing.subject == "A.u" and "transforms" not in missing.todo, "they are no reason why it is missing"


def test_a_group_in_the_first_of_two_whole_copies_lacks_nothing_on_a():
    """MM2 was killed before it recorded anything, and wrote all to B once more."""
    a, b, mirror = world()
    b.ranges[TopicPartition("A.t", 0)] = LogRange(5, 205)
    mirror.history["t", 0] += [OffsetSync(10 + i, 10 * i + 105, 10 * i) for i in range(10)]
    plan = planned(a, b, mirror)
    first = plan.groups()["g"][0]
    assert (first.upper_source_offset, first.upper_target_offset) == (105, 0)
    assert not blocks_of(plan, "target-recreated")


def test_records_that_stand_on_b_only_and_are_unread_block_their_group_until_that_is_waived_by_name():
    comparer = matched(Matched(100, Why.PROVEN, 0, missing_on_target=7))
    plan = planned(*world(), comparer)
    assert [row.reason for row in plan.rows] == ["group-blocked", "unread-on-target-only", "proven"]
    assert "7 unread records on B only" in plan.groups()["g"][1].sentence
    assert not checks_of(plan, "missing-on-target")
    assert planned(*world(), comparer, accepting("unread-on-target-only:g/A.t/1")).is_clean()
    limited = planned(*world(), matched(Matched(40, Why.NOT_ALL_READ, 60)))
    assert limited.groups()["g"][1].reason == "unread-on-target-only", "not taken for absent"


def test_where_nothing_was_compared_the_swapped_chain_places_rows_and_unread_records_block_but_where_all_was_read():
    a, b, mirror = world()
    plan = planned(a, b, mirror)
    assert [(row.decision, row.target_offset) for row in plan.rows] == [
        (Decision.BLOCK, 51), (Decision.BLOCK, 60), (Decision.SET, 91),
    ]  # fmt: skip
    assert {row.grade for row in plan.rows} == {Grade.ESTIMATED}
    assert {q.source_topic for q in mirror.asked} == {"t", "u"}, "MM2's own names"
    one, other = blocks_of(plan, "unread-on-target-only")
    assert one.level is other.level is Level.NOT_VISIBLE and "not all compared" in one.seen
    assert planned(a, b, mirror, policies=accepting("unread-on-target-only")).is_clean()


def test_apply_writes_to_a_and_its_undo_too_and_both_say_so_first(tmp_path):
    a, b, mirror = world()
    plan = planned(a, b, mirror, matched())
    journal = Journal(tmp_path / "journal", plan.fingerprint, FakeClock().now_ms)
    b_before = {g: dict(at) for g, at in b.offsets.items()}
    done = apply_plan(plan, ApplyClusters(a, b), journal, FakeClock(), NoProgress(), RunOptions(execute=True))
    assert done.exit_code == 0
    assert a.held("g") == {("t", 0): 55, ("t", 1): 60} and a.held("h") == {("u", 0): 100}
    assert text(done).startswith("FAILBACK: ") and "A is what is written" in text(done).splitlines()[0]
    undo = undo_plan(plan, journal.read(), 0, "test")
    assert undo.header.failback
    back = RunOptions(True, command="rollback")
    undone = apply_plan(undo, ApplyClusters(a), journal, FakeClock(), NoProgress(), back)
    assert undone.exit_code == 0 and not a.held("g")
    assert b.offsets == b_before and b.writes == 0


def test_planning_it_from_the_other_side_alone_and_proving_an_undo_by_records_are_wrong_use(tmp_path):
    a, b, mirror = world()
    b.down = True
    with pytest.raises(ClusterError) as told:
        planned(a, b, mirror)
    assert "--source-down" not in str(told.value), "no way to go on for a failback"
    shown = run("plan", "--failback", "--source-down", "--out", str(tmp_path / "c.plan"), *clusters(tmp_path))
    assert shown.exit_code == 2 and "exclude each other" in shown.stderr
    write_plan(make_plan([], kind="undo", undoes="ab" * 32), tmp_path / "undo.plan")
    shown = run("verify", str(tmp_path / "undo.plan"), "--records", *clusters(tmp_path))
    assert shown.exit_code == 2 and "is an undo" in shown.stderr


@given(POLICIES, TOPICS)
def test_a_copy_goes_back_to_the_topic_it_came_from_and_no_two_topics_to_one(policy: ReplicationPolicy, topic):
    back = ReversedPolicy(policy)
    if policy.why_not_replicated(topic) is None:
        copy = policy.target_topic(topic)
        assert back.why_not_replicated(copy) is None
        assert back.target_topic(copy) == topic and back.source_topic(topic) == copy
    original = back.target_topic(topic)
    assert not original or policy.target_topic(original) == topic
