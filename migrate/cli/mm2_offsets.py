"""The `mm2 offsets` command: wire the edges, read, print. Changes nothing."""

from dataclasses import dataclass

import click

from migrate.cli.choices import TopicOptions
from migrate.cli.console import Terminal, printed
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnClusters, flag, option
from migrate.clock import SystemClock
from migrate.errors import EXIT_DONE, EXIT_FAILED, UsageError
from migrate.progress import Timer
from migrate.session.options import SessionOptions, SparkOptions
from migrate.session.plan import plan_session
from migrate.show.mm2_offsets import stores_document, stores_lines
from migrate.survey.commits_source import FROM_CHECKPOINTS, FROM_COORDINATORS
from migrate.survey.filters import Filters
from migrate.survey.mm2_offsets import read_stores


@dataclass(frozen=True, kw_only=True)
class Mm2OffsetsOptions(OnClusters):
    """Which of MM2's positions are shown."""

    source_down: bool = flag("The source is down: show what the target knows.")
    topics: TopicOptions = TopicOptions()
    form: str = option(
        "json: one document with every number.",
        name="--format", default="table", type=click.Choice(["table", "json"]))  # fmt: skip
    spark: SparkOptions = SparkOptions()


def offsets(options: Mm2OffsetsOptions) -> int:
    """Show MM2's own positions per source partition: how far it has copied, and where it goes on.

    Next to them are the two stores that are often mistaken for them: offset syncs and checkpoints. Positions are read
    from MM2's Connect offsets topic, or from its Connect worker (--connect-url). Exits 1 if neither has them.
    """
    flow = reached_flow(options.clusters, options.form != "table")
    progress, terminal = options.log.progress(), Terminal.here()
    if not flow.by_mm2:
        raise UsageError("--replicator any: there is no MM2 whose positions could be shown.", "Omit the option.")
    filters = Filters.from_options(topics=options.topics.topics, exclude_topics=options.topics.exclude_topics)
    session = SessionOptions(options.clusters.request_timeout, options.spark, no_match=True)
    with plan_session(flow, session, FROM_CHECKPOINTS if options.source_down else FROM_COORDINATORS) as clusters:
        stores = read_stores(flow, clusters, filters, Timer(SystemClock(), progress))
    if options.form == "json":
        lines = stores_document(stores, flow)
    else:
        lines = stores_lines(stores, flow, terminal.width, terminal.colour)
    return printed(lines, EXIT_FAILED if stores.positions_unknown else EXIT_DONE)
