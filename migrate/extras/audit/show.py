"""The `audit show` command: what the last run found, without a cluster."""

from dataclasses import dataclass
from pathlib import Path

import click

from migrate.cli.console import Terminal
from migrate.cli.options import LogOptions, argument, option
from migrate.errors import UsageError
from migrate.extras.audit.state import read_state
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
    state = read_state(options.state)
    if state.result is None:
        raise UsageError(f"No audit in {options.state} has ended yet.", "Run `audit run` again: it goes on.")
    return print_result(state.result, options.form, Terminal.here())
