"""Groups for which a plan would be refused as a whole, and a pass goes on without them. Pure.

Those that would share a name on the target under the mandate's group map, and those whose commits a cluster does not
show: the next pass may find the other group gone, or the right granted, and everybody else's offsets stay fresh
meanwhile.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace

from migrate.apply.follow_decision import Refusal, WhyNot
from migrate.apply.follow_memory import FollowMemory
from migrate.mm2.name_map import NameMap, NoNameOfItsOwn
from migrate.survey.commits import CommitsNotVisible
from migrate.survey.survey import PlanRequest, Survey
from migrate.text import name


def survey_of_the_others(
    request: PlanRequest, take: Callable[[PlanRequest], Survey]
) -> tuple[Survey, dict[str, Refusal]]:
    """Return what `take` saw of the groups that can be looked at, and the refusals of the others.

    The others are left out of what is asked for: all that would share one name on the target, for which of them is
    meant nobody knows, and each whose commits a cluster does not show. The survey's request is that which was given:
    a group that was left out still has its name.
    """
    given, refused = request, dict[str, Refusal]()
    while True:
        try:
            return replace(take(request), request=given), refused
        except (NoNameOfItsOwn, CommitsNotVisible) as error:
            others = _refusals(error)
            if refused.keys() >= others.keys():
                raise
            refused |= others
            request = replace(request, filters=request.filters.without(others))


def _refusals(error: NoNameOfItsOwn | CommitsNotVisible) -> dict[str, Refusal]:
    if isinstance(error, NoNameOfItsOwn):
        return dict.fromkeys(error.names, Refusal(WhyNot.NAME, error.problem, is_unsafe=True))
    return {
        group: Refusal(WhyNot.COMMITS, f"Its commits could not be read: {failure}.", is_unsafe=True)
        for group, failure in error.failures.items()
    }


def sharing_with_written(group_map: NameMap, groups: Collection[str], memory: FollowMemory) -> dict[str, Refusal]:
    """Return the refusals of groups whose name on the target is that of one which was written and is gone since.

    What stands there is the other's, and a rollback takes it back: two groups' prior states cannot both be.
    """
    if not group_map:
        return {}
    written = (group for group, of_group in memory.groups.items() if of_group.written())
    held = {group_map.mapped(group): group for group in written if group not in groups}
    shared = {group: held[target] for group in groups if (target := group_map.mapped(group)) in held}
    return {
        group: Refusal(
            WhyNot.NAME,
            f"On the target it is called {name(group_map.mapped(group))}, and so was {name(other)}, which was written "
            "under this mandate.",
            is_unsafe=True,
        )
        for group, other in shared.items()
    }


def renamed(group_map: NameMap, groups: Iterable[str]) -> dict[str, str]:
    """Return what the target calls those of these groups that have another name there."""
    names: dict[str, str] = {}
    for group in groups:
        with suppress(NoNameOfItsOwn):
            if (target := group_map.mapped(group)) != group:
                names[group] = target
    return names
