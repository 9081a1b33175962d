"""The way back: names, roles and checks of a plan whose groups leave MM2's target for its source."""

from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import given

from migrate.apply.assess import ApplyClusters, RunOptions
from migrate.apply.engine import apply_plan
from migrate.apply.journal import Journal
from migrate.apply.undo import undo_plan
from migrate.errors import ClusterError
from migrate.match.protocol import Matched, Unmatched, Why
from migrate.mm2.config_file import client_flow
from migrate.mm2.flow import Mm2Runtime
from migrate.mm2.naming import ReplicationPolicy, ReversedPolicy
from migrate.mm2.topics import SyncReading, WindowQuestion
from migrate.model import Decision, Grade, Level, LogRange, OffsetSync, Side, TopicPartition
from migrate.plan.build import plan_of
from migrate.plan.file import write_plan
from migrate.plan.plan import Plan
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies, Untranslatable, Waiver
from migrate.survey.survey import Clusters, PlanRequest
from migrate.survey.take import take_survey
from tests.builders import make_plan
from tests.fakes import ALIVE, FakeClock, FakeCluster, FakeComparer, NoProgress
from tests.unit.applyscene import text
from tests.unit.commands import clusters, run
from tests.unit.names import POLICIES, TOPICS
from tests.unit.pages import render
from tests.unit.planscene import SYNCS, FakeMirror, checks_of

WAY_THERE = client_flow({"bootstrap.servers": "a:1"}, {"bootstrap.servers": "b:1"}, "A", "B")


class FakeMirrorOfTheWayBack(FakeMirror):
    """MM2's syncs with their offsets swapped, as `MirrorReader.windows` gives them for a failback."""

    def windows(self, side: Side, topic: str, pinned: LogRange, questions: Collection[WindowQuestion]) -> SyncReading:
        assert side is Side.TARGET and topic == SYNCS, "the syncs are on MM2's source, which is the plan's target"
        return super().windows(side, topic, pinned, questions)


def world() -> tuple[FakeCluster, FakeCluster, FakeMirrorOfTheWayBack]:
    """A and B as `test_planning.world`, but B's copies lie 5 further on; groups ran on B and are committed there."""
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
    request = PlanRequest(way_there.reversed(), Filters(), policies or Policies(), 15.0, {"failback": "yes"})
    return plan_of(take_survey(request, Clusters(b, a, mirror, comparer), FakeClock(), NoProgress()))


def matched(**places: Matched | Unmatched) -> FakeComparer:
    """Answers by group: those of `g` on A.t-0 and A.t-1 and of `h` on A.u-0 in `world`."""
    where = {"g0": ("A.t", 0, 60), "g1": ("A.t", 1, 65), "h": ("A.u", 0, 105)}
    defaults = {"g0": Matched(55, Why.PROVEN, 0), "g1": Matched(60, Why.PROVEN, 0), "h": Matched(100, Why.PROVEN, 0)}
    return FakeComparer(places={where[name]: place for name, place in (defaults | places).items()})


def test_groups_on_b_get_offsets_on_a_and_show_says_which_cluster_is_written():
    plan = planned(*world(), matched())
    assert {row.key: (row.target_topic, row.target_offset) for row in plan.rows} == {
        ("g", "A.t", 0): ("t", 55),
        ("g", "A.t", 1): ("t", 60),
        ("h", "A.u", 0): ("u", 100),
    }
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


def test_mm2s_transforms_are_no_reason_why_an_original_is_missing():
    a, b, mirror = world()
    del a.ranges[TopicPartition("u", 0)]
    routed = replace(WAY_THERE, runtime=Mm2Runtime(transforms="Route"))
    (missing,) = [c for c in planned(a, b, mirror, matched(), way_there=routed).header.checks
                  if c.check == "target-topic-exists" and c.level is Level.BLOCK]  # fmt: skip
    assert missing.subject == "A.u" and "transforms" not in missing.todo


def test_without_matching_the_swapped_chain_places_rows():
    plan = planned(*world(), policies=Policies(waivers=(Waiver("unread-on-target-only"),)))
    assert {row.key: (row.target_offset, row.grade) for row in plan.rows} == {
        ("g", "A.t", 0): (51, Grade.ESTIMATED),
        ("g", "A.t", 1): (60, Grade.ESTIMATED),
        ("h", "A.u", 0): (91, Grade.ESTIMATED),
    }


def test_a_topic_of_mm2s_source_that_was_created_anew_since_it_was_copied_blocks():
    a, b, mirror = world()
    a.ranges[TopicPartition("t", 0)] = LogRange(0, 20)
    (block,) = [c for c in planned(a, b, mirror).blocks() if c.check == "target-recreated"]
    assert block.subject == "A.t"
    assert block.seen == "partition 0 of t ends at 20, and MM2's newest sync names a record at 90 there"
    assert not checks_of(planned(a, b, mirror, matched()), "target-recreated")


def test_a_group_in_the_first_of_two_whole_copies_lacks_nothing_on_a():
    """MM2 was killed before it recorded anything, and wrote all to B once more."""
    a, b, mirror = world()
    b.ranges[TopicPartition("A.t", 0)] = LogRange(5, 205)
    mirror.history["t", 0] += [OffsetSync(10 + i, 10 * i + 105, 10 * i) for i in range(10)]
    plan = planned(a, b, mirror)
    (first,) = (row for row in plan.rows if row.key == ("g", "A.t", 0))
    assert (first.upper_source_offset, first.upper_target_offset) == (105, 0)
    assert "target-recreated" not in {c.check for c in plan.blocks()}


def test_the_syncs_are_asked_for_by_mm2s_own_name_of_the_topic_and_the_works_go_the_plans_way():
    a, b, mirror = world()
    planned(a, b, mirror)
    assert {q.source_topic for q in mirror.asked} == {"t", "u"}
    comparer = matched()
    planned(a, b, mirror, comparer)
    asked = {(w.source.topic, w.target.topic, w.original.topic) for w in comparer.asked}
    assert asked == {("A.t", "t", "t"), ("A.u", "u", "u")}


def test_records_that_stand_on_b_only_and_are_unread_block_their_group_until_that_is_waived_by_name():
    comparer = matched(g1=Matched(100, Why.PROVEN, 0, missing_on_target=7))
    plan = planned(*world(), comparer)
    reasons = {row.key: (row.decision, row.reason) for row in plan.rows}
    assert reasons["g", "A.t", 1] == (Decision.BLOCK, "unread-on-target-only")
    assert reasons["g", "A.t", 0] == (Decision.BLOCK, "group-blocked")
    assert reasons["h", "A.u", 0][0] is Decision.SET
    assert "7 unread records on B only" in next(r.sentence for r in plan.rows if r.partition == 1)
    assert not checks_of(plan, "missing-on-target")
    assert planned(*world(), comparer, Policies(waivers=(Waiver("unread-on-target-only", "g/A.t/1"),))).is_clean()
    limited = planned(*world(), matched(g1=Matched(40, Why.NOT_ALL_READ, 60)))
    assert next(r.reason for r in limited.rows if r.partition == 1) == "unread-on-target-only", "not taken for absent"


def test_where_nothing_was_compared_unread_records_block_and_a_group_that_has_read_all_does_not():
    plan = planned(*world())
    assert {row.group for row in plan.rows if row.decision is Decision.BLOCK} == {"g"}
    seen = [c for c in plan.header.checks if c.check == "unread-on-target-only" and c.level is Level.NOT_VISIBLE]
    assert len(seen) == 2 and all("not all compared" in c.seen for c in seen)


def test_topics_of_bs_own_are_named_and_no_choice_sets_an_offset_for_them():
    a, b, mirror = world()
    b.commit("g", "local", 0, 3)
    b.ranges[TopicPartition("t", 0)] = LogRange(0, 9)
    b.commit("g", "t", 0, 3)
    chosen = Policies(untranslatable_by_reason={"topic-not-replicated": Untranslatable.EARLIEST})
    for policies in (None, chosen):
        rows = {r.source_topic: r for r in planned(a, b, mirror, matched(), policies).rows}
        assert rows["t"].decision is rows["local"].decision is Decision.BLOCK
        assert (rows["local"].reason, rows["local"].target_topic) == ("topic-not-replicated", "")
        assert "not a copy of a topic of A" in rows["local"].sentence


def test_the_group_must_be_stopped_on_both_sides():
    for side in (0, 1):
        sides = world()
        sides[side].states["h"] = ALIVE
        assert planned(*sides, matched()).blocked_groups() == {"h"}


def test_a_dead_b_is_no_reason_to_plan_from_the_other_side_alone():
    a, b, mirror = world()
    b.down = True
    with pytest.raises(ClusterError) as told:
        planned(a, b, mirror)
    assert "--source-down" not in str(told.value)


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


def test_a_way_back_from_the_other_side_alone_is_wrong_use(tmp_path):
    shown = run("plan", "--failback", "--source-down", "--out", str(tmp_path / "c.plan"), *clusters(tmp_path))
    assert shown.exit_code == 2 and "exclude each other" in shown.stderr


def test_the_records_of_an_undo_prove_nothing_and_are_not_asked_for(tmp_path):
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
