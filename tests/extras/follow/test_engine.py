"""Passes of `follow` on clusters in memory: what reaches B, what is never written, and the way back from all of it."""

from functools import partial
from pathlib import Path

import pytest

from migrate.apply.journal import JournalLost, write_all
from migrate.errors import ClusterError
from migrate.extras.follow.judge import WhyNot
from migrate.extras.follow.text import pass_document
from migrate.match.protocol import Matched, Tail, Why
from migrate.model import UNREAD_METADATA, Commit, Decision, Failure, LogRange, TopicPartition
from migrate.plan.plan import RESTORE_MOVED
from migrate.show.apply import apply_lines
from migrate.show.next_steps import Typed
from migrate.survey.cluster import BrokerSettings
from migrate.survey.offsets_topic import CommitTopic, GroupKind, GroupRecord
from tests.extras.follow.followscene import DENIED, T0, T1, U0, FollowScene, G, H, reasons
from tests.fakes import ALIVE, EMPTY, Script

HOUR_MS = 3_600_000
ON_A = TopicPartition("t", 0)


@pytest.fixture
def scene(tmp_path: Path) -> FollowScene:
    return FollowScene(tmp_path)


def before_line(monkeypatch, event, group, act):
    """Do something before each such event of a group goes into the journal."""

    def writing(descriptor, line):
        if b'"event":"%s"' % event.encode() in line and (not group or b'"group":"%s"' % group.encode() in line):
            act()
        write_all(descriptor, line)

    monkeypatch.setattr("migrate.apply.journal.write_all", writing)


def test_a_pass_sets_what_the_source_has_and_the_next_one_what_has_moved_on_or_was_reset_since(scene):
    first, second = scene.look(), scene.look()
    assert (scene.on_b("g"), scene.on_b("h")) == (G, H)
    assert (first.groups, first.rows, first.rows_set, first.refused) == (2, 3, 3, {})
    assert (second.rows_set, second.rows_changed, second.refused) == (0, 0, {})
    for offset in (70, 3):
        scene.source.commit("g", "t", 0, offset)
        moved = scene.look()
        assert (moved.rows_set, moved.rows_changed) == (1, 1) and scene.on_b("g")["A.t", 0] == offset


def test_life_on_the_source_and_what_is_copied_or_expires_meanwhile_are_no_block(scene):
    scene.source.states["g"] = ALIVE
    scene.source.ranges[ON_A] = LogRange(0, 300)
    scene.amid("states", lambda: scene.target.ranges.update({T0: LogRange(20, 300)}))
    assert scene.look().refused == {} and scene.on_b("g") == G


@pytest.mark.parametrize("amid", ["the look", "the look again"])
def test_nothing_is_begun_to_be_written_once_the_mandate_has_ended(scene, amid):
    scene.until_ms = scene.clock.now_ms() + 60_000
    scene.amid("states", lambda: scene.clock.wait(61.0), at=1 if amid == "the look" else 2)
    told = scene.look()
    assert (scene.target.writes, told.rows_set) == (0, 0) and scene.on_b("g") == {}
    assert told.is_stopped == (amid == "the look")
    assert told.is_stopped or reasons(told) == {"g": WhyNot.NOT_SET, "h": WhyNot.NOT_SET}


@pytest.mark.parametrize(("event", "group"), [("backup", "g"), ("intent", "g"), ("intent", "h")])
def test_of_many_groups_those_that_come_after_the_mandates_end_are_not_begun_and_never_count_as_written(
    scene, monkeypatch, event, group
):
    """Each chunk of groups may take seconds, or a minute of tries: the end is looked at before each."""
    monkeypatch.setattr("migrate.apply.write.batches", lambda groups, _: [[group] for group in groups])
    scene.until_ms = scene.clock.now_ms() + 60_000
    before_line(monkeypatch, event, group, lambda: scene.clock.wait(60.0))
    told = scene.look()
    assert scene.on_b("h") == {} and told.refused["h"].reason == WhyNot.NOT_SET
    assert scene.on_b("g") == (G if group == "h" else {}), "what was begun in time goes on"
    scene.die()
    assert not scene.known("h").written and "h" not in scene.undo().groups()


def test_tries_of_a_write_end_with_the_mandate(scene):
    scene.until_ms = scene.clock.now_ms() + 6_500
    scene.target.script("alter", "g", *[Script(Failure("REQUEST_TIMED_OUT", "busy", retriable=True))] * 500)
    scene.look()
    assert scene.clock.now_ms() <= scene.until_ms


@pytest.mark.parametrize("at", [1, 2], ids=["at the look", "right before the write"])
def test_a_group_that_comes_alive_on_the_target_is_left_alone_from_then_on_also_after_it_has_gone(scene, at):
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.amid("states", lambda: scene.target.states.update(g=ALIVE), at=at)
    assert reasons(scene.look()) == {"g": WhyNot.ALIVE}
    scene.target.states["g"] = EMPTY
    assert reasons(scene.look()) == {"g": WhyNot.ALIVE}
    scene.die()
    assert reasons(scene.look()) == {"g": WhyNot.ALIVE} and scene.on_b("g") == G


@pytest.mark.parametrize("partition", [0, 1], ids=["where it would be written", "where nothing needs a write"])
def test_what_somebody_writes_before_the_write_keeps_that_whole_group_from_being_set_and_no_other(scene, partition):
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.source.commit("h", "u", 0, 50)
    scene.amid("states", lambda: scene.target.commit("g", "A.t", partition, 90))
    for why in (WhyNot.CHANGED, WhyNot.WRITTEN):
        result = scene.look()
        assert reasons(result) == {"g": why} and result.unsafe == ("g",)
        assert scene.on_b("g") == G | {("A.t", partition): 90} and scene.on_b("h") == {("A.u", 0): 50}


def test_an_equal_commit_of_another_client_between_the_look_and_the_write_is_there_and_not_set_by_the_pass(scene):
    scene.amid("states", lambda: scene.target.commit("g", "A.t", 0, 55))
    first = scene.look()
    assert (first.rows_set, first.rows_already_there, first.refused) == (2, 1, {}) and scene.on_b("g") == G
    assert scene.known("g").written == {T1} and pass_document(first)["rows_already_there"] == 1


def without_comparison(scene):
    scene.comparer = None


@pytest.mark.parametrize(("changes", "meddle", "expected"), [
    ({}, without_comparison, dict.fromkeys("gh", WhyNot.GRADE)),
    ({"grades": ("estimated",)}, without_comparison, {}),
    ({}, lambda scene: object.__setattr__(scene.flow, "group_sync", True), dict.fromkeys("gh", "group-sync")),
    ({"max_rereads": 5}, lambda scene: scene.comparer.places.update({("t", 0, 55): Matched(40, Why.RETENTION, 15)}),
     {"g": "re-read-limit"}),
    ({"group": ("g", "gone")}, lambda scene: None, {"gone": "named-groups-exist"}),
])  # fmt: skip
def test_what_the_mandate_does_not_name_or_a_check_forbids_is_not_written(tmp_path, changes, meddle, expected):
    scene = FollowScene(tmp_path, changes=changes)
    meddle(scene)
    assert reasons(scene.look()) == expected
    assert bool(scene.on_b("g")) == ("g" not in expected)


def test_offsets_whose_clock_runs_from_each_commit_are_written_again_if_that_keeps_them_and_else_refused(scene):
    def committed_now(kind):
        now_ms = scene.clock.now_ms()
        of = {"g": {T0: now_ms, T1: now_ms}, "h": {U0: now_ms}}
        scene.on_target.records = {group: GroupRecord(kind, committed_ms=times) for group, times in of.items()}

    scene.on_target.brokers = BrokerSettings(8 * HOUR_MS, True)
    scene.look()
    for kind in (GroupKind.SIMPLE, GroupKind.CONSUMER):
        committed_now(kind)
        scene.clock.wait(7 * 3600)
        result = scene.look()
        assert (result.refused, result.rows_set) == ({}, 3)
    committed_now(GroupKind.SIMPLE)
    scene.on_target.brokers = BrokerSettings(HOUR_MS, True)
    assert reasons(scene.look()) == {"g": "offsets-expiry", "h": "offsets-expiry"}


@pytest.mark.parametrize("refusals", [0, 1])
def test_what_a_classic_groups_own_clock_took_is_nobody_elses_write_and_is_written_again(scene, refusals):
    scene.on_target.brokers = BrokerSettings(8 * HOUR_MS, True)
    scene.on_target.records = {"g": GroupRecord(GroupKind.CLASSIC, "consumer", scene.clock.now_ms())}
    scene.clock.wait(4 * 3600)
    assert scene.look().rows_set == 3, "our own write is half as old as the clock says"
    scene.clock.wait(3 * 3600)
    assert reasons(scene.look()) == {"g": "offsets-expiry"}
    scene.clock.wait(3600)
    scene.target.offsets.pop("g")
    scene.target.states.pop("g")
    scene.on_target.records = {}
    scene.target.script("alter", "g", *[DENIED] * refusals)
    for _ in range(refusals):
        assert reasons(scene.look()) == {"g": WhyNot.NOT_SET}
    assert scene.look().refused == {} and scene.on_b("g") == G
    scene.target.offsets.pop("g")
    assert reasons(scene.look()) == {"g": WhyNot.WRITTEN}, "that clock has done its work"


@pytest.mark.parametrize("answer", [
    DENIED, *(Script(Failure("_TIMED_OUT", "no answer", retries, True)) for retries in (False, True)),
], ids=["refused", "no answer", "no answer to any try"])  # fmt: skip
@pytest.mark.parametrize("days", [1, 4], ids=["", "after retention took the offsets"])
def test_a_refresh_that_was_not_made_for_certain_is_named_and_made_again(scene, answer, days):
    scene.on_target.brokers = BrokerSettings(4 * 24 * HOUR_MS, True)
    scene.look()
    for _ in range(days):
        scene.clock.wait(24 * 3600)
        scene.target.script("alter", "g", *[answer] * 20)
        assert reasons(scene.look()) == {"g": WhyNot.NOT_SET}
    scene.target.scripts.clear()
    if days == 4:
        scene.target.offsets["g"].clear()
    assert [scene.look().rows_set for _ in range(2)] == [2, 0] and scene.on_b("g") == G


@pytest.mark.parametrize("shortened", [False, True])
def test_after_a_kill_what_was_written_is_as_old_as_the_journal_says_also_once_it_was_made_short(
    scene, monkeypatch, shortened
):
    monkeypatch.setattr("migrate.extras.follow.journal.LEAST_GROWTH_BYTES", -(10**6) if shortened else 10**6)
    scene.on_target.brokers = BrokerSettings(4 * 24 * HOUR_MS, True)
    scene.look()
    scene.clock.wait(3600)
    scene.source.commit("h", "u", 0, 50)
    assert scene.look().rows_set == 1
    scene.die()
    scene.clock.wait(22 * 3600)
    assert [scene.look().rows_set, scene.look().rows_set] == [0, 0]
    scene.clock.wait(3600)
    assert [scene.look().rows_set, scene.look().rows_set] == [2, 0], "those of g are a day old, and that of h is not"


@pytest.mark.parametrize("event", ["backup", "intent", "outcome", "readback", "end"])
def test_a_journal_that_takes_no_more_ends_the_passes_for_what_follows_a_torn_line_cannot_be_read(
    scene, monkeypatch, event
):
    def fail():
        raise OSError(28, "No space left on device")

    before_line(monkeypatch, event, "", fail)
    try:
        result = scene.look()
    except JournalLost:
        assert event == "backup"
    else:
        assert result.has_lost_journal and "No space left" in result.trouble
    assert (scene.target.writes > 0) == (event not in ("backup", "intent"))


def test_a_refused_write_is_tried_again_and_called_unsafe_where_the_group_would_not_start_before_what_it_is_owed(scene):
    def denied(at=0, log_start=0):
        scene.source.commit("g", "t", 0, at)
        scene.target.ranges[T0] = LogRange(log_start, 100)
        scene.target.script("alter", "g", DENIED)
        result = scene.look()
        assert reasons(result) == {"g": WhyNot.NOT_SET}
        return result.unsafe

    assert denied(55) == ("g",), "nothing stands there"
    assert scene.look().refused == {} and scene.on_b("g") == G
    assert (denied(70), denied(3)) == ((), ("g",))
    assert denied(70, log_start=60) == ("g",), "from 55 its auto.offset.reset decides"


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("is_made", [False, True])
def test_killed_amid_a_write_that_was_made_or_not_the_way_back_is_exact_also_once_it_went_on(scene, is_made, goes_on):
    scene.target.commit("g", "A.t", 0, 5)
    scene.look()
    scene.kill_amid_a_write(is_made)
    assert scene.on_b("g")["A.t", 0] == (70 if is_made else 55)
    if goes_on:
        scene.source.commit("g", "t", 0, 80)
        assert scene.look().refused == {} and scene.on_b("g")["A.t", 0] == 80
    assert scene.rollback().exit_code == 0
    assert (scene.on_b("g"), scene.on_b("h")) == ({("A.t", 0): 5}, {})


def test_a_write_that_shows_only_later_is_not_taken_for_undone(scene):
    """The coordinator had appended it, and moved before it was seen: a reading of the older offset proves nothing."""
    scene.target.commit("g", "A.t", 0, 55)
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.target.script("alter", "g", Script(Failure("COORDINATOR_NOT_AVAILABLE", "moved", False, True), late=True))
    scene.look()
    assert scene.known("g").writes(T0) == (Commit(55), Commit(70))
    (row,) = [row for row in scene.undo().rows if row.group == "g" and row.partition == 0]
    assert row.needs_acknowledgement
    assert scene.rollback().exit_code == 0
    assert scene.target.unseen["g"] == [], "written over, so that it cannot show any more"
    assert scene.on_b("g") == {("A.t", 0): 55}


@pytest.mark.parametrize("changes", [{}, {"group": ("g", "h")}], ids=["", "named"])
def test_a_group_that_has_no_commit_on_the_source_any_more_is_named_unless_it_was_handed_over(tmp_path, changes):
    scene = FollowScene(tmp_path, changes=changes)
    scene.look()
    commits = scene.source.offsets.pop("h")
    result = scene.look()
    assert reasons(result) == {"h": WhyNot.GONE_FROM_SOURCE} and result.unsafe == ("h",) and scene.on_b("h") == H
    scene.source.offsets["h"] = commits
    scene.target.states["h"] = ALIVE
    assert reasons(scene.look()) == {"h": WhyNot.ALIVE}
    scene.source.offsets.pop("h")
    assert WhyNot.GONE_FROM_SOURCE not in reasons(scene.look()).values()


def test_another_cluster_under_the_same_name_is_neither_read_for_nor_written(scene):
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.target.cluster_id = "another"
    with pytest.raises(ClusterError, match="B is cluster another now, and the mandate is for id-b"):
        scene.look()
    assert scene.on_b("g") == G and scene.forgotten == 1, "what was read of the other one is nobody's"
    scene.target.cluster_id = "id-b"
    assert scene.look().refused == {} and scene.on_b("g")["A.t", 0] == 70


def test_a_group_is_set_with_its_metadata_and_what_nobody_here_can_read_matters_only_where_there_is_a_row(scene):
    scene.target.commit("g", "elsewhere", 0, 5, UNREAD_METADATA)
    scene.source.commit("g", "t", 0, 55, "m")
    assert scene.look().refused == {}
    scene.source.commit("g", "t", 1, 61)
    assert scene.look().rows_set == 1 and scene.target.offsets["g"][T0] == Commit(55, "m")


def test_a_group_of_which_only_a_part_was_there_first_is_not_written_where_its_way_back_is_not_possible_here(scene):
    """To take back what was not there, one offset of a group has to be removed: only Kafka's Java client can."""
    scene.target.commit("g", "A.t", 0, 5)
    scene.target.lacking = Failure("JAVA_CLIENT_MISSING", "no Java")
    assert reasons(scene.look()) == {"g": WhyNot.JAVA}
    assert scene.on_b("g") == {("A.t", 0): 5} and scene.on_b("h") == H


def test_a_topic_that_was_created_anew_has_its_records_read_anew_once(scene):
    scene.look()
    scene.target.ids["A.t"] = "another"
    for _ in range(2):
        scene.look()
        assert scene.forgotten == 1


def test_told_to_stop_it_begins_no_write(scene):
    stopped = scene.look(is_wanted=lambda: False)
    assert (stopped.is_stopped, stopped.rows_set, stopped.refused, scene.target.writes) == (True, 0, {}, 0)


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


def test_a_delay_is_from_when_a_commit_was_made_or_first_seen_until_its_records_are_copied_and_its_offset_is_set(scene):
    def look(copied, why, tail):
        scene.comparer.places["t", 0, 200] = Matched(copied, why, 0)
        scene.comparer.tails["t", 0] = tail
        return [(delay.seconds, delay.is_from_first_look) for delay in scene.look().delays]

    assert scene.look().delays == (), "what was there at the start is of any age"
    scene.source.ranges[ON_A] = LogRange(0, 300)
    scene.source.commit("g", "t", 0, 200)
    scene.source.commit("h", "u", 0, 50)
    made_ms, made_on = scene.clock.now_ms() - 2000, CommitTopic(200, "id-of-source-t")
    known = GroupRecord(GroupKind.CLASSIC, "consumer", None, {ON_A: made_ms}, made_on={ON_A: made_on})
    scene.on_source.commits = {"g": known}
    assert look(100, Why.NOT_COPIED_YET, Tail(200, 299)) == [(6.0, True)], "that of h"
    scene.clock.wait(40.0)
    assert look(100, Why.NOT_COPIED_YET, Tail(200, 299)) == []
    scene.target.ranges[T0] = LogRange(0, 300)
    delays = look(200, Why.PROVEN, Tail(0, 299))
    assert delays == [((scene.clock.now_ms() - made_ms) / 1000, False)]


@pytest.mark.parametrize(("changes", "beyond"), [
    ({}, ("k", "t", 0, 55)), ({"group": ("g",), "topic": ("t",)}, ("g", "u", 0, 100)),
], ids=["a partition that it never committed", "a topic that the filters leave out"])  # fmt: skip
def test_a_group_with_a_partition_that_no_row_covers_is_unsafe(tmp_path, changes, beyond):
    scene = FollowScene(tmp_path, changes=changes)
    scene.source.commit(*beyond)
    assert scene.look().unsafe == (beyond[0],)


def test_the_journal_stays_short_over_many_passes(scene, monkeypatch):
    monkeypatch.setattr("migrate.extras.follow.journal.LEAST_GROWTH_BYTES", 2000)
    for n in range(50):
        scene.source.commit("g", "t", 0, n)
        scene.look()
        assert scene.journal.path.stat().st_size < 10_000 and scene.on_b("g")["A.t", 0] == n
    assert scene.rollback().exit_code == 0 and scene.on_b("g") == {}


def changed_topic(scene, side, now):
    """Let a pass find that topic t has another id, or none, at its last look at this cluster."""
    topic, cluster = {"source": ("t", scene.source), "target": ("A.t", scene.target)}[side]
    others = {name: of for name, of in cluster.ids.items() if name != topic}
    ids = others | ({topic: now} if now else {})
    if side == "source":
        cluster.when("high_watermarks", lambda: setattr(cluster, "ids", ids))
    else:
        scene.amid("states", lambda: setattr(cluster, "ids", ids))


@pytest.mark.parametrize(("side", "said"), [
    ("source", "t was deleted, or created anew, on the source"), ("target", "A.t: target topic id"),
])  # fmt: skip
@pytest.mark.parametrize("now", ["another", None])
def test_a_topic_that_is_created_anew_or_deleted_before_the_write_refuses_its_groups(tmp_path, side, said, now):
    """An offset of the old log is a place in the new one, too: records that nobody has read would be passed over."""
    scene = FollowScene(tmp_path)
    changed_topic(scene, side, now)
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.CHANGED} and result.unsafe == ("g",)
    assert said in result.refused["g"].sentence
    assert scene.on_b("g") == {} and scene.on_b("h") == H
    assert scene.look().refused == {} and scene.on_b("g") == G, "the next pass sees the new one alone"


@pytest.mark.parametrize("side", ["source", "target"])
def test_where_a_cluster_tells_no_topic_ids_none_are_compared(tmp_path, side):
    scene = FollowScene(tmp_path)
    getattr(scene, side).ids.clear()
    changed_topic(scene, side, "told only now")
    assert scene.look().refused == {} and scene.on_b("g") == G


@pytest.mark.parametrize(("side", "reason"), [
    ("source", WhyNot.COMMITS), ("target", WhyNot.COMMITS), ("source", WhyNot.MOVING),
])  # fmt: skip
@pytest.mark.parametrize("accepted", [(), ("g",)])
def test_a_group_whose_commits_move_without_a_member_or_were_read_only_once_is_not_written_unless_that_was_accepted(
    tmp_path, side, reason, accepted
):
    """A reader that assigns partitions itself is only ever seen by its commits: unseen, it may be there."""
    scene = FollowScene(tmp_path, changes={"moving_group": accepted})
    scene.target.commit("g", "A.t", 0, 5)
    cluster = getattr(scene, side)
    if reason == WhyNot.COMMITS:
        moves = Script(failure=Failure("NOT_COORDINATOR", "it moves"))
        scene.amid("commits", partial(cluster.script, "commits", "g", moves), at=1, on=cluster)
    else:
        cluster.when("high_watermarks", partial(cluster.commit, "g", "t", 0, 56))
    result = scene.look()
    assert reasons(result) == ({} if accepted else {"g": reason}) and result.unsafe == tuple(reasons(result))


# --- the way back -----------------------------------------------------------------------------------------


def test_it_goes_from_our_last_write_to_what_stood_there_first_or_to_nothing_and_without_a_doubt_asks_nobody(scene):
    scene.target.commit("g", "A.t", 0, 5)
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.look()
    undo = scene.undo()
    assert [(r.target_partition, r.decision, r.target_prior, r.target_offset, r.reason) for r in undo.rows][:2] == [
        (T0, Decision.SET, 70, 5, "was-there"), (T1, Decision.REMOVE, 60, None, "was-absent"),
    ]  # fmt: skip
    assert (undo.rows[0].source_topic, undo.header.kind) == ("t", "undo")
    assert undo.header.undoes == scene.plan.fingerprint and scene.asked == []


@pytest.mark.parametrize("metadata", ["", "m"])
def test_of_a_write_in_doubt_what_stands_there_is_taken_back_and_only_metadata_needs_java(scene, metadata):
    scene.target.commit("g", "A.t", 1, 3, metadata)
    scene.look()
    scene.kill_amid_a_write()
    assert {r.target_partition: r.target_prior for r in scene.undo().rows}[T0] == 70
    assert scene.asked == [bool(metadata)]


def test_a_target_that_does_not_tell_is_an_error_and_no_guess(scene):
    scene.look()
    scene.kill_amid_a_write()
    scene.target.script("commits", "g", DENIED)
    with pytest.raises(ClusterError, match="could not be read"):
        scene.undo()


def test_an_offset_that_moved_since_is_said_to_be_set_by_follow_and_moved_by_nobody_in_particular(scene):
    def told(moved):
        result = scene.rollback(moved=moved, execute=False)
        text = "\n".join(apply_lines(result, Typed("rollback", "mandate.plan", ()), "f" * 64, 1000, False))
        assert "apply set" not in text and "since the apply" not in text and "a consumer ran" not in text
        return text

    scene.look()
    scene.target.commit("g", "A.t", 0, 75)
    refused = told("refuse")
    assert "expected 55 (what follow set), seen 75: moved on by 20 since: a consumer or another client" in refused
    assert "offsets have moved since follow set them" in refused.lower()
    assert "follow set 55, now 75" in told(RESTORE_MOVED)
