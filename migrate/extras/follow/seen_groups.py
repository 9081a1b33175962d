"""What one pass of `follow` saw of each group: its translated rows, its commits on the target, and what is doubtful.

Groups for which a plan would be refused as a whole are left out, and a pass goes on without them: those that would
share a name on the target under the mandate's group map, and those whose commits a cluster does not show. The next pass
may find the other group gone, or the right granted, and everybody else's offsets stay fresh meanwhile.

Pure, but for asking for the ids of topics again.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from migrate.apply.history import JournalState
from migrate.checks import checklist
from migrate.checks.groups import offsets_expiry, partitions_never_committed
from migrate.extras.follow.judge import (
    Refusal,
    SeenGroup,
    WhyNot,
    gone_from_source,
    kept_by_a_write,
    without_rows,
)
from migrate.mm2.name_map import NameMap, NoNameOfItsOwn
from migrate.model import CheckResult
from migrate.plan.build import checked
from migrate.plan.rows import with_blocks
from migrate.survey.commits import CommitsNotVisible
from migrate.survey.group_facts import GroupFacts
from migrate.survey.survey import PlanRequest, Survey
from migrate.text import name, some

AskIds = Callable[[Collection[str]], Mapping[str, str]]


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


def sharing_with_written(group_map: NameMap, groups: Collection[str], state: JournalState) -> dict[str, Refusal]:
    """Return the refusals of groups whose name on the target is that of one which was written and is gone since.

    What is committed there is the other's, and a rollback takes it back: two groups' prior states cannot both be.
    """
    if not group_map:
        return {}
    written = (group for group, trace in state.applied.items() if trace.written())
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


def seen_groups(
    survey: Survey, state: JournalState, clocks: Mapping[str, int],
    moving_groups: Collection[re.Pattern[str]], source_ids: AskIds,
) -> tuple[list[SeenGroup], dict[str, Refusal]]:  # fmt: skip
    """Return what was seen of each group, and the refusals of those that have no row, or no name of their own.

    `moving_groups` are those whose commits may move without a member; `source_ids` asks the source for topic ids again.
    """
    facts = survey.group_facts
    rows, found = checked(survey)
    expiring = kept_by_a_write(survey, rows, found)
    results = [r for r in found if r.check != offsets_expiry.name or r.subject not in expiring]
    laid = with_blocks(rows, checklist.blocked_groups(results, rows), checklist.blocked_rows(results))
    sharing = sharing_with_written(survey.request.group_map, laid.groups().keys(), state)
    ids = {topic: survey.source.topic_ids.get(topic, "") for topic in laid.tally("source_topic")}
    others = other_topics(ids, source_ids)
    uncovered = without_row(survey, results)
    groups_seen = []
    for group, table in laid.groups().items():
        if group in sharing:
            continue
        moving = (*facts.moving_on_source.get(group, ()), *facts.moving_on_target.get(group, ()))
        accepted = any(pattern.fullmatch(group) for pattern in moving_groups)
        groups_seen.append(
            SeenGroup(
                group, tuple(table), survey.priors.get(group, {}), survey.target.states.get(group),
                "" if accepted else ", ".join(moving[:3]), group in expiring, clocks.get(group),
                of_another_log((row.source_topic for row in table), others)
                or (None if accepted else _unread_again(group, facts)),
                uncovered.get(group, ""),
            )
        )  # fmt: skip
    # One that was written and is gone is unsafe, whatever a check says of its name.
    return groups_seen, without_rows(results, laid) | gone_from_source(state, laid.groups().keys()) | sharing


def without_row(survey: Survey, results: Iterable[CheckResult]) -> dict[str, str]:
    """Return, by group, of which partitions of its topics, or other topics that it reads, a pass has no row."""
    never = {r.subject: r.seen for r in results if r.check == partitions_never_committed.name and r.subject}
    topic_verdict, found = survey.request.filters.topic_verdict, dict[str, str]()
    for group, commits in survey.selected.read.items():
        topics = sorted({place.topic for place in commits if topic_verdict(place.topic) is not None})
        beyond = [f"{some(map(name, topics), 5)}, which the mandate's filters leave out"] if topics else []
        if parts := [*([f"commits: {never[group]}"] if group in never else []), *beyond]:
            found[group] = "; ".join(parts)
    return found


def other_topics(ids: Mapping[str, str], ask: AskIds) -> frozenset[str]:
    """Ask for the ids of topics again, and return those that have another one now, or none; "" is not known.

    An offset that is right in one log skips records, or reads them twice, in another of the same name.
    """
    known = {topic: topic_id for topic, topic_id in ids.items() if topic_id}
    now = ask(sorted(known)) if known else {}
    return frozenset(topic for topic, topic_id in known.items() if now.get(topic) != topic_id)


def of_another_log(topics: Iterable[str], others: frozenset[str]) -> Refusal | None:
    """Return the refusal of a group that has one of these topics of the source, None where it has not.

    Its commits may be of the topic's old log, and measured in the new one.
    """
    if not others or not (there := sorted(others.intersection(topics))):
        return None
    sentence = f"{there[0]} was deleted, or created anew, on the source while the pass was made."
    return Refusal(WhyNot.CHANGED, sentence, is_unsafe=True)


def _unread_again(group: str, facts: GroupFacts) -> Refusal | None:
    """Return the refusal of a group without members of which nobody knows whether its commits move."""
    why = facts.unread_on_source.get(group) or facts.unread_on_target.get(group)
    if why is None:
        return None
    sentence = f"Its commits could not be read a second time ({why}): whether something commits for it is unknown."
    return Refusal(WhyNot.COMMITS, sentence, is_unsafe=True)
