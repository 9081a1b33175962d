"""The command line: parse, one call, print, exit code. Decisions live elsewhere.

Results go to stdout, progress and errors to stderr. Heavy libraries are imported inside the commands, so that
`--help` and `show` answer at once.
"""

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from migrate import __version__
from migrate.cli.console import (
    coloured,
    exit_code_of,
    print_lines,
    printed,
    progress_on_stderr,
    say_reading,
    take_signals,
    terminal,
    terminal_width,
)
from migrate.cli.follow_command import follow_command, refuse_standing_words, standing_options
from migrate.cli.groups import groups
from migrate.cli.offline import explain, positions, report, show, sign
from migrate.cli.options import (
    FILE,
    by_option,
    cluster_options,
    command_options,
    commits_from_option,
    filter_options,
    group_map_option,
    matching_options,
    option,
    policy_options,
    resolve_flow,
    resolve_policies,
    row_options,
    spark_options,
    take_clusters,
    topic_options,
    writing_options,
)
from migrate.cli.position_options import position_options, verified_checkpoint_option
from migrate.cli.seconds import Seconds
from migrate.cli.utf8 import escape_what_output_lacks, open_standard_streams, take_utf8
from migrate.errors import EXIT_REFUSED
from migrate.mm2.secrets import forbid_core_dumps

# A plan is millions of objects without a cycle; looking for one after every 700 (Python's default) doubled the time of
# reading it.
OBJECTS_BETWEEN_COLLECTIONS = 100_000
EXIT_CODES = """\b
Exit codes:
  0  done
  1  failed, could not see all that it was asked for, or was interrupted by Ctrl-C
  2  wrong usage
  3  refused by a safety check, or not ready (status); a plan with blocks or no rows is written, and exits 3
  4  partly applied, followed or verified: the output names what was left out, failed, or is unknown
"""


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=EXIT_CODES,
    subcommand_metavar="COMMAND [OPTIONS]",
)
@click.version_option(__version__, prog_name="mm2-migrate")
def cli() -> None:
    """Move Kafka consumer groups to the cluster that MirrorMaker 2 has been filling.

    Stop producers and consumers, run `status --watch` and `plan`, review the plan with `show`, `apply` exactly the plan
    you approved, `verify`, and start the consumers on the target. `rollback` undoes it. No group's offsets are
    changed without --execute.
    """


@cli.command(short_help="Translate every commit and write a plan; changes nothing.")
@cluster_options
@option("--source-down", is_flag=True, help="The source is down: plan from the target alone.")
@option("--failback", is_flag=True,
        help="The way back: the groups leave --target for --source, and --source is what gets written. Topics are "
             "named as on --target.")  # fmt: skip
@commits_from_option
@option("--commits-as-of", metavar="TIME",
        help="Translate the commits as they stood at this time, from __consumer_offsets: 2026-11-23T22:00:00Z, or ms "
             "since 1970. For a group that somebody reset by mistake; name it with --group.")  # fmt: skip
@filter_options
@group_map_option
@position_options
@policy_options
@by_option
@matching_options
@option("--settle", type=Seconds(min=0), default=15.0, show_default=True, metavar="SECONDS",
        help="Time between two looks at groups and log ends; keep it above auto-commit's 5 s. Below 1 s the two count "
             "as one, which blocks.")  # fmt: skip
@option("--require-signatures", type=click.IntRange(min=0), default=0, show_default=True, metavar="N",
        help="Let apply write this plan only after N different names have signed it.")  # fmt: skip
@option("--out", type=FILE, default=Path("cutover.plan"), show_default=True, metavar="PLAN",
        help="File to write the plan to. Replaces a plan, but none that was applied (exit 3).")  # fmt: skip
@option("--model", type=FILE, metavar="FILE",
        help="Plan every flow of this file (YAML: docs/models.md), one after another; what they have in common is read "
             "once.")  # fmt: skip
@option("--out-dir", type=FILE, default=Path("plans"), show_default=True, metavar="FOLDER",
        help="With --model: folder to write the plans to, each under its flow's name.")  # fmt: skip
@standing_options
@spark_options
@command_options
def plan(out: Path, model: Path | None, out_dir: Path, **options: Any) -> int:
    """Read both clusters and MM2's topics, translate every commit, check, and write a plan.

    Changes nothing on any cluster. Exits 3 if the plan has blocks, or if no commit is inside the filters; it is still
    written, for review. With --standing it writes a mandate for `follow` instead: a plan without rows.
    """
    from migrate.cli.model import refuse_model_folder
    from migrate.cli.plan import run_plan

    if model is not None:
        return _plans(model, out_dir, options)
    refuse_model_folder(click.get_current_context())
    given = take_clusters(options)
    flow = resolve_flow(given)
    policies = resolve_policies(options)
    progress = progress_on_stderr(options.pop("log_format"))
    if options.pop("standing"):
        from migrate.cli.standing import run_standing

        return printed(run_standing(flow, policies, out, progress, **options, **terminal()))
    refuse_standing_words(options)
    made = run_plan(flow, policies, out, progress, **options)
    from migrate.show.plan_table import Page, table

    lines = table(made, None, Page(str(out), terminal_width(), coloured(), given.words()))
    return printed(lines, 0 if made.is_clean() else EXIT_REFUSED)


def _plans(model: Path, out_dir: Path, options: dict[str, Any]) -> int:
    """Make a plan of each flow of a model; print what became of them."""
    from migrate.cli.model import refuse_beside_model, run_model, worst_code
    from migrate.show.several_plans import made_lines

    context = click.get_current_context()
    refuse_beside_model(context)
    progress = progress_on_stderr(options["log_format"])
    run = {name: options[name] for name in ("master", "spark_conf")}
    made = run_model(model, out_dir, context, progress, **run)
    return printed(made_lines(made, **terminal()), worst_code(made))


@cli.command(short_help="Stopped and drained? Show what keeps plan from being clean; changes nothing.")
@cluster_options
@filter_options
@group_map_option
@policy_options
@by_option
@option("--no-match", is_flag=True,
        help="Compare no records: only MM2's own positions tell whether it has copied everything.")  # fmt: skip
@option("--settle", type=Seconds(min=0), default=15.0, show_default=True, metavar="SECONDS",
        help="Time between two looks at groups and log ends; keep it above auto-commit's 5 s. Below 1 s the two count "
             "as one, and nothing is ever ready.")  # fmt: skip
@option("--watch", is_flag=True, help="Look again until everything is ready, with progress and the time left.")
@option("--timeout", type=Seconds(min=0), metavar="SECONDS",
        help="With --watch: give up after this long (exit 3; 1 if a cluster does not answer).  "
             "[default: never]")  # fmt: skip
@option("--rehearsal", type=FILE, metavar="PLAN",
        help="Estimate from this plan how long plan, apply and verify will take.")  # fmt: skip
@option("--follow", "mandate", type=FILE, metavar="PLAN",
        help="Show also what `follow` did last under this mandate.")  # fmt: skip
@option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True,
        help="json: one document; with --watch one line per look.")  # fmt: skip
@command_options
def status(watch: bool, **options: Any) -> int:
    """Show the state of a cutover: how far MM2 is, who still writes and reads, and what keeps `plan` from being clean.

    Takes the filters and policies of `plan`, does not start Spark, and changes nothing. Exits 0 if everything is ready,
    else 3, also if no commit is inside the filters. If the source does not answer, it shows what it can learn from the
    target alone; if the target does not answer, it exits 1.
    """
    from migrate.cli.status import run_status

    flow = resolve_flow(take_clusters(options))
    policies = resolve_policies(options)
    progress = progress_on_stderr(options.pop("log_format"))
    screen = {"width": terminal_width, "colour": coloured(), "on_terminal": sys.stdout.isatty()}
    return run_status(flow, policies, progress, print_lines, watch=watch, **screen, **options)


def _with_plan(run: Callable[..., tuple[list[str], int]], plan: Path, options: dict[str, Any]) -> int:
    """Run a command on a plan file and the clusters that its options name; print what it says."""
    given = take_clusters(options)
    progress = progress_on_stderr(options.pop("log_format"))
    say_reading(progress, plan)
    return printed(*run(plan, resolve_flow(given), progress, typed=given.words(), **terminal(), **options))


@cli.command(short_help="Set the planned offsets on the target (dry run without --execute).")
@click.argument("plan", type=FILE)
@cluster_options
@writing_options
@option("--allow-partial", is_flag=True,
        help="Leave out whole groups that are blocked or have changed, ignore blocks that no row shows, and apply the "
             "rest (exit 4).")  # fmt: skip
@option("--source-unreachable", is_flag=True,
        help="Proceed although the source does not answer, without checking whether its groups are stopped or were "
             "reset since the plan.")  # fmt: skip
@command_options
def apply(plan: Path, **options: Any) -> int:
    """Set the planned offsets on the target: exactly the plan you approved, or nothing.

    Without --execute this is a dry run: every check, the fingerprint, and the command to type.
    Prior state is on disk before the first write. Running the same command again finishes the job or does nothing.
    What only Kafka's Java client can write or restore (commit metadata) needs Java here; that client is tried first.
    """
    from migrate.cli.apply import run_apply

    return _with_plan(run_apply, plan, options)


@cli.command(short_help="Restore what was on the target before apply.")
@click.argument("plan", type=FILE)
@cluster_options
@writing_options
@option("--allow-partial", is_flag=True, help="Leave out whole groups that have moved on, and restore the others.")
@option("--moved", type=click.Choice(["refuse", "restore"]), default="refuse", show_default=True,
        help="If consumers have moved on since the apply: refuse, or restore anyway (they must be stopped) and say "
             "what is re-read or skipped.")  # fmt: skip
@option("--out", type=FILE, metavar="PLAN",
        help="Instead of restoring, save the undo as a separate plan for apply, with its own fingerprint.")  # fmt: skip
@command_options
def rollback(plan: Path, **options: Any) -> int:
    """Restore what was on the target before `apply` ran, from the journal next to the plan.

    Without --execute this is a dry run. Rows that have moved since are refused. After a rollback the plan is
    spent. If offsets are as planned but this journal did not write them, it names them and exits 4.
    """
    from migrate.cli.apply import run_rollback

    return _with_plan(run_rollback, plan, options)


@cli.command(short_help="Read the target afresh and compare it with the plan.")
@click.argument("plan", type=FILE)
@cluster_options
@option("--settle", type=Seconds(min=0), metavar="SECONDS",
        help="Read twice, this far apart, and report what moved in between.")  # fmt: skip
@option("--consumers-ran", is_flag=True,
        help="Consumers have run on the target since: progress beyond the planned offsets is theirs.")  # fmt: skip
@option("--records", is_flag=True,
        help="Also read, per row, the next record on the source and the next one on the target, and show them "
             "side by side: offset, time, size, fingerprints equal or not. Never the payload.")  # fmt: skip
@option("--limit", type=click.IntRange(min=1), metavar="N", help="With --records: only the first N rows.", envvar=None)
@verified_checkpoint_option
@row_options
@option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True,
        help="json: one document with every row.")  # fmt: skip
@spark_options
@command_options
def verify(plan: Path, **options: Any) -> int:
    """Read the target afresh, and report whether each planned offset is there or consumers have moved on.

    An offset beyond the planned one is good only while the group has members, or with --consumers-ran. --records also
    proves it by what each group reads next on either side. Exits 1 if an offset is behind, missing, or ahead without a
    consumer, or if the records of an exact row differ; 4 if rows were not written, or blocks of the plan are open.
    """
    from migrate.cli.apply import run_verify

    return _with_plan(run_verify, plan, options)


@cli.command(short_help="Check Java, jars, clusters, rights and MM2 before the night.")
@cluster_options
@option("--source-down", is_flag=True, help="Do not contact the source.")
@commits_from_option
@filter_options
@group_map_option
@spark_options
@command_options
def doctor(**options: Any) -> int:
    """Check, now and not on the night: Java, Spark's jars (fetched into the cache), both clusters, MM2's topics.

    Also checks this principal's rights: for each command and side, it lists those that are missing, by resource. The
    filters choose the groups and topics; without any, it checks all groups and the topics they have committed on.
    Exits 1 if something that a command needs is missing.
    """
    from migrate.cli.doctor import examine

    given = take_clusters(options)
    progress = progress_on_stderr(options.pop("log_format"))
    return printed(*examine(given, progress, **terminal(), **options))


@cli.group(short_help="Look at what MirrorMaker 2 itself keeps.", subcommand_metavar="COMMAND [OPTIONS]")
def mm2() -> None:
    """Look at what MirrorMaker 2 itself keeps. Changes nothing; `explain` prints the commands that do."""


@mm2.command(short_help="Show MM2's own positions next to its syncs and checkpoints.")
@cluster_options
@option("--source-down", is_flag=True, help="The source is down: show what the target knows.")
@topic_options
@option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True,
        help="json: one document with every number.")  # fmt: skip
@spark_options
@command_options
def offsets(**options: Any) -> int:
    """Show MM2's own positions per source partition: how far it has copied, and where it goes on.

    Next to them are the two stores that are often mistaken for them: offset syncs and checkpoints. Positions are read
    from MM2's Connect offsets topic, or from its Connect worker (--connect-url). Exits 1 if neither has them.
    """
    from migrate.cli.mm2_offsets import run_mm2_offsets

    flow = resolve_flow(take_clusters(options))
    progress = progress_on_stderr(options.pop("log_format"))
    return printed(*run_mm2_offsets(flow, progress, **terminal(), **options))


cli.add_command(follow_command, "follow")
for each in (show, sign, explain, report, groups, positions):
    cli.add_command(each)


def main() -> None:
    """Run the command line; never returns."""
    open_standard_streams()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    take_utf8()
    forbid_core_dumps()
    take_signals()
    escape_what_output_lacks()
    sys.exit(exit_code_of(cli))
