"""`plan --standing`: a mandate for `follow`, written as a plan without rows; and the way back from what it wrote."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from migrate.apply.follow_journal import read_memory
from migrate.apply.follow_undo import groups_in_doubt, renamed, undo_of_follow
from migrate.apply.history import GroupTrace, JournalState
from migrate.apply.journal import Journal
from migrate.apply.signatures import REQUIRED_SETTING
from migrate.apply.undo import groups_restored
from migrate.cli.export import time_of
from migrate.cli.group_map import group_map_of
from migrate.cli.options import filters_of
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
from migrate.show.mandate import mandate_lines
from migrate.survey.policies import CommitsFrom, Policies, Rewind, Uncommitted, Untranslatable
from migrate.survey.renamed import TargetNames, refuse_map_of_other_clusters
from migrate.text import many

# What a mandate cannot have: by parameter, the option and the value that it has where nobody gave it.
_NOT_STANDING = {
    "source_down": ("--source-down", False), "failback": ("--failback", False),
    "commits_from": ("--commits-from", str(CommitsFrom.ADMIN)), "commits_as_of": ("--commits-as-of", None),
    "no_match": ("--no-match", False), "no_groups": ("--no-groups", False), "position_files": ("--positions", ()),
    "spark_checkpoints": ("--spark-checkpoint", ()), "sinks": ("--sink", ()), "stateful": ("--stateful", ()),
    "by": ("--by", "records"),
}  # fmt: skip


def run_standing(flow: Flow, policies: Policies, out: Path, progress: Progress, **options: Any) -> list[str]:
    """Write the mandate that the options ask for; return the lines to print.

    Both clusters are asked for their ids, and nothing else.
    """
    refuse_out(out)
    _refuse_others(flow, policies, options)
    clock, until_ms = SystemClock(), time_of("--until", options["until"])
    if until_ms is None:
        raise UsageError(
            "--standing needs --until: when the mandate ends.", "For example --until 2026-12-01T06:00:00Z."
        )
    refuse_until(until_ms, clock.now_ms())
    named, group_map = filters_of(options).groups_file, group_map_of(options)
    mandate = Mandate(
        until_ms=until_ms,
        groups=tuple(options["groups"]),
        exclude_groups=tuple(options["exclude_groups"]),
        topics=tuple(options["topics"]),
        exclude_topics=tuple(options["exclude_topics"]),
        named_groups=None if named is None else tuple(sorted(named)),
        grades=tuple(map(str, parse_grades(options["grades"]))),
        max_rereads=policies.max_rereads,
        match_limit=options["match_limit"],
        max_fetch=options["max_fetch"],
        untranslatable=_choices(policies),
        moving_groups=tuple(options["moving_groups"]),
        group_map=mapped_groups(group_map),
    )
    moving_groups(mandate), filters_of_mandate(mandate)  # refused now, and not in the first pass
    settings = {REQUIRED_SETTING: str(options["require_signatures"])} if options["require_signatures"] else {}
    cluster_ids = _cluster_ids(flow, progress, options)
    refuse_map_of_other_clusters(group_map, cluster_ids)
    plan = standing_plan(flow, mandate, policies, cluster_ids, settings, clock.now_ms())
    progress.step(f"writing {out}")
    write_plan(plan, out)
    return list(mandate_lines(plan, str(out), options["width"], options["colour"]))


def _choices(policies: Policies) -> tuple[str, ...]:
    by_reason = [f"{reason}={choice}" for reason, choice in sorted(policies.untranslatable_by_reason.items())]
    return (str(policies.untranslatable), *by_reason)


def _refuse_others(flow: Flow, policies: Policies, options: Mapping[str, Any]) -> None:
    wrong = [option for name, (option, usual) in _NOT_STANDING.items() if options[name] != usual]
    if wrong:
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


def _cluster_ids(flow: Flow, progress: Progress, options: Mapping[str, Any]) -> tuple[str, str]:
    ids = []
    for endpoint in endpoints(flow, options["request_timeout"]):
        with closing(endpoint.admin()) as admin:
            progress.step(f"reaching {admin.alias}")
            ids.append(admin.facts().cluster_id)
    if ids[0] == ids[1]:
        raise Refused(f"Source and target are both cluster {ids[0]}.", "Correct bootstrap.servers of one of the two.")
    return ids[0], ids[1]


def undo_of_mandate(
    plan: Plan,
    journal: Journal,
    state: JournalState,
    restored: Iterable[Mapping[str, GroupTrace]],
    flow: Flow,
    progress: Progress,
    options: Mapping[str, Any],
) -> Plan:
    """Return the undo of what was written under a mandate, as its journal remembers it, but for what is `restored`.

    Of a write that never got its answer the target is asked; raises `ClusterError` where it does not tell.
    """
    memory = read_memory(journal.path)
    for group in groups_restored(restored):
        # What stands there now is a later plan's, though it may look like ours.
        memory.groups.pop(group, None)
    standing: dict[str, Commits] = {}
    if doubts := groups_in_doubt(memory):
        exact = [group for group in doubts if memory.of(group).has_metadata]
        with apply_session(flow, progress, bool(exact), options) as edges:
            called = TargetNames(renamed(group_map_of_mandate(plan), doubts))
            admin = edges.exact_admin(edges.target, exact, called)
            progress.step(f"reading {many(len(doubts), 'group')} on {admin.alias}")
            for group, answer in admin.commits(doubts).items():
                if isinstance(answer, Failure):
                    raise ClusterError(f"The commits of group {group!r} could not be read: {answer}.", "Try again.")
                standing[group] = answer
    names, now_ms = flow.policy.source_topic, SystemClock().now_ms()
    return undo_of_follow(plan, memory, state, standing, names, now_ms, options["moved"])
