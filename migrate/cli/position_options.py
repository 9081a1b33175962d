"""The options of `plan` that are about positions outside Kafka, and what they mean together."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from migrate.cli.options import option, together
from migrate.errors import UsageError
from migrate.survey.positions import CheckpointAsked, PositionsAsked


class PathOrUrl(click.types.StringParamType):
    """A file or folder that Spark reads, by its path or a URL; `of_holder` where HOLDER= stands before it."""

    def __init__(self, of_holder: bool) -> None:
        self.of_holder = of_holder


# Positions that are kept outside Kafka, to be translated beside the groups' commits.
position_options = together(
    option("--positions", "position_files", multiple=True, type=PathOrUrl(False), metavar="FILE",
           help="Translate the positions in this file too (holder,topic,partition,offset[,meaning]): a path or URL "
                "that ends in .csv, .jsonl or .parquet, read through Spark; repeatable."),
    option("--spark-checkpoint", "spark_checkpoints", multiple=True, type=PathOrUrl(True), metavar="NAME=URL",
           help="Translate the positions in this checkpoint folder of a Structured Streaming query; repeatable."),
    option("--sink", "sinks", multiple=True, type=PathOrUrl(True), metavar="HOLDER=URL",
           help="The folder that a query writes to: does it remember batch numbers? Repeatable."),
    option("--stateful", "stateful", multiple=True, metavar="HOLDER",
           help="This holder keeps a state (sums, joins), so that nothing may be read twice; repeatable."),
    option("--no-groups", is_flag=True, help="Leave all groups out: a plan of positions alone."),
)  # fmt: skip

verified_checkpoint_option = option(
    "--spark-checkpoint", "spark_checkpoints", multiple=True, metavar="NAME=URL",
    help="Also read this checkpoint folder of a query on the target: does it stand where the plan says, or beyond? "
         "Repeatable; needs Java.",
)  # fmt: skip


def positions_of(options: Mapping[str, Any]) -> PositionsAsked:
    """Return what was asked of positions; raises `UsageError` for a wrong pair, suffix or combination."""
    from migrate.holders.reader import refuse_suffix

    given = options["position_files"]
    for origin in given:
        refuse_password("--positions", origin)  # first: any other refusal shows the URL
        refuse_suffix(origin)
    if doubled := next((g for g in given if given.count(g) > 1), ""):
        raise UsageError(f"--positions {doubled} is given twice.", "Name each file once.")
    asked = PositionsAsked(
        tuple(options["position_files"]),
        checkpoints_of(options["spark_checkpoints"]),
        _pairs("--sink", options["sinks"], "HOLDER=URL"),
        frozenset(options["stateful"]),
    )
    if not asked and (asked.sinks or asked.stateful or options["no_groups"]):
        raise UsageError(
            "--sink, --stateful and --no-groups are about positions outside Kafka, and none are given.",
            "Add --positions FILE or --spark-checkpoint NAME=URL.",
        )
    if asked and options["source_down"]:
        raise UsageError(
            "--source-down and positions outside Kafka exclude each other: nothing on the target stands in for them.",
            "Omit one of them.",
        )
    if options["no_groups"] and (options["groups"] or options["groups_file"]):
        raise UsageError("--no-groups excludes --group and --groups-file.", "Omit one of them.")
    return asked


def checkpoints_of(given: Sequence[str]) -> tuple[CheckpointAsked, ...]:
    """Return the checkpoint folders that were named; raises `UsageError` for a wrong pair."""
    pairs = _pairs("--spark-checkpoint", given, "NAME=URL")
    return tuple(CheckpointAsked(holder, url) for holder, url in pairs.items())


def _pairs(option_name: str, given: Sequence[str], form: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        refuse_password(option_name, text)  # first: any other refusal shows the URL
        holder, equals, url = text.partition("=")
        if not equals or not holder.strip() or not url.strip() or not holder.isprintable():
            raise UsageError(f"{option_name} {text}: expected {form}.", "For example orders=s3a://jobs/orders")
        if holder in pairs:
            raise UsageError(f"{option_name} names {holder} twice.", "Name each holder once.")
        pairs[holder] = url.rstrip("/")
    return pairs


def refuse_password(option_name: str, text: str) -> None:
    """Raise `UsageError` for a URL with a password in it: plans and messages name it, a process list shows it.

    `text` is the URL, or HOLDER=URL.
    """
    # Half of all secret keys have a slash, so that one may look like a port and a path; a bucket has no port.
    if re.search(r"://[^/@:]*:(?!\d+/)[^@]*@", text) or re.search(r"\bs3[an]?://[^/@:]*:[^@]*@", text):
        raise UsageError(
            f"{option_name}: a URL holds a password, which plans, messages and process lists show.",
            "Give it to Spark's file system in spark-defaults.conf, or by a provider of credentials.",
        )
