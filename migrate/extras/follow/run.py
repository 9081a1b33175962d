"""The `follow run` command: passes that keep the target's offsets fresh under a mandate."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from migrate.apply.assess import refuse_other_cluster
from migrate.apply.write import Interruption
from migrate.cli.apply import WritingOptions, approved_plan
from migrate.cli.console import Terminal, print_lines, say_beside
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnClusters, ParsedBy, Seconds, argument, option
from migrate.clock import SystemClock
from migrate.errors import EXIT_DONE, EXIT_PARTLY, EXIT_REFUSED, MigrateError, Refused
from migrate.extras.follow.engine import NO_BLOCK_HERE, FollowChoices, FollowEdges, Follower, PassResult
from migrate.extras.follow.journal import FollowJournal, FollowWriter
from migrate.extras.follow.mandate import FOLLOW, mandate_of, policies_of_mandate, refuse_other_names
from migrate.extras.follow.passes import Cadence, PassSum, read_status, status_path, write_status
from migrate.extras.follow.passes import follow as follow_until
from migrate.extras.follow.session import follow_session
from migrate.extras.follow.text import dry_run_lines, follow_lines, pass_document, status_file_document
from migrate.mm2.flow import Flow
from migrate.model import Grade
from migrate.plan.companions import journal_path
from migrate.plan.file import read_plan
from migrate.plan.plan import Plan
from migrate.ports import Progress
from migrate.progress import LineProgress
from migrate.session.options import SessionOptions
from migrate.survey.survey import PlanRequest
from migrate.text import parse_duration


@dataclass(frozen=True, kw_only=True)
class FollowOptions(OnClusters):
    """The mandate that is followed, and how often."""

    plan: Path = argument()
    writing: WritingOptions = WritingOptions()
    every: int = option(
        "A pass begins so long after the one before began (10s, 5m).",
        default=30_000, type=ParsedBy(parse_duration), metavar="DURATION", show_default="30s")  # fmt: skip
    passes: int | None = option(
        "End after N passes.  [default: when the mandate does]", type=click.IntRange(min=1), metavar="N")  # fmt: skip
    settle: float = option(
        "Time between two looks at groups in a pass; keep it above auto-commit's 5 s.",
        default=6.0, type=Seconds(min=1), metavar="SECONDS")  # fmt: skip


def run(options: FollowOptions) -> int:
    """Keep the target's offsets fresh: pass after pass, every group that moved on is translated and set.

    PLAN is a mandate, made by `follow plan`. Never on a group with members on the target, never over what another
    client wrote, never back but behind its own write. One JSON line for each pass goes to stderr and into a status file
    beside the mandate, which `follow status PLAN` shows. Without --execute: one pass, shown, nothing written.
    Ctrl-C or `kill` ends it after the group in hand; `follow rollback PLAN` then restores what was there before. Exits
    4 if the newest pass left groups out, 3 if it found no group at all, 1 if no pass succeeded.
    """
    flow, progress, terminal = reached_flow(options.clusters), options.log.progress(options.plan), Terminal.here()
    path, plan, clock = options.plan, read_plan(options.plan), SystemClock()
    mandate = mandate_of(plan)
    refuse_other_names(plan, flow)
    found = approved_plan(plan, path, options.writing)
    mandate.refuse_over(plan, clock.now_ms())
    journal = FollowJournal(journal_path(path, plan.fingerprint), plan.fingerprint, clock.now_ms, mandate.until_ms)
    state = journal.read()
    if state.is_spent:
        raise Refused(
            f"Mandate {plan.short_fingerprint} is spent: what it wrote was rolled back. Nothing was written.",
            "Have a new one approved.",
        )
    telling = _FirstPass(progress)
    with follow_edges_of(flow, plan, clock, telling, options.writing.session(options.clusters)) as edges:
        choices = _choices(plan, flow, options)
        if not options.writing.execute:
            result = Follower(plan, choices, edges, journal, None, clock, telling).look_and_write()
            # What is not signed yet is shown all the same: it is what people sign.
            head = found.dry_run_head()
            print_lines(
                [*head, *dry_run_lines(plan, str(path), result, terminal.width, terminal.colour, found.to_sign)]
            )
            return EXIT_REFUSED if head or result.is_empty else EXIT_PARTLY if result.refused else EXIT_DONE
        details = {"plan": plan.fingerprint, **found.details()}
        # Reaching both clusters took its time: a rollback that ran meanwhile has spent the mandate.
        names = choices.request.group_map
        with closing(journal.open(FOLLOW, details, state.events, names.mapped)) as writer:
            assert isinstance(writer, FollowWriter), "the journal of a mandate is written by its own writer"
            follower = Follower(plan, choices, edges, journal, writer, clock, telling)
            teller = _Teller(plan, path, options.every / 1000, telling)
            cadence = Cadence(options.every / 1000, mandate.until_ms, options.passes or 0)
            try:
                with Interruption() as stopped:
                    total, ended = follow_until(follower, cadence, clock, lambda: bool(stopped), teller)
            except BaseException as error:
                # Whoever reads the status file must not take it for running.
                teller.write(teller.total, f"it failed ({type(error).__name__})")
                raise
            teller.finally_(total, ended)
    print_lines(follow_lines(plan, total, ended, terminal.width, terminal.colour))
    return total.exit_code


@contextmanager
def follow_edges_of(
    flow: Flow, plan: Plan, clock: SystemClock, progress: Progress, options: SessionOptions
) -> Iterator[FollowEdges]:
    """Yield what passes go through, once both clusters have said that they are those of the mandate."""
    with follow_session(flow, clock, progress, options) as edges:
        clusters = edges.clusters()
        progress.step(f"reaching {flow.source.alias} and {flow.target.alias}")
        for admin, planned in (
            (clusters.source, plan.header.source_cluster_id),
            (clusters.target, plan.header.target_cluster_id),
        ):
            assert admin is not None, "a source that is down is asked, and says so"
            refuse_other_cluster(admin, planned)
        yield edges


def _choices(plan: Plan, flow: Flow, options: FollowOptions) -> FollowChoices:
    mandate = mandate_of(plan)
    request = PlanRequest(
        flow=flow,
        filters=mandate.filters(),
        policies=policies_of_mandate(plan, NO_BLOCK_HERE),
        settle_seconds=options.settle,
        settings={},
        limits=mandate.limits(),
        group_map=mandate.names(),
    )
    return FollowChoices(
        request=request,
        cluster_ids=(plan.header.source_cluster_id, plan.header.target_cluster_id),
        grades=frozenset(map(Grade, mandate.grades)),
        concurrency=options.writing.concurrency,
        group_timeout_seconds=options.writing.group_timeout,
        until_ms=mandate.until_ms,
        moving_groups=mandate.moving_groups(),
    )


class _FirstPass:
    """Says the steps of the first pass, and what it will read; from then on each pass is one line."""

    def __init__(self, progress: LineProgress) -> None:
        self._progress: LineProgress | None = progress

    def step(self, text: str) -> None:
        if self._progress is not None:
            self._progress.step(text)

    def advance(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress.advance(done, total)

    def end(self) -> None:
        """Say no more."""
        if self._progress is not None:
            self._progress.say("following: one line for each pass")
            self._progress = None


class _Teller:
    """Tells each pass on stderr and in the status file."""

    def __init__(self, plan: Plan, path: Path, every_seconds: float, steps: _FirstPass) -> None:
        self._plan = plan
        self._path = status_path(path, plan.fingerprint)
        self._every_seconds = every_seconds
        self._steps = steps
        self._process = f"process {os.getpid()} on {socket.gethostname()}"
        self._earlier = _document_of(self._path)
        self.total = PassSum()

    def __call__(self, result: PassResult, total: PassSum) -> None:
        self._steps.end()
        self.total = total
        document = pass_document(result)
        if trouble := self.write(total, ""):
            document["status_file"] = trouble
        say_beside(json.dumps(document))

    def finally_(self, total: PassSum, ended: str) -> None:
        """Say in the status file why it ended."""
        if trouble := self.write(total, ended):
            raise MigrateError(f"All passes are over, and {trouble}.", "Make room beside the mandate.")

    def write(self, total: PassSum, ended: str) -> str:
        """Replace the status file; return why that failed, "" if it did not."""
        document = status_file_document(self._plan, total, self._every_seconds, self._process, ended, self._earlier)
        return write_status(self._path, document)


def _document_of(path: Path) -> dict[str, Any] | None:
    """Return what an earlier run left in the status file; one that is damaged tells nothing, and is replaced."""
    try:
        return read_status(path)
    except MigrateError:
        return None
