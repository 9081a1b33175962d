"""The `groups compare` command: wire the edges, look once at both clusters, print. It changes nothing on them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import click

from migrate.cli.choices import MatchingOptions, MovedGroupOptions
from migrate.cli.console import Terminal, print_in_utf8
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnClusters, option
from migrate.clock import Clock, SystemClock
from migrate.errors import EXIT_DONE, EXIT_FAILED
from migrate.extras.inventory.compare import (
    After,
    Stretch,
    comparison_of,
    count_plan,
    count_records,
    stretches,
    translated_commits,
)
from migrate.extras.inventory.compare_text import (
    CompareView,
    comparison_csv,
    comparison_document,
    comparison_lines,
    doubts,
    premise_texts,
)
from migrate.match.log_reader import LogReader
from migrate.match.protocol import Limits
from migrate.mm2.flow import Flow
from migrate.model import Commits, Failure
from migrate.ports import Progress
from migrate.progress import LineProgress, Timer
from migrate.session.clusters import endpoints
from migrate.session.options import SessionOptions, SparkOptions
from migrate.session.plan import plan_session
from migrate.session.status import status_session
from migrate.show.lines import wrapped
from migrate.survey.commits import read_priors
from migrate.survey.group_facts import GroupFacts
from migrate.survey.groups import answer_of_each, read_kinds
from migrate.survey.hidden_topics import hosted_ahead, with_hidden
from migrate.survey.names import with_names
from migrate.survey.policies import Policies
from migrate.survey.survey import Clusters, PlanRequest, Survey
from migrate.survey.take import first_look, read_once
from migrate.text import bytes_text, many


@dataclass(frozen=True, kw_only=True)
class CompareOptions(OnClusters):
    """Which groups are compared, how, and how far behind they may be."""

    within: int = option(
        "Let groups be behind by at most this many records; ahead is never let pass.",
        default=0, type=click.IntRange(min=0), metavar="RECORDS")  # fmt: skip
    form: str = option(
        "json: one document. json and csv have every row.",
        name="--format", default="table", type=click.Choice(["table", "json", "csv"]))  # fmt: skip
    groups: MovedGroupOptions = MovedGroupOptions()
    matching: MatchingOptions = MatchingOptions()
    spark: SparkOptions = SparkOptions()


@dataclass(frozen=True)
class CompareSession:
    """What `groups compare` looks through; `records` reads the target's log, and is None where none are to be read.

    `unread_syncs` tells how many offset syncs at the beginning of a long topic were left unread.
    """

    clusters: Clusters
    records: LogReader | None
    unread_syncs: Callable[[], int]


@contextmanager
def compare_session(flow: Flow, clock: Clock, options: SessionOptions) -> Iterator[CompareSession]:
    """Yield what `plan` reads through, and with `no_match` of `options` what `status` does: neither Spark nor Java."""
    if options.no_match:
        with status_session(flow, clock, options) as edges:
            syncs = flow.syncs_side, flow.offset_syncs_topic
            yield CompareSession(edges.clusters(), None, lambda: edges.mirror.news(*syncs).left_out)
        return
    target = endpoints(flow, options.request_timeout)[1]
    with (
        plan_session(flow, options) as clusters,
        closing(target.records(flow.target_isolation_level)) as records,
    ):
        yield CompareSession(clusters, records, lambda: 0)


def compare(options: CompareOptions) -> int:
    """Compare what groups have committed on the target with what their source commits translate to.

    Whoever wrote it: MM2's own group sync, `apply`, a tool, consumers. Commits of the source are translated as `plan`
    does it; numbers of two clusters are never compared. --no-match needs neither Spark nor Java, and answers from MM2's
    topics alone, which proves nothing. Exits 1 unless every row is proven to be equal, or behind by at most --within
    records, and all could be seen.
    """
    flow = reached_flow(options.clusters, options.form != "table")
    progress = options.log.progress()
    if options.form == "csv":
        print_in_utf8()
    return run_compare(options, flow, progress, Terminal.here())


def run_compare(options: CompareOptions, flow: Flow, progress: LineProgress, terminal: Terminal) -> int:
    """Print the verdict on every commit; return 1 if a row is beyond, nothing was compared, or not all was seen."""
    limits = options.matching.limits()
    request = PlanRequest(
        flow=flow,
        filters=options.groups.filters(),
        policies=Policies(),
        settle_seconds=0.0,
        settings={},
        limits=limits,
        group_map=options.groups.names(),
    )
    clock = SystemClock()
    # What is said is at least as old as this: the reading may take minutes.
    now_ms = clock.now_ms()
    session = SessionOptions(
        options.clusters.request_timeout,
        options.spark,
        no_match=options.matching.no_match,
        by_timestamp=options.matching.by_timestamp,
    )
    with compare_session(flow, clock, session) as edges:
        request = with_names(request, edges.clusters)
        survey, after = look_at_both(request, edges.clusters, clock, progress)
        edges.clusters.end()
        progress.step(f"deciding {many(len(survey.keys), 'row')}")
        rows, results = translated_commits(survey)
        records = _records(edges, survey, set(stretches(rows)), limits, progress)
        seen = comparison_of(survey, after, rows, results, records, now_ms)
        view = CompareView(options.within, options.matching.no_match, edges.unread_syncs())
    if options.form == "json":
        terminal.show(comparison_document(seen, view))
    elif options.form == "table":
        terminal.show(comparison_lines(seen, view, terminal.width, terminal.colour))
    else:
        terminal.show(comparison_csv(seen))
        for text in (*premise_texts(seen), *doubts(seen, view)):
            for line in wrapped(text, terminal.width):
                progress.say(line)
    return EXIT_DONE if seen.is_good(view.within) else EXIT_FAILED


def look_at_both(request: PlanRequest, clusters: Clusters, clock: Clock, progress: Progress) -> tuple[Survey, After]:
    """Look once, as `plan` does first, also at what only the target has committed, and at the source's commits again.

    Nobody is to cut over: what a second look tells is not asked. The survey has priors of the groups too that only the
    target lists; beside it the source's commits after those were read. Raises as `take_survey`.
    """
    first = first_look(request, clusters, clock, progress)
    clusters, timer = first.context.clusters, first.context.timer
    others = first.target.listed.difference(first.groups)
    others = frozenset(group for group in others if request.filters.group_verdict(group) is None)
    priors, unstable = read_priors(clusters, sorted(others), timer) if others else ({}, frozenset[str]())
    after = read_after(clusters, [*first.groups, *sorted(others)], timer)
    first = replace(first, priors={**first.priors, **priors}, unstable_on_target=first.unstable_on_target | unstable)
    survey, _ = read_once(first)
    source, target = with_hidden(clusters, survey.source, survey.target, hosted_ahead(clusters), timer)
    kinds = GroupFacts(source_kinds=read_kinds(clusters, timer))
    return replace(survey, source=source, target=target, group_facts=kinds), after


def read_after(clusters: Clusters, groups: Collection[str], timer: Timer) -> Mapping[str, Commits | Failure]:
    """Read what the groups have committed on the source by now: a commit that moved meanwhile is no other one's fault.

    Of a group with pending transactions it is what is committed so far. A group without an answer has a `Failure`.
    """
    source = clusters.source
    assert source is not None
    text = f"reading commits of {many(len(groups), 'group')} on {source.alias} again"
    answers = timer.ask("commits", text, groups, lambda asked: source.commits(asked, require_stable=False))
    return answer_of_each(groups, answers)


def _records(
    edges: CompareSession, survey: Survey, wanted: set[Stretch], limits: Limits, progress: Progress
) -> Mapping[Stretch, int]:
    """Count the records of stretches, saying beforehand what that reads; nothing where no records are read."""
    compared = survey.comparison
    if edges.records is None or compared is None or not wanted:
        return {}
    read = sum(answer.target_read for answer in compared.answers.values())
    plan = count_plan(wanted, limits, compared.target_bytes, read)
    if not plan.ranges:
        return {}
    what = f"{many(plan.offsets, 'offset')} of {many(len(plan.ranges), 'log')}"
    alias = edges.clusters.target.alias
    progress.step(f"counting records between commits and translations: {what} on {alias}, {bytes_text(plan.bytes)}")
    return count_records(edges.records, plan, wanted)
