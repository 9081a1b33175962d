"""The `follow rollback` command: what stood on the target before the first pass, from the journal of a mandate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate.apply.history import GroupTrace, JournalState
from migrate.apply.journal import Journal
from migrate.apply.later_plans import held_by_other_plans, other_plans, without_held
from migrate.apply.undo import groups_restored
from migrate.cli.apply import WritingOptions
from migrate.cli.console import Terminal, printed
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnClusters, argument, flag, option
from migrate.cli.rollback import RollbackOptions, run_rollback
from migrate.clock import SystemClock
from migrate.errors import ClusterError
from migrate.extras.follow.journal import Followed
from migrate.extras.follow.mandate import mandate_of
from migrate.extras.follow.undo import renamed, undo_of_follow
from migrate.mm2.flow import Flow
from migrate.model import Commits, Failure
from migrate.plan.plan import Plan
from migrate.ports import Progress
from migrate.session.clusters import apply_session
from migrate.session.options import SessionOptions
from migrate.survey.renamed import TargetNames
from migrate.text import many


@dataclass(frozen=True, kw_only=True)
class FollowRollbackOptions(OnClusters):
    """The mandate whose writes are to be taken back, and what of them."""

    plan: Path = argument()
    writing: WritingOptions = WritingOptions()
    allow_partial: bool = flag(
        "Leave out whole groups that have moved on or are a later plan's, and restore the others."
    )
    out: Path | None = option(
        "Instead of restoring, save the undo as a separate plan for apply, with its own fingerprint.",
        metavar="PLAN")  # fmt: skip


def rollback(options: FollowRollbackOptions) -> int:
    """Restore what stood on the target before the first pass of `follow run`, from the journal next to the mandate.

    Without --execute this is a dry run. Only its own last writes are taken back: groups that others have moved since
    are refused, and so are those that a plan beside the mandate has set or kept since. Then the mandate is spent.
    """
    flow, progress = reached_flow(options.clusters), options.log.progress(options.plan)
    session = options.writing.session(options.clusters)

    def undo(
        plan: Plan, journal: Journal, state: JournalState, restored: Iterable[Mapping[str, GroupTrace]], moved: str
    ) -> Plan:
        mandate_of(plan)
        made = undo_of_mandate(plan, state, restored, flow, progress, session, moved)
        others = [*other_plans(plan.fingerprint, plan.header.target_cluster_id, journal.path.parent)]
        held = held_by_other_plans(made, state, others) | followed_since(state, others)
        return without_held(made, held, "--allow-partial leaves it there.")

    asked = RollbackOptions(
        plan=options.plan, writing=options.writing, allow_partial=options.allow_partial, out=options.out,
        clusters=options.clusters, log=options.log,
    )  # fmt: skip
    return printed(*run_rollback(asked, flow, progress, Terminal.here(), "follow rollback", undo))


def followed_since(state: JournalState, others: Iterable[tuple[Plan, JournalState]]) -> dict[str, str]:
    """Return the groups of the target that a mandate first followed later has written, with its short fingerprint.

    `state` is the earlier mandate's journal. First runs are compared, so that of two mandates one is the later.
    """
    began = state.runs[0].began if state.runs else ""
    return {
        plan.rows.renamed().get(group, group): plan.short_fingerprint
        for plan, later in others
        if not plan.header.is_of_rows and later.runs and later.runs[0].began > began
        for group, trace in later.applied.items()
        if trace.written()
    }


def undo_of_mandate(
    plan: Plan,
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
    # What is there now is a later plan's, though it may look like ours.
    done = groups_restored(restored)
    target_commits: dict[str, Commits] = {}
    if doubts := sorted(g for g, trace in state.applied.items() if trace.has_doubts and g not in done):
        exact = [group for group in doubts if Followed.by(state, group).has_metadata]
        with apply_session(flow, progress, bool(exact), session) as edges:
            called = TargetNames(renamed(mandate_of(plan).names(), doubts))
            admin = edges.exact_admin(edges.target, exact, called)
            progress.step(f"reading {many(len(doubts), 'group')} on {admin.alias}")
            for group, answer in admin.commits(doubts).items():
                if isinstance(answer, Failure):
                    raise ClusterError(f"The commits of group {group!r} could not be read: {answer}.", "Try again.")
                target_commits[group] = answer
    names, now_ms = flow.policy.source_topic, SystemClock().now_ms()
    return undo_of_follow(plan, state, done, target_commits, names, now_ms, moved)
