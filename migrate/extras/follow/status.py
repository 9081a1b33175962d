"""The `follow status` command: what a mandate allows, and what its newest pass did; by the files beside it alone."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from migrate.cli.console import Terminal, print_lines
from migrate.cli.options import LogOptions, argument, option
from migrate.clock import SystemClock, ms_of
from migrate.errors import EXIT_DONE
from migrate.extras.follow.mandate import mandate_of
from migrate.extras.follow.mandate_text import LABELS, mandate_lines
from migrate.extras.follow.passes import read_status, status_path
from migrate.extras.follow.text import status_facts
from migrate.plan.file import read_plan
from migrate.show.lines import aligned


@dataclass(frozen=True, kw_only=True)
class FollowStatusOptions:
    """The mandate that is looked at."""

    plan: Path = argument()
    form: str = option(
        "json: what the status file says, as one document; null where no pass was made.",
        name="--format", default="table", type=click.Choice(["table", "json"]))  # fmt: skip
    log: LogOptions = LogOptions()


def status(options: FollowStatusOptions) -> int:
    """Show what a mandate allows, and what `follow run` did last under it, from the files beside it."""
    terminal, plan = Terminal.here(), read_plan(options.plan)
    mandate_of(plan)
    document = read_status(status_path(options.plan, plan.fingerprint))
    if options.form == "json":
        print_lines([json.dumps(document, indent=2)])
    else:
        print_lines(mandate_lines(plan, str(options.plan), terminal.width, terminal.colour))
        print_lines(["", *status_lines(document, terminal.width, SystemClock().now_ms())])
    return EXIT_DONE


def status_lines(document: dict[str, Any] | None, width: int, now_ms: int) -> Iterator[str]:
    """Yield what a status file says, for people."""
    last = None if document is None else document["pass"]
    at_ms = None if last is None else ms_of(last["at"])
    yield from aligned(status_facts(document, now_ms, at_ms), width, LABELS)
