"""The `follow plan` command: a mandate, written as a plan without rows."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click

from migrate.cli.choices import DecisionOptions, MovedGroupOptions, ReadingOptions
from migrate.cli.console import Terminal, printed
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnClusters, option, repeated, time_of
from migrate.clock import SystemClock
from migrate.errors import Refused, UsageError
from migrate.extras.follow.mandate import (
    DEFAULT_GRADES,
    Mandate,
    lines_of,
    parse_grades,
    plan_of_mandate,
    refuse_until,
)
from migrate.extras.follow.mandate_text import mandate_lines
from migrate.mm2.flow import Flow
from migrate.plan.file import refuse_out, write_plan
from migrate.plan.plan import REQUIRED_SETTING
from migrate.ports import Progress
from migrate.session.clusters import endpoints
from migrate.survey.policies import Policies, Untranslatable
from migrate.survey.renamed import refuse_map_of_other_clusters


@dataclass(frozen=True, kw_only=True)
class MandateOptions(OnClusters):
    """What a mandate allows, until when, and where it goes."""

    # Not from the environment, where it may be that of an export.
    until: str = option(
        "When the mandate ends, at most 30 days ahead: 2026-11-23T22:00:00Z, or ms since 1970.",
        metavar="TIME", required=True, envvar=None)  # fmt: skip
    out: Path = option(
        "File to write the mandate to. Replaces a plan, but none that was applied (exit 3).",
        default=Path("follow.plan"), metavar="PLAN")  # fmt: skip
    grades: str = option(
        "The grades that may be written.", default=DEFAULT_GRADES, metavar="GRADE,...", envvar=None)  # fmt: skip
    moving_groups: tuple[str, ...] = repeated(
        "Write these groups although their commits move without a member, as those of readers that assign partitions "
        "themselves do.", name="--moving-group", metavar="REGEX", envvar=None)  # fmt: skip
    require_signatures: int = option(
        "Let `follow run` write only after N different names have signed the mandate.",
        default=0, type=click.IntRange(min=0), metavar="N")  # fmt: skip
    groups: MovedGroupOptions = MovedGroupOptions()
    decisions: DecisionOptions = DecisionOptions()
    reading: ReadingOptions = ReadingOptions()


def plan(options: MandateOptions) -> int:
    """Write a mandate for `follow run`: a plan without rows that says which groups are followed, how, and until when.

    Both clusters are asked for their ids, and nothing else. People approve it by its fingerprint, and sign it with
    `sign`. The night itself needs a plan of its own.
    """
    flow, policies = reached_flow(options.clusters), options.decisions.policies()
    progress, terminal = options.log.progress(), Terminal.here()
    out, given = options.out, options.groups
    refuse_out(out)
    if not flow.by_mm2:
        raise UsageError(
            "--replicator any cannot be followed: `follow` places commits by MM2's offset syncs.",
            "Plan on the night itself.",
        )
    if not {policies.untranslatable, *policies.untranslatable_by_reason.values()} <= {
        Untranslatable.BLOCK, Untranslatable.SKIP
    }:  # fmt: skip
        raise UsageError("A mandate takes --untranslatable block and skip alone: nobody looks at a pass.", "Use skip.")
    clock, until_ms = SystemClock(), time_of("--until", options.until)
    assert until_ms is not None, "an option that is required"
    refuse_until(until_ms, clock.now_ms())
    named, group_map = given.filters().groups_file, given.names()
    mandate = Mandate(
        until_ms=until_ms,
        grades=tuple(map(str, parse_grades(options.grades))),
        max_rereads=policies.max_rereads,
        match_limit=options.reading.match_limit,
        untranslatable=_choices(policies),
        group=given.groups,
        exclude_group=given.exclude_groups,
        topic=given.topics,
        exclude_topic=given.exclude_topics,
        named_groups=None if named is None else tuple(sorted(named)),
        max_fetch=options.reading.max_fetch,
        moving_group=options.moving_groups,
        group_map=lines_of(group_map),
    )
    mandate.moving_groups()  # refused now, and not in the first pass
    settings = {REQUIRED_SETTING: str(options.require_signatures)} if options.require_signatures else {}
    cluster_ids = _cluster_ids(flow, progress, options.clusters.request_timeout)
    refuse_map_of_other_clusters(group_map, cluster_ids)
    waivers = tuple(map(str, policies.waivers))
    made = plan_of_mandate(flow, mandate, waivers, cluster_ids, settings, clock.now_ms())
    progress.step(f"writing {out}")
    write_plan(made, out)
    return printed(mandate_lines(made, str(out), terminal.width, terminal.colour))


def _choices(policies: Policies) -> tuple[str, ...]:
    by_reason = [f"{reason}={choice}" for reason, choice in sorted(policies.untranslatable_by_reason.items())]
    return (str(policies.untranslatable), *by_reason)


def _cluster_ids(flow: Flow, progress: Progress, deadline_seconds: float) -> tuple[str, str]:
    ids = []
    for endpoint in endpoints(flow, deadline_seconds):
        with closing(endpoint.admin()) as admin:
            progress.step(f"reaching {admin.alias}")
            ids.append(admin.facts().cluster_id)
    if ids[0] == ids[1]:
        raise Refused(f"Source and target are both cluster {ids[0]}.", "Correct bootstrap.servers of one of the two.")
    return ids[0], ids[1]
