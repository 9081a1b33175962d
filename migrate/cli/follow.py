"""The `follow` command: passes that keep the target's offsets fresh under a mandate. Wiring, and no decisions."""

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from migrate import __version__
from migrate.apply.assess import refuse_other_cluster
from migrate.apply.follow_engine import NO_BLOCK_HERE, FollowChoices, FollowEdges, Follower, PassResult
from migrate.apply.follow_journal import FOLLOW, FollowJournal, FollowWriter, read_memory
from migrate.apply.follow_run import Cadence, PassSum, follow, read_status, status_path, write_status
from migrate.apply.signatures import signatures_beside
from migrate.apply.write import Interruption
from migrate.cli.apply import approved, refuse_other_name
from migrate.cli.console import print_lines, say_beside
from migrate.cli.sign import refusal
from migrate.clock import SystemClock, iso
from migrate.errors import EXIT_DONE, EXIT_PARTLY, EXIT_REFUSED, MigrateError, Refused
from migrate.mm2.flow import Flow
from migrate.model import Grade
from migrate.plan.companions import journal_path
from migrate.plan.file import read_plan
from migrate.plan.plan import Plan
from migrate.plan.standing import (
    filters_of_mandate,
    group_map_of_mandate,
    limits_of_mandate,
    mandate_of,
    moving_groups,
    policies_of_mandate,
    refuse_other_names,
    refuse_over,
)
from migrate.ports import Progress
from migrate.progress import LineProgress
from migrate.show.follow import dry_run_lines, follow_lines, pass_document, status_file_document
from migrate.survey.survey import PlanRequest


def run_follow(path: Path, flow: Flow, progress: LineProgress, **options: Any) -> int:
    """Follow the mandate at `path`, or tell what one pass would do; return the exit code."""
    plan, clock = read_plan(path), SystemClock()
    mandate = mandate_of(plan)
    refuse_other_names(plan, flow)
    approval = approved(plan, options["approve"], options["execute"])
    refuse_other_name(plan, path)
    signatures = signatures_beside(plan, path)
    unsigned = refusal(plan, path, signatures)
    if unsigned is not None and options["execute"]:
        raise unsigned
    refuse_over(mandate, plan, clock.now_ms(), iso(mandate.until_ms))
    journal = FollowJournal(journal_path(path, plan.fingerprint), plan.fingerprint, clock.now_ms)
    state = journal.read()
    if state.is_spent:
        raise Refused(
            f"Mandate {plan.short_fingerprint} is spent: what it wrote was rolled back. Nothing was written.",
            "Have a new one approved.",
        )
    telling = _FirstPass(progress)
    with follow_edges_of(flow, plan, clock, telling, options) as edges:
        choices = _choices(plan, flow, options)
        if not options["execute"]:
            told = Follower(choices, edges, read_memory(journal.path), None, clock, telling).look_and_write()
            # What is not signed yet is told all the same: it is what people sign.
            head = [] if unsigned is None else [f"REFUSED: {unsigned.problem}", unsigned.todo, ""]
            print_lines([*head, *dry_run_lines(plan, str(path), told, options["width"], options["colour"])])
            return EXIT_REFUSED if head else EXIT_PARTLY if told.refused else EXIT_DONE
        details = {
            "plan": plan.fingerprint,
            "approved": approval,
            "version": __version__,
            "signatures": [{"time": s.time, "name": s.name, "note": s.note} for s in signatures],
        }
        # Reaching both clusters took its time: a rollback that ran meanwhile has spent the mandate.
        names = choices.request.group_map
        with journal.open(FOLLOW, details, state.events, names.mapped) as writer:
            assert isinstance(writer, FollowWriter), "the journal of a mandate is written by its own writer"
            follower = Follower(choices, edges, writer.memory, writer, clock, telling)
            teller = _Teller(plan, path, options["every"] / 1000, telling)
            cadence = Cadence(options["every"] / 1000, mandate.until_ms, options["passes"] or 0)
            try:
                with Interruption() as stopped:
                    total, ended = follow(follower, cadence, clock, lambda: bool(stopped), teller)
            except BaseException as error:
                # Whoever reads the status file must not take it for running.
                teller.write(teller.total, f"it failed ({type(error).__name__})")
                raise
            teller.finally_(total, ended)
    print_lines(follow_lines(plan, total, ended, options["width"], options["colour"]))
    return total.exit_code


@contextmanager
def follow_edges_of(
    flow: Flow, plan: Plan, clock: SystemClock, progress: Progress, options: Mapping[str, Any]
) -> Iterator[FollowEdges]:
    """Yield what passes go through, once both clusters have said that they are those of the mandate."""
    from migrate.cli.follow_wiring import follow_session

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


def _choices(plan: Plan, flow: Flow, options: Mapping[str, Any]) -> FollowChoices:
    mandate = mandate_of(plan)
    request = PlanRequest(
        flow=flow,
        filters=filters_of_mandate(mandate),
        policies=policies_of_mandate(plan, NO_BLOCK_HERE),
        source_down=False,
        settle_seconds=options["settle"],
        settings={},
        limits=limits_of_mandate(mandate),
        group_map=group_map_of_mandate(plan),
    )
    return FollowChoices(
        request=request,
        cluster_ids=(plan.header.source_cluster_id, plan.header.target_cluster_id),
        grades=frozenset(map(Grade, mandate.grades)),
        concurrency=options["concurrency"],
        group_timeout_seconds=options["group_timeout"],
        until_ms=mandate.until_ms,
        moving_groups=moving_groups(mandate),
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
