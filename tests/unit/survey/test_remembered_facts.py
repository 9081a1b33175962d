"""What a watch remembers of group facts: never a failure, never for long, and nothing in the look that decides."""

from collections import Counter

import pytest

from migrate.cli.status import Lookout
from migrate.cli.wiring import StatusEdges
from migrate.mm2.config_file import client_flow
from migrate.mm2.topic_reader import News
from migrate.model import Failure, GroupState, Side
from migrate.survey.filters import Filters
from migrate.survey.group_facts import REMEMBERED_SECONDS, RememberedGroupFacts
from migrate.survey.offsets_topic import GroupKind, GroupRecord
from migrate.survey.policies import Policies
from migrate.survey.survey import PlanRequest
from tests.fakes import FakeClock, FakeComparer, FakeGroupFacts, NoProgress
from tests.unit.planscene import planned, world

HOUR_MS = 3_600_000
REFUSED = Failure("_TIMED_OUT", "no answer within 60 s")
QUESTIONS = {
    "group_kinds": (),
    "settings": (),
    "group_records": (("g",),),
    "commit_records": (("g",),),
    "compacted_topics": (("t",),),
    "cleanup_policies": (("t",),),
    "timestamp_types": (("t",),),
}


class Counted:
    """A cluster that fails to answer each question as many times as `failures`; `asked` counts questions."""

    def __init__(self, facts=None, failures=0, failure=REFUSED):
        self.facts, self.failures, self.failure, self.asked = facts or FakeGroupFacts(), failures, failure, Counter()

    def __getattr__(self, question):
        def ask(*about):
            self.asked[question] += 1
            if self.asked[question] <= self.failures:
                return self.failure
            return getattr(self.facts, question)(*about)

        return ask


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_remembered_and_a_failure_is_not(question):
    cluster, about = Counted(failures=2), QUESTIONS[question]
    remembered = RememberedGroupFacts(cluster, FakeClock())
    answers = [getattr(remembered, question)(*about) for _ in range(5)]
    assert [isinstance(answer, Failure) for answer in answers] == [True, True, False, False, False]
    assert cluster.asked[question] == 3


def test_an_answer_that_holds_a_failure_is_not_remembered():
    cluster = Counted(failures=1, failure={"t": REFUSED})
    remembered = RememberedGroupFacts(cluster, FakeClock())
    assert [remembered.cleanup_policies(["t"]) for _ in range(3)] == [{"t": REFUSED}, *2 * [{"t": "delete"}]]


@pytest.mark.parametrize("question", QUESTIONS)
def test_nothing_is_remembered_for_longer_than_a_minute_nor_once_it_is_to_be_forgotten(question):
    cluster, about, clock = Counted(), QUESTIONS[question], FakeClock()
    remembered = RememberedGroupFacts(cluster, clock)
    getattr(remembered, question)(*about)
    clock.wait(REMEMBERED_SECONDS - 1)
    getattr(remembered, question)(*about)
    assert cluster.asked[question] == 1
    clock.wait(1)
    getattr(remembered, question)(*about)
    assert cluster.asked[question] == 2
    remembered.forget()
    getattr(remembered, question)(*about)
    assert cluster.asked[question] == 3


def test_records_are_forgotten_when_what_they_are_about_differs_and_nothing_else_is():
    cluster = Counted()
    remembered = RememberedGroupFacts(cluster, FakeClock())
    reads = []
    for seen in ("empty", "empty", "alive", "empty", "empty"):
        remembered.group_records(["g"])
        remembered.settings()
        remembered.note(seen)
        reads.append(cluster.asked["group_records"])
    # What a look reads is of the state that it sees: only what an earlier look read is dropped.
    assert reads == [1, 1, 1, 2, 2] and cluster.asked["settings"] == 1


# --- looks of a watch -------------------------------------------------------------------------------------


def lookout(clusters, on_target, clock):
    source, target, mirror = clusters
    mirror.news = lambda side, topic: News(clock.now_ms())
    mirror.sync_pairs = lambda place, source_end, target_end: ()
    properties = {"bootstrap.servers": "x:1"}
    request = PlanRequest(client_flow(properties, properties, "A", "B"), Filters(), Policies(), False, 15.0, {})
    on_either = ((Side.SOURCE, FakeGroupFacts()), (Side.TARGET, on_target))
    facts = {side: RememberedGroupFacts(reader, clock) for side, reader in on_either}
    return Lookout(request, StatusEdges(source, target, mirror, FakeComparer(), facts), NoProgress(), clock)


def nearly_expired():
    """Group g, empty on B for nearly as long as B keeps offsets."""
    clusters, clock = world(), FakeClock()
    clusters[1].commit("g", "A.t", 0, 50)
    clusters[1].states["g"] = GroupState("Empty", kind="classic")
    facts = FakeGroupFacts(records={"g": GroupRecord(GroupKind.CLASSIC, "consumer", clock.now_ms() - 167 * HOUR_MS)})
    return clusters, facts, clock


def expiry_blocks(status):
    return [c.subject for c in status.blocks if c.check == "offsets-expiry"]


def test_a_cluster_that_was_slow_once_does_not_hide_a_block_from_the_looks_after_it():
    clusters, facts, clock = nearly_expired()
    looks = lookout(clusters, Counted(facts, failures=1), clock)
    assert [expiry_blocks(looks.look(1.0)) for _ in range(3)] == [[], ["g"], ["g"]]
    assert not planned(*nearly_expired()[0], target_groups=facts).is_clean()


def test_the_look_that_decides_asks_afresh_and_glances_do_not():
    clusters, facts, clock = nearly_expired()
    cluster = Counted(facts)
    looks = lookout(clusters, cluster, clock)
    for _ in range(3):
        looks.look(1.0)
    assert cluster.asked["settings"] == cluster.asked["group_records"] == 1
    assert expiry_blocks(looks.look(15.0)) == ["g"]
    assert cluster.asked["settings"] == cluster.asked["group_records"] == 2


def test_a_block_that_a_consumer_has_ended_goes_away():
    clusters, facts, clock = nearly_expired()
    looks = lookout(clusters, facts, clock)
    assert expiry_blocks(looks.look(1.0)) == ["g"]
    facts.records = {"g": GroupRecord(GroupKind.CLASSIC, "consumer", clock.now_ms())}
    clusters[1].commit("g", "A.t", 0, 51)
    looks.look(1.0)
    assert expiry_blocks(looks.look(1.0)) == []


def test_a_block_that_a_consumer_has_ended_unseen_goes_away_within_about_a_minute():
    clusters, facts, clock = nearly_expired()
    looks = lookout(clusters, facts, clock)
    looks.look(1.0)
    facts.records = {"g": GroupRecord(GroupKind.CLASSIC, "consumer", clock.now_ms())}
    assert expiry_blocks(looks.look(1.0)) == ["g"]
    clock.wait(REMEMBERED_SECONDS)
    assert expiry_blocks(looks.look(1.0)) == []


class Slow:
    """Answers what it was given last; while it is asked, `meanwhile` happens once."""

    newest_record_ms = None

    def __init__(self):
        self.told, self.meanwhile = {}, lambda: None

    def commit_records(self, groups):
        told, meanwhile, self.meanwhile = self.told, self.meanwhile, lambda: None
        meanwhile()
        return told


def test_an_answer_to_what_was_asked_before_everything_is_to_be_asked_afresh_is_not_kept():
    cluster, clock = Slow(), FakeClock()
    facts = RememberedGroupFacts(cluster, clock)
    cluster.told, cluster.meanwhile = {"g": "old"}, facts.forget
    assert facts.commit_records(["g"]) == {"g": "old"}
    cluster.told = {"g": "new"}
    assert facts.commit_records(["g"]) == {"g": "new"}


def test_a_late_answer_takes_no_newer_ones_place_and_is_as_old_as_its_question():
    cluster, clock = Slow(), FakeClock()
    facts = RememberedGroupFacts(cluster, clock)

    def asked_again():
        clock.wait(1.0)
        cluster.told = {"g": "new"}
        assert facts.commit_records(["g"]) == {"g": "new"}
        clock.wait(REMEMBERED_SECONDS - 2.0)

    cluster.told, cluster.meanwhile = {"g": "old"}, asked_again
    assert facts.commit_records(["g"]) == {"g": "old"}
    assert facts.commit_records(["g"]) == {"g": "new"}
    clock.wait(2.0)
    cluster.told = {"g": "newest"}
    assert facts.commit_records(["g"]) == {"g": "newest"}
