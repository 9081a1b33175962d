"""Groups of two clusters in memory, compared: what the tests of `groups compare` and of its text share."""

from migrate.extras.inventory.compare import (
    ComparedRow,
    CompareVerdict,
    GroupComparison,
    Loss,
    comparison_of,
    translated_commits,
)
from migrate.extras.inventory.compare_command import look_at_both
from migrate.match.protocol import Limits, LogSlice, Unreadable
from migrate.mm2.config_file import client_flow
from migrate.model import Grade
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies
from migrate.survey.survey import Clusters, PlanRequest
from tests.fakes import FakeClock, FakeComparer, FakeGroupFacts, NoProgress


def compared(
    source, target, mirror, comparer=None, records=None, filters=None, no_match=False, flow=None, kinds=None
) -> GroupComparison:
    """Look once; without a comparer of its own every translation is exact, and is the source's own offset."""
    properties = {"bootstrap.servers": "x:1"}
    flow = flow or client_flow(properties, properties, "A", "B")
    request = PlanRequest(flow, filters or Filters(), Policies(), 0.0, {}, Limits(0 if no_match else 1000, None))
    reader = None if no_match else comparer or FakeComparer()
    clock = FakeClock()
    source.told = FakeGroupFacts(kinds or {})
    clusters = Clusters(source, target, mirror, reader)
    survey, after = look_at_both(request, clusters, clock, NoProgress())
    return comparison_of(survey, after, *translated_commits(survey), records or {}, clock.now_ms())


def rows_of(comparison: GroupComparison) -> dict[tuple[str, str, int], ComparedRow]:
    return {(row.group, row.source_topic, row.partition): row for row in comparison.rows}


def row(group="billing", verdict=CompareVerdict.EQUAL, **changes) -> ComparedRow:
    """A row that is equal at 60, but for `changes`."""
    values = {
        "group": group, "source_topic": "orders", "target_topic": "A.orders", "partition": 0, "source_committed": 120,
        "target_committed": 60, "translated": 60, "difference": 0, "difference_is_records": True, "verdict": verdict,
        "grade": Grade.EXACT, "loss": Loss.NONE, "rereads_at_most": 0, "source_moved_to": None, "reason": "",
        "sentence": "The commit is at the translated offset.",
    }  # fmt: skip
    return ComparedRow(**(values | changes))


def verdict(row: ComparedRow):
    return row.verdict, row.loss, row.reason


def during_the_look(source, target, change):
    """Let the source change once the target's commits have been read."""

    def on_call(call):
        if call == "commits":
            change(source)

    target.on_call = on_call


class ThirdsLog:
    """A log with a record at every third offset, of which retention has removed those below `cut`."""

    def __init__(self, cut=0, refused=()):
        self.cut, self.refused = cut, refused

    def read(self, requests):
        return {p: self._slices(p, wanted.ranges) for p, wanted in requests.items()}

    def _slices(self, partition, ranges):
        if partition in self.refused:
            return Unreadable("TOPIC_AUTHORIZATION_FAILED")
        kept = [[n for n in range(max(start, self.cut), end) if n % 3 == 0] for start, end in ranges]
        return tuple(
            LogSlice(start, end, max(start, self.cut), offsets, [0] * len(offsets), [0] * len(offsets))
            for (start, end), offsets in zip(ranges, kept, strict=True)
        )
