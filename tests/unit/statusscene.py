"""One look at a flow, and its text: what the tests of `status` and of its watch share."""

from migrate.mm2.connect_offsets import Positions
from migrate.mm2.topic_reader import News
from migrate.plan.status import status_of
from migrate.show.plan_table import Page
from migrate.show.status import status_lines
from tests.fakes import FakeClock, FakeComparer
from tests.unit.planscene import SYNCS, survey_of


def looked(source, target, mirror, comparer=None, settle=15.0, down="", clock=None, behind_ms=0, **options):
    """The status of a survey; `down` says why the source does not answer, `behind_ms` how late our clock is."""
    clock = clock or FakeClock()
    options |= {"comparer": comparer or FakeComparer(), "settle": settle, "down": bool(down)}
    survey = survey_of(source, target, mirror, clock=clock, **options)
    positions = Positions(("p",), mirror.last_copied_offset) if down else survey.mm2.positions

    def news(side, topic):
        return News(clock.now_ms() - (12_000 if topic == SYNCS else 5_000) + behind_ms)

    def sync_pairs(place, source_end, target_end):
        return tuple((s.source_offset, s.target_offset) for s in mirror.history.get((place.topic, place.partition), []))

    return status_of(survey, positions, news, sync_pairs, down)


def text(status, width=100, **more):
    return "\n".join(status_lines(status, Page("", width), **more))
