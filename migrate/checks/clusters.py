"""Checks on the two clusters: which they are, and whether they show all groups, commits and topics."""

from collections.abc import Iterable

from migrate.checks.check import check
from migrate.checks.rights import is_infrastructure
from migrate.mm2.checkpoint_table import topics_with_checkpoints
from migrate.model import CheckResult, Failure, Level, Scope, Side
from migrate.row_table import PlanRows
from migrate.survey.groups import other_kinds
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from migrate.survey.survey import Case, PlanRequest, Survey
from migrate.text import many, some


@check("clusters-differ", Scope.CLUSTER, can_be_accepted=False)
def clusters_differ(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block where source and target are one cluster: the plan would set offsets where they came from."""
    source, target = survey.flow.source.alias, survey.flow.target.alias
    source_id, target_id = survey.source.facts.cluster_id, survey.target.facts.cluster_id
    expected = "two clusters with different cluster ids"
    if Case.SOURCE_DOWN in survey.case:
        yield clusters_differ.unseen(
            Level.WARN, source, expected, "the source is down: its cluster id was not read",
            "Make sure yourself that the target is not it.",
        )  # fmt: skip
    elif source_id == target_id:
        yield clusters_differ.blocks(
            target, expected, f"both are cluster {source_id}", "Correct bootstrap.servers of one of the two."
        )
    else:
        yield clusters_differ.passes(target, expected, f"{source} is {source_id}, {target} {target_id}")


@check("listing-complete", Scope.CLUSTER, can_be_accepted=False)
def listing_complete(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block where a broker may have left groups out in silence."""
    expected = "the right DESCRIBE on the cluster, without which brokers leave groups out in silence"
    for cluster, read in survey.clusters_read:
        todo = f"Grant DESCRIBE on the cluster {cluster.alias} to this principal."
        if read.facts.may_describe:
            yield listing_complete.passes(cluster.alias, expected, "every broker answered in full")
        elif read.facts.may_describe is False:
            yield listing_complete.blocks(cluster.alias, expected, "it is missing", todo)
        else:
            yield listing_complete.unseen(
                Level.BLOCK, cluster.alias, expected, "the cluster did not return our rights", todo
            )


@check("checkpointed-groups-listed", Scope.CLUSTER, case=Case.SOURCE_READ)
def checkpointed_groups_listed(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name groups that only MM2 remembers."""
    checkpointed = {group for group, _ in topics_with_checkpoints(survey.mm2.checkpoints.latest)}
    missing = sorted(checkpointed - survey.source.listed - set(survey.target_names.renamed.values()))
    if missing:
        yield checkpointed_groups_listed.warns(
            survey.flow.source.alias, "every group that MM2 checkpointed is still listed on the source",
            f"{len(missing)} are not: {some(missing)}",
            "Deleted or expired groups look like this. If one should exist, check DESCRIBE on that group.",
        )  # fmt: skip


@check("listing-agrees", Scope.GROUP, can_be_accepted=True)
def listing_agrees(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block groups that have commits in the offsets topic and that no listing shows.

    Only where the plan's commits come from that topic: otherwise nobody has read it.
    """
    read, alias = survey.selected.topic_seen, survey.flow.source.alias
    if read is None:
        return
    expected = f"every group with commits in {OFFSETS_TOPIC}, listed on {alias}"
    kinds = other_kinds(survey.group_facts.source_kinds, survey.request.filters)
    # Groups of kinds that a listing of consumer groups never shows have checks of their own.
    others = set() if isinstance(kinds, Failure) else {g for g, kind in kinds.items() if kind in ("share", "streams")}
    unlisted = [group for group in read.unlisted if group not in others]
    for group in unlisted:
        yield listing_agrees.blocks(
            group, expected, "it has commits there, and the listing does not show it: it is not in this plan",
            "A group that rebalances is not listed, nor one made since: plan again. Else grant DESCRIBE on it on "
            f"{alias}, or waive with --accept listing-agrees:GROUP if it has nothing to move.",
        )  # fmt: skip
    on_cluster, unseen = listing_agrees.on_cluster, len(read.pin.open_ends)
    if read.undecodable_keys:
        yield on_cluster.unseen(
            Level.BLOCK, alias, expected,
            f"not known: the keys of {many(read.undecodable_keys, 'record')} there cannot be decoded",
            f"Plan with --commits-from admin, or waive with --accept listing-agrees:{alias}.",
        )  # fmt: skip
    if unseen:
        yield on_cluster.unseen(
            Level.WARN, alias, expected,
            f"in {many(unseen, 'partition')} of it a transaction is open: who has committed since is unknown",
            "Stop the transactional producer, then plan again.",
        )  # fmt: skip
    elif not unlisted and not read.undecodable_keys:
        listed = read.groups - len(read.unlisted)  # not those with checks of their own: no listing showed them
        yield on_cluster.passes(alias, expected, f"{many(listed, 'group')}, all listed")


@check("commit-undecodable", Scope.GROUP, can_be_accepted=False)
def commit_undecodable(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block groups with a commit in the offsets topic that nobody can read, where the plan's commits come from it."""
    read = survey.selected.topic_seen
    for group, places in read.undecodable.items() if read else ():
        yield commit_undecodable.blocks(
            group, f"commits in {OFFSETS_TOPIC} that can be decoded", f"newest records that cannot be: {some(places)}",
            "Plan with --commits-from admin: the brokers know what their own records say. For a plan as of an earlier "
            "time there is no other source: leave the group out, --exclude-group.",
        )  # fmt: skip


@check("topics-visible", Scope.CLUSTER, can_be_accepted=True, needs_records=True)
def topics_visible(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block where a cluster has topics of the flow that it does not show us: commits on them are in no plan."""
    expected = "the right DESCRIBE on every topic, without which brokers leave commits on it out in silence"
    todo = "Grant DESCRIBE, and READ to read their records, on topic {} on {} to this principal."
    for cluster, read in survey.clusters_read:
        alias, hidden = cluster.alias, read.hidden
        if hidden is None:
            continue
        if isinstance(hidden, Failure):
            yield topics_visible.unseen(
                Level.WARN, alias, expected,
                f"the cluster did not list its topics: {hidden.code} ({hidden.message})",
                f"Make sure yourself that this principal may DESCRIBE every topic on {alias}.",
            )  # fmt: skip
            continue
        concerned = sorted(topic for topic in hidden if _is_of_the_plan(topic, cluster.side, survey.request))
        others = sorted(topic for topic in hidden.difference(concerned) if not is_infrastructure(topic))
        if concerned:
            yield topics_visible.blocks(
                alias, expected, f"{len(concerned)} of the flow are there and not shown to us: {some(concerned)}",
                todo.format(some(concerned), alias),
            )  # fmt: skip
        elif others:
            yield topics_visible.warns(
                alias, expected, f"{len(others)} outside the flow are there and not shown to us: {some(others)}",
                f"{todo.format(some(others), alias)} Commits there are not restored by a rollback that deletes "
                "a group.",
            )  # fmt: skip
        else:
            yield topics_visible.passes(alias, expected, "it shows us all that it has")


def _is_of_the_plan(topic: str, side: Side, request: PlanRequest) -> bool:
    """True if a plan may be about a topic of this side, or reads it because MM2 keeps something there."""
    flow = request.flow
    if topic in {flow.checkpoints_topic, flow.offset_syncs_topic, *flow.connect_offsets_topics} - {""}:
        return True
    source_topic = topic if side is Side.SOURCE else flow.policy.source_topic(topic)
    if source_topic is None or topic.startswith("__") or flow.why_not_replicated(source_topic):
        return False
    return request.filters.topic_verdict(source_topic) is None
