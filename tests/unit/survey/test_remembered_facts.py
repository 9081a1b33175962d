"""What a watch remembers of group facts: never a failure, never for long, and nothing in the look that decides."""

from functools import partial
from itertools import count
from unittest.mock import Mock

from migrate.cli.status import Lookout
from migrate.mm2.config_file import client_flow
from migrate.mm2.topic_reader import News
from migrate.model import Failure, GroupState, Side
from migrate.session.status import StatusSession
from migrate.survey.filters import Filters
from migrate.survey.group_facts import REMEMBERED_SECONDS, AnswerMemory
from migrate.survey.offsets_topic import GroupKind, GroupRecord
from migrate.survey.policies import Policies
from migrate.survey.survey import PlanRequest
from tests.fakes import FakeClock, FakeComparer, FakeGroupFacts, NoProgress
from tests.unit.planscene import world

HOUR_MS = 3_600_000
REFUSED = Failure("_TIMED_OUT", "no answer within 60 s")
RECORDS = "records"


def test_an_answer_is_remembered_of_the_same_question_about_the_same_groups_and_a_failure_is_not():
    memory = AnswerMemory(FakeClock())
    answers = iter([REFUSED, {"t": REFUSED}, "well"])
    given = [memory.answer(RECORDS, ("g",), lambda: next(answers)) for _ in range(5)]
    assert given == [REFUSED, {"t": REFUSED}, "well", "well", "well"]
    others = [(RECORDS, ("h",)), ("kinds", ("g",)), (RECORDS, ("g",))]
    assert [memory.answer(*question, lambda: "anew") for question in others] == ["anew", "anew", "well"]


def test_nothing_is_remembered_for_longer_than_a_minute_nor_once_it_is_to_be_forgotten():
    clock, ask = FakeClock(), partial(next, count(1))
    memory = AnswerMemory(clock)
    assert memory.answer(RECORDS, ("g",), ask) == 1
    clock.wait(REMEMBERED_SECONDS - 1)
    assert memory.answer(RECORDS, ("g",), ask) == 1
    clock.wait(1)
    assert memory.answer(RECORDS, ("g",), ask) == 2
    memory.forget()
    assert memory.answer(RECORDS, ("g",), ask) == 3


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
    properties = {"bootstrap.servers": "x:1"}
    request = PlanRequest(client_flow(properties, properties, "A", "B"), Filters(), Policies(), 15.0, {})
    source.told, target.told = FakeGroupFacts(), on_target
    source.memory, target.memory = AnswerMemory(clock), AnswerMemory(clock)
    memories = {Side.SOURCE: source.memory, Side.TARGET: target.memory}
    return Lookout(request, StatusSession(source, target, mirror, FakeComparer(), memories), NoProgress(), clock)


def test_the_look_that_decides_asks_afresh_and_glances_do_not():
    """Group g is empty on B for nearly as long as B keeps offsets."""
    clusters, clock = world(), FakeClock()
    clusters[1].commit("g", "A.t", 0, 50)
    clusters[1].states["g"] = GroupState("Empty", kind="classic")
    record = GroupRecord(GroupKind.CLASSIC, "consumer", clock.now_ms() - 167 * HOUR_MS)
    cluster = Mock(wraps=FakeGroupFacts(records={"g": record}))
    looks = lookout(*clusters, cluster, clock)
    for _ in range(3):
        looks.look(1.0)
    assert cluster.broker_settings.call_count == cluster.group_records.call_count == 1
    blocks = looks.look(15.0).blocks
    assert [c.subject for c in blocks if c.check == "offsets-expiry"] == ["g"]
    assert cluster.broker_settings.call_count == cluster.group_records.call_count == 2
