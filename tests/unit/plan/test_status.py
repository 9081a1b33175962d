"""One look at a flow: the verdicts are those of `plan`."""

import json

from migrate.cli.status import exit_code
from migrate.errors import EXIT_DONE, EXIT_REFUSED
from migrate.match.protocol import Tail
from migrate.mm2.name_map import NameMap
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import Failure, Level, LogRange, TopicPartition
from migrate.plan.status import ONLY_PLAN_SHOWS
from migrate.plan.watch import Watch
from migrate.show.status import progress_line, status_document
from migrate.survey.drain import UNKNOWN, Lag
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import GroupKind, GroupRecord, PastCommit
from migrate.survey.policies import Policies, Waiver
from tests.fakes import ALIVE, FakeClock, FakeComparer, FakeGroupFacts
from tests.unit.planscene import planned, world
from tests.unit.statusscene import looked, text

U0 = TopicPartition("u", 0)


def test_a_flow_at_rest_is_ready():
    status = looked(*world())
    assert status.is_ready and status.lag == Lag(0, True)
    assert [(t.source_topic, t.source_end, t.copied, t.drained) for t in status.topics] == [
        ("t", 200, 200, True),
        ("u", 100, 100, True),
    ]
    said = text(status)
    assert said.startswith("READY: ") and "newest offset sync 12 s ago; newest checkpoint 5 s ago" in said
    assert "no record written in 15 s" in said and "NOTHING IS MISSING" in said


def test_a_copy_that_lies_where_the_policy_does_not_say_is_not_called_copied():
    source, target, mirror = world()
    target.ranges["A.u", 0] = LogRange(0, 0)
    for tail in (Tail(None), Tail(None, last_record=99)):
        comparer = FakeComparer(tails={("u", 0): tail})
        status = looked(source, target, mirror, comparer)
        (u,) = (topic for topic in status.topics if topic.source_topic == "u")
        assert (u.drained, u.copied, u.lag) == (None, None, UNKNOWN)
        assert [(c.check, c.subject) for c in status.blocks] == [("not-drained", "u")]
        assert "the copy on B is empty" in text(status) and "u -> A.u" in text(status)


def test_behind_a_filter_a_copy_that_stands_still_is_copied_as_far_as_its_newest_run_came():
    source, target, mirror = world()
    mirror.last_copied_offset = {}
    filtered = looked(source, target, mirror, FakeComparer(tails={("u", 0): Tail(40, 99, passed_over=40)}))
    (u,) = (topic for topic in filtered.topics if topic.source_topic == "u")
    assert (u.drained, u.copied, u.lag.records) == (True, 100, 0) and filtered.is_ready
    waiting = looked(source, target, mirror, FakeComparer(tails={("u", 0): Tail(40, 99, passed_over=38)}))
    (u,) = (topic for topic in waiting.topics if topic.source_topic == "u")
    assert (u.drained, u.copied, u.lag.records) == (False, 98, 2) and not waiting.is_ready


def test_what_a_clock_that_is_behind_has_not_come_to_is_not_called_a_moment_ago():
    said = " ".join(text(looked(*world(), behind_ms=7_200_000)).split())
    assert "newest checkpoint of " in said and "UTC, which this machine's clock has not come to" in said
    assert "ago" not in said


def test_status_blocks_what_plan_blocks_but_for_what_only_plan_can_tell():
    source, target, mirror = world()
    source.states["g"] = ALIVE
    target.commit("h", "A.u", 0, 100)
    comparer = FakeComparer(tails={("t", 1): Tail(3, 99, 1_000)})
    mirror.last_copied_offset = {}
    status = looked(source, target, mirror, comparer)
    plan = planned(source, target, mirror, comparer=comparer)
    assert {(c.check, c.subject) for c in status.blocks} == {
        (c.check, c.subject) for c in plan.blocks() if c.check not in ONLY_PLAN_SHOWS
    }
    assert {c.check for c in status.blocks} == {"source-group-stopped", "not-drained"}


def test_what_keeps_plan_from_being_clean_is_told_with_what_to_do():
    source, target, mirror = world()
    source.states["g"] = ALIVE
    mirror.last_copied_offset = {}
    status = looked(source, target, mirror, FakeComparer(tails={("t", 1): Tail(3, 99, FakeClock().now_ms() - 80_000)}))
    said = " ".join(text(status).split())
    assert said.startswith("NOT READY: not-drained, source-group-stopped")
    assert "GROUPS ALIVE g: Stable on A, 1 member: app@10.0.0.7" in said
    assert "t -> A.t 2 200 197 3 95 s no behind" in said  # 80 s and the settle time
    assert "Stop these consumers" in said and "on A: 1 alive (1 member); on B: none alive, 0 with offsets" in said


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


def test_a_waiver_makes_it_ready_as_it_makes_the_plan_clean():
    status = looked(*alive(), policies=Policies(waivers=(Waiver("source-group-stopped", "g"),)))
    assert status.is_ready and "ACCEPTED  source-group-stopped" in text(status)


def alive():
    """A world in which g is alive on A."""
    source, target, mirror = world()
    source.states["g"] = ALIVE
    return source, target, mirror


def test_an_estimated_lag_is_marked_and_never_ready():
    source, target, mirror = world()
    source.ranges[U0], mirror.last_copied_offset = LogRange(0, 500), {}
    status = looked(source, target, mirror, FakeComparer(tails={("u", 0): Tail(None)}))
    (topic,) = [t for t in status.topics if t.source_topic == "u"]
    assert topic.lag == Lag(400) and topic.drained is None and not status.is_ready
    (line,) = (line for line in text(status).splitlines() if line.startswith("u -> A.u"))
    assert line.split()[3:] == ["1", "500", "100", "~400", "?", "no", "not", "known"]


def down(**more):
    """A look while A is down, at checkpoints of g on t."""
    source, target, mirror = world()
    mirror.latest = {CheckpointKey("g", "A.t", p): CheckpointRecord(50, 50, "", p, 1) for p in (0, 1)}
    return looked(source, target, mirror, down="source A (x:1) cannot be reached.", **more)


def test_with_the_source_down_what_it_alone_knows_is_a_question_mark():
    status = down()
    assert not status.is_ready and [c.check for c in status.blocks] == ["source-down"]
    (topic,) = status.topics
    assert (topic.source_end, topic.copied, topic.lag.records, topic.drained) == (None, 200, None, None)
    said = " ".join(text(status, 120).split())
    assert said.startswith("A DOES NOT ANSWER; NOT READY: source-down")
    assert "cannot be reached" in said and "Producers not known" in said and "on A: not known" in said
    assert "t -> A.t 2 ? 200 ? ? ? not known" in said
    assert status_document(status)["source_down"] == "source A (x:1) cannot be reached."


def test_an_accepted_outage_of_the_source_is_never_ready_nor_is_one_without_a_checkpoint():
    status = down(policies=Policies(waivers=(Waiver("source-down"),)))
    assert not status.blocks and exit_code(status) == EXIT_REFUSED
    assert text(status).startswith("A DOES NOT ANSWER; NOT READY: what only it knows was not looked at")
    assert progress_line(status, {}, "").endswith("not ready: A does not answer")
    assert status_document(status)["ready"] is False
    status = looked(*world(), down="source A (x:1) cannot be reached.")
    assert not status.blocks and not status.is_ready
    assert text(status).startswith("A DOES NOT ANSWER, and B has no checkpoint")


def test_where_nothing_is_to_be_moved_that_is_said_and_nothing_is_ready():
    status = looked(*world(), filters=Filters.from_options(groups=("bil.*",)))
    assert status.commits == 0 and status.lag.records is None
    assert not status.is_ready and status_document(status)["ready"] is False
    assert exit_code(status) == EXIT_REFUSED and exit_code(looked(*world())) == EXIT_DONE
    assert progress_line(status, {}, "x").endswith("; not ready: no commit is inside the filters")
    said = text(status)
    assert said.startswith("NOTHING TO MOVE: no commit is inside the filters")
    assert "Producers not looked at" in " ".join(said.split())
    assert "NOTHING IS MISSING" not in said and "NOTHING WAS LOOKED AT" in said


def test_the_document_is_json_and_holds_every_partition_group_and_check():
    status = looked(*world())
    watch = Watch()
    watch.take(status, 0.0)
    document = json.loads(json.dumps(status_document(status, None, watch.bars, watch.time_left())))
    assert document["ready"] is True and document["time_left"]["pace"] == "done"
    assert [len(t["partitions"]) for t in document["topics"]] == [2, 1]
    assert [g["group"] for g in document["groups"]] == ["g", "h"]
    assert {c["check"] for c in document["checks"]} >= {"producers-stopped", "not-drained"}
    assert document["topics"][0]["progress"] == {"done": 200, "total": 200}


def test_a_glance_says_that_it_did_not_watch_producers_for_long_and_is_not_ready():
    source, target, mirror = world()
    status = looked(source, target, mirror, settle=0.0)
    assert [(c.level, c.counts_as) for c in status.checks if c.check == "producers-stopped"] == [
        (Level.NOT_VISIBLE, Level.BLOCK)
    ]
    assert not status.is_ready and "two-looks" in {c.check for c in status.blocks}
    assert "not watched long enough" in text(status)


def committed(ago_seconds: int, every_ms: int = 5_000) -> GroupRecord:
    at_ms = FakeClock().now_ms() - 1000 * ago_seconds
    place, newest = TopicPartition("t", 0), (PastCommit(at_ms - every_ms, 0), PastCommit(at_ms, 120))
    return GroupRecord(GroupKind.CLASSIC, "consumer", None, {place: at_ms}, newest={place: newest})


def test_of_a_living_group_it_says_what_a_hard_stop_reads_twice_and_of_stopped_ones_when_they_committed_last():
    source, target, mirror = world()
    source.states["g"] = ALIVE
    groups = FakeGroupFacts(commits={"g": committed(1), "h": committed(185)})
    status = looked(source, target, mirror, source_groups=groups)
    said = " ".join(text(status, 200).split())
    assert (
        "g: Stable on A, 1 member: app@10.0.0.7; commits about every 5 s, each time 120 records of a partition: a hard "
        "stop reads them twice"
    ) in said
    assert "stopped groups on A committed last 3 min 20 s ago (h)" in said  # 185 s, and the settle time
    (block,) = (c for c in status.blocks if c.check == "source-group-stopped")
    assert block.seen.endswith(
        "; it commits about every 5 s, each time 120 records of a partition: a hard stop reads them twice"
    )
    found = {g["group"]: g["commits_on_source"] for g in status_document(status)["groups"]}
    last_ms = committed(185).last_commit_ms
    assert found["h"] == {"last_commit_ms": last_ms, "seconds_between_commits": 5.0, "records_between_commits": 120}


def test_a_group_that_commits_all_the_time_is_not_said_to_commit_every_0_s():
    groups = FakeGroupFacts(commits={"g": committed(1, every_ms=200)})
    said = text(looked(*alive(), source_groups=groups), 200)
    assert "commits more than once a second, each time 120" in said


def test_where_the_offsets_topic_is_not_to_be_read_nothing_is_said_of_commits_and_json_says_why():
    groups = FakeGroupFacts(commits=Failure("TOPIC_AUTHORIZATION_FAILED", "no"))
    status = looked(*alive(), source_groups=groups)
    assert "commits about" not in text(status) and "committed last" not in text(status)
    assert status_document(status)["groups"][0]["commits_on_source"] == {"error": "TOPIC_AUTHORIZATION_FAILED"}
    why = "up to 900,000 records to read"
    many = looked(*alive(), source_groups=FakeGroupFacts(commits=Failure("TOO_MANY_RECORDS", why)))
    assert " ".join(text(many, 200).split()).count(f"their commits on A were not looked at: {why}") == 1


def test_a_stopped_group_whose_records_are_not_there_is_counted():
    source, target, mirror = world()
    status = looked(source, target, mirror, source_groups=FakeGroupFacts(commits={"h": committed(10)}))
    assert "committed last 25 s ago (h); of 1 group not known" in " ".join(text(status, 200).split())
