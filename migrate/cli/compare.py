"""The `groups compare` command: wire the edges, look once at both clusters, print. It changes nothing on them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from migrate.cli.group_map import group_map_of
from migrate.cli.options import filters_of, limits_of
from migrate.clock import SystemClock
from migrate.errors import EXIT_DONE, EXIT_FAILED
from migrate.inventory.compare import (
    GroupComparison,
    Stretch,
    comparison_of,
    count_plan,
    count_records,
    translated_commits,
)
from migrate.match.protocol import Limits
from migrate.mm2.flow import Flow
from migrate.ports import Progress
from migrate.progress import LineProgress
from migrate.session.plan import CompareSession, compare_session
from migrate.show.compare import (
    CompareView,
    comparison_csv,
    comparison_document,
    comparison_lines,
    doubts,
    premise_texts,
)
from migrate.show.lines import wrapped
from migrate.survey.names import with_names
from migrate.survey.policies import Policies
from migrate.survey.survey import PlanRequest, Survey
from migrate.survey.take import take_survey
from migrate.text import bytes_text, many

Print = Callable[[Iterable[str]], None]


def run_compare(flow: Flow, progress: LineProgress, show: Print, **options: Any) -> int:
    """Print the verdict on every commit; return 1 if a row is beyond, nothing was compared, or not all was seen."""
    limits = limits_of(options)
    request = PlanRequest(
        flow=flow,
        filters=filters_of(options),
        policies=Policies(),
        source_down=False,
        settle_seconds=0.0,
        settings={},
        limits=limits,
        only_compares=True,
        group_map=group_map_of(options),
    )
    clock = SystemClock()
    # What is said is at least as old as this: the reading may take minutes.
    now_ms = clock.now_ms()
    with compare_session(flow, clock, progress, options) as edges:
        request = with_names(request, edges.clusters)
        survey = take_survey(request, edges.clusters, clock, progress)
        edges.clusters.end()
        progress.step(f"deciding {many(len(survey.keys), 'row')}")
        translated = translated_commits(survey)
        records = _records(edges, survey, set(translated.stretches()), limits, progress)
        seen = comparison_of(survey, translated, records, now_ms)
        view = CompareView(options["within"], options["no_match"], edges.unread_syncs())
    show(_lines(seen, view, options))
    if options["form"] == "csv":
        for text in (*premise_texts(seen), *doubts(seen, view)):
            for line in wrapped(text, options["width"]()):
                progress.say(line)
    return EXIT_DONE if seen.is_good(view.within) else EXIT_FAILED


def _records(
    edges: CompareSession, survey: Survey, stretches: set[Stretch], limits: Limits, progress: Progress
) -> Mapping[Stretch, int]:
    """Count the records of stretches, saying beforehand what that reads; nothing where no records are read."""
    compared = survey.comparison
    if edges.records is None or compared is None or not stretches:
        return {}
    read = sum(answer.target_read for answer in compared.answers.values())
    plan = count_plan(stretches, limits, compared.target_bytes, read)
    if not plan.ranges:
        return {}
    what = f"{many(plan.offsets, 'offset')} of {many(len(plan.ranges), 'log')}"
    alias = edges.clusters.target.alias
    progress.step(f"counting records between commits and translations: {what} on {alias}, {bytes_text(plan.bytes)}")
    return count_records(edges.records, plan, stretches)


def _lines(seen: GroupComparison, view: CompareView, options: Mapping[str, Any]) -> Iterator[str]:
    if options["form"] == "json":
        return comparison_document(seen, view)
    if options["form"] == "csv":
        return comparison_csv(seen)
    return comparison_lines(seen, view, options["width"](), options["colour"])
