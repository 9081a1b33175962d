"""Checks on what kind of group it is: some kinds cannot be moved, some need more than their offsets."""

from collections.abc import Iterable, Sequence

from migrate.checks.check import Check, check, groups_of
from migrate.commit_table import GroupCommits
from migrate.mm2.settings import java_pattern
from migrate.model import CheckResult, Failure, GroupState, Level, Scope
from migrate.row_table import PlanRows
from migrate.survey.cluster import BrokerSettings
from migrate.survey.connect_topics import SINK_PREFIX, ConnectTopic, without_copy
from migrate.survey.groups import other_kinds
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from migrate.survey.streams import applications_of, signs_of
from migrate.survey.survey import Case, Survey
from migrate.text import many, name, some

# One underscore and not two, which are left out by default; written so that --exclude-group reads it in the same way,
# where a dot matches no line end.
VENDOR_GROUP = java_pattern(r"_([^_][\s\S]*)?")
CONNECT_TODO = (
    "Copy it under the same name before a connector starts there, or expect the snapshot; from Kafka 3.6 on a "
    "connector's positions can also be set by hand (PATCH /connectors/NAME/offsets)."
)
HIDDEN_TODO = (
    "List its topics as a principal that may see them all, or grant DESCRIBE on the cluster, and look for those of "
    "Connect workers and Debezium: without them a source connector takes a new snapshot."
)


@check("share-group", Scope.GROUP, can_be_accepted=True, case=Case.SOURCE_READ)
def share_group(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block share groups (KIP-932): no listing of consumer groups shows them."""
    return _of_kind(
        share_group, survey, "share", "a share group (KIP-932)",
        "MM2 and this tool do not move share groups: leave it out here with --exclude-group or --accept "
        "share-group:GROUP, and set its start on the target with kafka-share-groups --reset-offsets. "
        "Its start offsets can be translated: see docs/limits.md.",
    )  # fmt: skip


@check("streams-group", Scope.GROUP, can_be_accepted=True, case=Case.SOURCE_READ)
def streams_group(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block streams groups (KIP-1071): no listing of consumer groups shows them."""
    return _of_kind(
        streams_group, survey, "streams", "a streams group (KIP-1071)",
        "MM2 does not checkpoint streams groups and this tool does not move them: use kafka-streams-groups "
        "--reset-offsets on the target, and leave it out here with --exclude-group or --accept streams-group:GROUP.",
    )  # fmt: skip


def _of_kind(check: Check, survey: Survey, kind: str, what: str, todo: str) -> Iterable[CheckResult]:
    """Block groups of a kind.

    A group of unknown kind may be either, and blocks as both. Where no client at hand can see such groups, that is
    said: it is never a pass.
    """
    alias, kinds = survey.flow.source.alias, other_kinds(survey.group_facts.source_kinds, survey.request.filters)
    expected = f"no {kind} group among those to be moved"
    if isinstance(kinds, Failure):
        yield check.on_cluster.unseen(
            Level.WARN, alias, expected, f"no client at hand can see such groups ({kinds})",
            f"Look with kafka-groups --list on {alias} (Kafka 4.0 and later have such groups).",
        )  # fmt: skip
        return
    of_kind, unknown = ([g for g in sorted(kinds) if kinds[g] == word] for word in (kind, "unknown"))
    for group in of_kind:
        yield check.blocks(group, expected, f"it is {what}", todo)
    for group in unknown:
        yield check.unseen(
            Level.BLOCK, group, expected,
            "its kind is unknown: no listing and no record that could be read shows it",
            f"Look with kafka-groups --list on {alias}. Records in {OFFSETS_TOPIC} show it to whoever may READ that "
            "topic. Else leave the group out with --exclude-group, or with --accept share-group:GROUP --accept "
            "streams-group:GROUP.",
        )  # fmt: skip
    if not of_kind and not unknown:
        yield check.on_cluster.passes(alias, expected, "none is listed")


@check("group-protocol", Scope.GROUP)
def group_protocol(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Tell classic groups from those of KIP-848, whose consumers the target must be able to serve."""
    groups, source, target = groups_of(rows), survey.flow.source.alias, survey.flow.target.alias
    states = {group: survey.source.states.get(group) for group in groups}
    new = [g for g, state in states.items() if isinstance(state, GroupState) and state.kind == "consumer"]
    expected, settings = f"a {target} that serves the group's protocol", survey.group_facts.target_settings
    if isinstance(settings, BrokerSettings):
        for group in [] if settings.takes_kip848 else new:
            yield group_protocol.warns(
                group, expected,
                f"its consumers use group.protocol=consumer (KIP-848), and {target} does not serve that",
                "Set group.protocol=classic in its consumers, or upgrade the target to Kafka 4.0, before they start.",
            )  # fmt: skip
    else:
        for group in new:
            yield group_protocol.unseen(
                Level.WARN, group, expected,
                f"its consumers use group.protocol=consumer (KIP-848), and whether {target} serves that "
                f"could not be read ({settings.code})",
                "It needs Kafka 4.0, or group.coordinator.rebalance.protocols with consumer.",
            )  # fmt: skip
    served = isinstance(settings, BrokerSettings) and settings.takes_kip848
    unknown = [group for group, state in states.items() if not isinstance(state, GroupState)]
    if unknown and not served:
        yield group_protocol.on_cluster.unseen(
            Level.WARN, source, expected,
            f"the protocol of {many(len(unknown), 'group')} is not known: {some(unknown, 3)}",
            f"Those with group.protocol=consumer (KIP-848) need a {target} of Kafka 4.0.",
        )  # fmt: skip
    elif groups and (served or not new):
        seen = f"{len(groups) - len(unknown) - len(new)} classic, {len(new)} of KIP-848"
        seen += f", {len(unknown)} unknown" if unknown else ""
        yield group_protocol.passes(many(len(groups), "group"), expected, seen)


@check("kafka-streams", Scope.GROUP)
def kafka_streams(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name Kafka Streams applications: their state is in topics of their own, and offsets do not move it."""
    for group, (signs, internal) in sorted(_applications(survey).items()):
        if group in rows.groups():
            yield kafka_streams.warns(
                group, "a consumer without state of its own",
                f"a Kafka Streams application, by its {' and '.join(signs)}: {_internal(internal, survey)}",
                "Its stores are rebuilt from the changelogs of that name on the target, and start empty without "
                "them. Bring those over, or plan to reset and reprocess (kafka-streams-application-reset).",
            )  # fmt: skip


def _applications(survey: Survey) -> dict[str, tuple[tuple[str, ...], list[str]]]:
    """Return the groups of the plan that look like Kafka Streams: by what signs, and their internal topics."""
    metadata: dict[str, set[str]] = {}
    keys = survey.keys
    has_some = not isinstance(keys, GroupCommits) or any(table.has_metadata for table in keys.groups().values())
    for key, commit in keys.items() if has_some else ():
        if commit is not None and commit.metadata:
            metadata.setdefault(key.group, set()).add(commit.metadata)
    topics_of = applications_of(survey.source.topics, survey.source.listed.union(survey.groups))
    applications = {}
    for group in survey.groups:
        state, topics = survey.source.states.get(group), sorted(topics_of.get(group, ()))
        assignor = state.assignor if isinstance(state, GroupState) else ""
        if signs := signs_of(assignor, metadata.get(group, ()), topics):
            applications[group] = signs, topics
    return applications


def _internal(topics: Sequence[str], survey: Survey) -> str:
    """Say which internal topics the target has; only one of the same name is used by the application there."""
    if not topics:
        return "no internal topic of its name is there"
    copies = {topic: survey.flow.policy.target_topic(topic) for topic in topics}
    copied = {topic: copy for topic, copy in copies.items() if copy in survey.target.topics}
    kinds = {
        "used as they are on the target": [topic for topic, copy in copied.items() if copy == topic],
        "copied under another name, which the application does not read": [
            topic for topic, copy in copied.items() if copy != topic
        ],
        "not copied": [topic for topic in topics if topic not in copied],
    }
    return "; ".join(f"{title}: {some(names, 5)}" for title, names in kinds.items() if names)


@check("connect-sink", Scope.GROUP)
def connect_sink(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name the groups of Connect sink connectors: a connector of the same name has to take them up."""
    for group in groups_of(rows):
        if group.startswith(SINK_PREFIX):
            yield connect_sink.warns(
                group, "consumers that are stopped and started by hand",
                "the group of the Connect sink in its name, whose worker starts its consumers again by itself",
                "Stop it with PUT /connectors/NAME/stop on its worker (Kafka 3.5 and later; before, delete it there, "
                "its settings kept: a paused one stays in its group); on the target create it under the same name, "
                "and with topics named as there.",
            )  # fmt: skip


@check("connect-internal-topics", Scope.TOPIC)
def connect_internal_topics(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name topics that source connectors take up from, and that the target lacks: a new snapshot floods it."""
    source, target = survey.flow.source.alias, survey.flow.target.alias
    expected = f"Connect's and Debezium's own topics under the same names on {target}"
    if Case.SOURCE_DOWN in survey.case:
        yield connect_internal_topics.on_cluster.unseen(
            Level.WARN, source, expected, "the source is down: not checked",
            "Find out whether source connectors ran there: without these topics they take a new snapshot.",
        )  # fmt: skip
        return
    for missing in _connect_topics_not_copied(survey):
        yield connect_internal_topics.warns(
            missing.topic, expected,
            f"{missing}, and {target} has no topic of that name: a source connector started there takes a new snapshot",
            CONNECT_TODO,
        )  # fmt: skip
    hidden = survey.source.hidden
    if isinstance(hidden, Failure):
        yield connect_internal_topics.on_cluster.unseen(
            Level.WARN, source, expected,
            f"it may have more of them: a cluster does not say which topics it hides: {hidden.code} ({hidden.message})",
            HIDDEN_TODO,
        )  # fmt: skip


def _connect_topics_not_copied(survey: Survey) -> list[ConnectTopic]:
    """Return Connect's own topics on the source that the target lacks under their names, hidden ones included."""
    flow, hidden = survey.flow, survey.target.hidden
    on_target = survey.target.topics.keys() | (hidden if isinstance(hidden, frozenset) else frozenset())
    missing = without_copy(survey.connect_topics, on_target)
    # What a failback leaves may hold copies of what is where it goes: their originals are there.
    return [m for m in missing if flow.mm2_topic(m.topic) not in on_target]


@check("vendor-groups", Scope.CLUSTER)
def vendor_groups(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Count the groups whose names begin with one underscore: mostly those of vendors' own tools."""
    vendors = [group for group in groups_of(rows) if VENDOR_GROUP.fullmatch(group)]
    if vendors:
        yield vendor_groups.warns(
            survey.flow.source.alias, "groups of the users' own applications",
            f"{many(len(vendors), 'group')} whose {'name begins' if len(vendors) == 1 else 'names begin'} with one _: "
            f"{some(map(name, vendors))}",
            "Vendors name the groups of their own tools like that (Control Center, ksqlDB, Schema Registry), and "
            f"those run on {survey.flow.target.alias} by themselves. If none of them is yours, leave them out: "
            f"--exclude-group '{VENDOR_GROUP.pattern}'",
        )  # fmt: skip
