"""`doctor` on rights: for each command, what each side does not let us do, by resource; and the form of all its lines.

Pure: what the clusters said is given. It looks at the groups that the filters leave, the topics that these have
committed on, and MM2's own.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from migrate.checks.rights import COMMANDS, Missing, Resources, Seen, missing, needed, resources_of
from migrate.mm2.flow import Flow
from migrate.model import Commits, Failure, Side
from migrate.survey.filters import Filters
from migrate.text import many, name, some


class Health(StrEnum):
    """The verdict of one examination."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Examined:
    """One line of the doctor's report."""

    health: Health
    what: str
    seen: str
    todo: str = ""


@dataclass(frozen=True, slots=True)
class Subjects:
    """The groups to be moved, and the source topics that they read as far as the source reports them."""

    groups: tuple[str, ...] = ()
    source_topics: tuple[str, ...] = ()


def subjects_of(listed: Collection[str], commits: Mapping[str, Commits | Failure], filters: Filters) -> Subjects:
    """Return what a plan with these filters is about, as far as the source's commits show."""
    groups = tuple(sorted(group for group in listed if filters.group_verdict(group) is None))
    answers = (commits.get(group) for group in groups)
    read = {place.topic for answer in answers if answer and not isinstance(answer, Failure) for place in answer}
    return Subjects(groups, tuple(sorted(topic for topic in read if filters.topic_verdict(topic) is None)))


def unread_commits(alias: str, groups: Iterable[str], commits: Mapping[str, Commits | Failure]) -> Iterator[Examined]:
    """Yield a line for each reason but rights why commits could not be read: which topics they are on is not known.

    What rights they lack is told by the lines of the commands.
    """
    failures = {g: answer for g in groups if isinstance(answer := commits.get(g), Failure)}
    for code in sorted({f.code for f in failures.values()} - {"GROUP_AUTHORIZATION_FAILED"}):
        names = [name(group) for group, failure in failures.items() if failure.code == code]
        seen = f"of {many(len(names), 'group')} on {alias} not read, {code}: {some(names, 5)}"
        yield Examined(
            Health.WARN, "commits", seen, "Rights on the topics that they read were not looked at. Try again."
        )


def names_to_ask(
    flow: Flow, side: Side, subjects: Subjects, shown: Collection[str], reads_offsets: bool = False
) -> dict[Resources, list[str]]:
    """Return the resources of one side; topics that we know to be absent there are left out.

    Where a copy is missing, or MM2 keeps no such topic, `plan` says so; nobody can be granted a right on it.
    """
    resources = resources_of(flow, side, subjects.groups, subjects.source_topics, reads_offsets)
    if side is Side.TARGET:
        resources[Resources.TOPICS] = [topic for topic in resources[Resources.TOPICS] if topic in shown]
    return resources


def without_absent(resources: Mapping[Resources, list[str]], seen: Seen) -> dict[Resources, list[str]]:
    """Leave out topics that the cluster says it does not have, or that it has nowhere, shown or not."""

    def exists(resource: Resources, name: str) -> bool:
        answer = seen.topics.get(name) if resource.is_topic else None
        # Every cluster with groups has an offsets topic: one that is not there is one that is hidden.
        if not isinstance(answer, Failure) or resource is Resources.OFFSETS:
            return True
        return answer.code != "UNKNOWN_TOPIC_OR_PARTITION" and (seen.hidden is None or name in seen.hidden)

    return {kind: [name for name in names if exists(kind, name)] for kind, names in resources.items()}


def examine_rights(side: Side, alias: str, resources: Mapping[Resources, list[str]], seen: Seen) -> Iterator[Examined]:
    """Return a line per command that needs anything of this side."""
    resources = without_absent(resources, seen)
    for command in COMMANDS:
        what = f"rights for {command} on {side} {alias}"
        if lacking := missing(command, side, resources, seen):
            rights = "; ".join(map(_with_purpose, lacking))
            yield Examined(Health.FAIL, what, f"missing: {rights}", f"Grant them to this principal on {alias}.")
        elif any(right.resources in resources for right in needed(command, side)):
            yield Examined(Health.OK, what, _asked_about(resources))
    if seen.hidden:
        yield Examined(
            Health.WARN, f"topics of {side} {alias}",
            f"{many(len(seen.hidden), 'topic')} that it has and does not show us: {some(sorted(seen.hidden))}. "
            "Commits on them are left out in silence",
            f"Grant DESCRIBE on them to this principal on {alias}, unless no group of yours reads them.",
        )  # fmt: skip


def _with_purpose(lack: Missing) -> str:
    return f"{lack.grant} ({lack.right.purpose})" if lack.right.purpose else lack.grant


def _asked_about(resources: Mapping[Resources, list[str]]) -> str:
    topics = sum(len(names) for kind, names in resources.items() if kind.is_topic)
    return f"all there, on {many(len(resources[Resources.GROUPS]), 'group')} and {many(topics, 'topic')}"
