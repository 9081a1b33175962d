"""Logs that are not those that were spoken of: a commit of another log, a copy that ends before what MM2 wrote."""

import pytest

from migrate.match.protocol import Limits, Matched, PartitionAnswer, Tail, Why
from migrate.model import Commit, Decision, Failure, Level, LogRange, OffsetSync, TopicPartition
from migrate.survey.offsets_topic import CommitTopic, GroupKind, GroupRecord
from migrate.survey.other_log import other_log, other_topic
from migrate.survey.policies import Policies, Untranslatable
from tests.fakes import FakeComparer, FakeGroupFacts
from tests.unit.planscene import accepting, blocks_of, checkpoints, planned, results_of, rows_of, world
from tests.unit.statusscene import looked

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
GREATER = "has leader epoch 4, and the log there has not come further than 3"


@pytest.mark.parametrize(
    ("commit", "log", "told"),
    [(4, 3, GREATER), (3, 3, None), (0, 3, None), (None, 3, None), (4, None, None), (None, None, None)],
)
def test_a_commit_with_a_greater_epoch_than_its_logs_end_is_of_another_log(commit, log, told):
    assert other_log(Commit(55, "", commit), LogRange(0, 100, log)) == told


@pytest.mark.parametrize(("made_on", "topic_id", "told"), [
    (CommitTopic(55, "a-b_c"), "a-b_c", ""),
    # The client library prints ids in other digits than Kafka.
    (CommitTopic(55, "a-b_c"), "a+b/c", ""),
    # Without a record or an id, and by the record of a later commit, nobody can tell.
    (None, "x", None),
    (CommitTopic(55, "x"), None, None),
    (CommitTopic(56, "y"), "x", None),
])  # fmt: skip
def test_the_id_of_the_topic_that_a_commit_was_made_on_tells_both_ways(made_on, topic_id, told):
    assert other_topic(Commit(55), made_on, topic_id) == told
    proof = other_topic(Commit(55), CommitTopic(55, "an-id_of-the-old-topic"), "an-id_of-the-new-topic")
    assert proof and "an-id_of-the-old-topic" in proof and proof.endswith("an-id_of-the-new-topic")


def with_epochs():
    """The sound world, whose group g has committed t-0 with leader epoch 4; every log's end has epoch 3."""
    source, target, mirror = world()
    source.offsets["g"][T0] = Commit(55, "", 4)
    for cluster in (source, target):
        cluster.ranges = {p: LogRange(log.start, log.end, 3) for p, log in cluster.ranges.items()}
    return source, target, mirror


def results(plan):
    return {(c.level, c.counts_as): c for c in plan.header.checks if c.check == "commit-of-another-log"}


def test_such_a_commit_blocks_its_group_and_the_two_epochs_are_said():
    plan = planned(*with_epochs())
    assert rows_of(plan)["g", "t", 0] == (Decision.BLOCK, 51, "commit-of-another-log")
    assert rows_of(plan)["g", "t", 1][2] == "group-blocked" and rows_of(plan)["h", "u", 0][0] is Decision.SET
    block = results(plan)[Level.BLOCK, Level.BLOCK]
    assert block.subject == "g/t/0" and "epoch 4" in block.seen and "than 3" in block.seen
    assert "--accept commit-of-another-log:" in block.todo
    assert "2 commits" in results(plan)[Level.NOT_VISIBLE, Level.PASS].seen


@pytest.mark.parametrize(("offset", "options"), [
    (500, {"policies": Policies(untranslatable=Untranslatable.EARLIEST)}),
    (500, {"policies": Policies(untranslatable=Untranslatable.SKIP)}),
    (55, {"down": True}),
], ids=["the offset is chosen", "the row is skipped", "no log of the source to compare with"])  # fmt: skip
def test_where_the_commit_decides_nothing_or_has_no_log_it_blocks_nothing(offset, options):
    source, target, mirror = with_epochs()
    source.offsets["g"][T0] = Commit(offset, "", 4)
    assert (Level.BLOCK, Level.BLOCK) not in results(planned(source, target, mirror, **options))


def test_an_offset_that_is_kept_on_the_target_must_not_be_of_another_log_either():
    source, target, mirror = with_epochs()
    source.commit("g", "t", 0, 55)
    target.commit("g", "A.t", 0, 51)
    assert rows_of(planned(source, target, mirror))["g", "t", 0] == (Decision.KEEP, 51, "already-there")
    target.offsets["g"][TopicPartition("A.t", 0)] = Commit(51, "", 9)
    plan = planned(source, target, mirror)
    assert rows_of(plan)["g", "t", 0] == (Decision.BLOCK, 51, "commit-of-another-log")
    assert "its commit on B has leader epoch 9" in results(plan)[Level.BLOCK, Level.BLOCK].seen
    # One that is set anew is replaced.
    target.offsets["g"][TopicPartition("A.t", 0)] = Commit(40, "", 9)
    assert rows_of(planned(source, target, mirror))["g", "t", 0][:2] == (Decision.SET, 51)


def committed_on(*made_on: CommitTopic) -> FakeGroupFacts:
    """What the offsets topic says of the topics that group g has committed on: that of t-0, and that of t-1."""
    places = dict(zip((T0, T1), made_on, strict=True))
    return FakeGroupFacts(commits={"g": GroupRecord(GroupKind.CLASSIC, "consumer", made_on=places)})


def test_what_ids_prove_passes_what_nothing_refutes_is_counted_beside_it_and_a_row_that_is_skipped_is_neither():
    proven = CommitTopic(55, "id-of-source-t")
    plan = planned(*world(), source_groups=committed_on(proven, CommitTopic(59, "gone")))
    found = results(plan)
    assert plan.is_clean() and found.keys() == {(Level.PASS, Level.PASS), (Level.NOT_VISIBLE, Level.PASS)}
    assert found[Level.PASS, Level.PASS].subject == "1 commit"
    assert "2 commits" in found[Level.NOT_VISIBLE, Level.PASS].seen
    source, target, mirror = world()
    source.offsets["g"][T1] = Commit(500)
    skip = Policies(untranslatable=Untranslatable.SKIP)
    groups = committed_on(proven, CommitTopic(500, "id-of-source-t"))
    found = results(planned(source, target, mirror, policies=skip, source_groups=groups))
    assert found[Level.PASS, Level.PASS].subject == "1 commit"
    assert "1 commit was" in found[Level.NOT_VISIBLE, Level.PASS].seen


CHECK = "target-recreated"
COPY = TopicPartition("A.t", 0)
PAIRS = tuple((10 * i, 10 * i) for i in range(10))
PASSES = {"2 topics": (Level.PASS, Level.PASS)}


def scene(end, syncs=PAIRS, checkpoint=None):
    """t-0 was copied, 100 records, and its copy ends at `end` now; the group g stands at 55."""
    source, target, mirror = world()
    target.ranges[COPY] = end if isinstance(end, LogRange) else LogRange(0, end)
    mirror.history["t", 0] = [OffsetSync(i, u, d) for i, (u, d) in enumerate(syncs)]
    if checkpoint is not None:
        mirror.latest = checkpoints(("g", "A.t", 0, checkpoint))
    return source, target, mirror


def told(plan):
    return {c.subject: (c.level, c.counts_as) for c in results_of(plan, CHECK)}


def block_of(plan):
    (block,) = blocks_of(plan, CHECK)
    return block


def placed(why):
    unplaced = Matched(0, why, 9)
    return FakeComparer({("t", 0, 55): unplaced, ("t", 1, 60): unplaced, ("u", 0, 100): Matched(100, why, 0)})


class ComparesTails(FakeComparer):
    """Places no commit, as the comparing of `status`."""

    def _answer(self, work):
        return PartitionAnswer({}, Tail(0), 50, 45)


@pytest.mark.parametrize("end", [0, 85], ids=["emptied", "cut by an unclean election"])
@pytest.mark.parametrize("comparer", [None, placed(Why.NOT_ALL_READ), placed(Why.LEAST_TIMESTAMP)])
def test_a_copy_that_ends_before_mm2s_newest_sync_blocks_every_plan_that_compares_no_records(end, comparer):
    made = planned(*scene(end), comparer=comparer, limits=Limits(10, None))
    assert block_of(made).subject == "t"
    assert f"partition 0 of A.t ends at {end}, and MM2's newest sync names a record at 90" in block_of(made).seen
    assert rows_of(made)["g", "t", 0][0] is Decision.BLOCK and rows_of(made)["h", "u", 0][0] is not Decision.BLOCK
    assert told(planned(*scene(end), comparer=FakeComparer())) == {}, "rows that records place need no words of MM2"


def test_status_blocks_too_and_both_can_be_accepted_by_the_topics_name():
    status = looked(*scene(20), comparer=ComparesTails())
    assert not status.is_ready and CHECK in {c.check for c in status.blocks}
    assert [(topic.drained, topic.copied) for topic in status.topics] == [(None, None), (True, 100)]
    assert planned(*scene(20), policies=accepting(f"{CHECK}:t")).is_clean()


def test_a_group_whose_checkpoint_lies_beyond_the_end_blocks_where_mm2_has_begun_behind_its_commit():
    begun = block_of(planned(*scene(20, (*PAIRS, (95, 0)), checkpoint=56)))
    assert "MM2's checkpoint of g says 56" in begun.seen
    assert block_of(planned(*scene(20, (), checkpoint=56))).subject == "t", "no sync is left"


@pytest.mark.parametrize("checkpoint", [None, 1], ids=["no checkpoint", "a checkpoint far behind the commit"])
def test_a_copy_whose_first_record_lies_beyond_the_commit_blocks_however_far_it_has_grown(checkpoint):
    refilled = scene(95, (*PAIRS, (95, 0), (99, 80)), checkpoint)
    seen = block_of(planned(*refilled)).seen
    assert "partition 0 of A.t begins with the source's record at 95, beyond the commit of g at 55" in seen
    assert CHECK in {c.check for c in looked(*refilled, comparer=ComparesTails()).blocks}


PASSING = {
    "retention has taken what came before": (LogRange(20, 95), (*PAIRS, (95, 20)), None),
    "begins with what the group is owed": (95, (*PAIRS, (55, 0)), None),
    "as it was": (100, PAIRS, 56),
    "copied again": (20, (*PAIRS, (0, 0), (50, 8)), 56),
    "a checkpoint of MM2 3.4": (100, ((0, 0), (50, 50)), 120),
    "retention has emptied it": (LogRange(100, 100), PAIRS, 56),
    "an old sync beyond": (100, ((0, 200), (50, 50)), 51),
}


@pytest.mark.parametrize("case", PASSING)
def test_a_copy_that_reaches_as_far_as_what_counts_of_mm2s_words_passes(case):
    assert told(planned(*scene(*PASSING[case]))) == PASSES


def test_a_copy_that_was_copied_again_beyond_the_commit_passes_by_timestamps_as_well():
    again = scene(20, (*PAIRS, (0, 0), (50, 8), (90, 18)), 56)
    by_time = planned(*again, comparer=placed(Why.LEAST_TIMESTAMP), limits=Limits(10, None, by_timestamp=True))
    assert CHECK not in {c.check for c in (*planned(*again).blocks(), *by_time.blocks())}


def test_what_was_written_while_the_plan_was_made_and_what_a_transaction_hides_is_no_cut_log_and_a_dark_end_blocks():
    source, target, mirror = scene(85)
    target.watermarks[COPY] = 100
    assert told(planned(source, target, mirror)) == PASSES
    source, target, mirror = scene(85)
    mirror.on_call = lambda call: target.ranges.update({COPY: LogRange(0, 100)}) if call == "windows" else None
    made = planned(source, target, mirror)
    assert made.groups()["g"][0].target_log_end == 85 and told(made) == PASSES
    dark = Failure("NOT_LEADER_OR_FOLLOWER", "try again")
    mirror.on_call = lambda call: target.watermarks.update({COPY: dark}) if call == "windows" else None
    assert told(planned(source, target, mirror))["t"] == (Level.NOT_VISIBLE, Level.BLOCK)
