"""The `follow rollback` command: what stood on the target before the first pass, from the journal of a mandate."""

from collections.abc import Iterable, Mapping

from migrate.apply.history import GroupTrace, JournalState
from migrate.apply.journal import Journal
from migrate.apply.undo import groups_restored
from migrate.cli.console import Terminal, printed
from migrate.cli.flows import reached_flow
from migrate.cli.rollback import RollbackOptions, run_rollback
from migrate.clock import SystemClock
from migrate.errors import ClusterError
from migrate.extras.follow.journal import read_memory
from migrate.extras.follow.mandate import mandate_of
from migrate.extras.follow.undo import groups_in_doubt, renamed, undo_of_follow
from migrate.mm2.flow import Flow
from migrate.model import Commits, Failure
from migrate.plan.plan import Plan
from migrate.ports import Progress
from migrate.session.clusters import apply_session
from migrate.session.options import SessionOptions
from migrate.survey.renamed import TargetNames
from migrate.text import many


def rollback(options: RollbackOptions) -> int:
    """Restore what stood on the target before the first pass of `follow run`, from the journal next to the mandate.

    Without --execute this is a dry run. Only its own last writes are taken back; groups that others have moved since
    are refused. After a rollback the mandate is spent.
    """
    flow, progress = reached_flow(options.clusters), options.log.progress(options.plan)
    session = options.writing.session(options.clusters)

    def undo(
        plan: Plan, journal: Journal, state: JournalState, restored: Iterable[Mapping[str, GroupTrace]], moved: str
    ) -> Plan:
        mandate_of(plan)
        return undo_of_mandate(plan, journal, state, restored, flow, progress, session, moved)

    return printed(*run_rollback(options, flow, progress, Terminal.here(), "follow rollback", undo))


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
            called = TargetNames(renamed(mandate_of(plan).names(), doubts))
            admin = edges.exact_admin(edges.target, exact, called)
            progress.step(f"reading {many(len(doubts), 'group')} on {admin.alias}")
            for group, answer in admin.commits(doubts).items():
                if isinstance(answer, Failure):
                    raise ClusterError(f"The commits of group {group!r} could not be read: {answer}.", "Try again.")
                standing[group] = answer
    names, now_ms = flow.policy.source_topic, SystemClock().now_ms()
    return undo_of_follow(plan, memory, state, standing, names, now_ms, moved)
