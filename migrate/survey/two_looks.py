"""Who holds the groups, looked at twice: one that was rebalancing at the first look is alive at the second."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from migrate.errors import ClusterError
from migrate.mm2.flow import Flow
from migrate.model import ABSENT, ClusterFacts, Failure, GroupState
from migrate.progress import QuietProgress, Timer, in_background, in_batches
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.groups import NO_ANSWER
from migrate.survey.survey import ClusterSurvey, States


@dataclass(frozen=True)
class Listing:
    """The groups that a cluster lists, so many seconds after it was first asked."""

    groups: frozenset[str]
    seconds_apart: float


def facts_of_source(source: ClusterAdmin, flow: Flow) -> ClusterFacts:
    """Reach the source; raises `ClusterError`, which says what to do where it is lost for good."""
    try:
        return source.facts()
    except ClusterError as error:
        if flow.failback:
            raise
        hint = "If it is lost for good, --source-down plans from the target alone."
        raise ClusterError(error.problem, f"{error.todo} {hint}") from error


def describe(
    target: ClusterAdmin, source: ClusterAdmin | None, groups: Collection[str], timer: Timer
) -> tuple[States, States]:
    """Describe the groups on the target and on the source, both at once; nothing of a source that is down.

    Raises `ClusterError` as the clusters do.
    """

    def ask() -> tuple[States, States]:
        on_source = None
        if source is not None:
            asked = partial(in_batches, list(groups), source.group_states, QuietProgress())
            on_source = in_background(asked, "describing groups")
        on_target = in_batches(list(groups), target.group_states, timer.progress)
        return on_target, {} if on_source is None else on_source.result()

    where = target.alias if source is None else f"{target.alias} and {source.alias}"
    return timer.run("states", f"describing {len(groups)} groups on {where}", ask)


def list_again(admin: ClusterAdmin, listed_at: float, timer: Timer) -> Listing:
    """List the groups again; `listed_at` is when they were first listed, in the clock's seconds."""
    seconds_apart = timer.clock.monotonic() - listed_at
    return Listing(timer.run("groups", f"listing groups on {admin.alias} again", admin.groups), seconds_apart)


def both_looks(before: ClusterSurvey, again: Listing, now: States, groups: Collection[str]) -> ClusterSurvey:
    """Return a survey with the livelier of two descriptions of each group, `before`'s and `now`.

    Only a group that neither listing shows is "Absent": one that vanished in between was rebalancing.
    """
    listed = before.listed | again.groups
    states: dict[str, GroupState | Failure] = {}
    for group in groups:
        first = before.states.get(group)
        livelier = (now.get(group) if isinstance(first, GroupState) and first.is_stopped else first) or NO_ANSWER
        if isinstance(livelier, GroupState) and livelier.is_stopped and group not in listed:
            livelier = replace(livelier, state=ABSENT)
        states[group] = livelier
    return replace(before, states=states, seconds_apart=again.seconds_apart)
