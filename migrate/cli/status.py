"""The `status` command: wire the edges, look once or until all is ready, print."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from migrate.cli.choices import MovedGroupOptions, PlacingOptions, PolicyOptions
from migrate.cli.console import ReaderGone, Terminal, reader_has_gone
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnClusters, Seconds, flag, option
from migrate.clock import Clock, SystemClock
from migrate.errors import EXIT_DONE, EXIT_REFUSED, ClusterError, UsageError
from migrate.match.compare import MOST_PER_TAIL
from migrate.match.protocol import Limits
from migrate.plan.file import read_plan
from migrate.plan.plan import refuse_rules
from migrate.plan.status import Status, status_of
from migrate.plan.totals import Forecast, forecast
from migrate.plan.watch import Watch, watch_until_ready
from migrate.ports import Progress
from migrate.progress import LineProgress, Timer
from migrate.session.options import SessionOptions
from migrate.session.status import StatusSession, status_session
from migrate.show.plan_table import Page
from migrate.show.screen import Draw, screen_if
from migrate.show.status import first_look_lines, late_line, left_text, progress_line, status_document, status_lines
from migrate.survey.commits_source import FROM_CHECKPOINTS, FROM_COORDINATORS
from migrate.survey.names import with_names
from migrate.survey.records import read_positions
from migrate.survey.survey import Clusters, PlanRequest
from migrate.survey.take import take_survey
from migrate.text import many
from migrate.watch import BackgroundLook, Freshness, Glance, LastStep, Wakeful


@dataclass(frozen=True, kw_only=True)
class StatusOptions(OnClusters):
    """What is looked at, by which decisions, and how long."""

    watch: bool = flag("Look again until everything is ready, with progress and the time left.")
    timeout: float | None = option(
        "With --watch: give up after this long (exit 3; 1 if a cluster does not answer).  [default: never]",
        type=Seconds(min=0), metavar="SECONDS")  # fmt: skip
    settle: float = option(
        "Time between two looks at groups and log ends; keep it above auto-commit's 5 s. Below 1 s the two count as "
        "one, and nothing is ever ready.", default=15.0, type=Seconds(min=0), metavar="SECONDS")  # fmt: skip
    rehearsal: Path | None = option(
        "Estimate from this plan how long plan will take, and from 1,000 offsets on apply and verify.",
        metavar="PLAN")  # fmt: skip
    form: str = option(
        "json: one document; with --watch one line per look.",
        name="--format", default="table", type=click.Choice(["table", "json"]))  # fmt: skip
    groups: MovedGroupOptions = MovedGroupOptions()
    policies: PolicyOptions = PolicyOptions()
    placing: PlacingOptions = PlacingOptions()

    def session(self) -> SessionOptions:
        """Return what it is read with."""
        return SessionOptions(
            self.clusters.request_timeout, no_match=self.placing.no_match, by_timestamp=self.placing.by_timestamp
        )


def status(options: StatusOptions) -> int:
    """Show the state of a cutover: how far MM2 is, who still writes and reads, and what keeps `plan` from being clean.

    Takes the filters and policies of `plan`, does not start Spark, and changes nothing. Exits 0 if everything is ready,
    else 3, also if no commit is inside the filters. If the source does not answer, it shows what it can learn from the
    target alone; if the target does not answer, it exits 1.
    """
    flow, policies = reached_flow(options.clusters, options.form != "table"), options.policies.policies()
    progress, terminal = options.log.progress(), Terminal.here()
    if options.timeout is not None and not options.watch:
        raise UsageError("--timeout says how long to watch.", "Give --watch too, or omit it.")
    rehearsal = options.rehearsal
    rehearsed = read_plan(rehearsal) if rehearsal else None
    if rehearsed is not None:
        refuse_rules(rehearsed, "--rehearsal")
    teller = Teller(
        forecast=forecast(rehearsed) if rehearsed else None,
        as_json=options.form == "json",
        on_terminal=terminal.is_screen and options.watch,
        page=lambda: Page(str(rehearsal or ""), terminal.width, terminal.colour),
        show=terminal.show,
        progress=progress,
    )
    request = PlanRequest(
        flow=flow,
        filters=options.groups.filters(),
        policies=policies,
        settle_seconds=options.settle,
        settings={},
        limits=Limits(MOST_PER_TAIL, None),
        group_map=options.groups.names(),
    )
    clock = SystemClock()
    if options.watch:
        step = LastStep()
        with (
            status_session(flow, clock, options.session()) as edges,
            screen_if(teller.on_terminal and not teller.as_json) as teller.draw,
        ):
            lookout = Lookout(request, edges, step, clock, watches=True)

            def begin(settle_seconds: float) -> BackgroundLook[Status]:
                return BackgroundLook(lambda: lookout.look(settle_seconds), step)

            try:
                seen = watch_until_ready(begin, options.settle, options.timeout, clock, teller, teller.watch)
            except ReaderGone:
                return EXIT_REFUSED
    else:
        with status_session(flow, clock, options.session()) as edges:
            seen = Lookout(request, edges, progress, clock).look(options.settle)
    teller.finally_(seen)
    return exit_code(seen)


def exit_code(status: Status) -> int:
    """Return 0 if everything is ready, else 3: also where no commit is inside the filters."""
    return EXIT_DONE if status.is_ready else EXIT_REFUSED


@dataclass(frozen=True)
class Lookout:
    """Looks at both clusters, with clients that it keeps from one look to the next.

    A look over the whole settle time of `request` decides, and asks afresh what glances remember. `watches` is True
    where somebody looks on: then both clusters are asked for a sign of life while a look waits.
    """

    request: PlanRequest
    edges: StatusSession
    progress: Progress
    clock: Clock
    watches: bool = False

    def look(self, settle_seconds: float) -> Status:
        """Return the status; it says so where the source does not answer. The edges are in use meanwhile."""
        with self.edges.in_use:
            return self._look(settle_seconds)

    def _look(self, settle_seconds: float) -> Status:
        edges = self.edges
        if settle_seconds >= self.request.settle_seconds:
            for memory in edges.memories.values():
                memory.forget()
        down = self._why_down()
        request = replace(
            self.request, settle_seconds=settle_seconds, commits=FROM_CHECKPOINTS if down else FROM_COORDINATORS
        )
        clusters = edges.clusters(request.commits)
        request = with_names(request, clusters)
        clock = Wakeful(self.clock, lambda: self._ask_all(clusters)) if self.watches else self.clock
        survey = take_survey(request, clusters, clock, self.progress)
        positions = survey.mm2.positions
        if down:
            # `plan` has no use for them then; here they tell how far MM2 had come.
            timer = Timer(self.clock, self.progress)
            positions = read_positions(clusters, request.flow, survey.target.topics, timer)
        self.progress.step(f"deciding {many(len(survey.keys), 'row')}")
        return status_of(survey, positions, edges.mirror.news, edges.mirror.sync_pairs, down)

    def _ask_all(self, clusters: Clusters) -> None:
        for admin in (clusters.source, clusters.target):
            if admin is not None:
                self.progress.step(f"reaching {admin.alias} again")
                admin.facts()

    def _why_down(self) -> str:
        self.progress.step(f"reaching {self.edges.source.alias}")
        try:
            self.edges.source.facts()
        except ClusterError as error:
            return error.problem
        return ""


@dataclass
class Teller:
    """Says what was seen: on a screen, as lines, or as JSON documents, one a line while watching."""

    forecast: Forecast | None
    as_json: bool
    on_terminal: bool
    page: Callable[[], Page]
    show: Callable[[Iterable[str]], None]
    progress: LineProgress
    watch: Watch = field(default_factory=Watch)
    draw: Draw | None = None
    _is_watching: bool = False

    def __call__(self, glance: Glance[Status]) -> None:
        """Say what a watch sees: what is new, and on a screen every second how old it is."""
        self._is_watching = True
        if self.draw:
            self.draw(self._drawn(glance))
        elif glance.is_tick:
            return
        elif glance.seen is None or not self.as_json:
            self.progress.say(self._line(glance))
        else:
            left = self.watch.time_left()
            document = status_document(glance.seen, self.forecast, self.watch.bars, left, glance.freshness)
            self.show([json.dumps(document | {"note": glance.note or None})])
            if reader_has_gone():
                raise ReaderGone

    def _drawn(self, glance: Glance[Status]) -> list[str]:
        if glance.seen is None:
            return list(first_look_lines(glance.freshness, self.page()))
        lines = self._lines(glance.seen, glance.freshness)
        # Else the verdict itself says it; below, it would leave the screen.
        if glance.note and glance.freshness.is_current:
            lines.insert(lines.index(""), glance.note)
        return lines

    def _line(self, glance: Glance[Status]) -> str:
        if glance.freshness.waiting is not None or glance.note or glance.seen is None:
            return late_line(glance, "status")
        return progress_line(glance.seen, self.watch.bars, left_text(self.watch.time_left(), glance.seen.lag))

    def finally_(self, status: Status) -> None:
        """Say how it ended; a watch in JSON has said it."""
        if not self.as_json:
            self.show(self._lines(status))
        elif not self._is_watching:
            self.show([json.dumps(status_document(status, self.forecast), indent=2)])

    def _lines(self, status: Status, freshness: Freshness | None = None) -> list[str]:
        bars, left = None, ""
        if self._is_watching:
            bars, left = self.watch.bars, left_text(self.watch.time_left(), status.lag)
        text = self.forecast.text if self.forecast else ""
        return list(status_lines(status, self.page(), text, bars, left, freshness))
