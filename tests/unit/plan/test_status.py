"""One look at a flow: the verdicts are those of `plan`."""

import json

import pytest

from migrate.cli.status import exit_code
from migrate.errors import EXIT_DONE, EXIT_REFUSED
from migrate.match.protocol import Tail
from migrate.mm2.name_map import NameMap
from migrate.model import Failure, Level, LogRange, TopicPartition
from migrate.plan.status import ONLY_PLAN_SHOWS
from migrate.plan.watch import Pace, TimeLeft, Watch
from migrate.show.status import late_text, left_text, progress_line, status_document
from migrate.survey.drain import UNKNOWN, Lag
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import GroupKind, GroupRecord, PastCommit
from migrate.watch import Freshness, Waiting
from tests.fakes import ALIVE, FakeClock, FakeComparer, FakeGroupFacts
from tests.unit.planscene import accepting, checkpoints, planned, world
from tests.unit.statusscene import looked, text


def flat(status, width=100):
    return " ".join(text(status, width).split())


def alive():
    """A world in which g is alive on A."""
    source, target, mirror = world()
    source.states["g"] = ALIVE
    return source, target, mirror


def look_at_u(target_end=100, source_end=100, positions=None, **tail):
    """A look where MM2 tells no other positions and the records of u show this tail; and what it says of u."""
    source, target, mirror = world()
    source.ranges["u", 0], target.ranges["A.u", 0] = LogRange(0, source_end), LogRange(0, target_end)
    mirror.last_copied_offset = positions or {}
    status = looked(source, target, mirror, FakeComparer(tails={("u", 0): Tail(**tail)}))
    (u,) = (topic for topic in status.topics if topic.source_topic == "u")
    (line,) = (line for line in text(status).splitlines() if line.startswith("u -> A.u"))
    return status, u, line.split()[3:]


def test_a_flow_at_rest_is_ready_and_its_document_is_json_and_holds_every_partition_group_and_check():
    status = looked(*world())
    assert status.is_ready and status.lag == Lag(0, True) and exit_code(status) == EXIT_DONE
    assert [(t.source_topic, t.source_end, t.copied, t.drained) for t in status.topics] == [
        ("t", 200, 200, True),
        ("u", 100, 100, True),
    ]
    said = text(status)
    assert said.startswith("READY: ") and "newest offset sync 12 s ago; newest checkpoint 5 s ago" in said
    assert "no record written in 15 s" in said and "NOTHING IS MISSING" in said
    late = flat(looked(*world(), behind_ms=7_200_000))
    assert "newest checkpoint of " in late and "UTC, which this machine's clock has not come to" in late
    assert "ago" not in late
    watch = Watch()
    watch.take(status, 0.0)
    document = json.loads(json.dumps(status_document(status, None, watch.bars, watch.time_left())))
    assert document["ready"] is True and document["time_left"]["pace"] == "done"
    assert [len(t["partitions"]) for t in document["topics"]] == [2, 1]
    assert [g["group"] for g in document["groups"]] == ["g", "h"]
    assert {c["check"] for c in document["checks"]} >= {"producers-stopped", "not-drained"}
    assert document["topics"][0]["progress"] == {"done": 200, "total": 200}


def test_a_copy_that_lies_where_the_policy_does_not_say_is_not_called_copied():
    for last_record in (None, 99):
        at_end = {TopicPartition("u", 0): 99}
        status, u, _ = look_at_u(target_end=0, positions=at_end, uncopied=None, last_record=last_record)
        assert (u.drained, u.copied, u.lag) == (None, None, UNKNOWN) and "the copy on B is empty" in text(status)
        assert [(c.check, c.subject) for c in status.blocks if c.subject == "u"] == [("not-drained", "u")]


def test_behind_a_filter_a_copy_that_stands_still_is_copied_as_far_as_its_newest_run_came():
    for passed_over, drained, copied, left in ((40, True, 100, 0), (38, False, 98, 2)):
        status, u, _ = look_at_u(uncopied=40, last_record=99, passed_over=passed_over)
        assert (u.drained, u.copied, u.lag.records, status.is_ready) == (drained, copied, left, drained)


def test_an_estimated_lag_is_marked_and_never_ready():
    status, u, line = look_at_u(source_end=500, uncopied=None)
    assert u.lag == Lag(400) and u.drained is None and not status.is_ready
    assert line == ["1", "500", "100", "~400", "?", "no", "not", "known"]


def test_status_blocks_what_plan_blocks_but_for_what_only_plan_can_tell_and_says_what_to_do():
    source, target, mirror = alive()
    target.commit("h", "A.u", 0, 100)
    mirror.last_copied_offset = {}
    comparer = FakeComparer(tails={("t", 1): Tail(3, 99, FakeClock().now_ms() - 80_000)})
    status = looked(source, target, mirror, comparer)
    blocks = planned(source, target, mirror, comparer=comparer).blocks()
    assert {(c.check, c.subject) for c in status.blocks} == {
        (c.check, c.subject) for c in blocks if c.check not in ONLY_PLAN_SHOWS
    }
    said = flat(status)
    assert said.startswith("NOT READY: not-drained, source-group-stopped")
    assert "GROUPS ALIVE g: Stable on A, 1 member: app@10.0.0.7" in said
    assert "t -> A.t 2 200 197 3 95 s no behind" in said  # 80 s and the settle time
    waived = looked(*alive(), policies=accepting("source-group-stopped:g"))
    assert waived.is_ready and "ACCEPTED  source-group-stopped" in text(waived)
    assert "Stop these consumers" in said and "on A: 1 alive (1 member); on B: none alive, 1 with offsets" in said


def test_a_renamed_group_is_alive_on_the_target_under_its_name_there_and_both_names_are_said():
    source, target, mirror = world()
    target.states["g-eu"] = ALIVE
    target.commit("g-eu", "A.t", 0, 3)
    target.commit("g", "A.t", 0, 4)
    names = NameMap.from_lines("--group-map", "f", "group", ["source_group,target_group", "g,g-eu"])
    status = looked(source, target, mirror, group_map=names)
    assert "g -> g-eu: Stable on B" in text(status)
    told = {group["group"]: group for group in status_document(status, None)["groups"]}
    assert (told["g"]["target_group"], told["g"]["target_offsets"], told["h"]["target_group"]) == ("g-eu", 1, "")
    assert {(c.check, c.subject) for c in status.blocks} == {("target-group-empty", "g")}


DOWN = "source A (x:1) cannot be reached."


def down(**more):
    """A look while A is down, at checkpoints of g on t."""
    source, target, mirror = world()
    mirror.latest = checkpoints(("g", "A.t", 0, 50), ("g", "A.t", 1, 50))
    return looked(source, target, mirror, down=DOWN, **more)


def test_with_the_source_down_what_it_alone_knows_is_a_question_mark():
    status = down()
    assert not status.is_ready and [c.check for c in status.blocks] == ["source-down"]
    (topic,) = status.topics
    assert (topic.source_end, topic.copied, topic.lag.records, topic.drained) == (None, 200, None, None)
    said = flat(status, 120)
    assert said.startswith("A DOES NOT ANSWER; NOT READY: source-down")
    assert "cannot be reached" in said and "Producers not known" in said and "on A: not known" in said
    assert "t -> A.t 2 ? 200 ? ? ? not known" in said
    assert status_document(status)["source_down"] == DOWN


def test_an_accepted_outage_of_the_source_is_never_ready_nor_is_one_without_a_checkpoint():
    status = down(policies=accepting("source-down"))
    assert not status.blocks and exit_code(status) == EXIT_REFUSED
    assert text(status).startswith("A DOES NOT ANSWER; NOT READY: what only it knows was not looked at")
    assert progress_line(status, {}, "").endswith("not ready: A does not answer")
    assert status_document(status)["ready"] is False
    status = looked(*world(), down=DOWN)
    assert not status.blocks and not status.is_ready
    assert text(status).startswith("A DOES NOT ANSWER, and B has no checkpoint")


def test_where_nothing_is_to_be_moved_that_is_said_and_nothing_is_ready():
    status = looked(*world(), filters=Filters.from_options(groups=("bil.*",)))
    assert status.commits == 0 and status.lag.records is None
    assert not status.is_ready and status_document(status)["ready"] is False
    assert exit_code(status) == EXIT_REFUSED
    assert progress_line(status, {}, "x").endswith("; not ready: no commit is inside the filters")
    said = flat(status)
    assert said.startswith("NOTHING TO MOVE: no commit is inside the filters") and "Producers not looked at" in said
    assert "NOTHING IS MISSING" not in said and "NOTHING WAS LOOKED AT" in said


def test_a_glance_says_that_it_did_not_watch_producers_for_long_and_is_not_ready():
    status = looked(*world(), settle=0.0)
    assert [(c.level, c.counts_as) for c in status.checks if c.check == "producers-stopped"] == [
        (Level.NOT_VISIBLE, Level.BLOCK)
    ]
    assert not status.is_ready and "two-looks" in {c.check for c in status.blocks}
    assert "not watched long enough" in text(status)


def committed(ago_seconds: int, every_ms: int = 5_000) -> GroupRecord:
    at_ms = FakeClock().now_ms() - 1000 * ago_seconds
    place, newest = TopicPartition("t", 0), (PastCommit(at_ms - every_ms, 0), PastCommit(at_ms, 120))
    return GroupRecord(GroupKind.CLASSIC, "consumer", None, {place: at_ms}, newest={place: newest})


def with_commits(scene, commits):
    status = looked(*scene, source_groups=FakeGroupFacts(commits=commits))
    return status, flat(status, 200)


def test_of_a_living_group_it_says_what_a_hard_stop_reads_twice_and_of_stopped_ones_when_they_committed_last():
    status, said = with_commits(alive(), {"g": committed(1), "h": committed(185)})
    cadence = "about every 5 s, each time 120 records of a partition: a hard stop reads them twice"
    assert f"g: Stable on A, 1 member: app@10.0.0.7; commits {cadence}" in said
    assert "stopped groups on A committed last 3 min 20 s ago (h)" in said  # 185 s, and the settle time
    (block,) = (c for c in status.blocks if c.check == "source-group-stopped")
    assert block.seen.endswith(f"; it commits {cadence}")
    found = {g["group"]: g["commits_on_source"] for g in status_document(status)["groups"]}
    last_ms = committed(185).last_commit_ms
    assert found["h"] == {"last_commit_ms": last_ms, "seconds_between_commits": 5.0, "records_between_commits": 120}
    _, said = with_commits(alive(), {"g": committed(1, every_ms=200)})
    assert "commits more than once a second, each time 120" in said, "and not every 0 s"
    _, said = with_commits(world(), {"h": committed(10)})
    assert "committed last 25 s ago (h); of 1 group not known" in said


def test_where_the_offsets_topic_is_not_to_be_read_nothing_is_said_of_commits_and_json_says_why():
    status, said = with_commits(alive(), Failure("TOPIC_AUTHORIZATION_FAILED", "no"))
    assert "commits about" not in said and "committed last" not in said
    assert status_document(status)["groups"][0]["commits_on_source"] == {"error": "TOPIC_AUTHORIZATION_FAILED"}
    _, said = with_commits(alive(), Failure("TOO_MANY_RECORDS", "up to 900,000 records to read"))
    assert said.count("their commits on A were not looked at: up to 900,000 records to read") == 1


@pytest.mark.parametrize(("lag", "left", "said"), [
    (Lag(0, True), TimeLeft(Pace.TOO_EARLY), "everything is copied"),
    (Lag(None, False), TimeLeft(Pace.TOO_EARLY), "an unknown number of records left"),
    (Lag(1, True), TimeLeft(Pace.STALLED), "1 record left: nothing is being copied: restart MM2, or your replicator"),
    (Lag(90, False), TimeLeft(Pace.GROWING), "about 90 records left: producers are faster than MM2"),
])  # fmt: skip
def test_why_nobody_can_tell_how_long_is_said(lag, left, said):
    assert left_text(left, lag) == said


def test_who_does_not_answer_is_said_escaped_and_since_when():
    freshness = Freshness(problem="it\x1b failed", waiting=Waiting("log ends of A", 75.0))
    assert late_text(freshness) == r"it\x1b failed NO ANSWER for 75 s: log ends of A"
    assert late_text(Freshness()) == ""


@pytest.mark.parametrize(
    "freshness", [Freshness(settling=True), Freshness(problem="x"), Freshness(waiting=Waiting("log ends", 9.0))]
)
def test_nothing_is_ready_that_the_newest_whole_look_did_not_see(freshness):
    status = looked(*world())
    assert status.is_ready and status_document(status, freshness=freshness)["ready"] is False
