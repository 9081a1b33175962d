"""What a header says of a survey: every log range that was pinned, the names that were used, the groups' states."""

from migrate.model import Side
from migrate.plan.build import flow_names, pinned_ranges, planned_states, reading_cost
from migrate.survey.survey import Clusters
from migrate.survey.take import take_survey
from tests.fakes import FakeClock, FakeComparer, NoProgress
from tests.unit.planscene import CHECKPOINTS, SYNCS, world
from tests.unit.surveyscene import FLOW, request


def surveyed(comparer=None):
    source, target, mirror = world()
    clusters = Clusters(source, target, mirror, comparer)
    return take_survey(request(), clusters, FakeClock(), NoProgress())


def test_every_range_that_was_pinned_is_there_sorted():
    ranges = [(r.side, r.topic, r.partition, r.end) for r in pinned_ranges(surveyed())]
    of_plan = [(side, topic, p, 100) for side, name in (("source", "{}"), ("target", "A.{}"))
               for topic, p in ((name.format("t"), 0), (name.format("t"), 1), (name.format("u"), 0))]  # fmt: skip
    mm2 = [("source", SYNCS, 0, 30), ("target", CHECKPOINTS, 0, 5), ("target", "mm2-offsets.A.internal", 0, 7)]
    assert ranges == sorted(of_plan + mm2)


def test_names_are_in_mm2s_own_words_also_on_the_way_back():
    there, back = flow_names(FLOW), flow_names(FLOW.reversed())
    assert there["offset_syncs_location"] == back["offset_syncs_location"] == str(Side.SOURCE)
    assert there["offset_syncs_topic"] == SYNCS


def test_states_are_those_of_both_sides():
    states = [(s.side, s.group, s.state) for s in planned_states(surveyed())]
    assert states == [
        ("source", "g", "Empty"), ("source", "h", "Empty"), ("target", "g", "Absent"), ("target", "h", "Absent"),
    ]  # fmt: skip


def test_what_was_not_compared_cost_nothing():
    assert reading_cost(None) == {}
    cost = reading_cost(surveyed(FakeComparer()).comparison)
    assert cost["partitions"] == 3 and cost["source_bytes_fetched"] == 1_100_000_000
