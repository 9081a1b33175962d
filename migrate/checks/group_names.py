"""Checks on what groups are called: names that are asked for, that can be sent, and that others have on the target."""

from collections.abc import Iterable
from contextlib import suppress

from migrate.checks.check import check
from migrate.errors import UsageError
from migrate.mm2.checkpoint_table import topics_with_checkpoints
from migrate.model import CheckResult, Decision, Level, Row, Scope
from migrate.row_table import GroupRows, PlanRows
from migrate.survey.filters import EXCLUDED
from migrate.survey.survey import Case, Survey
from migrate.text import both_names, many, name, some


@check("named-groups-exist", Scope.GROUP, can_be_accepted=True)
def named_groups_exist(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block on a group asked for by name that has nothing to move: most likely a misspelt name."""
    request, there = survey.request, survey.selected.groups_seen
    for unknown in request.filters.unknown_names(there):
        yield named_groups_exist.blocks(
            unknown, "a group with committed offsets", "no such group has commits in this flow",
            "Correct the name, or waive with --accept named-groups-exist:NAME if it has nothing to move.",
        )  # fmt: skip
    for line in request.group_map.idle_lines(there):
        yield named_groups_exist.blocks(
            line.source, "a group with committed offsets for every line of --group-map",
            f"line {line.number} decides for none",
            "Correct the line or take it out, or waive with --accept named-groups-exist:NAME.",
        )  # fmt: skip


@check("group-name-unusable", Scope.GROUP, can_be_accepted=False)
def group_name_unusable(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block groups whose name librdkafka does not send: it refuses the empty one, and cuts others off at a NUL.

    `apply` would read and write another group, or none, and take what it read back for this one's.
    """
    for group in rows.groups():
        called = survey.target_names.on_target(group)
        if any(not each or "\0" in each for each in (group, called)):
            yield group_name_unusable.blocks(
                group, "a name that librdkafka can send: not empty, without a NUL", both_names(group, called),
                "Leave the group out with --exclude-group, and move it with Kafka's own tools.",
            )  # fmt: skip


@check("group-name-shared", Scope.GROUP, can_be_accepted=True)
def group_name_shared(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block groups that would share a name on the target with a group of another wave: it would overwrite them.

    Of a source that is down, a group that is known by checkpoints under its new name alone may be another of that name:
    only KIP-1378, which no release has, writes the renamed group's own there.
    """
    source, target = survey.flow.source.alias, survey.flow.target.alias
    for group, other in sorted(_groups_left_out_of_the_same_name(survey).items()):
        called = name(survey.target_names.on_target(group))
        yield group_name_shared.blocks(
            group, f"no other group of {source} that would be {called} on {target}",
            f"{name(other)} would, which this plan leaves out",
            "Map one of the two to another name; or, where the other never moves, leave it out with --exclude-group or "
            "waive with --accept group-name-shared:GROUP.",
        )  # fmt: skip
    for group in _checkpointed_under_new_name_alone(survey) if Case.SOURCE_DOWN in survey.case else ():
        called = name(survey.target_names.renamed[group])
        yield group_name_shared.unseen(
            Level.BLOCK, group, f"checkpoints under {name(group)}, its name on {source}",
            f"its checkpoints are under {called}, and a group {called} of {source} may have made them",
            f"If {source} never had a group {called}, waive with --accept group-name-shared:GROUP; else leave the "
            "group out with --exclude-group.",
        )  # fmt: skip


def _groups_left_out_of_the_same_name(survey: Survey) -> dict[str, str]:
    """Return, by group of the plan, a group of the source that is not in it and would have its name on the target.

    Two of the plan itself are refused before (`TargetNames.of`); without a map no two groups share a name.
    """
    request = survey.request
    if not request.group_map:
        return {}
    planned = {survey.target_names.on_target(group): group for group in survey.groups}
    # What is excluded stays; what a wave does not name moves with another.
    others = sorted(
        group
        for group in survey.selected.groups_seen.difference(survey.groups)
        if request.filters.group_verdict(group) not in EXCLUDED
    )
    shared = {}
    for other in others:
        # One that would be left without a name is refused once it is to move.
        with suppress(UsageError):
            if (group := planned.get(request.group_map.mapped(other))) is not None:
                shared[group] = other
    return shared


def _checkpointed_under_new_name_alone(survey: Survey) -> list[str]:
    """Return the renamed groups that have checkpoints under the target's name and none under their own."""
    checkpointed = {group for group, _ in topics_with_checkpoints(survey.mm2.checkpoints.latest)}
    renamed = survey.target_names.renamed.items()
    return sorted(group for group, called in renamed if called in checkpointed and group not in checkpointed)


@check("group-under-old-name", Scope.GROUP)
def group_under_old_name(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name renamed groups that the target has under the source's name too: consumers may start there by mistake."""
    alias, names = survey.flow.target.alias, survey.target_names.renamed
    for group in survey.under_old_names:
        yield group_under_old_name.warns(
            group, f"on {alias} only {name(names[group])}, its new name", f"{alias} has a group {name(group)} as well",
            "No command reads or writes it. Start consumers under the new name alone, and let nothing else write the "
            "old one (MM2's group sync does).",
        )  # fmt: skip
    if fine := len(names) - len(survey.under_old_names):
        expected = f"no group on {alias} under the name that it leaves"
        yield group_under_old_name.passes(many(fine, "renamed group"), expected, "none")


@check("group-name-taken", Scope.GROUP, case=Case.WAY_THERE)
def group_name_taken(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name renamed groups whose new name a group on the target has: on other topics, or elsewhere on its own ones.

    After an apply that is this group itself; else it is another application's, and would be moved.
    """
    alias, tables = survey.flow.target.alias, rows.groups()
    others = _commits_on_others_topics(survey)
    for group, called in sorted(survey.target_names.renamed.items()):
        seen = []
        if places := others[group]:
            seen.append(f"it has committed on {some(places, 5)} as well, which the plan does not have")
        moved = _moved(tables.get(group))
        if moved:
            from_to = f"{moved[0].target_partition} from {moved[0].target_prior} to {moved[0].target_offset}"
            more = f", and {many(len(moved) - 1, 'other partition')}" if len(moved) > 1 else ""
            seen.append(f"the plan would move it on {from_to}{more}")
        if seen:
            yield group_name_taken.warns(
                group, f"no other group {name(called)} on {alias}", f"{alias} has one: {'; '.join(seen)}",
                "That is right if it was written for this group earlier. If it is another application's, give "
                f"{name(group)} another name: the two would be one group, and records be skipped or read twice.",
            )  # fmt: skip


def _commits_on_others_topics(survey: Survey) -> dict[str, list[str]]:
    """Return, by renamed group, where the group with its new name has committed on topics that are none of its own."""
    renamed, policy = survey.target_names.renamed, survey.flow.policy
    own: dict[str, set[str]] = {}
    for key in survey.keys if renamed else ():
        if key.group in renamed:
            own.setdefault(key.group, set()).add(policy.target_topic(key.topic))

    def is_of_another_wave(topic: str) -> bool:
        source_topic = policy.source_topic(topic)
        return source_topic is not None and survey.request.filters.topic_verdict(source_topic) is not None

    return {
        group: [
            str(place)
            for place in sorted(survey.priors.get(group, {}))
            if place.topic not in own.get(group, ()) and not is_of_another_wave(place.topic)
        ]
        for group in renamed
    }


def _moved(table: GroupRows | None) -> list[Row]:
    """Return the rows that have an offset on the target already and would be set elsewhere."""
    if table is None:
        return []
    offsets = table.values("decision", "target_prior", "target_offset")
    at = [n for n, (decision, prior, to) in enumerate(offsets) if decision is Decision.SET and prior not in (None, to)]
    return [table[n] for n in at]
