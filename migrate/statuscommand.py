"""The `status` command: wire the edges, look once or until all is ready, print."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from migrate.clock import Clock, SystemClock
from migrate.comparison import Limits
from migrate.errors import EXIT_DONE, EXIT_REFUSED, ClusterError, UsageError
from migrate.flow import Flow
from migrate.forecast import Forecast, forecast
from migrate.groupfacts import GroupFactsReader, RememberedGroupFacts
from migrate.kafka.recordreader import RecordReader
from migrate.logreader import LogReader
from migrate.options import filters_of
from migrate.plainmirror import PlainMirror
from migrate.planfile import read_plan
from migrate.policies import Policies
from migrate.ports import ClusterAdmin, PositionReader, Progress
from migrate.progress import Silent
from migrate.recordsurvey import read_positions
from migrate.screen import Screen
from migrate.showstatus import left_text, progress_line, status_lines
from migrate.showtable import Page
from migrate.status import Status, status_of
from migrate.statusdocument import status_document
from migrate.statuswatch import Told, watch_until_ready
from migrate.survey import Clusters, PlanRequest, Timer
from migrate.surveyor import take_survey
from migrate.tailcomparer import MOST_PER_PARTITION, TailComparer
from migrate.wiring import admin_of, group_facts_of, log_reader_of, position_reader_of

Print = Callable[[Iterable[str]], None]


def run_status(flow: Flow, policies: Policies, progress: Progress, show: Print, **options: Any) -> int:
    """Print the status that the options ask for; return 0 if everything is ready, else 3."""
    if options["timeout"] is not None and not options["watch"]:
        raise UsageError("--timeout says how long to watch.", "Give --watch too, or omit it.")
    rehearsal: Path | None = options["rehearsal"]
    told = _Teller(
        forecast=forecast(read_plan(rehearsal)) if rehearsal else None,
        as_json=options["form"] == "json",
        on_terminal=options["on_terminal"] and options["watch"],
        page=lambda: Page(str(rehearsal or ""), options["width"](), options["colour"]),
        show=show,
        progress=progress,
    )
    clock = SystemClock()
    with _lookout(flow, policies, Silent() if options["watch"] else progress, clock, options) as lookout:
        if not options["watch"]:
            status = lookout.look(options["settle"])
            told.finally_(status, None)
            return _code(status)
        last: list[Told] = []

        def tell(said: Told) -> None:
            last[:] = [said]
            told(said)

        with told.screen():
            status = watch_until_ready(lookout.look, options["settle"], options["timeout"], clock, tell)
        told.finally_(status, last[-1])
    return _code(status)


def _code(status: Status) -> int:
    return EXIT_DONE if status.is_ready else EXIT_REFUSED


@dataclass(frozen=True)
class _Lookout:
    """Looks at both clusters, with clients that it keeps from one look to the next."""

    request: PlanRequest
    source: ClusterAdmin
    target: ClusterAdmin
    mirror: PlainMirror
    comparer: TailComparer | None
    progress: Progress
    clock: Clock
    group_facts: tuple[GroupFactsReader, GroupFactsReader]
    worker: PositionReader | None

    def look(self, settle_seconds: float) -> Status:
        """Return the status; a source that does not answer is told in it."""
        down = self._why_down()
        request = replace(self.request, settle_seconds=settle_seconds, source_down=bool(down))
        source = None if down else self.source
        groups = self.group_facts
        clusters = Clusters(
            source,
            self.target,
            source,
            self.target,
            self.mirror,
            None if down else self.comparer,
            worker=self.worker,
            source_groups=None if down else groups[0],
            target_groups=groups[1],
        )
        survey = take_survey(request, clusters, self.clock, self.progress)
        positions = survey.positions
        if down:
            # `plan` has no use for them then; here they tell how far MM2 had come.
            timer = Timer(self.clock, self.progress)
            positions = read_positions(clusters, request.flow, survey.target_topics, timer)
        now_ms = self.clock.now_ms()
        return status_of(request, survey, positions, self.mirror.news, self.mirror.links, now_ms, down)

    def _why_down(self) -> str:
        self.progress.step(f"reaching {self.source.alias}")
        try:
            self.source.facts()
        except ClusterError as error:
            return error.problem
        return ""


@contextmanager
def _lookout(
    flow: Flow, policies: Policies, progress: Progress, clock: Clock, options: dict[str, Any]
) -> Iterator[_Lookout]:
    deadline = options["request_timeout"]
    request = PlanRequest(
        flow=flow,
        filters=filters_of(options),
        policies=policies,
        source_down=False,
        settle_seconds=options["settle"],
        settings={},
        limits=Limits(MOST_PER_PARTITION, None),
    )
    readers = [log_reader_of(cluster, deadline) for cluster in (flow.source, flow.target)]
    mirror = PlainMirror(flow, *readers)
    comparer = None if options["no_match"] else TailComparer(mirror, lambda: nullcontext(_pair(readers)))
    admins = [admin_of(cluster, deadline) for cluster in (flow.source, flow.target)]
    facts = [group_facts_of(cluster, deadline) for cluster in (flow.source, flow.target)]
    remembered = RememberedGroupFacts(facts[0]), RememberedGroupFacts(facts[1])
    worker = position_reader_of(flow, deadline)
    try:
        yield _Lookout(request, admins[0], admins[1], mirror, comparer, progress, clock, remembered, worker)
    finally:
        for admin in admins:
            admin.close()
        for reader in readers:
            reader.close()


def _pair(readers: list[RecordReader]) -> tuple[LogReader, LogReader]:
    return readers[0], readers[1]


@dataclass
class _Teller:
    """Says what was seen: on a screen, as lines, or as JSON documents, one a line while watching."""

    forecast: Forecast | None
    as_json: bool
    on_terminal: bool
    page: Callable[[], Page]
    show: Print
    progress: Progress
    _screen: Screen | None = None

    @contextmanager
    def screen(self) -> Iterator[None]:
        """Take the terminal's screen for a watch, if there is one."""
        if not self.on_terminal or self.as_json:
            yield
            return
        with Screen() as self._screen:
            yield
        self._screen = None

    def __call__(self, told: Told) -> None:
        """Say one look of a watch."""
        left = left_text(told.watch.time_left(), told.status.lag)
        if self.as_json:
            document = status_document(told.status, self.forecast, told.watch.bars, told.watch.time_left())
            self.show([json.dumps(document | {"note": told.note or None}, ensure_ascii=False)])
        elif self._screen:
            lines = self._lines(told.status, told, left)
            self._screen.draw([*lines, "", told.note] if told.note else lines)
        else:
            self.progress.step(told.note or progress_line(told.status, told.watch.bars, left))

    def finally_(self, status: Status, last: Told | None) -> None:
        """Say how it ended; a watch in JSON has said it."""
        if not self.as_json:
            left = left_text(last.watch.time_left(), status.lag) if last else ""
            self.show(self._lines(status, last, left))
        elif last is None:
            self.show([json.dumps(status_document(status, self.forecast), ensure_ascii=False, indent=2)])

    def _lines(self, status: Status, told: Told | None, left: str) -> list[str]:
        said = self.forecast.text if self.forecast else ""
        bars = told.watch.bars if told else None
        return list(status_lines(status, self.page(), said, bars, left))
