"""Facts for checks, and what checks found of them."""

from dataclasses import replace

from migrate.checks import checklist
from migrate.checks.check import CheckFacts, ClusterSide, GroupNames, Mm2Facts, TopicFacts, TopicShape
from migrate.mm2.chain import Window
from migrate.model import (
    Commit,
    Decision,
    GroupState,
    LogRange,
    OffsetSync,
    TopicPartition,
)
from migrate.plan.rows import with_blocks
from migrate.row_table import PlanRows
from migrate.survey.drain import Drained
from migrate.survey.group_facts import BrokerSettings, GroupFacts
from migrate.survey.policies import Policies
from migrate.survey.producers import Growth
from tests.unit.rowfacts import row_of


def shape(wanted="checkpoint", found=True, named=False, **counts):
    return TopicShape(
        "B", f"{wanted}s-topic", wanted, found, named, {k.replace("_", "-"): n for k, n in counts.items()}
    )


NOW = 1_785_553_200_000  # 2026-08-01 03:00 UTC


HOUR = 3_600_000


WEEK = BrokerSettings(7 * 24 * HOUR, True)


FACTS = CheckFacts(
    source=ClusterSide("A", "id-a", True, {"g": GroupState("Empty"), "h": GroupState("Empty")}, 15.0),
    target=ClusterSide("B", "id-b", True, {"g": GroupState("Absent"), "h": GroupState("Empty")}, 15.0),
    topics=TopicFacts(
        {"t": (2, "A.t", 2), "u": (1, "A.u", 1)},
        drains={TopicPartition(topic, partition): Drained(True) for topic in "tu" for partition in (0, 1)},
        growth={TopicPartition(topic, partition): Growth(0, 15.0) for topic in "tu" for partition in (0, 1)},
    ),
    groups=GroupNames(other_kinds={}),
    mm2=Mm2Facts((shape(checkpoint=3), shape("offset-sync", offset_sync=5)), NOW, synced_groups=frozenset()),
    group_facts=GroupFacts({"g": "consumer", "h": "consumer"}, WEEK, {}, NOW),
    source_down=False,
    failback=False,
    now_ms=NOW,
)


def facts(**changes):
    """The facts with these fields, whichever of their values has them; those of a side are given by alias."""
    made = FACTS
    for name, value in changes.items():
        side, _, field = name.partition("_")
        if hasattr(made, name):
            made = replace(made, **{name: value})
        elif side in ("source", "target"):
            made = replace(made, **{side: replace(getattr(made, side), **{field: value})})
        elif hasattr(made.source, name):
            absent = {"seconds_apart": 0.0, "hidden": None}.get(name)
            source, target = ({name: value.get(alias, absent)} for alias in "AB")
            made = replace(made, source=replace(made.source, **source), target=replace(made.target, **target))
        else:
            (part,) = (part for part in ("topics", "groups", "mm2") if hasattr(getattr(made, part), name))
            made = replace(made, **{part: replace(getattr(made, part), **{name: value})})
    return made


def row(group="g", topic="t", partition=0, policies=None, **changes):
    known = {
        "commit": Commit(50), "source_log": LogRange(0, 100), "target_log": LogRange(0, 100), "target_partitions": 2,
        "around": Window(OffsetSync(0, 40, 40), None), "checkpoint": None, "equality": None,
    }  # fmt: skip
    places = {"source": TopicPartition(topic, partition), "target": TopicPartition(f"A.{topic}", partition)}
    return row_of(policies, group=group, **places, **known | changes)


ROWS = PlanRows.of((row("g", "t"), row("h", "u")))


def found(check, rows=ROWS, policies=None, **changes):
    results = checklist.run(facts(**changes), PlanRows.of(rows), policies or Policies())
    return [r for r in results if r.check == check]


def levels(check, **arguments):
    return {r.subject: r.level for r in found(check, **arguments)}


def blocked(rows=ROWS, policies=None, **changes):
    held = PlanRows.of(rows)
    results = checklist.run(facts(**changes), held, policies or Policies())
    laid = with_blocks(held, checklist.blocked_groups(results, held))
    return {r.group for r in laid if r.decision is Decision.BLOCK}


def asked(**changes):
    return {"group_facts": replace(FACTS.group_facts, **changes)}
