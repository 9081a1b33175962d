"""A survey of a sound cutover, with changes, and what the checks found of it."""

from dataclasses import fields, replace

from migrate.checks import checklist
from migrate.match.protocol import Comparison, FetchEstimate, PartitionAnswer, Tail
from migrate.mm2.chain import Window
from migrate.mm2.config_file import client_flow
from migrate.mm2.connect_offsets import Positions
from migrate.mm2.flow import Flow
from migrate.mm2.naming import ReversedPolicy
from migrate.mm2.topics import CheckpointKey, CheckpointReading, CheckpointRecord, SyncReading
from migrate.model import (
    ClusterFacts,
    Commit,
    Decision,
    GroupPartition,
    GroupState,
    LogRange,
    OffsetSync,
    Side,
    TopicPartition,
)
from migrate.plan.rows import with_blocks
from migrate.row_table import PlanRows
from migrate.survey.commits_source import FROM_CHECKPOINTS
from migrate.survey.filters import Filters
from migrate.survey.group_facts import BrokerSettings, GroupFacts
from migrate.survey.policies import Policies, Waiver
from migrate.survey.producers import Growth
from migrate.survey.survey import (
    ClusterSurvey,
    Logs,
    Mm2Records,
    Mm2Topic,
    PlanRequest,
    SelectedCommits,
    Survey,
    Watermarks,
)
from tests.unit.rowfacts import row_of

NOW = 1_785_553_200_000  # 2026-08-01 03:00 UTC
HOUR = 3_600_000
WEEK = BrokerSettings(7 * 24 * HOUR, True)
CLIENT = {"bootstrap.servers": "x:1"}
FLOW = replace(client_flow(CLIENT, CLIENT, "A", "B"), group_sync=False)
PLACES = (TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0))
COPIES = tuple(TopicPartition(f"A.{place.topic}", place.partition) for place in PLACES)
KEYS = {
    GroupPartition("g", "t", 0): Commit(50),
    GroupPartition("g", "t", 1): Commit(50),
    GroupPartition("h", "u", 0): Commit(50),
}


def compared(**tails: Tail) -> Comparison:
    """What comparing said: all is copied of each partition, but for the tails given as `t0`."""
    answers = {p: PartitionAnswer({}, tails.get(f"{p.topic}{p.partition}", Tail(0)), 10, 10) for p in PLACES}
    return Comparison(answers, {}, FetchEstimate(0, 0, 0, 0, 0, 0), 0, 0)


def checkpointed_at(time_ms) -> CheckpointReading:
    return CheckpointReading(
        {CheckpointKey("g", "A.t", 0): CheckpointRecord(50, 50, "", 1, time_ms)}, {"checkpoint": 3}
    )


# Groups g on t and h on u, stopped, copied in full to B; g is not there yet, h is.
SURVEY = Survey(
    request=PlanRequest(FLOW, Filters(), Policies(), 15.0, {}),
    taken_at_ms=NOW,
    source=ClusterSurvey(
        ClusterFacts("id-a", 1, True), {"t": 2, "u": 1}, frozenset("gh"),
        states={"g": GroupState("Empty"), "h": GroupState("Empty")}, seconds_apart=15.0,
    ),
    target=ClusterSurvey(
        ClusterFacts("id-b", 1, True), {"A.t": 2, "A.u": 1}, frozenset("h"),
        states={"g": GroupState("Absent"), "h": GroupState("Empty")}, seconds_apart=15.0,
    ),
    selected=SelectedCommits(KEYS, {}, {}, frozenset(), frozenset("gh")),
    groups=("g", "h"),
    unstable=frozenset(),
    priors={},
    keys=KEYS,
    logs=Logs(dict.fromkeys(PLACES, LogRange(0, 100)), dict.fromkeys(COPIES, LogRange(0, 100))),
    watermarks=Watermarks(dict.fromkeys(PLACES, 100), dict.fromkeys(COPIES, 100)),
    growth=dict.fromkeys(PLACES, Growth(0, 15.0)),
    mm2=Mm2Records(
        checkpointed_at(NOW),
        Mm2Topic(Side.TARGET, FLOW.checkpoints_topic, True, LogRange(0, 3)),
        SyncReading({}, {"offset-sync": 5}),
        Mm2Topic(Side.SOURCE, FLOW.offset_syncs_topic, True, LogRange(0, 5)),
        Positions(),
    ),
    comparison=compared(),
    group_facts=GroupFacts({"g": "consumer", "h": "consumer"}, WEEK, {}, NOW),
    connect_topics=(),
    timings={},
)  # fmt: skip

# Where a survey keeps what a change names; the first that has a field of that name.
PARTS = (
    ((), Survey), (("mm2",), Mm2Records), (("request",), PlanRequest), (("group_facts",), GroupFacts),
    (("selected",), SelectedCommits), (("request", "flow"), Flow),
)  # fmt: skip


def has(kind: type, name: str) -> bool:
    return name in {field.name for field in fields(kind)}


def with_change(value, path, name, changed):
    """The value with a field changed, some parts down."""
    if path:
        name, changed = path[0], with_change(getattr(value, path[0]), path[1:], name, changed)
    return replace(value, **{name: changed})


def surveyed(**changes) -> Survey:
    """The survey with these fields, whichever of its parts has them; those of a cluster as `source_topics`."""
    made = SURVEY
    if changes.pop("source_down", False):
        changes["commits"] = FROM_CHECKPOINTS
    if changes.pop("failback", False):
        changes["policy"] = ReversedPolicy(FLOW.policy)
    for name, value in changes.items():
        side, _, field = name.partition("_")
        if side in ("source", "target") and has(ClusterSurvey, field):
            made = with_change(made, (side,), field, value)
        else:
            made = with_change(made, next(path for path, kind in PARTS if has(kind, name)), name, value)
    return made


def row(group="g", topic="t", partition=0, policies=None, **changes):
    known = {
        "commit": Commit(50), "source_log": LogRange(0, 100), "target_log": LogRange(0, 100), "target_partitions": 2,
        "around": Window(OffsetSync(0, 40, 40), None), "checkpoint": None, "equality": None,
    }  # fmt: skip
    places = {"source": TopicPartition(topic, partition), "target": TopicPartition(f"A.{topic}", partition)}
    return row_of(policies, group=group, **places, **known | changes)


ROWS = PlanRows.of((row("g", "t"), row("h", "u")))


def found(check, rows=ROWS, **changes):
    return [r for r in checklist.run(surveyed(**changes), PlanRows.of(rows)) if r.check == check]


def levels(check, *rows, **changes):
    return {r.subject: r.level for r in found(check, *rows, **changes)}


def verdicts(check, *rows, **changes):
    """Levels, each with what it counts as."""
    return {r.subject: (r.level, r.counts_as) for r in found(check, *rows, **changes)}


def waiving(check, subject=None):
    """The change of the survey that a waiver is."""
    return {"policies": Policies(waivers=(Waiver(check, subject),))}


def blocked(rows=ROWS, **changes):
    held = PlanRows.of(rows)
    laid = with_blocks(held, checklist.blocked_groups(checklist.run(surveyed(**changes), held), held))
    return {r.group for r in laid if r.decision is Decision.BLOCK}
