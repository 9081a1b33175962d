"""A world that plans are made of, in memory: what the tests of planning and of its checks share."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from migrate.checks.checklist import parse_waiver
from migrate.mm2.chain import chain, window
from migrate.mm2.config_file import client_flow
from migrate.mm2.flow import Flow
from migrate.mm2.topics import CheckpointKey, CheckpointReading, CheckpointRecord, SyncReading, WindowQuestion
from migrate.model import CheckResult, Decision, LogRange, OffsetSync, Side, TopicPartition
from migrate.plan.build import plan_of
from migrate.plan.plan import Plan
from migrate.survey.commits_source import FROM_CHECKPOINTS, FROM_COORDINATORS
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies
from migrate.survey.survey import Clusters, PlanRequest, Survey
from migrate.survey.take import take_survey
from tests.fakes import FakeClock, FakeCluster, NoProgress

CHECKPOINTS, SYNCS = "A.checkpoints.internal", "mm2-offset-syncs.B.internal"


@dataclass
class FakeMirror:
    """MM2's topics as values; the windows are those of the pure functions."""

    history: dict[tuple[str, int], list[OffsetSync]] = field(default_factory=dict)
    latest: dict[CheckpointKey, CheckpointRecord] = field(default_factory=dict)
    asked: list[WindowQuestion] = field(default_factory=list)
    last_copied_offset: dict[TopicPartition, int] = field(default_factory=dict)
    on_call: Callable[[str], None] = lambda call: None

    def checkpoints(self, topic: str, pinned: LogRange) -> CheckpointReading:
        self.on_call("checkpoints")
        return CheckpointReading(self.latest, {"checkpoint": len(self.latest) or 1})

    def windows(self, side: Side, topic: str, pinned: LogRange, questions: Collection[WindowQuestion]) -> SyncReading:
        self.on_call("windows")
        self.asked = list(questions)
        found = {}
        for q in questions:
            kept = chain(self.history.get((q.source_topic, q.partition), []), q.source_end or 10**9, q.target_end)
            found[q] = window(kept, q.source_committed)
        return SyncReading(found, {"offset-sync": 1})

    def positions(self, topic: str, pinned: Mapping[int, LogRange]) -> Mapping[TopicPartition, int]:
        self.on_call("positions")
        return self.last_copied_offset


def world() -> tuple[FakeCluster, FakeCluster, FakeMirror]:
    """A source with topics t (2 partitions) and u (1), copied in full to B one to one, a sync every ten records."""
    source = FakeCluster(Side.SOURCE, "A", "id-a")
    target = FakeCluster(Side.TARGET, "B", "id-b")
    mirror = FakeMirror()
    for topic, partition in (("t", 0), ("t", 1), ("u", 0)):
        source.ranges[TopicPartition(topic, partition)] = LogRange(0, 100)
        target.ranges[TopicPartition(f"A.{topic}", partition)] = LogRange(0, 100)
        mirror.history[topic, partition] = [OffsetSync(i, 10 * i, 10 * i) for i in range(10)]
    source.ranges[TopicPartition(SYNCS, 0)] = LogRange(0, 30)
    target.ranges[TopicPartition(CHECKPOINTS, 0)] = LogRange(0, 5)
    target.ranges[TopicPartition("mm2-offsets.A.internal", 0)] = LogRange(0, 7)
    mirror.last_copied_offset = dict.fromkeys([p for p in source.ranges if p.topic in "tu"], 99)
    target.ids = {"A.t": "id-of-t", "A.u": "id-of-u"}
    source.ids = {"t": "id-of-source-t", "u": "id-of-source-u", "untouched": "id-of-source-v"}
    source.commit("g", "t", 0, 55)
    source.commit("g", "t", 1, 60)
    source.commit("h", "u", 0, 100)
    return source, target, mirror


def planned_flow() -> Flow:
    properties = {"bootstrap.servers": "x:1"}
    return client_flow(properties, properties, "A", "B")


def survey_of(
    source, target, mirror, filters=None, policies=None, settle=15.0, clock=None, down=False, comparer=None,
    progress=None, source_groups=None, target_groups=None, worker=None, flow=None, hides=False, **asked,
) -> Survey:  # fmt: skip
    """A survey of the world; `asked` are further fields of its request, `hides` asks for topics that are not shown."""
    commits = FROM_CHECKPOINTS if down else FROM_COORDINATORS
    given = flow or planned_flow(), filters or Filters(), policies or Policies()
    source.told, target.told = source_groups or source.told, target_groups or target.told
    clusters = Clusters(None if down else source, target, mirror, comparer, worker, looks_for_hidden=hides)
    request = PlanRequest(*given, settle, {}, commits=commits, **asked)
    return take_survey(request, clusters, clock or FakeClock(), progress or NoProgress())


def planned(*scene, **options) -> Plan:
    """The plan of such a survey."""
    return plan_of(survey_of(*scene, **options))


def checkpoints(*places: tuple[str, str, int, int]) -> dict[CheckpointKey, CheckpointRecord]:
    """MM2's checkpoints of groups on copies: (group, copy, partition, offset), the same on both sides."""
    return {CheckpointKey(group, copy, p): CheckpointRecord(at, at, "", p, 1) for group, copy, p, at in places}


def accepting(*waivers: str) -> Policies:
    return Policies(waivers=tuple(map(parse_waiver, waivers)))


def rows_of(plan: Plan) -> dict[tuple[str, str, int], tuple[Decision, int | None, str]]:
    return {row.key: (row.decision, row.target_offset, row.reason) for row in plan.rows}


def results_of(plan: Plan, name: str) -> list[CheckResult]:
    return [c for c in plan.header.checks if c.check == name]


def blocks_of(plan: Plan, name: str) -> list[CheckResult]:
    return [c for c in plan.blocks() if c.check == name]


def checks_of(plan: Plan, name: str) -> list[str]:
    return [c.subject for c in results_of(plan, name)]
