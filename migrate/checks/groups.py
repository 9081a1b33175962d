"""Checks on consumer groups: stopped on both sides, whole, within limits, and what a rollback can restore."""

from collections.abc import Callable, Iterable

from migrate.checks import registry as checks
from migrate.checks.check import CheckFacts, ClusterSide, groups_of, is_without_members, judges
from migrate.model import ABSENT, CheckResult, Decision, Failure, GroupState, Level, Row, TopicPartition, rereads
from migrate.row_table import GroupRows, PlanRows
from migrate.survey.expiry import (
    BLOCK_BELOW_MS,
    EXPIRY_EXPECTED,
    UNKNOWN_TODO,
    WARN_BELOW_MS,
    Expiry,
    OffsetClocks,
    expiry_of,
    remedy,
)
from migrate.survey.group_facts import cadence_text
from migrate.survey.policies import Policies
from migrate.survey.producers import LEAST_SECONDS
from migrate.text import both_names, many, name, some


@judges(checks.NAMED_GROUPS_EXIST)
def named_groups_exist(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block on a group asked for by name that has nothing to move: most likely a misspelt name."""
    for unknown in facts.groups.unknown_names:
        yield checks.NAMED_GROUPS_EXIST.blocks(
            unknown, "a group with committed offsets", "no such group has commits in this flow",
            "Correct the name, or waive with --accept named-groups-exist:NAME if it has nothing to move.",
        )  # fmt: skip
    for line in facts.groups.idle_map_lines:
        yield checks.NAMED_GROUPS_EXIST.blocks(
            line.source, "a group with committed offsets for every line of --group-map",
            f"line {line.number} decides for none",
            "Correct the line or take it out, or waive with --accept named-groups-exist:NAME.",
        )  # fmt: skip


@judges(checks.GROUP_NAME_UNUSABLE)
def name_unusable(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block groups whose name librdkafka does not send: it refuses the empty one, and cuts others off at a NUL.

    `apply` would read and write another group, or none, and take what it read back for this one's.
    """
    for group in rows.groups():
        called = facts.target.names.get(group, group)
        if any(not each or "\0" in each for each in (group, called)):
            yield checks.GROUP_NAME_UNUSABLE.blocks(
                group, "a name that librdkafka can send: not empty, without a NUL", both_names(group, called),
                "Leave the group out with --exclude-group, and move it with Kafka's own tools.",
            )  # fmt: skip


@judges(checks.GROUP_NAME_SHARED)
def name_shared(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block groups that would share a name on the target with a group of another wave: it would overwrite them.

    Of a source that is down, a group that is known by checkpoints under its new name alone may be another of that name:
    only KIP-1378, which no release has, writes the renamed group's own there.
    """
    source, target = facts.source.alias, facts.target
    for group, other in sorted(facts.groups.shared_names.items()):
        called = target.names.get(group, group)
        yield checks.GROUP_NAME_SHARED.blocks(
            group, f"no other group of {source} that would be {name(called)} on {target.alias}",
            f"{name(other)} would, which this plan leaves out",
            "Map one of the two to another name; or, where the other never moves, leave it out with --exclude-group or "
            "waive with --accept group-name-shared:GROUP.",
        )  # fmt: skip
    for group in facts.groups.checkpointed_under_new_name:
        called = name(target.names[group])
        yield checks.GROUP_NAME_SHARED.unseen(
            Level.BLOCK, group, f"checkpoints under {name(group)}, its name on {source}",
            f"its checkpoints are under {called}, and a group {called} of {source} may have made them",
            f"If {source} never had a group {called}, waive with --accept group-name-shared:GROUP; else leave the "
            "group out with --exclude-group.",
        )  # fmt: skip


@judges(checks.GROUP_UNDER_OLD_NAME)
def under_old_name(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Name renamed groups that the target has under the source's name too: consumers may start there by mistake."""
    alias, names = facts.target.alias, facts.target.names
    for group in facts.groups.under_old_names:
        yield checks.GROUP_UNDER_OLD_NAME.warns(
            group, f"on {alias} only {name(names[group])}, its new name", f"{alias} has a group {name(group)} as well",
            "No command reads or writes it. Start consumers under the new name alone, and have nobody else write the "
            "old one (MM2's group sync does).",
        )  # fmt: skip
    if fine := len(names) - len(facts.groups.under_old_names):
        expected = f"no group on {alias} under the name that it leaves"
        yield checks.GROUP_UNDER_OLD_NAME.passes(many(fine, "renamed group"), expected, "none")


@judges(checks.GROUP_NAME_TAKEN)
def name_taken(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Name renamed groups whose new name a group on the target has: on other topics, or elsewhere on its own ones.

    After an apply, or under `follow`, that is this group itself; else it is another application's, and would be moved.
    """
    alias, names = facts.target.alias, facts.target.names
    others, tables = facts.groups.taken_names, rows.groups()
    for group, called in sorted(names.items()):
        seen = []
        if places := others.get(group):
            seen.append(f"it has committed on {some(places, 5)} as well, which the plan does not have")
        moved = [] if facts.failback else _moved(tables.get(group))
        if moved:
            from_to = f"{moved[0].target_partition} from {moved[0].target_prior} to {moved[0].target_offset}"
            more = f", and {many(len(moved) - 1, 'other partition')}" if len(moved) > 1 else ""
            seen.append(f"the plan would move it on {from_to}{more}")
        if seen:
            yield checks.GROUP_NAME_TAKEN.warns(
                group, f"no other group {name(called)} on {alias}", f"{alias} has one: {'; '.join(seen)}",
                "That is right if an earlier `apply` or `follow` wrote it. If it is another application's, give "
                f"{name(group)} another name: the two would be one group, and records be skipped or read twice.",
            )  # fmt: skip


def _moved(table: GroupRows | None) -> list[Row]:
    """Return the rows that stand on the target already and would be set elsewhere."""
    if table is None:
        return []
    told = table.values("decision", "target_prior", "target_offset")
    at = [n for n, (decision, prior, to) in enumerate(told) if decision is Decision.SET and prior not in (None, to)]
    return [table[n] for n in at]


@judges(checks.CHECKPOINTED_TOPICS_LISTED)
def checkpointed_topics_listed(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block groups that MM2 checkpointed on topics the source does not show: brokers hide such commits in silence.

    Without DESCRIBE on a topic, OffsetFetch leaves its commits out and says nothing; a deleted topic looks alike.
    """
    for group, topics in sorted(facts.groups.unseen_topics.items()):
        yield checks.CHECKPOINTED_TOPICS_LISTED.blocks(
            group, "every topic that MM2 checkpointed this group on, listed on the source",
            f"not listed: {some(topics)}",
            "Grant DESCRIBE on the topic, or if it was deleted, waive with --accept checkpointed-topics-listed:GROUP.",
        )  # fmt: skip


@judges(checks.TARGET_GROUP_EMPTY)
def target_group_empty(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block groups that have members on the target."""
    todo = "Stop these consumers: the broker refuses to set offsets under a live group."
    return _stopped(checks.TARGET_GROUP_EMPTY, facts.target, rows, todo, lambda group: "")


@judges(checks.SOURCE_GROUP_STOPPED)
def source_group_stopped(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block groups that still have members on the source."""
    todo = "Stop these consumers, then plan again: what they commit from now on is not in the plan."

    def cadence(group: str) -> str:
        text = cadence_text(facts.group_facts.source_record(group))
        return f"; it {text}" if text else ""

    return () if facts.source_down else _stopped(checks.SOURCE_GROUP_STOPPED, facts.source, rows, todo, cadence)


def _stopped(
    check: checks.Check, side: ClusterSide, rows: PlanRows, todo: str, cadence: Callable[[str], str]
) -> Iterable[CheckResult]:
    """Judge the groups of one side; `cadence` says how often one that is alive commits, "" where nobody can tell."""
    alias = side.alias
    fine = 0
    expected = f"no member on {alias}"
    for group in groups_of(rows):
        state = side.states.get(group)
        if state is None or isinstance(state, Failure):
            why = "no answer" if state is None else str(state)
            yield check.unseen(
                Level.BLOCK, group, expected, f"its state could not be read ({why})",
                f"Grant DESCRIBE on the group, or try again when {alias} is well.",
            )  # fmt: skip
        elif is_without_members(state):
            fine += 1
        else:
            who = f": {state.some_members()}" if state.members else ""
            kind = " (KIP-848)" if state.kind == "consumer" else ""
            members = many(state.member_count, "member")
            seen = f"{state.state} on {side.where(group)}{kind} with {members}{who}{cadence(group)}"
            yield check.blocks(group, expected, seen, todo)
    if fine:
        yield check.passes(many(fine, "group"), expected, "Empty, Dead or absent")


@judges(checks.TWO_LOOKS)
def two_looks(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block where groups count as absent by what is one listing: they vanish from listings while they rebalance."""
    groups = groups_of(rows)
    for side in (facts.source, facts.target):
        alias, states = side.alias, (side.states.get(group) for group in groups)
        absent = sum(isinstance(state, GroupState) and state.state == ABSENT for state in states)
        if not absent:
            continue
        expected = f"two listings of the groups, at least {LEAST_SECONDS:.0f} s apart"
        if side.seconds_apart >= LEAST_SECONDS:
            seen = f"{many(absent, 'group')} in neither"
            yield checks.TWO_LOOKS.passes(alias, expected, seen)
        else:
            yield checks.TWO_LOOKS.unseen(
                Level.BLOCK, alias, expected,
                f"two at about the same time, {many(absent, 'group')} in neither: one that rebalances is not listed",
                f"Set --settle to some seconds, or waive with --accept {checks.TWO_LOOKS}:{alias}.",
            )  # fmt: skip


@judges(checks.PENDING_TRANSACTIONS)
def pending_transactions(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block groups with transactional offsets pending (KIP-447): they may still commit."""
    for group in sorted(facts.groups.unstable):
        yield checks.PENDING_TRANSACTIONS.blocks(
            group, "no transaction open on its offsets",
            "a transaction has offsets of this group pending: they may still commit",
            "Stop the transactional producer; the coordinator aborts it after transaction.timeout.ms.",
        )  # fmt: skip


@judges(checks.OFFSETS_EXPIRY)
def offsets_expiry(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Say by when consumers must be back on the target; block groups whose offsets would be gone within 2 hours."""
    kept: dict[str, set[TopicPartition]] = {}
    setting = set()
    for group, table in rows.groups().items():
        facts_of_rows = zip(table.target_partitions(), table.values("target_offset", "decision"), strict=True)
        for partition, (offset, decision) in facts_of_rows:
            if offset is not None and decision is not Decision.SKIP:
                mine = kept.setdefault(group, set())
                if decision is Decision.KEEP:
                    mine.add(partition)
                else:
                    setting.add(group)
    fine: list[Expiry] = []
    # A clock of ours that is behind would promise time that the brokers do not give.
    now_ms = max(facts.now_ms, facts.newest_seen_ms)
    read = facts.group_facts
    clocks = OffsetClocks(facts.target.alias, read.target_settings, read.target_records, now_ms)
    for group, partitions in kept.items():
        state = facts.target.states.get(group)
        if not isinstance(state, GroupState) or not is_without_members(state):
            continue  # alive there, or unknown: a check of its own blocks it
        expiry = expiry_of(group, state, partitions, group in setting, clocks)
        result = _expiry_result(group, expiry, now_ms, facts.target.alias)
        if result is None:
            fine.append(expiry)
        else:
            yield result
    if fine:
        first = min(fine, key=lambda expiry: expiry.back_by_ms or 0)
        yield checks.OFFSETS_EXPIRY.passes(many(len(fine), "group"), EXPIRY_EXPECTED, first.sentence)


def _expiry_result(group: str, expiry: Expiry, now_ms: int, alias: str) -> CheckResult | None:
    """Return the result for a group whose offsets may be gone too soon; None where there is time."""
    left = expiry.left_ms(now_ms)
    if left is None:
        seen = f"unknown: {expiry.sentence}"
        return checks.OFFSETS_EXPIRY.unseen(Level.WARN, group, EXPIRY_EXPECTED, seen, UNKNOWN_TODO)
    if left >= WARN_BELOW_MS:
        return None
    level = Level.BLOCK if left < BLOCK_BELOW_MS else Level.WARN
    todo = remedy(expiry, alias) + ("; or waive with --accept offsets-expiry:GROUP." if level is Level.BLOCK else ".")
    return checks.OFFSETS_EXPIRY.result(level, group, EXPIRY_EXPECTED, expiry.at(now_ms), todo)


@judges(checks.COMMITS_MOVING)
def commits_moving(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Name groups without members whose commits moved between two readings: readers that assign() never join."""
    read = facts.group_facts
    for side, moving, unread in (
        (facts.source, read.moving_on_source, read.unread_on_source),
        (facts.target, read.moving_on_target, read.unread_on_target),
    ):
        expected = f"commits on {side.alias} that do not move"
        for group, why in sorted(unread.items()):
            yield checks.COMMITS_MOVING.unseen(
                Level.WARN, group, expected, f"they could not be read a second time ({why})",
                "Make sure yourself that nothing commits for the group, or plan again.",
            )  # fmt: skip
        for group, partitions in sorted(moving.items()):
            if is_without_members(side.states.get(group)):
                yield checks.COMMITS_MOVING.warns(
                    group, expected,
                    f"it has no member on {side.where(group)}, and yet its commits moved: {some(partitions, 3)}",
                    "Something commits without joining the group (assign() readers: Flink, Spark, MM2's group sync). "
                    "Stop it, then plan again.",
                )  # fmt: skip


@judges(checks.REREAD_LIMIT)
def reread_limit(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block groups that would read more records twice than `--max-rereads` allows."""
    totals: dict[str, int] = {}
    guessed, unknown = set(), 0
    for group, table in rows.groups().items():
        bounds = table.column("rereads_at_most")
        if set(table.column("decision")) == {Decision.SET} and None not in bounds:
            totals[group] = sum(table.whole("rereads_at_most"))
            continue
        for row in table:
            if row.decision is not Decision.SKIP:
                unknown += row.target_offset is not None and rereads(row) is None
                if row.rereads_at_most is None:
                    guessed.add(group)
                totals[group] = totals.get(group, 0) + (rereads(row) or 0)
    expected = f"at most {policies.max_rereads} records read twice per group"
    for group, total in sorted(totals.items()):
        if total > policies.max_rereads:
            seen = f"{'about' if group in guessed else 'at most'} {total} records"
            todo = "Raise --max-rereads, or waive with --accept re-read-limit:GROUP."
            yield checks.REREAD_LIMIT.blocks(group, expected, seen, todo)
    if unknown:
        yield checks.REREAD_LIMIT.on_cluster.unseen(
            Level.WARN, facts.target.alias, expected,
            f"how many records {many(unknown, 'row')} will read twice is not known",
            "Compare the target offsets with the target's log ends: at most that many.",
        )  # fmt: skip
    elif totals and max(totals.values()) <= policies.max_rereads:
        about = "about " if guessed else ""
        seen = f"{about}{max(totals.values())} at most, {about}{sum(totals.values())} in all"
        yield checks.REREAD_LIMIT.passes(many(len(totals), "group"), expected, seen)


@judges(checks.SOURCE_DOWN, checks.GROUPS_UNKNOWN)
def source_down(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block every group planned without the source until a reviewer accepts it by name."""
    if not facts.source_down:
        return
    for group in groups_of(rows):
        yield checks.SOURCE_DOWN.blocks(
            group, "the group's live commits, read on the source",
            "planned from MM2's checkpoints on the target alone, which nothing here can refute",
            "If the source is lost for good, accept with --accept source-down or source-down:GROUP.",
        )  # fmt: skip
    for pattern in facts.groups.unknown_when_down:
        yield checks.GROUPS_UNKNOWN.unseen(
            Level.WARN, pattern, "every group of the source",
            "MM2 leaves these groups out and writes no checkpoints of them: whether there are any is unknown",
            "Find their last offsets by other means before their consumers start on the target.",
        )  # fmt: skip


@judges(checks.PARTITIONS_NEVER_COMMITTED)
def never_committed(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Name partitions of a group's topics where `auto.offset.reset` will decide."""
    never, without = facts.groups.never_committed, facts.groups.without_offset
    for group in sorted(never.keys() | without.keys()):
        seen = [f"none on {some(never[group])}"] if group in never else []
        seen += [f"a commit without an offset (-1) on {some(without[group])}"] if group in without else []
        yield checks.PARTITIONS_NEVER_COMMITTED.warns(
            group, "a commit on every partition of its topics", ", ".join(seen),
            "There auto.offset.reset decides on the target: set it to earliest, or use --uncommitted earliest. Once "
            "consumers have committed there, a rollback removes the planned offsets one by one, which takes Java.",
        )  # fmt: skip


def _set(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.decision is Decision.SET]


@judges(checks.JAVA_NEEDED)
def java_needed(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Say, before anything is written, what only Kafka's Java client can write, bring back or compare."""
    with_prior = (table for table in rows.groups().values() if {*table.column("target_prior")} - {None})
    alone = (row for table in with_prior for row in table if row.target_prior is None)
    kept = rows.where("decision", lambda decision: decision is Decision.KEEP)
    needs = {
        "commits with metadata": _set(rows.where("target_metadata", bool)),
        "prior commits with metadata": _set(rows.where("target_prior_metadata", bool)),
        "kept commits with metadata to compare": [r for r in kept if r.target_prior_metadata or r.source_metadata],
        "offsets that a rollback removes while others of their group stay": _set(alone),
    }
    seen = [f"{len(needing)} {what}" for what, needing in needs.items() if needing]
    if seen:
        groups = {row.group for needing in needs.values() for row in needing}
        yield checks.JAVA_NEEDED.warns(
            facts.target.alias, "offsets that every client can write, bring back and compare",
            f"{', '.join(seen)} in {many(len(groups), 'group')}",
            "apply and rollback use Kafka's Java client for these: run them where Java is, as plan was. They try it "
            "before the first write.",
        )  # fmt: skip
