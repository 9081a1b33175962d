"""Checks on the two clusters, on MM2's topics, and on the topics of the plan."""

from collections.abc import Iterable, Mapping

from migrate.checks import registry as checks
from migrate.checks.check import CheckFacts, judges
from migrate.model import CheckResult, Decision, Failure, Level
from migrate.row_table import PlanRows
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from migrate.survey.policies import Policies
from migrate.text import many, some


@judges(checks.CLUSTERS_DIFFER)
def clusters_differ(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block where source and target are one cluster: the plan would set offsets where they came from."""
    expected = "two clusters with different cluster ids"
    both = f"{facts.source.alias} is {facts.source.cluster_id}, {facts.target.alias} {facts.target.cluster_id}"
    if facts.source_down:
        yield checks.CLUSTERS_DIFFER.unseen(
            Level.WARN, facts.source.alias, expected, "the source is down: its cluster id was not read",
            "Make sure yourself that the target is not it.",
        )  # fmt: skip
    elif facts.source.cluster_id == facts.target.cluster_id:
        yield checks.CLUSTERS_DIFFER.blocks(
            facts.target.alias, expected, f"both are cluster {facts.source.cluster_id}",
            "Correct bootstrap.servers of one of the two.",
        )  # fmt: skip
    else:
        yield checks.CLUSTERS_DIFFER.passes(facts.target.alias, expected, both)


@judges(checks.LISTING_COMPLETE, checks.CHECKPOINTED_GROUPS_LISTED)
def listing_complete(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block where a broker may have left groups out in silence, and name groups only MM2 remembers."""
    expected = "the right DESCRIBE on the cluster, without which brokers leave groups out in silence"
    for side in facts.up:
        todo = f"Grant DESCRIBE on the cluster {side.alias} to this principal."
        if side.may_describe:
            yield checks.LISTING_COMPLETE.passes(side.alias, expected, "every broker answered in full")
        elif side.may_describe is False:
            yield checks.LISTING_COMPLETE.blocks(side.alias, expected, "it is missing", todo)
        else:
            yield checks.LISTING_COMPLETE.unseen(
                Level.BLOCK, side.alias, expected, "the cluster did not tell our rights", todo
            )
    if facts.groups.checkpointed_only:
        yield checks.CHECKPOINTED_GROUPS_LISTED.warns(
            facts.source.alias, "every group that MM2 checkpointed is still listed on the source",
            f"{len(facts.groups.checkpointed_only)} are not: {some(facts.groups.checkpointed_only)}",
            "Deleted or expired groups look like this. If one should exist, check DESCRIBE on that group.",
        )  # fmt: skip


@judges(checks.LISTING_AGREES, checks.COMMIT_UNDECODABLE)
def listing_agrees(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block groups that have commits in the offsets topic and that no listing shows, or a commit that nobody can read.

    Only where the plan's commits come from that topic: otherwise nobody has read it.
    """
    witness, alias = facts.groups.witness, facts.source.alias
    if witness is None:
        return
    for group, places in witness.undecodable.items():
        yield checks.COMMIT_UNDECODABLE.blocks(
            group, f"commits in {OFFSETS_TOPIC} that can be decoded", f"newest records that cannot be: {some(places)}",
            "Plan with --commits-from admin: the brokers know what their own records say. For a plan as of an earlier "
            "time there is no other witness: leave the group out, --exclude-group.",
        )  # fmt: skip
    expected = f"every group with commits in {OFFSETS_TOPIC}, listed on {alias}"
    kinds = facts.groups.other_kinds
    # Groups of kinds that a listing of consumer groups never shows have checks of their own.
    told = set() if isinstance(kinds, Failure) else {g for g, kind in kinds.items() if kind in ("share", "streams")}
    unlisted = [group for group in witness.unlisted if group not in told]
    for group in unlisted:
        yield checks.LISTING_AGREES.blocks(
            group, expected, "it has commits there, and the listing does not show it: it is not in this plan",
            "A group that rebalances is not listed, nor one made since: plan again. Else grant DESCRIBE on it on "
            f"{alias}, or waive with --accept listing-agrees:GROUP if it has nothing to move.",
        )  # fmt: skip
    on_cluster, unseen = checks.LISTING_AGREES.on_cluster, len(witness.pin.open_ends)
    if witness.undecodable_keys:
        yield on_cluster.unseen(
            Level.BLOCK, alias, expected,
            f"not known: the keys of {many(witness.undecodable_keys, 'record')} there cannot be decoded",
            f"Plan with --commits-from admin, or waive with --accept listing-agrees:{alias}.",
        )  # fmt: skip
    if unseen:
        yield on_cluster.unseen(
            Level.WARN, alias, expected,
            f"in {many(unseen, 'partition')} of it a transaction is open: who has committed since is unknown",
            "Stop the transactional producer, then plan again.",
        )  # fmt: skip
    elif not unlisted and not witness.undecodable_keys:
        listed = witness.groups - len(witness.unlisted)  # not those with checks of their own: no listing showed them
        yield on_cluster.passes(alias, expected, f"{many(listed, 'group')}, all listed")


@judges(checks.TOPICS_VISIBLE)
def topics_visible(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block where a cluster has topics of the flow that it does not show us: commits on them are in no plan."""
    expected = "the right DESCRIBE on every topic, without which brokers leave commits on it out in silence"
    todo = "Grant DESCRIBE, and READ to read their records, on topic {} on {} to this principal."
    for alias, hidden in ((side.alias, side.hidden) for side in facts.up if side.hidden is not None):
        if hidden.unknown:
            yield checks.TOPICS_VISIBLE.unseen(
                Level.WARN, alias, expected, f"the cluster did not tell which topics it has: {hidden.unknown}",
                f"Make sure yourself that this principal may DESCRIBE every topic on {alias}.",
            )  # fmt: skip
        elif hidden.concerned:
            yield checks.TOPICS_VISIBLE.blocks(
                alias, expected,
                f"{len(hidden.concerned)} of the flow are there and not shown to us: {some(hidden.concerned)}",
                todo.format(some(hidden.concerned), alias),
            )  # fmt: skip
        elif hidden.others:
            yield checks.TOPICS_VISIBLE.warns(
                alias, expected,
                f"{len(hidden.others)} outside the flow are there and not shown to us: {some(hidden.others)}",
                f"{todo.format(some(hidden.others), alias)} Commits there are not restored by a rollback that deletes "
                "a group.",
            )  # fmt: skip
        else:
            yield checks.TOPICS_VISIBLE.passes(alias, expected, "it shows us all that it has")


@judges(checks.MM2_CHECKPOINTS_TOPIC, checks.MM2_OFFSET_SYNCS_TOPIC)
def mm2_topics(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Judge MM2's two topics by the records found there; a wrong topic is named by what it holds."""
    for shape in facts.mm2.shapes:
        of_checkpoints = shape.kind == "checkpoint"
        check = checks.MM2_CHECKPOINTS_TOPIC if of_checkpoints else checks.MM2_OFFSET_SYNCS_TOPIC
        option = "--checkpoints-topic" if of_checkpoints else "--offset-syncs-topic"
        expected = f"topic {shape.topic} on {shape.side}, holding MM2's {shape.kind} records"
        right = shape.counts.get(shape.kind, 0)
        wrong = {k: n for k, n in shape.counts.items() if k not in (shape.kind, "tombstone") and n}
        kinds = ", ".join(f"{n} {k}" for k, n in sorted(wrong.items()))
        if shape.exists is None:
            yield check.unseen(
                Level.WARN, shape.topic, expected, "the source is down: nobody looked", "The plan goes on without it."
            )
        elif not shape.exists:
            why = f": {shape.why_not_emitted}" if shape.why_not_emitted else ""
            todo = [] if why and not shape.named else [f"Check the aliases, the policy's separator and {option}."]
            todo += [] if shape.named else ["The plan goes on without it."]
            level = Level.BLOCK if shape.named else Level.WARN
            yield check.result(level, shape.topic, expected, f"there is no such topic{why}", " ".join(todo))
        elif not right and wrong:
            yield check.blocks(
                shape.topic, expected, f"none of its records is one; it holds {kinds}", _wrong_topic_todo(wrong, option)
            )
        elif not right:
            why = shape.why_not_emitted
            yield check.warns(
                shape.topic, expected, f"it holds no such record{f': {why}' if why else ''}",
                "" if why else "MM2 has not written there yet, or writes elsewhere.",
            )  # fmt: skip
        elif wrong:
            yield check.warns(
                shape.topic, expected, f"{right} records read, {kinds} left aside",
                "Find out who else writes to this topic.",
            )  # fmt: skip
        else:
            yield check.passes(shape.topic, expected, f"{right} records read")


def _wrong_topic_todo(wrong: Mapping[str, int], option: str) -> str:
    looks = {
        "offset-sync": "These are offset syncs: is this the offset-syncs topic?",
        "checkpoint": "These are checkpoints: is this the checkpoints topic?",
        "heartbeat": "These are heartbeats: is this the heartbeats topic?",
        "connect-offsets": "These are Connect source offsets (mm2-offsets...): MM2's own positions.",
        "connect-json": "These went through a JSON converter: give MM2's connectors ByteArrayConverter.",
    }
    most = max(wrong, key=wrong.__getitem__)
    hint = looks.get(most.removeprefix("undecodable:"), "It is no topic of MM2's.")
    return f"{hint} Name the right one with {option}."


@judges(checks.TARGET_TOPIC_EXISTS, checks.TARGET_PARTITIONS)
def target_topics(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block topics of the plan that the target lacks, or has with fewer partitions."""
    fine, unknown = 0, []
    blocked_topics = {row.source_topic for row in rows.where("decision", lambda decision: decision is Decision.BLOCK)}
    for source_topic, (on_source, target_topic, on_target) in sorted(facts.topics.partitions.items()):
        expected = f"topic {target_topic} on {facts.target.alias}"
        if not target_topic:  # no copy of anything there: its rows say so
            continue
        if on_target is None:
            if source_topic in blocked_topics:
                why = facts.topics.why_perhaps_missing.get(source_topic)
                todo = (
                    "Check MM2's topics filter and the replication policy. Or leave the topic out: --exclude-topic, or "
                    "--untranslatable target-topic-missing=skip to set what the groups have elsewhere."
                )
                yield checks.TARGET_TOPIC_EXISTS.blocks(
                    source_topic, expected, "there is no such topic", f"{why} {todo}" if why else todo
                )
        elif on_source is None:
            unknown.append(source_topic)
        elif on_target < on_source:
            yield checks.TARGET_PARTITIONS.blocks(
                source_topic, f"{on_source} partitions on {target_topic}", f"it has {on_target}",
                "MM2 adds partitions at its next topic refresh: wait for it, or leave the topic out.",
            )  # fmt: skip
        elif on_target > on_source:
            yield checks.TARGET_PARTITIONS.warns(
                source_topic, f"{on_source} partitions on {target_topic}", f"it has {on_target}",
                "Records with keys that local producers write there go to other partitions than before.",
            )  # fmt: skip
        else:
            fine += 1
    if unknown:
        yield checks.TARGET_PARTITIONS.on_cluster.unseen(
            Level.WARN, facts.source.alias, "as many partitions on both sides",
            f"how many {facts.source.alias} has is not known of {some(unknown)}",
            "Partitions that the target lacks have no row here. Find out how many there were.",
        )  # fmt: skip
    if fine:
        yield checks.TARGET_PARTITIONS.passes(f"{fine} topics", "as many partitions", "they have")
