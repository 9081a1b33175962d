"""Passes of `follow` on clusters in memory: what reaches B, what is never written, and the way back from all of it."""

from functools import partial
from pathlib import Path

import pytest

from migrate.apply.journal import JournalLost, JournalWriter, write_all
from migrate.errors import ClusterError
from migrate.extras.follow.judge import WhyNot
from migrate.extras.follow.text import pass_document
from migrate.match.protocol import Matched, Tail, Why
from migrate.model import UNREAD_METADATA, Commit, Failure, LogRange, TopicPartition
from migrate.survey.cluster import BrokerSettings
from migrate.survey.offsets_topic import CommitTopic, GroupKind, GroupRecord
from tests.extras.follow.followscene import T0, T1, U0, FollowScene, G, H, reasons
from tests.fakes import ALIVE, EMPTY, Crash, Script


@pytest.fixture
def scene(tmp_path: Path) -> FollowScene:
    return FollowScene(tmp_path)


def test_a_pass_sets_what_the_source_has_and_the_next_one_finds_it_there(scene):
    first, second = scene.look(), scene.look()
    assert (scene.on_b("g"), scene.on_b("h")) == (G, H)
    assert (first.groups, first.rows, first.rows_set, first.refused) == (2, 3, 3, {})
    assert (second.rows_set, second.rows_changed, second.refused) == (0, 0, {})


def test_living_groups_and_producers_on_the_source_and_records_not_copied_yet_are_no_block(scene):
    scene.source.states["g"] = ALIVE
    scene.source.ranges[TopicPartition("t", 0)] = LogRange(0, 300)
    assert scene.look().refused == {} and scene.on_b("g") == G


def test_a_commit_that_moves_on_and_a_reset_on_the_source_both_reach_the_target(scene):
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    assert scene.look().rows_changed == 1 and scene.on_b("g")["A.t", 0] == 70
    scene.source.commit("g", "t", 0, 3)
    assert scene.look().rows_set == 1 and scene.on_b("g")["A.t", 0] == 3


@pytest.mark.parametrize("amid", ["the look", "the look again"])
def test_nothing_is_begun_to_be_written_once_the_mandate_has_ended(scene, amid):
    scene.until_ms = scene.clock.now_ms() + 60_000
    scene.amid("states", lambda: scene.clock.wait(61.0), at=1 if amid == "the look" else 2)
    told = scene.look()
    assert (scene.target.writes, told.rows_set) == (0, 0) and scene.on_b("g") == {}
    assert told.is_stopped == (amid == "the look")
    assert told.is_stopped or reasons(told) == {"g": WhyNot.NOT_SET, "h": WhyNot.NOT_SET}


@pytest.mark.parametrize("ends", ["before h is intended", "while h is intended", "amid the backup"])
def test_of_many_groups_those_that_come_after_the_mandates_end_are_not_begun_and_never_count_as_written(
    scene, monkeypatch, ends
):
    """Each chunk of groups may take seconds, or a minute of tries: the end is looked at before each."""
    monkeypatch.setattr("migrate.apply.write.batches", lambda groups, _: [[group] for group in groups])
    intend, backup = JournalWriter.intend, JournalWriter.backup
    scene.until_ms = scene.clock.now_ms() + 60_000

    def intending(writer, rows, metadata):
        if (ends == "before h is intended" and "g" in rows) or (ends == "while h is intended" and "h" in rows):
            scene.clock.wait(60.0)
        intend(writer, rows, metadata)

    def saving(writer, *told):
        if ends == "amid the backup":
            scene.clock.wait(60.0)
        backup(writer, *told)

    monkeypatch.setattr(JournalWriter, "intend", intending)
    monkeypatch.setattr(JournalWriter, "backup", saving)
    told = scene.look()
    # The write of the chunk that was begun in time goes on; it was intended before the end.
    assert scene.on_b("h") == {} and told.refused["h"].reason == WhyNot.NOT_SET
    assert scene.on_b("g") == (G if ends == "while h is intended" else {})
    scene.die()
    assert not scene.known("h").written
    assert "h" not in scene.undo().groups()


def test_tries_of_a_write_end_with_the_mandate(scene):
    scene.until_ms = scene.clock.now_ms() + 6_500
    scene.target.script("alter", "g", *[Script(Failure("REQUEST_TIMED_OUT", "busy", retriable=True))] * 500)
    scene.look()
    assert scene.clock.now_ms() <= scene.until_ms


def test_a_group_that_comes_alive_on_the_target_is_left_alone_from_then_on_also_after_it_has_gone(scene):
    scene.look()
    scene.target.states["g"] = ALIVE
    scene.source.commit("g", "t", 0, 70)
    assert reasons(scene.look()) == {"g": WhyNot.ALIVE}
    scene.target.states["g"] = EMPTY
    assert reasons(scene.look()) == {"g": WhyNot.ALIVE}
    scene.die()
    assert reasons(scene.look()) == {"g": WhyNot.ALIVE} and scene.on_b("g") == G


def test_a_group_that_comes_alive_between_the_look_and_the_write_is_not_written(scene):
    scene.amid("states", lambda: scene.target.states.update(g=ALIVE))
    assert reasons(scene.look()) == {"g": WhyNot.ALIVE} and scene.on_b("g") == {}
    scene.target.states["g"] = EMPTY
    assert reasons(scene.look()) == {"g": WhyNot.ALIVE}


def test_a_colleagues_reset_on_the_target_stops_that_group_and_no_other(scene):
    scene.look()
    scene.target.commit("g", "A.t", 0, 90)
    scene.source.commit("g", "t", 0, 70)
    scene.source.commit("h", "u", 0, 50)
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.WRITTEN} and result.unsafe == ("g",)
    assert scene.on_b("g")["A.t", 0] == 90 and scene.on_b("h") == {("A.u", 0): 50}


@pytest.mark.parametrize("partition", [0, 1], ids=["where it would be written", "where nothing needs a write"])
def test_what_somebody_writes_between_the_look_and_the_write_keeps_the_whole_group_from_being_set(scene, partition):
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.amid("states", lambda: scene.target.commit("g", "A.t", partition, 33))
    before = scene.target.calls["alter"]
    assert reasons(scene.look()) == {"g": WhyNot.CHANGED} and scene.target.calls["alter"] == before
    assert reasons(scene.look()) == {"g": WhyNot.WRITTEN}
    assert scene.on_b("g") == G | {("A.t", partition): 33}


def test_an_equal_commit_of_another_client_between_the_look_and_the_write_is_there_and_not_set_by_the_pass(scene):
    scene.amid("states", lambda: scene.target.commit("g", "A.t", 0, 55))
    first = scene.look()
    assert (first.rows_set, first.rows_already_there, first.refused) == (2, 1, {}) and scene.on_b("g") == G
    assert scene.known("g").written == {T1}
    assert pass_document(first)["rows_already_there"] == 1


def test_what_somebody_writes_while_the_topics_are_asked_for_again_is_not_written_over(scene):
    scene.target.ids = {"A.t": "t-id", "A.u": "u-id"}
    scene.look()
    scene.source.commit("g", "t", 0, 70)

    def meddle() -> None:
        scene.clock.wait(45)
        scene.target.commit("g", "A.t", 0, 33)

    scene.amid("topic_ids", meddle, at=1)
    assert reasons(scene.look()) == {"g": WhyNot.NOT_SET} and scene.on_b("g")["A.t", 0] == 33
    assert reasons(scene.look()) == {"g": WhyNot.WRITTEN} and scene.on_b("g")["A.t", 0] == 33


def test_commits_that_move_without_a_member_are_refused_unless_that_was_accepted(tmp_path):
    for accepted, expected in ((), {"g": WhyNot.MOVING}), (("g",), {}):
        scene = FollowScene(tmp_path / str(len(accepted)), changes={"moving_group": accepted})
        scene.journal.path.parent.mkdir()
        scene.source.when("high_watermarks", partial(scene.source.commit, "g", "t", 0, 56))
        assert reasons(scene.look()) == expected


def test_a_grade_that_the_mandate_does_not_name_is_not_written(tmp_path):
    scene = FollowScene(tmp_path)
    scene.comparer = None
    assert reasons(scene.look()) == {"g": WhyNot.GRADE, "h": WhyNot.GRADE}
    scene = FollowScene(tmp_path, changes={"grades": ("estimated",)})
    scene.comparer = None
    assert scene.look().rows_set == 3


def test_mm2s_own_group_sync_refuses_every_group_that_it_takes(scene):
    object.__setattr__(scene.flow, "group_sync", True)
    assert set(reasons(scene.look()).values()) == {"group-sync"}


def test_a_group_that_would_read_too_much_twice_is_refused(tmp_path):
    scene = FollowScene(tmp_path, changes={"max_rereads": 5})
    scene.comparer.places["t", 0, 55] = Matched(40, Why.RETENTION, 15)
    assert reasons(scene.look()) == {"g": "re-read-limit"}


def test_a_name_that_no_group_has_is_told(tmp_path):
    scene = FollowScene(tmp_path, changes={"group": ("g", "gone")})
    assert reasons(scene.look()) == {"gone": "named-groups-exist"} and scene.on_b("g") == G


def test_what_does_not_change_is_written_again_before_the_targets_retention_takes_it(scene):
    scene.on_target.brokers = BrokerSettings(4 * 24 * 3_600_000, True)
    scene.look()
    scene.clock.wait(23 * 3600)
    assert scene.look().rows_set == 0
    scene.clock.wait(3600)
    assert scene.look().rows_set == 3


def test_offsets_whose_clock_runs_from_each_commit_are_written_again_however_little_time_is_left(scene):
    scene.on_target.brokers = BrokerSettings(8 * 3_600_000, True)
    scene.look()
    for kind in (GroupKind.SIMPLE, GroupKind.CONSUMER):
        begun = scene.clock.now_ms()
        scene.on_target.records = {
            "g": GroupRecord(kind, committed_ms={T0: begun, T1: begun}),
            "h": GroupRecord(kind, committed_ms={U0: begun}),
        }
        scene.clock.wait(7 * 3600)
        result = scene.look()
        assert (result.refused, result.rows_set) == ({}, 3)


@pytest.mark.parametrize("refusals", [0, 1])
def test_what_a_classic_groups_own_clock_took_is_nobody_elses_write_and_is_written_again(scene, refusals):
    scene.on_target.brokers = BrokerSettings(8 * 3_600_000, True)
    scene.on_target.records = {"g": GroupRecord(GroupKind.CLASSIC, "consumer", scene.clock.now_ms())}
    scene.clock.wait(4 * 3600)
    assert scene.look().rows_set == 3, "our own write is half as old as the clock says"
    scene.clock.wait(3 * 3600)
    assert reasons(scene.look()) == {"g": "offsets-expiry"}
    scene.clock.wait(3600)
    scene.target.offsets.pop("g")
    scene.target.states.pop("g")
    scene.on_target.records = {}
    scene.target.script("alter", "g", *[Script(Failure("GROUP_AUTHORIZATION_FAILED", "no"))] * refusals)
    for _ in range(refusals):
        assert reasons(scene.look()) == {"g": WhyNot.NOT_SET}
    assert scene.look().refused == {} and scene.on_b("g") == G
    scene.target.offsets.pop("g")
    assert reasons(scene.look()) == {"g": WhyNot.WRITTEN}, "that clock has done its work"


def test_offsets_that_would_be_gone_too_soon_even_if_they_were_written_now_are_refused(scene):
    scene.look()
    now_ms = scene.clock.now_ms()
    scene.on_target.brokers = BrokerSettings(3_600_000, True)
    scene.on_target.records = {
        "g": GroupRecord(GroupKind.SIMPLE, committed_ms={T0: now_ms, T1: now_ms}),
        "h": GroupRecord(GroupKind.SIMPLE, committed_ms={U0: now_ms}),
    }
    assert reasons(scene.look()) == {"g": "offsets-expiry", "h": "offsets-expiry"}


def test_a_refresh_that_the_cluster_refuses_is_named_and_made_again_also_after_retention_took_the_offsets(scene):
    refused = Script(Failure("GROUP_AUTHORIZATION_FAILED", "no"))
    scene.on_target.brokers = BrokerSettings(4 * 24 * 3_600_000, True)
    scene.look()
    for _ in range(4):
        scene.clock.wait(24 * 3600)
        scene.target.script("alter", "g", refused)
        assert reasons(scene.look()) == {"g": WhyNot.NOT_SET}
    scene.target.offsets["g"].clear()
    assert scene.look().refused == {} and scene.on_b("g") == G


@pytest.mark.parametrize("retries", [False, True])
def test_a_refresh_without_an_answer_is_not_proven_by_the_older_write_and_is_made_again(scene, retries):
    lost = Script(Failure("_TIMED_OUT", "no answer", retries, True))
    scene.on_target.brokers = BrokerSettings(4 * 24 * 3_600_000, True)
    scene.look()
    scene.clock.wait(24 * 3600)
    scene.target.script("alter", "g", *([lost] * 20))
    assert reasons(scene.look()) == {"g": WhyNot.NOT_SET}
    scene.target.scripts.clear()
    assert scene.look().rows_set == 2 and scene.look().rows_set == 0


@pytest.mark.parametrize("shortened", [False, True])
def test_after_a_kill_what_was_written_is_as_old_as_the_journal_says_also_once_it_was_made_short(
    scene, monkeypatch, shortened
):
    monkeypatch.setattr("migrate.extras.follow.journal.LEAST_GROWTH_BYTES", -(10**6) if shortened else 10**6)
    scene.on_target.brokers = BrokerSettings(4 * 24 * 3_600_000, True)
    scene.look()
    scene.clock.wait(3600)
    scene.source.commit("h", "u", 0, 50)
    assert scene.look().rows_set == 1
    scene.die()
    scene.clock.wait(22 * 3600)
    assert [scene.look().rows_set, scene.look().rows_set] == [0, 0]
    scene.clock.wait(3600)
    assert [scene.look().rows_set, scene.look().rows_set] == [2, 0], "those of g are a day old, and that of h is not"


def test_records_that_are_copied_and_retention_between_the_look_and_the_write_keep_no_group_back(scene):
    scene.amid("states", lambda: scene.target.ranges.update({T0: LogRange(20, 300)}))
    assert scene.look().refused == {} and scene.on_b("g") == G


@pytest.mark.parametrize("event", ["backup", "intent", "outcome", "readback", "end"])
def test_a_journal_that_takes_no_more_ends_the_passes_for_what_follows_a_torn_line_cannot_be_read(
    scene, monkeypatch, event
):
    def fill(descriptor: int, line: bytes) -> None:
        if b'"event":"%s"' % event.encode() in line:
            raise OSError(28, "No space left on device")
        write_all(descriptor, line)

    monkeypatch.setattr("migrate.apply.journal.write_all", fill)
    try:
        result = scene.look()
    except JournalLost:
        assert event == "backup"
    else:
        assert result.has_lost_journal and "No space left" in result.trouble
    assert (scene.target.writes > 0) == (event not in ("backup", "intent"))


def test_a_write_without_an_answer_is_settled_by_reading_back(scene):
    scene.target.script("alter", "g", Script(Failure("_TIMED_OUT", "no answer", True, True), applied=True))
    scene.look()
    assert scene.on_b("g") == G and scene.look().refused == {}
    assert [scene.known("g").trace.may_stand(place) for place in (T0, T1)] == [(Commit(55),), (Commit(60),)]


def test_a_group_that_the_cluster_refuses_is_named_and_tried_again(scene):
    scene.target.script("alter", "g", Script(Failure("GROUP_AUTHORIZATION_FAILED", "no")))
    first = scene.look()
    assert reasons(first) == {"g": WhyNot.NOT_SET} and first.unsafe == ("g",), "nothing stands there"
    assert scene.look().refused == {} and scene.on_b("g") == G


def test_a_refused_write_is_called_unsafe_where_what_stands_there_lies_beyond_what_the_group_is_owed(scene):
    scene.look()
    for committed, unsafe in (70, ()), (3, ("g",)):
        scene.source.commit("g", "t", 0, committed)
        scene.target.script("alter", "g", Script(Failure("GROUP_AUTHORIZATION_FAILED", "no")))
        result = scene.look()
        assert reasons(result) == {"g": WhyNot.NOT_SET} and result.unsafe == unsafe


def test_killed_amid_a_write_and_run_again_it_goes_on_and_the_way_back_is_exact(scene):
    scene.target.commit("g", "A.t", 0, 5)
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.target.crash_after = 1
    with pytest.raises(Crash):
        scene.look()
    scene.die()
    scene.source.commit("g", "t", 0, 80)
    assert scene.look().refused == {} and scene.on_b("g")["A.t", 0] == 80
    assert scene.rollback().exit_code == 0
    assert (scene.on_b("g"), scene.on_b("h")) == ({("A.t", 0): 5}, {})


@pytest.mark.parametrize("written", [True, False])
def test_killed_amid_a_write_the_way_back_is_exact_whether_it_was_made_or_not(scene, written):
    scene.target.commit("g", "A.t", 0, 5)
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    failure = Failure("_TIMED_OUT", "no answer", False, True)
    scene.target.script("alter", "g", Script(failure, applied=written))
    scene.look()
    assert scene.on_b("g")["A.t", 0] == (70 if written else 55)
    assert scene.rollback().exit_code == 0
    assert (scene.on_b("g"), scene.on_b("h")) == ({("A.t", 0): 5}, {})


def test_a_write_that_shows_only_later_is_not_taken_for_undone(scene):
    """The coordinator had appended it, and moved before it was seen: a reading of the older offset proves nothing."""
    scene.target.commit("g", "A.t", 0, 55)
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.target.script("alter", "g", Script(Failure("COORDINATOR_NOT_AVAILABLE", "moved", False, True), late=True))
    scene.look()

    def silent() -> None:
        raise ClusterError("B does not answer.", "Try again.")

    scene.amid("states", silent)
    with pytest.raises(ClusterError):
        scene.look()
    scene.target.calm()
    assert scene.known("g").writes(T0) == (Commit(55), Commit(70))
    (row,) = [row for row in scene.undo().rows if row.group == "g" and row.partition == 0]
    assert row.needs_acknowledgement
    assert scene.rollback().exit_code == 0
    assert scene.target.unseen["g"] == [], "written over, so that it cannot show any more"
    assert scene.on_b("g") == {("A.t", 0): 55}


@pytest.mark.parametrize("changes", [{}, {"group": ("g", "h")}], ids=["", "named"])
def test_a_group_that_has_no_commit_on_the_source_any_more_is_named_and_never_left_out_in_silence(tmp_path, changes):
    scene = FollowScene(tmp_path, changes=changes)
    scene.look()
    scene.source.offsets.pop("h")
    result = scene.look()
    assert reasons(result) == {"h": WhyNot.GONE_FROM_SOURCE} and result.unsafe == ("h",) and scene.on_b("h") == H


def test_a_group_of_which_a_commit_is_not_seen_on_the_source_any_more_is_named_and_not_set_in_part(scene):
    scene.look()
    gone = scene.source.offsets["g"].pop(TopicPartition("t", 1))
    scene.source.commit("g", "t", 0, 70)
    scene.source.commit("h", "u", 0, 50)
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.GONE_FROM_SOURCE} and result.unsafe == ("g",)
    assert str(T1) in result.refused["g"].sentence
    assert scene.on_b("g") == G and scene.on_b("h") == {("A.u", 0): 50}
    scene.source.offsets["g"][TopicPartition("t", 1)] = gone
    assert scene.look().refused == {} and scene.on_b("g")["A.t", 0] == 70


def test_a_group_that_was_handed_over_and_is_gone_from_the_source_is_done(scene):
    scene.look()
    scene.target.states["h"] = ALIVE
    assert reasons(scene.look()) == {"h": WhyNot.ALIVE}
    scene.source.offsets.pop("h")
    assert scene.look().refused == {}


def test_another_cluster_under_the_same_name_is_neither_read_for_nor_written(scene):
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.target.cluster_id = "another"
    with pytest.raises(ClusterError, match="B is cluster another now, and the mandate is for id-b"):
        scene.look()
    assert scene.on_b("g") == G and scene.forgotten == 1, "what was read of the other one is nobody's"
    scene.target.cluster_id = "id-b"
    assert scene.look().refused == {} and scene.on_b("g")["A.t", 0] == 70


def test_a_group_with_metadata_is_set_with_it_in_the_partitions_that_have_moved(scene):
    scene.source.commit("g", "t", 0, 55, "m")
    scene.look()
    scene.source.commit("g", "t", 1, 61)
    assert scene.look().rows_set == 1 and scene.target.offsets["g"][T0] == Commit(55, "m")


def test_a_group_of_which_only_a_part_was_there_first_is_not_written_where_its_way_back_is_not_possible_here(scene):
    """To take back what was not there, one offset of a group has to be removed: only Kafka's Java client can."""
    scene.target.commit("g", "A.t", 0, 5)
    scene.target.lacking = Failure("JAVA_CLIENT_MISSING", "no Java")
    assert reasons(scene.look()) == {"g": WhyNot.JAVA}
    assert scene.on_b("g") == {("A.t", 0): 5} and scene.on_b("h") == H


def test_metadata_that_nobody_here_can_read_matters_only_where_there_is_a_row(scene):
    scene.target.commit("g", "elsewhere", 0, 5, UNREAD_METADATA)
    assert scene.look().refused == {}


def test_a_rollback_leaves_what_somebody_else_put_there(scene):
    scene.look()
    scene.target.commit("g", "A.t", 0, 33)
    assert scene.rollback(allow_partial=True).exit_code == 4
    assert scene.on_b("g") == {("A.t", 0): 33, ("A.t", 1): 60} and scene.on_b("h") == {}


def test_a_topic_that_was_created_anew_has_its_records_read_anew(scene):
    scene.look()
    scene.target.ids["A.t"] = "another"
    scene.look()
    assert scene.forgotten == 1
    scene.look()
    assert scene.forgotten == 1


@pytest.mark.parametrize("now", ["another", None])
def test_a_topic_that_is_created_anew_or_deleted_between_the_look_and_the_write_refuses_its_groups(scene, now):
    ids = {"A.u": scene.target.ids["A.u"]} | ({"A.t": now} if now else {})
    scene.amid("states", lambda: setattr(scene.target, "ids", ids))
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.CHANGED}
    assert "A.t: target topic id" in result.refused["g"].sentence
    assert result.unsafe == ("g",), "what stands there is of another log"
    assert scene.on_b("g") == {} and scene.on_b("h") == H
    assert scene.look().refused == {} and scene.on_b("g") == G


def test_where_the_target_tells_no_topic_ids_none_are_compared(scene):
    scene.target.ids.clear()
    scene.amid("states", lambda: scene.target.ids.update({"A.t": "told only now"}))
    assert scene.look().refused == {} and scene.on_b("g") == G


def test_told_to_stop_it_begins_no_write(scene):
    stopped = scene.look(is_wanted=lambda: False)
    assert (stopped.is_stopped, stopped.rows_set, stopped.refused, scene.target.writes) == (True, 0, {}, 0)


def test_delays_are_measured_from_the_commit_where_its_time_is_known_and_not_for_what_was_there_at_the_start(scene):
    assert scene.look().delays == ()
    scene.source.commit("g", "t", 0, 70)
    scene.source.commit("h", "u", 0, 50)
    made_ms = scene.clock.now_ms() - 2000
    place = TopicPartition("t", 0)
    made_on = {place: CommitTopic(70, "id-of-source-t")}
    scene.on_source.commits = {"g": GroupRecord(GroupKind.CLASSIC, "consumer", None, {place: made_ms}, made_on=made_on)}
    delays = scene.look().delays
    assert sorted((d.seconds, d.is_from_first_look) for d in delays) == [(6.0, True), (8.0, False)]
    assert U0 in scene.known("h").written


def test_a_commit_is_delivered_once_its_records_are_copied_and_its_offset_is_set_and_not_before(scene):
    scene.look()
    scene.source.ranges[TopicPartition("t", 0)] = LogRange(0, 300)
    scene.source.commit("g", "t", 0, 200)
    scene.comparer.places["t", 0, 200] = Matched(100, Why.NOT_COPIED_YET, 0)
    scene.comparer.tails["t", 0] = Tail(200, 299)
    committed_ms = scene.clock.now_ms()
    delays = [scene.look().delays]
    scene.clock.wait(40.0)
    delays.append(scene.look().delays)
    scene.target.ranges[T0] = LogRange(0, 300)
    scene.comparer.places["t", 0, 200] = Matched(200, Why.PROVEN, 0)
    scene.comparer.tails["t", 0] = Tail(0, 299)
    delays.append(scene.look().delays)
    whole = (scene.clock.now_ms() - committed_ms) / 1000
    assert [[delay.seconds for delay in each] for each in delays] == [[], [], [whole]]


def unsafe_to_fail_over(result) -> list[str]:
    return pass_document(result)["unsafe_to_fail_over"]


def test_a_group_that_never_committed_one_of_its_topics_partitions_is_unsafe(scene):
    scene.source.commit("k", "t", 0, 55)
    assert unsafe_to_fail_over(scene.look()) == ["k"]


def test_a_group_that_reads_a_topic_which_the_filters_leave_out_is_unsafe(tmp_path):
    scene = FollowScene(tmp_path, changes={"group": ("g",), "topic": ("t",)})
    scene.source.commit("g", "u", 0, 100)
    assert unsafe_to_fail_over(scene.look()) == ["g"]


def test_a_group_left_out_while_its_offset_lies_below_the_targets_log_start_is_unsafe(scene):
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.target.ranges[T0] = LogRange(60, 100)
    scene.target.script("alter", "g", Script(Failure("GROUP_AUTHORIZATION_FAILED", "no")))
    assert unsafe_to_fail_over(scene.look()) == ["g"], "from 55 its auto.offset.reset decides"


def test_the_journal_stays_short_over_many_passes(scene, monkeypatch):
    monkeypatch.setattr("migrate.extras.follow.journal.LEAST_GROWTH_BYTES", 2000)
    longest = 0
    for n in range(50):
        scene.source.commit("g", "t", 0, n)
        scene.look()
        longest = max(longest, scene.journal.path.stat().st_size)
    assert longest < 10_000 and scene.on_b("g")["A.t", 0] == 49
    assert scene.rollback().exit_code == 0 and scene.on_b("g") == {}
