"""A mandate: the rules that people approve, by which `follow` keeps the target's offsets fresh. Pure.

It is a plan without rows. All that decides which offsets are written is in its header, and so in its fingerprint: both
clusters, the names, the filters, the limits, the waivers, and until when it holds. The settings hold the rules, by the
names of the options that they come from, as JSON.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace

from migrate import __version__
from migrate.checks.checklist import parse_waiver
from migrate.clock import iso, ms_of
from migrate.errors import Refused, UnreadablePlan, UsageError
from migrate.match.protocol import Limits
from migrate.mm2.flow import Flow, RuntimeWord
from migrate.mm2.name_map import REGEX, MapLine, NameMap
from migrate.mm2.settings import java_pattern
from migrate.model import Grade
from migrate.plan.build import flow_names
from migrate.plan.plan import FORMAT_VERSION, Header, Plan
from migrate.row_table import PlanRows
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies, Rewind, parse_untranslatable

# The kind of such a plan.
FOLLOW = "follow"
DEFAULT_GRADES = "exact,bounded"
LONGEST_MS = 30 * 24 * 3_600_000
# What says which topics are read and written, and by whose syncs; brokers, versions and addresses may change.
NAMES = (
    "replication_policy", "separator", "offset_syncs_location", "checkpoints_topic", "offset_syncs_topic",
    str(RuntimeWord.REPLICATOR), str(RuntimeWord.SOURCE_ALIAS), str(RuntimeWord.GROUP_SYNC),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mandate:
    """What `follow` may write, until `until_ms` (ms since 1970).

    `group`, `exclude_group`, `topic` and `exclude_topic` are regular expressions; `named_groups` are those of a groups
    file as it was when the mandate was made, None where none was given. `grades` are those that may be written,
    `max_rereads` bounds what a group would read twice. `match_limit` is how many offsets of either log a pass may read
    of a partition, `max_fetch` how many bytes from either cluster, None for any. `untranslatable` are the choices for
    commits that no law translates, as they are typed. `moving_group` are regular expressions of groups that are
    written although their commits move without a member. `group_map` says what groups are called on the target, in
    lines of a source's name, the target's, and whether the source's is an expression: the first that fits decides, and
    a group that none fits keeps its name.
    """

    until_ms: int
    grades: tuple[str, ...]
    max_rereads: int
    match_limit: int
    untranslatable: tuple[str, ...]
    group: tuple[str, ...] = ()
    exclude_group: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    exclude_topic: tuple[str, ...] = ()
    named_groups: tuple[str, ...] | None = None
    max_fetch: int | None = None
    moving_group: tuple[str, ...] = ()
    group_map: tuple[tuple[str, str, bool], ...] = ()

    def settings(self) -> dict[str, str]:
        """Return this as a plan's settings have it, without what was left at nothing."""
        nothing = {each.name: each.default for each in fields(self) if each.default is not MISSING}
        said = {name: value for name, value in asdict(self).items() if value != nothing.get(name, MISSING)}
        until = {"until": iso(said.pop("until_ms"))}
        return until | {name.replace("_", "-"): json.dumps(value) for name, value in said.items()}

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "Mandate":
        """Return what settings say; raises KeyError, TypeError or ValueError where they are not a mandate's."""
        names = {name.replace("_", "-"): name for name in (each.name for each in fields(cls))}
        said = {names[name]: json.loads(text) for name, text in settings.items() if name in names}
        lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
        lines = tuple((source, target, is_expression) for source, target, is_expression in said.get("group_map", ()))
        return cls(**said | lists | {"group_map": lines, "until_ms": ms_of(settings["until"])})

    def filters(self) -> Filters:
        """Return the filters, as they were given."""
        filters = Filters.from_options(self.group, self.exclude_group, self.topic, self.exclude_topic)
        return replace(filters, groups_file=None if self.named_groups is None else frozenset(self.named_groups))

    def moving_groups(self) -> tuple[re.Pattern[str], ...]:
        """Return what matches the groups that are written although their commits move without a member.

        Raises `UsageError` for what is not a regular expression.
        """
        try:
            return tuple(map(java_pattern, self.moving_group))
        except re.error as error:
            raise UsageError(
                f"--moving-group: {error}.", "The whole name must match; write \\. for a dot and .* for anything."
            ) from None

    def names(self) -> NameMap:
        """Return what groups are called on the target."""
        lines = [
            MapLine(number, REGEX + source, target, java_pattern(source)) if is_expression
            else MapLine(number, source, target)
            for number, (source, target, is_expression) in enumerate(self.group_map, 1)
        ]  # fmt: skip
        names = {line.source: line for line in lines if line.pattern is None}
        expressions = tuple(line for line in lines if line.pattern is not None)
        return NameMap("the group map of", "the mandate", "group", names, expressions)

    def limits(self) -> Limits:
        """Return what a pass may read."""
        return Limits(self.match_limit, self.max_fetch)

    def refuse_over(self, plan: Plan, now_ms: int) -> None:
        """Raise `Refused` once it has ended."""
        if now_ms >= self.until_ms:
            raise Refused(
                f"The mandate {plan.short_fingerprint} ended {iso(self.until_ms)}: nothing was written.",
                "Have a new one approved. `follow rollback` takes back what was written under this one.",
            )


def lines_of(group_map: NameMap) -> tuple[tuple[str, str, bool], ...]:
    """Return the lines of a map in their order, as a mandate's `group_map` holds them."""
    return tuple(
        (line.source.removeprefix(REGEX) if line.pattern else line.source, line.target, line.pattern is not None)
        for line in group_map.lines()
    )


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


def plan_of_mandate(
    flow: Flow, mandate: Mandate, waivers: tuple[str, ...], cluster_ids: tuple[str, str], settings: Mapping[str, str],
    now_ms: int,
) -> Plan:  # fmt: skip
    """Return the plan of a mandate; `cluster_ids` are those of source and target."""
    header = Header(
        format_version=FORMAT_VERSION,
        tool_version=__version__,
        kind=FOLLOW,
        created_at_ms=now_ms,
        source_alias=flow.source.alias,
        target_alias=flow.target.alias,
        source_cluster_id=cluster_ids[0],
        target_cluster_id=cluster_ids[1],
        source_down=False,
        flow=flow_names(flow),
        settings={**settings, **mandate.settings()},
        waivers=waivers,
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
        source_topic_ids={},
        undoes_events=0,
        undoes_digest="",
        activity=(),
    )
    return Plan(header, PlanRows(()))


def mandate_of(plan: Plan) -> Mandate:
    """Return the mandate that a plan is; raises `UsageError` for any other plan, and for a grade that is none."""
    if plan.header.kind != FOLLOW:
        raise UsageError(
            f"Plan {plan.short_fingerprint} is not a mandate: `follow` has nothing to go by.",
            "Make one with `mm2-migrate follow plan --until TIME`. `apply` writes this plan.",
        )
    try:
        mandate = Mandate.of(plan.header.settings)
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadablePlan(
            f"The mandate {plan.short_fingerprint} cannot be read: {error}.",
            "Use the version of mm2-migrate that made it, or have a new one approved.",
        ) from None
    parse_grades(",".join(mandate.grades))
    return mandate


def policies_of_mandate(plan: Plan, accepted: tuple[str, ...]) -> Policies:
    """Return what decides about rows and checks in each pass; `accepted` are checks that are no block to `follow`.

    A row behind what stands on the target is translated like any other: `follow` itself decides whether it may go back.
    """
    mandate = mandate_of(plan)
    default, by_reason = parse_untranslatable(mandate.untranslatable)
    waivers = tuple(parse_waiver(text) for text in (*plan.header.waivers, *accepted))
    return Policies(waivers, default, by_reason, Rewind.SET, max_rereads=mandate.max_rereads)
