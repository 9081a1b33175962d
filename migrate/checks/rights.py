"""The rights that each command needs, by side: what docs/rights.md lists, `doctor` checks and the tests grant.

Pure. A right is an operation of Kafka's authorizer on a set of resources. Brokers let nobody know of what he may not
DESCRIBE: lists lack it, in silence. READ and DELETE imply DESCRIBE (`AclOperation`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from migrate.mm2.flow import Flow
from migrate.mm2.naming import HEARTBEATS
from migrate.model import Commits, Failure, Side
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import OFFSETS_TOPIC, READER_GROUP_PREFIX
from migrate.text import many, name, some

CLUSTER_NAME = "kafka-cluster"


class Operation(StrEnum):
    """An operation, as ACLs name it."""

    DESCRIBE = "DESCRIBE"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    READ = "READ"
    DELETE = "DELETE"


class ResourceKind(StrEnum):
    """A kind of resource, as ACLs name it."""

    CLUSTER = "CLUSTER"
    GROUP = "GROUP"
    TOPIC = "TOPIC"


class Resources(StrEnum):
    """Which resources a right is needed on; the words are those of docs/rights.md."""

    CLUSTER = "the cluster"
    GROUPS = "the groups"
    TOPICS = "the topics that they read"
    SYNCS = "MM2's offset-syncs topic"
    CHECKPOINTS = "MM2's checkpoints topic"
    POSITIONS = "MM2's Connect offsets topic"
    OFFSETS = "`__consumer_offsets`"
    READER = "groups that begin with `mm2-migrate-`"

    @property
    def kind(self) -> ResourceKind:
        """What an ACL on one of them names."""
        kinds = {"CLUSTER": ResourceKind.CLUSTER, "GROUPS": ResourceKind.GROUP, "READER": ResourceKind.GROUP}
        return kinds.get(self.name, ResourceKind.TOPIC)

    @property
    def is_topic(self) -> bool:
        """True for what topics are."""
        return self.kind is ResourceKind.TOPIC


@dataclass(frozen=True, slots=True)
class Right:
    """One right that a command needs; `purpose` is what it is for, where that is not plain."""

    command: str
    side: Side
    operation: Operation
    resources: Resources
    purpose: str = ""


def _rights(command: str, side: Side, *rights: tuple[Operation, Resources, str]) -> Iterator[Right]:
    return (Right(command, side, *right) for right in rights)


_D, _C, _R, _X = Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.READ, Operation.DELETE
_BASE = ((_D, Resources.CLUSTER, ""), (_D, Resources.GROUPS, ""))
_WRITE = (
    (_R, Resources.GROUPS, "to commit for them"),
    (_R, Resources.TOPICS, "to commit on them"),
)
_UNDO = (_X, Resources.GROUPS, "where a group, or one of its offsets, did not exist before")
_COMPARE = (_R, Resources.TOPICS, "to compare their records")
BY_TOPIC = "plan --commits-from consumer-offsets"
# What `plan` goes without; and the plan of the way back, its apply and its rollback.
OPTIONAL, FAILBACK = "plan (optional)", "failback"
# What these lack is a warning: what is lost without it.
_WARNINGS = {
    OPTIONAL: "plan does without them, and says that what they are for is unknown.",
    FAILBACK: "A cutover needs none of them, only the way back.",
}
RIGHTS: tuple[Right, ...] = (
    *_rights("plan", Side.SOURCE, *_BASE, _COMPARE, (_R, Resources.SYNCS, "")),
    *_rights("plan", Side.TARGET, *_BASE, _COMPARE),
    *_rights("plan", Side.TARGET, (_R, Resources.CHECKPOINTS, ""), (_R, Resources.POSITIONS, "MM2's own positions")),
    *_rights(
        BY_TOPIC,
        Side.SOURCE,
        (_R, Resources.OFFSETS, "to read commits there"),
        (_D, Resources.READER, "under whose name Spark reads them"),
    ),
    *_rights(OPTIONAL, Side.SOURCE, (_R, Resources.OFFSETS, "when groups committed last")),
    *_rights(
        OPTIONAL,
        Side.TARGET,
        (_C, Resources.CLUSTER, "when offsets expire"),
        (_R, Resources.OFFSETS, "since when groups are empty, and with that when their offsets expire"),
        (_C, Resources.TOPICS, "which topics are compacted"),
    ),
    *_rights("apply", Side.SOURCE, (_D, Resources.GROUPS, ""), (_D, Resources.TOPICS, "")),
    *_rights("apply", Side.TARGET, *_WRITE),
    *_rights("verify", Side.TARGET, (_D, Resources.GROUPS, ""), (_D, Resources.TOPICS, "")),
    *_rights("verify --records", Side.SOURCE, (_R, Resources.TOPICS, "")),
    *_rights("verify --records", Side.TARGET, (_D, Resources.GROUPS, ""), (_R, Resources.TOPICS, "")),
    *_rights(
        "rollback",
        Side.TARGET,
        *_WRITE,
        _UNDO,
    ),
    *_rights(FAILBACK, Side.SOURCE, _BASE[0], *_WRITE, _UNDO, (_R, Resources.SYNCS, "")),
    *_rights(FAILBACK, Side.TARGET, *_BASE, _COMPARE),
)
COMMANDS = tuple(dict.fromkeys(right.command for right in RIGHTS))


def is_infrastructure(topic: str) -> bool:
    """True for topics of Kafka's and MM2's own working, which nobody's groups read; MM2's two topics are among them."""
    return topic == HEARTBEATS or topic.startswith(("__", "mm2-")) or topic.endswith((".internal", "-internal"))


@dataclass(frozen=True, slots=True)
class Seen:
    """What one cluster lets us do, resource by resource; a `Failure` where it did not report it.

    `groups` and `topics` are those that it shows, and those that were asked for by name. `hidden` are topics that it
    has and does not show us, None where that is not known.
    """

    cluster: frozenset[str] | None
    groups: Mapping[str, frozenset[str] | Failure]
    topics: Mapping[str, frozenset[str] | Failure]
    hidden: frozenset[str] | None = None


def resources_of(
    flow: Flow, side: Side, groups: Iterable[str], source_topics: Iterable[str], reads_offsets: bool = False
) -> dict[Resources, list[str]]:
    """Return the names behind each set of resources on one side of a flow.

    `groups` are those to be moved, `source_topics` those that they read, by their names on the source.
    `reads_offsets` says that a plan is to read commits in the offsets topic.
    """
    names = sorted(set(source_topics))
    named = {
        Resources.CLUSTER: [CLUSTER_NAME],
        Resources.GROUPS: sorted(set(groups)),
        Resources.OFFSETS: [OFFSETS_TOPIC],
        Resources.TOPICS: names if side is Side.SOURCE else [flow.policy.target_topic(name) for name in names],
    }
    if reads_offsets and side is Side.SOURCE:
        named[Resources.READER] = [READER_GROUP_PREFIX]
    if flow.syncs_side is side and flow.offset_syncs_topic:
        named[Resources.SYNCS] = [flow.offset_syncs_topic]
    if side is Side.TARGET and flow.mm2_delivers:
        named[Resources.CHECKPOINTS] = [flow.checkpoints_topic]
        # None is known where the worker's REST reports the positions.
        named[Resources.POSITIONS] = list(flow.connect_offsets_topics)
    return named


def needed(command: str, side: Side) -> tuple[Right, ...]:
    """Return the rights that a command needs on one side; the offset syncs may lie on either."""
    rights = tuple(right for right in RIGHTS if (right.command, right.side) == (command, side))
    of_syncs = Right(command, side, Operation.READ, Resources.SYNCS)
    return (*rights, of_syncs) if command in ("plan", FAILBACK) and side is Side.TARGET else rights


def missing(
    command: str, side: Side, resources: Mapping[Resources, list[str]], seen: Seen, granted: bool | None = False
) -> dict[Right, list[str]]:
    """Return the rights of a command that a cluster does not grant, each with the names that lack it.

    With `granted` None: the rights of which it did not report whether it grants them.
    """
    lacking = {
        right: [name for name in resources.get(right.resources, ()) if _allowed(right, name, seen) is granted]
        for right in needed(command, side)
    }
    return {right: names for right, names in lacking.items() if names}


def grant_text(right: Right, names: Sequence[str]) -> str:
    """Return what to grant, e.g. "READ on topics A.orders, A.pay"."""
    if right.resources is Resources.CLUSTER:
        return f"{right.operation} on the cluster"
    kind = right.resources.kind.lower()
    return f"{right.operation} on {kind}{'s' if len(names) > 1 else ''} {some(names, 5)}"


def _listed(rights: Mapping[Right, Sequence[str]]) -> str:
    return "; ".join(
        grant_text(right, names) + (f" ({right.purpose})" if right.purpose else "") for right, names in rights.items()
    )


def _allowed(right: Right, name: str, seen: Seen) -> bool | None:
    """Return whether a cluster grants the right on one resource, None where it did not report it."""
    kind = right.resources.kind
    of_kind = {ResourceKind.CLUSTER: {name: seen.cluster}, ResourceKind.GROUP: seen.groups}.get(kind, seen.topics)
    answer = of_kind.get(name)
    if isinstance(answer, frozenset):
        return right.operation in answer
    # What we may not DESCRIBE we may not READ or DELETE; a topic that is hidden is reported as unknown.
    refused = answer is not None and answer.code.endswith(("_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PARTITION"))
    return False if refused else None


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


def subjects_of(
    listed: Collection[str], commits: Mapping[str, Commits | Failure], filters: Filters
) -> tuple[list[str], list[str]]:
    """Return the groups that a plan with these filters is about, and the topics that they have committed on.

    As far as the source's commits show.
    """
    groups = sorted(group for group in listed if filters.group_verdict(group) is None)
    answers = (commits.get(group) for group in groups)
    read = {place.topic for answer in answers if answer and not isinstance(answer, Failure) for place in answer}
    return groups, sorted(topic for topic in read if filters.topic_verdict(topic) is None)


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
    flow: Flow,
    side: Side,
    groups: Iterable[str],
    source_topics: Iterable[str],
    shown: Collection[str],
    reads_offsets: bool = False,
) -> dict[Resources, list[str]]:
    """Return the resources of one side; topics that we know to be absent there are left out.

    Where a copy is missing, or MM2 keeps no such topic, `plan` says so; nobody can be granted a right on it.
    """
    resources = resources_of(flow, side, groups, source_topics, reads_offsets)
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
    """Yield a line of `doctor` per command that needs anything of this side: what it lacks, by resource."""
    resources = without_absent(resources, seen)
    for command in COMMANDS:
        if command == BY_TOPIC and Resources.READER not in resources:
            continue
        what = f"rights for {command} on {side} {alias}"
        lacking, unseen = (missing(command, side, resources, seen, granted) for granted in (False, None))
        if lacking or unseen:
            parts = [f"missing: {_listed(lacking)}"] * bool(lacking)
            parts += [f"not-visible: {_listed(unseen)}"] * bool(unseen)
            todo = [f"Grant them to this principal on {alias}."] * bool(lacking)
            if unseen:
                todo.append("Run doctor again, or look at the ACLs: the cluster did not report what is not-visible.")
            lost = _WARNINGS.get(command, "")
            todo += [lost] * bool(lost)
            yield Examined(Health.WARN if lost else Health.FAIL, what, "; ".join(parts), " ".join(todo))
        elif any(right.resources in resources for right in needed(command, side)):
            topics = sum(len(names) for kind, names in resources.items() if kind.is_topic)
            groups = many(len(resources[Resources.GROUPS]), "group")
            yield Examined(Health.OK, what, f"all there, on {groups} and {many(topics, 'topic')}")
    if seen.hidden:
        yield Examined(
            Health.WARN, f"topics of {side} {alias}",
            f"{many(len(seen.hidden), 'topic')} that it has and does not show us: {some(sorted(seen.hidden))}. "
            "Commits on them are left out in silence",
            f"Grant DESCRIBE on them to this principal on {alias}, unless no group of yours reads them.",
        )  # fmt: skip
