"""The `plan` command: wire the edges, make the plan, write it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate.apply.signatures import REQUIRED_SETTING
from migrate.cli.export import time_of
from migrate.cli.group_map import group_map_of
from migrate.cli.options import filters_of, limits_of
from migrate.cli.position_options import positions_of
from migrate.clock import SystemClock, iso
from migrate.errors import UsageError
from migrate.mm2.flow import Flow
from migrate.plan.build import plan_of
from migrate.plan.file import refuse_out, write_plan
from migrate.plan.plan import AS_OF_SETTING, Plan
from migrate.ports import Progress
from migrate.session.plan import plan_session
from migrate.survey.names import with_names
from migrate.survey.policies import CommitsFrom, Policies
from migrate.survey.survey import Clusters, PlanRequest
from migrate.survey.take import take_survey
from migrate.text import many


def run_plan(flow: Flow, policies: Policies, out: Path, progress: Progress, **options: Any) -> Plan:
    """Make the plan that the options ask for and write it to `out`.

    Raises before anything is read if `out` cannot be written, or holds a plan that was applied, or no plan at all.
    """
    refuse_out(out)
    request = request_of(flow, policies, options)
    with plan_session(request.flow, request.source_down, progress, options) as clusters:
        return made_plan(request, clusters, out, progress)


def request_of(flow: Flow, policies: Policies, options: Mapping[str, Any]) -> PlanRequest:
    """Return what the options of `plan` ask for; raises `UsageError` where they exclude each other."""
    positions = positions_of(options)
    if options["failback"]:
        if options["source_down"]:
            raise UsageError(
                "--failback and --source-down exclude each other: the way back is planned from both clusters.",
                "Omit one of them.",
            )
        flow = flow.reversed()
    if options["source_down"] and not flow.by_mm2:
        raise UsageError(
            "--source-down and --replicator any exclude each other: without the source only MM2's checkpoints say "
            "where groups are.",
            "Omit --source-down, or set the groups by other means.",
        )
    group_map = group_map_of(options, options["failback"])
    as_of_ms, settings = time_of("--commits-as-of", options["commits_as_of"]), dict(options)
    if as_of_ms is not None:
        if as_of_ms > SystemClock().now_ms():
            raise UsageError("--commits-as-of lies in the future.", "Leave it out to plan with the commits of now.")
        settings |= {"commits_from": str(CommitsFrom.CONSUMER_OFFSETS), "commits_as_of": iso(as_of_ms)}
    if options["source_down"] and settings["commits_from"] != CommitsFrom.ADMIN:
        raise UsageError(
            "--source-down and --commits-from consumer-offsets exclude each other: the topic is on the source.",
            "Omit one of them. Without the source, MM2's checkpoints stand in for its commits.",
        )
    return PlanRequest(
        flow=flow,
        filters=replace(filters_of(options), no_groups=options["no_groups"]),
        policies=policies,
        source_down=options["source_down"],
        settle_seconds=options["settle"],
        settings=_settings(policies, settings),
        limits=limits_of(options),
        as_of_ms=as_of_ms,
        positions=positions,
        group_map=group_map,
    )


def made_plan(request: PlanRequest, clusters: Clusters, out: Path, progress: Progress) -> Plan:
    """Read what a plan needs, decide its rows, and write it."""
    clock, request = SystemClock(), with_names(request, clusters)
    survey = take_survey(request, clusters, clock, progress)
    clusters.end()
    held = f" and {many(len(survey.held.commits), 'position')}" if survey.held.commits else ""
    progress.step(f"deciding {many(len(survey.keys), 'row')}{held}")
    plan = plan_of(survey)
    progress.step(f"writing {out}")
    # Before Spark ends: that may take ten seconds the first time, and Ctrl-C then must not cost the plan.
    write_plan(plan, out)
    progress.step(f"ending Spark ({out} is written)")
    return plan


def _settings(policies: Policies, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the choices as the header has them: text by option name, without what was left at nothing."""
    compared = not (options["no_match"] or options["source_down"])
    choices = {
        **{
            name: ", ".join(options[name.replace("-", "_") + "s"])
            for name in ("group", "exclude-group", "topic", "exclude-topic")
        },
        "groups-file": str(options["groups_file"] or ""),
        "group-map": str(options.get("group_map") or ""),
        "rewind": str(policies.rewind),
        "uncommitted": str(policies.uncommitted),
        "untranslatable": ", ".join(
            [str(policies.untranslatable)]
            + [f"{reason}={choice}" for reason, choice in sorted(policies.untranslatable_by_reason.items())]
        ),
        "max-rereads": str(policies.max_rereads),
        "settle": f"{options['settle']:g}",
        "no-groups": "yes" if options["no_groups"] else "",
        "sink": ", ".join(options["sinks"]),
        "stateful": ", ".join(options["stateful"]),
        "commits-from": "" if options["commits_from"] == CommitsFrom.ADMIN else options["commits_from"],
        AS_OF_SETTING: options["commits_as_of"] or "",
        "by": "" if options["by"] == "records" else options["by"],
        "source-down": "yes" if options["source_down"] else "",
        "failback": "yes" if options["failback"] else "",
        REQUIRED_SETTING: str(options["require_signatures"] or ""),
        "no-match": "yes" if options["no_match"] else "",
        "match-limit": str(options["match_limit"]) if compared else "",
        "max-fetch": str(options["max_fetch"] or "") if compared else "",
    }
    return {name: text for name, text in choices.items() if text}
