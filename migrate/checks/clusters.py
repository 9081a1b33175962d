"""Checks on the two clusters, on MM2's topics, and on the topics of the plan."""

from collections.abc import Iterable, Mapping

from migrate.checks.check import CheckFacts, result, some, unseen
from migrate.model import CheckResult, Decision, Level, Row, Scope
from migrate.survey.policies import TOPICS_VISIBLE, Policies


def clusters_differ(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Block where source and target are one cluster: the plan would set offsets where they came from."""
    expected = "two clusters with different cluster ids"
    both = f"{facts.source_alias} is {facts.source_cluster_id}, {facts.target_alias} {facts.target_cluster_id}"
    if facts.source_down:
        yield unseen(
            Level.WARN, "clusters-differ", Scope.CLUSTER, facts.source_alias, expected,
            "the source is down: its cluster id was not read", "Make sure yourself that the target is not it.",
        )  # fmt: skip
    elif facts.source_cluster_id == facts.target_cluster_id:
        yield result(
            Level.BLOCK, "clusters-differ", Scope.CLUSTER, facts.target_alias, expected,
            f"both are cluster {facts.source_cluster_id}", "Mend bootstrap.servers of one of the two.",
        )  # fmt: skip
    else:
        yield result(Level.PASS, "clusters-differ", Scope.CLUSTER, facts.target_alias, expected, both)


def listing_complete(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Block where a broker may have left groups out in silence, and name groups only MM2 remembers."""
    expected = "the right DESCRIBE on the cluster, without which brokers leave groups out in silence"
    for alias, allowed in facts.may_describe.items():
        if allowed:
            yield result(
                Level.PASS, "listing-complete", Scope.CLUSTER, alias, expected, "every broker answered in full"
            )
        else:
            seen = "it is missing" if allowed is False else "the cluster did not tell our rights"
            yield CheckResult(
                "listing-complete",
                Level.BLOCK if allowed is False else Level.NOT_VISIBLE,
                Scope.CLUSTER, alias, expected, seen,
                f"Grant DESCRIBE on the cluster {alias} to this principal.", False, Level.BLOCK,
            )  # fmt: skip
    if facts.checkpointed_only:
        yield result(
            Level.WARN, "checkpointed-groups-listed", Scope.CLUSTER, facts.source_alias,
            "every group that MM2 checkpointed is still listed on the source",
            f"{len(facts.checkpointed_only)} are not: {some(facts.checkpointed_only)}",
            "Deleted or expired groups look like this. If one should exist, check DESCRIBE on that group.",
        )  # fmt: skip


def topics_visible(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Block where a cluster has topics of the flow that it does not show us: commits on them are in no plan."""
    expected = "the right DESCRIBE on every topic, without which brokers leave commits on it out in silence"
    for alias, hidden in facts.hidden.items():
        todo = "Grant DESCRIBE, and READ to read their records, on topic {} on {} to this principal."
        if hidden.unknown:
            yield unseen(
                Level.WARN, TOPICS_VISIBLE, Scope.CLUSTER, alias, expected,
                f"the cluster did not tell which topics it has: {hidden.unknown}",
                f"Make sure yourself that this principal may DESCRIBE every topic on {alias}.",
            )  # fmt: skip
        elif hidden.concerned:
            yield result(
                Level.BLOCK, TOPICS_VISIBLE, Scope.CLUSTER, alias, expected,
                f"{len(hidden.concerned)} of the flow are there and not shown to us: {some(hidden.concerned)}",
                todo.format(some(hidden.concerned), alias),
            )  # fmt: skip
        elif hidden.others:
            yield result(
                Level.WARN, TOPICS_VISIBLE, Scope.CLUSTER, alias, expected,
                f"{len(hidden.others)} outside the flow are there and not shown to us: {some(hidden.others)}",
                todo.format(some(hidden.others), alias) + " Commits there are not restored by a rollback that deletes "
                "a group.",
            )  # fmt: skip
        else:
            yield result(Level.PASS, TOPICS_VISIBLE, Scope.CLUSTER, alias, expected, "it shows us all that it has")


def mm2_topics(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Judge MM2's two topics by the records found there; a wrong topic is named by what it holds."""
    for shape in facts.shapes:
        check = "mm2-checkpoints-topic" if shape.wanted == "checkpoint" else "mm2-offset-syncs-topic"
        option = "--checkpoints-topic" if shape.wanted == "checkpoint" else "--offset-syncs-topic"
        expected = f"topic {shape.topic} on {shape.side}, holding MM2's {shape.wanted} records"
        right = shape.counts.get(shape.wanted, 0)
        wrong = {k: n for k, n in shape.counts.items() if k not in (shape.wanted, "tombstone") and n}
        if shape.found is None:
            yield unseen(
                Level.WARN, check, Scope.CLUSTER, shape.topic, expected, "the source is down: nobody looked",
                "The plan goes on without it.",
            )  # fmt: skip
        elif not shape.found:
            level = Level.BLOCK if shape.named else Level.WARN
            todo = f"Check the aliases, the policy's separator and {option}."
            if not shape.named:
                todo += " The plan goes on without it."
            yield result(level, check, Scope.CLUSTER, shape.topic, expected, "there is no such topic", todo)
        elif not right and wrong:
            kinds = ", ".join(f"{n} {k}" for k, n in sorted(wrong.items()))
            yield result(
                Level.BLOCK, check, Scope.CLUSTER, shape.topic, expected,
                f"none of its records is one; it holds {kinds}", _wrong_topic_todo(wrong, option),
            )  # fmt: skip
        elif not right:
            yield result(
                Level.WARN, check, Scope.CLUSTER, shape.topic, expected, "it holds no such record",
                "MM2 has not written there yet, or writes elsewhere.",
            )  # fmt: skip
        elif wrong:
            kinds = ", ".join(f"{n} {k}" for k, n in sorted(wrong.items()))
            yield result(
                Level.WARN, check, Scope.CLUSTER, shape.topic, expected,
                f"{right} records read, {kinds} left aside", "Find out who else writes to this topic.",
            )  # fmt: skip
        else:
            yield result(Level.PASS, check, Scope.CLUSTER, shape.topic, expected, f"{right} records read")


def _wrong_topic_todo(wrong: Mapping[str, int], option: str) -> str:
    looks = {
        "offset-sync": "These are offset syncs: is this the offset-syncs topic?",
        "checkpoint": "These are checkpoints: is this the checkpoints topic?",
        "heartbeat": "These are heartbeats: is this the heartbeats topic?",
        "connect-offsets": "These are Connect source offsets (mm2-offsets...): MM2's own positions.",
        "connect-json": "These went through a JSON converter: give MM2's connectors ByteArrayConverter.",
    }
    most = max(wrong, key=lambda kind: wrong[kind])
    hint = looks.get(most.removeprefix("undecodable:"), "It is no topic of MM2's.")
    return f"{hint} Name the right one with {option}."


def target_topics(facts: CheckFacts, rows: tuple[Row, ...], policies: Policies) -> Iterable[CheckResult]:
    """Block topics of the plan that the target lacks, or has with fewer partitions."""
    fine, unknown = 0, []
    blocked_topics = {row.source_topic for row in rows if row.decision is Decision.BLOCK}
    for source_topic, (on_source, target_topic, on_target) in sorted(facts.topic_partitions.items()):
        expected = f"topic {target_topic} on {facts.target_alias}"
        if not target_topic:  # no copy of anything there: its rows say so
            continue
        if on_target is None:
            if source_topic in blocked_topics:
                yield result(
                    Level.BLOCK, "target-topic-exists", Scope.TOPIC, source_topic, expected,
                    "there is no such topic",
                    "Check MM2's topics filter and the replication policy, or leave it out: --exclude-topic.",
                )  # fmt: skip
        elif on_source is None:
            unknown.append(source_topic)
        elif on_target < on_source:
            yield result(
                Level.BLOCK, "target-partitions", Scope.TOPIC, source_topic,
                f"{on_source} partitions on {target_topic}", f"it has {on_target}",
                "MM2 adds partitions at its next topic refresh: wait for it, or leave the topic out.",
            )  # fmt: skip
        elif on_target > on_source:
            yield result(
                Level.WARN, "target-partitions", Scope.TOPIC, source_topic,
                f"{on_source} partitions on {target_topic}", f"it has {on_target}",
                "Records with keys that local producers write there go to other partitions than before.",
            )  # fmt: skip
        else:
            fine += 1
    if unknown:
        yield unseen(
            Level.WARN, "target-partitions", Scope.CLUSTER, facts.source_alias,
            "as many partitions on both sides", f"how many {facts.source_alias} has is not known of {some(unknown)}",
            "Partitions that the target lacks have no row here. Find out how many there were.",
        )  # fmt: skip
    if fine:
        yield result(Level.PASS, "target-partitions", Scope.TOPIC, f"{fine} topics", "as many partitions", "they have")
