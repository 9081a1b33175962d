"""The `audit show` command: what the last run found, without a cluster."""

from dataclasses import dataclass
from pathlib import Path

import click

from migrate.cli.console import Terminal
from migrate.cli.options import LogOptions, argument, option
from migrate.extras.audit.state import last_result
from migrate.extras.audit.text import print_result


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """Which audit is shown, and how."""

    state: Path = argument("STATE")
    form: str = option(
        "json: one document.", name="--format", default="table", type=click.Choice(["table", "json"]))  # fmt: skip
    log: LogOptions = LogOptions()


def show(options: ShowOptions) -> int:
    """Show what the last run in a folder found; asks no cluster. Exits as that run did."""
    return print_result(last_result(options.state), options.form, Terminal.here())
