"""By when consumers must be back, by the clock that Kafka itself uses, and how long an answer about groups counts."""

from unittest.mock import Mock

import pytest

from migrate.checks.groups import offsets_expiry
from migrate.cli.status import Lookout
from migrate.mm2.topic_reader import News
from migrate.model import Commit, Decision, Failure, GroupState, Level, Side, TopicPartition
from migrate.row_table import PlanRows
from migrate.session.status import StatusSession
from migrate.survey.expiry import Expiry, OffsetClocks, expiry_of, needs_record, remedy, span
from migrate.survey.group_facts import REMEMBERED_SECONDS, AnswerMemory, BrokerSettings, GroupFacts
from migrate.survey.groups import ExpiryWatch
from migrate.survey.offsets_topic import GroupKind, GroupRecord
from tests.builders import make_row
from tests.fakes import FakeClock, FakeCluster, FakeComparer, FakeGroupFacts, NoProgress
from tests.unit.checkscene import HOUR, NOW, WEEK, surveyed
from tests.unit.planscene import world
from tests.unit.surveyscene import request, timer

FORBIDDEN = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")
PLACE, OTHER, THIRD = (TopicPartition("A.t", partition) for partition in range(3))
SHORT = BrokerSettings(HOUR, True)


def expiry(state="Empty", kind="classic", settings=WEEK, record=None, records=None, kept=(), sets=None) -> Expiry:
    """Of a group that keeps these offsets, and sets others if it keeps none or `sets` is True."""
    records = ({} if record is None else {"g": record}) if records is None else records
    clocks = OffsetClocks("B", settings, records, NOW)
    return expiry_of("g", GroupState(state, kind=kind), kept, not kept if sets is None else sets, clocks)


def hours_left(**known) -> float | None:
    left = expiry(**known).left_ms(NOW)
    return None if left is None else left / HOUR


def recorded(committed=(), expires=(), kind=GroupKind.SIMPLE, since=None) -> GroupRecord:
    """A group's records; times are hours from now, of A.t-0 and A.t-1."""
    places = (PLACE, OTHER)
    return GroupRecord(
        kind, "consumer" if kind is GroupKind.CLASSIC else "", None if since is None else NOW + since * HOUR,
        {place: NOW + hours * HOUR for place, hours in zip(places, committed, strict=False)},
        {place: NOW + hours * HOUR for place, hours in zip(places, expires, strict=False)},
    )  # fmt: skip


def classic(since, committed=(), expires=()) -> GroupRecord:
    return recorded(committed, expires, GroupKind.CLASSIC, since)


@pytest.mark.parametrize("known", [
    {"state": "Absent", "records": FORBIDDEN},
    {"state": "Dead", "records": FORBIDDEN},
    {"record": recorded()},
    {"kind": "consumer", "record": recorded(kind=GroupKind.CONSUMER)},
])  # fmt: skip
def test_a_group_that_is_not_there_yet_or_has_no_classic_members_has_the_full_time_from_apply_on(known):
    found = expiry(**known)
    assert hours_left(**known) == 168 and found.from_apply
    assert "2026-08-08 03:00 UTC" in found.sentence and "7 days" in found.sentence


def test_a_classic_groups_clock_runs_since_it_lost_its_last_member_however_fresh_the_offsets_are():
    found = expiry(record=classic(-167, [0]))
    assert found.left_ms(NOW) == HOUR and not found.from_apply
    assert "2026-08-01 04:00 UTC" in found.sentence and "2026-07-25 04:00 UTC" in found.sentence


@pytest.mark.parametrize(("known", "hours"), [
    # Nobody can tell: the records are forbidden, the settings are, or the record does not say since when.
    ({"records": FORBIDDEN}, None),
    ({"settings": FORBIDDEN}, None),
    ({"record": classic(None)}, None),
    # But what is set goes within a short retention, whatever else is unknown.
    ({"settings": SHORT, "records": FORBIDDEN}, 1),
    ({"settings": SHORT, "kept": {PLACE}, "sets": True}, 1),
    ({"settings": SHORT, "kept": {PLACE}}, None),
    # What is kept goes by the time of its commit.
    ({"record": recorded([-100]), "kept": {PLACE}}, 68),
    ({"record": recorded([-10, -100]), "kept": {PLACE, OTHER}}, 68),
    ({"record": recorded(), "kept": {PLACE}}, None),
    ({"kind": "consumer", "records": FORBIDDEN, "kept": {PLACE}}, None),
    ({"record": recorded([0, 0], [500, 400]), "kept": {PLACE, OTHER}}, 400),
    # An end of its own also outlasts the clock of the others.
    ({"record": recorded([-160], [1000]), "kept": {PLACE}}, 1000),
    ({"record": recorded([0, -100], [1000]), "kept": {PLACE, OTHER}}, 68),
    # The group's other offsets are set, and go by when it became empty.
    ({"record": classic(-100, [0], [1000]), "kept": {PLACE}, "sets": True}, 68),
    # That clock takes nothing where every kept offset has an end of its own, and none is set.
    ({"record": classic(-200, [-200], [500, 500]), "kept": {PLACE, OTHER}}, 500),
    ({"record": classic(-200, [-200], [500, 500]), "kept": {PLACE, OTHER}, "sets": True}, -32),
    ({"record": classic(-200, [-200], [500, 500]), "kept": {PLACE, OTHER, THIRD}}, -32),
    # An end that is near is reported even where the other clocks are unknown, one that is far is not.
    ({"record": classic(None, [], [1]), "kept": {PLACE}}, 1),
    ({"record": classic(None, [], [100]), "kept": {PLACE, OTHER}}, None),
    ({"record": recorded([], [100]), "kept": {PLACE, OTHER}}, None),
    ({"settings": FORBIDDEN, "record": recorded([0], [3]), "kept": {PLACE}, "sets": True}, None),
    # Who is not there has no commits any more.
    ({"state": "Absent", "settings": FORBIDDEN, "record": recorded([0], [1]), "kept": {PLACE}}, None),
])  # fmt: skip
def test_the_first_clock_that_is_known_to_run_decides_unless_an_earlier_one_may(known, hours):
    assert hours_left(**known) == hours


@pytest.mark.parametrize("settings", [WEEK, FORBIDDEN])
@pytest.mark.parametrize("kind", [GroupKind.SIMPLE, GroupKind.CONSUMER, GroupKind.CLASSIC])
@pytest.mark.parametrize("sets", [False, True])
def test_a_near_end_that_a_commit_carries_itself_comes_before_anything_else_known_or_not(settings, kind, sets):
    found = expiry(settings=settings, record=recorded([0], [1], kind, since=0), kept={PLACE}, sets=sets)
    assert found.left_ms(NOW) == HOUR and found.of_commit and not found.from_apply
    assert "2026-08-01 04:00 UTC" in found.sentence and "A.t-0" in found.sentence
    # A consumer that only joins does not take that end away: only a new commit does.
    assert "Start a consumer" not in remedy(found, "B") and "Delete the empty group" in remedy(found, "B")


def test_plan_and_apply_both_look_at_what_is_set_beside_what_is_kept():
    rows = (make_row("g", "t", 0, decision=Decision.KEEP, target_prior=650), make_row("g", "t", 1))
    records, state = {"g": recorded([-1], [720])}, {"g": GroupState("Empty")}
    seen = surveyed(group_facts=GroupFacts({}, SHORT, records, NOW), target_states=state)
    assert [told.level for told in offsets_expiry.judge(seen, PlanRows.of(rows))] == [Level.BLOCK]
    assert [told.level for told in offsets_expiry.judge(seen, PlanRows.of(rows[:1]))] == [Level.PASS]
    target = FakeCluster(told=FakeGroupFacts(brokers=SHORT, records=records))
    watch = ExpiryWatch(target, timer(), NOW)
    assert watch.look({"g": rows}, {"g"}, state, {"g": {PLACE: Commit(650)}})[0]["g"].left_ms(NOW) == HOUR


def test_records_are_only_read_where_they_decide():
    assert needs_record(GroupState("Empty"), False)
    assert needs_record(GroupState("Empty", kind="consumer"), True)
    assert not needs_record(GroupState("Empty", kind="consumer"), False)
    for state in (GroupState("Absent"), GroupState("Dead"), GroupState("Stable", 1), FORBIDDEN, None):
        assert not needs_record(state, True)


def test_lengths_are_told_in_the_largest_whole_unit():
    told = {10080: "7 days", 1440: "1 day", 90: "90 minutes", 1: "1 minute"}
    assert {minutes: span(minutes * 60_000) for minutes in told} == told


def test_an_end_that_is_no_date_is_told_as_a_number_and_ends_no_command():
    far = GroupRecord(GroupKind.SIMPLE, committed_ms={PLACE: NOW}, expires_ms={PLACE: 2**53})
    found = expiry(record=far, kept={PLACE})
    assert f"by {2**53} ms since 1970" in found.sentence and found.back_by_ms == 2**53


REFUSED = Failure("_TIMED_OUT", "no answer within 60 s")
RECORDS = "records"


def test_an_answer_is_remembered_of_the_same_question_about_the_same_groups_and_a_failure_is_not():
    memory = AnswerMemory(FakeClock())
    answers = iter([REFUSED, {"t": REFUSED}, "well"])
    given = [memory.answer(RECORDS, ("g",), lambda: next(answers)) for _ in range(5)]
    assert given == [REFUSED, {"t": REFUSED}, "well", "well", "well"]
    others = [(RECORDS, ("h",)), ("kinds", ("g",)), (RECORDS, ("g",))]
    assert [memory.answer(*question, lambda: "anew") for question in others] == ["anew", "anew", "well"]


def test_an_answer_to_what_was_asked_before_everything_is_to_be_asked_afresh_is_not_kept():
    memory = AnswerMemory(FakeClock())

    def asked_meanwhile():
        memory.forget()
        return "old"

    assert memory.answer(RECORDS, ["g"], asked_meanwhile) == "old"
    assert memory.answer(RECORDS, ["g"], lambda: "new") == "new"


def test_a_late_answer_takes_no_newer_ones_place_and_is_as_old_as_its_question():
    clock = FakeClock()
    memory = AnswerMemory(clock)

    def asked_again():
        clock.wait(1.0)
        assert memory.answer(RECORDS, ["g"], lambda: "new") == "new"
        clock.wait(REMEMBERED_SECONDS - 2.0)
        return "old"

    assert memory.answer(RECORDS, ["g"], asked_again) == "old"
    assert memory.answer(RECORDS, ["g"], lambda: "newest") == "new"
    clock.wait(2.0)
    assert memory.answer(RECORDS, ["g"], lambda: "newest") == "newest"


def lookout(source, target, mirror, on_target, clock):
    mirror.news = lambda side, topic: News(clock.now_ms())
    mirror.sync_pairs = lambda place, source_end, target_end: ()
    source.told, target.told = FakeGroupFacts(), on_target
    source.memory, target.memory = AnswerMemory(clock), AnswerMemory(clock)
    memories = {Side.SOURCE: source.memory, Side.TARGET: target.memory}
    return Lookout(request(), StatusSession(source, target, mirror, FakeComparer(), memories), NoProgress(), clock)


def test_the_look_that_decides_asks_afresh_and_glances_do_not():
    """Group g is empty on B for nearly as long as B keeps offsets."""
    clusters, clock = world(), FakeClock()
    clusters[1].commit("g", "A.t", 0, 50)
    clusters[1].states["g"] = GroupState("Empty", kind="classic")
    record = GroupRecord(GroupKind.CLASSIC, "consumer", clock.now_ms() - 167 * HOUR)
    cluster = Mock(wraps=FakeGroupFacts(records={"g": record}))
    looks = lookout(*clusters, cluster, clock)
    for _ in range(3):
        looks.look(1.0)
    assert cluster.broker_settings.call_count == cluster.group_records.call_count == 1
    blocks = looks.look(15.0).blocks
    assert [c.subject for c in blocks if c.check == "offsets-expiry"] == ["g"]
    assert cluster.broker_settings.call_count == cluster.group_records.call_count == 2
