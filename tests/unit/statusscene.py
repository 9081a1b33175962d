"""One look at a flow, and its text: what the tests of `status` and of its watch share."""

from migrate.mm2.connect_offsets import Positions
from migrate.mm2.name_map import NameMap
from migrate.mm2.topic_reader import News
from migrate.plan.status import status_of
from migrate.show.plan_table import Page
from migrate.show.status import status_lines
from migrate.survey.commits_source import FROM_CHECKPOINTS, FROM_COORDINATORS
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies
from migrate.survey.survey import Clusters, PlanRequest
from migrate.survey.take import take_survey
from tests.fakes import FakeClock, FakeComparer, NoProgress
from tests.unit.planscene import SYNCS, planned_flow


def looked(
    source,
    target,
    mirror,
    comparer=None,
    settle=15.0,
    down="",
    policies=None,
    clock=None,
    filters=None,
    behind_ms=0,
    source_groups=None,
    group_map=None,
):
    request = PlanRequest(
        planned_flow(),
        filters or Filters(),
        policies or Policies(),
        settle,
        {},
        commits=FROM_CHECKPOINTS if down else FROM_COORDINATORS,
        group_map=group_map or NameMap(),
    )
    clock = clock or FakeClock()
    asked = None if down else source
    source.told = source_groups
    clusters = Clusters(asked, target, mirror, comparer or FakeComparer())
    survey = take_survey(request, clusters, clock, NoProgress())
    positions = Positions(("p",), mirror.last_copied_offset) if down else survey.mm2.positions

    def news(side, topic):
        return News(clock.now_ms() - (12_000 if topic == SYNCS else 5_000) + behind_ms)

    def sync_pairs(place, source_end, target_end):
        return tuple((s.source_offset, s.target_offset) for s in mirror.history.get((place.topic, place.partition), []))

    return status_of(survey, positions, news, sync_pairs, down)


def text(status, width=100, **more):
    return "\n".join(status_lines(status, Page("", width), **more))
