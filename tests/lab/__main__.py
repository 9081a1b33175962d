"""`python -m tests.lab`: a lab that stays up in the background, for trying things out and for demos."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from tests.lab.daemon import Daemon, LabState, default_folder
from tests.lab.jars import DEFAULT_VERSION
from tests.lab.options import MirrorOptions
from tests.lab.waiting import LabError

STATUS_DOWN = 3

folder_option = click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Folder of the lab [default: lab, in the cache folder].",
)


def describe(state: LabState) -> str:
    rows = [
        ("Kafka version", state.version),
        ("source cluster", state.source),
        ("target cluster", state.target),
        ("source client properties", state.source_properties),
        ("target client properties", state.target_properties),
        ("MirrorMaker properties", state.mm2_properties),
    ]
    return "\n".join(f"  {label:<25} {value}" for label, value in rows)


@click.group()
def cli() -> None:
    """Two Kafka clusters and a MirrorMaker 2 on this machine."""


@cli.command()
@click.option("--kafka-version", default=DEFAULT_VERSION, show_default=True, metavar="V")
@click.option("--exactly-once", is_flag=True, help="MM2 copies in transactions.")
@click.option("--offset-syncs-location", type=click.Choice(["source", "target"]), default="source")
@click.option("--policy", type=click.Choice(["default", "identity"]), default="default")
@click.option("--separator", default=".", show_default=True, metavar="S")
@click.option("--connect", is_flag=True, help="MM2's connectors run in a Connect worker, which writes headers anew.")
@folder_option
def up(
    kafka_version: str,
    exactly_once: bool,
    offset_syncs_location: Literal["source", "target"],
    policy: Literal["default", "identity"],
    separator: str,
    connect: bool,
    folder: Path | None,
) -> None:
    """Start the lab in the background, and return when it can be used."""
    daemon = Daemon(folder or default_folder())
    already = daemon.pid() is not None
    options = MirrorOptions(
        exactly_once=exactly_once,
        offset_syncs_location=offset_syncs_location,
        policy=policy,
        separator=separator,
        connect=connect,
    )
    state = daemon.up(kafka_version, options)
    click.echo("The lab is already up:" if already else "The lab is up:")
    click.echo(describe(state))


@cli.command()
@folder_option
def status(folder: Path | None) -> None:
    """Say whether the lab is up (exit status 0) or not (3)."""
    daemon = Daemon(folder or default_folder())
    state = daemon.state()
    if state is None:
        click.echo("The lab is down." if daemon.pid() is None else "The lab is starting.")
        sys.exit(STATUS_DOWN)
    click.echo("The lab is up:")
    click.echo(describe(state))


@cli.command()
@folder_option
def down(folder: Path | None) -> None:
    """Stop the lab and wait until its processes are gone."""
    stopped = Daemon(folder or default_folder()).down()
    click.echo("The lab is down." if stopped else "The lab was not up.")


def main() -> None:
    try:
        cli(prog_name="scripts/lab")
    except LabError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
