"""A copy that ends before what MM2 says it has written: `plan` and `status` block where no records were compared."""

import pytest

from migrate.match.protocol import Limits, Matched, PartitionAnswer, Tail, Why
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import Decision, Failure, Level, LogRange, OffsetSync, TopicPartition
from migrate.survey.policies import Policies, Waiver
from tests.fakes import FakeComparer
from tests.unit.planscene import planned, rows_of, world
from tests.unit.statusscene import looked

CHECK = "target-recreated"
T0, COPY = TopicPartition("t", 0), TopicPartition("A.t", 0)
PAIRS = tuple((10 * i, 10 * i) for i in range(10))


def scene(end, syncs=PAIRS, checkpoint=None):
    """t-0 was copied, 100 records, and its copy ends at `end` now; the group g stands at 55."""
    source, target, mirror = world()
    target.ranges[COPY] = end if isinstance(end, LogRange) else LogRange(0, end)
    mirror.history["t", 0] = [OffsetSync(i, u, d) for i, (u, d) in enumerate(syncs)]
    if checkpoint is not None:
        mirror.latest = {CheckpointKey("g", "A.t", 0): CheckpointRecord(55, checkpoint, "", 1, 1)}
    return source, target, mirror


def told(made):
    checks = made.header.checks if hasattr(made, "header") else made.checks
    return {c.subject: (c.level, c.counts_as) for c in checks if c.check == CHECK}


def placed(why):
    places = {("t", 0, 55): Matched(0, why, 9), ("t", 1, 60): Matched(0, why, 9), ("u", 0, 100): Matched(100, why, 0)}
    return FakeComparer(places)


class ComparesTails(FakeComparer):
    """Places no commit, as the comparing of `status`."""

    def _answer(self, work):
        return PartitionAnswer({}, Tail(0), 50, 45)


@pytest.mark.parametrize("end", [0, 20, 85], ids=["emptied", "goes on", "cut by an unclean election"])
@pytest.mark.parametrize("comparer", [None, placed(Why.NOT_ALL_READ), placed(Why.LEAST_TIMESTAMP)])
def test_a_copy_that_ends_before_mm2s_newest_sync_blocks_every_plan_that_compares_no_records(end, comparer):
    made = planned(*scene(end), comparer=comparer, limits=Limits(10, None))
    (block,) = [c for c in made.blocks() if c.check == CHECK]
    assert (
        block.subject == "t"
        and f"partition 0 of A.t ends at {end}, and MM2's newest sync names a record at 90" in block.seen
    )
    assert rows_of(made)["g", "t", 0][0] is Decision.BLOCK and rows_of(made)["h", "u", 0][0] is not Decision.BLOCK


def test_status_blocks_too_and_both_can_be_accepted_by_the_topics_name():
    status = looked(*scene(20), comparer=ComparesTails())
    assert not status.is_ready and CHECK in {c.check for c in status.blocks}
    assert [(topic.drained, topic.copied) for topic in status.topics] == [(None, None), (True, 100)]
    waived = Policies(waivers=(Waiver(CHECK, "t"),))
    assert planned(*scene(20), policies=waived).is_clean()


def test_a_group_whose_checkpoint_lies_beyond_the_end_blocks_where_mm2_has_begun_behind_its_commit():
    made = planned(*scene(20, (*PAIRS, (95, 0)), checkpoint=56))
    (block,) = [c for c in made.blocks() if c.check == CHECK]
    assert "MM2's checkpoint of g says 56" in block.seen
    lost = planned(*scene(20, (), checkpoint=56))
    assert [c.subject for c in lost.blocks() if c.check == CHECK] == ["t"], "no sync is left"


@pytest.mark.parametrize("checkpoint", [None, 1], ids=["no checkpoint", "a checkpoint far behind the commit"])
def test_a_copy_whose_first_record_lies_beyond_the_commit_blocks_however_far_it_has_grown(checkpoint):
    refilled = scene(95, (*PAIRS, (95, 0), (99, 80)), checkpoint)
    (block,) = [c for c in planned(*refilled).blocks() if c.check == CHECK]
    assert "partition 0 of A.t begins with the source's record at 95, beyond the commit of g at 55" in block.seen
    status = looked(*refilled, comparer=ComparesTails())
    assert CHECK in {c.check for c in status.blocks}


@pytest.mark.parametrize(
    ("end", "syncs", "checkpoint"),
    [
        (LogRange(20, 95), (*PAIRS, (95, 20)), None),
        (95, (*PAIRS, (55, 0)), None),
        (100, PAIRS, 56),
        (20, (*PAIRS, (0, 0), (50, 8)), 56),
        (100, ((0, 0), (50, 50)), 120),
        (LogRange(100, 100), PAIRS, 56),
        (100, ((0, 200), (50, 50)), 51),
    ],
    ids=[
        "retention has taken what came before",
        "begins with what the group is owed",
        "as it was",
        "copied again",
        "a checkpoint of MM2 3.4",
        "retention has emptied it",
        "an old sync beyond",
    ],
)
def test_a_copy_that_reaches_as_far_as_what_counts_of_mm2s_words_passes(end, syncs, checkpoint):
    assert told(planned(*scene(end, syncs, checkpoint))) == {"2 topics": (Level.PASS, Level.PASS)}


def test_a_copy_that_was_copied_again_beyond_the_commit_passes_by_timestamps_as_well():
    again = scene(20, (*PAIRS, (0, 0), (50, 8), (90, 18)), 56)
    by_time = planned(*again, comparer=placed(Why.LEAST_TIMESTAMP), limits=Limits(10, None, by_timestamp=True))
    assert CHECK not in {c.check for c in (*planned(*again).blocks(), *by_time.blocks())}


def test_what_was_written_while_the_plan_was_made_and_what_a_transaction_hides_is_no_cut_log():
    source, target, mirror = scene(85)
    target.watermarks[COPY] = 100
    assert CHECK not in {c.check for c in planned(source, target, mirror).blocks()}
    source, target, mirror = scene(85)

    def copy_on(call):
        target.ranges[COPY] = LogRange(0, 100)

    mirror.on_call = lambda call: copy_on(call) if call == "windows" else None
    made = planned(source, target, mirror)
    assert next(row for row in made.rows if row.key == ("g", "t", 0)).target_log_end == 85
    assert told(made) == {"2 topics": (Level.PASS, Level.PASS)}


def test_rows_that_the_records_place_need_no_words_of_mm2():
    assert told(planned(*scene(60), comparer=FakeComparer())) == {}


def test_an_end_that_could_not_be_read_again_blocks():
    source, target, mirror = scene(100)
    dark = Failure("NOT_LEADER_OR_FOLLOWER", "try again")

    def forget(call):
        if call == "windows":
            target.watermarks[COPY] = dark

    mirror.on_call = forget
    assert told(planned(source, target, mirror))["t"] == (Level.NOT_VISIBLE, Level.BLOCK)


def test_what_comparing_answers_is_not_visible_where_nothing_was_compared():
    made = planned(*world())
    unseen = {c.check for c in made.header.checks if c.level is Level.NOT_VISIBLE and c.counts_as is Level.WARN}
    assert {"missing-on-target", "target-topic-dedicated"} <= unseen
    compared = planned(*world(), comparer=FakeComparer())
    assert not {c.check for c in compared.header.checks if c.level is Level.NOT_VISIBLE} & {
        "missing-on-target",
        "target-topic-dedicated",
    }
