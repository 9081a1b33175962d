"""The commands that read a plan file and ask no cluster: to look at it, sign it, explain it, and send it around."""

import sys
from pathlib import Path
from typing import Any

import click

from migrate.cli.console import print_lines, printed, progress_on_stderr, say_beside, say_reading, terminal
from migrate.cli.options import FILE, command_options, option, printed_cluster_options, row_options, take_clusters
from migrate.cli.utf8 import print_in_utf8
from migrate.model import Side

# `migrate.show.positions.FORMATS_OF_POSITIONS`, which is imported only where a plan's positions are printed.
POSITION_FORMATS = (
    "csv", "jsonl", "spark", "spark-checkpoint", "flink", "flink-sql", "hudi", "druid", "routine-load", "connect",
    "kcg",
)  # fmt: skip


@click.command(short_help="Show a plan, what changed since another, or the sum of several waves.")
@click.argument("plans", metavar="PLAN...", nargs=-1, required=True, type=FILE)
@option("--format", "form", type=click.Choice(["table", "json", "jsonl", "csv", "kcg"]), default="table",
        show_default=True, help="kcg: what kafka-consumer-groups --reset-offsets --from-file reads.")  # fmt: skip
@row_options
@option("--diff", "other", type=FILE, metavar="OTHER",
        help="Show what changed since this earlier plan, such as the rehearsal.")  # fmt: skip
@command_options
def show(plans: tuple[Path, ...], log_format: str, **options: Any) -> int:
    """Show a plan: verdict and totals first, then what needs attention, then every group.

    Several plans are waves: their groups are added up, with what their journals say was moved, left and undone.
    """
    from migrate.cli.show import run_show

    say_reading(progress_on_stderr(log_format), *plans)
    lines, beside = run_show(plans, **options, **terminal(), on_terminal=sys.stdout.isatty())
    if options["form"] in ("csv", "kcg"):
        print_in_utf8()
    print_lines(lines)
    if beside:
        say_beside(beside)
    return 0


@click.command(short_help="Sign a plan that you have reviewed: a line in a file next to it.")
@click.argument("plan", type=FILE)
@option("--by", required=True, metavar="NAME", help="Who has reviewed the plan. A claim: nothing checks who you are.")
@option("--note", default="", metavar="TEXT", help="The reviewer's comment; goes into the journal with the name.")
@command_options
def sign(plan: Path, by: str, note: str, log_format: str) -> int:
    """Sign a plan that you have reviewed: its fingerprint, a name and the time go into a file next to it.

    A plan made with --require-signatures N is applied only after N different names have signed it. Names are claims,
    not authentication. The signatures go into the journal when the plan is applied.
    """
    from migrate.cli.sign import run_sign

    return printed(run_sign(plan, by, note))


@click.command(short_help="Say why a row of a plan is what it is.")
@click.argument("plan", type=FILE)
@click.argument("group", required=False)
@click.argument("place", metavar="[TOPIC:PARTITION]", required=False)
@option("--fence", "fenced", is_flag=True,
        help="Print the kafka-acls lines that keep GROUP, or all groups of the plan, from starting again on the "
             "cluster that they leave, and those that remove them.")  # fmt: skip
@option("--principal", "principals", multiple=True, metavar="TYPE:NAME",
        help="With --fence: whom to keep out; repeatable.  [default: User:*, everybody]")  # fmt: skip
@command_options
def explain(plan: Path, group: str | None, place: str | None, log_format: str, **options: Any) -> int:
    """Say in a few sentences why the rows of a group, or one of them, are what they are.

    Reads the plan alone: where the group was, which of MM2's offset syncs surround that offset, what was compared,
    what MM2's own checkpoint says, what applying does, and what else was considered. Also prints the commands that stop
    or reset MM2 the way it runs here. Changes nothing.
    """
    from migrate.cli.explain import run_explain

    return printed(run_explain(plan, group, place, **options, **terminal()))


@click.command(short_help="Write a plan as one self-contained HTML page.")
@click.argument("plan", type=FILE)
@option("--out", type=FILE, default=Path("report.html"), show_default=True, metavar="FILE",
        help="File to write the page to; replaces an older report.")  # fmt: skip
@option("--verification", type=FILE, metavar="FILE", help="Output of `verify --format json`, to be shown too.")
@printed_cluster_options
@command_options
def report(plan: Path, out: Path, verification: Path | None, log_format: str, **options: Any) -> int:
    """Write a plan as one self-contained HTML page: to read, to print, to send to the people who approve.

    After an apply the same page shows what was done, from the journal next to the plan. The cluster options go into
    the commands that the page offers for copying; no cluster is contacted.
    """
    from migrate.cli.report import run_report
    from migrate.mm2.connect_worker import connect_worker

    given = take_clusters(options)
    if given.connect_url is not None:
        connect_worker(given.connect_url)  # refuses a login, which the page would show to whoever it is sent to
    return printed(run_report(plan, out, verification, given.words()))


@click.command(short_help="Print what jobs that keep their own offsets are to be set to.")
@click.argument("plan", type=FILE)
@option("--holder", "holders", multiple=True, metavar="REGEX", help="Only holders that match in full; repeatable.")
@option("--format", "form", type=click.Choice(POSITION_FORMATS), default="csv", show_default=True,
        help="What the job takes. csv, jsonl and kcg have every holder; the others are for one each, or for several "
             "with --out FOLDER.")  # fmt: skip
@option("--side", type=click.Choice([str(s) for s in Side]), default=str(Side.TARGET), show_default=True,
        help="Where they are to be on the target, or where they were on the source, to compare.")  # fmt: skip
@option("--out", type=FILE, metavar="FILE|FOLDER",
        help="A file; a folder for several holders, with a file for each, and for spark-checkpoint. What exists is "
             "refused (exit 3).")  # fmt: skip
@command_options
def positions(plan: Path, holders: tuple[str, ...], form: str, side: str, out: Path | None, log_format: str) -> int:
    """Print what each holder of positions outside Kafka is to be set to on the target, and what changes with it.

    Reads the plan alone. No command sets these positions: the job's own tools do. A holder that the plan blocks is
    refused (exit 3). What has to be known beside the text goes to stderr.
    """
    from migrate.cli.positions import run_positions

    run_positions(plan, holders, form, Side(side), out)
    return 0
