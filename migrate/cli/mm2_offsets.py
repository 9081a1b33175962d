"""The `mm2 offsets` command: wire the edges, read, print. Changes nothing."""

from typing import Any

from migrate.clock import SystemClock
from migrate.errors import EXIT_DONE, EXIT_FAILED, UsageError
from migrate.mm2.flow import Flow
from migrate.ports import Progress
from migrate.progress import Timer
from migrate.session.plan import plan_session
from migrate.show.mm2_offsets import stores_document, stores_lines
from migrate.survey.filters import Filters
from migrate.survey.mm2_offsets import read_stores


def run_mm2_offsets(flow: Flow, progress: Progress, **options: Any) -> tuple[list[str], int]:
    """Return the report and the exit code: 1 where MM2's own positions could not be read."""
    if not flow.by_mm2:
        raise UsageError("--replicator any: there is no MM2 whose positions could be shown.", "Omit the option.")
    filters = Filters.from_options(topics=options["topics"], exclude_topics=options["exclude_topics"])
    with plan_session(flow, options["source_down"], progress, {**options, "no_match": True}) as clusters:
        stores = read_stores(flow, clusters, filters, Timer(SystemClock(), progress))
    if options["form"] == "json":
        lines = list(stores_document(stores, flow))
    else:
        lines = list(stores_lines(stores, flow, options["width"], options["colour"]))
    return lines, EXIT_FAILED if stores.positions_unknown else EXIT_DONE
