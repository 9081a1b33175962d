"""`plan --standing`: a mandate for `follow`, written as a plan without rows; and the way back from what it wrote."""

from collections.abc import Iterable, Mapping
from contextlib import closing

from migrate.apply.follow_journal import read_memory
from migrate.apply.follow_undo import groups_in_doubt, renamed, undo_of_follow
from migrate.apply.history import GroupTrace, JournalState
from migrate.apply.journal import Journal
from migrate.apply.signatures import REQUIRED_SETTING
from migrate.apply.undo import groups_restored
from migrate.cli.choices import StandingOptions
from migrate.cli.console import Terminal, printed
from migrate.cli.flows import reached_flow
from migrate.cli.options import time_of
from migrate.cli.plan import PlanOptions
from migrate.clock import SystemClock
from migrate.errors import ClusterError, Refused, UsageError
from migrate.mm2.flow import Flow
from migrate.model import Commits, Failure
from migrate.plan.file import refuse_out, write_plan
from migrate.plan.mandate import Mandate
from migrate.plan.plan import Plan
from migrate.plan.standing import (
    filters_of_mandate,
    group_map_of_mandate,
    mapped_groups,
    moving_groups,
    parse_grades,
    refuse_until,
    standing_plan,
)
from migrate.ports import Progress
from migrate.session.clusters import apply_session, endpoints
from migrate.session.options import SessionOptions
from migrate.show.mandate import mandate_lines
from migrate.survey.policies import CommitsFrom, Policies, Rewind, Uncommitted, Untranslatable
from migrate.survey.renamed import TargetNames, refuse_map_of_other_clusters
from migrate.text import many


def plan_mandate(options: PlanOptions, asked: StandingOptions) -> int:
    """Write the mandate that the options ask for, and print it.

    Both clusters are asked for their ids, and nothing else.
    """
    flow, policies = reached_flow(options.clusters), options.policies.policies()
    progress, terminal = options.log.progress(), Terminal.here()
    out, given, matching = options.out, options.groups, options.matching
    refuse_out(out)
    _refuse_others(options, flow, policies)
    clock, until_ms = SystemClock(), time_of("--until", asked.until)
    if until_ms is None:
        raise UsageError(
            "--standing needs --until: when the mandate ends.", "For example --until 2026-12-01T06:00:00Z."
        )
    refuse_until(until_ms, clock.now_ms())
    named, group_map = given.filters().groups_file, given.names()
    mandate = Mandate(
        until_ms=until_ms,
        groups=given.groups,
        exclude_groups=given.exclude_groups,
        topics=given.topics,
        exclude_topics=given.exclude_topics,
        named_groups=None if named is None else tuple(sorted(named)),
        grades=tuple(map(str, parse_grades(asked.grades))),
        max_rereads=policies.max_rereads,
        match_limit=matching.match_limit,
        max_fetch=matching.max_fetch,
        untranslatable=_choices(policies),
        moving_groups=asked.moving_groups,
        group_map=mapped_groups(group_map),
    )
    moving_groups(mandate), filters_of_mandate(mandate)  # refused now, and not in the first pass
    settings = {REQUIRED_SETTING: str(options.require_signatures)} if options.require_signatures else {}
    cluster_ids = _cluster_ids(flow, progress, options.clusters.request_timeout)
    refuse_map_of_other_clusters(group_map, cluster_ids)
    plan = standing_plan(flow, mandate, policies, cluster_ids, settings, clock.now_ms())
    progress.step(f"writing {out}")
    write_plan(plan, out)
    return printed(mandate_lines(plan, str(out), terminal.width, terminal.colour))


def _choices(policies: Policies) -> tuple[str, ...]:
    by_reason = [f"{reason}={choice}" for reason, choice in sorted(policies.untranslatable_by_reason.items())]
    return (str(policies.untranslatable), *by_reason)


def _refuse_others(options: PlanOptions, flow: Flow, policies: Policies) -> None:
    positions = options.positions
    given = {
        "--source-down": options.source_down, "--failback": options.failback,
        "--commits-from": options.commits.commits_from is not CommitsFrom.ADMIN,
        "--commits-as-of": options.commits_as_of is not None, "--no-match": options.matching.no_match,
        "--no-groups": positions.no_groups, "--positions": positions.position_files,
        "--spark-checkpoint": positions.spark_checkpoints, "--sink": positions.sinks,
        "--stateful": positions.stateful, "--by": options.matching.by_timestamp,
    }  # fmt: skip
    if wrong := [option for option, value in given.items() if value]:
        raise UsageError(
            f"--standing and {', '.join(wrong)} exclude each other.",
            "A mandate is for groups of the source; omit one of them.",
        )
    if not flow.by_mm2:
        raise UsageError(
            "--standing and --replicator any exclude each other: `follow` places commits by MM2's offset syncs.",
            "Plan on the night itself.",
        )
    if policies.rewind is not Rewind.BLOCK or policies.uncommitted is not Uncommitted.IGNORE:
        raise UsageError(
            "--standing takes neither --rewind nor --uncommitted: `follow` never goes back behind what somebody else "
            "wrote, and writes what was committed alone.",
            "Omit them.",
        )
    chosen = {policies.untranslatable, *policies.untranslatable_by_reason.values()}
    if not chosen <= {Untranslatable.BLOCK, Untranslatable.SKIP}:
        raise UsageError("--standing takes --untranslatable block and skip alone: nobody looks at a pass.", "Use skip.")


def _cluster_ids(flow: Flow, progress: Progress, deadline_seconds: float) -> tuple[str, str]:
    ids = []
    for endpoint in endpoints(flow, deadline_seconds):
        with closing(endpoint.admin()) as admin:
            progress.step(f"reaching {admin.alias}")
            ids.append(admin.facts().cluster_id)
    if ids[0] == ids[1]:
        raise Refused(f"Source and target are both cluster {ids[0]}.", "Correct bootstrap.servers of one of the two.")
    return ids[0], ids[1]


def undo_of_mandate(  # noqa: PLR0913 - a plan, what is known of it, and the target to ask for the rest
    plan: Plan,
    journal: Journal,
    state: JournalState,
    restored: Iterable[Mapping[str, GroupTrace]],
    flow: Flow,
    progress: Progress,
    session: SessionOptions,
    moved: str,
) -> Plan:
    """Return the undo of what was written under a mandate, as its journal remembers it, but for what is `restored`.

    `moved` is what becomes of groups that have moved on: refuse or restore.
    Of a write that never got its answer the target is asked; raises `ClusterError` where it does not tell.
    """
    memory = read_memory(journal.path)
    for group in groups_restored(restored):
        # What stands there now is a later plan's, though it may look like ours.
        memory.groups.pop(group, None)
    standing: dict[str, Commits] = {}
    if doubts := groups_in_doubt(memory):
        exact = [group for group in doubts if memory.of(group).has_metadata]
        with apply_session(flow, progress, bool(exact), session) as edges:
            called = TargetNames(renamed(group_map_of_mandate(plan), doubts))
            admin = edges.exact_admin(edges.target, exact, called)
            progress.step(f"reading {many(len(doubts), 'group')} on {admin.alias}")
            for group, answer in admin.commits(doubts).items():
                if isinstance(answer, Failure):
                    raise ClusterError(f"The commits of group {group!r} could not be read: {answer}.", "Try again.")
                standing[group] = answer
    names, now_ms = flow.policy.source_topic, SystemClock().now_ms()
    return undo_of_follow(plan, memory, state, standing, names, now_ms, moved)
