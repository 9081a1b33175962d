"""A standing plan: a mandate that people approve, by which `follow` keeps the target's offsets fresh. Pure.

It has no rows: what is approved is the rule. All that decides which offsets are written is in its header, and so in its
fingerprint: both clusters, the names, the filters, the limits, the waivers, and until when it holds.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from migrate import __version__
from migrate.checks.checklist import parse_waiver
from migrate.errors import Refused, UsageError
from migrate.match.protocol import Limits
from migrate.mm2.flow import Flow, RuntimeWord
from migrate.mm2.name_map import NameMap
from migrate.mm2.settings import java_pattern
from migrate.model import Grade
from migrate.plan.build import flow_names
from migrate.plan.mandate import Mandate, MappedGroup
from migrate.plan.plan import FORMAT_VERSION, STANDING, Header, Plan
from migrate.row_table import PlanRows
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies, Rewind, parse_untranslatable

LONGEST_MS = 30 * 24 * 3_600_000
# What says which topics are read and written, and by whose syncs; brokers, versions and addresses may change.
NAMES = (
    "replication_policy", "separator", "offset_syncs_location", "checkpoints_topic", "offset_syncs_topic",
    str(RuntimeWord.REPLICATOR), str(RuntimeWord.SOURCE_ALIAS), str(RuntimeWord.GROUP_SYNC),
)  # fmt: skip


def refuse_other_names(plan: Plan, flow: Flow) -> None:
    """Raise `Refused` where a mandate would be followed by other names than those that were approved."""
    # Under the default policy an alias is part of every topic's name on the target.
    planned = dict(plan.header.flow) | {
        "source alias": plan.header.source_alias,
        "target alias": plan.header.target_alias,
    }
    now = dict(flow_names(flow)) | {"source alias": flow.source.alias, "target alias": flow.target.alias}
    for word in ("source alias", "target alias", *NAMES):
        # The alias in MM2's settings may be empty, which is not the same as none.
        if (approved := planned.get(word)) != (given := now.get(word)):
            raise Refused(
                f"The mandate was approved with {word} {approved or 'unknown'}, and here it is {given or 'unknown'}.",
                "Give the MM2 configuration that it was made with (environment variables count as well), or have a new "
                "mandate approved.",
            )


def parse_grades(text: str) -> tuple[Grade, ...]:
    """Read `exact,bounded`, in any order; raises `UsageError` for another word, or none."""
    words = {word.strip() for word in text.split(",") if word.strip()}
    if not words or not words.issubset(Grade):
        raise UsageError(f"--grades {text}: expected one or more of {', '.join(Grade)}.", "For example exact,bounded.")
    return tuple(grade for grade in Grade if grade in words)


def refuse_until(until_ms: int, now_ms: int) -> None:
    """Raise `UsageError` for a mandate that would have ended already, or that would hold for too long."""
    if until_ms <= now_ms:
        raise UsageError("--until lies in the past.", "Give the time at which the mandate ends.")
    if until_ms - now_ms > LONGEST_MS:
        raise UsageError(
            f"--until is {(until_ms - now_ms) / 86_400_000:.1f} days ahead: a mandate holds for 30 days at most.",
            "Give an earlier time, and have a new mandate approved then.",
        )


def standing_plan(
    flow: Flow, mandate: Mandate, policies: Policies, cluster_ids: tuple[str, str], settings: Mapping[str, str],
    now_ms: int,
) -> Plan:  # fmt: skip
    """Return the plan of a mandate; `cluster_ids` are those of source and target."""
    header = Header(
        format_version=FORMAT_VERSION,
        tool_version=__version__,
        kind=STANDING,
        created_at_ms=now_ms,
        source_alias=flow.source.alias,
        target_alias=flow.target.alias,
        source_cluster_id=cluster_ids[0],
        target_cluster_id=cluster_ids[1],
        source_down=False,
        flow=flow_names(flow),
        settings=settings,
        waivers=tuple(map(str, policies.waivers)),
        target_topic_ids={},
        pinned=(),
        group_states=(),
        checks=(),
        counts={"commits_read": 0, "rows": 0, "uncommitted_added": 0},
        mm2_counts={},
        timings={},
        undoes="",
        failback=False,
        comparison={},
        sums={},
        source_topic_ids={},
        undoes_events=0,
        undoes_digest="",
        positions=(),
        mandate=mandate,
        activity=(),
    )
    return Plan(header, PlanRows(()))


def mandate_of(plan: Plan) -> Mandate:
    """Return the mandate of a standing plan; raises `UsageError` for any other plan, and for a grade that is none."""
    if plan.header.mandate is None:
        raise UsageError(
            f"Plan {plan.short_fingerprint} is no mandate: `follow` has nothing to go by.",
            "Make one with `mm2-migrate plan --standing --until TIME --out follow.plan`. `apply` writes this plan.",
        )
    parse_grades(",".join(plan.header.mandate.grades))
    return plan.header.mandate


def filters_of_mandate(mandate: Mandate) -> Filters:
    """Return the filters of a mandate, as its maker gave them."""
    filters = Filters.from_options(mandate.groups, mandate.exclude_groups, mandate.topics, mandate.exclude_topics)
    return replace(filters, groups_file=None if mandate.named_groups is None else frozenset(mandate.named_groups))


def policies_of_mandate(plan: Plan, accepted: tuple[str, ...]) -> Policies:
    """Return what decides about rows and checks in each pass; `accepted` are checks that are no block to `follow`.

    A row behind what stands on the target is translated like any other: `follow` itself decides whether it may go back.
    """
    mandate = mandate_of(plan)
    default, by_reason = parse_untranslatable(mandate.untranslatable)
    waivers = tuple(parse_waiver(text) for text in (*plan.header.waivers, *accepted))
    return Policies(waivers, default, by_reason, Rewind.SET, max_rereads=mandate.max_rereads)


def moving_groups(mandate: Mandate) -> tuple[re.Pattern[str], ...]:
    """Return what matches the groups that are written although their commits move without a member.

    Raises `UsageError` for what is not a regular expression.
    """
    try:
        return tuple(map(java_pattern, mandate.moving_groups))
    except re.error as error:
        raise UsageError(
            f"--moving-group: {error}.", "The whole name must match; write \\. for a dot and .* for anything."
        ) from None


def mapped_groups(group_map: NameMap) -> tuple[MappedGroup, ...]:
    """Return a group map as a mandate holds it; `group_map_of_mandate` reads it."""
    return tuple(MappedGroup(*line) for line in group_map.written())


def group_map_of_mandate(plan: Plan) -> NameMap:
    """Return what groups are called on the target; raises `UsageError` for an expression that is none."""
    lines = ((line.source, line.target, line.is_expression) for line in mandate_of(plan).group_map)
    return NameMap.from_written("the group map of mandate", plan.short_fingerprint, "group", lines)


def limits_of_mandate(mandate: Mandate) -> Limits:
    """Return what a pass may read."""
    return Limits(mandate.match_limit, mandate.max_fetch)


def refuse_over(mandate: Mandate, plan: Plan, now_ms: int, until: str) -> None:
    """Raise `Refused` for a mandate that has ended; `until` is its end in words."""
    if now_ms >= mandate.until_ms:
        raise Refused(
            f"The mandate {plan.short_fingerprint} ended {until}: nothing was written.",
            "Have a new one approved. `rollback` takes back what was written under this one.",
        )
