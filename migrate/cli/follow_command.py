"""The words of the command line for mandates: the options of `plan --standing`, and the command `follow`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from migrate.cli.console import progress_on_stderr, say_reading, terminal
from migrate.cli.options import (
    FILE,
    cluster_options,
    command_options,
    option,
    parsed_by,
    resolve_flow,
    take_clusters,
    together,
    writing_options,
)
from migrate.cli.seconds import Seconds
from migrate.errors import UsageError
from migrate.text import parse_duration

DEFAULT_GRADES = "exact,bounded"
standing_options = together(
    option("--standing", is_flag=True,
           help="Write no rows but a mandate for `follow`: these filters, names and limits, until --until."),
    # Not from the environment, where it may be that of an export.
    click.option("--until", metavar="TIME",
                 help="With --standing: when the mandate ends, at most 30 days ahead: 2026-11-23T22:00:00Z, or ms "
                      "since 1970."),
    option("--grades", metavar="GRADE,...", default=DEFAULT_GRADES, show_default=True,
           help="With --standing: the grades that may be written."),
    option("--moving-group", "moving_groups", multiple=True, metavar="REGEX",
           help="With --standing: write these groups although their commits move without a member, as those of readers "
                "that assign partitions themselves do."),
)  # fmt: skip


def refuse_standing_words(options: Mapping[str, Any]) -> None:
    """Raise `UsageError` for options that say something only of a mandate, where none is made."""
    given = options["until"] is not None or options["moving_groups"] or options["grades"] != DEFAULT_GRADES
    if given:
        raise UsageError(
            "--until, --grades and --moving-group belong to a mandate.", "Give --standing too, or omit them."
        )


@click.command(short_help="Keep the target's offsets fresh until the night, under an approved mandate.")
@click.argument("plan", type=FILE)
@cluster_options
@writing_options
@option("--every", callback=parsed_by(parse_duration), default="30s", show_default=True, metavar="DURATION",
        help="A pass begins so long after the one before began (10s, 5m).")  # fmt: skip
@option("--passes", type=click.IntRange(min=1), metavar="N",
        help="End after N passes.  [default: when the mandate does]")  # fmt: skip
@option("--settle", type=Seconds(min=1), default=6.0, show_default=True, metavar="SECONDS",
        help="Time between two looks at groups in a pass; keep it above auto-commit's 5 s.")  # fmt: skip
@command_options
def follow_command(plan: Path, **options: Any) -> int:
    """Keep the target's offsets fresh: pass after pass, every group that moved on is translated and set.

    PLAN is a mandate, made by `plan --standing`. Never on a group with members on the target, never over what somebody
    else wrote, never back but behind its own write. One JSON line for each pass goes to stderr and into a status file
    beside the mandate, which `status --follow PLAN` reads. Without --execute: one pass, told, nothing written.
    Ctrl-C or `kill` ends it after the group in hand; `rollback PLAN` then restores what stood there before. Exits 4 if
    the newest pass left groups out, 1 if no pass succeeded.
    """
    from migrate.cli.follow import run_follow

    given = take_clusters(options)
    progress = progress_on_stderr(options.pop("log_format"))
    say_reading(progress, plan)
    return run_follow(plan, resolve_flow(given), progress, **terminal(), **options)
