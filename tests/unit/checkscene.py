"""Facts for checks, and what checks found of them."""

from dataclasses import replace

from migrate.checks import registry as checklist
from migrate.checks.check import CheckFacts, TopicShape
from migrate.mm2.chain import Window
from migrate.model import (
    Commit,
    Decision,
    GroupPartition,
    GroupState,
    LogRange,
    OffsetSync,
    TopicPartition,
)
from migrate.plan.rows import build_row, with_blocks
from migrate.plan.translate import RowFacts
from migrate.survey.drain import Drained
from migrate.survey.group_facts import BrokerSettings, GroupFacts
from migrate.survey.policies import Policies
from migrate.survey.producers import Growth


def shape(wanted="checkpoint", found=True, named=False, **counts):
    return TopicShape(
        "B", f"{wanted}s-topic", wanted, found, named, {k.replace("_", "-"): n for k, n in counts.items()}
    )


NOW = 1_785_553_200_000  # 2026-08-01 03:00 UTC


HOUR = 3_600_000


WEEK = BrokerSettings(7 * 24 * HOUR, True)


FACTS = CheckFacts(
    source_alias="A",
    target_alias="B",
    source_cluster_id="id-a",
    target_cluster_id="id-b",
    source_down=False,
    may_describe={"A": True, "B": True},
    shapes=(shape(checkpoint=3), shape("offset-sync", offset_sync=5)),
    source_states={"g": GroupState("Empty"), "h": GroupState("Empty")},
    target_states={"g": GroupState("Absent"), "h": GroupState("Empty")},
    topic_partitions={"t": (2, "A.t", 2), "u": (1, "A.u", 1)},
    drains={TopicPartition(topic, partition): Drained(True) for topic in "tu" for partition in (0, 1)},
    growth={TopicPartition(topic, partition): Growth(0, 15.0) for topic in "tu" for partition in (0, 1)},
    groups=GroupFacts({"g": "consumer", "h": "consumer"}, WEEK, {}, NOW),
    other_kinds={},
    group_sync=False,
    newest_checkpoint_ms=NOW,
    looks_apart={"A": 15.0, "B": 15.0},
    now_ms=NOW,
)


def row(group="g", topic="t", partition=0, policies=None, **changes):
    facts = RowFacts(
        GroupPartition(group, topic, partition), f"A.{topic}", Commit(50), LogRange(0, 100), LogRange(0, 100), 2,
        "", None, Window(OffsetSync(0, 40, 40), None), None,
    )  # fmt: skip
    return build_row(replace(facts, **changes), policies or Policies(), False)


ROWS = (row("g", "t"), row("h", "u"))


def found(check, rows=ROWS, policies=None, **changes):
    results = checklist.run(replace(FACTS, **changes), rows, policies or Policies())
    return [r for r in results if r.check == check]


def blocked(rows=ROWS, policies=None, **changes):
    results = checklist.run(replace(FACTS, **changes), rows, policies or Policies())
    laid = with_blocks(rows, checklist.blocked_groups(results, rows))
    return {r.group for r in laid if r.decision is Decision.BLOCK}


def asked(**changes):
    return {"groups": replace(FACTS.groups, **changes)}
