"""The `plan` command: read both clusters, make the plan, write it, print it."""

import shlex
from dataclasses import dataclass
from pathlib import Path

import click

from migrate.cli.choices import MatchingOptions, MovedGroupOptions, PolicyOptions, commits_from
from migrate.cli.console import Terminal, printed
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnClusters, Seconds, flag, option, time_of
from migrate.clock import SystemClock
from migrate.errors import EXIT_DONE, EXIT_REFUSED, UsageError
from migrate.mm2.flow import Flow
from migrate.plan.build import plan_of
from migrate.plan.file import refuse_out, write_plan
from migrate.plan.plan import REQUIRED_SETTING, Plan
from migrate.ports import Progress
from migrate.session.options import SessionOptions, SparkOptions
from migrate.session.plan import plan_session
from migrate.show.plan_table import Page, table
from migrate.survey.commits_source import CommitsSource
from migrate.survey.names import with_names
from migrate.survey.policies import CommitsFrom, Policies
from migrate.survey.survey import Clusters, PlanRequest
from migrate.survey.take import take_survey
from migrate.text import many


@dataclass(frozen=True, kw_only=True)
class PlanOptions(OnClusters):
    """What is planned, what decides over it, and where the plan goes."""

    out: Path = option(
        "File to write the plan to. Replaces a plan, but none that was applied (exit 3).",
        default=Path("cutover.plan"), metavar="PLAN")  # fmt: skip
    source_down: bool = flag("The source is down: plan from the target alone.")
    failback: bool = flag(
        "The way back: the groups leave --target for --source, and --source is what gets written. Topics are named as "
        "on --target.")  # fmt: skip
    commits_from: CommitsFrom = commits_from()
    commits_as_of: str | None = option(
        "Translate the commits as they stood at this time, from __consumer_offsets: 2026-11-23T22:00:00Z, or ms since "
        "1970. For a group that was reset by mistake; name it with --group.", metavar="TIME")  # fmt: skip
    settle: float = option(
        "Time between two looks at groups and log ends; keep it above auto-commit's 5 s. Below 1 s the two count as "
        "one, which blocks.", default=15.0, type=Seconds(min=0), metavar="SECONDS")  # fmt: skip
    require_signatures: int = option(
        "Let apply write this plan only after N different names have signed it.",
        default=0, type=click.IntRange(min=0), metavar="N")  # fmt: skip
    groups: MovedGroupOptions = MovedGroupOptions()
    policies: PolicyOptions = PolicyOptions()
    matching: MatchingOptions = MatchingOptions()
    spark: SparkOptions = SparkOptions()

    def session(self) -> SessionOptions:
        """Return what it is read with."""
        return SessionOptions(
            self.clusters.request_timeout,
            self.spark,
            no_match=self.matching.no_match,
        )

    @property
    def commits(self) -> CommitsSource:
        """Where commits come from; raises `UsageError` where what was asked for excludes each other."""
        as_of_ms = time_of("--commits-as-of", self.commits_as_of)
        if as_of_ms is not None and as_of_ms > SystemClock().now_ms():
            raise UsageError("--commits-as-of lies in the future.", "Leave it out to plan with the commits of now.")
        reads_topic = as_of_ms is not None or self.commits_from is CommitsFrom.CONSUMER_OFFSETS
        if self.source_down and reads_topic:
            raise UsageError(
                "--source-down and --commits-from consumer-offsets exclude each other: the topic is on the source.",
                "Omit one of them. Without the source, MM2's checkpoints stand in for its commits.",
            )
        return CommitsSource(not self.source_down, reads_topic, as_of_ms)


def plan(options: PlanOptions) -> int:
    """Read both clusters and MM2's topics, translate every commit, check, and write a plan.

    Changes nothing on any cluster. Exits 3 if the plan has blocks, or if no commit is inside the filters; it is still
    written, for review.
    """
    flow = reached_flow(options.clusters)
    options.policies.policies()  # a misspelt decision is refused before anything else
    made = make_plan(options, flow, options.log.progress())
    terminal = Terminal.here()
    page = Page(str(options.out), terminal.width, terminal.colour, options.clusters.words())
    return printed(table(made, None, page), EXIT_DONE if made.is_clean() else EXIT_REFUSED)


def make_plan(options: PlanOptions, flow: Flow, progress: Progress) -> Plan:
    """Make the plan that the options ask for and write it to their `out`.

    Raises before anything is read if that cannot be written, or holds a plan that was applied, or no plan at all.
    """
    refuse_out(options.out)
    request = request_of(options, flow)
    with plan_session(request.flow, options.session(), request.commits) as clusters:
        return made_plan(request, clusters, options.out, progress)


def request_of(options: PlanOptions, flow: Flow) -> PlanRequest:
    """Return what the options of `plan` ask for; raises `UsageError` where they exclude each other."""
    if options.failback:
        if options.source_down:
            raise UsageError(
                "--failback and --source-down exclude each other: the way back is planned from both clusters.",
                "Omit one of them.",
            )
        flow = flow.reversed()
    if options.source_down and not flow.by_mm2:
        raise UsageError(
            "--source-down and --replicator any exclude each other: without the source only MM2's checkpoints say "
            "where groups are.",
            "Omit --source-down, or set the groups by other means.",
        )
    group_map = options.groups.names(options.failback)
    commits, policies = options.commits, options.policies.policies()
    return PlanRequest(
        flow=flow,
        filters=options.groups.filters(),
        policies=policies,
        settle_seconds=options.settle,
        settings=_settings(options, policies, commits),
        limits=options.matching.limits(),
        commits=commits,
        group_map=group_map,
    )


def made_plan(request: PlanRequest, clusters: Clusters, out: Path, progress: Progress) -> Plan:
    """Read what a plan needs, decide its rows, and write it."""
    clock, request = SystemClock(), with_names(request, clusters)
    survey = take_survey(request, clusters, clock, progress)
    clusters.end()
    progress.step(f"deciding {many(len(survey.keys), 'row')}")
    plan = plan_of(survey)
    progress.step(f"writing {out}")
    # Before Spark ends: that may take ten seconds the first time, and Ctrl-C then must not cost the plan.
    write_plan(plan, out)
    progress.step(f"ending Spark ({out} is written)")
    return plan


def _settings(options: PlanOptions, policies: Policies, commits: CommitsSource) -> dict[str, str]:
    """Return the choices as the header has them: text by option name, without what was left at nothing."""
    groups, matching = options.groups, options.matching
    compared = commits.asks_source and not matching.no_match
    choices = {
        "group": shlex.join(groups.groups),
        "exclude-group": shlex.join(groups.exclude_groups),
        "topic": shlex.join(groups.topics),
        "exclude-topic": shlex.join(groups.exclude_topics),
        "groups-file": str(groups.groups_file or ""),
        "group-map": str(groups.group_map or ""),
        "rewind": str(policies.rewind),
        "uncommitted": str(policies.uncommitted),
        "untranslatable": ", ".join(
            [str(policies.untranslatable)]
            + [f"{reason}={choice}" for reason, choice in sorted(policies.untranslatable_by_reason.items())]
        ),
        "max-rereads": str(policies.max_rereads),
        "settle": f"{options.settle:g}",
        **commits.settings,
        "by": "timestamp" if matching.by_timestamp else "",
        "failback": "yes" if options.failback else "",
        REQUIRED_SETTING: str(options.require_signatures or ""),
        "no-match": "yes" if matching.no_match else "",
        "match-limit": str(matching.match_limit) if compared else "",
        "max-fetch": str(matching.max_fetch or "") if compared else "",
    }
    return {name: text for name, text in choices.items() if text}
